"""Soft competition on a device: products in float64, the smallest distances computed anew."""

from typing import Any

import numpy as np

from popf.engine.soft.by_tiles import CompetingPoints, rounding
from popf.engine.soft.scores import ERROR, Scores, new_scores
from popf.engine.structures import FloatArray, IntArray

ROWS, COLUMNS = 8192, 8192


def device_scores(
    nodes: CompetingPoints,
    queries: FloatArray,
    own: IntArray,
    taus: FloatArray,
    kernels: Any,
    rows: int = ROWS,
    columns: int = COLUMNS,
) -> Scores:
    """Compute the soft minimum of the paths that each class offers to each query.

    Parameters
    ----------
    nodes : CompetingPoints
    queries : ndarray of shape (n_queries, n_features)
    own : ndarray of shape (n_queries,)
        The place of the node that a query is itself, whose weight then counts one less; -1 for
        new samples.
    taus : ndarray of shape (n_chains, 1 or 9)
        As for `class_scores`.
    kernels : HostKernels or CudaKernels
    rows, columns : int
        How many queries and nodes make a tile.

    Returns
    -------
    Scores
    """
    found = new_scores(len(queries), len(nodes.masses), taus)
    allowed = ERROR * (float(taus.min()) if taus.size else 1.0)
    reach = float(nodes.norms[np.isfinite(nodes.norms)].max())
    unit = rounding(queries.shape[1])
    points = kernels.put(nodes.points)
    facts = tuple(kernels.put(part) for part in (nodes.norms, nodes.costs, nodes.weights))
    for start in range(0, len(queries), rows):
        here = slice(start, min(start + rows, len(queries)))
        centred = queries[here] - nodes.center
        norms = np.einsum("ij,ij->i", centred, centred)
        with np.errstate(over="ignore"):
            least = (unit * (norms + reach) / (2.0 * allowed)) ** 2
        mine = tuple(kernels.put(part) for part in (centred, norms, least, own[here]))
        for k in range(len(nodes.masses)):
            low = kernels.xp.full(len(norms), np.inf)
            sums = kernels.xp.zeros((len(norms), taus.size))
            for first in range(nodes.starts[k], nodes.starts[k + 1], columns):
                there = slice(first, min(first + columns, int(nodes.starts[k + 1])))
                products = kernels.multiply(mine[0], points[there])
                columns_here = (points[there], *(part[there] for part in facts))
                kernels.add_terms(products, mine, columns_here, first, taus, (low, sums))
            _finish(nodes, k, own[here], taus, kernels.get(low), kernels.get(sums), here, found)
    return found


def _finish(
    nodes: CompetingPoints,
    k: int,
    own: IntArray,
    taus: FloatArray,
    low: FloatArray,
    sums: FloatArray,
    here: slice,
    found: Scores,
) -> None:
    """Turn sums into scores."""
    from popf.engine.soft.scores import mass_without

    start, stop = int(nodes.starts[k]), int(nodes.starts[k + 1])
    masses = np.full(len(own), nodes.masses[k])
    for q in np.flatnonzero((own >= start) & (own < stop)):
        masses[q] = mass_without(nodes.weights, start, stop, own[q], nodes.masses[k])
    found.lowest[here, k] = low
    some = np.isfinite(low)
    scores = found.scores[here, k].reshape(len(own), -1)
    flat = taus.ravel()
    scores[some] = low[some, None] / flat - np.log(sums[some] / masses[some, None])
    found.scores[here, k] = scores.reshape(found.scores[here, k].shape)
