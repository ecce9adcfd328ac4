"""Samples in blocks, and tasks done at once."""

import dask
import dask.array as da
import numpy as np
from distributed import LocalCluster

from popf.dask.cluster import Settings, Tasks, call_with_loaded
from popf.forest.metrics import choose_metric

SEED = 20240615


class Here(Tasks):
    """Tasks that are done at once, in this process, and remembered."""

    def __init__(self):
        super().__init__(client=None, local=False)
        self.done = []

    def submit(self, name, function, *arguments):
        self.done.append((name, arguments))
        return call_with_loaded(function, *arguments)

    def submit_lazy(self, name, function, calls):
        return [
            self.submit(name, function, *dask.compute(*arguments, scheduler="sync"))
            for arguments in calls
        ]

    def gather(self, results):
        return results


def settings(algorithm="auto", metric="euclidean", device="cpu"):
    return Settings(choose_metric(metric), algorithm, device, n_threads=1, n_bytes=2**24)


def two_classes(n, d, rng):
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.6 * rng.normal(size=n) > 0).astype(int)


def samples(kind, n, rng):
    """Data without ties, and with very many."""
    if kind == "normal":
        X = rng.normal(size=(n, 3))
    elif kind == "grid":
        X = rng.integers(0, 9, size=(n, 2)).astype(float)
    elif kind == "distinct grid":  # many ties, but no place twice
        places = np.stack(np.meshgrid(*[np.arange(4.0)] * 4), axis=-1).reshape(-1, 4)
        X = np.ascontiguousarray(rng.permutation(places)[:n])
    elif kind == "copies":  # places of several samples; two blocks by the first feature share none
        X = rng.integers(0, 3, size=(n, 4)).astype(float)
        X[:, 0] = np.arange(n) % 2
    elif kind == "coarse":
        X = rng.integers(0, 3, size=(n, 3)).astype(float)
    elif kind == "one-hot":  # all distinct samples equally far from each other
        X = np.eye(7)[rng.integers(0, 7, size=n)]
    elif kind == "clusters":
        X = np.round(rng.normal(size=(n, 2)), 1) + 40.0 * rng.integers(0, 3, size=(n, 1))
    else:
        X = np.full((n, 2), 1.5)
    y = rng.integers(0, 3, size=n)
    y[:3] = 0, 1, 2
    return X, y


def as_dask(X, y, rows=50):
    return da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=rows)


def quiet_cluster(n_workers, processes):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=processes,
        dashboard_address=":0",
        silence_logs=50,
        memory_limit=0,
    )
