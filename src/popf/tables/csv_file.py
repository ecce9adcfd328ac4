"""A CSV file, read in pieces by pandas, with what it leaves unsaid checked."""

import bz2
import csv
import gzip
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from popf.tables.cells import kind_of, mark_spellings
from popf.tables.column_types import Dialect, Plan, need_pandas, planned, rows_a_piece
from popf.tables.formats.table import check_names

_DELIMITERS = (",", ";", "\t", "|")


class CsvFile:
    """Rows of text, opened anew for every reading."""

    def __init__(self, path: Path, dialect: Dialect, tabs: bool) -> None:
        self.path = path
        self.dialect = dialect
        usual = "\t" if tabs else ","
        self._delimiter = usual if dialect.delimiter is None else dialect.delimiter
        if len(self._delimiter) != 1:
            raise ValueError(f"`delimiter` must be one character, not {self._delimiter!r}.")
        if dialect.decimal not in (".", ",") or dialect.decimal == self._delimiter:
            raise ValueError(
                f"`decimal` must be '.' or ',' and differ from the delimiter, not {dialect.decimal!r}."
            )
        self._raw: Any = None
        self._widths_checked = False
        with self._clear(), self._open() as text:
            self.names = self._header(text)

    @property
    def share(self) -> float:
        """How much of the file was read by now, from 0 to 1."""
        if self._raw is None or self._raw.closed:
            return 1.0 if self._raw is not None else 0.0
        return float(self._raw.tell() / max(1, self.path.stat().st_size))

    def pieces(self, plan: Plan, n_rows: int | None = None) -> Iterator[Any]:
        """Read the file piece by piece; each a pandas frame with the columns of the plan."""
        n_rows = n_rows or rows_a_piece(len(self.names))
        dtypes = {name: "float64" if name in plan.numbers else "str" for name in self.names}
        # A row that is cut short shows in the last cell, which must therefore be kept as it stands.
        last = self.names[-1]
        spellings = mark_spellings(self.dialect.na)
        reads = dict.fromkeys(plan.numbers, spellings)
        start = 0
        with self._clear(), self._open() as text:
            reader = self._pandas(text, dtypes, reads, n_rows)
            while True:
                try:
                    frame = self._next(reader)
                except ValueError as error:
                    self._blame(error, plan.numbers, start, n_rows)
                    raise
                if frame is None or not len(frame):
                    break
                blank = frame[last].isna() if dtypes[last] == "float64" else frame[last] == ""
                if blank.any():
                    self._check_widths()
                start += len(frame)
                yield planned(frame, plan, self.dialect.na)
        if start == 0:
            raise ValueError(f"{self.path} has names of columns, but no row.")

    def text(self) -> Any:
        """Read all as text, as it stands."""
        pandas = need_pandas()
        whole = Plan([], [], self.names)
        return pandas.concat(list(self.pieces(whole)), ignore_index=True)

    def _pandas(self, text: Any, dtypes: Any, marks: Any, n_rows: int) -> Any:
        return need_pandas().read_csv(
            text,
            sep=self._delimiter,
            decimal=self.dialect.decimal,
            names=self.names,
            header=0,
            index_col=False,
            dtype=dtypes,
            na_values=marks,
            keep_default_na=False,
            skipinitialspace=True,
            chunksize=n_rows,
        )

    def _next(self, reader: Any) -> Any:
        try:
            with warnings.catch_warnings():
                # pandas only warns where the first row is too long, and cuts it.
                warnings.filterwarnings("error", message="Length of header or names")
                return next(reader, None)
        except Warning as warning:
            raise ValueError(
                f"{self.path}: the first row has more cells than there are names "
                f"({len(self.names)}): give every column a name, or quote cells that hold the delimiter."
            ) from warning

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Open the file as text; the place in the file itself tells how far reading is."""
        encoding = self.dialect.encoding
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            encoding = "utf-8-sig"  # spreadsheets put a mark before the first name
        with open(self.path, "rb") as raw:
            self._raw = raw
            packed: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(self.path.suffix)
            stream: Any = raw if packed is None else packed(raw)
            with io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
                yield text

    @contextmanager
    def _clear(self) -> Iterator[None]:
        """Turn what reading raises into sentences."""
        path, encoding = self.path, self.dialect.encoding
        try:
            yield
        except UnicodeError as error:
            others = [name for name in ("utf-8", "latin-1", "utf-16") if name != encoding.lower()]
            raise ValueError(
                f"{path} is not text in {encoding}. Name its encoding, for instance "
                f"`encoding={others[0]!r}` or `encoding={others[1]!r}`."
            ) from error
        except LookupError as error:
            if "encoding" not in str(error):
                raise
            raise ValueError(
                f"there is no encoding named {encoding!r}: try utf-8 or latin-1."
            ) from error
        except (EOFError, gzip.BadGzipFile) as error:
            raise ValueError(f"{path} cannot be unpacked ({error}): it is cut short.") from error
        except csv.Error as error:
            raise ValueError(f"{path}: {error}.") from error
        except ValueError as error:
            raise ValueError(_csv_words(path, str(error))) from error

    def _header(self, text: Any) -> list[str]:
        reader = csv.reader(text, delimiter=self._delimiter, skipinitialspace=True)
        names = next((row for row in reader if any(cell.strip() for cell in row)), None)
        if names is None:
            raise ValueError(f"{self.path} is empty.")
        names = [name.strip() for name in names]
        if any("\0" in name for name in names):
            raise ValueError(
                f"{self.path} holds zero bytes: it is no text, or in another encoding, for instance "
                "`encoding='utf-16'`."
            )
        self._check_split(names)
        unnamed = [number for number, name in enumerate(names, start=1) if not name]
        if unnamed:
            raise ValueError(
                f"{self.path}: column {unnamed[0]} has no name in the first line: give it one."
            )
        check_names(names, str(self.path))
        if all(re.fullmatch(r"[-+]?[\d.,eE+-]+", name) for name in names):
            raise ValueError(
                f"{self.path} opens with numbers ({', '.join(names[:3])} ...), not with names of "
                "columns: put a line with the names first."
            )
        return names

    def _check_split(self, names: list[str]) -> None:
        if len(names) > 1:
            return
        used = [mark for mark in _DELIMITERS if mark != self._delimiter and mark in names[0]]
        if used:
            raise ValueError(
                f"{self.path} has one column only when split at {self._delimiter!r}, and looks split at "
                f"{used[0]!r}: pass `delimiter={used[0]!r}`."
            )

    def _blame(self, error: Exception, numbers: Sequence[str], start: int, n_rows: int) -> None:
        """Find the cell that is no number, for a sentence that names it."""
        if "convert" not in str(error):
            return
        with self._open() as text:
            reader = self._pandas(text, "str", None, n_rows)
            for number, frame in enumerate(reader):
                if number * n_rows < start:
                    continue
                for name in numbers:
                    kind = kind_of(frame[name], self.dialect.na, self.dialect.decimal)
                    if kind.odd_row is not None:
                        raise ValueError(
                            f"{self.path}, row {start + kind.odd_row}: column {name!r} must hold "
                            f"numbers, not {kind.odd_cell!r}. Mend the cell, or name it as missing: "
                            f"`na=[{kind.odd_cell!r}]`."
                        ) from error
                break

    def _check_widths(self) -> None:
        """Raise ValueError at the first row that has fewer cells than there are names."""
        if self._widths_checked:
            return
        self._widths_checked, kept = True, self._raw
        with self._open() as text:
            reader = csv.reader(text, delimiter=self._delimiter, skipinitialspace=True)
            for row in reader:
                if row and len(row) < len(self.names):
                    raise ValueError(
                        f"{self.path}, line {reader.line_num}: {len(row)} cells, where the file has "
                        f"{len(self.names)} columns. The file is cut short, or the row is."
                    )
        self._raw = kept


def _csv_words(path: Path, message: str) -> str:
    """Put what pandas says into our words."""
    many = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if many:
        return (
            f"{path}, line {many[2]}: {many[3]} cells, where the file has {many[1]} columns: quote cells "
            "that hold the delimiter."
        )
    if "EOF inside string" in message:
        return f"{path}: a quote is opened and never closed: the file is cut short."
    return message
