"""
The spanning tree by itself
===========================

`minimum_spanning_tree` returns the tree that forests are grown on, and `single_linkage` the hierarchy of
clusters that follows from it: cut the longest edges, and the connected parts are clusters.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from scipy.cluster.hierarchy import dendrogram, fcluster
from sklearn.datasets import make_moons

from popf import minimum_spanning_tree, single_linkage

X, _ = make_moons(300, noise=0.06, random_state=0)
edges, lengths = minimum_spanning_tree(X)
print(f"{len(edges)} edges, from {lengths[0]:.4f} to {lengths[-1]:.4f} long")

# %%
# Edges are sorted, so the last is the longest: without it two parts remain. The linkage matrix works with
# SciPy's functions, but was computed without a matrix of distances.
linkage = single_linkage(X)
labels = fcluster(linkage, 2, criterion="maxclust")
print("clusters of", np.bincount(labels)[1:].tolist())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.add_collection(LineCollection(X[edges[:-1]], colors="0.6", linewidths=1))
left.plot(*X[edges[-1]].T, "--", color="black", linewidth=1)
left.scatter(*X.T, c=labels, cmap="tab10", vmax=10, s=10, zorder=2)
left.set(title="the tree, and its longest edge", xticks=[], yticks=[])
dendrogram(linkage, no_labels=True, color_threshold=lengths[-1], ax=right)
right.set(title="single linkage", ylabel="distance")
plt.show()
