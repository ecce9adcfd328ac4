r"""Soft competition: all paths to a sample count, not only the cheapest.

Every training node v offers a path that costs ``c_v = max(C_v, d(v, t))``. The score of a class is their
soft minimum, ``m_k = -log(mean over v in k of exp(-c_v / tau))``; as tau goes to 0, the class of the
smallest score becomes the one that conquers. The exponentials are taken relative to the cheapest path of the
class seen so far, so that no score overflows or vanishes, however small tau is.

Here the nodes are met chunk after chunk, the distances given as blocks, whatever the metric;
`soft_space` computes Euclidean ones on the way, and passes by what is too far to count.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import chunks, map_chunks
from popf.engine.soft.simd import (
    CHAIN,
    QUERIES,
    WIDTH,
    add_chain,
    add_exponentials,
    costs_from_distances,
    costs_from_squares,
    smallest,
)
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray

# Nodes met at a time: enough to forget the call, few enough to stay in the first cache.
CHUNK = 256
# How wrong a sum of exponentials may be, relative to it: what is left out, and the rounding of distances.
ERROR = 1e-8


class Competitors(NamedTuple):
    """The training nodes that compete, class after class.

    Attributes
    ----------
    costs : ndarray of shape (n_nodes,)
        C_v, in the unit of the distances.
    weights : ndarray of shape (n_nodes,)
        How many samples each stands for.
    starts : ndarray of shape (n_classes + 1,)
        Class k is ``range(starts[k], starts[k + 1])``.
    masses : ndarray of shape (n_classes,)
        The sum of the weights of each class.
    squared : bool
        Whether blocks hold squared distances, of which the root is still to be taken.
    """

    costs: FloatArray
    weights: FloatArray
    starts: IntArray
    masses: FloatArray
    squared: bool


class Scores(NamedTuple):
    """What comes out.

    Attributes
    ----------
    scores : ndarray of shape (n_queries, n_classes, n_chains, n_halvings)
        Soft minima; infinite for a class without any other member.
    lowest : ndarray of shape (n_queries, n_classes)
        The cheapest path of each class, likewise.
    """

    scores: FloatArray
    lowest: FloatArray


class Scratch(NamedTuple):
    """Sums under way, of some queries, mostly four.

    Attributes
    ----------
    costs : ndarray of shape (n_queries, CHUNK)
        Path costs of the nodes of a chunk.
    weights : ndarray of shape (CHUNK,)
    low : ndarray of shape (n_queries,)
        The cheapest path so far, to which the sums are relative.
    sums : ndarray of shape (n_queries, n_bandwidths, 8)
    """

    costs: FloatArray
    weights: FloatArray
    low: FloatArray
    sums: FloatArray


def new_scratch(taus: FloatArray, n_queries: int = QUERIES) -> Scratch:
    """Allocate the buffers of a thread."""
    return Scratch(
        np.empty((n_queries, CHUNK)),
        np.zeros(CHUNK),
        np.empty(n_queries),
        np.empty((n_queries, taus.size, WIDTH)),
    )


def new_scores(n_queries: int, n_classes: int, taus: FloatArray) -> Scores:
    """Allocate what comes out."""
    if taus.shape[1] not in (1, CHAIN):
        raise ValueError(f"a chain has 1 or {CHAIN} bandwidths, not {taus.shape[1]}.")
    shape = (n_queries, n_classes)
    return Scores(np.full((*shape, *taus.shape), np.inf), np.full(shape, np.inf))


def class_scores(
    blocks: BlockOfDistances,
    own: IntArray,
    nodes: Competitors,
    taus: FloatArray,
    block_rows: int,
    n_threads: int = 1,
) -> Scores:
    """Compute the soft minimum of the paths that each class offers to each query.

    Parameters
    ----------
    blocks : callable
        ``blocks(start, stop)`` gives the distances of those queries to all nodes.
    own : ndarray of shape (n_queries,)
        The node that a query is itself, whose weight then counts one less; -1 for new samples.
    nodes : Competitors
    taus : ndarray of shape (n_chains, 1 or 9)
        Bandwidths; in a row each is half of the one before. Without any row only the cheapest paths are found.
    block_rows : int
        How many queries make a block.
    n_threads : int

    Returns
    -------
    Scores
    """
    found = new_scores(len(own), len(nodes.masses), taus)

    def scan(start: int, stop: int) -> None:
        mine = Scores(found.scores[start:stop], found.lowest[start:stop])
        _scan(blocks(start, stop), own[start:stop], nodes, taus, new_scratch(taus), mine)

    map_chunks(scan, len(own), block_rows, n_threads)
    return found


def mean_positive_cost(
    blocks: BlockOfDistances,
    own: IntArray,
    query_weights: FloatArray,
    nodes: Competitors,
    block_rows: int,
) -> float:
    """Give the mean of all path costs that are not zero, 0 if there are none.

    Parameters
    ----------
    blocks, own, nodes, block_rows
        As for `class_scores`.
    query_weights : ndarray of shape (n_queries,)

    Returns
    -------
    float
    """
    total = mass = 0.0
    for start, stop in chunks(len(own), block_rows):
        distances = blocks(start, stop)
        costs = np.maximum(np.sqrt(distances) if nodes.squared else distances, nodes.costs)
        weights = query_weights[start:stop, None] * nodes.weights
        rows = np.flatnonzero(own[start:stop] >= 0)
        weights[rows, own[start:stop][rows]] -= query_weights[start:stop][rows]
        weights = np.where((costs > 0.0) & (costs < np.inf), np.maximum(weights, 0.0), 0.0)
        mass += float(weights.sum())
        total += float((weights * np.where(weights > 0.0, costs, 0.0)).sum())
    return total / mass if mass > 0.0 else 0.0


@jit
def _scan(block, own, nodes, taus, scratch, found):
    """Let all nodes compete for the queries of a block of distances."""
    costs, weights, starts = nodes.costs, nodes.weights, nodes.starts
    offers, near = scratch.costs, scratch.weights
    for q in range(block.shape[0]):
        for k in range(len(starts) - 1):
            begin(scratch, 0)
            for first in range(starts[k], starts[k + 1], CHUNK):
                size = min(CHUNK, starts[k + 1] - first)
                whole = size // WIDTH * WIDTH
                if nodes.squared:
                    costs_from_squares(block, q, first, whole, 0.0, costs, costs, offers, 0)
                else:
                    costs_from_distances(block, q, first, whole, 0.0, costs, costs, offers, 0)
                for i in range(whole, size):
                    distance = block[q, first + i]
                    distance = np.sqrt(distance) if nodes.squared else distance
                    offers[0, i] = max(distance, costs[first + i])
                near[:size] = weights[first : first + size]
                padded = -(-size // WIDTH) * WIDTH
                offers[0, size:padded] = np.inf
                near[size:padded] = 0.0
                take(scratch, 0, padded, near, 0, own[q] - first, taus)
            inside = starts[k] <= own[q] < starts[k + 1]
            mass = nodes.masses[k]
            if inside:
                mass = mass_without(weights, starts[k], starts[k + 1], own[q], mass)
            finish(scratch, 0, mass, taus, found.scores[q, k])
            found.lowest[q, k] = scratch.low[0]


@jit
def begin(scratch, row):
    """Forget all costs and sums of a query."""
    scratch.low[row] = np.inf
    scratch.sums[row] = 0.0


@jit
def take(scratch, row, size, weights, start, own, taus):
    """Add the exponentials of the costs in ``scratch.costs[row]`` to the sums.

    Parameters
    ----------
    scratch : Scratch
    row : int
        The query.
    size : int
        How many costs there are, a multiple of eight.
    weights : ndarray
    start : int
        The weights are ``weights[start : start + size]``.
    own : int
        Which of them is the query itself, if in that range.
    taus : ndarray of shape (n_chains, 1 or 9)
    """
    costs, sums = scratch.costs, scratch.sums
    n_chains, n_halvings = taus.shape
    rest, cost = 0.0, np.inf
    if 0 <= own < size:
        # One of the samples that it stands for is left out, so it is met apart from the others.
        rest, cost = weights[start + own] - 1.0, costs[row, own]
        costs[row, own] = np.inf
    least = smallest(costs, row, size)
    if rest > 0.0:
        least = min(least, cost)
    low = scratch.low[row]
    if least < low:
        if low < np.inf:
            for chain in range(n_chains):
                for half in range(n_halvings):
                    factor = np.exp((least - low) / taus[chain, half])
                    total = sums[row, chain * n_halvings + half]
                    for lane in range(WIDTH):
                        total[lane] *= factor
        low = least
        scratch.low[row] = low
    if low == np.inf:
        return
    for chain in range(n_chains):
        rate = -1.0 / taus[chain, 0]
        if n_halvings == 1:
            add_exponentials(costs, row, size, weights, start, low, rate, sums, chain)
        else:
            add_chain(costs, row, size, weights, start, low, rate, sums, chain * n_halvings)
        if rest > 0.0:
            for half in range(n_halvings):
                term = rest * np.exp((low - cost) / taus[chain, half])
                sums[row, chain * n_halvings + half, 0] += term


@jit
def finish(scratch, row, mass, taus, scores):
    """Turn the sums of a query into scores, relative to a class of that mass."""
    n_chains, n_halvings = taus.shape
    low = scratch.low[row]
    if low == np.inf:
        return
    for chain in range(n_chains):
        for half in range(n_halvings):
            total = 0.0
            for lane in range(WIDTH):
                total += scratch.sums[row, chain * n_halvings + half, lane]
            scores[chain, half] = low / taus[chain, half] - np.log(total / mass)


@jit
def mass_without(weights, start, stop, own, mass):
    """Give the mass of a class without one sample of node `own`."""
    less = mass - min(weights[own], 1.0)
    if less > 1e-6 * mass:
        return less
    less = max(weights[own] - 1.0, 0.0)  # little is left: count it anew
    for v in range(start, stop):
        if v != own:
            less += weights[v]
    return less
