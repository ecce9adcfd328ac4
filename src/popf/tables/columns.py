"""What the cells of a column hold: numbers, text, nothing, labels; and how the column is read."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.formatting import counted, listed

#: What stands for a missing value, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_DIGITS = re.compile(r"[+-]?[0-9]+")
_WHOLE = re.compile(r"^([+-]?[0-9]+)\.0+$")
#: A column of text with more different values than this is no category if there are many for its rows.
MANY_VALUES = 50
#: How many rows a table must have, and how many values a column, before a column is called an id.
MANY_ROWS, MANY_GROUPS = 20, 10
_ID = re.compile(r"(?:^|[ _.-])(?:id|ID|Id)$|[a-z]I[dD]$")

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[ap]m)?(?: ?z|[+-]\d\d:?\d\d)?"
_DAYS = (
    r"\d{4}[-/]\d{1,2}(?:[-/]\d{1,2})?",
    r"\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}",
    rf"\d{{1,2}}[ -]{_MONTH}(?:[ -]\d{{2,4}})?",
    rf"{_MONTH}[ -](?:\d{{1,2}},? )?\d{{4}}",
)
DATES, DECIMAL_COMMA = "dates or times", "numbers with a decimal comma"
#: Text that is no category but a number or a date in disguise; the first pattern that most cells follow counts.
DISGUISES = {
    DATES: re.compile(rf"(?:{'|'.join(_DAYS)})(?:[t ]{_CLOCK})?|{_CLOCK}"),
    "percentages": re.compile(r"[+-]?\d+(?:[.,]\d+)? ?%"),
    "numbers with thousands separators": re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?"),
    DECIMAL_COMMA: re.compile(r"[+-]?\d*,\d+"),
    "amounts": re.compile(
        r"[a-z]{0,2}[$€£¥] ?[+-]?\d[\d.,']*|[+-]?\d[\d.,']* ?[$€£¥]|[+-]?\d{1,3}(?:[.']\d{3})+(?:,\d+)?"
    ),
}
#: What share of the cells must follow a pattern.
_MOST = 0.9


class Kind(NamedTuple):
    """What a column of text cells holds."""

    numbers: bool  # whether every cell that is not missing is a number
    n_present: int  # cells that are not missing
    n_numbers: int
    n_values: int  # different texts
    rows_each: int  # in how many rows every value stands, if all stand in equally many; else 0
    whole: bool  # whether every cell that is not missing is a whole number
    odd_row: int | None  # the first row, from 1, with a cell that is no number
    odd_cell: str  # what stands there
    looks_like: str  # the key in `DISGUISES` if it is a number or a date in disguise, else empty


class Column(NamedTuple):
    """How a column is read."""

    name: str
    role: str  # number or category for a feature, else target, id, dropped, weight, one per
    n_values: int  # different ones
    n_missing: int
    problem: str  # why it cannot be used, empty if it can
    note: str  # what should be looked at, but is no error


def is_missing(word: str, na: Sequence[str] = ()) -> bool:
    """Whether a text stands for a missing value; `na` are further marks."""
    plain = word.strip().lower()
    return plain in MISSING or any(plain == mark.strip().lower() for mark in na)


def is_number(word: str, decimal: str = ".") -> bool:
    """Whether a text is a number."""
    # Python's float would take "1_000" for a thousand, and "1.5" whatever the decimal mark; pandas would not.
    if "_" in word or (decimal != "." and "." in word):
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
    # "1.0" is the category 1, which a column of numbers with gaps has become.
    plain = (_WHOLE.sub(r"\1", word) for word in words)
    cleaned[:] = [*(np.nan if is_missing(word, na) else word for word in plain), np.nan]
    return cleaned[codes]


def kind_of(column: Any, na: Sequence[str] = (), decimal: str = ".") -> Kind:
    """Tell whether a pandas Series of text holds numbers, and if not, where it does not."""
    words, codes = _distinct(column)
    absent = np.array([*(is_missing(word, na) for word in words), True])
    number = np.array([*(is_number(word, decimal) for word in words), False]) & ~absent
    n_each = np.append(np.bincount(codes + 1, minlength=len(absent))[1:], 0)  # of a null, -1, none
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
        looks_like=_disguise(odd, n_present, n_numbers),
    )


def _disguise(odd: list[tuple[str, int]], n_present: int, n_numbers: int) -> str:
    """Name what most texts, given with their counts, look like; `n_numbers` other cells are plain numbers."""
    for name, pattern in DISGUISES.items():
        n_like = sum(n for word, n in odd if pattern.fullmatch(word))
        if n_like and n_like + n_numbers >= _MOST * n_present:
            return name
    return ""


def column_of(name: str, kind: Kind, n_rows: int, role: str | None, categorical: bool) -> Column:
    """Tell how a column is read: in its role or, with None, as a feature; `categorical` if the user says so."""
    problem = note = ""
    if role is None:
        role = "number" if kind.numbers and not categorical else "category"
        if not categorical or not kind.n_present:
            problem = _problem(name, kind, n_rows)
        if not categorical and not problem:
            note = _note(name, kind, n_rows)
    return Column(name, role, kind.n_values, n_rows - kind.n_present, problem, note)


def _problem(name: str, kind: Kind, n_rows: int) -> str:
    """Tell why a column cannot be used: empty, numbers or dates as text, a stray word, too many texts."""
    drop, category, carried = f"`drop={[name]}`", f"`categorical={[name]}`", f"`id={[name]}`"
    if kind.n_present == 0:
        return f"column {name!r} holds nothing at all: leave it out by {drop}."
    if kind.numbers:
        return ""
    looks_like = f"column {name!r} holds {kind.looks_like}, such as {kind.odd_cell!r}"
    if kind.looks_like == DATES:
        return (
            f"{looks_like}: put numbers in its place (the month, the days since some day), carry it "
            f"through by {carried}, leave it out by {drop}, or make it categories by {category}."
        )
    if kind.looks_like == DECIMAL_COMMA:
        return f"{looks_like}: `decimal=','` reads them."
    if kind.looks_like:
        return (
            f"{looks_like}: write them as plain numbers in the file, leave the column out by {drop}, or make "
            f"it categories by {category}."
        )
    if kind.n_numbers >= 0.5 * kind.n_present:
        return (
            f"column {name!r} holds numbers, but {kind.odd_cell!r} in row {kind.odd_row}. Correct it, or say "
            f"what it is: `na={[kind.odd_cell]}` for a missing value, {category} for categories."
        )
    # Every value becomes a column of 0 and 1, which some rows should share.
    if kind.n_values > max(MANY_VALUES, min(0.1 * n_rows, 20 * MANY_VALUES)):
        return (
            f"column {name!r} holds {kind.n_values} different texts in {n_rows} rows (such as "
            f"{kind.odd_cell!r}): carry it through by {carried}, leave it out by {drop}, or insist by "
            f"{category}."
        )
    return ""


def _note(name: str, kind: Kind, n_rows: int) -> str:
    """Call out a feature that looks like an id: by its name, another in every row, or equal groups of rows."""
    if n_rows < MANY_ROWS or kind.n_values < MANY_GROUPS or (kind.numbers and not kind.whole):
        return ""
    if not kind.rows_each:
        called = f"{name!r} is called an id, and is used as a feature. If it is one: `id={[name]}`."
        return called if _ID.search(name) else ""
    if kind.rows_each == 1:
        return (
            f"{name!r} has another whole number in every row, as an id has, and is used as a feature. If it "
            f"is one: `id={[name]}`."
        )
    return (
        f"{name!r} has {kind.n_values:,} values in {kind.rows_each} rows each, as ids of rows that belong "
        f"together have, and is used as a feature. If it is one: `id={[name]}`, or `one_per={name!r}`."
    )


def _distinct(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different texts of a column, stripped, and which of them each row holds; -1 for a null."""
    import pandas

    codes, values = pandas.factorize(column)
    return [str(value).strip() for value in values], codes


def labels_of(cells: Sequence[str], name: str, rows: Any = None) -> NDArray[Any]:
    """Make labels of a column of text: integers if all are, else numbers if all are, else text.

    `rows` tells where the cells stand in the file, from 0; None for all rows in order.
    """
    words, codes = np.unique([str(cell).strip() for cell in cells], return_inverse=True)
    absent = np.flatnonzero(np.array([is_missing(word) for word in words])[codes])
    if len(absent):
        first = absent[0] if rows is None else rows[absent[0]]
        raise ValueError(
            f"column {name!r} has no label in {counted(len(absent), 'row')}, the first is row {first + 1}: "
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

    find = _finder(classes)
    codes, values = pandas.factorize(pandas.Series(list(cells), dtype=object))
    found = np.array([*map(find, values), -1], dtype=np.int64)
    matched: NDArray[np.int64] = found[codes]
    strange = np.flatnonzero(matched < 0)
    if len(strange):
        row = int(strange[0])
        value = "" if codes[row] < 0 else str(values[codes[row]])
        if is_missing(value):
            said = f"{where} holds no label in row {row + 1}"
        else:
            said = f"{where} holds the label {value!r} (row {row + 1}), never seen in training"
        raise ValueError(
            f"{said}; the model knows {listed(classes.tolist())}. Correct or leave out "
            f"{counted(len(strange), 'row')}."
        )
    return matched


class RowGroups(NamedTuple):
    """Rows that belong together: those with the same value of an id."""

    id: str | None  # its name; None if no id repeats, where each row is a group of its own
    numbers: NDArray[np.int64]  # of the groups, from 0, by row

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self.numbers.max(initial=-1)) + 1

    def take(self, rows: NDArray[np.int64]) -> "RowGroups":
        """Keep some of the rows."""
        return RowGroups(self.id, np.unique(self.numbers[rows], return_inverse=True)[1])


def group_rows(ids: Mapping[str, Sequence[Any]], n_rows: int) -> RowGroups:
    """Group rows by the first of some ids whose values repeat, but are not all the same."""
    for name, values in ids.items():
        seen: dict[str, int] = {}
        numbers = [seen.setdefault(str(value), len(seen)) for value in values]
        if 1 < len(seen) < n_rows:
            return RowGroups(name, np.array(numbers))
    return RowGroups(None, np.arange(n_rows))


def find_class(word: str, classes: NDArray[Any]) -> int:
    """Find the class that a user means by the parameter `positive`."""
    code = _finder(classes)(word)
    if code < 0:
        raise ValueError(
            f"`positive={word!r}` is no class of the target: use one of {listed(classes.tolist())}."
        )
    return code


def _finder(classes: NDArray[Any]) -> Callable[[Any], int]:
    """Make a function that finds the code of a label, by its text or else by its value; -1 for none."""
    # By text first: "1" and "01" are two.
    texts = {str(label): code for code, label in enumerate(classes.tolist())}
    values = {_comparable(label): code for code, label in enumerate(classes.tolist())}
    return lambda label: texts.get(str(label).strip(), values.get(_comparable(label), -1))


def _comparable(label: Any) -> Any:
    """Make "1", " 1" and 1.0 equal; text that is no number stays as it is."""
    word = str(label).strip()
    if word.lower() in ("true", "false"):
        return word.lower()
    return float(word) if is_number(word) else word
