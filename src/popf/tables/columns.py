"""What a column contains (numbers, text, missing values, labels), and how it is read."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import isinf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.dates import date_format
from popf.formatting import counted, listed

#: Texts that mean a missing value, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_DIGITS = re.compile(r"[+-]?[0-9]+")
_WHOLE = re.compile(r"^([+-]?[0-9]+)\.0+$")
#: A target with more distinct values than this holds no classes if it has few rows per value.
MANY_VALUES = 50
#: Minimum number of rows of the table and of values of the column for a column to be reported as a likely id.
MANY_ROWS, MANY_GROUPS = 20, 10
_ID = re.compile(r"(?:^|[ _.-])(?:id|ID|Id)$|[a-z]I[dD]$")

DATES, DECIMAL_COMMA = "dates or times", "numbers with a decimal comma"
#: Patterns of numbers written as text; the first one that matches most cells is reported.
DISGUISES = {
    "percentages": re.compile(r"[+-]?\d+(?:[.,]\d+)? ?%"),
    "numbers with thousands separators": re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?"),
    DECIMAL_COMMA: re.compile(r"[+-]?\d*,\d+"),
    "amounts": re.compile(
        r"[a-z]{0,2}[$€£¥] ?[+-]?\d[\d.,']*|[+-]?\d[\d.,']* ?[$€£¥]|[+-]?\d{1,3}(?:[.']\d{3})+(?:,\d+)?"
    ),
}
#: Fraction of the cells that must match a pattern.
_MOST = 0.9


class Kind(NamedTuple):
    """What a column of text cells contains."""

    numbers: bool  # whether all present cells are numbers
    n_present: int  # number of cells that are not missing
    n_numbers: int
    n_values: int  # number of distinct values
    rows_each: int  # number of rows per value, if it is the same for all values; else 0
    whole: bool  # whether all present cells are integers
    odd_row: int | None  # the first row, from 1, whose cell is not a number
    odd_cell: str  # the text of that cell
    looks_like: str  # `DATES`, a key of `DISGUISES` for numbers written as text, or empty


class Column(NamedTuple):
    """How a column is read."""

    name: str
    role: str  # number, category or date for features, else target, id, dropped, weight or one per
    n_values: int  # number of distinct values
    n_missing: int
    problem: str  # why the column cannot be used; empty if it can
    note: str  # a possible mistake that is not an error; may be empty


def is_missing(word: str, na: Sequence[str] = ()) -> bool:
    """Return whether a text means a missing value; `na` lists further such texts."""
    plain = word.strip().lower()
    return plain in MISSING or any(plain == mark.strip().lower() for mark in na)


def is_number(word: str, decimal: str = ".") -> bool:
    """Return whether a text is a number; 1e400 is none, but inf is."""
    # Unlike pandas, Python's float accepts "1_000", and "1.5" with any decimal separator.
    if "_" in word or (decimal != "." and "." in word):
        return False
    try:
        number = float(word if decimal == "." else word.replace(decimal, "."))
    except ValueError:
        return False
    return not (isinf(number) and word.strip()[-1].isdigit())


def na_spellings(na: Sequence[str] = ()) -> list[str]:
    """Return the texts for missing values in all usual spellings, as pandas matches them exactly."""
    words = MISSING | {mark.strip().lower() for mark in na}
    spelled = {form(word) for word in words for form in (str.lower, str.upper, str.capitalize)}
    return sorted({*spelled, "NaN", *(word.strip() for word in na)})


def text_cells(column: Any, na: Sequence[str] = ()) -> NDArray[Any]:
    """Strip the spaces around text, and replace missing text by NaN."""
    words, codes = _distinct(column)
    cleaned = np.empty(len(words) + 1, dtype=object)
    # A column of integers with missing values may have become floats: "1.0" is the category 1.
    plain = (_WHOLE.sub(r"\1", word) for word in words)
    cleaned[:] = [*(np.nan if is_missing(word, na) else word for word in plain), np.nan]
    return cleaned[codes]


def kind_of(column: Any, na: Sequence[str] = (), decimal: str = ".") -> Kind:
    """Describe a pandas Series of text: whether it holds numbers, and the first cell that is not one."""
    words, codes = _distinct(column)
    absent = np.array([*(is_missing(word, na) for word in words), True])
    number = np.array([*(is_number(word, decimal) for word in words), False]) & ~absent
    n_each = np.append(np.bincount(codes + 1, minlength=len(absent))[1:], 0)  # nulls have code -1
    present = np.flatnonzero(~absent & (n_each > 0))
    counts = n_each[present]
    n_present, n_numbers = int(counts.sum()), int(n_each[number].sum())
    odd = [(words[code].lower(), int(n_each[code])) for code in present if not number[code]]
    rows = np.flatnonzero(~number[codes] & ~absent[codes])
    return Kind(
        numbers=not odd,
        n_present=n_present,
        n_numbers=n_numbers,
        n_values=len(present),
        rows_each=int(counts[0]) if len(counts) and (counts == counts[0]).all() else 0,
        whole=n_present > 0 and all(_DIGITS.fullmatch(words[code]) for code in present),
        odd_row=int(rows[0]) + 1 if odd else None,
        odd_cell=words[codes[rows[0]]] if odd else "",
        looks_like=DATES
        if odd and date_format([words[code] for code in present])
        else _disguise(odd, n_present, n_numbers),
    )


def _disguise(odd: list[tuple[str, int]], n_present: int, n_numbers: int) -> str:
    """Return the key of the first pattern that most cells match, else an empty string.

    `odd` are the texts that are not numbers, with their counts; `n_numbers` cells are numbers.
    """
    for name, pattern in DISGUISES.items():
        n_like = sum(n for word, n in odd if pattern.fullmatch(word))
        if n_like and n_like + n_numbers >= _MOST * n_present:
            return name
    return ""


def column_of(name: str, kind: Kind, n_rows: int, role: str | None, categorical: bool) -> Column:
    """Return how a column is read: in its role or, with None, as a feature, `categorical` on request."""
    problem = note = ""
    if role is None:
        role = "number" if kind.numbers and not categorical else "category"
        if kind.n_present == 0:
            role, note = "dropped", f"column {name!r} is empty, and left out."
        elif not categorical:
            role = "date" if kind.looks_like == DATES else role
            problem = _problem(name, kind)
            note = _note(name, kind, n_rows)
    return Column(name, role, kind.n_values, n_rows - kind.n_present, problem, note)


def _problem(name: str, kind: Kind) -> str:
    """Return why a column cannot be used: numbers as text, or a stray word."""
    drop, category = f"`drop={[name]}`", f"`categorical={[name]}`"
    if kind.numbers or kind.looks_like == DATES:
        return ""
    looks_like = f"column {name!r} holds {kind.looks_like}, such as {kind.odd_cell!r}"
    if kind.looks_like == DECIMAL_COMMA:
        return f"{looks_like}: `decimal=','` reads them."
    if kind.looks_like:
        return (
            f"{looks_like}: write them as plain numbers in the file, leave the column out with {drop}, or "
            f"treat it as categories with {category}."
        )
    if kind.n_numbers >= 0.5 * kind.n_present:
        return (
            f"column {name!r} holds numbers, but {kind.odd_cell!r} in row {kind.odd_row}. Correct it, or use "
            f"`na={[kind.odd_cell]}` if it means a missing value, or {category} if the column holds categories."
        )
    return ""


def _note(name: str, kind: Kind, n_rows: int) -> str:
    """Return a note on a feature that looks like an id: by its name, or as each value has equally many rows."""
    if n_rows < MANY_ROWS or kind.n_values < MANY_GROUPS or kind.looks_like == DATES:
        return ""
    if kind.numbers and not kind.whole:
        return ""
    if not kind.numbers and 1 < n_rows < 2 * kind.n_values and not kind.rows_each:
        return (
            f"{name!r} holds {kind.n_values:,} different texts in {n_rows:,} rows, like names or remarks, but "
            f"is used as a feature. If it tells rows apart: `id={[name]}`, or `drop={[name]}`."
        )
    if not kind.rows_each:
        note = (
            f"{name!r} is named like an id, but used as a feature. If it is an id: `id={[name]}`."
        )
        return note if _ID.search(name) else ""
    if kind.rows_each == 1:
        return (
            f"{name!r} has a different value in every row, like an id, but is used as a feature. If it is an "
            f"id: `id={[name]}`."
        )
    return (
        f"{name!r} has {kind.n_values:,} values with {kind.rows_each} rows each, like an id of rows that "
        f"belong together, but is used as a feature. If it is an id: `id={[name]}`, or `one_per={name!r}`."
    )


def _distinct(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct texts of a column, stripped, and the code of each row; -1 for a null."""
    import pandas

    codes, values = pandas.factorize(column)
    return [str(value).strip() for value in values], codes


def labels_of(cells: Sequence[str], name: str, rows: Any = None) -> NDArray[Any]:
    """Convert a column of text to labels: integers if all are integers, else numbers if all are, else text.

    `rows` are the rows of the cells in the file, from 0; None for all rows in order.
    """
    words, codes = np.unique([str(cell).strip() for cell in cells], return_inverse=True)
    absent = np.flatnonzero(np.array([is_missing(word) for word in words])[codes])
    if len(absent):
        first = absent[0] if rows is None else rows[absent[0]]
        raise ValueError(
            f"column {name!r} has no label in {counted(len(absent), 'row')}, the first is row {first + 1}: "
            "fill them in, or leave these rows out."
        )
    return _as_numbers(words)[codes]


def _as_numbers(words: NDArray[Any]) -> NDArray[Any]:
    """Convert distinct texts to numbers if all are numbers and stay distinct."""
    # "01" stays text, so that it cannot become the same label as "1".
    if all(_INTEGER.fullmatch(word) for word in words):
        integers = [int(word) for word in words]
        fit = all(-(2**63) <= number < 2**63 for number in integers)
        return np.array(integers, dtype=np.int64) if fit else words
    try:
        floats = words.astype(np.float64)
    except ValueError:
        return words
    return whole(floats) if len(set(floats)) == len(words) and np.isfinite(floats).all() else words


def whole(values: NDArray[Any]) -> NDArray[Any]:
    """Convert floats to integers if all are integers."""
    if values.dtype.kind == "f" and np.all(np.abs(values) <= 2.0**53):
        integers = values.astype(np.int64)
        return integers if np.array_equal(integers, values) else values
    return values


def match_labels(cells: Sequence[Any], classes: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Return the positions of labels from a file among the classes of a model, matched by text or value.

    `where` names the column in error messages.
    """
    import pandas

    find = _finder(classes)
    codes, values = pandas.factorize(pandas.Series(list(cells), dtype=object))
    found = np.array([*map(find, values), -1], dtype=np.int64)
    matched: NDArray[np.int64] = found[codes]
    unmatched = np.flatnonzero(matched < 0)
    if len(unmatched):
        row = int(unmatched[0])
        value = "" if codes[row] < 0 else str(values[codes[row]])
        if is_missing(value):
            message = f"{where} has no label in row {row + 1}"
        else:
            message = f"{where} has the label {value!r} (row {row + 1}), not seen in training"
        raise ValueError(
            f"{message}; the classes are {listed(classes.tolist())}. Correct or leave out "
            f"{counted(len(unmatched), 'row')}."
        )
    return matched


class RowGroups(NamedTuple):
    """Rows that belong together: those with the same value of an id."""

    id: str | None  # name of the id; None if no id repeats, and each row is a group of its own
    numbers: NDArray[np.int64]  # the group of each row, from 0

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self.numbers.max(initial=-1)) + 1

    def take(self, rows: NDArray[np.int64]) -> "RowGroups":
        """Keep some of the rows."""
        return RowGroups(self.id, np.unique(self.numbers[rows], return_inverse=True)[1])


def group_rows(ids: Mapping[str, Sequence[Any]], n_rows: int) -> RowGroups:
    """Group rows by the first id whose values repeat but are not all equal."""
    for name, values in ids.items():
        seen: dict[str, int] = {}
        numbers = [seen.setdefault(str(value), len(seen)) for value in values]
        if 1 < len(seen) < n_rows:
            return RowGroups(name, np.array(numbers))
    return RowGroups(None, np.arange(n_rows))


def find_class(word: str, classes: NDArray[Any]) -> int:
    """Return the position of the class that the parameter `positive` names."""
    code = _finder(classes)(word)
    if code < 0:
        raise ValueError(
            f"`positive={word!r}` is not a class of the target: use one of {listed(classes.tolist())}."
        )
    return code


def _finder(classes: NDArray[Any]) -> Callable[[Any], int]:
    """Return a function that finds the position of a label by its text, else by its value; -1 if unknown."""
    # By text first: "1" and "01" may be two classes.
    texts = {str(label): code for code, label in enumerate(classes.tolist())}
    values = {_comparable(label): code for code, label in enumerate(classes.tolist())}
    return lambda label: texts.get(str(label).strip(), values.get(_comparable(label), -1))


def _comparable(label: Any) -> Any:
    """Convert a label for comparison: "1", " 1" and 1.0 become equal; other text is stripped."""
    word = str(label).strip()
    if word.lower() in ("true", "false"):
        return word.lower()
    return float(word) if is_number(word) else word
