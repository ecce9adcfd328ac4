"""Neighbours on a device, for the spanning tree: see `boruvka` for what is done with them."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from popf.engine.gpu.candidates import find_candidates, rows_at_once
from popf.engine.gpu.host import CANDIDATES
from popf.engine.gpu.points import ROWS, DevicePoints
from popf.engine.structures import FloatArray, IntArray, NeighbourLists, OutgoingArcSearch
from popf.engine.trees.boruvka import offer_arcs, wanted_points

# How many neighbours of every point are listed, out of the candidates.
N_NEIGHBOURS = 12
# How many pairs of a tile may come back at a time.
CAPACITY = 1 << 24


def nearest_neighbours(
    laid: DevicePoints, k: int = N_NEIGHBOURS, rows: int = ROWS, split: int | None = None
) -> NeighbourLists:
    """Find the k nearest neighbours of every point, `rows` points at a time.

    With `split`, the first point of a second side, they are those on the other side.
    """
    kernels, n_points = laid.kernels, len(laid)
    xp, k = kernels.xp, min(k, n_points - 1, CANDIDATES)
    lists = NeighbourLists(
        np.empty((n_points, k), dtype=np.int32), np.empty((n_points, k)), np.empty(n_points)
    )
    floors = xp.zeros(n_points, dtype=np.float32)
    for start, stop in _runs(n_points, rows_at_once(laid, n_points, rows), split):
        mine, own = laid.block(start, stop), xp.arange(start, stop, dtype=np.int64)
        kept = find_candidates(laid, mine, own, _other_side(laid, start, split), floors, rows)
        deciding, points = laid.exact_kernels()
        if deciding is not kernels:
            kept = (kernels.get(kept[0]), kernels.get(kept[1]))
        here = slice(start, stop)
        found = deciding.neighbours(points[here], points, kept, k)
        lists.positions[here], lists.squared[here], lists.horizon[here] = found
    return lists


def _runs(n_points: int, rows: int, split: int | None) -> list[tuple[int, int]]:
    """Cut points into blocks, none of them on both sides."""
    ends = [0, n_points] if split is None else [0, split, n_points]
    return [
        (start, min(start + rows, high))
        for low, high in pairwise(ends)
        for start in range(low, high, rows)
    ]


def _other_side(laid: DevicePoints, row: int, split: int | None) -> tuple[int, int]:
    """Return the range of points that a row is compared with."""
    if split is None:
        return 0, len(laid)
    return (split, len(laid)) if row < split else (0, split)


def _facing(laid: DevicePoints, row: int, split: int | None) -> Iterator[tuple[int, int]]:
    """Cut the points that a row is compared with into blocks."""
    low, high = _other_side(laid, row, split)
    for first in range(low, high, laid.columns):
        yield first, min(first + laid.columns, high)


def nearest_outsiders(
    laid: DevicePoints, rows_at_once: int, search: OutgoingArcSearch, split: int | None = None
) -> None:
    """Find the shortest arc out of every component that is not certain of it.

    First an upper bound on its length, from products alone; then all pairs that may be as short, of which
    the distances are computed. With `split` only arcs between the sides are looked for.
    """
    best, of, classes = search.best, search.components.of, search.components.classes
    wanted = np.flatnonzero(wanted_points(search, False))
    border = len(wanted) if split is None else int(np.searchsorted(wanted, split))
    waiting = [wanted[start:stop] for start, stop in _runs(len(wanted), rows_at_once, border)]
    bounds = best["squared"].copy()
    for rows in waiting:
        low = _upper_bounds(laid, of, rows, split)
        np.minimum.at(bounds, of[rows], low.astype(np.float64))
    found: list[tuple[IntArray, IntArray, FloatArray]] = []
    while waiting:
        rows = waiting.pop()
        pairs = _pairs_within(laid, of, rows, bounds[of[rows]], split)
        if pairs is None:  # too many at once
            half = -(-len(rows) // 2)
            waiting += [rows[:half], rows[half:]]
            continue
        offer_arcs(best, search.components, *pairs)
        found.append(pairs)
    for first, second, squared in found:
        # Ends of arcs between classes that are as short as the shortest of their component.
        tied = (squared == best["squared"][of[first]]) & (classes[first] != classes[second])
        search.prototypes[first[tied]] = search.prototypes[second[tied]] = True
    horizon = search.horizon
    horizon[wanted] = np.maximum(horizon[wanted], best["squared"][of[wanted]])


def _upper_bounds(
    laid: DevicePoints, of: NDArray[np.int32], rows: IntArray, split: int | None
) -> NDArray[np.float32]:
    """Bound the distance of some points to the nearest point of another component from above."""
    kernels = laid.kernels
    mine, own, whole = laid.take(rows), kernels.put(of[rows]), kernels.put(of)
    low = kernels.xp.full(len(rows), np.inf, dtype=np.float32)
    for first, last in _facing(laid, int(rows[0]), split):
        other = laid.block(first, last)
        products = kernels.multiply(mine.single, other.single)
        sides = (own, whole[first:last])
        kernels.outsider_bounds(products, (mine.upper, other.upper), sides, low)
    bounds: NDArray[np.float32] = kernels.get(low)
    return bounds


def _pairs_within(
    laid: DevicePoints,
    of: NDArray[np.int32],
    rows: IntArray,
    limits: FloatArray,
    split: int | None,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """List pairs of components that may be as near as the limit of their row, with their squares."""
    kernels = laid.kernels
    mine, own = laid.take(rows), kernels.put(of[rows])
    with np.errstate(over="ignore"):
        above = np.nextafter(limits.astype(np.float32), np.float32(np.inf))
    limit = kernels.put(above)
    whole = kernels.put(of)
    firsts, seconds, squares = [], [], []
    for first, last in _facing(laid, int(rows[0]), split):
        other = laid.block(first, last)
        products = kernels.multiply(mine.single, other.single)
        norms, sides = (mine.lower, other.lower), (own, whole[first:last])
        pairs = kernels.outsiders(products, norms, sides, limit, CAPACITY)
        if pairs is None and len(rows) > 1:
            return None
        if pairs is None:  # one row, and all of it: nothing to be gained by less
            outside = first + np.flatnonzero(of[first:last] != of[rows[0]])
            pairs = np.zeros(len(outside), dtype=np.int64), outside - first
        deciding, points = laid.exact_kernels()
        a, b = rows[pairs[0]], pairs[1] + first
        squared = deciding.get(deciding.pair_squares(points, deciding.put(a), deciding.put(b)))
        near = squared <= limits[pairs[0]]
        firsts.append(a[near])
        seconds.append(b[near])
        squares.append(squared[near])
    return np.concatenate(firsts), np.concatenate(seconds), np.concatenate(squares)
