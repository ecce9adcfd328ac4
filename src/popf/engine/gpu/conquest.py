"""Who conquers a new sample, on a device: the cheapest few by products, the winner by exact distances.

A winner is certain if it costs less than what is left out could at best. Where it does not, as with many
nodes of one and the same cost, the sample is handed to another search.
"""

from collections.abc import Callable

import numpy as np

from popf.engine.gpu.candidates import find_candidates, rows_at_once
from popf.engine.gpu.points import ROWS, DevicePoints
from popf.engine.structures import Conquered, FloatArray, IntArray

Fallback = Callable[[FloatArray], Conquered]


def conquer(
    laid: DevicePoints,
    costs: FloatArray,
    rank: IntArray,
    queries: FloatArray,
    fallback: Fallback,
    rows: int = ROWS,
) -> Conquered:
    """Find who conquers each query, by squared costs, `rows` queries at a time.

    Among equal costs and distances the lower `rank` conquers. Queries are scaled as the points are.
    """
    kernels, n_points = laid.kernels, len(laid)
    xp, n_queries = kernels.xp, len(queries)
    # Rounded down, so that bounds stay bounds.
    single = costs.astype(np.float32)
    single = np.where(single > costs, np.nextafter(single, np.float32(-np.inf)), single)
    floors, (decider, points) = kernels.put(single), laid.exact_kernels()
    exact_costs, exact_rank = decider.put(costs), decider.put(rank)
    found = Conquered(np.empty(n_queries, dtype=np.int64), np.empty(n_queries), np.empty(n_queries))
    certain = np.empty(n_queries, dtype=np.bool_)
    at_once = rows_at_once(laid, n_points, rows)
    for start in range(0, n_queries, at_once):
        here = slice(start, min(start + at_once, n_queries))
        mine = laid.others(queries[here])
        own = xp.full(len(mine.lower), -1, dtype=np.int64)
        kept = find_candidates(laid, mine, own, (0, n_points), floors, rows)
        if decider is not kernels:
            kept = (kernels.get(kept[0]), kernels.get(kept[1]))
        answers = decider.conquerors(
            decider.put(queries[here]), points, kept, exact_costs, exact_rank
        )
        for whole, part in zip((*found, certain), answers, strict=True):
            whole[here] = part
    unsure = np.flatnonzero(~certain)
    if len(unsure):
        again = fallback(queries[unsure])
        for whole, part in zip(found, again, strict=True):
            whole[unsure] = part
    return found
