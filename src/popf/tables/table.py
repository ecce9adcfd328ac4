"""A file of rows and named columns, read in pieces: what CSV and Parquet files have in common.

A file is read a few rows at a time, so it may be larger than memory. Every column is read as what it is needed
for: numbers, text, or text exactly as written.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from popf.formatting import install, listed, near_words
from popf.tables.cells import Kind, kind_of, text_cells

# How many cells are held at a time, unless the number of rows is given.
_CELLS = 400_000


class Dialect(NamedTuple):
    """How a text file is written.

    Attributes
    ----------
    delimiter : str or None
        Between cells; None for what splits the first line into most columns: comma, semicolon, tab or bar.
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


class ColumnTypes(NamedTuple):
    """Which columns to read, and as what.

    Attributes
    ----------
    numbers : sequence of str
        float64, NaN where missing.
    texts : sequence of str
        Text without spaces around it, NaN where missing.
    verbatim : sequence of str
        Text exactly as written.
    """

    numbers: Sequence[str] = ()
    texts: Sequence[str] = ()
    verbatim: Sequence[str] = ()


class Table(ABC):
    """A file of rows and named columns; it is opened anew for every reading.

    Attributes
    ----------
    path : Path
    names : list of str
        The columns.
    dialect : Dialect
    booleans : frozenset of str
        Columns declared as truth values, which only Parquet has.
    unnamed : tuple of str
        Columns that have no name in the file, as they are called here.
    """

    path: Path
    names: list[str]
    dialect: Dialect = Dialect()
    booleans: frozenset[str] = frozenset()
    unnamed: tuple[str, ...] = ()

    @property
    @abstractmethod
    def share(self) -> float:
        """How much of the file was read by now, from 0 to 1."""

    @abstractmethod
    def pieces(self, types: ColumnTypes, n_rows: int | None = None) -> Iterator[Any]:
        """Read the file piece by piece, each a pandas DataFrame with the columns of `types`."""

    def frame(self, types: ColumnTypes) -> Any:
        """Read the whole file as one DataFrame."""
        return need_pandas().concat(list(self.pieces(types)), ignore_index=True)

    def text(self) -> Any:
        """Read the whole file as text, exactly as written."""
        return self.frame(ColumnTypes(verbatim=self.names))

    def kind(self, column: Any) -> Kind:
        """Tell whether a column of `text` holds numbers."""
        return kind_of(column, self.dialect.na, self.dialect.decimal)

    def unknown_name(self, name: str, parameter: str) -> str:
        """Say that a column which a parameter names is not there; empty if it is."""
        if name in self.names:
            return ""
        near = near_words(name, self.names)
        return (
            f"`{parameter}`: there is no column {name!r}{near} The columns: {listed(self.names)}."
        )

    def need(self, names: Iterable[str], parameter: str) -> None:
        """Raise ValueError if a column that a parameter names is missing."""
        for name in names:
            message = self.unknown_name(name, parameter)
            if message:
                raise ValueError(f"{self.path}: {message}")


def need_pandas() -> Any:
    """Import pandas, or say how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            f"tables need pandas, which is not installed: {install('pandas')}"
        ) from error
    return pandas


def rows_per_piece(n_columns: int) -> int:
    """Choose how many rows to hold at a time."""
    return max(500, _CELLS // max(1, n_columns))


def check_names(names: Sequence[str], where: str) -> None:
    """Raise ValueError if two columns have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{where} has several columns named {listed(twice)}: give every column its own name."
        )


def select(frame: Any, types: ColumnTypes, na: Sequence[str]) -> Any:
    """Keep the columns that were asked for, text cleaned."""
    pandas = need_pandas()
    columns = {name: frame[name].to_numpy() for name in types.numbers}
    for name in types.texts:
        columns[name] = text_cells(frame[name], na)
    kept = pandas.DataFrame(
        {name: pandas.Series(cells, dtype=cells.dtype) for name, cells in columns.items()},
        index=pandas.RangeIndex(len(frame)),
    )
    for name in types.verbatim:
        if name not in kept:
            kept[name] = frame[name].to_numpy()
    return kept
