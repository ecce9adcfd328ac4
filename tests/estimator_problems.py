"""Samples, and a distance of a user's own."""

import numpy as np
from sklearn.datasets import load_iris, make_blobs, make_moons

ALGORITHMS = ["kd_tree", "brute", "prim"]
X, Y = load_iris(return_X_y=True)
X_TRAIN, Y_TRAIN, X_NEW = X[::2], Y[::2], X[1::2]
MOONS, MOON = make_moons(160, noise=0.2, random_state=0)
BLOBS, BLOB = make_blobs(900, centers=9, n_features=6, random_state=0)


def furthest_feature(x, y):
    """Chebyshev's distance, as a user would write it."""
    return np.abs(x - y).max()
