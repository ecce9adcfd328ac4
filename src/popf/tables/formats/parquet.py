"""Parquet, through pyarrow: ``pip install "popf[parquet]"``."""

import io
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.tables.formats.files import content_of
from popf.tables.formats.table import Encoding, Table, assemble, check_names


def need_pyarrow() -> Any:
    """Import pyarrow with what reads Parquet, or say how to get it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError('Parquet needs pyarrow: pip install "popf[parquet]"') from error
    return pyarrow


def read_parquet(
    path: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    encode: Encoding | None = None,
) -> Table:
    """Read a Parquet file: see `popf.datasets.read`."""
    pyarrow = need_pyarrow()
    content = content_of(path)
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content))
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is no Parquet file, or is cut short: {error}") from error
    names = [str(name) for name in table.column_names]
    check_names(names, str(path))
    if len(names) < 2 or not table.num_rows:
        raise ValueError(
            f"{path} has {table.num_rows} rows and {len(names)} columns: there must be a row, a "
            "feature and a target."
        )
    columns = {
        name: _cells(pyarrow, column, f"column {name!r} of {path}")
        for name, column in zip(names, table.columns, strict=True)
    }
    return assemble(columns, target, encode, str(path))


def _cells(pyarrow: Any, column: Any, where: str) -> Any:
    """Give a column as an array of numbers, or as a list of anything."""
    kind = column.type
    if pyarrow.types.is_integer(kind) and column.null_count:
        column, kind = column.cast(pyarrow.float64()), pyarrow.float64()
    simple = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)
    if simple or (pyarrow.types.is_boolean(kind) and not column.null_count):
        values: NDArray[Any] = column.to_numpy()
        if values.dtype.kind in "iu" and np.any((values > 2**53) | (values < -(2**53))):
            raise ValueError(f"{where} holds integers too large for a double: shift or scale them.")
        return values
    return column.to_pylist()


def parquet_bytes(
    X: NDArray[Any], y: NDArray[Any], feature_names: list[str], target_name: str
) -> bytes:
    """Write features and target as the bytes of a Parquet file."""
    pyarrow = need_pyarrow()
    arrays = [pyarrow.array(np.ascontiguousarray(column)) for column in X.T]
    labels = pyarrow.array(y.tolist() if y.dtype.kind in "US" else y)
    table = pyarrow.table([*arrays, labels], names=[*feature_names, target_name])
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()
