"""Seeded data for the benchmarks: Gaussian blobs, and shapes that bring algorithms to a fall."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Sample = tuple[NDArray[np.float64], NDArray[np.int64]]


@dataclass(frozen=True)
class DataSpec:
    """What data to make.

    Attributes
    ----------
    n_samples, n_features : int
        The size of the training set.
    n_queries : int
        How many further samples of the same kind are to be predicted.
    shape : str
        A key of `SHAPES`.
    seed : int
        The same spec always makes the same data.
    """

    n_samples: int
    n_features: int
    n_queries: int = 0
    shape: str = "blobs"
    seed: int = 0

    @property
    def size(self) -> str:
        """The size as people write it, ``100,000 × 8``."""
        return f"{self.n_samples:,} × {self.n_features}"


class Data(NamedTuple):
    """A training set and the samples to be predicted."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    queries: NDArray[np.float64]


def make(spec: DataSpec) -> Data:
    """Make the data of `spec`."""
    if spec.shape not in SHAPES:
        raise ValueError(f"unknown shape {spec.shape!r}; choose one of {sorted(SHAPES)}")
    rng = np.random.default_rng([spec.seed, spec.n_features])
    total = spec.n_samples + spec.n_queries
    X, y = SHAPES[spec.shape](total, spec.n_features, rng)
    # Even a tiny set needs both classes, or nothing can be fitted.
    y[:2] = (0, 1)
    return Data(X[: spec.n_samples], y[: spec.n_samples], X[spec.n_samples :])


def small(spec: DataSpec, n_samples: int = 500) -> DataSpec:
    """Shrink `spec` to the size of a warm-up: same shape and features, few samples."""
    return DataSpec(
        min(spec.n_samples, n_samples),
        spec.n_features,
        min(spec.n_queries, 50),
        spec.shape,
        spec.seed + 1,
    )


def _blobs(n: int, d: int, rng: np.random.Generator) -> Sample:
    """Draw y in {0, 1}, X = N(0, 1)^d + 2y/√d: the class means lie 2 apart whatever d is."""
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, d))
    # In place, so that making the data leaves no high-water mark above the data itself.
    X += (2.0 * y / d**0.5)[:, None]
    return X, y


def _separated(n: int, d: int, rng: np.random.Generator) -> Sample:
    """Draw 200 tight clusters far apart, each of one class: many components with far links."""
    clusters = rng.integers(0, 200, n)
    X = 1000.0 * rng.standard_normal((200, d))[clusters]
    X += rng.standard_normal((n, d))
    return X, clusters % 2


def _duplicates(n: int, d: int, rng: np.random.Generator) -> Sample:
    """Repeat 300 distinct rows; one label in twenty contradicts its twins."""
    rows, classes = _blobs(300, d, rng)
    chosen = rng.integers(0, 300, n)
    return rows[chosen], classes[chosen] ^ (rng.random(n) < 0.05)


def _grid(n: int, d: int, rng: np.random.Generator) -> Sample:
    """Draw integers 0 to 3, so that nearly every distance is a tie; some noise in the labels."""
    X = rng.integers(0, 4, (n, d)).astype(float)
    return X, (X[:, 0] + X[:, -1] >= 3).astype(int) ^ (rng.random(n) < 0.05)


def _outliers(n: int, d: int, rng: np.random.Generator) -> Sample:
    """Shrink blobs to a dense cluster, and put one sample in a hundred far away from it."""
    X, y = _blobs(n, d, rng)
    X *= 0.01
    far = rng.random(n) < 0.01
    X[far] = rng.uniform(-1000.0, 1000.0, (int(far.sum()), d))
    return X, y


def _line(n: int, d: int, rng: np.random.Generator) -> Sample:
    """Draw uniformly on a line through the space, in 20 stretches of alternating class."""
    position = rng.random(n)
    direction = rng.standard_normal(d)
    return position[:, None] * direction, (position * 20).astype(int) % 2


SHAPES: dict[str, Callable[[int, int, np.random.Generator], Sample]] = {
    "blobs": _blobs,
    "separated clusters": _separated,
    "duplicates": _duplicates,
    "integer grid": _grid,
    "cluster and outliers": _outliers,
    "line": _line,
}
