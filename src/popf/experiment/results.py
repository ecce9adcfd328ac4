"""What came out of a study: records by dataset, form, run and method, their means, and which are best."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata, wilcoxon

from popf.engine.structures import FloatArray
from popf.experiment.protocol import Dataset, Protocol, Record
from popf.formatting import import_extra
from popf.metrics.thresholds import HUNDREDTHS

#: What identifies a record: dataset, form, run and method.
Key = tuple[str, str, int, str]
#: Level of the signed-rank test, and the most differing pairs for which its distribution is exact.
SIGNIFICANCE, EXACT_UP_TO = 0.05, 200
# Scores that are equal in exact arithmetic may differ by rounding.
SAME = 1e-12


class Measure(NamedTuple):
    """Something measured in every run."""

    title: str
    larger_is_better: bool | None  # None where nothing is put in bold type
    factor: float = 1.0  # by which values are multiplied before they are shown
    digits: int = 3  # after the point


MEASURES = {
    "accuracy": Measure("Accuracy (Papa's, %)", True, 100.0, 2),
    "seconds": Measure("Time of training and test (s)", None, digits=4),
    "log_loss": Measure("Log loss", False),
    "brier": Measure("Brier score", False),
    "ece": Measure("Expected calibration error", False),
    "train_seconds": Measure("Time of training (s)", None, digits=4),
    "test_seconds": Measure("Time of test (s)", None, digits=4),
}


class Summary(NamedTuple):
    """Mean and standard deviation (with n − 1; None for one run), in the units of the tables."""

    mean: float
    deviation: float | None
    runs: int
    # The best, or not significantly worse; for a value of the paper, as printed there.
    bold: bool = False
    digits: int = 2  # after the point
    differs: bool = False  # a value of the paper, from ours, by more than both deviations

    @property
    def text(self) -> str:
        """Mean and deviation."""
        mean = f"{self.mean:.{self.digits}f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation:.{self.digits}f}"


class Results:
    """All numbers of a study; `run` returns this.

    Parameters
    ----------
    protocol, datasets, methods : Protocol, dict of str to Dataset, list of str
    records : dict of (dataset, form, run, method) to dict
        Those of the journal; the ones about other datasets, methods and runs are ignored.
    settings : dict
        Those of the journal.

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
        # Whatever order the workers came back in, the tables have one.
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
        """List dataset and form of every row of the tables."""
        for name, dataset in self.datasets.items():
            for form in self.protocol.forms(dataset):
                yield name, form

    def values(self, measure: str, dataset: str, method: str, form: str = "raw") -> FloatArray:
        """Return an array of the values of a measure run by run, NaN where there is none.

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
        """Accuracy at the thresholds 0.01, 0.02, ..., 0.99, one row for each run that has it."""
        records = self._cells.get((dataset, form, method), [])
        found = [record["over_thresholds"] for record in records if "over_thresholds" in record]
        return np.array(found, dtype=np.float64).reshape(-1, len(HUNDREDTHS))

    def summaries(self, measure: str, dataset: str, form: str = "raw") -> dict[str, Summary]:
        """Means of a row of a table: every method that has values, the best and its equals in bold."""
        by_method = {method: self.values(measure, dataset, method, form) for method in self.methods}
        _, better, factor, digits = MEASURES[measure]
        bold = set() if better is None else best_and_equals(by_method, better)
        found = {}
        for method, values in by_method.items():
            known = values[np.isfinite(values)]
            if len(known):
                mean = factor * float(known.mean())
                deviation = factor * float(known.std(ddof=1)) if len(known) > 1 else None
                found[method] = Summary(mean, deviation, len(known), method in bold, digits)
        return found

    def failures(self) -> list[str]:
        """One sentence for each method and row of the tables that failed: how often, and why."""
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
        """All records as a pandas frame, without the accuracy over thresholds."""
        pandas = import_extra("pandas", "pandas", "to_pandas")
        return pandas.DataFrame(self.records).drop(columns="over_thresholds", errors="ignore")

    def __repr__(self) -> str:
        return (
            f"<Results: {len(self.datasets)} datasets, {len(self.methods)} methods, "
            f"{self.protocol.runs} runs>"
        )


def signed_rank_test(one: FloatArray, other: FloatArray) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test of paired values (1945); 1 if no pair differs.

    Exact over all 2^n signs, ties included: tables and normal approximations are wrong for the many ties of
    accuracies on a small test set. Above 200 differing pairs it is SciPy's approximation.
    """
    difference = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    scale = max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0))
    difference = difference[np.abs(difference) > SAME * scale]
    if len(difference) == 0:
        return 1.0
    if len(difference) > EXACT_UP_TO:
        return float(wilcoxon(difference, method="asymptotic").pvalue)
    # Rounded, so that differences that are equal but for rounding share a rank.
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
    """Find the best mean of scores run by run (NaN for none), and those that a test does not call worse."""
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
