"""Cells of a table: numbers, text, nothing; and labels that are found again."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.tables.formats.table import MISSING, is_number

#: A column of text with more different values than this, and than half of its rows, is no category.
MANY_VALUES = 50
_SHOWN = 5


class Kind(NamedTuple):
    """What a column of text cells holds.

    Attributes
    ----------
    numbers : bool
        Whether every cell that is not missing is a number.
    n_missing, n_numbers, n_present : int
        How many cells are missing, are numbers, are not missing.
    odd_row : int or None
        The first row (from 1) with a cell that is no number.
    odd_cell : str
        What stands there.
    n_values : int
        How many different texts there are; counted only in a column that is not of numbers.
    """

    numbers: bool
    n_missing: int
    n_numbers: int
    n_present: int
    odd_row: int | None
    odd_cell: str
    n_values: int


def marks(extra: Sequence[str] = ()) -> frozenset[str]:
    """Give what stands for a missing value, in lower case.

    Examples
    --------
    >>> from popf.tables.cells import marks
    >>> "n/a" in marks(), "-" in marks(), "-" in marks(["-"])
    (True, False, True)
    """
    return MISSING | {mark.strip().lower() for mark in extra}


def mark_spellings(extra: Sequence[str] = ()) -> list[str]:
    """List the marks in the spellings that occur: lower, upper, capital, and as the user gave them.

    Examples
    --------
    >>> from popf.tables.cells import mark_spellings
    >>> [word for word in mark_spellings() if word.lower() == "null"]
    ['NULL', 'Null', 'null']
    """
    words = marks(extra)
    spelled = {form(word) for word in words for form in (str.lower, str.upper, str.capitalize)}
    return sorted({*spelled, "NaN", *(word.strip() for word in extra)})


def missing_cells(column: Any, extra: Sequence[str] = ()) -> NDArray[np.bool_]:
    """Say which cells of a pandas Series of text are missing.

    Examples
    --------
    >>> import pandas
    >>> from popf.tables.cells import missing_cells
    >>> missing_cells(pandas.Series(["1", " NA", "", "x"]))
    array([False,  True,  True, False])
    """
    values, codes = _distinct(column)
    known = marks(extra)
    missing = np.array([value.strip().lower() in known for value in values] + [True])
    return missing[codes]


def text_cells(column: Any, extra: Sequence[str] = ()) -> NDArray[Any]:
    """Give text without spaces around it, and NaN where it is missing.

    Examples
    --------
    >>> import pandas
    >>> from popf.tables.cells import text_cells
    >>> text_cells(pandas.Series([" red", "", "NA"]))
    array(['red', nan, nan], dtype=object)
    """
    values, codes = _distinct(column)
    known = marks(extra)
    words: list[Any] = [value.strip() for value in values]
    cleaned = np.empty(len(words) + 1, dtype=object)
    cleaned[:-1] = [np.nan if word.lower() in known else word for word in words]
    cleaned[-1] = np.nan
    return cleaned[codes]


def kind_of(column: Any, extra: Sequence[str] = (), decimal: str = ".") -> Kind:
    """Look at a pandas Series of text, and say whether it is numbers.

    Examples
    --------
    >>> import pandas
    >>> from popf.tables.cells import kind_of
    >>> kind_of(pandas.Series(["1", "", "2.5"])).numbers
    True
    >>> kind = kind_of(pandas.Series(["1", "2", "n.d."]))
    >>> kind.numbers, kind.odd_row, kind.odd_cell
    (False, 3, 'n.d.')
    """
    values, codes = _distinct(column)
    known = marks(extra)
    words = [value.strip() for value in values]
    # A code of -1, a null, finds the last entry.
    absent = np.array([word.lower() in known for word in words] + [True])
    number = np.array([_is_number(word, decimal) for word in words] + [False])
    missing = absent[codes]
    good = number[codes] & ~missing
    odd = ~good & ~missing
    n_present = int((~missing).sum())
    row = int(np.flatnonzero(odd)[0]) if odd.any() else None
    cell = "" if row is None else words[codes[row]]
    n_values = len(np.unique(codes[~missing])) if row is not None else 0
    return Kind(
        row is None,
        int(missing.sum()),
        int(good.sum()),
        n_present,
        None if row is None else row + 1,
        cell,
        n_values,
    )


def _distinct(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Give the different texts of a column, and which of them each row holds; -1 for a null."""
    import pandas

    codes, values = pandas.factorize(column)
    return [str(value) for value in values], codes


def _is_number(word: str, decimal: str) -> bool:
    return is_number(word if decimal == "." else word.replace(decimal, "."))


def match_labels(cells: Sequence[Any], classes: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Find labels of a file among the classes of a model, by their text or their value.

    Parameters
    ----------
    cells : sequence
        Labels as they stand in the file.
    classes : ndarray
        Those of the model.
    where : str
        What an error calls the column.

    Returns
    -------
    ndarray of int
        Positions in `classes`.

    Raises
    ------
    ValueError
        If a label is none of the classes; it is named, with its row.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.tables.cells import match_labels
    >>> match_labels(["1", "-1.0", " 1"], np.array([-1, 1]), "column 'stolen'")
    array([1, 0, 1])
    """
    import pandas

    known = {_plain(label): code for code, label in enumerate(classes.tolist())}
    codes, values = pandas.factorize(pandas.Series(list(cells), dtype=object))
    found = np.array([known.get(_plain(value), -1) for value in values] + [-1], dtype=np.int64)
    matched: NDArray[np.int64] = found[codes]
    strange = np.flatnonzero(matched < 0)
    if len(strange):
        row = int(strange[0])
        value = None if codes[row] < 0 else values[codes[row]]
        every = ", ".join(str(label) for label in classes.tolist()[:_SHOWN])
        if value is None or str(value).strip().lower() in MISSING:
            said = f"{where} holds no label in row {row + 1}"
        else:
            said = f"{where} holds the label {str(value)!r} (row {row + 1}), never seen in training"
        raise ValueError(
            f"{said}; the model knows {every}{' ...' if len(classes) > _SHOWN else ''}. Mend or leave "
            f"out {len(strange)} row{'s' if len(strange) > 1 else ''}."
        )
    return matched


def find_class(word: str, classes: NDArray[Any]) -> int:
    """Find the class that a person means by a word.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.tables.cells import find_class
    >>> find_class("1", np.array([-1, 1]))
    1
    """
    known = {_plain(label): code for code, label in enumerate(classes.tolist())}
    if _plain(word) not in known:
        every = " or ".join(str(label) for label in classes.tolist()[:_SHOWN])
        raise ValueError(f"`positive={word!r}` is no class of the target: use {every}.")
    return known[_plain(word)]


def _plain(label: Any) -> Any:
    """Make one value of "1", " 1" and 1.0; text that is no number stays as it is."""
    if isinstance(label, bool | np.bool_):
        return str(bool(label)).lower()
    word = str(label).strip()
    if word.lower() in ("true", "false"):
        return word.lower()
    try:
        return float(word) if "_" not in word else word
    except ValueError:
        return word
