"""What is asked of a file, and the frames that answer it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from popf.tables.cells import text_cells

#: How many cells a piece holds, unless the number of rows is given.
CELLS = 400_000


class Dialect(NamedTuple):
    """How a text file is written.

    Attributes
    ----------
    delimiter : str or None
        Between cells; None for a comma, or a tab in a ``.tsv`` file.
    encoding : str
    decimal : str
        The decimal mark.
    na : tuple of str
        What stands for a missing value, besides the usual (empty, NA, NaN, null, none, ?).
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    na: tuple[str, ...] = ()


class Plan(NamedTuple):
    """Which columns to read, and as what.

    Attributes
    ----------
    numbers : sequence of str
        float64, NaN where missing.
    texts : sequence of str
        Text without spaces around it, NaN where missing.
    verbatim : sequence of str
        Text as it stands.
    """

    numbers: Sequence[str]
    texts: Sequence[str] = ()
    verbatim: Sequence[str] = ()


def need_pandas() -> Any:
    """Import pandas, or say how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            'tables need pandas, which is not installed: pip install "popf[cli]"'
        ) from error
    return pandas


def rows_a_piece(n_columns: int) -> int:
    """Say how many rows make a piece.

    Examples
    --------
    >>> from popf.tables.column_types import rows_a_piece
    >>> rows_a_piece(10), rows_a_piece(100_000)
    (40000, 500)
    """
    return max(500, CELLS // max(1, n_columns))


def planned(frame: Any, plan: Plan, missing: Sequence[str]) -> Any:
    """Keep the columns of a plan, text cleaned."""
    pandas = need_pandas()
    columns = {name: frame[name].to_numpy() for name in plan.numbers}
    for name in plan.texts:
        columns[name] = text_cells(frame[name], missing)
    kept = pandas.DataFrame(
        {name: pandas.Series(cells, dtype=cells.dtype) for name, cells in columns.items()},
        index=pandas.RangeIndex(len(frame)),
    )
    for name in plan.verbatim:
        if name not in kept:
            kept[name] = frame[name].to_numpy()
    return kept
