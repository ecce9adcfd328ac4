"""
Prototypes at the border, or at the centres
===========================================

`OPFClassifier` has prototypes where classes meet, on the minimum spanning tree. `KNNOPFClassifier` has
them at the maxima of a density, on a graph of nearest neighbours, and chooses the number of neighbours on
held-out samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from popf import KNNOPFClassifier, OPFClassifier

X, y = make_moons(200, noise=0.2, random_state=3)
X_new, y_new = make_moons(2000, noise=0.2, random_state=4)
knn = KNNOPFClassifier().fit(X, y)
tree = OPFClassifier().fit(X, y)
for k in (1, knn.n_neighbors_, len(knn.accuracies_)):
    print(f"{k:2} neighbours: accuracy on held-out samples {knn.accuracies_[k - 1]:.3f}")

# %%
# Which is better depends on the data; neither is meant for classes that overlap much.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, model in zip(axes, (tree, knn), strict=True):
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="predict", cmap="coolwarm", alpha=0.3, ax=ax
    )
    ax.scatter(*X.T, c=y, cmap="coolwarm", s=12)
    ax.scatter(*X[model.prototypes_].T, s=70, facecolors="none", edgecolors="black")
    score = np.mean(model.predict(X_new) == y_new)
    ax.set(title=f"{type(model).__name__}: {score:.3f} on new samples", xticks=[], yticks=[])
plt.show()
