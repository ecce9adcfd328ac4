"""What a study runs on: data sets by name, the forms of their features, random splits."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_X_y

from popf.datasets import load
from popf.datasets.registry import RECORDS, record_of
from popf.engine.structures import FloatArray
from popf.formatting import check_integer, check_real

#: The paper's number of runs, and its share for training.
RUNS, TRAIN_SIZE = 20, 0.25
FORMS = ("raw", "scaled")
#: Features whose standard deviations differ by more than this factor have unequal weight in a distance.
UNEQUAL = 3.0
Say = Callable[[str], None]
#: What was measured in a run.
Record = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and labels with a name."""

    name: str
    X: FloatArray
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


Wanted = Mapping[str, tuple[Any, Any] | Dataset] | Iterable[str] | str | None


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
        for name in (name for name, record in RECORDS.items() if record.in_paper):
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


def own_dataset(name: str, pair: Any) -> Dataset:
    """Check samples and labels, and give them a name."""
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


@dataclass(frozen=True)
class Protocol:
    """What is the same for all data sets and methods of a study; `popf.experiment.run` explains the fields."""

    runs: int = RUNS
    train_size: float = TRAIN_SIZE
    seed: int = 0
    scale: bool | None = None

    def __post_init__(self) -> None:
        check_integer("`runs`", self.runs, 1)
        check_integer("`seed`", self.seed, 0)
        check_real("`train_size`", self.train_size, 0.0, 1.0)
        if self.train_size in (0.0, 1.0):
            raise ValueError(
                f"`train_size` is {self.train_size!r}; it must be a share between 0 and 1, such as 0.25."
            )
        if not (self.scale is None or isinstance(self.scale, bool)):
            raise ValueError(f"`scale` is {self.scale!r}; use True, False or None for both.")

    def forms(self, dataset: Dataset) -> tuple[str, ...]:
        """Forms of the features in which a data set is run, "raw" first."""
        if self.scale is not None:
            return ("scaled",) if self.scale else ("raw",)
        spreads = dataset.X.std(axis=0)
        spreads = spreads[spreads > 0.0]
        matters = len(spreads) > 1 and spreads.max() > UNEQUAL * spreads.min()
        return FORMS if matters else FORMS[:1]

    def random_state(self, run: int) -> int:
        """Seed of a run: of its split, and of methods that draw random numbers."""
        return int(np.random.SeedSequence([self.seed, run]).generate_state(1)[0])

    def split(self, dataset: Dataset, run: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw the training and the test rows of a run, stratified by class; the same for both forms."""
        train, test = train_test_split(
            np.arange(len(dataset.y)),
            train_size=float(self.train_size),
            stratify=dataset.y,
            random_state=self.random_state(run),
        )
        return train, test

    def samples(self, dataset: Dataset, form: str, run: int) -> tuple[NDArray[Any], ...]:
        """Return X and y of the training samples of a run, then X and y of the test samples."""
        train, test = self.split(dataset, run)
        X_train, X_test = dataset.X[train], dataset.X[test]
        if form == "scaled":
            scaler = StandardScaler().fit(X_train)
            X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        return X_train, dataset.y[train], X_test, dataset.y[test]

    def check(self, dataset: Dataset) -> None:
        """Raise ValueError if a split would leave a class without samples, before any work."""
        classes, counts = np.unique(dataset.y, return_counts=True)
        remedy = "Use another `train_size`, or merge or drop rare classes."
        try:
            splits = [self.split(dataset, run) for run in range(self.runs)]
        except ValueError as error:
            rarest = counts.argmin()
            raise ValueError(
                f"{dataset.name}: {counts.sum()} samples of {len(classes)} classes, only "
                f"{counts[rarest]} of class {classes[rarest]!s}, cannot be split with "
                f"`train_size={self.train_size:g}`: every class needs samples to train on and to test on. "
                f"{remedy}"
            ) from error
        for run, rows in enumerate(splits):
            for part, chosen in zip(("training", "test"), rows, strict=True):
                absent = np.flatnonzero(~np.isin(classes, dataset.y[chosen]))
                if len(absent):
                    raise ValueError(
                        f"{dataset.name}: `train_size={self.train_size:g}` leaves no {part} sample of "
                        f"class {classes[absent[0]]!s} in run {run} (it has {counts[absent[0]]} of "
                        f"{counts.sum()} samples). {remedy}"
                    )
