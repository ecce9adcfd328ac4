"""
A forest in the plane
=====================

An optimum-path forest of two classes: the tree that joins the samples, the prototypes at the border, the
region of each class, and the path that gives one new sample its label.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from popf import OPFClassifier
from popf.display import ForestDisplay

X, y = make_moons(120, noise=0.18, random_state=3)
opf = OPFClassifier().fit(X, y)
print(f"{len(opf.prototypes_)} prototypes of {len(X)} samples")

# %%
# A new sample between the moons. Of all paths to it, the best is the one whose longest arc is shortest.
sample = [[0.55, 0.35]]
path = opf.explain(sample)[0]
print(path)
print("best path by class:", opf.path_costs_by_class(sample)[0].round(3))

# %%
# Prototypes have a ring, and dashed arcs join two classes. Every other sample is connected to the one before it
# on its path. The background colour is the label that a new sample would get there.
ForestDisplay.from_estimator(opf, sample=sample)
plt.show()
