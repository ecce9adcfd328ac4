r"""Sums of exponentials of path costs, class after class.

Every training node v offers a path that costs ``c_v = max(C_v, d(v, t))``. The score of a class is their
soft minimum, ``m_k = -log(mean over v in k of exp(-c_v / tau))``; as tau goes to 0, the class of the
smallest score becomes the one that conquers. The exponentials are taken relative to the cheapest path of the
class seen so far, so that no score overflows or vanishes, however small tau is.

Bandwidths come as an array of shape (n_chains, 1 or 9), in whose rows each is half of the one before. Scores
are arrays of shape (n_queries, n_classes, n_chains, 1 or 9).
"""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.soft.simd import CHAIN, QUERIES, WIDTH, add_chain, add_exponentials, smallest
from popf.engine.structures import FloatArray, IntArray

# Nodes met at a time: enough to forget the call, few enough to stay in the first cache.
CHUNK = 256
# How wrong a sum of exponentials may be, relative to it: what is left out, and the rounding of distances.
ERROR = 1e-8


class Layout(NamedTuple):
    """Where the samples of each class go, when a class starts at a multiple of a number of places."""

    order: IntArray  # samples, class after class
    places: IntArray  # the place of each of these
    starts: IntArray  # class k has the places range(starts[k], starts[k + 1])

    def fill(self, values: FloatArray, nothing: float) -> FloatArray:
        """Put the values of samples in their places, and `nothing` where there is no sample."""
        filled = np.full((self.starts[-1], *values.shape[1:]), nothing)
        filled[self.places] = values[self.order]
        return filled


def lay_out_classes(codes: IntArray, multiple: int, within: FloatArray | None = None) -> Layout:
    """Place samples class after class; those of one class in the order of `within`, if given."""
    sizes = np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(-(-sizes // multiple) * multiple)])
    keys = (codes,) if within is None else (within, codes)
    order = np.lexsort(keys)
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    return Layout(order, np.arange(len(codes)) + (starts - firsts)[codes[order]], starts)


def class_masses(codes: IntArray, weights: FloatArray) -> FloatArray:
    """Sum the weights of each class."""
    return np.bincount(codes, weights=weights).astype(np.float64)


class Scratch(NamedTuple):
    """Sums under way, of some queries, mostly four."""

    costs: FloatArray  # (n_queries, CHUNK): path costs of the nodes of a chunk
    low: FloatArray  # (n_queries,): the cheapest path so far, to which the sums are relative
    sums: FloatArray  # (n_queries, n_bandwidths, 8)


def new_scratch(taus: FloatArray, n_queries: int = QUERIES) -> Scratch:
    """Allocate the buffers of a thread."""
    sums = np.empty((n_queries, taus.size, WIDTH))
    return Scratch(np.empty((n_queries, CHUNK)), np.empty(n_queries), sums)


def new_scores(n_queries: int, n_classes: int, taus: FloatArray) -> FloatArray:
    """Allocate scores."""
    if taus.shape[1] not in (1, CHAIN):
        raise ValueError(f"a chain has 1 or {CHAIN} bandwidths, not {taus.shape[1]}.")
    return np.full((n_queries, n_classes, *taus.shape), np.inf)


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
        rate = -1.0 / taus[chain, 0]
        if n_halvings == 1:
            add_exponentials(costs, row, size, weights, start, low, rate, sums, chain)
        else:
            add_chain(costs, row, size, weights, start, low, rate, sums, chain * n_halvings)


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
