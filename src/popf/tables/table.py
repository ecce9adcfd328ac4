"""CSV and Parquet files with named columns, read in pieces by pandas and pyarrow.

A file is read some rows at a time, so it may be larger than memory. The caller chooses how each column is read:
as numbers, as text, or as text exactly as written.
"""

import csv
import gzip
import io
import os
import re
import warnings
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from popf.files import PACKED, check_file
from popf.formatting import import_extra, listed, near_words
from popf.tables.columns import (
    DECIMAL_COMMA,
    Column,
    Kind,
    column_of,
    is_missing,
    is_number,
    kind_of,
    na_spellings,
    text_cells,
)

# Number of cells to read at a time, unless the number of rows is given.
_CELLS = 400_000
#: Delimiters to detect; ties go to the first, since commas also occur in names and numbers.
DELIMITERS = ("\t", ";", ",", "|")
_LINES_TRIED = 20
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
#: Suffixes of files with named columns.
CSV, PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
#: Name that pandas gives to a column without a name, such as the index of a frame that was saved.
_UNNAMED = re.compile(r"Unnamed: \d+")
#: Name of a first column without a name: the row numbers of a spreadsheet or a data frame.
INDEX = "index"


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
            columns = {name: frame[name].to_numpy() for name in types.numbers}
            for name in types.texts:
                columns[name] = text_cells(frame[name], self.dialect.na)
            kept = pandas.DataFrame(
                {name: pandas.Series(cells, dtype=cells.dtype) for name, cells in columns.items()},
                index=pandas.RangeIndex(len(frame)),
            )
            for name in types.verbatim:
                if name not in kept:
                    kept[name] = frame[name].to_numpy()
            yield kept

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


def open_table(path: str | os.PathLike[str], dialect: Dialect = Dialect()) -> Table:  # noqa: B008
    r"""Open a CSV or Parquet file: read and check the column names, but no rows.

    Parameters
    ----------
    path : str or path-like
        ``.csv``, ``.tsv`` or ``.txt``, also compressed as ``.gz`` or ``.bz2``; ``.parquet`` or ``.pq``.
    dialect : Dialect
        The format of a text file.

    Returns
    -------
    Table
        Its ``pieces`` method reads the rows.

    Examples
    --------
    >>> import os, tempfile
    >>> from popf.tables import ColumnTypes, open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "mine.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("name,size\na,1\nb,2\nc,3\n")
    ...     table = open_table(path)
    ...     print(table.names, [len(piece) for piece in table.pieces(ColumnTypes(["size"]), 2)])
    ['name', 'size'] [2, 1]
    """
    need_pandas()
    place = check_file(path)
    suffix = suffix_of(place)
    if suffix in PARQUET and place.suffix.lower() not in PACKED:
        return ParquetFile(place)
    if suffix in (*CSV, ".txt"):
        return CsvFile(place, dialect)
    raise ValueError(
        f"{place} does not have the suffix of a table: use .csv, .tsv, .txt, .parquet or .pq. `popf convert` "
        "converts svmlight and LibOPF files to CSV."
    )


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of the format, in lower case, without that of the compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


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


class _Text(io.TextIOWrapper):
    """Text that raises UnicodeError at a null character, where some versions of pandas cut the cell."""

    def read(self, size: int | None = -1, /) -> str:
        text = super().read(size)
        if "\0" in text:
            raise UnicodeError("a null character")
        return text


class CsvFile(Table):
    """A CSV file.

    With `need_names=False`, a first line of numbers is a row of data, and the columns are ``x1``, ``x2``, ...
    """

    def __init__(self, path: Path, dialect: Dialect, need_names: bool = True) -> None:
        self.path = path
        self.dialect = dialect
        with self._open() as text:
            self._delimiter = self._find_delimiter(text)
            names = self._first_line(text)
        if dialect.decimal not in (".", ","):
            raise ValueError(f"`decimal` must be '.' or ',', not {dialect.decimal!r}.")
        self._widths_checked = False
        self.has_names = not all(
            is_number(name, dialect.decimal) and not is_missing(name) for name in names
        )
        if need_names and not self.has_names:
            raise ValueError(
                f"{path} begins with numbers ({', '.join(names[:3])} ...), not with column names: add a first "
                "line with the names."
            )
        self.names = names if self.has_names else [f"x{n}" for n in range(1, len(names) + 1)]
        self._check_names()

    def _frames(self, types: ColumnTypes, n_rows: int) -> Iterator[Any]:
        dtypes = {name: "float64" if name in types.numbers else "str" for name in self.names}
        na_values = dict.fromkeys(types.numbers, na_spellings(self.dialect.na))
        # A truncated row has an empty last cell, so the last column is always read.
        last = self.names[-1]
        start = 0
        with self._open() as text:
            reader = self._reader(text, dtypes, na_values, n_rows)
            while True:
                try:
                    with warnings.catch_warnings():
                        # If the first row is too long, pandas only warns, and cuts it.
                        warnings.filterwarnings("error", message="Length of header or names")
                        frame = next(reader, None)
                except Warning as warning:
                    raise ValueError(
                        f"{self.path}: the first row has more cells than there are column names "
                        f"({len(self.names)}): give every column a name, or quote cells that contain the "
                        "delimiter."
                    ) from warning
                except ValueError as error:
                    self._report_cell(error, types.numbers, start, n_rows)
                    raise
                if frame is None or not len(frame):
                    break
                blank = frame[last].isna() if dtypes[last] == "float64" else frame[last] == ""
                if blank.any():
                    self._check_widths()
                start += len(frame)
                self.share = self._raw.tell() / self.path.stat().st_size
                yield frame
        if start == 0:
            raise ValueError(f"{self.path} has column names, but no rows.")

    def _reader(self, text: Any, dtypes: Any, na_values: Any, n_rows: int) -> Any:
        pandas = need_pandas()
        # Before pandas 3.1, exact floats need an option, which is deprecated since.
        exact = tuple(int(part) for part in pandas.__version__.split(".")[:2]) >= (3, 1)
        return pandas.read_csv(
            text,
            sep=self._delimiter,
            decimal=self.dialect.decimal,
            names=self.names,
            header=0 if self.has_names else None,
            index_col=False,
            dtype=dtypes,
            na_values=na_values,
            keep_default_na=False,
            skipinitialspace=True,
            chunksize=n_rows,
            **({} if exact else {"float_precision": "round_trip"}),
        )

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Open the file as text, and rewrite errors of reading for the user."""
        path, encoding = self.path, self.dialect.encoding
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            encoding = "utf-8-sig"  # spreadsheets write a byte order mark
        try:
            with open(path, "rb") as raw:
                self._raw: Any = raw  # its position tells how much was read
                stream: Any = PACKED[path.suffix].open(raw) if path.suffix in PACKED else raw
                with _Text(stream, encoding=encoding, newline="") as text:
                    yield text
        except UnicodeError as error:
            others = [
                n for n in ("utf-8", "latin-1", "utf-16") if n != self.dialect.encoding.lower()
            ]
            raise ValueError(
                f"{path} is not {self.dialect.encoding} text. Give its encoding, for instance "
                f"`encoding={others[0]!r}` or `encoding={others[1]!r}`."
            ) from error
        except LookupError as error:
            if "encoding" not in str(error):
                raise
            raise ValueError(
                f"there is no encoding named {encoding!r}: try utf-8 or latin-1."
            ) from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{path} cannot be decompressed ({error}): the file is truncated."
            ) from error
        except csv.Error as error:
            raise ValueError(f"{path}: {error}.") from error
        except ValueError as error:
            raise ValueError(_sentence(path, str(error))) from error

    def _find_delimiter(self, text: Any) -> str:
        """Return the given delimiter, or the one with most columns and as many in each of the first lines."""
        given = self.dialect.delimiter
        if given is not None:
            if len(given) != 1:
                raise ValueError(f"`delimiter` must be one character, not {given!r}.")
            return given
        if ".tsv" in [suffix.lower() for suffix in self.path.suffixes]:
            return "\t"
        head = _QUOTED.sub("", "".join(islice(text, _LINES_TRIED)))
        text.seek(0)
        lines = [line for line in head.splitlines() if line.strip()]
        best, most = ",", (False, 0)
        for mark in DELIMITERS:
            counts = [line.count(mark) for line in lines] or [0]
            score = (0 < counts[0] == min(counts) == max(counts), counts[0])
            if score > most:
                best, most = mark, score
        return best

    def _first_line(self, text: Any) -> list[str]:
        reader = csv.reader(text, delimiter=self._delimiter, skipinitialspace=True)
        line = next((row for row in reader if any(cell.strip() for cell in row)), None)
        if line is None:
            raise ValueError(f"{self.path} is empty.")
        if any("\0" in cell for cell in line):
            raise UnicodeError("a null character")
        return [cell.strip() for cell in line]

    def _check_names(self) -> None:
        names = self.names
        others = [mark for mark in DELIMITERS if mark != self._delimiter and mark in names[0]]
        if len(names) == 1 and others:
            raise ValueError(
                f"{self.path} has only one column with the delimiter {self._delimiter!r}, but contains "
                f"{others[0]!r}: pass `delimiter={others[0]!r}`."
            )
        for place, name in enumerate(names):
            if not name:
                names[place] = f"column {place + 1}" if place else INDEX
            if not name or _UNNAMED.fullmatch(name):
                self.unnamed = (*self.unnamed, names[place])
        check_names(names, str(self.path))

    def _report_cell(
        self, error: Exception, numbers: Sequence[str], start: int, n_rows: int
    ) -> None:
        """Raise ValueError that names the cell which is not a number, if that was the error."""
        if "convert" not in str(error):
            return
        with self._open() as text:
            for number, frame in enumerate(self._reader(text, "str", None, n_rows)):
                if number * n_rows < start:
                    continue
                for name in numbers:
                    kind = self.kind(frame[name])
                    if kind.odd_row is None:
                        continue
                    remedy = (
                        f"Correct the cell, or read it as missing with `na=[{kind.odd_cell!r}]`."
                    )
                    if kind.looks_like == DECIMAL_COMMA:
                        remedy = "`decimal=','` reads decimal commas."
                    raise ValueError(
                        f"{self.path}, row {start + kind.odd_row}: column {name!r} must hold numbers, not "
                        f"{kind.odd_cell!r}. {remedy}"
                    ) from error
                break

    def _check_widths(self) -> None:
        """Raise ValueError for the first row with fewer cells than there are columns."""
        if self._widths_checked:
            return
        self._widths_checked, position = True, self._raw
        with self._open() as text:
            reader = csv.reader(text, delimiter=self._delimiter, skipinitialspace=True)
            for row in reader:
                if row and len(row) < len(self.names):
                    raise ValueError(
                        f"{self.path}, line {reader.line_num}: {len(row)} cells, but the file has "
                        f"{len(self.names)} columns. The file or the row is truncated."
                    )
        self._raw = position


def _sentence(path: Path, message: str) -> str:
    """Rewrite an error message of pandas for the user."""
    long_row = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if long_row:
        return (
            f"{path}, line {long_row[2]}: {long_row[3]} cells, but the file has {long_row[1]} columns: "
            "quote cells that contain the delimiter."
        )
    if "EOF inside string" in message:
        return f"{path}: a quote is never closed: the file is truncated, or a closing quote is missing."
    return message


class ParquetFile(Table):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self.names = [str(name) for name in file.schema_arrow.names]
            self.booleans = frozenset(
                str(f.name) for f in file.schema_arrow if str(f.type) == "bool"
            )
            self._n_rows = file.metadata.num_rows
        check_names(self.names, str(path))
        if self._n_rows == 0:
            raise ValueError(f"{path} has column names, but no rows.")

    def _frames(self, types: ColumnTypes, n_rows: int) -> Iterator[Any]:
        wanted = list(dict.fromkeys([*types.numbers, *types.texts, *types.verbatim]))
        n_done = 0
        with self._open() as file:
            for batch in file.iter_batches(n_rows, columns=wanted):
                frame = batch.to_pandas()
                for name in types.numbers:
                    frame[name] = self._numbers(frame[name], name)
                for name in {*types.texts, *types.verbatim}:
                    frame[name] = _as_text(frame[name])
                n_done += len(frame)
                self.share = n_done / self._n_rows
                yield frame

    def _numbers(self, column: Any, name: str) -> Any:
        try:
            numbers = need_pandas().to_numeric(column)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.path}: column {name!r} must hold numbers, not {column.dtype}: {error}."
            ) from error
        if numbers.dtype.kind in "iu" and ((numbers > 2**53) | (numbers < -(2**53))).any():
            raise ValueError(
                f"{self.path}: column {name!r} holds integers too large for float64: shift or scale them."
            )
        return numbers.astype("float64")

    @contextmanager
    def _open(self) -> Iterator[Any]:
        pyarrow = need_pyarrow()
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                yield file
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(
                f"{self.path} is not a Parquet file, or is truncated: {error}"
            ) from error


def _as_text(column: Any) -> Any:
    """Convert the cells of a Parquet column to text as in a CSV file."""
    pandas = need_pandas()
    if pandas.api.types.is_float_dtype(column.dtype):
        present = column.dropna()
        whole = np.all(present == np.trunc(present)) and np.all(np.abs(present) < 2**53)
        if len(present) and whole:
            column = column.astype("Int64")  # integers with missing values are read as floats
    return column.astype(object).where(column.notna(), "").map(str)
