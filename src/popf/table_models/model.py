"""A model with named columns, as written by `popf fit` and opened by the other commands."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.display.log_odds import split_log_odds
from popf.engine.structures import FloatArray, IntArray
from popf.files import check_file
from popf.formatting import check_share
from popf.io import align, describe, load
from popf.probability import ConsumptionFeatures
from popf.probability.columns import NUMBER, Columns
from popf.tables import ColumnTypes, Table

#: Key under which the layout of the table is stored in the facts of a model file.
FACTS = "table"
#: Maximum number of rows for the importances of columns.
ROWS_FOR_IMPORTANCES = 2_000
#: Digits that tell whether a row is a training row: where a file was saved again, the last may differ.
N_DIGITS = 10


@dataclass(frozen=True)
class Layout:
    """The columns that a model uses, and its threshold."""

    numbers: list[str]  # numeric features
    categories: list[str] = field(default_factory=list)  # categorical features
    dates: list[str] = field(default_factory=list)  # features that are dates or times, as text
    ids: list[str] = field(default_factory=list)  # copied to predictions, never features
    target: str | None = None  # the column with the labels
    time: str | None = None  # the column with the time of each row
    spread: float | None = None  # of the log odds between periods; None without a time
    threshold: float = 0.5  # probability from which a row is predicted positive
    positive: int = 1  # position of the positive class, with two classes
    threshold_from: str = "the default"  # description of where the threshold comes from
    source: str = ""  # name of the training file
    cost_fp: float | None = None  # cost of a false alarm, if the threshold was chosen by costs
    cost_fn: float | None = None  # cost of a miss
    rows: list[int] | None = None  # the rows of the file that the model was fitted to; None for all
    cautions: list[str] = field(
        default_factory=list
    )  # columns that may leak the target, and the like

    def as_facts(self) -> dict[str, Any]:
        """Return the layout as plain values, for `popf.save`."""
        return {FACTS: asdict(self)}


class Scored(NamedTuple):
    """Predictions for some rows of a table."""

    start: int  # number of rows before these
    frame: Any  # the columns that were read
    probability: FloatArray | None  # one column per class; None if the model predicts labels only
    codes: IntArray  # the labels, as positions in the classes
    unknown: dict[str, int]  # number of rows with a category not seen in training, by column


class TableModel:
    """A fitted model that finds its columns by name.

    Parameters
    ----------
    model : Pipeline or classifier
        Fitted on a DataFrame.
    layout : Layout

    Attributes
    ----------
    features : list of str
        The columns that the model uses, in its order.
    steps, final : list of estimators, estimator
        The steps of a pipeline before the last, and the classifier at its end.
    readings : ConsumptionFeatures or None
        The first step, where the model makes features of readings.
    columns : Columns or None
        The columns of the table, where the model encodes tables in its first step.
    classes : ndarray
    labels_only, binary : bool
        Whether the model has no probabilities; whether it has those of two classes.
    positive, threshold : label, float
        The positive class, and the probability from which it is predicted; None unless `binary`.
    """

    def __init__(self, model: Any, layout: Layout) -> None:
        self.model = model
        self.layout = layout
        self.features = [str(name) for name in model.feature_names_in_]
        self.steps: list[Any] = [step for _, step in getattr(model, "steps", [("", model)])]
        self.final = self.steps.pop()
        first = [*self.steps, self.final][0]
        self.readings = first if isinstance(first, ConsumptionFeatures) else None
        table = getattr(first, "table_", None)
        self.columns: Columns | None = None if table is None else table.columns
        self.classes: NDArray[Any] = model.classes_
        self.labels_only = not hasattr(self.final, "predict_proba")
        self.binary = len(self.classes) == 2 and not self.labels_only
        self.positive: Any = self.classes.tolist()[layout.positive] if self.binary else None
        self.threshold = layout.threshold if self.binary else None

    @property
    def rule(self) -> str:
        """How labels follow from probabilities; commands print it in their first line."""
        if self.labels_only:
            return "label: class of the best path"
        if not self.binary:
            return f"label: the most probable of {len(self.classes)} classes"
        return f"positive class: {self.positive}, threshold {self.layout.threshold:.4g}"

    def with_threshold(self, threshold: float | None) -> "TableModel":
        """Return the model with another threshold; with None, unchanged."""
        if threshold is None:
            return self
        if self.labels_only:
            raise ValueError(
                "the model predicts labels only, no probabilities: leave out `threshold`."
            )
        if not self.binary:
            raise ValueError(
                f"`threshold` is for two classes, but the model has {len(self.classes)}: leave it out."
            )
        check_share("`threshold`", threshold)
        layout = replace(self.layout, threshold=threshold, threshold_from="given")
        return TableModel(self.model, layout)

    def column_types(self, table: Table, extra: Sequence[str] = ()) -> ColumnTypes:
        """Return the columns of a table to read: the features, and `extra` as text."""
        import pandas

        try:
            align(self.model, pandas.DataFrame(columns=table.names), extra="ignore")
        except ValueError as error:
            raise ValueError(f"{table.path}: {error}") from None
        texts = [*self.layout.categories, *self.layout.dates]
        return ColumnTypes(self.layout.numbers, texts, list(extra))

    def pieces(
        self, table: Table, extra: Sequence[str] = (), n_rows: int | None = None
    ) -> Iterator[Scored]:
        """Score a table in pieces of `n_rows` or of a few megabytes; also read the `extra` columns."""
        start = 0
        for frame in table.pieces(self.column_types(table, extra), n_rows):
            yield self.score(frame, start, str(table.path))
            start += len(frame)

    def score(self, frame: Any, start: int = 0, where: str = "the table") -> Scored:
        """Predict probabilities and labels of some rows; raise ValueError for unusable numbers."""
        features = frame[self.features]
        rows = range(start, start + len(frame))
        numbers = features[self.layout.numbers]
        infinite = infinite_cells(numbers, rows)
        if infinite:
            raise ValueError(f"{where}, {infinite}")
        inner, features = self.after_readings(features)
        unknown = {} if inner.columns is None else inner.columns.count_unseen(features)
        if self.labels_only:
            codes = np.searchsorted(self.classes, inner.model.predict(features))
            return Scored(start, frame, None, codes, unknown)
        probability = inner.model.predict_proba(features)
        codes, positive = probability.argmax(axis=1), self.layout.positive
        if self.binary:
            is_positive = probability[:, positive] >= self.layout.threshold
            codes = np.where(is_positive, positive, 1 - positive)
        return Scored(start, frame, probability, codes, unknown)

    def after_readings(self, frame: Any) -> tuple["TableModel", Any]:
        """Return the model that takes features of readings, and its features of some rows."""
        features = frame[self.features]
        if self.readings is None:
            return self, features
        features = self.readings.transform(features)
        rest = self.model[1:] if len(self.steps) > 1 else self.final
        names = features.columns
        numbers = [
            name for name in names if name in self.layout.numbers or name not in self.features
        ]
        return TableModel(rest, replace(self.layout, numbers=numbers)), features

    def importances(self, frame: Any) -> dict[str, float] | None:
        """Compute what drives the model on some rows; see `ProbabilityExplanation.importances`.

        None for the paper's method and for models that predict labels only.
        """
        if not hasattr(self.final, "explain_proba"):
            return None
        some = frame[self.features][:: -(-len(frame) // ROWS_FOR_IMPORTANCES)]
        return split_log_odds(self.model, some).importances()

    def count_training_rows(self, frame: Any) -> int:
        """Count rows with the same features as a training row; return 0 if this may be chance.

        Features with few values give equal rows by chance. The share of training rows that equal another
        training row estimates how often. The count must be more than halfway from there to all rows.
        """
        known = getattr(self.final, "samples_", None)
        if known is None:
            return 0
        inner, rows = self.after_readings(frame)
        if inner.steps:
            rows = inner.model[:-1].transform(rows)
        elif inner.columns is not None:
            rows = inner.columns.read(rows)
        scale = np.nanmax(np.abs(known), axis=0, initial=0.0, where=~np.isnan(known))
        seen = Counter(_rounded_rows(known, scale))
        n_seen = sum(row in seen for row in _rounded_rows(rows, scale))
        by_chance = sum(n for n in seen.values() if n > 1) / len(known)
        return n_seen if n_seen > 0.5 * (1.0 + by_chance) * len(frame) else 0


def _rounded_rows(rows: Any, scale: FloatArray) -> list[bytes]:
    """Return the bytes of every row, with numbers rounded relative to the largest of their column."""
    numbers = np.asarray(rows, dtype=np.float64) / np.where(scale > 0.0, scale, 1.0)
    # Adding 0 turns -0 into 0, so that equal numbers have equal bytes.
    return [row.tobytes() for row in np.round(numbers, N_DIGITS) + 0.0]


def infinite_cells(numbers: Any, rows: Sequence[int]) -> str:
    """Describe the first infinite cell of a frame; empty if there is none. `rows` are numbered from 0."""
    infinite = np.argwhere(np.isinf(numbers.to_numpy(dtype=np.float64)))
    if not len(infinite):
        return ""
    row, column = infinite[0]
    return (
        f"row {rows[row] + 1}: column {numbers.columns[column]!r} holds infinity, or a number above 1.8e308: "
        "correct the cell."
    )


def open_model(path: str | os.PathLike[str], n_jobs: int | None = None) -> TableModel:
    """Open a model file for use with tables.

    Models from `popf fit` store their columns. Models saved by `popf.save` store the names of their features
    if they were fitted on a frame; columns with a recorded dtype that is not numeric are categories.

    Parameters
    ----------
    path : str or path-like
    n_jobs : int, default=None
        Number of threads; None leaves the model as it was loaded.

    Returns
    -------
    TableModel

    Examples
    --------
    >>> import os, tempfile, pandas, popf
    >>> from popf.table_models import open_model
    >>> forest = popf.OPFClassifier().fit(pandas.DataFrame({"size": [1.0, 9.0]}), ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     popf.save(forest, os.path.join(folder, "mine.popf"))
    ...     model = open_model(os.path.join(folder, "mine.popf"))
    >>> model.final
    OPFClassifier()
    """
    check_file(path)
    known = describe(path)
    if not known["classes"]:
        raise ValueError(
            f"{path} holds {known['estimator']}, which has no classes: use it in Python, with popf.load."
        )
    model = load(path)
    table_model = TableModel(model, _layout(known, model, path))
    if n_jobs is not None:
        final = table_model.final
        for forest in (final, getattr(final, "opf_", final)):
            forest.set_params(n_jobs=n_jobs)
    return table_model


def _layout(known: dict[str, Any], model: Any, path: Any) -> Layout:
    kept, features = known["facts"].get(FACTS), known["features"]
    names = [feature["name"] for feature in features]
    if kept is None:
        if None in names:
            raise ValueError(
                f"{path} was fitted on an array, without column names: fit it on a frame, or with "
                "`popf fit`."
            )
        numbers = [feature["name"] for feature in features if _is_numeric(feature["dtype"])]
        steps = [step for _, step in getattr(model, "steps", [("", model)])]
        table = getattr(steps[isinstance(steps[0], ConsumptionFeatures)], "table_", None)
        if table is not None:  # it does not have the readings before it, which are numbers
            others = table.columns.names[table.columns.kinds != NUMBER].tolist()
            numbers = [name for name in names if name not in others]
        return Layout(
            numbers,
            [name for name in names if name not in numbers],
            threshold=float(known["parameters"].get("threshold", 0.5)),
        )
    # The file is not trusted: check every value.
    try:
        layout = Layout(**{entry.name: kept[entry.name] for entry in fields(Layout)})
        lists = (layout.numbers, layout.categories, layout.dates, layout.ids, layout.cautions)
        valid = all(isinstance(name, str) for names_ in lists for name in names_)
        valid &= {*layout.numbers, *layout.categories, *layout.dates} == {*names}
        rows = layout.rows or []
        valid &= isinstance(rows, list) and all(isinstance(row, int) and row >= 0 for row in rows)
        valid &= layout.rows is None or len(rows) == known["n_samples"]
        valid &= 0.0 < layout.threshold < 1.0 and layout.positive in (0, 1)
        valid &= isinstance(layout.target, str | None) and isinstance(layout.time, str | None)
        valid &= layout.spread is None or 0.0 <= layout.spread < np.inf
        costs = [cost for cost in (layout.cost_fp, layout.cost_fn) if cost is not None]
        valid &= len(costs) in (0, 2) and all(0.0 < cost < np.inf for cost in costs)
    except (TypeError, KeyError, ValueError):
        valid = False
    if not valid:
        raise ValueError(f"{path} has an invalid description of its table: fit it again.")
    return layout


def _is_numeric(dtype: str | None) -> bool:
    return dtype is None or any(
        word in dtype.lower() for word in ("int", "float", "double", "bool")
    )
