"""Which rows make a block: those that lie together, so that few pairs of blocks are near each other.

Rows come in any order. A few of each chunk are looked at; they tell where to cut space so that about as many
rows fall into each cell. Then every chunk deals its rows to the cells, and a block gathers what was
dealt to its cell. A block is never larger than the largest chunk, or than the size asked for.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.dask.cluster import Tasks
from popf.dask.nearby import Block, concatenate
from popf.dask.sources import Source, check_chunk, map_file
from popf.engine.points import scaled_copy
from popf.forest.devices import to_host
from popf.labels import check_labels, encode

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How many rows are looked at in all to find cells.
LOOKED_AT = 100_000


class Look(NamedTuple):
    """What a chunk looks like.

    Attributes
    ----------
    kept : ndarray of int64
        Rows of positive weight.
    some : ndarray of shape (n_some, n_features)
        A few of them.
    largest : float
        The largest magnitude.
    labels : ndarray
        The distinct labels.
    kind : str
        What type of labels.
    """

    kept: IntArray
    some: FloatArray
    largest: float
    labels: NDArray[Any]
    kind: str


def look(rows: Any, start: int, n_some: int, metric: Any) -> Look:
    """Check a chunk, and look at some of its rows."""
    X, y, weights = rows.read()
    X, y = check_chunk(X), np.asarray(to_host(y))
    metric.check(X)
    kept = np.arange(len(X))
    if weights is not None:
        weights = check_chunk(np.asarray(to_host(weights)).reshape(-1, 1), "sample_weight")[:, 0]
        if (weights < 0.0).any():
            row = int(np.argmax(weights < 0.0))
            raise ValueError(
                f"sample_weight[{start + row}] is {weights[row]}, but weights must not be negative. "
                "Leave a sample out by a weight of 0."
            )
        kept = np.flatnonzero(weights > 0.0)
    if len(y) and (y != y).any():
        raise ValueError(
            f"y[{start + int(np.argmax(y != y))}] is missing: every sample needs a label."
        )
    labels = y[kept]
    kinds = {_kind(label) for label in labels.tolist()} if y.dtype == object else {y.dtype.kind}
    if len(kinds) > 1:
        check_labels(labels)  # tells that types are mixed
    some = X[kept[:: max(1, -(-len(kept) // n_some))]]
    largest = float(np.abs(X[kept]).max(initial=0.0))
    distinct = np.unique(labels) if len(labels) else labels
    return Look(kept, some, largest, distinct, kinds.pop() if len(labels) else "")


def _kind(label: Any) -> str:
    return "U" if isinstance(label, str) else np.asarray(label).dtype.kind


class Cells(NamedTuple):
    """Space, cut into cells.

    Attributes
    ----------
    feature : ndarray of shape (n_cuts,)
        Along which feature it is cut.
    value : ndarray of shape (n_cuts,)
        Where.
    below, above : ndarray of shape (n_cuts,)
        What lies on either side: a cut, or ``-1 - cell``.
    """

    feature: IntArray
    value: FloatArray
    below: IntArray
    above: IntArray

    def of(self, X: FloatArray) -> IntArray:
        """Give the cell of every row."""
        at = np.zeros(len(X), dtype=np.int64)
        rows = np.arange(len(X) if len(self.feature) else 0)
        while len(rows):
            cut = at[rows]
            low = X[rows, self.feature[cut]] < self.value[cut]
            at[rows] = np.where(low, self.below[cut], self.above[cut])
            rows = rows[at[rows] >= 0]
        return -1 - at if len(self.feature) else at


def cut_space(some: FloatArray, n_cells: int) -> Cells:
    """Cut space so that about as many of some rows fall into each cell.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.dask.partitioning import cut_space
    >>> line = np.arange(9.0)[:, None]
    >>> cut_space(line, 3).of(line)
    array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    """
    cuts: list[tuple[int, float, int, int]] = []
    n_done = 0

    def cut(rows: FloatArray, n: int) -> int:
        nonlocal n_done
        widths = np.ptp(rows, axis=0) if len(rows) else np.zeros(1)
        if n == 1 or widths.max() == 0.0:
            n_done += 1
            return -n_done
        feature = int(np.argmax(widths))
        column = rows[:, feature]
        value = float(np.sort(column)[len(column) * (n // 2) // n])
        if value == column.min():  # nothing would lie below: cut above the value instead
            value = float(column[column > value].min())
        mine = len(cuts)
        cuts.append((0, 0.0, 0, 0))
        low = column < value
        cuts[mine] = (feature, value, cut(rows[low], n // 2), cut(rows[~low], n - n // 2))
        return mine

    cut(some, n_cells)
    table = np.array(cuts, dtype=np.float64).reshape(-1, 4)
    whole = table.astype(np.int64)
    return Cells(whole[:, 0], table[:, 1], whole[:, 2], whole[:, 3])


class Plan(NamedTuple):
    """What every chunk needs to know to deal its rows.

    Attributes
    ----------
    classes : ndarray
    exponent : int
        The power of two that is taken out of the samples.
    cells : Cells
    n_cells : int
    folder : str or None
        Where blocks are written, if not kept in memory.
    """

    classes: NDArray[Any]
    exponent: int
    cells: Cells
    n_cells: int
    folder: str | None


class Dealt(NamedTuple):
    """The rows of a chunk, cell after cell.

    Attributes
    ----------
    rows : Block or str
        The rows, or the file that they were written to.
    starts : ndarray of shape (n_cells + 1,)
        Cell c is ``range(starts[c], starts[c + 1])``.
    lows, highs : ndarray of shape (n_cells, n_features)
        The box of every cell's rows.
    """

    rows: Any
    starts: IntArray
    lows: FloatArray
    highs: FloatArray


def deal(rows: Any, kept: IntArray | None, first: int, number: int, plan: Plan) -> Dealt:
    """Deal the rows of a chunk to the cells.

    Parameters
    ----------
    rows : Rows
    kept : ndarray or None
        Rows of positive weight, None for all.
    first : int
        The number of the first of them among all samples.
    number : int
        Of the chunk.
    plan : Plan
    """
    X, y, weights = rows.read()
    X, y = check_chunk(X), np.asarray(to_host(y))
    weights = np.ones(len(X)) if weights is None else np.asarray(to_host(weights), dtype=np.float64)
    if kept is not None:
        X, y, weights = X[kept], y[kept], weights[kept]
    codes = np.searchsorted(plan.classes, y).astype(np.int64)
    cell = plan.cells.of(X)
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(plan.n_cells + 1))
    points = scaled_copy(X[order], plan.exponent)
    block = Block(first + order, points, codes[order], np.ascontiguousarray(weights[order]))
    boxes = np.full((2, plan.n_cells, X.shape[1]), np.nan)
    for c in np.flatnonzero(np.diff(starts)):
        mine = points[starts[c] : starts[c + 1]]
        boxes[:, c] = mine.min(axis=0), mine.max(axis=0)
    if plan.folder is None:
        return Dealt(block, starts, *boxes)
    path = str(Path(plan.folder) / f"chunk-{number}")
    for name, array in block._asdict().items():
        np.save(f"{path}-{name}.npy", array)
    return Dealt(path, starts, *boxes)


def describe(dealt: Dealt) -> Dealt:
    """Give all but the rows."""
    return dealt if isinstance(dealt.rows, str) else dealt._replace(rows=None)


def piece(dealt: Dealt, cell: int) -> Block:
    """Give the rows of one cell."""
    mine = slice(dealt.starts[cell], dealt.starts[cell + 1])
    return Block(*map(np.copy, dealt.rows.take(mine)))


def gather_block(*pieces: Block) -> Block:
    """Make a block of what was dealt to its cell."""
    return concatenate(list(pieces))


class StoredBlock(NamedTuple):
    """A block on disk.

    Attributes
    ----------
    pieces : tuple of (str, int, int)
        File, start and stop.
    """

    pieces: tuple[tuple[str, int, int], ...]

    def load(self) -> Block:
        """Read it into memory."""
        parts = []
        for path, start, stop in self.pieces:
            names = Block._fields
            arrays = (map_file(f"{path}-{name}.npy")[start:stop] for name in names)
            parts.append(Block(*map(np.array, arrays)))
        return concatenate(parts)


class Blocks(NamedTuple):
    """All samples, in blocks.

    Attributes
    ----------
    blocks : list
        Futures of `Block`, or `StoredBlock`.
    sizes : ndarray of shape (n_blocks,)
    lows, highs : ndarray of shape (n_blocks, n_features)
        Their boxes.
    classes : ndarray
    kept : ndarray
        The rows that were used, those of positive weight.
    exponent : int
        The power of two that was taken out.
    """

    blocks: list[Any]
    sizes: IntArray
    lows: FloatArray
    highs: FloatArray
    classes: NDArray[Any]
    kept: IntArray
    exponent: int


def deal_blocks(
    tasks: Tasks, source: Source, metric: Any, block_size: int | None, folder: str | None
) -> Blocks:
    """Check all chunks, and put their rows into blocks.

    Parameters
    ----------
    tasks : Tasks
    source : Source
    metric : Metric
    block_size : int or None
        How many rows a block may have, None for as many as the largest chunk.
    folder : str or None
        Where blocks are written, None to keep them on the workers.

    Returns
    -------
    Blocks
    """
    # A chunk that must be computed is computed twice rather than kept: who has memory, persists it.
    chunks, submit = source.chunks, tasks.submit if source.on_disk else tasks.submit_lazy
    starts = np.concatenate([[0], np.cumsum(source.sizes)])
    n_some = max(50, LOOKED_AT // len(chunks))
    looks = tasks.gather(
        [
            submit("look-at-rows", look, chunk, int(start), n_some, metric)
            for chunk, start in zip(chunks, starts, strict=False)
        ]
    )
    classes = _common_classes(looks)
    counts = [len(a.kept) for a in looks]
    kept = np.concatenate([start + a.kept for start, a in zip(starts, looks, strict=False)])
    if len(kept) == 0:
        raise ValueError(
            "sample_weight is zero everywhere, which leaves no samples: give some of them a "
            "positive weight."
        )
    exponent = 0
    if metric.euclidean:
        largest = max(a.largest for a in looks)
        exponent = int(np.frexp(largest)[1]) if largest > 0.0 else 0
    most = block_size or max(source.sizes)
    n_cells = -(-len(kept) // most) if metric.euclidean else 1
    cells = cut_space(np.concatenate([a.some for a in looks]), n_cells)
    plan = Plan(classes, exponent, cells, n_cells, folder)
    firsts = np.concatenate([[0], np.cumsum(counts)])
    dealt = [
        submit(
            "deal-rows", deal, chunk, a.kept if len(a.kept) < size else None, int(first), p, plan
        )
        for p, (chunk, a, size, first) in enumerate(
            zip(chunks, looks, source.sizes, firsts, strict=False)
        )
    ]
    told = tasks.gather([tasks.submit("describe-rows", describe, d) for d in dealt])
    groups = _group(told, most)
    blocks: list[Any] = []
    for group in groups:
        if folder is not None:
            files = ((told[p].rows, *told[p].starts[c : c + 2].tolist()) for p, c in group)
            blocks.append(StoredBlock(tuple(files)))
        else:
            pieces = [tasks.submit("take-rows", piece, dealt[p], c) for p, c in group]
            blocks.append(tasks.submit("gather-block", gather_block, *pieces))
    sizes = [sum(int(np.diff(told[p].starts)[c]) for p, c in group) for group in groups]
    lows = np.array([np.min([told[p].lows[c] for p, c in group], axis=0) for group in groups])
    highs = np.array([np.max([told[p].highs[c] for p, c in group], axis=0) for group in groups])
    return Blocks(blocks, np.array(sizes), lows, highs, classes, kept, exponent)


def _group(told: list[Dealt], most: int) -> list[list[tuple[int, int]]]:
    """Say which (chunk, cell) make a block: a cell's, or, if they are too many, some of them."""
    groups = []
    for c in range(len(told[0].starts) - 1):
        group: list[tuple[int, int]] = []
        total = 0
        for p, dealt in enumerate(told):
            size = int(dealt.starts[c + 1] - dealt.starts[c])
            if size and group and total + size > 1.5 * most:
                groups.append(group)
                group, total = [], 0
            if size:
                group.append((p, c))
                total += size
        if group:
            groups.append(group)
    return groups


def _common_classes(looks: list[Look]) -> NDArray[Any]:
    """Check that labels are of one type in all chunks, and give all that occur."""
    told = [a for a in looks if len(a.labels)]
    kinds = {"number" if a.kind in "biuf" else a.kind for a in told}
    if len(kinds) > 1:
        words = {"number": "numbers", "U": "strings", "S": "bytes", "M": "dates"}
        names = sorted(words.get(kind, f"type {kind!r}") for kind in kinds)
        raise TypeError(
            f"y has labels of several types in different partitions ({', '.join(names)}): give all "
            "labels one type, for instance by y.astype(str)."
        )
    if not told:
        return np.empty(0)
    labels = np.concatenate([a.labels for a in told])
    check_labels(np.repeat(np.unique(labels), 4))  # few kinds, as far as scikit-learn can see
    classes, _ = encode(labels)
    if len(classes) < 2:
        (label,) = classes.tolist()
        raise ValueError(
            f"y has one class only, {label!r}: prototypes are found where classes meet, so a "
            "forest needs samples of at least two classes."
        )
    return classes
