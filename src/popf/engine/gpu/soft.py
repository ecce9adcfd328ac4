"""Soft competition on a device: products in float64, the smallest distances computed anew."""

from typing import Any

import numpy as np

from popf.engine.soft.by_tiles import CompetingPoints, too_small
from popf.engine.structures import FloatArray

ROWS, COLUMNS = 8192, 8192


def device_scores(
    nodes: CompetingPoints,
    queries: FloatArray,
    taus: FloatArray,
    kernels: Any,
    rows: int = ROWS,
    columns: int = COLUMNS,
) -> FloatArray:
    """Score queries as ``nodes.scores``, in tiles of so many rows and columns."""
    scores = np.full((len(queries), len(nodes.masses), *taus.shape), np.inf)
    flat = taus.ravel()
    points = kernels.put(nodes.points)
    facts = tuple(kernels.put(part) for part in (nodes.norms, nodes.costs, nodes.weights))
    for start in range(0, len(queries), rows):
        here = slice(start, min(start + rows, len(queries)))
        centred = queries[here] - nodes.center
        norms = np.einsum("ij,ij->i", centred, centred)
        mine, row_norms = kernels.put(centred), kernels.put(norms)
        for k, mass in enumerate(nodes.masses):
            low = kernels.xp.full(len(norms), np.inf)
            sums = kernels.xp.zeros((len(norms), taus.size))
            for first in range(nodes.starts[k], nodes.starts[k + 1], columns):
                last = min(first + columns, int(nodes.starts[k + 1]))
                least = too_small(norms, nodes.reach(first, last), queries.shape[1], taus)
                kernels.add_terms(
                    kernels.multiply(mine, points[first:last]),
                    (mine, row_norms, kernels.put(least)),
                    (points[first:last], *(part[first:last] for part in facts)),
                    taus,
                    (low, sums),
                )
            lowest, totals = kernels.get(low), kernels.get(sums)
            reached = np.flatnonzero(np.isfinite(lowest))
            found = lowest[reached, None] / flat - np.log(totals[reached] / mass)
            scores[start + reached, k] = found.reshape(-1, *taus.shape)
    return scores
