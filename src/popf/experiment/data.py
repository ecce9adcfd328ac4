"""The data sets of a study: the paper's by name, or the user's own."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.experiment import paper

Pair = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and labels with a name.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    stand_in : bool
        Whether it is generated in place of one of the paper's sets that nobody has.
    source : str
        Where this copy is from.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    stand_in: bool = False
    source: str = "the user's"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(np.unique(self.y))

    def facts(self) -> dict[str, Any]:
        """Give what identifies the data, for the journal: sizes, and a fingerprint of all values."""
        classes, codes = np.unique(self.y, return_inverse=True)
        digest = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        digest.update(codes.astype("<i8").tobytes())
        digest.update(json.dumps([str(label) for label in classes]).encode())
        return {
            "n_samples": len(self.y),
            "n_features": self.X.shape[1],
            "classes": {
                str(label): int(np.sum(codes == code)) for code, label in enumerate(classes)
            },
            "stand_in": self.stand_in,
            "fingerprint": digest.hexdigest()[:16],
        }


def choose_datasets(
    wanted: "Mapping[str, Pair | Dataset] | Iterable[str] | str | None",
    say: Callable[[str], None] | None = None,
) -> dict[str, Dataset]:
    """Turn what a user asks for into data sets by name.

    Parameters
    ----------
    wanted : dict of str to (X, y), or list of names, or None
        None for those of the paper's 14 that can be had here; a name that is asked for must be there.
    say : callable, default=None
        Gets a sentence about each of the 14 that is left out.

    Returns
    -------
    dict of str to Dataset
    """
    if isinstance(wanted, Mapping):
        chosen = {
            str(name): pair if isinstance(pair, Dataset) else own_dataset(str(name), pair)
            for name, pair in wanted.items()
        }
    elif wanted is None:
        chosen = _of_the_paper(say or (lambda sentence: None))
    else:
        from popf.datasets.registry import entry_of

        names = [wanted] if isinstance(wanted, str) else wanted
        known = list(dict.fromkeys(entry_of(name).name for name in names))  # before any is loaded
        chosen = {name: _load(name) for name in known}
    if not chosen:
        raise ValueError("no data set is left to run; name at least one.")
    return chosen


def own_dataset(name: str, pair: Pair) -> Dataset:
    """Check samples and labels, and give them a name.

    Examples
    --------
    >>> from popf.experiment.data import own_dataset
    >>> own_dataset("mine", ([[0.0], [1.0]], ["no", "yes"])).n_classes
    2
    """
    from sklearn.utils import check_X_y

    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"datasets[{name!r}] must be a pair (X, y), not {type(pair).__name__}.")
    _check_missing(name, pair[0])
    try:
        X, y = check_X_y(pair[0], pair[1], dtype=np.float64, order="C")
    except (ValueError, TypeError) as error:
        raise ValueError(f"dataset {name!r}: {error}") from error
    n_classes = len(np.unique(y))
    if n_classes < 2:
        raise ValueError(f"dataset {name!r} has {n_classes} class; give at least two.")
    return Dataset(name, X, y)


def _check_missing(name: str, samples: Any) -> None:
    """Raise ValueError where values are missing, and say where."""
    try:
        absent = np.isnan(np.asarray(samples, dtype=np.float64))
    except (TypeError, ValueError):
        return  # not numbers: said elsewhere
    if absent.ndim == 2 and absent.any():
        rows = np.flatnonzero(absent.any(axis=1))
        raise ValueError(
            f"dataset {name!r} has missing values (NaN) in {len(rows)} of {len(absent)} rows, the first is "
            f"row {rows[0] + 1}: fill them in, or leave those rows out."
        )


def _load(name: str) -> Dataset:
    from popf.datasets import load

    found = load(name)
    dataset = own_dataset(found.name, (found.data, found.target))
    # A report may be sent to others, whom the user's folders do not concern.
    file = Path(found.source)
    source = f"file {file.name}" if file.is_file() else found.source
    return replace(dataset, stand_in=found.stand_in, source=source)


def _of_the_paper(say: Callable[[str], None]) -> dict[str, Dataset]:
    """Load the paper's data sets; one that cannot be had is no reason to run none."""
    chosen = {}
    for name in paper.DATASETS:
        try:
            chosen[name] = _load(name)
        except FileNotFoundError as error:
            say(f"{name} is left out. {error}")
    return chosen
