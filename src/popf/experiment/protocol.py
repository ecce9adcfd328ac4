"""The protocol: how many runs, on which splits, with which form of the features."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from popf.experiment import paper
from popf.experiment.data import Dataset
from popf.formatting import check_integer, check_real

FORMS = ("raw", "scaled")
#: Features whose standard deviations differ by more than this factor have unequal weight in a distance.
UNEQUAL = 3.0


@dataclass(frozen=True)
class Protocol:
    """What is the same for all data sets and methods of a study; `popf.experiment.run` explains the fields."""

    runs: int = paper.RUNS
    train_size: float = paper.TRAIN_SIZE
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
        if self.scale is None:
            return FORMS if scaling_matters(dataset) else FORMS[:1]
        return ("scaled",) if self.scale else ("raw",)

    def random_state(self, run: int) -> int:
        """Seed of a run: of its split, and of methods that draw random numbers."""
        return int(np.random.SeedSequence([self.seed, run]).generate_state(1)[0])

    def split(self, dataset: Dataset, run: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw the training and the test rows of a run, stratified by class.

        All methods and both forms get the same rows, those that
        ``train_test_split(X, y, train_size=..., stratify=y, random_state=...)`` gives.
        """
        train, test = train_test_split(
            np.arange(len(dataset.y)),
            train_size=float(self.train_size),
            stratify=dataset.y,
            random_state=self.random_state(run),
        )
        return train, test

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


def scaling_matters(dataset: Dataset) -> bool:
    """Whether standard deviations of the features differ by more than a factor of 3, constants aside."""
    spreads = dataset.X.std(axis=0)
    spreads = spreads[spreads > 0.0]
    return len(spreads) > 1 and bool(spreads.max() > UNEQUAL * spreads.min())


class Task(NamedTuple):
    """One split of one data set in one form: the unit of work."""

    dataset: str
    form: str
    run: int


def tasks(protocol: Protocol, datasets: dict[str, Dataset]) -> list[Task]:
    """List all units of work."""
    return [
        Task(name, form, run)
        for run in range(protocol.runs)
        for name, dataset in datasets.items()
        for form in protocol.forms(dataset)
    ]
