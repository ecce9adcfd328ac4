"""Tables with numbers, text, dates and gaps, as matrices of numbers.

In a matrix, a number stays itself, a level of a categorical column is its position among the sorted levels
that were seen in training (-1 if it was not seen), a date is seconds since 1970, and a gap is NaN.
"""

import warnings
from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from numbers import Real
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from popf.dates import FORMATS, date_format, parse_date, seconds_of
from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.forest.alignment import align
from popf.forest.validation import to_host
from popf.formatting import listed
from popf.metrics.checks import is_missing
from popf.state import Integer, Sizes, StateError, Text

NUMBER, CATEGORY, DATE = "number", "category", "date"
#: A column without any cell in training; later cells are ignored.
EMPTY = "empty"
KINDS = (NUMBER, CATEGORY, DATE, EMPTY)
#: Numbers stored as text are categories, such as "1", "2" and "3", if there are at most so many different ones.
MAX_CODES = 20
#: Number of texts to find the format of new dates by, where some are no dates.
N_TRIED = 100
#: Code of a level that was not seen in training.
UNSEEN = -1.0


class Columns(NamedTuple):
    """The columns of a table, as they were in training."""

    names: Annotated[NDArray[np.str_], Text("n_features")]  # for messages
    kinds: Annotated[NDArray[np.str_], Text("n_features")]
    #: The sorted levels of all categorical columns, one column after the other, and their numbers.
    levels: Annotated[NDArray[np.str_], Text("n_levels")]
    n_levels: Annotated[IntArray, Integer("n_features")]
    #: The format of dates that are written as text; empty for other columns.
    formats: Annotated[NDArray[np.str_], Text("n_features")]

    def check_state(self, sizes: Sizes) -> None:
        """Check kinds and levels; see `popf.state`."""
        if not set(self.kinds.tolist()) <= set(KINDS):
            raise StateError(f"an array of {', '.join(KINDS)}", "kinds")
        if self.n_levels.sum() != len(self.levels):
            raise StateError("the numbers of levels", "n_levels")
        if any((own[:-1] >= own[1:]).any() for own in self.levels_by_column()):
            raise StateError("levels in ascending order", "levels")

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> "Columns":
        """Describe columns of numbers only."""
        n = len(names)
        texts = np.array(names, dtype=str), np.full(n, NUMBER), np.empty(0, dtype="U1")
        return cls(*texts, np.zeros(n, np.int64), np.full(n, ""))

    @property
    def all_numbers(self) -> bool:
        """Whether there are numbers only."""
        return bool((self.kinds == NUMBER).all())

    def check_matrix(self, matrix: FloatArray) -> None:
        """Raise StateError for codes that are not those of levels."""
        codes = np.where(np.isnan(matrix), 0.0, matrix)[:, self.kinds == CATEGORY]
        if (
            (codes != np.floor(codes))
            | (codes < 0)
            | (codes > self.n_levels[self.kinds == CATEGORY])
        ).any():
            raise StateError("codes of the levels of categories", "samples_")

    def levels_by_column(self) -> list[NDArray[np.str_]]:
        """List the levels of every column."""
        return np.split(self.levels, np.cumsum(self.n_levels)[:-1])

    def read(self, table: Any) -> FloatArray:
        """Convert new rows of the table to a matrix."""
        found = np.empty((len(table), len(self.kinds)))
        levels = self.levels_by_column()
        for j, (cells, _) in enumerate(cells_of(table)):
            found[:, j] = _read_column(
                cells, str(self.names[j]), str(self.kinds[j]), levels[j], str(self.formats[j])
            )
        return found

    def count_unseen(self, table: Any) -> dict[str, int]:
        """Count the rows with a level not seen in training, for each column that has any."""
        matrix = self.read(table)
        counts = (matrix[:, self.kinds == CATEGORY] == UNSEEN).sum(axis=0)
        names = self.names[self.kinds == CATEGORY]
        return {name: n for name, n in zip(names.tolist(), counts.tolist(), strict=True) if n}

    def values(self, matrix: FloatArray) -> NDArray[Any]:
        """Convert rows of a matrix back: numbers, texts of levels, dates as text; None for a gap."""
        found = matrix.astype(object)
        found[np.isnan(matrix)] = None
        for j in np.flatnonzero((self.kinds == CATEGORY) | (self.kinds == DATE)):
            present = ~np.isnan(matrix[:, j])
            own = matrix[present, j]
            if self.kinds[j] == DATE:
                dates = own.round().astype("datetime64[s]")
                midnight = (own % 86400.0 == 0.0).all()
                found[present, j] = np.datetime_as_string(dates, unit="D" if midnight else "s")
            else:
                levels = np.array([*self.levels_by_column()[j].tolist(), None], dtype=object)
                found[present, j] = levels[own.astype(np.int64)]  # -1 for a level that was not seen
        return found


def read_training(X: Any, categorical_features: Any) -> tuple[Any, Columns | None]:
    """Return a training table as a matrix, and its columns; an array of numbers as it is, and None."""
    chosen = not (isinstance(categorical_features, str) and categorical_features == "from_dtype")
    if not chosen and not is_table(X):
        return X, None  # on a GPU too: the forest is grown where X is
    table = as_table(to_host(X))
    names = names_in(table)
    mask = np.zeros(len(names), dtype=np.bool_)
    if chosen:
        mask = _mask(categorical_features, names)
    columns, matrix = read_columns(table, names, mask)
    return matrix, columns


def read_new(estimator: Any, X: Any, columns: Columns) -> FloatArray:
    """Check new samples of a fitted estimator, and return them as a matrix."""
    X = to_host(X)
    if hasattr(estimator, "feature_names_in_"):
        X = align(estimator, X) if hasattr(X, "columns") else X
    numbers = columns.all_numbers and not is_table(X)
    found = validate_data(
        estimator,
        X,
        reset=False,
        **(
            {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
            if numbers
            else {"skip_check_array": True}
        ),
    )
    return found if numbers else columns.read(as_table(found))


def names_of_features(estimator: Any) -> list[str]:
    """Return the names of a fitted estimator's features, x0, x1, ... if they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else list(names)


def names_in(table: Any) -> list[str]:
    """Return the names of a table's columns, x0, x1, ... for an array."""
    if hasattr(table, "columns"):
        return [str(name) for name in table.columns]
    return [f"x{j}" for j in range(table.shape[1])]


def is_table(X: Any) -> bool:
    """Return whether X is a data frame or an array that holds more than numbers."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return not all(getattr(dtype, "kind", "O") in "biuf" for dtype in X.dtypes)
    if isinstance(X, list | tuple):
        return any(
            isinstance(cell, str) for row in X if isinstance(row, list | tuple) for cell in row
        )
    return getattr(getattr(X, "dtype", None), "kind", "f") in "OUM" and not issparse(X)


def as_table(X: Any) -> Any:
    """Return a data frame, or an array with two axes."""
    if hasattr(X, "columns"):
        return X
    return check_array(X, dtype=object if is_table(X) else None, ensure_all_finite=False)


def _mask(categorical_features: Any, names: list[str]) -> BoolArray:
    """Return which columns are among the names, indices or mask of `categorical_features`."""
    given = np.asarray([] if categorical_features is None else categorical_features)
    mask = np.zeros(len(names), dtype=np.bool_)
    if given.dtype.kind == "b" and given.shape == mask.shape:
        return given
    for each in given.ravel().tolist():
        if isinstance(each, str) and each in names:
            mask[names.index(each)] = True
        elif (
            isinstance(each, int)
            and not isinstance(each, bool)
            and -len(names) <= each < len(names)
        ):
            mask[each] = True
        else:
            raise ValueError(
                f"categorical_features has {each!r}, but must be 'from_dtype', or names, indices or a mask of "
                f"the columns {listed(names)}."
            )
    return mask


def cells_of(table: Any) -> list[tuple[NDArray[Any], bool]]:
    """List the cells of every column as an array, and whether its dtype is categorical."""
    if not hasattr(table, "columns"):
        return [(column, False) for column in table.T]
    by_position = getattr(table, "iloc", None)
    found = []
    for j in range(table.shape[1]):
        column: Any = table[:, j] if by_position is None else by_position[:, j]
        dtype, name = column.dtype, str(column.dtype).lower()
        if not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "O") in "biuf":
            cells = column.to_numpy(dtype=np.float64, na_value=np.nan)  # of pandas, with its NA
            found.append((cells, False))
            continue
        if name.startswith("period"):
            column = column.dt.to_timestamp()
        elif name.startswith("datetime64[") and "," in name:  # with a time zone
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        categorical = name.startswith(("category", "categorical", "enum"))
        found.append((np.asarray(column.to_numpy()), categorical))
    return found


def read_columns(
    table: Any, names: Sequence[str], categorical: BoolArray
) -> tuple[Columns, FloatArray]:
    """Find the kind of every column of a training table; return them and the table as a matrix.

    Columns of text and of a categorical dtype are categories, and those marked in `categorical`.
    """
    every = cells_of(table)
    matrix = np.empty((len(table), len(every)))
    kinds, levels, formats = [], [], []
    for j, (cells, by_dtype) in enumerate(every):
        kind, own, format_, matrix[:, j] = _fit_column(
            cells, names[j], by_dtype or bool(categorical[j])
        )
        kinds.append(kind)
        levels.append(own)
        formats.append(format_)
    columns = Columns(
        np.array(names, dtype=str),
        np.array(kinds, dtype=str),
        np.concatenate([np.empty(0, dtype="U1"), *levels]),
        np.array([len(own) for own in levels], dtype=np.int64),
        np.array(formats, dtype=str),
    )
    return columns, matrix


def _fit_column(
    cells: NDArray[Any], name: str, categorical: bool
) -> tuple[str, NDArray[np.str_], str, FloatArray]:
    """Return the kind of a column, its levels, the format of its dates, and its cells as numbers."""
    none = np.empty(0, dtype="U1")
    if cells.dtype.kind == "f" and np.isnan(cells).all():
        return EMPTY, none, "", cells
    if cells.dtype.kind in "biufmM" and not categorical:
        kind = DATE if cells.dtype.kind == "M" else NUMBER
        return kind, none, "", _read_column(cells, name, kind, none, "")
    distinct, codes = _distinct(cells, name)
    if not categorical:
        kinds = {_kind_of(value, name) for value in distinct}
        if len(kinds) > 1:
            _refuse_mixture(distinct, name)
        if not kinds:  # nothing but gaps
            return EMPTY, none, "", np.full(len(cells), np.nan)
        kind = kinds.pop()
        if kind != CATEGORY:
            return kind, none, "", _read_column(cells, name, kind, none, "")
        words = [str(value) for value in distinct]
        _refuse_numbers(words, name)
        format_ = date_format(words)
        if format_:
            return DATE, none, format_, _read_column(cells, name, DATE, none, format_)
    texts = np.array([level_of(value) for value in distinct], dtype=str)
    levels = np.unique(texts)
    found = np.append(np.searchsorted(levels, texts).astype(np.float64), np.nan)
    return CATEGORY, levels, "", found[codes]


def _read_column(
    cells: NDArray[Any], name: str, kind: str, levels: NDArray[np.str_], format_: str
) -> FloatArray:
    """Convert cells to numbers, NaN for gaps; -1 for a level that is not among the `levels`."""
    if kind == EMPTY:
        return np.full(len(cells), np.nan)
    if kind == CATEGORY:
        distinct, codes = _distinct(cells, name)
        position = {level: float(code) for code, level in enumerate(levels.tolist())}
        known = [position.get(level_of(value), UNSEEN) for value in distinct]
        return np.array([*known, np.nan])[codes]
    if cells.dtype.kind in "biufmM":
        is_date = cells.dtype.kind == "M"
        if is_date == (kind == DATE):
            return _seconds(cells) if cells.dtype.kind in "mM" else _checked(cells, name)
        example = str(cells[0])
        raise _not_a(kind, example, name)
    distinct, codes = _distinct(cells, name)
    found = np.full(len(distinct) + 1, np.nan)
    if kind == DATE:
        format_ = _format_of_new(distinct, name, format_)
    for i, value in enumerate(distinct):
        own = _kind_of(value, name)
        if own == CATEGORY and format_:
            found[i] = parse_date(value, format_)
        elif own != kind:
            raise _not_a(kind, value, name)
        else:
            found[i] = _number_of(value, name)
    return _checked(found[codes], name)


def _format_of_new(distinct: list[Any], name: str, format_: str) -> str:
    """Return the format of new dates as text; warn of text that is no date, and so counts as missing."""
    words = [value for value in distinct if isinstance(value, str)]

    def odd(some: list[str], each: str) -> list[str]:
        return [word for word in some if np.isnan(parse_date(word, each))]

    if not odd(words, format_):
        return format_
    another = date_format(words)  # written in another way than in training
    if another:
        return another
    format_ = min((format_, *FORMATS), key=lambda each: len(odd(words[:N_TRIED], each)))
    wrong = odd(words, format_)
    if len(wrong) == len(words):
        raise _not_a(DATE, wrong[0], name)
    message = f"column {name!r} holds {wrong[0]!r}, which is no date like the others, and counts as missing."
    warnings.warn(message, UserWarning, stacklevel=2)
    return format_


def _checked(cells: NDArray[Any], name: str) -> FloatArray:
    numbers: FloatArray = cells.astype(np.float64)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise ValueError(
            f"Input X contains infinity: column {name!r}, row {infinite[0]}. Correct the cell, or replace it "
            "by NaN, which means a gap."
        )
    return numbers


def _seconds(cells: NDArray[Any]) -> FloatArray:
    """Convert dates and durations to seconds."""
    gaps = np.isnat(cells)
    seconds = cells.astype("M8[us]" if cells.dtype.kind == "M" else "m8[us]").astype(np.int64) / 1e6
    return np.where(gaps, np.nan, seconds)


def _distinct(cells: NDArray[Any], name: str) -> tuple[list[Any], IntArray]:
    """Return the distinct cells, and the position of every cell among them; -1 for a gap."""
    codes = np.empty(len(cells), np.int64)
    seen: dict[Any, int] = {}
    values: list[Any] = []
    for row, value in enumerate(cells.tolist() if cells.dtype.kind in "biufUS" else cells):
        try:
            code = seen.get(value)
        except TypeError:
            raise TypeError(
                f"column {name!r} holds a {type(value).__name__} in row {row}, but every cell of the argument "
                "must be a string, a date, a number or missing: turn it into several columns."
            ) from None
        if code is None:
            code = -1 if is_missing(value) else len(values)
            seen[value] = code
            if code >= 0:
                values.append(value)
        codes[row] = code
    return values, codes


def _kind_of(value: Any, name: str) -> str:
    """Return the kind of a cell."""
    if isinstance(value, str):
        return CATEGORY
    if isinstance(value, Real | Decimal | np.bool_):
        return NUMBER
    if isinstance(value, date | np.datetime64):
        return DATE
    if isinstance(value, time) or hasattr(value, "total_seconds"):
        return NUMBER
    raise TypeError(
        f"column {name!r} holds a {type(value).__name__}, {str(value)[:40]!r}, but every cell of the argument "
        "must be a string, a date, a number or missing: convert it."
    )


def _number_of(value: Any, name: str) -> float:
    """Convert a number, a date or a duration."""
    if isinstance(value, time):
        return value.hour * 3600.0 + value.minute * 60.0 + value.second
    if hasattr(value, "total_seconds"):
        return float(value.total_seconds())
    if isinstance(value, np.datetime64):
        return float(_seconds(np.array([value]))[0])
    if isinstance(value, date):
        return seconds_of(value)
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"column {name!r} holds {str(value)[:20]}..., too large.") from None


def level_of(value: Any) -> str:
    """Return the text of a level: 1, 1.0 and "1" are the same level."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _refuse_mixture(distinct: list[Any], name: str) -> None:
    examples = {_kind_of(value, name): value for value in distinct}
    shown = listed([f"{value!r}"[:40] for value in examples.values()])
    raise ValueError(
        f"column {name!r} mixes kinds of values, such as {shown}. Give all cells one type: "
        f"pandas.to_numeric(df[{name!r}], errors='coerce') turns what is no number into gaps, and "
        f"df[{name!r}].astype(str) makes all values categories."
    )


def _refuse_numbers(words: list[str], name: str) -> None:
    """Raise ValueError if all texts are numbers; a few different ones may well be codes."""
    if len(words) <= MAX_CODES:
        return
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return
    if all(np.isfinite(numbers)):
        raise ValueError(
            f"column {name!r} holds numbers stored as text, such as {words[0]!r}: convert them with "
            f"pandas.to_numeric(df[{name!r}]), or name the column in categorical_features if they are codes."
        )


def _not_a(kind: str, value: Any, name: str) -> ValueError:
    return ValueError(
        f"column {name!r} holds {str(value)[:40]!r}, but it held a {kind} in every training row: convert it, "
        "or leave the cell empty."
    )
