"""
A pipeline, and a grid search
=============================

The metric is the only parameter of an optimum-path forest worth tuning, and the scaling of the features
matters as much. Both are parameters of a pipeline, as for any scikit-learn classifier.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from popf import OPFClassifier

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

scalers = [StandardScaler(), MinMaxScaler(), RobustScaler(), "passthrough"]
metrics = ["euclidean", "manhattan", "canberra"]
search = GridSearchCV(
    Pipeline([("scale", StandardScaler()), ("opf", OPFClassifier())]),
    {"opf__metric": metrics, "scale": scalers},
    scoring="balanced_accuracy",
).fit(X_train, y_train)
best = search.best_params_
print(f"best: {best['opf__metric']} after {best['scale']}")
print(f"balanced accuracy on the test set {search.score(X_test, y_test):.3f}")

# %%
# The cross-validated score of every combination. The Canberra distance divides by the size of the features, so
# it needs no scaling; the others do.
scores = search.cv_results_["mean_test_score"].reshape(len(metrics), len(scalers))
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
image = ax.imshow(scores, vmin=0.6, vmax=1, cmap="cividis")
for (row, column), score in [((i, j), scores[i, j]) for i in range(3) for j in range(4)]:
    ink = "white" if score < 0.8 else "black"
    ax.text(column, row, f"{score:.3f}", ha="center", va="center", color=ink)
ax.set_xticks(range(4), ["standard", "min to max", "robust", "as they are"])
ax.set_yticks(range(3), metrics)
figure.colorbar(image, label="balanced accuracy")
plt.show()
