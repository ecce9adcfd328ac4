"""Candidates of every row: the columns with the smallest lower bounds on their distance.

A tile of products is written, read once by the selection, and forgotten; those bytes cost more time than the
arithmetic. Where there are many columns, products are therefore *filtered* while they are still in
the registers: only what is below the row's bound of the moment is written at all. Columns come in chunks, each
twice as large as all before it together, spread evenly over the whole. What was seen so far
thus tells what to expect: about as many pass in each chunk as a row has candidates. Rows of which more pass
than there is room for, as may happen where columns are not in any order, are done again by whole tiles.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from popf.engine.gpu.host import CANDIDATES, Array
from popf.engine.gpu.points import Block, DevicePoints

Kept = tuple[Array, Array]

# From how many columns on products are filtered, and how many at least come before the first filter.
FEWEST = 1 << 17
FIRST = 1 << 12
# Rows that are filtered at a time, as far as the bytes for what passes allow.
FILTERED_ROWS = 1 << 17


def rows_at_once(laid: DevicePoints, n_columns: int, rows: int) -> int:
    """How many rows to look for candidates of at a time: `rows`, or more where products are filtered."""
    return max(rows, FILTERED_ROWS) if laid.filters and n_columns >= FEWEST else rows


def find_candidates(
    laid: DevicePoints,
    rows: Block,
    own: Array,
    columns: tuple[int, int],
    floors: Array,
    rows_in_tile: int,
) -> Kept:
    """Find the columns of the smallest bounds ``max(floor, |x|² + |y|² - 2 x·y)`` for every row.

    Columns are the points from `columns[0]` to before `columns[1]`, except ``own[row]``. Where products are
    not filtered, `rows_in_tile` rows are multiplied at a time. Returns the bounds and indices of
    `CANDIDATES` columns of every row, infinite and -1 where there are fewer.
    """
    n_rows, (low, high) = len(rows.lower), columns
    kept = _no_candidates(laid.kernels.xp, n_rows)
    halved = laid.halved(rows) if laid.filters and high - low >= FEWEST else None
    if halved is None:
        for start in range(0, n_rows, rows_in_tile):
            here = slice(start, start + rows_in_tile)
            part = kept[0][here], kept[1][here]
            _select(laid, _rows(rows, here), own[here], columns, floors, part)
        return kept
    stride = 1 << max(0, int((high - low) // FIRST).bit_length() - 1)
    _select_some(laid, rows, own, (low, high, stride), floors, kept, rows_in_tile)
    crowded = laid.kernels.xp.zeros(n_rows, dtype=np.bool_)
    for chunk in _chunks(low, high, stride):
        laid.kernels.filter(halved, own, laid.chunk(*chunk), floors[slice(*chunk)], kept, crowded)
    again = np.flatnonzero(laid.kernels.get(crowded))
    for start in range(0, len(again), rows_in_tile):
        some = laid.kernels.put(again[start : start + rows_in_tile])
        part = _no_candidates(laid.kernels.xp, len(some))
        _select(laid, _rows(rows, some), own[some], columns, floors, part)
        kept[0][some], kept[1][some] = part
    return kept


def _chunks(low: int, high: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """All columns but every `stride`-th: of 10 with stride 4 first 2 and 6, then 1, 3, 5, 7, 9."""
    while stride > 1:
        if low + stride // 2 < high:
            yield low + stride // 2, high, stride
        stride //= 2


def _no_candidates(xp: Any, n_rows: int) -> Kept:
    shape = (n_rows, CANDIDATES)
    return xp.full(shape, np.inf, dtype=np.float32), xp.full(shape, -1, dtype=np.int32)


def _rows(rows: Block, which: Any) -> Block:
    return Block(*(part[which] for part in rows))


def _select(
    laid: DevicePoints,
    rows: Block,
    own: Array,
    columns: tuple[int, int],
    floors: Array,
    kept: Kept,
) -> None:
    """Select candidates from whole tiles of products."""
    for first in range(*columns, laid.columns):
        last = min(first + laid.columns, columns[1])
        other = laid.block(first, last)
        products = laid.kernels.multiply(rows.single, other.single)
        norms = (rows.lower, other.lower)
        laid.kernels.select(products, norms, floors[first:last], first, own, kept)


def _select_some(
    laid: DevicePoints,
    rows: Block,
    own: Array,
    chunk: tuple[int, int, int],
    floors: Array,
    kept: Kept,
    rows_in_tile: int,
) -> None:
    """Select candidates from some of the columns."""
    kernels, (low, _, stride) = laid.kernels, chunk
    xp = kernels.xp
    other = laid.some(*chunk)
    heights = xp.ascontiguousarray(floors[slice(*chunk)])
    # By their place among the chosen columns, and back.
    place = xp.where((own - low) % stride == 0, (own - low) // stride, -1)
    for start in range(0, len(rows.lower), rows_in_tile):
        here = slice(start, start + rows_in_tile)
        mine, part = _rows(rows, here), (kept[0][here], kept[1][here])
        products = kernels.multiply(mine.single, other.single)
        kernels.select(products, (mine.lower, other.lower), heights, 0, place[here], part)
    indices = kept[1]
    indices[:] = xp.where(indices >= 0, indices * stride + low, -1)
