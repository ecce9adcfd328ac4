"""Open training data as lazy chunks of rows: Dask collections, memory maps and Parquet folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from popf.engine.structures import FloatArray
from popf.forest.validation import to_host

# Memory for a chunk of an array, and for two blocks of a file including the work on their tree.
CHUNK_BYTES = 2**26
BLOCK_BYTES = 2**30


class Rows(NamedTuple):
    """Some rows of the training data, unchecked."""

    X: Any
    y: Any
    weights: Any


class Source(NamedTuple):
    """Training data in lazy chunks."""

    chunks: list[Any]  # delayed Rows
    sizes: list[int]  # number of rows of each chunk
    columns: Any  # see `columns_of`
    groups: list[Any] | None  # delayed arrays: the groups of the samples of each chunk
    folder: str | None = None  # where blocks are stored, None to keep them on the workers

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.columns.shape[1])

    @property
    def starts(self) -> list[int]:
        """The index of each chunk's first row, and the number of all rows."""
        return [0, *np.cumsum(self.sizes).tolist()]


def open_source(X: Any, y: Any, sample_weight: Any, groups: Any, block_size: int | None) -> Source:
    """Split the data passed to `fit` into chunks of rows; chunks of files have `block_size` rows."""
    if isinstance(X, str | Path):
        path = Path(X)
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder {str(path)!r} to fit on.")
        if path.suffix != ".npy":
            return _open_parquet(path, y, sample_weight, groups, block_size)
        X = np.load(path, mmap_mode="r")
    columns = columns_of(X)
    X = _as_dask_array(X, "X", block_size)
    if len(X) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 2 is required."
        )
    if y is None:
        raise ValueError("this classifier requires y to be passed, but the target y is None.")
    sizes = X.chunks[0]
    sizes = tuple(sum(sizes[i] for i in some) for some in group_neighbours(sizes, max(sizes)))
    X = X.rechunk((sizes, -1))  # all features of a sample in one chunk
    weights = [None] * len(sizes)
    if sample_weight is not None:
        weights = _column(sample_weight, "sample_weight", X)
    parts = X.to_delayed().ravel(), _column(y, "y", X), weights
    chunks = [delayed(Rows)(*rows) for rows in zip(*parts, strict=True)]
    own = None if groups is None else list(_column(groups, "groups", X))
    return Source(chunks, list(sizes), columns, own)


def _column(values: Any, name: str, X: Any) -> Any:
    """Split labels, weights or groups into chunks as X is split."""
    column = _as_dask_array(values, name)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or len(column) != len(X):
        raise ValueError(
            f"{name} must have one entry for each of the {len(X)} rows of X, but its shape is "
            f"{column.shape}."
        )
    return column.rechunk((X.chunks[0],)).to_delayed().ravel()


def _as_dask_array(data: Any, name: str, block_size: int | None = None) -> Any:
    """Make a Dask array with known chunk sizes, computing them if necessary."""
    if hasattr(data, "to_dask_array"):  # a dataframe or a series
        if data.ndim == 2 and name == "X":
            for column, dtype in data.dtypes.items():
                if getattr(dtype, "kind", "O") not in "biuf":
                    raise ValueError(
                        f"column {str(column)!r} of X holds {dtype}, not numbers: encode it first."
                    )
        elif data.ndim == 1 and getattr(data.dtype, "kind", "O") not in "biuf":
            data = data.astype(object)  # whatever type pandas uses for labels
        return data.to_dask_array(lengths=True)
    if isinstance(data, da.Array):
        if np.isnan(sum(data.shape)):
            data = data.copy()
            data.compute_chunk_sizes()
        return data
    if isinstance(data, np.memmap) and data.ndim:
        return _lazy_map(data, block_size)
    data = np.asarray(data)
    rows = max(1, CHUNK_BYTES // max(8, 8 * int(np.prod(data.shape[1:]))))
    return da.from_array(data, chunks={0: rows, **dict.fromkeys(range(1, data.ndim), -1)})


def _lazy_map(array: np.memmap[Any, Any], block_size: int | None) -> Any:
    """Make a Dask array of a memory map; workers are sent its file name, not its content."""
    if array.filename is None:
        raise ValueError("the memory map has no file name, so workers cannot open it.")
    order = "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else None
    if order is None:
        raise ValueError("the memory map is not contiguous: pass the whole map, or a copy.")
    base = array
    while isinstance(base.base, np.memmap):
        base = base.base
    skipped = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    where = (str(array.filename), array.dtype.str, base.offset + skipped, array.shape, order)
    rows = block_size or _default_block_size(int(np.prod(array.shape[1:])))
    sizes = tuple(min(rows, len(array) - start) for start in range(0, len(array), rows))
    chunks = (sizes or (0,), *((n,) for n in array.shape[1:]))
    nothing = np.empty((0,) * array.ndim, array.dtype)
    return da.map_blocks(_read_map, chunks=chunks, meta=nothing, where=where)


def _read_map(where: tuple[Any, ...], block_info: Any = None) -> NDArray[Any]:
    path, dtype, offset, shape, order = where
    rows = slice(*block_info[None]["array-location"][0])
    return np.array(np.memmap(path, dtype, "r", offset, shape, order)[rows])


def _default_block_size(n_features: int) -> int:
    """Compute the rows per block for which two blocks, and the work on their tree, take `BLOCK_BYTES`."""
    return max(1024, BLOCK_BYTES // (2 * 8 * (6 * n_features + 40)))


def group_neighbours(sizes: Sequence[int], most: float) -> list[list[int]]:
    """Group consecutive sizes so that each group sums to at most `most`, or has one member."""
    groups: list[list[int]] = []
    total = 0
    for i, size in enumerate(sizes):
        if groups and total + size <= most:
            groups[-1].append(i)
            total += size
        else:
            groups.append([i])
            total = size
    return groups


def _open_parquet(
    path: Path, label: Any, weight: Any, group: Any, block_size: int | None
) -> Source:
    from pyarrow import parquet

    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"the folder {str(path)!r} contains no .parquet files.")
    for name, value in (("y", label), ("sample_weight", weight), ("groups", group)):
        if not (isinstance(value, str) or (name != "y" and value is None)):
            raise TypeError(
                f"with a Parquet folder `{name}` must be the name of a column, not {type(value).__name__}."
            )
    read = [label] if weight is None else [label, weight]
    others = read if group is None else [*read, group]
    groups: list[Any] = []
    columns: list[str] = []
    chunks: list[Any] = []
    sizes: list[int] = []
    for file in files:
        with parquet.ParquetFile(file) as opened:
            schema, meta = opened.schema_arrow, opened.metadata
        for wanted in others:
            if wanted not in schema.names:
                raise ValueError(f"{file.name} has no column {wanted!r}; it has {schema.names}.")
        names = [name for name in schema.names if name not in others]
        columns = columns or names
        if set(names) != set(columns):
            raise ValueError(f"{file.name} has features {names}, but other files have {columns}.")
        rows = [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]
        for some in group_neighbours(rows, block_size or _default_block_size(len(columns))):
            if size := sum(rows[g] for g in some):
                chunks.append(delayed(_read_parquet)(str(file), some, columns, *read))
                groups.append(delayed(_read_column)(str(file), some, group))
                sizes.append(size)
    if not chunks:
        raise ValueError(f"the Parquet files at {str(path)!r} contain no rows.")
    return Source(chunks, sizes, pd.DataFrame(columns=columns), None if group is None else groups)


def _read_column(path: str, some: list[int], name: str) -> NDArray[Any]:
    """Read one column of some row groups."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        values = file.read_row_groups(some, columns=[name], use_threads=False).column(name)
    return np.asarray(values.to_numpy())


def _read_parquet(path: str, some: list[int], columns: list[str], *others: str) -> Rows:
    """Read some row groups: features, labels and, if there are any, weights."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        table = file.read_row_groups(some, columns=[*columns, *others], use_threads=False)
    X = np.column_stack([table.column(name).to_numpy() for name in columns])
    y, *weights = (table.column(name).to_numpy() for name in others)
    return Rows(X.astype(np.float64, copy=False), y, *(weights or [None]))


def columns_of(X: Any) -> Any:
    """Make an empty table or array with the columns of X, for scikit-learn's check of features."""
    if issparse(X):
        raise TypeError("X is sparse, but dense data is required: pass X.toarray().")
    if hasattr(X, "columns"):
        return pd.DataFrame(columns=list(X.columns))
    shape = getattr(X, "shape", None) or np.shape(X)
    if len(shape) != 2:
        raise ValueError(
            f"X must have rows and columns, but its shape is {shape}: reshape a single "
            "sample with X.reshape(1, -1)."
        )
    return np.empty((0, shape[1]))


def check_chunk(X: Any, name: str = "X") -> FloatArray:
    """Check a chunk of samples as scikit-learn does."""
    X = to_host(X)
    if X.shape[0] == 0:
        return np.empty(X.shape)
    return np.asarray(check_array(X, dtype=np.float64, order="C", input_name=name))
