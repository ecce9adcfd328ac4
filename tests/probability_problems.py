"""Data for tests of probabilities, and helpers to fit models to it."""

from functools import cache

import numpy as np
from sklearn.datasets import make_blobs, make_moons

import naive
from popf import OPFClassifier, POPFClassifier
from strategies import size

X, Y = make_moons(size(120), noise=0.3, random_state=1)
NEW = np.random.default_rng(2).uniform(-1.5, 2.5, size=(40, 2))
X3, Y3 = make_blobs(90, centers=3, cluster_std=3.0, random_state=0)
NEW3 = np.random.default_rng(3).uniform(-8, 10, size=(40, 2))
DUPLICATES = np.repeat([[0.0, 0.0], [1.0, 0.0]], 40, axis=0)
DUPLICATE_LABELS = np.repeat([0, 1, 0, 1], [30, 10, 5, 35])


def distances(A, B):
    return np.sqrt(naive.squared_distances(A, B))


def scale_of(X):
    """Return a factor that scales costs to about 1, where the paper's box does not bind."""
    return 1.0 / OPFClassifier().fit(X, Y).costs_.max()


WIDE = X * 4.0 * scale_of(X)  # the paper's features, wide enough that A lies inside its box
WIDE_NEW = NEW * 4.0 * scale_of(X)


@cache
def fitted(method="pooled", n_classes=2):
    """Return a model fitted to the samples above; all tests share it, so do not change it."""
    return POPFClassifier(method).fit(*((X3, Y3) if n_classes == 3 else (WIDE, Y)))
