"""Blocks of nearby samples, in memory or on disk, so that few pairs of blocks are near each other.

Some of the rows decide how to cut space into cells of about equally many rows; a block has the rows of one
cell. It is never much larger than the largest chunk, or than the requested size.
"""

import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.dask.cluster import Settings, Tasks
from popf.dask.sources import Rows, Source, check_chunk, group_neighbours
from popf.engine.points import scaled_copy
from popf.engine.structures import FloatArray, IntArray, ceil_div
from popf.forest.metrics import Metric
from popf.forest.validation import (
    check_any_weight,
    check_enough_classes,
    check_labels,
    check_no_label_missing,
    check_weights,
    to_host,
)

# Space is cut by some rows over all chunks, in some of their features if there are very many: the most rows,
# the most memory for them, and the rows per cell that are wanted even if fewer features fit into it.
SAMPLED_ROWS, SAMPLED_BYTES, ROWS_PER_CELL = 100_000, 2**24, 50


class Block(NamedTuple):
    """Some of the samples."""

    samples: IntArray  # indices among all samples, ascending
    points: FloatArray  # scaled by the power of two that is common to all samples
    codes: IntArray  # classes
    weights: FloatArray

    def take(self, which: Any) -> "Block":
        """Select some of the samples."""
        return Block(*(array[which] for array in self))


class StoredBlock(NamedTuple):
    """A block on disk, as parts (path, start, stop) of what `sort_by_cell` wrote."""

    parts: tuple[tuple[str, int, int], ...]

    def load(self) -> Block:
        """Read the block into memory."""
        return concatenate(*(self._read(*part) for part in self.parts))

    def _read(self, path: str, start: int, stop: int) -> Block:
        files = [np.load(f"{path}-{name}.npy", mmap_mode="r") for name in Block._fields]
        return Block(*(np.array(file[start:stop]) for file in files))


class StoredCosts(NamedTuple):
    """Path costs of all samples, in a file."""

    path: str

    def load(self) -> FloatArray:
        """Map the costs into memory."""
        costs: FloatArray = np.load(self.path, mmap_mode="r")
        return costs


def concatenate(*parts: Block) -> Block:
    """Concatenate blocks, with samples in ascending order."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part.samples for part in parts]), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    columns = []
    for arrays in zip(*parts, strict=True):  # copied once, straight to their places
        columns.append(np.empty((len(order), *arrays[0].shape[1:]), arrays[0].dtype))
        stop = 0
        for array in arrays:
            start, stop = stop, stop + len(array)
            columns[-1][place[start:stop]] = array
    return Block(*columns)


def box_of(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the bounding box of points: the smallest and the largest value of every feature."""
    return points.min(axis=0), points.max(axis=0)


class SamplesInBlocks(NamedTuple):
    """All samples: features stay in blocks, everything else is in the memory of this process."""

    blocks: list[Any]  # futures of Block, or StoredBlock
    lows: FloatArray  # bounding boxes of the blocks, (n_blocks, n_features)
    highs: FloatArray
    rows: IntArray  # rows of X that are used, those of positive weight
    codes: IntArray
    weights: FloatArray
    classes: NDArray[Any]
    exponent: int  # all samples are divided by 2**exponent
    folder: str | None = None  # where the blocks are stored, None for on the workers

    @property
    def log_masses(self) -> FloatArray:
        """Logarithms of the total weight of each class."""
        return np.asarray(np.log(np.bincount(self.codes, weights=self.weights)))


def make_blocks(tasks: Tasks, source: Source, settings: Settings) -> SamplesInBlocks:
    """Check all chunks, and distribute their rows to blocks."""
    # Chunks are computed or read twice instead of being kept; users who have the memory can persist them.
    chunks, most = source.chunks, settings.block_size or max(source.sizes)
    survey = _survey(tasks, source, settings.metric, most)
    folder = tempfile.mkdtemp(dir=source.folder) if source.folder else None
    paths = [f"{folder}/chunk-{c}" if folder else None for c in range(len(chunks))]
    firsts = np.cumsum([0, *map(len, survey.kept)]).tolist()
    sort = partial(sort_by_cell, survey=survey._replace(kept=[]))
    sorted_ = tasks.submit_lazy("sort-rows", sort, zip(chunks, firsts, paths, strict=False))
    starts = tasks.map("describe-rows", itemgetter(1), sorted_)
    blocks: list[Any] = []
    for group in _group_cells(starts, most):
        if folder is not None:
            parts = tuple((paths[c], *starts[c][cell : cell + 2].tolist()) for c, cell in group)
            blocks.append(StoredBlock(parts))
        else:
            rows = [tasks.submit("take-rows", _rows_of_cell, sorted_[c], cell) for c, cell in group]
            blocks.append(tasks.submit("gather-block", concatenate, *rows))
    found = tasks.map("describe-block", describe, blocks)
    lows, highs, without_points = zip(*found, strict=True)
    _, _, codes, weights = concatenate(*without_points)
    used = [start + kept for start, kept in zip(source.starts, survey.kept, strict=False)]
    return SamplesInBlocks(
        blocks,
        lows=np.array(lows),
        highs=np.array(highs),
        rows=np.concatenate(used),
        codes=codes,
        weights=weights,
        classes=survey.classes,
        exponent=survey.exponent,
        folder=folder,
    )


class Survey(NamedTuple):
    """What all chunks have in common, and how space is cut."""

    kept: list[IntArray]  # the rows of positive weight of each chunk
    classes: NDArray[Any]
    exponent: int
    n_cells: int
    cells: Any  # see `cut_space`


def _survey(tasks: Tasks, source: Source, metric: Metric, most: int) -> Survey:
    """Check all chunks, and cut space into cells of about `most` rows."""
    least = ROWS_PER_CELL * ceil_div(source.starts[-1], most)
    n_some = min(SAMPLED_ROWS, max(least, SAMPLED_BYTES // (8 * max(1, source.n_features))))
    n_columns = max(1, SAMPLED_BYTES // (8 * n_some))
    size = (ceil_div(n_some, len(source.chunks)), n_columns)
    calls = [
        (chunk, start, size, metric)
        for chunk, start in zip(source.chunks, source.starts, strict=False)
    ]
    described = tasks.gather(tasks.submit_lazy("check-rows", look_at_rows, calls))
    kept, some, largest, labels, widths = zip(*described, strict=True)
    n_cells = ceil_div(sum(map(len, kept)), most) if metric.euclidean else 1
    return Survey(
        kept=list(kept),
        classes=common_classes(labels),
        exponent=int(np.frexp(max(largest))[1]) if metric.euclidean else 0,
        n_cells=n_cells,
        cells=cut_space(np.concatenate(some), n_cells, spread(widths[0], n_columns)),
    )


def spread(n: int, most: int) -> IntArray:
    """Return all of n columns, or `most` of them, evenly spread."""
    return np.arange(min(n, most)) * n // min(n, most)


def look_at_rows(
    rows: Rows, start: int, size: tuple[int, int], metric: Metric
) -> tuple[IntArray, FloatArray, float, NDArray[Any], int]:
    """Check a chunk whose first row has the index `start`.

    Returns the rows of positive weight, a few of their samples in a few features (of this `size`), the largest
    magnitude, the distinct labels and the number of features.
    """
    X, y, weights = checked_rows(rows, start)
    metric.check(X)
    kept = np.flatnonzero(weights)
    few = kept[:: max(1, ceil_div(len(kept), size[0]))]
    some = X[np.ix_(few, spread(X.shape[1], size[1]))]
    used = X if len(kept) == len(X) else X[kept]
    largest = max(float(used.max(initial=0.0)), -float(used.min(initial=0.0)))
    return kept, some, largest, labels_of_chunk(y[kept]), X.shape[1]


def checked_rows(rows: Rows, start: int = 0) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Check samples, labels and weights of a chunk whose first row has the index `start`."""
    X, y, weights = check_chunk(rows.X), np.asarray(to_host(rows.y)), np.ones(len(rows.X))
    if rows.weights is not None:
        column = np.asarray(to_host(rows.weights)).reshape(-1, 1)
        weights = check_chunk(column, "sample_weight")[:, 0]
        check_weights(weights, start)
    check_no_label_missing(y, start)
    return X, y, weights


def labels_of_chunk(y: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels of a chunk."""
    try:
        return np.unique(y)
    except TypeError:
        check_labels(y)  # the error names the types
        raise


def common_classes(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Check the distinct labels of all chunks, and return their union."""
    labels = [each for each in labels if len(each)]
    check_any_weight(len(labels))
    try:
        np.unique(np.concatenate([each.astype(object) for each in labels]))
    except TypeError as error:
        raise TypeError(
            "y has labels of several types in different partitions, which cannot be sorted: convert all "
            "labels to one type, for example with y.astype(str)."
        ) from error
    classes = np.unique(np.concatenate(labels))
    check_labels(np.repeat(classes, 4))  # scikit-learn warns about values that hardly repeat
    check_enough_classes(classes)
    return classes


def cut_space(some: FloatArray, n_cells: int, columns: IntArray) -> Any:
    """Cut space into cells with about equally many of some rows, which have these columns only.

    Returns the number of a cell, or a cut: (feature, value, cells below the value, other cells).
    """
    numbers = count()

    def cut(rows: FloatArray, n: int) -> Any:
        widths = np.ptp(rows, axis=0) if len(rows) else np.zeros(1)
        if n == 1 or widths.max() == 0.0:
            return next(numbers)
        feature = int(np.argmax(widths))
        column = rows[:, feature]
        value = float(np.sort(column)[len(column) * (n // 2) // n])
        if value == column.min():  # nothing would lie below: cut above the value instead
            value = float(column[column > value].min())
        low = column < value
        below, above = cut(rows[low], n // 2), cut(rows[~low], n - n // 2)
        return int(columns[feature]), value, below, above

    return cut(some, n_cells)


def find_cells(cells: Any, X: FloatArray) -> IntArray:
    """Find the cell of every row."""
    found = np.empty(len(X), dtype=np.int64)

    def descend(cell: Any, rows: IntArray) -> None:
        if isinstance(cell, int):
            found[rows] = cell
            return
        feature, value, below, above = cell
        low = X[rows, feature] < value
        descend(below, rows[low])
        descend(above, rows[~low])

    descend(cells, np.arange(len(X)))
    return found


def sort_by_cell(
    rows: Rows, first: int, path: str | None, survey: Survey
) -> tuple[Block | None, IntArray]:
    """Sort the rows of a chunk by cell; those of cell c are range(starts[c], starts[c + 1]).

    `first` is the index of its first sample among all. Rows are saved if a path is given, else returned.
    """
    X, y, weights = checked_rows(rows)
    kept = weights > 0.0
    if not kept.all():
        X, y, weights = X[kept], y[kept], weights[kept]
    cell = find_cells(survey.cells, X)
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(survey.n_cells + 1))
    points = scaled_copy(X[order], survey.exponent)
    codes = np.searchsorted(survey.classes, y[order]).astype(np.int64)
    block = Block(first + order, points, codes, weights[order])
    if path is None:
        return block, starts
    for name, array in block._asdict().items():
        np.save(f"{path}-{name}.npy", array)
    return None, starts


def _rows_of_cell(chunk: tuple[Block, IntArray], cell: int) -> Block:
    block, starts = chunk
    # A copy, so that the chunk can be freed.
    return block.take(np.arange(*starts[cell : cell + 2]))


def describe(block: Block) -> tuple[FloatArray, FloatArray, Block]:
    """Return the bounding box of a block, and the block without its features."""
    # A copy: an empty slice would keep the features in memory.
    return *box_of(block.points), block._replace(points=block.points[:, :0].copy())


def _group_cells(starts: list[IntArray], most: int) -> list[list[tuple[int, int]]]:
    """Group (chunk, cell) pairs into blocks: all chunks of a cell or, if that is too large, some of them."""
    groups = []
    for cell, of_chunks in enumerate(np.diff(starts).T):
        chunks = np.flatnonzero(of_chunks)
        for group in group_neighbours(of_chunks[chunks].tolist(), 1.5 * most):
            groups.append([(c, cell) for c in chunks[group].tolist()])
    return groups
