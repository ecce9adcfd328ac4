"""Results of a study: records by dataset, form, run and method, their means, and which are best."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata, wilcoxon

from popf.engine.structures import FloatArray
from popf.experiment.protocol import Dataset, Protocol, Record
from popf.formatting import import_extra
from popf.metrics.thresholds import HUNDREDTHS

#: Key of a record: dataset, form, run and method.
Key = tuple[str, str, int, str]
#: Level of the signed-rank test, and the largest number of differing pairs for which it is exact.
SIGNIFICANCE, EXACT_UP_TO = 0.05, 200
#: With fewer runs no difference can be significant: of five that all point one way, p is 2 / 32.
FEWEST_RUNS = 6
# Relative tolerance: equal scores may differ by rounding.
SAME = 1e-12


class Measure(NamedTuple):
    """A quantity measured in every run."""

    title: str
    larger_is_better: bool | None  # None if nothing is set in bold
    factor: float = 1.0  # multiplies the values shown
    digits: int = 3  # decimals shown


MEASURES = {
    "accuracy": Measure("Accuracy (Papa's, %)", True, 100.0, 2),
    "seconds": Measure("Training and test time (s)", None, digits=4),
    "log_loss": Measure("Log loss", False),
    "brier": Measure("Brier score", False),
    "ece": Measure("Expected calibration error", False),
    "train_seconds": Measure("Training time (s)", None, digits=4),
    "test_seconds": Measure("Test time (s)", None, digits=4),
}


class Summary(NamedTuple):
    """Mean and standard deviation (with n − 1; None for one run), in the units of the tables."""

    mean: float
    deviation: float | None
    runs: int
    # The best, or not significantly worse than the best; for a value of the paper, as printed there.
    bold: bool = False
    digits: int = 2  # decimals shown
    differs: bool = False  # the paper's value, from ours by more than both deviations

    @property
    def text(self) -> str:
        """Mean and deviation."""
        mean = f"{self.mean:.{self.digits}f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation:.{self.digits}f}"


class Results:
    """Results of a study, as returned by `run`.

    Parameters
    ----------
    protocol, datasets, methods : Protocol, dict of str to Dataset, list of str
    records : dict of (dataset, form, run, method) to dict
        Records of the journal; those of other datasets, methods and runs are ignored.
    settings : dict
        Settings of the journal.

    Attributes
    ----------
    records : list of dict
        One for each dataset, form, run and method, in this order.
    """

    def __init__(
        self,
        protocol: Protocol,
        datasets: Mapping[str, Dataset],
        methods: Iterable[str],
        records: Mapping[Key, Record],
        settings: Mapping[str, Any],
    ) -> None:
        self.protocol = protocol
        self.datasets = dict(datasets)
        self.methods = list(methods)
        self.settings = settings
        # In the order of the tables, whatever the order in which workers finished.
        self.records = [
            records[key]
            for dataset, form in self.rows()
            for run in range(protocol.runs)
            for method in self.methods
            if (key := (dataset, form, run, method)) in records
        ]
        self._cells: dict[tuple[str, str, str], list[Record]] = {}
        for record in self.records:
            cell = record["dataset"], record["form"], record["method"]
            self._cells.setdefault(cell, []).append(record)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the dataset and form of every row of the tables."""
        for name, dataset in self.datasets.items():
            for form in self.protocol.forms(dataset):
                yield name, form

    def values(self, measure: str, dataset: str, method: str, form: str = "raw") -> FloatArray:
        """Return the values of a measure as an array with one value per run, NaN where there is none.

        Parameters
        ----------
        measure : {"accuracy", "log_loss", "brier", "ece", "seconds", "train_seconds", "test_seconds"}
        dataset, method : str
        form : {"raw", "scaled"}, default="raw"
        """
        found = np.full(self.protocol.runs, np.nan)
        names = ("train_seconds", "test_seconds") if measure == "seconds" else (measure,)
        for record in self._cells.get((dataset, form, method), []):
            if all(record.get(name) is not None for name in names):
                found[record["run"]] = sum(record[name] for name in names)
        return found

    def curves(self, dataset: str, method: str, form: str = "raw") -> FloatArray:
        """Return the accuracy at the thresholds 0.01, 0.02, ..., 0.99, one row for each run that has it."""
        records = self._cells.get((dataset, form, method), [])
        found = [record["over_thresholds"] for record in records if "over_thresholds" in record]
        return np.array(found, dtype=np.float64).reshape(-1, len(HUNDREDTHS))

    def summaries(self, measure: str, dataset: str, form: str = "raw") -> dict[str, Summary]:
        """Summarise a table row; from six runs on, the best method and its equals are bold."""
        by_method = {method: self.values(measure, dataset, method, form) for method in self.methods}
        _, better, factor, digits = MEASURES[measure]
        bold = set()
        if better is not None and self.protocol.runs >= FEWEST_RUNS:
            bold = best_and_equals(by_method, better)
        found = {}
        for method, values in by_method.items():
            known = values[np.isfinite(values)]
            if len(known):
                mean = factor * float(known.mean())
                deviation = factor * float(known.std(ddof=1)) if len(known) > 1 else None
                found[method] = Summary(mean, deviation, len(known), method in bold, digits)
        return found

    def failures(self) -> list[str]:
        """Describe the failures, in one sentence for each method and table row: how often, and why."""
        lines = []
        for (dataset, form, method), records in self._cells.items():
            reasons = [record["failed"] for record in records if "failed" in record]
            if reasons:
                lines.append(
                    f"{method} failed on {dataset} ({form}) in {len(reasons)} of {len(records)} runs: "
                    f"{reasons[0]}"
                )
        return lines

    def to_pandas(self) -> Any:
        """Return all records as a pandas DataFrame, without the accuracy by threshold."""
        pandas = import_extra("pandas", "pandas", "to_pandas")
        return pandas.DataFrame(self.records).drop(columns="over_thresholds", errors="ignore")

    def __repr__(self) -> str:
        return (
            f"<Results: {len(self.datasets)} datasets, {len(self.methods)} methods, "
            f"{self.protocol.runs} runs>"
        )


def signed_rank_test(one: FloatArray, other: FloatArray) -> float:
    """Compute the two-sided p-value of Wilcoxon's signed-rank test (1945) of paired values; 1 if none differ.

    The test is exact over all 2^n signs, with ties: tables and normal approximations are wrong for the many
    ties of accuracies on a small test set. Above 200 differing pairs, SciPy's normal approximation is used.
    """
    difference = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    scale = max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0))
    difference = difference[np.abs(difference) > SAME * scale]
    if len(difference) == 0:
        return 1.0
    if len(difference) > EXACT_UP_TO:
        return float(wilcoxon(difference).pvalue)
    # Rounded, so that differences that are equal up to rounding errors share a rank.
    sizes = np.abs(difference) / np.abs(difference).max()
    ranks = np.rint(2.0 * rankdata(sizes.round(10))).astype(np.int64)  # midranks are halves
    total = int(ranks.sum())
    positive = int(ranks[difference > 0.0].sum())
    ways = np.zeros(total + 1)
    ways[0] = 1.0
    for rank in ranks:  # as probabilities, which do not overflow
        ways[rank:] += ways[: total + 1 - rank].copy()
        ways /= 2.0
    tail = float(ways[: min(positive, total - positive) + 1].sum())
    return min(1.0, 2.0 * tail)


def best_and_equals(values: Mapping[str, FloatArray], larger_is_better: bool = True) -> set[str]:
    """Find the method with the best mean score, and those not significantly worse; NaN marks missing runs."""
    present = {name: runs for name, runs in values.items() if np.isfinite(runs).any()}
    if not present:
        return set()
    sign = 1.0 if larger_is_better else -1.0
    best = max(present, key=lambda name: sign * float(np.nanmean(present[name])))
    equals = {best}
    for name, runs in present.items():
        both = np.isfinite(runs) & np.isfinite(present[best])
        if signed_rank_test(runs[both], present[best][both]) >= SIGNIFICANCE:
            equals.add(name)
    return equals
