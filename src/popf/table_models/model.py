"""A model with the names of its columns: what `popf fit` makes and the other commands open."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray, IntArray
from popf.files import check_file
from popf.formatting import listed
from popf.io import align, describe, load
from popf.table_models.preparation import TablePreparation
from popf.tables import ColumnTypes, Table

#: The key of a model file's facts under which the layout of the table is kept.
FACTS = "table"


@dataclass(frozen=True)
class Layout:
    """What the columns of a table are to a model."""

    numbers: list[str]  # these and the categories are the features
    categories: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)  # carried through, never used as features
    target: str | None = None  # the column with the labels
    threshold: float = 0.5  # from this probability on a row is called positive, for two classes
    positive: int = 1  # which of the two classes is the one to find
    missing: str = "refuse"  # or how missing values are filled in
    threshold_from: str = "the default"  # where the threshold comes from, in words
    source: str = ""  # the file that the model was fitted on
    cost_fp: float | None = None  # of a false alarm, where the threshold was chosen by costs
    cost_fn: float | None = None  # of a miss

    def as_facts(self) -> dict[str, Any]:
        """Return it as plain values, for `popf.save`."""
        return {FACTS: asdict(self)}


class Scored(NamedTuple):
    """What a model says of some rows of a table."""

    start: int  # how many rows came before
    frame: Any  # the columns that were read
    probability: FloatArray | None  # a column for each class; None if the model gives labels only
    codes: IntArray  # the labels, as positions in the classes
    unknown: dict[str, int]  # by column, how many rows have a category never seen in training


class TableModel:
    """A fitted model that knows its columns by name.

    Parameters
    ----------
    model : Pipeline or classifier
        Fitted on a DataFrame.
    layout : Layout

    Attributes
    ----------
    features : list of str
        The columns that the model looks at, in its order.
    steps, final : list of estimators, estimator
        The steps of a pipeline before its last, and the classifier that is the last.
    preparation : TablePreparation or None
        The first step of a model of `popf fit`.
    classes : ndarray
        The labels.
    labels_only, binary : bool
        Whether the model gives no probabilities; whether it gives those of two classes, and so has a threshold.
    positive, threshold : label, float
        The class to find, and the probability from which on a row is of it; None unless `binary`.

    Examples
    --------
    >>> import pandas
    >>> from popf import POPFClassifier
    >>> from popf.table_models.model import Layout, TableModel
    >>> frame = pandas.DataFrame({"size": [0.0, 1.0, 2.0, 7.0, 8.0, 9.0]})
    >>> fitted = POPFClassifier().fit(frame, ["no", "no", "no", "yes", "yes", "yes"])
    >>> table_model = TableModel(fitted, Layout(["size"], threshold=0.3))
    >>> [str(table_model.classes[code]) for code in table_model.score(frame).codes]
    ['no', 'no', 'no', 'yes', 'yes', 'yes']
    """

    def __init__(self, model: Any, layout: Layout) -> None:
        self.model = model
        self.layout = layout
        self.features = [str(name) for name in model.feature_names_in_]
        self.steps: list[Any] = [step for _, step in getattr(model, "steps", [("", model)])]
        self.final = self.steps.pop()
        first = self.steps[0] if self.steps else None
        self.preparation = first if isinstance(first, TablePreparation) else None
        self.classes: NDArray[Any] = model.classes_
        self.labels_only = not hasattr(self.final, "predict_proba")
        self.binary = len(self.classes) == 2 and not self.labels_only
        self.positive: Any = self.classes.tolist()[layout.positive] if self.binary else None
        self.threshold = layout.threshold if self.binary else None

    @property
    def rule(self) -> str:
        """How labels follow from probabilities, in words; commands print it in their first line."""
        if self.labels_only:
            return "label: that of the best path"
        if not self.binary:
            return f"label: the most probable of {len(self.classes)} classes"
        return f"class to find: {self.positive}, from probability {self.layout.threshold:.4g} on"

    def with_threshold(self, threshold: float | None) -> "TableModel":
        """Return the model with another threshold; None for its own."""
        if threshold is None:
            return self
        if self.labels_only:
            raise ValueError(
                "the model gives labels only, no probabilities: leave out `threshold`."
            )
        if not self.binary:
            raise ValueError(
                f"`threshold` is for two classes, and the model has {len(self.classes)}: leave it out."
            )
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"`threshold` must lie between 0 and 1, not at {threshold:g}.")
        layout = replace(self.layout, threshold=threshold, threshold_from="given")
        return TableModel(self.model, layout)

    def column_types(self, table: Table, extra: Sequence[str] = ()) -> ColumnTypes:
        """Choose the columns of a table to read: the features, and `extra` as text."""
        import pandas

        try:
            align(self.model, pandas.DataFrame(columns=table.names), extra="ignore")
        except ValueError as error:
            raise ValueError(f"{table.path}: {error}") from None
        return ColumnTypes(self.layout.numbers, self.layout.categories, list(extra))

    def pieces(
        self, table: Table, extra: Sequence[str] = (), n_rows: int | None = None
    ) -> Iterator[Scored]:
        """Score a table in pieces of some megabytes or of `n_rows`; `extra` columns are read, too."""
        start = 0
        for frame in table.pieces(self.column_types(table, extra), n_rows):
            yield self.score(frame, start, str(table.path))
            start += len(frame)

    def score(self, frame: Any, start: int = 0, where: str = "the table") -> Scored:
        """Compute probabilities and labels of some rows; raise ValueError if a cell cannot be used."""
        features = frame[self.features]
        rows = range(start, start + len(frame))
        numbers = features[self.layout.numbers]
        infinite = infinite_cells(numbers, rows)
        if infinite:
            raise ValueError(f"{where}, {infinite}")
        gaps = missing_numbers(numbers, rows) if self.layout.missing == "refuse" else ""
        if gaps:
            raise ValueError(
                f"{where}: {gaps}: fill them in, or fit the model with `missing='median'`."
            )
        unknown = {} if self.preparation is None else self.preparation.count_unknown(features)
        if self.labels_only:
            codes = np.searchsorted(self.classes, self.model.predict(features))
            return Scored(start, frame, None, codes, unknown)
        probability = self.model.predict_proba(features)
        return Scored(start, frame, probability, self.codes(probability), unknown)

    def count_training_rows(self, frame: Any) -> int:
        """Count rows with the features of a training row; 0 if chance explains them.

        Where features have few values, rows are alike by chance: as many training rows have a twin among
        the others. Rows that were fitted to must be more than halfway from there to all.
        """
        known = getattr(self.final, "samples_", None)
        if known is None:
            return 0
        rows = frame[self.features]
        if self.steps:
            rows = self.model[:-1].transform(rows)
        # Adding 0 turns -0 into 0, so that equal numbers have equal bytes.
        seen = Counter(row.tobytes() for row in np.asarray(known, dtype=np.float64) + 0.0)
        n_seen = sum(row.tobytes() in seen for row in np.asarray(rows, dtype=np.float64) + 0.0)
        by_chance = sum(n for n in seen.values() if n > 1) / len(known)
        return n_seen if n_seen > 0.5 * (1.0 + by_chance) * len(frame) else 0

    def codes(self, probability: FloatArray) -> IntArray:
        """Label rows by the threshold, or with three classes and more by the largest probability."""
        if not self.binary:
            return np.asarray(probability.argmax(axis=1))
        positive = self.layout.positive
        return np.where(probability[:, positive] >= self.layout.threshold, positive, 1 - positive)


def infinite_cells(numbers: Any, rows: Sequence[int]) -> str:
    """Name the first infinite cell of a frame of numbers, empty if there is none; `rows` count from 0."""
    endless = np.argwhere(np.isinf(numbers.to_numpy(dtype=np.float64)))
    if not len(endless):
        return ""
    row, column = endless[0]
    return f"row {rows[row] + 1}: column {numbers.columns[column]!r} holds infinity: mend the cell."


def missing_numbers(numbers: Any, rows: Sequence[int]) -> str:
    """Name the columns of a frame with missing cells, empty if there are none; `rows` count from 0."""
    absent = numbers.isna()
    if not absent.to_numpy().any():
        return ""
    first = int(np.flatnonzero(absent.to_numpy().any(axis=1))[0])
    columns = listed([f"{name!r} ({n})" for name, n in absent.sum().items() if n])
    return f"numbers are missing in {columns}; the first in row {rows[first] + 1}"


def open_model(path: str | os.PathLike[str], n_jobs: int | None = None) -> TableModel:
    """Open a model file for use with tables.

    Models of `popf fit` know their columns. Those saved by `popf.save` know the names of their features if
    they were fitted on a frame; columns whose noted dtype is no number are categories.

    Parameters
    ----------
    path : str or path-like
    n_jobs : int, default=None
        How many threads to use; None for as many as in the file.

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
            f"{path} holds {known['estimator']}, which knows no classes: use it in Python, by popf.load."
        )
    table_model = TableModel(load(path), _layout(known, path))
    if n_jobs is not None:
        final = table_model.final
        for forest in (final, getattr(final, "opf_", final)):
            forest.set_params(n_jobs=n_jobs)
    return table_model


def _layout(known: dict[str, Any], path: Any) -> Layout:
    kept, features = known["facts"].get(FACTS), known["features"]
    names = [feature["name"] for feature in features]
    if kept is None:
        if None in names:
            raise ValueError(
                f"{path} was fitted on an array, without names of columns: fit it on a frame, or by "
                "`popf fit`."
            )
        numbers = [feature["name"] for feature in features if _is_numeric(feature["dtype"])]
        return Layout(
            numbers,
            [name for name in names if name not in numbers],
            threshold=float(known["parameters"].get("threshold", 0.5)),
            missing="passed on",
        )
    # Whoever wrote the file, only what a layout may hold gets through.
    try:
        layout = Layout(**{entry.name: kept[entry.name] for entry in fields(Layout)})
        lists = (layout.numbers, layout.categories, layout.ids)
        right = all(isinstance(name, str) for names_ in lists for name in names_)
        right &= {*layout.numbers, *layout.categories} == {*names}
        right &= 0.0 < layout.threshold < 1.0 and layout.positive in (0, 1)
        right &= isinstance(layout.target, str | None) and isinstance(layout.missing, str)
        costs = [cost for cost in (layout.cost_fp, layout.cost_fn) if cost is not None]
        right &= len(costs) in (0, 2) and all(0.0 < cost < np.inf for cost in costs)
    except (TypeError, KeyError, ValueError):
        right = False
    if not right:
        raise ValueError(f"{path} tells a layout of its table that makes no sense: fit it anew.")
    return layout


def _is_numeric(dtype: str | None) -> bool:
    return dtype is None or any(
        word in dtype.lower() for word in ("int", "float", "double", "bool")
    )
