r"""Sums of exponentials of path costs, class after class; and those over blocks of distances of any metric.

Every training node v offers a path that costs ``c_v = max(C_v, d(v, t))``. The score of a class is their
soft minimum, ``m_k = -log(mean over v in k of exp(-c_v / tau))``; as tau goes to 0, the class of the
smallest score becomes the one that conquers. The exponentials are taken relative to the cheapest path of the
class seen so far, so that no score overflows or vanishes, however small tau is.

Bandwidths come as an array of shape (n_chains, n_halvings), in whose rows each is half of the one before: nine
of them cost one exponential. Scores are arrays of shape (n_queries, n_classes, n_chains, n_halvings).
"""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import map_chunks
from popf.engine.soft.simd import CHAIN, WIDTH, add_chain, add_exponentials, smallest
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray

# Nodes met at a time: enough to forget the call, few enough to stay in the first cache.
CHUNK = 256
# How wrong a sum of exponentials may be, relative to it: what is left out, and the rounding of distances.
ERROR = 1e-8


class Scratch(NamedTuple):
    """Sums under way, of some queries; memory of a thread."""

    costs: FloatArray  # (n_queries, CHUNK): path costs of the nodes of a chunk
    low: FloatArray  # (n_queries,): the cheapest path so far, to which the sums are relative
    sums: FloatArray  # (n_queries, n_bandwidths, 8)


@jit
def begin(scratch, row):
    """Forget all costs and sums of a query."""
    scratch.low[row] = np.inf
    scratch.sums[row] = 0.0


@jit
def take(scratch, row, size, weights, start, taus):
    """Add the exponentials of the costs in ``scratch.costs[row]`` to the sums of a query.

    There are `size` of them, a multiple of eight, with ``weights[start : start + size]``.
    """
    costs, sums = scratch.costs, scratch.sums
    n_chains, n_halvings = taus.shape
    low, least = scratch.low[row], smallest(costs, row, size)
    if least < low:
        # A cheaper path: the sums become relative to that one.
        if low < np.inf:
            for chain in range(n_chains):
                for half in range(n_halvings):
                    factor = np.exp((least - low) / taus[chain, half])
                    total = sums[row, chain * n_halvings + half]
                    for lane in range(WIDTH):
                        total[lane] *= factor
        low = least
        scratch.low[row] = low
    if low == np.inf:  # all of them are infinitely far away
        return
    for chain in range(n_chains):
        first = chain * n_halvings
        if n_halvings == CHAIN:
            rate = -1.0 / taus[chain, 0]
            add_chain(costs, row, size, weights, start, low, rate, sums, first)
            continue
        for half in range(n_halvings):
            rate = -1.0 / taus[chain, half]
            add_exponentials(costs, row, size, weights, start, low, rate, sums, first + half)


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


class CompetingNodes(NamedTuple):
    """Training nodes, class after class; blocks of distances must have their columns in this `order`."""

    order: IntArray  # the sample that each node is
    costs: FloatArray  # C_v in the unit of the distances
    weights: FloatArray  # how many samples each stands for
    starts: IntArray  # class k is range(starts[k], starts[k + 1])
    masses: FloatArray  # the sum of the weights of each class

    @classmethod
    def build(cls, codes: IntArray, costs: FloatArray, weights: FloatArray) -> "CompetingNodes":
        """Order samples by their classes 0, 1, ..."""
        order = np.argsort(codes, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(codes)))
        masses = np.bincount(codes, weights=weights).astype(np.float64)
        return cls(order, costs[order], weights[order], starts, masses)

    def scores(
        self, blocks: BlockOfDistances, n_queries: int, taus: FloatArray, rows: int, n_threads: int
    ) -> FloatArray:
        """Score queries, `rows` of them in a block."""
        scores = np.full((n_queries, len(self.masses), *taus.shape), np.inf)

        def scan(start: int, stop: int) -> None:
            scratch = Scratch(np.empty((1, CHUNK)), np.empty(1), np.empty((1, taus.size, WIDTH)))
            _scan(blocks(start, stop), self, taus, scratch, scores[start:stop])

        map_chunks(scan, n_queries, rows, n_threads)
        return scores


@jit
def _scan(block, nodes, taus, scratch, scores):
    """Let all nodes compete for the queries of a block of distances."""
    costs, weights, starts = nodes.costs, nodes.weights, nodes.starts
    offers, near = scratch.costs, np.zeros(CHUNK)
    for q in range(block.shape[0]):
        for k in range(len(starts) - 1):
            begin(scratch, 0)
            for first in range(starts[k], starts[k + 1], CHUNK):
                size = min(CHUNK, starts[k + 1] - first)
                padded = -(-size // WIDTH) * WIDTH
                for i in range(size):
                    offers[0, i] = max(block[q, first + i], costs[first + i])
                    near[i] = weights[first + i]
                for i in range(size, padded):
                    offers[0, i], near[i] = np.inf, 0.0
                take(scratch, 0, padded, near, 0, taus)
            finish(scratch, 0, nodes.masses[k], taus, scores[q, k])
