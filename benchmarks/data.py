"""Seeded data for the benchmarks: Gaussian blobs, and shapes that are hard for spanning tree algorithms."""

import json
import sys
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class DataSpec:
    """Description of data: `n_samples` to fit, `n_queries` to predict; `shape` is a key of `SHAPES`."""

    n_samples: int
    n_features: int
    n_queries: int = 0
    shape: str = "blobs"
    seed: int = 0

    @property
    def size(self) -> str:
        """The size as text, such as ``100,000 × 8``."""
        return f"{self.n_samples:,} × {self.n_features}"

    def shrunk(self, n_samples: int = 500) -> "DataSpec":
        """Return the description of a few similar samples, for warming up."""
        n_queries = min(self.n_queries, 50)
        n_samples = min(self.n_samples, n_samples)
        return DataSpec(n_samples, self.n_features, n_queries, self.shape, self.seed + 1)

    def make(self) -> "Data":
        """Generate the data."""
        rng = np.random.default_rng([self.seed, self.n_features])
        X, y = SHAPES[self.shape](self.n_samples + self.n_queries, self.n_features, rng)
        y[:2] = (0, 1)  # even a tiny set needs both classes
        return Data(X[: self.n_samples], y[: self.n_samples], X[self.n_samples :])


class Data(NamedTuple):
    """A training set, and the samples to predict."""

    X: np.ndarray
    y: np.ndarray
    queries: np.ndarray


def blobs(n, d, rng):
    """Draw two Gaussian classes whose means are 2 apart for any d."""
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, d))
    # In place, so that the peak memory does not exceed the data.
    X += (2.0 * y / d**0.5)[:, None]
    return X, y


def three_decimals(n, d, rng):
    """Draw blobs with values of three decimals, as in tables of measurements."""
    X, y = blobs(n, d, rng)
    return np.round(X, 3, out=X), y


def many_classes(n_classes, n, d, rng):
    """Draw Gaussian classes of variance 1 with normal means of standard deviation 1.5."""
    y = rng.integers(0, n_classes, n)
    X = 1.5 * rng.standard_normal((n_classes, d))[y]
    X += rng.standard_normal((n, d))
    return X, y


def five_blobs(n, d, rng):
    """Draw five Gaussian clusters of standard deviation 0.6, with centres in a box of side 20."""
    clusters = rng.integers(0, 5, n)
    X = rng.uniform(-10.0, 10.0, (5, d))[clusters]
    X += 0.6 * rng.standard_normal((n, d))
    return X, clusters % 2


def separated_clusters(n, d, rng):
    """Draw 200 tight clusters far apart, each of one class: many components with long links."""
    clusters = rng.integers(0, 200, n)
    X = 1000.0 * rng.standard_normal((200, d))[clusters]
    X += rng.standard_normal((n, d))
    return X, clusters % 2


def duplicates(n, d, rng):
    """Repeat 300 distinct rows; one label in twenty differs from that of its duplicates."""
    rows, classes = blobs(300, d, rng)
    chosen = rng.integers(0, 300, n)
    return rows[chosen], classes[chosen] ^ (rng.random(n) < 0.05)


def integer_grid(n, d, rng):
    """Draw integers from 0 to 3, so that nearly all distances tie, with 5 % label noise."""
    X = rng.integers(0, 4, (n, d)).astype(float)
    return X, (X[:, 0] + X[:, -1] >= 3).astype(int) ^ (rng.random(n) < 0.05)


def cluster_and_outliers(n, d, rng):
    """Draw a dense cluster, and one sample in a hundred far away from it."""
    X, y = blobs(n, d, rng)
    X *= 0.01
    far = rng.random(n) < 0.01
    X[far] = rng.uniform(-1000.0, 1000.0, (int(far.sum()), d))
    return X, y


def categories(n, d, rng):
    """Draw d / 4 normal features, and categories as standardised one-hot columns, up to six for each."""
    columns, n_left = [rng.standard_normal((n, d // 4))], d - d // 4
    while n_left > 0:
        levels = min(6, n_left)
        shares = 1.0 / np.arange(1, levels + 1)
        chosen = rng.choice(levels, n, p=shares / shares.sum())
        hot = (chosen[:, None] == np.arange(levels)).astype(float)
        columns.append((hot - hot.mean(axis=0)) / np.maximum(hot.std(axis=0), 0.01))
        n_left -= levels
    X = np.hstack(columns)
    return X, (X[:, 0] + X[:, -1] > 0.0).astype(int) ^ (rng.random(n) < 0.05)


def line(n, d, rng):
    """Draw uniformly on a line, in 20 segments of alternating class."""
    position = rng.random(n)
    return position[:, None] * rng.standard_normal(d), (position * 20).astype(int) % 2


SHAPES = {
    "blobs": blobs,
    "three decimals": three_decimals,
    "ten classes": partial(many_classes, 10),
    "26 classes": partial(many_classes, 26),
    "500 classes": partial(many_classes, 500),
    "five blobs": five_blobs,
    "separated clusters": separated_clusters,
    "duplicates": duplicates,
    "integer grid": integer_grid,
    "cluster and outliers": cluster_and_outliers,
    "categories": categories,
    "line": line,
}


if __name__ == "__main__":
    # Called by a worker as another process, so that generating the data does not count as its memory.
    for name, array in DataSpec(**json.loads(sys.argv[1])).make()._asdict().items():
        np.save(f"{name}.npy", array)
