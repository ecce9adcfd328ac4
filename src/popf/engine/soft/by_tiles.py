"""Soft competition from tiles of matrix products, for dimensions in which they are cheaper.

``|x - y|² = |x|² + |y|² - 2 x·y`` cancels where x and y are close. With unit roundoff u and d features the
result is wrong by at most ``E = 2 (d + 16) u (|x|² + |y|²)`` (see `tiles`), and the distance by
``E / (2 |x - y|)``. Where that is more than allowed, the distance is computed anew, directly. Points are moved
to their median, and those of a class sorted by their norms: far ones neither blur the others nor make
them be computed anew.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import BufferPool, map_chunks, one_blas_thread
from popf.engine.soft.simd import WIDTH, costs_from_products
from popf.engine.soft.sums import CHUNK, ERROR, Scratch, finish, take
from popf.engine.structures import FloatArray, IntArray

# Queries and nodes of a tile: enough for BLAS, few enough to stay in the cache.
TILE_QUERIES, TILE_NODES = 256, 1024
# By so many points all are centred.
CENTRED_BY = 1000


class CompetingPoints(NamedTuple):
    """Training nodes as one matrix, class after class, and in a class by their norms."""

    points: FloatArray  # relative to `center`; a class starts at a multiple of sixteen
    norms: FloatArray  # squared, infinite where there is no node
    costs: FloatArray  # C_v, infinite where there is no node
    weights: FloatArray  # how many samples each stands for, 0 where there is no node
    starts: IntArray  # class k is range(starts[k], starts[k + 1])
    masses: FloatArray  # the sum of the weights of each class
    center: FloatArray

    @classmethod
    def build(
        cls, samples: FloatArray, codes: IntArray, costs: FloatArray, weights: FloatArray
    ) -> "CompetingPoints":
        """Lay out samples of the classes 0, 1, ..."""
        # A mean would follow a single far sample, and products would cancel for all others.
        center = np.median(samples[:: max(1, len(samples) // CENTRED_BY)], axis=0)
        moved = samples - center
        norms = np.einsum("ij,ij->i", moved, moved)
        sizes, order = np.bincount(codes), np.lexsort((norms, codes))
        starts = np.append(0, np.cumsum(-(-sizes // LANES) * LANES))
        shifts = starts[:-1] - (np.cumsum(sizes) - sizes)
        places = np.arange(len(codes)) + shifts[codes[order]]

        def laid_out(values: FloatArray, nothing: float) -> FloatArray:
            filled = np.full((starts[-1], *values.shape[1:]), nothing)
            filled[places] = values[order]
            return filled

        return cls(
            points=laid_out(moved, 0.0),
            norms=laid_out(norms, np.inf),
            costs=laid_out(costs, np.inf),
            weights=laid_out(weights, 0.0),
            starts=starts,
            masses=np.bincount(codes, weights=weights).astype(np.float64),
            center=center,
        )

    def reach(self, start: int, stop: int) -> float:
        """Return the largest squared norm of the nodes at some places of a class."""
        norms = self.norms[start:stop]
        return float(norms[np.isfinite(norms)].max(initial=0.0))

    def scores(self, queries: FloatArray, taus: FloatArray, n_threads: int = 1) -> FloatArray:
        """Score queries, scaled as the samples are; see `sums`."""
        scores = np.full((len(queries), len(self.masses), *taus.shape), np.inf)
        pool = BufferPool(lambda: np.empty(TILE_QUERIES * TILE_NODES))

        def compete(start: int, stop: int) -> None:
            here = queries[start:stop] - self.center
            with pool.borrow() as memory:
                _compete(self, here, taus, scores[start:stop], memory)

        with one_blas_thread():
            map_chunks(compete, len(queries), TILE_QUERIES, n_threads)
        return scores


def too_small(norms: FloatArray, reach: float, n_features: int, taus: FloatArray) -> FloatArray:
    """Return the squared distances below which products are too wrong, for queries of these squared norms.

    `reach` is the largest squared norm on the other side.
    """
    # An error of a cost, in units of the bandwidth, is that of its exponential.
    allowed = ERROR * float(taus.min())
    error = 2.0 * (n_features + 16) * float(np.finfo(np.float64).eps) * (norms + reach)
    with np.errstate(over="ignore"):
        least: FloatArray = (error / (2.0 * allowed)) ** 2
    return least


def _compete(
    nodes: CompetingPoints,
    queries: FloatArray,
    taus: FloatArray,
    scores: FloatArray,
    memory: FloatArray,
) -> None:
    """Let the classes compete for the queries of a tile, one after the other."""
    n_queries, sums = len(queries), np.empty((len(queries), taus.size, WIDTH))
    scratch = Scratch(np.empty((n_queries, CHUNK)), np.empty(n_queries), sums)
    norms = np.einsum("ij,ij->i", queries, queries)
    for k, mass in enumerate(nodes.masses):
        scratch.low[:], scratch.sums[:] = np.inf, 0.0
        for start in range(nodes.starts[k], nodes.starts[k + 1], TILE_NODES):
            stop = min(start + TILE_NODES, int(nodes.starts[k + 1]))
            shape = n_queries, stop - start
            products = memory[: shape[0] * shape[1]].reshape(shape)
            np.matmul(queries, nodes.points[start:stop].T, out=products)
            least = too_small(norms, nodes.reach(start, stop), queries.shape[1], taus)
            _take_tile(products, nodes, start, queries, norms, least, taus, scratch)
        _finish_all(scratch, mass, taus, scores[:, k])


@jit
def _take_tile(products, nodes, start, queries, norms, least, taus, scratch):
    """Turn products into path costs, the smallest computed anew, and add their exponentials."""
    points, weights, costs = nodes.points, nodes.weights, scratch.costs
    stop = start + products.shape[1]
    node_norms, floors = nodes.norms[start:stop], nodes.costs[start:stop]
    for q in range(products.shape[0]):
        norm, small = norms[q], least[q]
        for first in range(0, products.shape[1], CHUNK):
            size = min(CHUNK, products.shape[1] - first)
            lowest = costs_from_products(
                products, q, first, size, norm, node_norms, floors, costs, q
            )
            if lowest <= small:
                for i in range(size):
                    v = first + i
                    if norm + node_norms[v] - 2.0 * products[q, v] <= small:
                        squared = 0.0
                        for f in range(points.shape[1]):
                            gap = queries[q, f] - points[start + v, f]
                            squared += gap * gap
                        costs[q, i] = max(floors[v], np.sqrt(squared))
            take(scratch, q, size, weights, start + first, taus)


@jit
def _finish_all(scratch, mass, taus, scores):
    for q in range(len(scores)):
        finish(scratch, q, mass, taus, scores[q])
