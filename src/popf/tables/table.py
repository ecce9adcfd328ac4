"""Files with named columns, read in pieces.

A file is read some rows at a time, so it may be larger than memory. The caller chooses how each column is read:
as numbers, as text, or as text exactly as written.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from popf.formatting import import_extra, listed, near_words
from popf.tables.columns import Column, Kind, column_of, kind_of, text_cells

# Number of cells to read at a time, unless the number of rows is given.
_CELLS = 400_000


class Dialect(NamedTuple):
    """The format of a text file.

    Attributes
    ----------
    delimiter : str or None
        Delimiter of the cells; None to detect it (comma, semicolon, tab or bar).
    encoding, decimal : str
        Text encoding and decimal separator.
    na : tuple of str
        Texts for a missing value, besides the usual ones (empty, NA, N/A, NaN, null, none, ?).
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    na: tuple[str, ...] = ()


class ColumnTypes(NamedTuple):
    """The columns to read, and their types.

    Attributes
    ----------
    numbers : sequence of str
        Read as float64, NaN where missing.
    texts : sequence of str
        Read as text without surrounding spaces, NaN where missing.
    verbatim : sequence of str
        Read as text, exactly as written.
    """

    numbers: Sequence[str] = ()
    texts: Sequence[str] = ()
    verbatim: Sequence[str] = ()


class Table(ABC):
    """A file with named columns; it is opened for each reading.

    Attributes
    ----------
    path : Path
    names : list of str
        Names of the columns.
    dialect : Dialect
    booleans : frozenset of str
        Columns of type bool, which only Parquet has.
    unnamed : tuple of str
        The names given here to columns without a name in the file.
    share : float
        Fraction of the file read so far.
    """

    path: Path
    names: list[str]
    dialect: Dialect = Dialect()
    booleans: frozenset[str] = frozenset()
    unnamed: tuple[str, ...] = ()
    share: float = 0.0

    @abstractmethod
    def _frames(self, types: ColumnTypes, n_rows: int) -> Iterator[Any]:
        """Yield the file in pieces with at least the columns of `types`; text is not cleaned."""

    def pieces(self, types: ColumnTypes, n_rows: int | None = None) -> Iterator[Any]:
        """Yield the file in pieces, as pandas DataFrames with the columns of `types`."""
        pandas = need_pandas()
        for frame in self._frames(types, n_rows or max(500, _CELLS // max(1, len(self.names)))):
            columns = {name: frame[name].to_numpy() for name in (*types.verbatim, *types.numbers)}
            columns |= {name: text_cells(frame[name], self.dialect.na) for name in types.texts}
            # All at once: thousands of columns one by one would take minutes.
            yield pandas.DataFrame(
                {name: pandas.Series(cells, dtype=cells.dtype) for name, cells in columns.items()},
                index=pandas.RangeIndex(len(frame)),
            )

    def frame(self, types: ColumnTypes) -> Any:
        """Read the whole file as one DataFrame."""
        return need_pandas().concat(list(self.pieces(types)), ignore_index=True)

    def text(self) -> Any:
        """Read the whole file as text, exactly as written."""
        return self.frame(ColumnTypes(verbatim=self.names))

    def kind(self, column: Any) -> Kind:
        """Describe a column of `text`: whether it holds numbers, see `Kind`."""
        return kind_of(column, self.dialect.na, self.dialect.decimal)

    def columns(
        self,
        roles: Mapping[str, str] | None = None,
        categorical: Collection[str] = (),
        text: Any = None,
    ) -> list[Column]:
        """Return how each column is read; `roles` are the roles of columns that are not features.

        `text` is the result of `text()`, if the file was read before.
        """
        text, known = self.text() if text is None else text, roles or {}
        return [
            column_of(name, self.kind(text[name]), len(text), known.get(name), name in categorical)
            for name in self.names
        ]

    def unknown_name(self, name: str, parameter: str) -> str:
        """Return an error message if the column that a parameter names does not exist, else an empty string."""
        if name in self.names:
            return ""
        near = near_words(name, self.names)
        return f"`{parameter}`: there is no column {name!r}{near} Columns: {listed(self.names)}."

    def need(self, names: Iterable[str], parameter: str) -> None:
        """Raise ValueError if a column that a parameter names does not exist."""
        for name in names:
            message = self.unknown_name(name, parameter)
            if message:
                raise ValueError(f"{self.path}: {message}")


def need_pandas() -> Any:
    """Import pandas, or raise ImportError that says how to install it."""
    return import_extra("pandas", "pandas", "a table")


def need_pyarrow() -> Any:
    """Import pyarrow and its Parquet reader, or raise ImportError that says how to install it."""
    import_extra("pyarrow.parquet", "parquet", "Parquet")
    return import_extra("pyarrow", "parquet", "Parquet")


def check_names(names: Sequence[str], where: str) -> None:
    """Raise ValueError if two columns have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{where} has several columns named {listed(twice)}: give every column its own name."
        )
