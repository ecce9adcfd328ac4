"""What came out of a study: records by data set, form, run and method."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.experiment.data import Dataset
from popf.experiment.journal import Record
from popf.experiment.protocol import Protocol
from popf.experiment.statistics import best_and_equals


@dataclass(frozen=True)
class Measure:
    """Something that is measured in every run.

    Attributes
    ----------
    name : str
        As in the records.
    title : str
        As in a heading.
    larger_is_better : bool or None
        None where nothing is put in bold type.
    factor : float
        By which values are multiplied before they are shown.
    digits : int
        How many digits follow the point.
    """

    name: str
    title: str
    larger_is_better: bool | None
    factor: float = 1.0
    digits: int = 3


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("accuracy", "Accuracy (Papa's, %)", True, 100.0, 2),
        Measure("seconds", "Time of training and test (s)", None, digits=4),
        Measure("log_loss", "Log loss", False),
        Measure("brier", "Brier score", False),
        Measure("ece", "Expected calibration error", False),
        Measure("train_seconds", "Time of training (s)", None, digits=4),
        Measure("test_seconds", "Time of test (s)", None, digits=4),
    )
}


@dataclass(frozen=True)
class Summary:
    """Mean and deviation over the runs of one method on one data set.

    The deviation is that of a sample, with n − 1; NaN for a single run.
    """

    mean: float
    deviation: float
    n_runs: int
    bold: bool = False


class Results:
    """All numbers of a study, and what is made of them.

    `run` returns this; you do not make one yourself.

    Parameters
    ----------
    protocol : Protocol
    datasets : dict of str to Dataset
    methods : list of str
        In the order of the tables.
    records : iterable of dict
        Those of the journal; others than of these data sets, methods and runs are passed over.
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
        place = {row: number for number, row in enumerate(self.rows())}
        column = {name: number for number, name in enumerate(self.methods)}
        kept = [
            record
            for record in records
            if (record["dataset"], record["form"]) in place
            and record["method"] in column
            and record["run"] < protocol.runs
        ]
        self.records = sorted(
            kept,
            key=lambda record: (
                place[record["dataset"], record["form"]],
                record["run"],
                column[record["method"]],
            ),
        )
        self._by_cell: dict[tuple[str, str, str], list[Record]] = {}
        for record in self.records:
            cell = record["dataset"], record["form"], record["method"]
            self._by_cell.setdefault(cell, []).append(record)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Give data set and form of every row of the tables."""
        for name, dataset in self.datasets.items():
            for form in self.protocol.forms(dataset):
                yield name, form

    def values(
        self, measure: str, dataset: str, method: str, form: str = "raw"
    ) -> NDArray[np.float64]:
        """Give the values of a measure run by run, NaN where there is none.

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
        for record in self._by_cell.get((dataset, form, method), []):
            value = _value(record, measure)
            if value is not None:
                found[record["run"]] = value
        return found

    def curves(self, dataset: str, method: str, form: str = "raw") -> NDArray[np.float64]:
        """Give the accuracy at the thresholds 0.01, 0.02, ..., 0.99, a row for each run that has it."""
        found = [
            record["over_thresholds"]
            for record in self._by_cell.get((dataset, form, method), [])
            if record.get("over_thresholds") is not None
        ]
        return np.array(found, dtype=np.float64).reshape(-1, 99)

    def summaries(self, measure: str, dataset: str, form: str = "raw") -> dict[str, Summary]:
        """Sum up a row of a table: every method that has values, the best and its equals in bold."""
        by_method = {method: self.values(measure, dataset, method, form) for method in self.methods}
        better = MEASURES[measure].larger_is_better
        bold = set() if better is None else best_and_equals(by_method, better)
        found = {}
        for method, values in by_method.items():
            known = values[np.isfinite(values)]
            if len(known):
                deviation = float(known.std(ddof=1)) if len(known) > 1 else np.nan
                found[method] = Summary(float(known.mean()), deviation, len(known), method in bold)
        return found

    def failures(self) -> list[str]:
        """Say which methods failed where, and why: one line for each method and row."""
        lines = []
        for (dataset, form, method), records in self._by_cell.items():
            reasons = [record["failed"] for record in records if "failed" in record]
            if reasons:
                lines.append(
                    f"{method} failed on {dataset} ({form}) in {len(reasons)} of "
                    f"{len(records)} runs: {reasons[0]}"
                )
        return lines

    def to_pandas(self) -> Any:
        """Give all records as a pandas frame, without the accuracy over thresholds."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                'to_pandas needs pandas, which is not installed: pip install "popf[pandas]"'
            ) from None
        return pd.DataFrame(
            {name: value for name, value in record.items() if name != "over_thresholds"}
            for record in self.records
        )

    def write(self, folder: str | os.PathLike[str], figures: bool = True) -> Path:
        """Write tables, figures and the report to a folder, and return the path of the report.

        Parameters
        ----------
        folder : path-like
            Made where there is none.
        figures : bool, default=True
            Draw them, which needs matplotlib.
        """
        from popf.experiment.report import write

        return write(self, Path(folder), figures)

    def __str__(self) -> str:
        from popf.experiment.render import as_text
        from popf.experiment.tables import measure_table

        return as_text(measure_table(self, "accuracy"))

    def __repr__(self) -> str:
        return (
            f"<Results: {len(self.datasets)} data sets, {len(self.methods)} methods, "
            f"{self.protocol.runs} runs>"
        )


def _value(record: Record, measure: str) -> float | None:
    if measure == "seconds":
        parts = record.get("train_seconds"), record.get("test_seconds")
        return None if None in parts else float(sum(parts))  # type: ignore[arg-type]
    value = record.get(measure)
    return None if value is None else float(value)
