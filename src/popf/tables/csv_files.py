"""CSV files."""

import csv
import io
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from popf.files import PACKED, not_unpacked
from popf.tables.columns import DECIMAL_COMMA, is_missing, is_number, na_spellings
from popf.tables.table import ColumnTypes, Dialect, Table, check_names, need_pandas

#: Delimiters to detect; ties go to the first, since commas also occur in names and numbers.
DELIMITERS = ("\t", ";", ",", "|")
_LINES_TRIED = 20
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
#: Name that pandas gives to a column without a name, such as the index of a frame that was saved.
_UNNAMED = re.compile(r"Unnamed: \d+")
#: Name of a first column without a name: the row numbers of a spreadsheet or a data frame.
INDEX = "index"


class _NullCharacterError(Exception):
    pass


class _Text(io.TextIOWrapper):
    """Text without null characters, at which some versions of pandas cut the cell."""

    def read(self, size: int | None = -1, /) -> str:
        text = super().read(size)
        if "\0" in text:
            raise _NullCharacterError
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
        dtypes = dict.fromkeys(self.names, "str") | dict.fromkeys(types.numbers, "float64")
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
        except _NullCharacterError as error:
            raise ValueError(
                f"{path} contains a null character: it is damaged, or not {self.dialect.encoding} text. Remove "
                "the character, or give the encoding of the file, for instance `encoding='utf-16'`."
            ) from error
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
        except (OSError, EOFError, zlib.error) as error:
            if path.suffix not in PACKED:
                raise
            raise not_unpacked(path, error) from error
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
            raise _NullCharacterError
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
