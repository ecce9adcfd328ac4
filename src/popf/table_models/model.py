"""A model with named columns, as written by `popf fit` and opened by the other commands."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import FloatArray, IntArray
from popf.files import check_file
from popf.formatting import check_share, listed
from popf.io import align, describe, load
from popf.probability.scaler import weighted_quantile
from popf.state import Float, Integer, Sizes, StateError, StateMixin, Text
from popf.tables import ColumnTypes, Table

#: Key under which the layout of the table is stored in the facts of a model file.
FACTS = "table"
#: Ways to treat missing numbers.
MISSING = ("refuse", "median", "mean")
#: Category of missing text; never the text of a cell.
NO_TEXT = ""


@dataclass(frozen=True)
class Layout:
    """The columns that a model uses, and its threshold."""

    numbers: list[str]  # numeric features
    categories: list[str] = field(default_factory=list)  # categorical features
    ids: list[str] = field(default_factory=list)  # copied to predictions, never features
    target: str | None = None  # the column with the labels
    threshold: float = 0.5  # probability from which a row is predicted positive
    positive: int = 1  # position of the positive class, with two classes
    missing: str = "refuse"  # how missing numbers are treated
    threshold_from: str = "the default"  # description of where the threshold comes from
    source: str = ""  # name of the training file
    cost_fp: float | None = None  # cost of a false alarm, if the threshold was chosen by costs
    cost_fn: float | None = None  # cost of a miss

    def as_facts(self) -> dict[str, Any]:
        """Return the layout as plain values, for `popf.save`."""
        return {FACTS: asdict(self)}


class TablePreparation(StateMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill in missing cells, standardise numbers, and encode categories as columns of 0 and 1.

    A row of weight 2 counts as two rows in every step. All fitted values are arrays.

    Parameters
    ----------
    numbers, categories : sequence of str
        The columns.
    missing : {"refuse", "median", "mean"}, default="refuse"
        What replaces missing numbers; ``"refuse"`` replaces none. Missing text is a category of its own.
    scale : bool, default=True
        Whether to standardise numbers.

    Attributes
    ----------
    fill_numbers_, mean_, scale_ : ndarray of shape (n_numbers,)
        For each numeric column, the replacement of missing numbers, and the mean and scale to standardise with.
    known_, n_known_ : ndarray of str, ndarray of int
        The sorted categories of all categorical columns, concatenated (missing is an empty string), and the
        number of categories of each column.
    rows_ : ndarray of int of shape (n_rows,)
        The index of the training frame: the rows of the file.
    """

    fill_numbers_: Annotated[FloatArray, Float("n_numbers")]
    mean_: Annotated[FloatArray, Float("n_numbers")]
    scale_: Annotated[FloatArray, Float("n_numbers", low=1e-300)]
    known_: Annotated[NDArray[np.str_], Text("n_known")]
    n_known_: Annotated[IntArray, Integer("n_categorical", low=1, high=2**31)]
    rows_: Annotated[IntArray, Integer("n_rows")]

    def __init__(
        self,
        numbers: Any = (),
        categories: Any = (),
        *,
        missing: str = "refuse",
        scale: bool = True,
    ) -> None:
        self.numbers = numbers
        self.categories = categories
        self.missing = missing
        self.scale = scale

    def fit(self, X: Any, y: Any = None, sample_weight: FloatArray | None = None) -> Self:
        """Fit to a DataFrame without empty columns; weights must be positive."""
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.feature_names_in_ = np.array([str(name) for name in X.columns], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.rows_ = np.asarray(X.index, dtype=np.int64)

        n_numbers = len(self.numbers)
        cells = self._numbers(X)
        self.fill_numbers_ = np.zeros(n_numbers)
        if self.missing != "refuse":
            for column, values in enumerate(cells.T):
                present = ~np.isnan(values)
                self.fill_numbers_[column] = (
                    np.average(values[present], weights=weights[present])
                    if self.missing == "mean"
                    else weighted_quantile(values[present, None], weights[present], 0.5)[0]
                )
        self.mean_, self.scale_ = np.zeros(n_numbers), np.ones(n_numbers)
        if self.scale and n_numbers:
            # The scaler's test for constant columns takes the sum of the weights for the number of rows.
            scaled_weights = None if sample_weight is None else weights / weights.mean()
            scaler = StandardScaler().fit(self._filled(cells), sample_weight=scaled_weights)
            self.mean_, self.scale_ = scaler.mean_, scaler.scale_

        known = [np.unique(_texts(X[name]).astype(str)) for name in self.categories]
        self.known_ = np.concatenate(known) if known else np.array([], dtype=str)
        self.n_known_ = np.array([len(words) for words in known], dtype=np.int64)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Prepare rows; a category not seen in training becomes zeros."""
        check_is_fitted(self)
        blocks = [(self._filled(self._numbers(X)) - self.mean_) / self.scale_]
        for codes, known in zip(self._codes(X), self._known_by_column(), strict=True):
            blocks.append((codes[:, None] == np.arange(len(known))).astype(np.float64))
        return np.hstack(blocks)

    def inverse_transform(self, Z: FloatArray) -> NDArray[Any]:
        """Return prepared rows in the units of the table, columns as in `feature_names_in_`.

        Imputed numbers stay imputed. None stands for missing text, and for a category not seen in training.
        """
        n = len(self.numbers)
        columns = dict(zip(self.numbers, (Z[:, :n] * self.scale_ + self.mean_).T, strict=True))
        start = n
        for name, known in zip(self.categories, self._known_by_column(), strict=True):
            block = Z[:, start : start + len(known)]
            words = known.astype(object)[block.argmax(axis=1)]
            columns[name] = np.where(block.any(axis=1) & (words != NO_TEXT), words, None)
            start += len(known)
        return np.column_stack([columns[name].astype(object) for name in self.feature_names_in_])

    def owners(self) -> list[str]:
        """Return the column of the table that each prepared column comes from."""
        repeated = np.repeat(np.array(self.categories, dtype=object), self.n_known_)
        return [*self.numbers, *repeated.tolist()]

    def count_unknown(self, X: Any) -> dict[str, int]:
        """Count the rows with a category not seen in training, for each column that has any."""
        counts = {
            name: int((codes < 0).sum())
            for name, codes in zip(self.categories, self._codes(X), strict=True)
        }
        return {name: n for name, n in counts.items() if n}

    def check_state(self, sizes: Sizes) -> None:
        """Check the parameters that the fitted values depend on, and the categories; see `popf.state`."""
        if self.missing not in MISSING:
            raise StateError(f"one of {', '.join(map(repr, MISSING))}", "missing")
        names = [*self.numbers, *self.categories]
        if sorted(names) != sorted(getattr(self, "feature_names_in_", ())):
            raise StateError("those of the features that are not categories", "numbers")
        for name, length in (("mean_", len(self.numbers)), ("n_known_", len(self.categories))):
            if len(getattr(self, name)) != length:
                raise StateError(f"an array of shape ({length})", name)
        if len(self.known_) != self.n_known_.sum():
            raise StateError(f"an array of shape ({self.n_known_.sum()})", "known_")
        for words in self._known_by_column():
            if len(set(words.tolist())) != len(words):
                raise StateError("different values in every column", "known_")

    def _numbers(self, X: Any) -> FloatArray:
        numbers: FloatArray = X[list(self.numbers)].to_numpy(dtype=np.float64)
        return numbers

    def _filled(self, cells: FloatArray) -> FloatArray:
        if self.missing == "refuse":
            return cells
        return np.where(np.isnan(cells), self.fill_numbers_, cells)

    def _codes(self, X: Any) -> list[IntArray]:
        """Return the position of each category among those of its column, -1 if not seen in training."""
        import pandas

        return [
            pandas.Index(known.astype(object)).get_indexer(_texts(X[name]))
            for name, known in zip(self.categories, self._known_by_column(), strict=True)
        ]

    def _known_by_column(self) -> list[NDArray[Any]]:
        return np.split(self.known_, np.cumsum(self.n_known_))[:-1]


def _texts(column: Any) -> Any:
    """Replace missing text by `NO_TEXT`."""
    return column.astype(object).where(column.notna(), NO_TEXT).to_numpy(dtype=object)


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
    preparation : TablePreparation or None
        The first step of a model from `popf fit`.
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
        first = self.steps[0] if self.steps else None
        self.preparation = first if isinstance(first, TablePreparation) else None
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
        return ColumnTypes(self.layout.numbers, self.layout.categories, list(extra))

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
        codes, positive = probability.argmax(axis=1), self.layout.positive
        if self.binary:
            is_positive = probability[:, positive] >= self.layout.threshold
            codes = np.where(is_positive, positive, 1 - positive)
        return Scored(start, frame, probability, codes, unknown)

    def count_training_rows(self, frame: Any) -> int:
        """Count rows with the same features as a training row; return 0 if this may be chance.

        Features with few values give equal rows by chance. The share of training rows that equal another
        training row estimates how often. The count must be more than halfway from there to all rows.
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


def infinite_cells(numbers: Any, rows: Sequence[int]) -> str:
    """Describe the first infinite cell of a frame; empty if there is none. `rows` are numbered from 0."""
    infinite = np.argwhere(np.isinf(numbers.to_numpy(dtype=np.float64)))
    if not len(infinite):
        return ""
    row, column = infinite[0]
    return (
        f"row {rows[row] + 1}: column {numbers.columns[column]!r} holds infinity: correct the cell."
    )


def missing_numbers(numbers: Any, rows: Sequence[int]) -> str:
    """Describe the missing cells of a frame; empty if there are none. `rows` are numbered from 0."""
    absent = numbers.isna()
    if not absent.to_numpy().any():
        return ""
    first = int(np.flatnonzero(absent.to_numpy().any(axis=1))[0])
    columns = listed([f"{name!r} ({n})" for name, n in absent.sum().items() if n])
    return f"numbers are missing in {columns}, first in row {rows[first] + 1}"


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
                f"{path} was fitted on an array, without column names: fit it on a frame, or with "
                "`popf fit`."
            )
        numbers = [feature["name"] for feature in features if _is_numeric(feature["dtype"])]
        return Layout(
            numbers,
            [name for name in names if name not in numbers],
            threshold=float(known["parameters"].get("threshold", 0.5)),
            missing="passed on",
        )
    # The file is not trusted: check every value.
    try:
        layout = Layout(**{entry.name: kept[entry.name] for entry in fields(Layout)})
        lists = (layout.numbers, layout.categories, layout.ids)
        valid = all(isinstance(name, str) for names_ in lists for name in names_)
        valid &= {*layout.numbers, *layout.categories} == {*names}
        valid &= 0.0 < layout.threshold < 1.0 and layout.positive in (0, 1)
        valid &= isinstance(layout.target, str | None) and isinstance(layout.missing, str)
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
