"""Features and labels as arrays, made from a table."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.formatting import listed
from popf.tables.cells import labels_of
from popf.tables.table import ColumnTypes, Table, check_names


class Samples(NamedTuple):
    """Features, labels, and what they are called."""

    X: NDArray[np.float64]  # NaN where a value is missing
    y: NDArray[Any]  # integers, real numbers or text
    feature_names: list[str]
    target_name: str = "target"
    ids: NDArray[np.int64] | None = None  # of the samples, which LibOPF's and opfython's files have


def default_names(n_features: int) -> list[str]:
    """Name features ``x1``, ``x2``, ..."""
    return [f"x{number}" for number in range(1, n_features + 1)]


def samples_of(
    table: Table,
    target: str | int | None = None,
    encode: str | None = None,
    drop: Sequence[str] = (),
) -> Samples:
    """Split a table into features and labels; see `popf.tables.read` for `target` and `encode`."""
    if encode not in (None, "onehot", "ordinal"):
        raise ValueError(f"`encode` must be 'onehot', 'ordinal' or None, not {encode!r}.")
    table.need(drop, "drop")
    names = [name for name in table.names if name not in drop]
    target = _target_name(table, names, target)
    text = table.text()
    try:
        y = labels_of(text[target].tolist(), target)
    except ValueError as error:
        raise ValueError(f"{table.path}: {error}") from None
    features = [name for name in names if name != target]
    if not features:
        raise ValueError(
            f"{table.path} has one column only, {target!r}: features and a target need two."
        )
    kinds = {name: table.kind(text[name]) for name in features}
    numbers = [name for name in features if kinds[name].numbers or name in table.booleans]
    words = [name for name in features if name not in numbers]
    if words and encode is None:
        shown = [f"{name} (for instance {kinds[name].odd_cell!r})" for name in words]
        raise ValueError(
            f"{table.path} has columns that are not numbers: {listed(shown)}. Leave them out, or encode "
            "them: `encode='onehot'` makes a column of 0 and 1 for every value, `encode='ordinal'` numbers "
            "the values in sorted order."
        )
    frame = table.frame(ColumnTypes(numbers)) if numbers else text
    blocks, feature_names = [], []
    for name in features:
        if name in words:
            block, values = _encoded(text[name], encode == "onehot")
            blocks.append(block)
            feature_names += [f"{name}={value}" for value in values] or [name]
        else:
            blocks.append(frame[[name]].to_numpy())
            feature_names.append(name)
    check_names(feature_names, f"{table.path}, encoded,")
    return Samples(np.ascontiguousarray(np.hstack(blocks)), y, feature_names, target)


def _target_name(table: Table, names: list[str], target: str | int | None) -> str:
    if isinstance(target, str):
        table.need([target], "target")
        return target
    position = len(names) - 1 if target is None else target
    if isinstance(position, bool) or not -len(names) <= position < len(names):
        raise ValueError(
            f"`target` must be the name of a column of {table.path}, or a position from 0 to "
            f"{len(names) - 1}, not {target!r}."
        )
    return names[position]


def _encoded(column: Any, one_hot: bool) -> tuple[NDArray[np.float64], list[str]]:
    """Encode a column of text; a missing value is a value of its own, the empty text."""
    words, codes = np.unique([str(cell).strip() for cell in column], return_inverse=True)
    if one_hot:
        return np.eye(len(words))[codes], words.tolist()
    return codes.astype(np.float64)[:, None], []
