"""Soft competition from tiles of matrix products, for dimensions in which they are cheaper.

``|x - y|² = |x|² + |y|² - 2 x·y`` cancels where x and y are close. With unit roundoff u and d features the
result is wrong by at most ``E = 2 (d + 16) u (|x|² + |y|²)`` (see `tiles`), and the distance by
``E / (2 |x - y|)``. Where that is more than allowed, the distance is computed anew, directly.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.blas import one_blas_thread
from popf.engine.runtime.buffers import Workbench, Workbenches
from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import map_chunks
from popf.engine.soft.scores import (
    CHUNK,
    ERROR,
    Scores,
    begin,
    finish,
    mass_without,
    new_scores,
    new_scratch,
    take,
)
from popf.engine.soft.simd import costs_from_products
from popf.engine.structures import FloatArray, IntArray

# Queries and nodes of a tile: enough for BLAS, few enough to stay in the cache.
TILE_QUERIES, TILE_NODES = 256, 1024
# By so many points all are centred.
CENTRED_BY = 1000


class CompetingPoints(NamedTuple):
    """Training nodes as one matrix, class after class.

    Attributes
    ----------
    points : ndarray of shape (n_places, n_features)
        The nodes, relative to `center`; a class starts at a multiple of sixteen.
    norms : ndarray of shape (n_places,)
        Their squared norms, infinite where there is none.
    costs, weights : ndarray of shape (n_places,)
        Infinite and 0 where there is none.
    place : ndarray of shape (n_samples,)
        Where a training sample is.
    starts : ndarray of shape (n_classes + 1,)
        Class k is ``range(starts[k], starts[k + 1])``.
    masses : ndarray of shape (n_classes,)
    center : ndarray of shape (n_features,)
    """

    points: FloatArray
    norms: FloatArray
    costs: FloatArray
    weights: FloatArray
    place: IntArray
    starts: IntArray
    masses: FloatArray
    center: FloatArray


def line_up(
    samples: FloatArray, codes: IntArray, costs: FloatArray, weights: FloatArray
) -> CompetingPoints:
    """Line up training samples, class after class.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Their classes, 0, 1, ...
    costs, weights : ndarray of shape (n_samples,)

    Returns
    -------
    CompetingPoints
    """
    sizes = np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(-(-sizes // LANES) * LANES)])
    order = np.argsort(codes, kind="stable")
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(len(codes)) + (starts - firsts)[codes[order]]
    place = np.empty(len(codes), dtype=np.int64)
    place[order] = places
    # A mean would follow a single far sample, and products would cancel for all others.
    center = np.median(samples[:: max(1, len(samples) // CENTRED_BY)], axis=0)
    points = np.zeros((starts[-1], samples.shape[1]))
    points[places] = samples[order] - center
    norms = np.full(starts[-1], np.inf)
    norms[places] = np.einsum("ij,ij->i", points[places], points[places])
    laid_costs, laid_weights = np.full(starts[-1], np.inf), np.zeros(starts[-1])
    laid_costs[places], laid_weights[places] = costs[order], weights[order]
    masses = np.bincount(codes, weights=weights).astype(np.float64)
    return CompetingPoints(points, norms, laid_costs, laid_weights, place, starts, masses, center)


def product_scores(
    nodes: CompetingPoints,
    queries: FloatArray,
    own: IntArray,
    taus: FloatArray,
    n_threads: int = 1,
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
    n_threads : int

    Returns
    -------
    Scores
    """
    found = new_scores(len(queries), len(nodes.masses), taus)
    # An error of a cost, in units of the bandwidth, is that of its exponential.
    allowed = ERROR * (float(taus.min()) if taus.size else 1.0)
    reach = float(nodes.norms[np.isfinite(nodes.norms)].max())
    unit = rounding(queries.shape[1])
    benches = Workbenches()

    def compete(start: int, stop: int) -> None:
        here = queries[start:stop] - nodes.center
        norms = np.einsum("ij,ij->i", here, here)
        # Squared distances below these are too wrong.
        with np.errstate(over="ignore"):
            least = (unit * (norms + reach) / (2.0 * allowed)) ** 2
        mine = Scores(found.scores[start:stop], found.lowest[start:stop])
        with benches.one() as bench:
            _compete(nodes, Queries(here, norms, least, own[start:stop]), taus, mine, bench)

    with one_blas_thread():
        map_chunks(compete, len(queries), TILE_QUERIES, n_threads)
    return found


def rounding(n_features: int) -> float:
    """How wrong a squared distance may be, relative to the sum of the squared norms."""
    return 2.0 * (n_features + 16) * float(np.finfo(np.float64).eps)


class Queries(NamedTuple):
    """Queries of a tile.

    Attributes
    ----------
    points : ndarray of shape (n_queries, n_features)
    norms : ndarray of shape (n_queries,)
        Their squared norms.
    least : ndarray of shape (n_queries,)
        Squared distances up to this are computed anew.
    own : ndarray of shape (n_queries,)
    """

    points: FloatArray
    norms: FloatArray
    least: FloatArray
    own: IntArray


def _compete(
    nodes: CompetingPoints, queries: Queries, taus: FloatArray, found: Scores, bench: Workbench
) -> None:
    """Let the classes compete for the queries of a tile, one after the other."""
    scratch = new_scratch(taus, len(queries.own))
    for k in range(len(nodes.masses)):
        _begin_all(scratch)
        for start in range(nodes.starts[k], nodes.starts[k + 1], TILE_NODES):
            stop = min(start + TILE_NODES, int(nodes.starts[k + 1]))
            products = bench.room("products", (len(queries.own), stop - start), np.float64)
            np.matmul(queries.points, nodes.points[start:stop].T, out=products)
            _take_tile(products, nodes, start, queries, taus, scratch)
        _finish_all(nodes, k, queries.own, taus, scratch, found)


@jit
def _begin_all(scratch):
    for q in range(len(scratch.low)):
        begin(scratch, q)


@jit
def _take_tile(products, nodes, start, queries, taus, scratch):
    """Turn products into path costs, the smallest computed anew, and add their exponentials."""
    points, weights = nodes.points, nodes.weights
    stop = start + products.shape[1]
    norms, floors = nodes.norms[start:stop], nodes.costs[start:stop]
    costs, mine = scratch.costs, queries.points
    n_features = points.shape[1]
    for q in range(products.shape[0]):
        own, norm, least = queries.own[q], queries.norms[q], queries.least[q]
        for first in range(0, products.shape[1], CHUNK):
            size = min(CHUNK, products.shape[1] - first)
            if (
                costs_from_products(products, q, first, size, norm, norms, floors, costs, q)
                <= least
            ):
                for i in range(size):
                    v = first + i
                    if norm + norms[v] - 2.0 * products[q, v] <= least:
                        squared = 0.0
                        for f in range(n_features):
                            gap = mine[q, f] - points[start + v, f]
                            squared += gap * gap
                        costs[q, i] = max(floors[v], np.sqrt(squared))
            at = start + first
            take(scratch, q, size, weights, at, own - at, taus)


@jit
def _finish_all(nodes, k, own, taus, scratch, found):
    start, stop = nodes.starts[k], nodes.starts[k + 1]
    for q in range(len(own)):
        mass = nodes.masses[k]
        if start <= own[q] < stop:
            mass = mass_without(nodes.weights, start, stop, own[q], mass)
        finish(scratch, q, mass, taus, found.scores[q, k])
        found.lowest[q, k] = scratch.low[q]
