"""Named columns turned into features and a target: what CSV and Parquet have in common."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.formatting import listed, near_words

Encoding = Literal["onehot", "ordinal"]
#: What stands for a value that is not known, in a column of numbers.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)")


class Table(NamedTuple):
    """Features, target and the names of the features.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Unknown values are NaN.
    y : ndarray of shape (n_samples,)
        Integers, real numbers or text.
    feature_names : list of str
    target_name : str
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    feature_names: list[str]
    target_name: str


def check_names(names: Sequence[str], where: str) -> None:
    """Raise ValueError where a column's name stands twice, or is empty."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{where} has several columns named {listed(twice)}: give every column its own name."
        )


def assemble(
    columns: Mapping[str, Sequence[Any] | NDArray[Any]],
    target: str | int | None,
    encode: Encoding | None,
    where: str,
) -> Table:
    """Split columns into features and target, and turn the features into numbers.

    Parameters
    ----------
    columns : dict of str to sequence
        Text, numbers or None, by the name of the column.
    target : str, int or None
        Name or position of the target; None for the last column.
    encode : {"onehot", "ordinal"} or None
        What becomes of columns of text; None for an error that names them.
    where : str
        What an error calls the source.

    Examples
    --------
    >>> from popf.tables.formats.table import assemble
    >>> columns = {"size": ["1.5", "2"], "colour": ["red", "blue"], "label": ["no", "yes"]}
    >>> table = assemble(columns, "label", "onehot", "the example")
    >>> table.feature_names
    ['size', 'colour=blue', 'colour=red']
    >>> table.X
    array([[1.5, 0. , 1. ],
           [2. , 1. , 0. ]])
    """
    if encode not in (None, "onehot", "ordinal"):
        raise ValueError(f"`encode` must be 'onehot', 'ordinal' or None, not {encode!r}.")
    target_name = _target_name(list(columns), target, where)
    y = labels_of(columns[target_name], target_name, where)
    blocks: list[NDArray[np.float64]] = []
    feature_names: list[str] = []
    refused: list[str] = []
    for name, values in columns.items():
        if name == target_name:
            continue
        numbers = _numbers(values)
        if isinstance(numbers, str):
            if encode is None:
                refused.append(f"{name} (for instance {numbers!r})")
                continue
            block, words = _encoded(values, encode)
            blocks.append(block)
            feature_names += [name if word is None else f"{name}={word}" for word in words]
        else:
            blocks.append(numbers[:, None])
            feature_names.append(name)
    if refused:
        raise ValueError(
            f"{where} has columns that are not numbers: {listed(refused)}. Leave them out, or "
            "encode them: `encode='onehot'` makes a column of 0 and 1 for every value, "
            "`encode='ordinal'` numbers the values in sorted order."
        )
    if not blocks:
        raise ValueError(f"{where} has no column but the target {target_name!r}: nothing to learn.")
    check_names(feature_names, f"{where}, encoded,")
    return Table(np.ascontiguousarray(np.hstack(blocks)), y, feature_names, target_name)


def _target_name(names: list[str], target: str | int | None, where: str) -> str:
    if target is None:
        return names[-1]
    if isinstance(target, str):
        if target in names:
            return target
        raise ValueError(
            f"`target`: {where} has no column {target!r}{near_words(target, names)} "
            f"Its columns: {listed(names)}."
        )
    if isinstance(target, bool) or not -len(names) <= target < len(names):
        raise ValueError(
            f"`target` must be the name of a column of {where}, or a position from 0 to "
            f"{len(names) - 1}, not {target!r}."
        )
    return names[target]


def is_missing(value: Any) -> bool:
    """Say whether a cell holds nothing."""
    if value is None:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    return isinstance(value, str) and value.strip().lower() in MISSING


def is_number(word: str) -> bool:
    """Say whether a text is a number.

    Examples
    --------
    >>> from popf.tables.formats.table import is_number
    >>> is_number("1e3"), is_number("1_000"), is_number("a")
    (True, False, False)
    """
    # Python's float would take "1_000" for a thousand, and pandas would not.
    if "_" in word:
        return False
    try:
        float(word)
    except ValueError:
        return False
    return True


def _numbers(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.float64] | str:
    """Give a column as numbers, or the first of its cells that is none."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values.astype(np.float64)
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        if is_missing(value):
            numbers[row] = np.nan
            continue
        try:
            # Python's float would take "1_000" for a thousand.
            if isinstance(value, str) and "_" in value:
                return value
            numbers[row] = float(value)
        except (TypeError, ValueError):
            return str(value)
    return numbers


def labels_of(values: Sequence[Any] | NDArray[Any], name: str, where: str) -> NDArray[Any]:
    """Give the target as integers where all are, else as numbers where all are, else as text.

    Parameters
    ----------
    values : sequence
        The cells.
    name, where : str
        What an error calls the column, and the source.

    Examples
    --------
    >>> from popf.tables.formats.table import labels_of
    >>> labels_of(["1", "-1"], "label", "the example").tolist()
    [1, -1]
    >>> labels_of(["01", "1"], "label", "the example").tolist()
    ['01', '1']
    """
    absent = [row for row, value in enumerate(values) if is_missing(value)]
    if absent:
        raise ValueError(
            f"{where} has no label (column {name!r}) in {len(absent)} rows, the first is row "
            f"{absent[0] + 1}: fill them in, or leave those rows out."
        )
    if isinstance(values, np.ndarray) and values.dtype.kind == "b":
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return whole(values)
    text = [str(value).strip() for value in values]
    # "01" is a name, not a number: two labels must never become one.
    if all(_INTEGER.fullmatch(word) for word in text):
        numbers = [int(word) for word in text]
        if all(-(2**63) <= number < 2**63 for number in numbers):
            return np.array(numbers, dtype=np.int64)
        return np.array(text)
    try:
        reals = np.array([float(word) for word in text])
    except ValueError:
        return np.array(text)
    same_number = len(set(reals.tolist())) == len(set(text))
    return whole(reals) if same_number and np.isfinite(reals).all() else np.array(text)


def whole(values: NDArray[Any]) -> NDArray[Any]:
    """Turn real numbers into integers where nothing is lost by it.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.tables.formats.table import whole
    >>> whole(np.array([-1.0, 1.0]))
    array([-1,  1])
    >>> whole(np.array([0.5, 1.0]))
    array([0.5, 1. ])
    """
    if values.dtype.kind == "f" and np.all(np.abs(values) <= 2.0**53):
        integers = values.astype(np.int64)
        return integers if np.array_equal(integers, values) else values
    return values


def _encoded(
    values: Sequence[Any] | NDArray[Any], encode: Encoding
) -> tuple[NDArray[np.float64], list[str | None]]:
    """Encode a column of text; an unknown value is a value of its own, the empty text."""
    text = np.array(["" if value is None else str(value).strip() for value in values])
    words, codes = np.unique(text, return_inverse=True)
    if encode == "ordinal":
        return codes.astype(np.float64)[:, None], [None]
    return np.eye(len(words))[codes], [str(word) for word in words]
