"""What the engine asks of a device, answered by kernels of a GPU or by their twin in NumPy."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.gpu.candidates import DevicePoints, find_candidates
from popf.engine.gpu.host import CANDIDATES
from popf.engine.soft import CompetingPoints, too_small
from popf.engine.structures import (
    Conquered,
    FloatArray,
    IntArray,
    NeighbourLists,
    OutgoingArcSearch,
)
from popf.engine.trees.boruvka import offer_arcs, wanted_points

# How many neighbours of every point are listed, out of the candidates.
N_NEIGHBOURS = 12
# How many pairs of a tile may come back at a time.
CAPACITY = 1 << 24
# Rows and columns of a tile of the soft competition.
SOFT_ROWS, SOFT_COLUMNS = 8192, 8192


class GpuBackend:
    """The GPU's algorithms, by `CudaKernels` or `HostKernels`; see `popf.engine.structures.Backend`."""

    def __init__(self, kernels: Any) -> None:
        self.kernels = kernels

    def place(self, points: FloatArray) -> DevicePoints:
        """Lay out points on the device."""
        return DevicePoints(points, self.kernels)

    def nearest_neighbours(self, placed: DevicePoints, split: int | None = None) -> NeighbourLists:
        """List neighbours of all points; with `split`, those on the other side of that position."""
        xp, n_points = self.kernels.xp, len(placed)
        k = min(N_NEIGHBOURS, n_points - 1, CANDIDATES)
        lists = NeighbourLists(
            np.empty((n_points, k), dtype=np.int32), np.empty((n_points, k)), np.empty(n_points)
        )
        floors = xp.zeros(n_points, dtype=np.float32)
        for here in _runs(n_points, placed.rows_at_once(), split):
            own = xp.arange(here.start, here.stop, dtype=np.int64)
            columns = _other_side(placed, here.start, split)
            kept = find_candidates(placed, placed.take(here), own, columns, floors)
            found = placed.decider.neighbours(placed.exact[here], placed.exact, kept, k)
            lists.positions[here], lists.squared[here], lists.horizon[here] = found
        return lists

    def nearest_outsiders(
        self, placed: DevicePoints, search: OutgoingArcSearch, split: int | None = None
    ) -> None:
        """Find the shortest arc out of every component that is not certain of it.

        First an upper bound on its length, from products alone; then all pairs that may be as short, of which
        the distances are computed. With `split` only arcs between the sides are looked for.
        """
        best, of, classes = search.best, search.components.of, search.components.classes
        wanted = np.flatnonzero(wanted_points(search, False))
        border = len(wanted) if split is None else int(np.searchsorted(wanted, split))
        waiting = [wanted[here] for here in _runs(len(wanted), placed.rows, border)]
        bounds = best["squared"].copy()
        for rows in waiting:
            low = _upper_bounds(placed, of, rows, split)
            np.minimum.at(bounds, of[rows], low.astype(np.float64))
        found: list[tuple[IntArray, IntArray, FloatArray]] = []
        while waiting:
            rows = waiting.pop()
            pairs = _pairs_within(placed, of, rows, bounds[of[rows]], split)
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

    def conquer(
        self,
        placed: DevicePoints,
        costs: FloatArray,
        rank: IntArray,
        queries: FloatArray,
        fallback: Callable[[FloatArray], Conquered],
    ) -> Conquered:
        """Find who conquers each query, by squared costs; queries are scaled as the points are.

        The cheapest few are found by products, the winner among them by exact distances: by cost, distance and
        `rank`. It is certain if it costs less than what is left out could at best. Where it does not, as with
        many nodes of one and the same cost, the query is handed to `fallback`.
        """
        n_queries, decider = len(queries), placed.decider
        # Rounded down, so that bounds stay bounds.
        single = costs.astype(np.float32)
        single = np.where(single > costs, np.nextafter(single, np.float32(-np.inf)), single)
        floors = self.kernels.put(single)
        exact_costs, exact_rank = decider.put(costs), decider.put(rank)
        nodes, certain = np.empty(n_queries, dtype=np.int64), np.empty(n_queries, dtype=np.bool_)
        found = Conquered(nodes, np.empty(n_queries), np.empty(n_queries))
        for here in _runs(n_queries, placed.rows_at_once()):
            own = self.kernels.xp.full(here.stop - here.start, -1, dtype=np.int64)
            mine = placed.others(queries[here])
            kept = find_candidates(placed, mine, own, (0, len(placed)), floors)
            answers = decider.conquerors(
                decider.put(queries[here]), placed.exact, kept, exact_costs, exact_rank
            )
            for whole, part in zip((*found, certain), answers, strict=True):
                whole[here] = part
        unsure = np.flatnonzero(~certain)
        if len(unsure):
            for whole, part in zip(found, fallback(queries[unsure]), strict=True):
                whole[unsure] = part
        return found

    def soft_scores(
        self, nodes: CompetingPoints, queries: FloatArray, taus: FloatArray
    ) -> FloatArray:
        """Score queries as ``nodes.scores``: products in float64, the smallest distances computed anew."""
        kernels, flat = self.kernels, taus.ravel()
        scores = np.full((len(queries), len(nodes.masses), *taus.shape), np.inf)
        points = kernels.put(nodes.points)
        facts = tuple(kernels.put(part) for part in (nodes.norms, nodes.costs, nodes.weights))
        for here in _runs(len(queries), SOFT_ROWS):
            centred = queries[here] - nodes.center
            norms = np.einsum("ij,ij->i", centred, centred)
            mine, row_norms = kernels.put(centred), kernels.put(norms)
            for k, mass in enumerate(nodes.masses):
                low = kernels.xp.full(len(norms), np.inf)
                sums = kernels.xp.zeros((len(norms), taus.size))
                for part in _cut(int(nodes.starts[k]), int(nodes.starts[k + 1]), SOFT_COLUMNS):
                    reach = nodes.reach(part.start, part.stop)
                    least = kernels.put(too_small(norms, reach, queries.shape[1], taus))
                    kernels.add_terms(
                        kernels.multiply(mine, points[part]),
                        (mine, row_norms, least),
                        (points[part], *(fact[part] for fact in facts)),
                        taus,
                        (low, sums),
                    )
                lowest, totals = kernels.get(low), kernels.get(sums)
                reached = np.flatnonzero(np.isfinite(lowest))
                found = lowest[reached, None] / flat - np.log(totals[reached] / mass)
                scores[here.start + reached, k] = found.reshape(-1, *taus.shape)
        return scores


def _cut(low: int, high: int, size: int) -> list[slice]:
    """Cut a range into blocks."""
    return [slice(start, min(start + size, high)) for start in range(low, high, size)]


def _runs(n_points: int, size: int, split: int | None = None) -> list[slice]:
    """Cut points into blocks, none of them on both sides."""
    ends = [0, n_points] if split is None else [0, split, n_points]
    return [block for low, high in pairwise(ends) for block in _cut(low, high, size)]


def _other_side(placed: DevicePoints, row: int, split: int | None) -> tuple[int, int]:
    """Return the range of points that a row is compared with."""
    if split is None:
        return 0, len(placed)
    return (split, len(placed)) if row < split else (0, split)


def _upper_bounds(
    placed: DevicePoints, of: NDArray[np.int32], rows: IntArray, split: int | None
) -> NDArray[np.float32]:
    """Bound the distance of some points to the nearest point of another component from above."""
    kernels = placed.kernels
    mine, own, whole = placed.take(rows), kernels.put(of[rows]), kernels.put(of)
    low = kernels.xp.full(len(rows), np.inf, dtype=np.float32)
    for here in _cut(*_other_side(placed, int(rows[0]), split), placed.columns):
        other = placed.take(here)
        products = kernels.multiply(mine.single, other.single)
        kernels.outsider_bounds(products, (mine.upper, other.upper), (own, whole[here]), low)
    bounds: NDArray[np.float32] = kernels.get(low)
    return bounds


def _pairs_within(
    placed: DevicePoints,
    of: NDArray[np.int32],
    rows: IntArray,
    limits: FloatArray,
    split: int | None,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """List pairs of components that may be as near as the limit of their row, with their squares.

    Returns None if there are too many at once.
    """
    kernels, decider = placed.kernels, placed.decider
    mine, own, whole = placed.take(rows), kernels.put(of[rows]), kernels.put(of)
    with np.errstate(over="ignore"):
        limit = kernels.put(np.nextafter(limits.astype(np.float32), np.float32(np.inf)))
    found = []
    for here in _cut(*_other_side(placed, int(rows[0]), split), placed.columns):
        other = placed.take(here)
        products = kernels.multiply(mine.single, other.single)
        norms, sides = (mine.lower, other.lower), (own, whole[here])
        pairs = kernels.outsiders(products, norms, sides, limit, CAPACITY)
        if pairs is None and len(rows) > 1:
            return None
        if pairs is None:  # one row, and all of it: nothing to be gained by less
            outside = np.flatnonzero(of[here] != of[rows[0]])
            pairs = np.zeros(len(outside), dtype=np.int64), outside
        a, b = rows[pairs[0]], pairs[1] + here.start
        squared = decider.get(decider.pair_squares(placed.exact, decider.put(a), decider.put(b)))
        near = squared <= limits[pairs[0]]
        found.append((a[near], b[near], squared[near]))
    first, second, squared = map(np.concatenate, zip(*found, strict=True))
    return first, second, squared
