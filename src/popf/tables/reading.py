"""CSV and Parquet files with named columns, whole or in pieces.

A file is read in pieces of some rows, so that it may be larger than memory. Every column is read as what it is
wanted for: numbers, text, or text as it stands. What is wrong with a file is said with its line or row.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from popf.formatting import listed, near_words
from popf.tables.column_types import Dialect, Plan, need_pandas
from popf.tables.csv_file import CsvFile
from popf.tables.formats.files import PACKED, check_file
from popf.tables.parquet_file import ParquetFile

__all__ = ["Dialect", "Plan", "Table", "need_columns", "need_pandas", "open_table"]

_CSV, _PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")


class Table(Protocol):
    """A file of rows and named columns."""

    path: Path
    names: list[str]

    @property
    def share(self) -> float:
        """How much of the file was read by now, from 0 to 1."""

    def pieces(self, plan: Plan, n_rows: int | None = None) -> Iterator[Any]:
        """Read the file piece by piece; each a pandas frame with the columns of the plan."""

    def text(self) -> Any:
        """Read all as text, as it stands."""


def need_columns(table: Table, names: Iterable[str], parameter: str) -> None:
    """Raise ValueError where a table lacks a column, with what may be meant.

    Parameters
    ----------
    table : Table
    names : iterable of str
    parameter : str
        The parameter that names them, for the message.
    """
    for name in names:
        if name not in table.names:
            raise ValueError(
                f"`{parameter}`: {table.path} has no column {name!r}{near_words(name, table.names)} "
                f"Its columns: {listed(table.names)}."
            )


def open_table(path: str | os.PathLike[str], dialect: Dialect = Dialect()) -> Table:  # noqa: B008
    r"""Look into a CSV or Parquet file: its names are read and checked, its rows are not.

    Parameters
    ----------
    path : str or path-like
        ``.csv``, ``.tsv`` or ``.txt``, also packed as ``.gz`` or ``.bz2``; ``.parquet`` or ``.pq``.
    dialect : Dialect
        How a text file is written.

    Returns
    -------
    Table
        With ``names``, ``pieces`` and ``text``.

    Examples
    --------
    >>> import os, tempfile
    >>> from popf.tables.reading import Plan, open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "mine.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("name,size\na,1\nb,2\nc,3\n")
    ...     table = open_table(path)
    ...     print(table.names, [len(piece) for piece in table.pieces(Plan(["size"]), 2)])
    ['name', 'size'] [2, 1]
    """
    need_pandas()
    place = check_file(path)
    suffixes = [suffix.lower() for suffix in place.suffixes]
    packed = bool(suffixes) and suffixes[-1] in PACKED
    suffix = (suffixes[-2:-1] if packed else suffixes[-1:]) or [""]
    if suffix[0] in _PARQUET and not packed:
        return ParquetFile(place)
    if suffix[0] in _CSV:
        return CsvFile(place, dialect, ".tsv" in suffix)
    raise ValueError(
        f"the suffix of {place} tells no table: use {', '.join((*_CSV, *_PARQUET))}. "
        "`popf convert` makes CSV of svmlight and LibOPF files."
    )
