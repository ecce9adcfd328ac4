"""
Clusters from the maxima of a density
=====================================

`OPFClustering` joins every sample to its nearest neighbours, estimates a density from the distances, and lets
the maxima of the density compete for the samples. The number of neighbours sets the scale of these maxima; it
is chosen by the normalised cut.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from popf import OPFClustering

rng = np.random.default_rng(0)
heaps, _ = make_blobs(450, centers=[[0, 0], [4, 0.5], [1, 4]], cluster_std=0.7, random_state=0)
angle = rng.uniform(0.1, 2.0, 300)
bow = 9 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.3, (300, 2))
X = np.concatenate([heaps, bow])

# %%
# With few neighbours every bump of the density is a cluster. The cut falls as the bumps merge.
clustering = OPFClustering().fit(X)
for k in (5, 15, clustering.n_neighbors_):
    print(f"{k:3} neighbours: {OPFClustering(k).fit(X).n_clusters_:3} clusters")

# %%
# A bow of even density has several maxima, none of them high. `min_height`, `min_area` and `min_volume` remove
# small maxima: here those that rise by less than 300, with densities scaled to the range from 1 to 1000.
merged = OPFClustering(clustering.n_neighbors_, min_height=300).fit(X)
print(f"{clustering.n_clusters_} clusters, {merged.n_clusters_} without low maxima")

# %%
# New samples go to the cluster of the neighbour that offers the best path, so every point gets a cluster. Where
# the density is low, this means little: the shading is `score_samples`.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.plot(np.arange(1, len(clustering.cuts_) + 1), clustering.cuts_)
left.axvline(clustering.n_neighbors_, color="0.6", linestyle=":")
left.set(yscale="log", xlabel="neighbours", ylabel="normalised cut")
x, y = np.meshgrid(np.linspace(-5, 11, 120), np.linspace(-3, 11, 90))
density = merged.score_samples(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
right.contourf(x, y, density, levels=12, cmap="Greys", alpha=0.6)
right.scatter(*X.T, c=merged.labels_, cmap="tab10", vmax=9, s=8)
right.scatter(*X[np.unique(merged.roots_)].T, marker="*", s=160, c="white", edgecolors="black")
right.set(title=f"{merged.n_clusters_} clusters and their roots", xticks=[], yticks=[])
plt.show()
