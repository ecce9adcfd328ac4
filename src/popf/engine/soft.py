r"""Soft competition: all paths to a sample count, not only the cheapest.

Every training node v offers a path that costs ``c_v = max(C_v, d(v, t))``. The score of a class is their
soft minimum, ``m_k = -log(mean over v in k of exp(-c_v / tau))``; as tau goes to 0, the class of the
smallest score becomes the one that conquers. The exponentials are taken relative to the cheapest path of the
class, so that no score overflows or vanishes, however small tau is.

Bandwidths come in chains of halves: ``exp(-x / (tau / 2))`` is the square of ``exp(-x / tau)``, so a whole
chain costs one exponential.
"""

from typing import NamedTuple

import numpy as np

from .conquest_scan import BlockOfDistances
from .jit import jit
from .structures import FloatArray, IntArray
from .threads import chunks, map_chunks

# Nodes handled at a time: enough for vectors, few enough to stay in the first cache.
CHUNK = 256
# Beyond this an exponential is as good as nothing.
SMALLEST_EXPONENT = -700.0


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


class Scratch(NamedTuple):
    """Buffers of a thread.

    Attributes
    ----------
    shifted : ndarray of shape (CHUNK,)
    bits : ndarray of shape (CHUNK,)
        The same memory as integers.
    factors : ndarray of shape (CHUNK,)
    sums : ndarray of shape (n_chains, n_halvings, CHUNK)
    """

    shifted: FloatArray
    bits: IntArray
    factors: FloatArray
    sums: FloatArray


def lowest_costs(
    blocks: BlockOfDistances, own: IntArray, nodes: Competitors, block_rows: int, n_threads: int = 1
) -> FloatArray:
    """Find the cheapest path that each class offers to each query.

    Parameters
    ----------
    blocks : callable
        ``blocks(start, stop)`` gives the distances of those queries to all nodes, in an array that
        is overwritten.
    own : ndarray of shape (n_queries,)
        The node that a query is itself, whose weight then counts one less; -1 for new samples.
    nodes : Competitors
    block_rows : int
        How many queries make a block.
    n_threads : int

    Returns
    -------
    ndarray of shape (n_queries, n_classes)
        Infinite for a class without any other member.
    """
    lowest = np.full((len(own), len(nodes.masses)), np.inf)

    def scan(start: int, stop: int) -> None:
        _lowest(blocks(start, stop), own[start:stop], nodes, lowest[start:stop])

    map_chunks(scan, len(own), block_rows, n_threads)
    return lowest


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
        As for `lowest_costs`.
    query_weights : ndarray of shape (n_queries,)

    Returns
    -------
    float
    """
    total = mass = 0.0
    for start, stop in chunks(len(own), block_rows):
        block = blocks(start, stop)
        _lowest(block, own[start:stop], nodes, np.empty((stop - start, len(nodes.masses))))
        counts = (block > 0.0) & (block < np.inf)
        weights = query_weights[start:stop, None] * nodes.weights * counts
        mass += float(weights.sum())
        total += float((weights * np.where(counts, block, 0.0)).sum())
    return total / mass if mass > 0.0 else 0.0


def class_scores(
    blocks: BlockOfDistances,
    own: IntArray,
    nodes: Competitors,
    taus: FloatArray,
    block_rows: int,
    n_threads: int = 1,
) -> FloatArray:
    """Compute the soft minimum of the paths that each class offers to each query.

    Parameters
    ----------
    blocks, own, nodes, block_rows, n_threads
        As for `lowest_costs`.
    taus : ndarray of shape (n_chains, n_halvings)
        Bandwidths; in a row each is half of the one before.

    Returns
    -------
    ndarray of shape (n_queries, n_classes, n_chains * n_halvings)
        Infinite for a class without any other member.
    """
    shape = (len(own), len(nodes.masses), *taus.shape)
    scores = np.zeros(shape)

    def scan(start: int, stop: int) -> None:
        block, mine = blocks(start, stop), own[start:stop]
        lowest = np.full((stop - start, len(nodes.masses)), np.inf)
        _lowest(block, mine, nodes, lowest)
        shifted = np.empty(CHUNK)
        sums = np.empty((*taus.shape, CHUNK))
        scratch = Scratch(shifted, shifted.view(np.int64), np.empty(CHUNK), sums)
        _soften(block, mine, nodes, lowest, taus, scores[start:stop], scratch)

    map_chunks(scan, len(own), block_rows, n_threads)
    return scores.reshape(len(own), len(nodes.masses), -1)


@jit
def _lowest(block, own, nodes, lowest):
    """Turn distances into path costs, and find the lowest of each class beside the query itself."""
    costs, starts = nodes.costs, nodes.starts
    for q in range(block.shape[0]):
        if nodes.squared:
            for v in range(block.shape[1]):
                block[q, v] = np.sqrt(block[q, v])
        for v in range(block.shape[1]):
            block[q, v] = max(costs[v], block[q, v])
        if own[q] >= 0 and nodes.weights[own[q]] <= 1.0:
            block[q, own[q]] = np.inf  # nothing is left of it
        for k in range(len(starts) - 1):
            smallest = np.inf
            for v in range(starts[k], starts[k + 1]):
                smallest = min(smallest, block[q, v])
            lowest[q, k] = smallest


@jit
def _exponentials(scratch, size):
    """Turn ``shifted``, at most 0, into ``factors = exp(shifted)``, to about one unit in the last place.

    exp(x) = 2^n exp(r) with n an integer and |r| <= ln(2) / 2, exp(r) by its Taylor series. Adding
    1.5 * 2^52 rounds to an integer and leaves it in the lowest bits. Unlike the C library's, loops of
    this are compiled to vector instructions.
    """
    shifted, bits, factors = scratch.shifted, scratch.bits, scratch.factors
    for i in range(size):
        x = max(shifted[i], SMALLEST_EXPONENT)
        rounded = x * 1.4426950408889634 + 6755399441055744.0
        n = rounded - 6755399441055744.0
        r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        factors[i] = p * r + 1.0
        shifted[i] = rounded
    for i in range(size):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(size):
        factors[i] *= shifted[i]


@jit
def _soften(block, own, nodes, lowest, taus, scores, scratch):
    """Sum the exponentials of each class, and turn the sums into scores."""
    weights, starts = nodes.weights, nodes.starts
    shifted, factors, sums = scratch.shifted, scratch.factors, scratch.sums
    n_chains, n_halvings = taus.shape
    for q in range(block.shape[0]):
        for k in range(len(starts) - 1):
            low = lowest[q, k]
            if low == np.inf:
                scores[q, k] = np.inf
                continue
            mass = nodes.masses[k]
            sums[:] = 0.0
            for first in range(starts[k], starts[k + 1], CHUNK):
                size = min(CHUNK, starts[k + 1] - first)
                costs, weight = block[q, first : first + size], weights[first : first + size]
                for chain in range(n_chains):
                    rate = -1.0 / taus[chain, 0]
                    for i in range(size):
                        shifted[i] = (costs[i] - low) * rate
                    _exponentials(scratch, size)
                    for half in range(n_halvings):
                        total = sums[chain, half]
                        for i in range(size):
                            total[i] += weight[i] * factors[i]
                            factors[i] *= factors[i]
            inside = starts[k] <= own[q] < starts[k + 1]
            if inside:
                mass -= min(weights[own[q]], 1.0)
                if mass <= 1e-6 * nodes.masses[k]:  # little is left: count it anew
                    mass = max(weights[own[q]] - 1.0, 0.0)
                    for v in range(starts[k], starts[k + 1]):
                        if v != own[q]:
                            mass += weights[v]
            for chain in range(n_chains):
                for half in range(n_halvings):
                    total = 0.0
                    for i in range(CHUNK):
                        total += sums[chain, half, i]
                    if inside and weights[own[q]] > 1.0:
                        # One of the samples it stands for is the query.
                        total -= np.exp((low - block[q, own[q]]) / taus[chain, half])
                    scores[q, k, chain, half] = low / taus[chain, half] - np.log(total / mass)
