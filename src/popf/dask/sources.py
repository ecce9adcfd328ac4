"""Where samples come from: Dask collections, memory maps, Parquet folders, as chunks of rows."""

from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _get_feature_names, check_array

from popf.dask.untyped import da, dask, delayed
from popf.forest.devices import to_host

FloatArray = NDArray[np.float64]

# What a chunk of an array in memory may take.
CHUNK_BYTES = 2**26


class Rows(NamedTuple):
    """Some rows as they came."""

    X: Any
    y: Any
    weights: Any

    def read(self) -> "Rows":
        """Give the rows themselves; those on disk are read here."""
        return self


class RowsOfArrays(NamedTuple):
    """Rows of files that hold arrays.

    Attributes
    ----------
    X, y, weights : MappedArray or None
    start, stop : int
    """

    X: Any
    y: Any
    weights: Any
    start: int
    stop: int

    def read(self) -> Rows:
        """Read them into memory."""
        arrays = (self.X, self.y, self.weights)
        return Rows(*(a and a.read(self.start, self.stop) for a in arrays))


class RowsOfParquet(NamedTuple):
    """Rows of a Parquet file.

    Attributes
    ----------
    path : str
    groups : tuple of int
        Row groups.
    columns : tuple of str
        The features.
    label : str
    weight : str or None
    """

    path: str
    groups: tuple[int, ...]
    columns: tuple[str, ...]
    label: str
    weight: str | None

    def read(self) -> Rows:
        """Read them into memory."""
        from pyarrow import parquet

        wanted = [*self.columns, self.label, *([self.weight] if self.weight else [])]
        with parquet.ParquetFile(self.path) as file:
            table = file.read_row_groups(list(self.groups), columns=wanted, use_threads=False)
        features = [table.column(name).to_numpy() for name in self.columns]
        X = np.column_stack(features).astype(np.float64, copy=False)
        y = table.column(self.label).to_numpy()
        return Rows(X, y, table.column(self.weight).to_numpy() if self.weight else None)


_reading = Lock()


def map_file(path: str | Path) -> np.memmap[Any, Any]:
    """Map an array in a ``.npy`` file.

    One thread at a time: NumPy parses the header as Python, and before 3.11.9 and 3.12.3 Python counts how deep
    it is in syntax trees for all threads together, and raises SystemError where two meet.
    """
    with _reading:
        mapped: np.memmap[Any, Any] = np.load(path, mmap_mode="r")
    return mapped


class MappedArray(NamedTuple):
    """An array in a file; it travels to workers as its name, not as its content."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    order: str

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read some rows into memory."""
        mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)  # type: ignore[call-overload]
        rows: NDArray[Any] = np.array(mapped[start:stop])
        return rows


class Source(NamedTuple):
    """Where the samples come from.

    Attributes
    ----------
    chunks : list
        Delayed `Rows`, or objects whose `read` gives them.
    sizes : list of int
        How many rows each has.
    n_features : int
    names : ndarray or None
        Of the features, if all are strings.
    on_disk : bool
        Whether the samples are in files, so that they need not stay in memory.
    """

    chunks: list[Any]
    sizes: list[int]
    n_features: int
    names: NDArray[Any] | None
    on_disk: bool


def open_source(X: Any, y: Any, sample_weight: Any, block_size: int | None) -> Source:
    """Make chunks of rows from whatever was passed to `fit`.

    Parameters
    ----------
    X : Dask array or dataframe, memory map, array, or path of a ``.npy`` file or Parquet folder
    y : as X, or the name of a column of the Parquet folder
    sample_weight : as y, or None
    block_size : int or None
        Rows in a chunk on disk.

    Returns
    -------
    Source
    """
    if isinstance(X, str | Path):
        path = Path(X)
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder {str(path)!r} to fit on.")
        if path.suffix == ".npy":
            X = map_file(path)
        else:
            return _open_parquet(path, y, sample_weight, block_size)
    if isinstance(X, np.memmap):
        return _open_mapped(X, y, sample_weight, block_size)
    return _open_collections(X, y, sample_weight)


def default_block_size(n_features: int, n_bytes: int) -> int:
    """Rows of which two blocks, and the work on their tree, take so many bytes."""
    return max(1024, n_bytes // (2 * 8 * (6 * n_features + 40)))


def _open_mapped(X: np.memmap[Any, Any], y: Any, weights: Any, block_size: int | None) -> Source:
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, but its shape is {X.shape}.")
    columns: list[Any] = [_mapped(X)]
    for name, array in (("y", y), ("sample_weight", weights)):
        if array is None:
            columns.append(None)
            continue
        if hasattr(array, "compute"):
            array = array.compute()
        array = array if isinstance(array, np.memmap) else np.asarray(array)
        if array.shape != (len(X),):
            raise ValueError(
                f"{name} must have one entry for each of the {len(X)} rows of X, but its shape is "
                f"{array.shape}."
            )
        columns.append(_mapped(array) if isinstance(array, np.memmap) else _InMemory(array))
    size = block_size or default_block_size(X.shape[1], 2**30)
    starts = range(0, len(X), size)
    stops = (min(start + size, len(X)) for start in starts)
    chunks = [_slim(columns, *ends) for ends in zip(starts, stops, strict=True)]
    sizes = [chunk.stop - chunk.start for chunk in chunks]
    return Source(chunks, sizes, X.shape[1], None, True)


class _InMemory:
    """Labels that are in memory already; a chunk takes its own along."""

    def __init__(self, array: NDArray[Any], start: int = 0) -> None:
        self.array = array
        self.start = start

    def read(self, start: int, stop: int) -> NDArray[Any]:
        return self.array[start - self.start : stop - self.start]

    def part(self, start: int, stop: int) -> "_InMemory":
        return _InMemory(self.read(start, stop), start)


def _slim(columns: list[Any], start: int, stop: int) -> RowsOfArrays:
    """Make a chunk that takes no labels of others along."""
    X, y, weights = (a.part(start, stop) if isinstance(a, _InMemory) else a for a in columns)
    return RowsOfArrays(X, y, weights, start, stop)


def _mapped(array: np.memmap[Any, Any]) -> MappedArray:
    if array.filename is None:
        raise ValueError("the memory map has no file, so that workers cannot open it.")
    base = array
    while isinstance(base.base, np.memmap):
        base = base.base
    order = "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else None
    if order is None:
        raise ValueError("the memory map is a slice with gaps: pass the whole map, or a copy.")
    skipped = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return MappedArray(
        str(array.filename), array.dtype.str, array.shape, base.offset + skipped, order
    )


def _open_parquet(path: Path, label: Any, weight: Any, block_size: int | None) -> Source:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError('this needs pyarrow: pip install "popf[parquet]"') from error
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"the folder {str(path)!r} holds no .parquet files.")
    for name, value in (("y", label), ("sample_weight", weight)):
        if not (isinstance(value, str) or (name == "sample_weight" and value is None)):
            raise TypeError(
                f"with a Parquet folder {name} must be the name of a column, not {type(value).__name__}."
            )
    chunks: list[Any] = []
    sizes: list[int] = []
    columns: tuple[str, ...] = ()
    for file in files:
        with parquet.ParquetFile(file) as opened:
            schema, meta = opened.schema_arrow, opened.metadata
        names = tuple(name for name in schema.names if name not in (label, weight))
        for wanted in (label, weight):
            if wanted is not None and wanted not in schema.names:
                raise ValueError(f"{file.name} has no column {wanted!r}, but {schema.names}.")
        columns = columns or names
        if set(names) != set(columns):
            raise ValueError(f"{file.name} has features {names}, but others have {columns}.")
        size = block_size or default_block_size(len(columns), 2**30)
        rows = [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]
        for groups in _together(rows, size):
            if sum(rows[g] for g in groups):
                chunks.append(RowsOfParquet(str(file), tuple(groups), columns, label, weight))
                sizes.append(sum(rows[g] for g in groups))
    return Source(chunks, sizes, len(columns), np.array(columns, dtype=object), True)


def _together(sizes: list[int], most: int) -> list[list[int]]:
    """Group neighbours whose sizes sum to no more than `most`, or stand alone.

    Examples
    --------
    >>> from popf.dask.sources import _together
    >>> _together([3, 4, 9, 1, 0, 2], 8)
    [[0, 1], [2], [3, 4, 5]]
    """
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


def _open_collections(X: Any, y: Any, weights: Any) -> Source:
    names = feature_names(X)
    X = as_dask_array(X, "X")
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, but its shape is {X.shape}.")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})  # a sample is needed whole
    sizes = X.chunks[0]
    if sum(sizes) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 2 is required."
        )
    groups = _together(list(sizes), max(sizes))
    if len(groups) < len(sizes):
        X = X.rechunk({0: tuple(sum(sizes[i] for i in group) for group in groups)})
        sizes = X.chunks[0]
    columns = [X.to_delayed().ravel()]
    for name, column in (("y", y), ("sample_weight", weights)):
        if column is None:
            if name == "y":
                raise ValueError(
                    "this classifier requires y to be passed, but the target y is None."
                )
            columns.append(np.full(len(sizes), None))
            continue
        column = as_dask_array(column, name)
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        if column.ndim != 1 or column.shape[0] != X.shape[0]:
            raise ValueError(
                f"{name} must have one entry for each of the {X.shape[0]} rows of X, but its shape is "
                f"{column.shape}."
            )
        columns.append(column.rechunk((sizes,)).to_delayed().ravel())
    chunks = [delayed(Rows)(*parts) for parts in zip(*columns, strict=True)]
    return Source(chunks, list(sizes), X.shape[1], names, False)


def feature_names(X: Any) -> NDArray[Any] | None:
    """Give the names of the columns, as scikit-learn does: if all are strings."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    import pandas as pd

    names: NDArray[Any] | None = _get_feature_names(pd.DataFrame(columns=list(columns)))
    return names


def as_dask_array(data: Any, name: str) -> Any:
    """Make a Dask array with known chunk sizes, which may have to be computed."""
    if hasattr(data, "to_dask_array"):  # a dataframe or a series
        if data.ndim == 2 and name == "X":
            kinds = {str(column): dtype for column, dtype in data.dtypes.items()}
            wrong = [c for c, dtype in kinds.items() if getattr(dtype, "kind", "O") not in "biuf"]
            if wrong:
                raise ValueError(
                    f"column {wrong[0]!r} of X holds {kinds[wrong[0]]}, not numbers: encode it first."
                )
        elif data.ndim == 1 and getattr(data.dtype, "kind", "O") not in "biuf":
            return _objects_of(data)
        return data.to_dask_array(lengths=True)
    if isinstance(data, da.Array):
        if np.isnan(sum(data.shape)):
            data = data.copy()
            data.compute_chunk_sizes()
        return data
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    data = np.asarray(data)
    rows = max(1, CHUNK_BYTES // max(8, 8 * int(np.prod(data.shape[1:]))))
    return da.from_array(data, chunks={0: rows, **dict.fromkeys(range(1, data.ndim), -1)})


def _objects_of(series: Any) -> Any:
    """Make a Dask array of labels that are not numbers, whatever type pandas keeps them in."""
    parts = series.to_delayed()
    sizes = dask.compute(*(delayed(len)(part) for part in parts))
    return da.concatenate(
        [
            da.from_delayed(delayed(np.asarray)(part, dtype=object), (size,), dtype=object)
            for part, size in zip(parts, sizes, strict=True)
        ]
    )


def check_chunk(X: Any, name: str = "X") -> FloatArray:
    """Check a chunk of samples as scikit-learn does."""
    X = to_host(X)
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if len(X) == 0:
        return np.empty(X.shape)
    checked: FloatArray = check_array(X, dtype=np.float64, order="C", input_name=name)
    return checked
