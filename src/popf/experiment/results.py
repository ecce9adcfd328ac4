"""What came out of a study: records by data set, form, run and method, and their means."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.experiment.data import Dataset
from popf.experiment.journal import Record, key_of
from popf.experiment.protocol import Protocol
from popf.experiment.statistics import best_and_equals
from popf.formatting import install

FloatArray = NDArray[np.float64]


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
    """Mean and standard deviation (with n − 1; None for one run) of one method on one data set."""

    mean: float
    deviation: float | None
    n_runs: int
    bold: bool = False


class Results:
    """All numbers of a study; `run` returns this.

    Parameters
    ----------
    protocol : Protocol
    datasets : dict of str to Dataset
    methods : list of str
        In the order of the tables.
    records : iterable of dict
        Those of the journal; the ones about other data sets, methods and runs are ignored.
    settings : dict
        Those of the journal.

    Attributes
    ----------
    records : list of dict
        One for each data set, form, run and method, in this order.
    """

    def __init__(
        self,
        protocol: Protocol,
        datasets: Mapping[str, Dataset],
        methods: Iterable[str],
        records: Iterable[Record],
        settings: Mapping[str, Any],
    ) -> None:
        self.protocol = protocol
        self.datasets = dict(datasets)
        self.methods = list(methods)
        self.settings = settings
        # Whatever order the workers came back in, the tables have one.
        found = {key_of(record): record for record in records}
        keys = [
            (dataset, form, run, method)
            for dataset, form in self.rows()
            for run in range(protocol.runs)
            for method in self.methods
        ]
        self.records = [found[key] for key in keys if key in found]
        self._cells: dict[tuple[str, str, str], list[Record]] = {}
        for record in self.records:
            cell = record["dataset"], record["form"], record["method"]
            self._cells.setdefault(cell, []).append(record)

    def rows(self) -> Iterator[tuple[str, str]]:
        """List data set and form of every row of the tables."""
        for name, dataset in self.datasets.items():
            for form in self.protocol.forms(dataset):
                yield name, form

    def values(self, measure: str, dataset: str, method: str, form: str = "raw") -> FloatArray:
        """Values of a measure run by run, NaN where there is none.

        Parameters
        ----------
        measure : str
            One of ``accuracy``, ``log_loss``, ``brier``, ``ece``, ``seconds``, ``train_seconds`` and
            ``test_seconds``.
        dataset, method : str
        form : {"raw", "scaled"}, default="raw"

        Returns
        -------
        ndarray of shape (n_runs,)
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
        return np.array(found, dtype=np.float64).reshape(-1, 99)

    def summaries(self, measure: str, dataset: str, form: str = "raw") -> dict[str, Summary]:
        """Means of a row of a table: every method that has values, the best and its equals in bold."""
        by_method = {method: self.values(measure, dataset, method, form) for method in self.methods}
        better = MEASURES[measure].larger_is_better
        bold = set() if better is None else best_and_equals(by_method, better)
        found = {}
        for method, values in by_method.items():
            known = values[np.isfinite(values)]
            if len(known):
                deviation = float(known.std(ddof=1)) if len(known) > 1 else None
                found[method] = Summary(float(known.mean()), deviation, len(known), method in bold)
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
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                f"to_pandas needs pandas, which is not installed: {install('pandas')}"
            ) from None
        return pd.DataFrame(self.records).drop(columns="over_thresholds", errors="ignore")

    def __repr__(self) -> str:
        return (
            f"<Results: {len(self.datasets)} data sets, {len(self.methods)} methods, "
            f"{self.protocol.runs} runs>"
        )
