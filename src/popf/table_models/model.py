"""A model with the names of its columns: what `popf fit` makes and the other commands open."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.files import check_file
from popf.io import align, describe, load
from popf.tables import ColumnTypes, Table

FloatArray = NDArray[np.float64]
#: The key of a model file's facts under which the layout of the table is kept.
FACTS = "table"
_SHOWN = 8


@dataclass(frozen=True)
class Layout:
    """What the columns of a table are to a model.

    Attributes
    ----------
    numbers, categories : list of str
        The features.
    ids : list of str
        Carried through, never used as features.
    target : str or None
        The column with the labels.
    threshold : float
        From which probability on a row is called positive, for two classes.
    positive : int
        Which of the classes is the positive one, for two classes.
    missing : str
        What is done about missing values: ``"refuse"``, or how they were imputed.
    threshold_from : str
        Where the threshold comes from, in words.
    source : str
        The file that the model was fitted on.
    """

    numbers: list[str]
    categories: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    target: str | None = None
    threshold: float = 0.5
    positive: int = 1
    missing: str = "refuse"
    threshold_from: str = "the default"
    source: str = ""

    def as_facts(self) -> dict[str, Any]:
        """Give it as plain values, for `popf.save`."""
        return {FACTS: asdict(self)}


class Scored(NamedTuple):
    """What a model says of a piece of a table.

    Attributes
    ----------
    start : int
        How many rows came before.
    frame : pandas.DataFrame
        The columns that were read.
    probability : ndarray of shape (n_rows, n_classes) or None
        None if the model gives labels only.
    codes : ndarray of shape (n_rows,)
        The labels, as positions in the classes.
    unknown : dict of str to int
        By column of categories, in how many rows it holds a value never seen in training.
    """

    start: int
    frame: Any
    probability: FloatArray | None
    codes: NDArray[np.int64]
    unknown: dict[str, int]


class TableModel:
    """A fitted pipeline that knows its columns by name.

    Parameters
    ----------
    model : Pipeline or classifier
        Fitted.
    layout : Layout

    Attributes
    ----------
    classes : ndarray
        The labels.

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
        self.final = model.steps[-1][1] if hasattr(model, "steps") else model
        self.classes: NDArray[Any] = model.classes_
        self._known = _known_categories(model)

    @property
    def features(self) -> list[str]:
        """The columns that the model looks at."""
        return [*self.layout.numbers, *self.layout.categories]

    @property
    def binary(self) -> bool:
        """Whether there are two classes, and so a threshold."""
        return len(self.classes) == 2

    @property
    def positive(self) -> Any:
        """The label of the positive class, for two classes."""
        return self.classes.tolist()[self.layout.positive]

    def plan(self, table: Table, extra: Sequence[str] = ()) -> ColumnTypes:
        """Say which columns of a table to read; raise ValueError where some are missing.

        Parameters
        ----------
        table : Table
        extra : sequence of str
            Columns to read as text, besides the features.
        """
        have = list(table.names)
        wanted = [*self.features, *extra]
        missing = [name for name in wanted if name not in have]
        if missing:
            import pandas

            # The words of popf.io.align, which knows what may be meant.
            named = _Wanted(np.array(wanted, dtype=object))
            try:
                align(named, pandas.DataFrame(columns=have), extra="ignore")
            except ValueError as error:
                raise ValueError(f"{table.path}: {error}") from None
        return ColumnTypes(list(self.layout.numbers), list(self.layout.categories), list(extra))

    def pieces(
        self, table: Table, extra: Sequence[str] = (), n_rows: int | None = None
    ) -> Iterator[Scored]:
        """Score a table piece by piece.

        Parameters
        ----------
        table : Table
        extra : sequence of str
            Columns to read besides the features.
        n_rows : int, default=None
            How many rows a piece has; None for as many as make some megabytes.
        """
        start = 0
        for frame in table.pieces(self.plan(table, extra), n_rows):
            yield self.score(frame, start, str(table.path))
            start += len(frame)

    def score(self, frame: Any, start: int = 0, where: str = "the table") -> Scored:
        """Give probabilities and labels of some rows; raise ValueError where cells cannot be used."""
        self._check_cells(frame, start, where)
        unknown = self._unknown(frame)
        features = frame[self.features]
        order = getattr(self.model, "feature_names_in_", None)
        features = features.to_numpy() if order is None else features[list(order)]
        if not hasattr(self.final, "predict_proba"):
            labels = self.model.predict(features)
            return Scored(start, frame, None, np.searchsorted(self.classes, labels), unknown)
        probability = self.model.predict_proba(features)
        return Scored(start, frame, probability, self.codes(probability), unknown)

    def codes(self, probability: FloatArray) -> NDArray[np.int64]:
        """Call rows by the threshold, or with three classes and more by the largest probability."""
        if not self.binary:
            largest: NDArray[np.int64] = probability.argmax(axis=1)
            return largest
        positive = self.layout.positive
        called = probability[:, positive] >= self.layout.threshold
        codes: NDArray[np.int64] = np.where(called, positive, 1 - positive)
        return codes

    def _check_cells(self, frame: Any, start: int, where: str) -> None:
        numbers = frame[self.layout.numbers]
        endless = np.isinf(numbers.to_numpy(dtype=np.float64))
        if endless.any():
            row, column = np.argwhere(endless)[0]
            raise ValueError(
                f"{where}, row {start + row + 1}: column {self.layout.numbers[column]!r} holds "
                "infinity: mend the cell."
            )
        if self.layout.missing != "refuse":
            return
        absent = frame[self.features].isna()
        if absent.to_numpy().any():
            raise ValueError(missing_words(absent, range(start, start + len(frame)), where))

    def _unknown(self, frame: Any) -> dict[str, int]:
        counts = {}
        for name, known in self._known.items():
            if name in frame:
                cells = frame[name]
                n = int((cells.notna() & ~cells.isin(known)).sum())
                if n:
                    counts[name] = n
        return counts


class _Wanted(NamedTuple):
    """What `popf.io.align` looks at in a model."""

    feature_names_in_: NDArray[Any]


def missing_words(absent: Any, rows: Sequence[int], where: str, remedy: str = "") -> str:
    """Say which columns of a frame of truth values have missing cells; `rows` count from 0."""
    counts = absent.sum()
    columns = [(name, int(n)) for name, n in counts.items() if n]
    first = int(np.flatnonzero(absent.to_numpy().any(axis=1))[0])
    shown = ", ".join(f"{name!r} ({n})" for name, n in columns[:_SHOWN])
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    remedy = remedy or "fill them in, or fit the model with `missing='median'`"
    return f"{where} has missing values in {shown}{more}; the first in row {rows[first] + 1}: {remedy}."


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
    """
    check_file(path)
    known = describe(path)
    model = load(path)
    layout = _layout(known, path)
    table_model = TableModel(model, layout)
    if n_jobs is not None:
        table_model.final.n_jobs = n_jobs
        for part in ("opf_",):
            if hasattr(table_model.final, part):
                getattr(table_model.final, part).n_jobs = n_jobs
    return table_model


def _layout(known: dict[str, Any], path: Any) -> Layout:
    kept = known["facts"].get(FACTS)
    features = known["features"]
    if kept is None:
        if any(feature["name"] is None for feature in features):
            raise ValueError(
                f"{path} was fitted on an array, without names of columns: fit it on a frame, or by "
                "`popf fit`."
            )
        numeric = [_is_numeric(feature["dtype"]) for feature in features]
        names = [feature["name"] for feature in features]
        threshold = known["parameters"].get("threshold", 0.5)
        return Layout(
            [name for name, number in zip(names, numeric, strict=True) if number],
            [name for name, number in zip(names, numeric, strict=True) if not number],
            threshold=float(threshold),
            missing="passed on",
        )
    # Whoever wrote the file, only what a layout may hold gets through.
    known_names = {feature["name"] for feature in features}
    try:
        layout = Layout(**{entry.name: kept[entry.name] for entry in fields(Layout)})
        lists = (layout.numbers, layout.categories, layout.ids)
        right = all(isinstance(name, str) for names_ in lists for name in names_)
        right &= {*layout.numbers, *layout.categories} == known_names
        right &= 0.0 < layout.threshold < 1.0 and layout.positive in (0, 1)
        right &= isinstance(layout.target, str | None) and isinstance(layout.missing, str)
    except (TypeError, KeyError, ValueError):
        right = False
    if not right:
        raise ValueError(f"{path} tells a layout of its table that makes no sense: fit it anew.")
    return layout


def _is_numeric(dtype: str | None) -> bool:
    return dtype is None or any(
        word in dtype.lower() for word in ("int", "float", "double", "bool")
    )


def _known_categories(model: Any) -> dict[str, list[Any]]:
    """Give the categories that one-hot encoders have seen, by column."""
    found: dict[str, list[Any]] = {}
    for _, step in getattr(model, "steps", []):
        for _, part, columns in getattr(step, "transformers_", []):
            encoder = part[-1] if hasattr(part, "steps") else part
            if hasattr(encoder, "categories_"):
                pairs = zip(columns, encoder.categories_, strict=True)
                found |= {str(name): list(values) for name, values in pairs}
    return found
