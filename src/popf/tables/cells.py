"""What a cell of a table holds: a number, text, nothing, or a label."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: What stands for a missing value, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_SHOWN = 5


class Kind(NamedTuple):
    """What a column of text cells holds."""

    numbers: bool  # whether every cell that is not missing is a number
    n_present: int  # cells that are not missing
    n_numbers: int
    odd_row: int | None  # the first row, from 1, with a cell that is no number
    odd_cell: str  # what stands there
    n_values: int  # different texts, in a column that is not of numbers


def is_missing(word: str, na: Sequence[str] = ()) -> bool:
    """Whether a text stands for a missing value; `na` are further marks."""
    plain = word.strip().lower()
    return plain in MISSING or any(plain == mark.strip().lower() for mark in na)


def is_number(word: str, decimal: str = ".") -> bool:
    """Whether a text is a number."""
    if "_" in word:  # Python's float would take "1_000" for a thousand, and pandas would not
        return False
    try:
        float(word if decimal == "." else word.replace(decimal, "."))
    except ValueError:
        return False
    return True


def na_spellings(na: Sequence[str] = ()) -> list[str]:
    """List the marks of missing values in all usual spellings, for pandas, which compares exactly."""
    words = MISSING | {mark.strip().lower() for mark in na}
    spelled = {form(word) for word in words for form in (str.lower, str.upper, str.capitalize)}
    return sorted({*spelled, "NaN", *(word.strip() for word in na)})


def text_cells(column: Any, na: Sequence[str] = ()) -> NDArray[Any]:
    """Strip the spaces around text, and put NaN where it is missing."""
    words, codes = _distinct(column)
    cleaned = np.empty(len(words) + 1, dtype=object)
    cleaned[:] = [*(np.nan if is_missing(word, na) else word for word in words), np.nan]
    return cleaned[codes]


def kind_of(column: Any, na: Sequence[str] = (), decimal: str = ".") -> Kind:
    """Tell whether a pandas Series of text holds numbers, and if not, where it does not."""
    words, codes = _distinct(column)
    missing = np.array([*(is_missing(word, na) for word in words), True])[codes]
    number = np.array([*(is_number(word, decimal) for word in words), False])[codes] & ~missing
    odd = np.flatnonzero(~number & ~missing)
    n_present, n_numbers = int((~missing).sum()), int(number.sum())
    if not len(odd):
        return Kind(True, n_present, n_numbers, None, "", 0)
    first = int(odd[0])
    n_values = len(np.unique(codes[~missing]))
    return Kind(False, n_present, n_numbers, first + 1, words[codes[first]], n_values)


def _distinct(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different texts of a column, stripped, and which of them each row holds; -1 for a null."""
    import pandas

    codes, values = pandas.factorize(column)
    return [str(value).strip() for value in values], codes


def labels_of(cells: Sequence[str], name: str, where: str, rows: Any = None) -> NDArray[Any]:
    """Make labels of a column of text: integers if all are, else numbers if all are, else text.

    Parameters
    ----------
    cells : sequence of str
    name, where : str
        What an error calls the column, and the file.
    rows : sequence of int, default=None
        Where the cells stand in the file, from 0; None for all rows in order.
    """
    words, codes = np.unique([str(cell).strip() for cell in cells], return_inverse=True)
    absent = np.flatnonzero(np.array([is_missing(word) for word in words])[codes])
    if len(absent):
        first = absent[0] if rows is None else rows[absent[0]]
        raise ValueError(
            f"{where} has no label (column {name!r}) in {len(absent)} rows, the first is row {first + 1}: "
            "fill them in, or leave those rows out."
        )
    return _as_numbers(words)[codes]


def _as_numbers(words: NDArray[Any]) -> NDArray[Any]:
    """Turn different texts into as many different numbers, if they are numbers."""
    # "01" is a name, not a number: two labels must never become one.
    if all(_INTEGER.fullmatch(word) for word in words):
        integers = [int(word) for word in words]
        fit = all(-(2**63) <= number < 2**63 for number in integers)
        return np.array(integers, dtype=np.int64) if fit else words
    try:
        reals = words.astype(np.float64)
    except ValueError:
        return words
    return whole(reals) if len(set(reals)) == len(words) and np.isfinite(reals).all() else words


def whole(values: NDArray[Any]) -> NDArray[Any]:
    """Turn real numbers into integers if nothing is lost by it."""
    if values.dtype.kind == "f" and np.all(np.abs(values) <= 2.0**53):
        integers = values.astype(np.int64)
        return integers if np.array_equal(integers, values) else values
    return values


def match_labels(cells: Sequence[Any], classes: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Find labels of a file among the classes of a model, by text or value; return their positions.

    `where` is what an error calls the column.
    """
    import pandas

    known = {_plain(label): code for code, label in enumerate(classes.tolist())}
    codes, values = pandas.factorize(pandas.Series(list(cells), dtype=object))
    found = np.array([known.get(_plain(value), -1) for value in values] + [-1], dtype=np.int64)
    matched: NDArray[np.int64] = found[codes]
    strange = np.flatnonzero(matched < 0)
    if len(strange):
        row = int(strange[0])
        value = "" if codes[row] < 0 else str(values[codes[row]])
        if is_missing(value):
            said = f"{where} holds no label in row {row + 1}"
        else:
            said = f"{where} holds the label {value!r} (row {row + 1}), never seen in training"
        every = ", ".join(str(label) for label in classes.tolist()[:_SHOWN])
        raise ValueError(
            f"{said}; the model knows {every}{' ...' if len(classes) > _SHOWN else ''}. Mend or leave "
            f"out {len(strange)} row{'s' if len(strange) > 1 else ''}."
        )
    return matched


def find_class(word: str, classes: NDArray[Any]) -> int:
    """Find the class that a user means by the parameter `positive`."""
    known = {_plain(label): code for code, label in enumerate(classes.tolist())}
    if _plain(word) not in known:
        every = " or ".join(str(label) for label in classes.tolist()[:_SHOWN])
        raise ValueError(f"`positive={word!r}` is no class of the target: use {every}.")
    return known[_plain(word)]


def _plain(label: Any) -> Any:
    """Make one value of "1", " 1" and 1.0; text that is no number stays as it is."""
    word = str(label).strip()
    if word.lower() in ("true", "false"):
        return word.lower()
    return float(word) if is_number(word) else word
