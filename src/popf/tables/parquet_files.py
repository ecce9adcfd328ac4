"""Parquet files."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from popf.tables.columns import Kind
from popf.tables.table import ColumnTypes, Table, check_names, need_pandas, need_pyarrow

#: What a column of lists or of records holds.
NESTED = "lists or records"
#: Name of an index without a name that pandas saved.
_INDEX = re.compile(r"__index_level_\d+__")


class ParquetFile(Table):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            types = {str(f.name): f.type for f in file.schema_arrow}
            self.names = [str(name) for name in file.schema_arrow.names]
            self._n_rows = file.metadata.num_rows
        self.booleans = frozenset(name for name in types if str(types[name]) == "bool")
        self._nested = {name for name in types if getattr(types[name], "num_fields", 0)}
        self.unnamed = tuple(name for name in self.names if _INDEX.fullmatch(name))
        check_names(self.names, str(path))
        if self._n_rows == 0:
            raise ValueError(f"{path} has column names, but no rows.")

    def kind(self, column: Any) -> Kind:
        """Describe a column of `text`, see `Kind`; also that it holds lists."""
        kind = super().kind(column)
        return kind._replace(looks_like=NESTED) if column.name in self._nested else kind

    def _frames(self, types: ColumnTypes, n_rows: int) -> Iterator[Any]:
        wanted = list(dict.fromkeys([*types.numbers, *types.texts, *types.verbatim]))
        n_done = 0
        with self._open() as file:
            for batch in file.iter_batches(n_rows, columns=wanted):
                frame = batch.to_pandas(ignore_metadata=True)  # an index is a column like any other
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
