"""Choose a metric by grid search, in a pipeline, as for any scikit-learn classifier.

The metric is the only thing about an optimum-path forest that can be tuned; what comes before it,
the scaling of the features, matters as much.
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from popf import OPFClassifier

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

search = GridSearchCV(
    Pipeline([("scale", StandardScaler()), ("opf", OPFClassifier())]),
    {
        "scale": [StandardScaler(), MinMaxScaler(), RobustScaler(), "passthrough"],
        "opf__metric": ["euclidean", "manhattan", "canberra"],
    },
    scoring="balanced_accuracy",
).fit(X_train, y_train)

results = search.cv_results_
for i in results["rank_test_score"].argsort(kind="stable"):
    scaling, metric = results["param_scale"][i], results["param_opf__metric"][i]
    print(f"{results['mean_test_score'][i]:.3f}  {metric:10} {scaling}")
print(f"\nbalanced accuracy of the best on the test set: {search.score(X_test, y_test):.3f}")
