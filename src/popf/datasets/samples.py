"""Samples on their way from a file to a user: checked, scaled, without their id."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.datasets.facts import complaint
from popf.datasets.registry import Entry
from popf.tables.formats import read


class Samples(NamedTuple):
    """Features and labels."""

    X: NDArray[np.float64]
    y: NDArray[Any]


def read_checked(path: Path, file: str) -> Samples:
    """Read a file, and raise ValueError where it is not the dataset that its name says."""
    X, y = read(path, return_X_y=True)
    return checked(Samples(X, y), file, str(path))


def checked(samples: Samples, file: str, where: str) -> Samples:
    """Raise ValueError unless `samples` agree with what is recorded of `file`."""
    wrong = complaint(samples.X, samples.y, file)
    if wrong is None:
        return samples
    if file.startswith("breast-cancer") and samples.X.shape[1] == 9:
        wrong += ": it lacks the id, so name it breast-w" + file.removeprefix("breast-cancer")
    if file.startswith("liver-disorders") and samples.X.shape[1] == 5:
        wrong += (
            ". This is the form that the LIBSVM page serves today, with another target; the paper "
            "used the six features of UCI"
        )
    if file.startswith("ionosphere") and samples.X.shape[1] == 33:
        wrong += (
            ". The copies of the KEEL packages lack the constant column 2, and lost decimal points: "
            "take another copy"
        )
    raise ValueError(f"{where} is not {file}: {wrong}.")


def scaled(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale every column to [-1, 1], as LIBSVM's authors did; a constant column becomes 0.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.datasets.samples import scaled
    >>> scaled(np.array([[0.0, 7.0], [5.0, 7.0], [20.0, 7.0]]))
    array([[-1. ,  0. ],
           [-0.5,  0. ],
           [ 1. ,  0. ]])
    """
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return np.where(high > low, 2.0 * (X - low) / width - 1.0, 0.0)


def as_wanted(samples: Samples, file: str, entry: Entry, *, keep_id: bool) -> Samples:
    """Turn what a file holds into what the user asked for."""
    X, y = samples
    if entry.scaled and not file.endswith("_scale"):
        X = scaled(X)
    if file.startswith("breast-cancer") and not keep_id:
        X = X[:, 1:]
    return Samples(np.ascontiguousarray(X), y)
