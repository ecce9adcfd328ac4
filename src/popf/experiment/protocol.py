"""The protocol: how often, on which splits, in which form of the features."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from popf.experiment import paper
from popf.experiment.data import Dataset
from popf.formatting import check_integer, check_real

FORMS = ("raw", "scaled")
#: Features whose spreads differ by more than this factor do not count alike in a distance.
UNEQUAL = 3.0


@dataclass(frozen=True)
class Protocol:
    """What is the same for all data sets and methods of a study.

    Parameters
    ----------
    runs : int, default=20
        How many random splits of each data set.
    train_size : float, default=0.25
        The share of each class that is trained on; the rest is tested on.
    seed : int, default=0
        Of all splits and all random numbers of the methods.
    scale : bool or None, default=None
        True to standardise the features (by mean and deviation of the training samples), False to leave
        them as they are; None for both where it matters (see `matters`), and as they are elsewhere.

    Examples
    --------
    >>> from popf.experiment.protocol import Protocol
    >>> Protocol(runs=3).random_state(0), Protocol(runs=3, seed=1).random_state(0)
    (2968811710, 1835504127)
    """

    runs: int = paper.RUNS
    train_size: float = paper.TRAIN_SIZE
    seed: int = 0
    scale: bool | None = None

    def __post_init__(self) -> None:
        check_integer("runs", self.runs, 1)
        check_integer("seed", self.seed, 0)
        check_real("train_size", self.train_size, 0.0, 1.0)
        if self.train_size in (0.0, 1.0):
            raise ValueError(
                f"train_size is {self.train_size!r}; it must be a share between 0 and 1, such as 0.25."
            )
        if not (self.scale is None or isinstance(self.scale, bool)):
            raise ValueError(f"scale is {self.scale!r}; use True, False or None for both.")

    def forms(self, dataset: Dataset) -> tuple[str, ...]:
        """In which forms a data set is run, "raw" first."""
        if self.scale is None:
            return FORMS if matters(dataset) else FORMS[:1]
        return ("scaled",) if self.scale else ("raw",)

    def random_state(self, run: int) -> int:
        """Give the seed of a run: of its split, and of methods that draw random numbers."""
        return int(np.random.SeedSequence([self.seed, run]).generate_state(1)[0])

    def split(self, dataset: Dataset, run: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw the training and the test rows of a run, by class.

        The same rows for all methods and both forms, and those that
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
        """Raise an error where a split would leave a class without samples, before any work."""
        classes, counts = np.unique(dataset.y, return_counts=True)
        rarest = int(counts.argmin())
        remedy = "Take another train_size, or merge or drop rare classes."
        try:
            splits = [self.split(dataset, run) for run in range(self.runs)]
        except ValueError as error:
            raise ValueError(
                f"{dataset.name}: {counts.sum()} samples of {len(classes)} classes, only "
                f"{counts[rarest]} of class {classes[rarest]!s}, cannot be split with "
                f"train_size={self.train_size:g}: every class needs samples to train on and to test on. "
                f"{remedy}"
            ) from error
        for run, rows in enumerate(splits):
            for part, chosen in zip(("training", "test"), rows, strict=True):
                left_out = np.setdiff1d(classes, dataset.y[chosen])
                if len(left_out):
                    raise ValueError(
                        f"{dataset.name}: train_size={self.train_size:g} leaves no {part} sample of "
                        f"class {left_out[0]!s} in run {run} (it has {counts[classes == left_out[0]][0]} "
                        f"of {counts.sum()} samples). {remedy}"
                    )


def matters(dataset: Dataset) -> bool:
    """Whether standardising changes more than the unit: spreads of features differ by a factor above 3.

    Constant features do not count.
    """
    spreads = dataset.X.std(axis=0)
    spreads = spreads[spreads > 0.0]
    return len(spreads) > 1 and bool(spreads.max() > UNEQUAL * spreads.min())


@dataclass(frozen=True)
class Task:
    """One split of one data set in one form: the unit of work."""

    dataset: str
    form: str
    run: int


def tasks(protocol: Protocol, datasets: dict[str, Dataset]) -> Iterator[Task]:
    """All units of work, run by run, so that what is stopped early has something of every data set."""
    for run in range(protocol.runs):
        for name, dataset in datasets.items():
            for form in protocol.forms(dataset):
                yield Task(name, form, run)
