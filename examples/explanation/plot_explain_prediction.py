"""
Why did this flower get its label?
==================================

Every prediction of an optimum-path forest is a path from a prototype, through training samples, to the new
sample. Its cost is the length of its longest arc, the bottleneck, which is marked by a star.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from popf import OPFClassifier
from popf.display import ForestDisplay

iris = load_iris()
names = iris.target_names[iris.target]
X_train, X_test, y_train, y_test = train_test_split(
    iris.data, names, stratify=names, test_size=0.4, random_state=7
)
opf = OPFClassifier().fit(X_train, y_train)
predicted = opf.predict(X_test)
print(f"{len(opf.prototypes_)} prototypes, accuracy {opf.score(X_test, y_test):.3f}")

# %%
# Look at the misclassified flowers. The cost of the best path from each class shows how close the decision was.
wrong = [i for i in range(len(X_test)) if predicted[i] != y_test[i]]
offers = opf.path_costs_by_class(X_test[wrong])
for i, path, costs in zip(wrong, opf.explain(X_test[wrong]), offers, strict=True):
    print(f"Flower {i} is {y_test[i]}, but was predicted as {path.label}.")
    print(f"  {path}")
    for name, cost in zip(opf.classes_, costs, strict=True):
        print(f"  best path from {name:12} costs {cost:.2f}")

# %%
# With four features the picture is a projection on two principal components: arcs look shorter than they are.
ForestDisplay.from_estimator(opf, sample=X_test[wrong[-1:]])
plt.show()
