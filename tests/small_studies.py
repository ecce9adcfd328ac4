"""Data for studies that take no time."""

from sklearn.datasets import make_classification


def blobs(n=80, seed=0, **more):
    settings = {"n_features": 4, "flip_y": 0.1, "random_state": seed, **more}
    return make_classification(n, **settings)
