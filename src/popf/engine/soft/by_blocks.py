"""Soft competition from blocks of distances, whatever the metric."""

from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import map_chunks
from popf.engine.soft.simd import WIDTH, costs_from_distances
from popf.engine.soft.sums import (
    CHUNK,
    begin,
    class_masses,
    finish,
    lay_out_classes,
    new_scores,
    new_scratch,
    take,
)
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray


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
        order, _, starts = lay_out_classes(codes, 1)
        return cls(order, costs[order], weights[order], starts, class_masses(codes, weights))

    def scores(
        self, blocks: BlockOfDistances, n_queries: int, taus: FloatArray, rows: int, n_threads: int
    ) -> FloatArray:
        """Score queries, `rows` of them in a block; see `sums`."""
        scores = new_scores(n_queries, len(self.masses), taus)
        map_chunks(
            lambda start, stop: _scan(
                blocks(start, stop), self, taus, new_scratch(taus, 1), scores[start:stop]
            ),
            n_queries,
            rows,
            n_threads,
        )
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
                whole = size // WIDTH * WIDTH
                costs_from_distances(block, q, first, whole, 0.0, costs, costs, offers, 0)
                for i in range(whole, size):
                    offers[0, i] = max(block[q, first + i], costs[first + i])
                near[:size] = weights[first : first + size]
                padded = -(-size // WIDTH) * WIDTH
                offers[0, size:padded] = np.inf
                near[size:padded] = 0.0
                take(scratch, 0, padded, near, 0, taus)
            finish(scratch, 0, nodes.masses[k], taus, scores[q, k])
