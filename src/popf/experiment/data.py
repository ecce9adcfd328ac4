"""The data sets of a study: the paper's by name, or the user's own."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.datasets import load
from popf.datasets.registry import record_of
from popf.experiment import paper

Pair = tuple[Any, Any]
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and labels with a name."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    stand_in: bool = False  # generated in place of one of the paper's sets that is not public
    source: str = "the user's"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(np.unique(self.y))

    def facts(self) -> dict[str, Any]:
        """Return sizes and a fingerprint of all values, by which the journal knows the data."""
        classes, codes, counts = np.unique(self.y, return_inverse=True, return_counts=True)
        names = [str(label) for label in classes]
        digest = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        digest.update(codes.astype("<i8").tobytes())
        digest.update(json.dumps(names).encode())
        return {
            "n_samples": len(self.y),
            "n_features": self.X.shape[1],
            "classes": dict(zip(names, counts.tolist(), strict=True)),
            "stand_in": self.stand_in,
            "fingerprint": digest.hexdigest()[:16],
        }


Wanted = Mapping[str, Pair | Dataset] | Iterable[str] | str | None


def choose_datasets(wanted: Wanted, say: Say = lambda sentence: None) -> dict[str, Dataset]:
    """Turn what a user asks for into data sets by name.

    None stands for those of the paper's 14 that are available here; `say` gets a sentence about each one
    that is left out. A name that is asked for must be available.
    """
    if isinstance(wanted, Mapping):
        chosen = {
            str(name): pair if isinstance(pair, Dataset) else own_dataset(str(name), pair)
            for name, pair in wanted.items()
        }
    elif wanted is None:
        chosen = {}
        for name in paper.DATASETS:
            try:
                chosen[name] = _load(name)
            except FileNotFoundError as error:
                say(f"{name} is left out. {error}")
    else:
        names = [wanted] if isinstance(wanted, str) else wanted
        known = list(dict.fromkeys(record_of(name).name for name in names))  # before any is loaded
        chosen = {name: _load(name) for name in known}
    if not chosen:
        raise ValueError("there is no data set to run; name at least one.")
    return chosen


def own_dataset(name: str, pair: Pair) -> Dataset:
    """Check samples and labels, and give them a name."""
    from sklearn.utils import check_X_y

    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"datasets[{name!r}] must be a pair (X, y), not {type(pair).__name__}.")
    try:
        X, y = check_X_y(*pair, dtype=np.float64, order="C", ensure_all_finite="allow-nan")
    except (ValueError, TypeError) as error:
        raise ValueError(f"dataset {name!r}: {error}") from error
    incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
    if len(incomplete):
        raise ValueError(
            f"dataset {name!r} has missing values (NaN) in {len(incomplete)} of {len(X)} rows, the first is "
            f"row {incomplete[0] + 1}: fill them in, or leave those rows out."
        )
    dataset = Dataset(name, X, y)
    if dataset.n_classes < 2:
        raise ValueError(f"dataset {name!r} has {dataset.n_classes} class; give at least two.")
    return dataset


def _load(name: str) -> Dataset:
    found = load(name)
    dataset = own_dataset(found.name, (found.data, found.target))
    # A report may be sent to others, who need not see the user's folders.
    file = Path(found.source)
    source = f"file {file.name}" if file.is_file() else found.source
    return replace(dataset, stand_in=found.stand_in, source=source)
