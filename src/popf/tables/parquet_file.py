"""A Parquet file, read in pieces by pyarrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from popf.formatting import import_extra
from popf.tables.table import ColumnTypes, Table, check_names, need_pandas


def need_pyarrow() -> Any:
    """Import pyarrow with what reads Parquet, or say how to get it."""
    import_extra("pyarrow.parquet", "parquet", "Parquet")
    return import_extra("pyarrow", "parquet", "Parquet")


class ParquetFile(Table):
    """Columns with types of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._done = 0
        with self._open() as file:
            self.names = [str(name) for name in file.schema_arrow.names]
            self.booleans = frozenset(
                str(f.name) for f in file.schema_arrow if str(f.type) == "bool"
            )
            self._rows = file.metadata.num_rows
        check_names(self.names, str(path))
        if self._rows == 0:
            raise ValueError(f"{path} has names of columns, but no row.")

    @property
    def share(self) -> float:
        """How much of the file was read by now, from 0 to 1."""
        return float(self._done / self._rows)

    def _frames(self, types: ColumnTypes, n_rows: int) -> Iterator[Any]:
        wanted = list(dict.fromkeys([*types.numbers, *types.texts, *types.verbatim]))
        self._done = 0
        with self._open() as file:
            for batch in file.iter_batches(n_rows, columns=wanted):
                frame = batch.to_pandas()
                for name in types.numbers:
                    frame[name] = self._numbers(frame[name], name)
                for name in {*types.texts, *types.verbatim}:
                    frame[name] = _as_text(frame[name])
                self._done += len(frame)
                yield frame

    def _numbers(self, column: Any, name: str) -> Any:
        try:
            numbers = need_pandas().to_numeric(column)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.path}: column {name!r} must hold numbers, and holds {column.dtype}: {error}."
            ) from error
        if numbers.dtype.kind in "iu" and ((numbers > 2**53) | (numbers < -(2**53))).any():
            raise ValueError(
                f"{self.path}: column {name!r} holds integers too large for a double: shift or scale them."
            )
        return numbers.astype("float64")

    @contextmanager
    def _open(self) -> Iterator[Any]:
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
        whole = np.all(present == np.trunc(present)) and np.all(np.abs(present) < 2**53)
        if len(present) and whole:
            column = column.astype("Int64")  # integers with gaps come as real numbers
    return column.astype(object).where(column.notna(), "").map(str)
