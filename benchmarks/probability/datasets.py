"""The datasets: public ones where they are at hand, scikit-learn's, and generated ones.

A generated dataset is drawn anew for every seed; of the others only the split changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets

from ..results import ROOT

Sample = tuple[NDArray[np.float64], NDArray[np.int64]]

# One form of each: after standardising, the scaled and the unscaled one are the same. The scaled form of
# breast-cancer is smaller; its first column is a patient's number and is dropped.
PUBLIC = {
    "australian": "australian",
    "breast-cancer": "breast-cancer_scale",
    "colon-cancer": "colon-cancer",
    "diabetes": "diabetes",
    "fourclass": "fourclass",
    "heart": "heart",
    "ionosphere": "ionosphere",
    "liver-disorders": "liver-disorders",
}


@dataclass(frozen=True)
class Dataset:
    """A dataset that can be loaded.

    Attributes
    ----------
    name : str
        Unique among all.
    kind : {"binary", "multiclass"}
        Which table it belongs to.
    origin : {"public", "scikit-learn", "generated"}
        Where it is from.
    load : callable
        ``load(seed)`` gives X and y, the labels counted from 0.
    """

    name: str
    kind: str
    origin: str
    load: Callable[[int], Sample]


def public_folder() -> Path | None:
    """Find the public datasets: in ``POPF_DATA``, else in shared/data beside the repository."""
    folder = Path(os.environ.get("POPF_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def datasets() -> dict[str, Dataset]:
    """All datasets that are at hand, by name."""
    folder = public_folder()
    found = []
    if folder is not None:
        for name, file in PUBLIC.items():
            if (folder / file).exists():
                load = partial(_svmlight, folder / file, 1 if name == "breast-cancer" else 0)
                found.append(Dataset(name, "binary", "public", load))
    for name, (kind, bundled) in BUNDLED.items():
        found.append(Dataset(name, kind, "scikit-learn", bundled))
    for name, (kind, generate) in GENERATED.items():
        found.append(Dataset(name, kind, "generated", generate))
    return {dataset.name: dataset for dataset in found}


def _codes(X: NDArray[np.float64], y: NDArray[np.generic]) -> Sample:
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1].astype(np.int64)


def _svmlight(path: Path, n_dropped: int, seed: int) -> Sample:
    X, y = sklearn_datasets.load_svmlight_file(str(path))
    return _codes(X.toarray()[:, n_dropped:], y)


def _bundled(
    name: str,
    kept: tuple[int, ...] | None = None,
    positive: tuple[int, ...] | None = None,
    limit: int | None = None,
    *,
    seed: int,
) -> Sample:
    """Load a dataset of scikit-learn: only the classes `kept`, `positive` against the rest."""
    X, y = getattr(sklearn_datasets, f"load_{name}")(return_X_y=True)
    if kept is not None:
        X, y = X[np.isin(y, kept)], y[np.isin(y, kept)]
    if positive is not None:
        y = np.isin(y, positive)
    if limit is not None:
        rows = np.random.default_rng(0).permutation(len(y))[:limit]
        X, y = X[rows], y[rows]
    return _codes(X, y)


def _bundle(name: str, *arguments: object) -> Callable[[int], Sample]:
    return _Seeded(partial(_bundled, name, *arguments))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Seeded:
    """Calls a function with the seed by name; a class, because workers need it pickled."""

    function: Callable[..., Sample]
    argument: str = "seed"

    def __call__(self, seed: int) -> Sample:
        X, y = self.function(**{self.argument: seed})
        return _codes(X, y)


def _make(name: str, **settings: object) -> Callable[[int], Sample]:
    return _Seeded(partial(getattr(sklearn_datasets, f"make_{name}"), **settings), "random_state")


def _gaussians(
    centres: tuple[tuple[float, ...], ...], spreads: tuple[float, ...], n: int, *, seed: int
) -> Sample:
    """Draw one round Gaussian for each class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % len(centres)
    noise = rng.standard_normal((n, len(centres[0])))
    return np.asarray(centres)[y] + np.asarray(spreads)[y, None] * noise, y


def _gaussian(
    distances: tuple[float, ...], n_features: int, spreads: tuple[float, ...], n: int
) -> Callable[[int], Sample]:
    """Place the centres along the diagonal, as far from the origin as `distances` says."""
    centres = tuple((distance / n_features**0.5,) * n_features for distance in distances)
    return _Seeded(partial(_gaussians, centres, spreads, n))


def _checkerboard(*, seed: int) -> Sample:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 3.0, (600, 2))
    flipped = rng.random(600) < 0.05
    return X, (np.floor(X).sum(axis=1).astype(np.int64) % 2) ^ flipped


def _classification(n: int, d: int, informative: int, **settings: object) -> Callable[..., Sample]:
    redundant = min(2, d - informative)
    return _make(
        "classification", n_samples=n, n_features=d, n_informative=informative,
        n_redundant=redundant, **settings,
    )  # fmt: skip


BUNDLED: dict[str, tuple[str, Callable[[int], Sample]]] = {
    "wdbc": ("binary", _bundle("breast_cancer")),
    "wine 1 or not": ("binary", _bundle("wine", None, (1,))),
    "versicolor or virginica": ("binary", _bundle("iris", (1, 2))),
    "digits 3 or 8": ("binary", _bundle("digits", (3, 8))),
    "digits 4 or 9": ("binary", _bundle("digits", (4, 9))),
    "digits odd or even": ("binary", _bundle("digits", None, (1, 3, 5, 7, 9), 800)),
    "wine": ("multiclass", _bundle("wine")),
    "iris": ("multiclass", _bundle("iris")),
    "digits 800": ("multiclass", _bundle("digits", None, None, 800)),
    "digits 1 7 8 9": ("multiclass", _bundle("digits", (1, 7, 8, 9))),
}

GENERATED: dict[str, tuple[str, Callable[[int], Sample]]] = {
    "moons": ("binary", _make("moons", n_samples=400, noise=0.2)),
    "moons noisy": ("binary", _make("moons", n_samples=400, noise=0.4)),
    "circles": ("binary", _make("circles", n_samples=400, noise=0.15, factor=0.6)),
    "checkerboard": ("binary", _Seeded(_checkerboard)),
    "classification 5": ("binary", _classification(500, 5, 3)),
    "classification 20": ("binary", _classification(600, 20, 5, flip_y=0.1)),
    "classification 60": ("binary", _classification(600, 60, 6)),
    "classification 1 in 7": ("binary", _classification(700, 8, 4, weights=(0.86,))),
    "gaussians 2": ("binary", _gaussian((0.0, 1.5), 2, (1.0, 1.0), 400)),
    "gaussians 20": ("binary", _gaussian((0.0, 2.0), 20, (1.0, 1.0), 600)),
    "gaussians by spread": ("binary", _gaussian((0.0, 0.0), 5, (1.0, 2.0), 500)),
    "labels at random": ("binary", _gaussian((0.0, 0.0), 5, (1.0, 1.0), 400)),
    "classification 4 classes": ("multiclass", _classification(700, 10, 5, n_classes=4)),
    "classification 3 unequal": (
        "multiclass",
        _classification(700, 8, 4, n_classes=3, weights=(0.6, 0.25), flip_y=0.05),
    ),
    "gaussians 3 classes": ("multiclass", _gaussian((-2.0, 0.0, 2.0), 4, (1.0, 1.0, 1.0), 600)),
    "blobs 6 classes": ("multiclass", _make("blobs", n_samples=700, centers=6, n_features=3,
                                            cluster_std=3.0)),
}  # fmt: skip

QUICK = ("versicolor or virginica", "moons", "gaussians 2", "labels at random", "iris")
