"""A Parquet file, read in pieces by pyarrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from popf.tables.column_types import Plan, need_pandas, planned, rows_a_piece
from popf.tables.formats.parquet import need_pyarrow
from popf.tables.formats.table import check_names


class ParquetFile:
    """Columns with types of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._done = self._rows = 0
        with self._file() as file:
            self.names = [str(name) for name in file.schema_arrow.names]
            self._rows = file.metadata.num_rows
        check_names(self.names, str(path))
        if self._rows == 0:
            raise ValueError(f"{path} has names of columns, but no row.")

    @property
    def share(self) -> float:
        """How much of the file was read by now, from 0 to 1."""
        return self._done / self._rows

    def pieces(self, plan: Plan, n_rows: int | None = None) -> Iterator[Any]:
        """Read the file piece by piece; each a pandas frame with the columns of the plan."""
        wanted = [*plan.numbers, *plan.texts, *plan.verbatim]
        self._done = 0
        with self._file() as file:
            n_rows = n_rows or rows_a_piece(len(wanted))
            for batch in file.iter_batches(n_rows, columns=list(dict.fromkeys(wanted))):
                frame = batch.to_pandas()
                for name in plan.numbers:
                    frame[name] = self._numbers(frame[name], name)
                for name in {*plan.texts, *plan.verbatim}:
                    frame[name] = _as_text(frame[name])
                self._done += len(frame)
                yield planned(frame, plan, ())

    def text(self) -> Any:
        """Read all as text, as it stands."""
        pandas = need_pandas()
        return pandas.concat(list(self.pieces(Plan([], [], self.names))), ignore_index=True)

    def _numbers(self, column: Any, name: str) -> Any:
        pandas = need_pandas()
        try:
            return pandas.to_numeric(column).astype("float64")
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.path}: column {name!r} must hold numbers, and holds {column.dtype}: {error}."
            ) from error

    @contextmanager
    def _file(self) -> Iterator[Any]:
        pyarrow = need_pyarrow()
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                yield file
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{self.path} is no Parquet file, or is cut short: {error}") from error


def _as_text(column: Any) -> Any:
    """Write the cells of a Parquet column as a CSV file would have them."""
    pandas = need_pandas()
    if pandas.api.types.is_float_dtype(column.dtype):
        present = column.dropna()
        if (
            len(present)
            and np.all(present == np.trunc(present))
            and np.all(np.abs(present) < 2**53)
        ):
            column = column.astype("Int64")  # integers with gaps come as real numbers
    text = column.astype(object).where(column.notna(), "")
    return text.map(str)
