"""Parquet files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from popf.tables.table import ColumnTypes, Table, check_names, need_pandas, need_pyarrow


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
