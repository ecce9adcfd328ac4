"""Conquest of new samples by Euclidean distance, in the space tree or by products."""

from typing import Any

import numpy as np

from popf.engine.conquest.by_space_tree import CostedTree
from popf.engine.conquest.by_tiles import CostedBlocks
from popf.engine.points import DistinctPoints, scale_exponent, scaled_copy
from popf.engine.runtime.threads import Team
from popf.engine.space_tree import SpaceTree, build
from popf.engine.structures import BoolArray, Conquered, FloatArray, IntArray, Resources
from popf.engine.tiles import block_size

# From 2**FAR times the size of the training data, differences within that no longer matter: they
# vanish in float64, and nearer by, squares can be taken without harm.
FAR = 400


class EuclideanConquest:
    """The training points, indexed for conquest."""

    def __init__(
        self,
        distinct: DistinctPoints,
        codes: IntArray,  # the class of every sample
        costs: FloatArray,  # of the points, squared, scaled as they are
        algorithm: str,  # "kd_tree", "brute" or "prim"
        resources: Resources,  # if they have a backend, that conquers, by products
        space: SpaceTree | None = None,  # of the points, if there is one already
    ) -> None:
        n_threads = resources.n_threads
        self.algorithm = algorithm
        self.exponent = distinct.exponent
        self._tile_bytes = resources.n_bytes // n_threads
        self.backend = resources.backend
        self._placed: Any = None  # the points laid out by the backend
        self._codes = codes
        self._point_of = distinct.point_of
        self._sample = _conquering_samples(distinct, codes)
        # The class goes before the index, so that labels do not depend on the order of the rows.
        rank = codes[self._sample] * len(codes) + self._sample
        self._foremost = int(np.argmin(rank))  # the point that conquers where all else is equal
        self._index = self._new_index(distinct.points, costs, rank, n_threads, space)
        self._by_class: list[Index] | None = None

    def conquer(self, X: FloatArray, n_threads: int = 1) -> tuple[Conquered, IntArray]:
        """Find who conquers each new sample; nodes are training samples.

        Costs and distances are squared, and to be multiplied by ``4**exponents``, which are returned, too.
        """
        queries, exponents, far = self._scaled(X, n_threads)
        found = self._conquer_scaled(queries, n_threads)
        if far.any():
            # Seen from there all training points are at one distance, which no cost exceeds.
            distances = _squared_norms(queries[far])
            found.nodes[far] = self._foremost
            found.costs[far] = found.distances[far] = distances
        return found._replace(nodes=self._sample[found.nodes]), exponents

    def samples(self) -> FloatArray:
        """Return the training samples as they were before they were scaled."""
        points = np.empty_like(self._index.points)
        points[self._index.order] = self._index.points
        return np.ldexp(points[self._point_of], self.exponent)

    def _conquer_scaled(self, queries: FloatArray, n_threads: int) -> Conquered:
        index = self._index
        if self.backend is None or not isinstance(index, CostedBlocks):
            return index.conquer(queries, n_threads)
        if self._placed is None:
            self._placed = self.backend.place(index.points)
        # In the order of the index, and back.
        plain = index._replace(order=np.arange(len(index.order)))
        found = self.backend.conquer(
            self._placed,
            index.costs,
            index.rank,
            queries,
            lambda unsure: plain.conquer(unsure, n_threads),
        )
        return found._replace(nodes=index.order[found.nodes])

    def __getstate__(self) -> dict[str, Any]:
        # A GPU does not travel: where the forest is loaded, the processor conquers.
        return {**self.__dict__, "backend": None, "_placed": None}

    def costs_by_class(self, X: FloatArray, n_threads: int = 1) -> tuple[FloatArray, IntArray]:
        """Find the smallest path cost that each class offers to each new sample, as `conquer`."""
        if self._by_class is None:
            n_classes = int(self._codes.max()) + 1
            self._by_class = [self._index_of_class(c, n_threads) for c in range(n_classes)]
        queries, exponents, far = self._scaled(X, n_threads)
        columns = [index.conquer(queries, n_threads).costs for index in self._by_class]
        costs = np.stack(columns, axis=1)
        costs[far] = _squared_norms(queries[far])[:, None]
        return costs, exponents[:, None]

    def _scaled(self, X: FloatArray, n_threads: int) -> tuple[FloatArray, IntArray, BoolArray]:
        """Scale queries as the points are, but each one that is too far for that by its own size."""
        with Team(n_threads) as team:
            if scale_exponent(X, team) <= self.exponent + FAR:
                exponents, far = np.full(len(X), self.exponent), np.zeros(len(X), dtype=np.bool_)
                return scaled_copy(X, self.exponent, team), exponents, far
            largest = np.abs(X).max(axis=1)
            sizes = np.frexp(largest)[1].astype(np.int64)
            far = (sizes > self.exponent + FAR) & (largest > 0.0)
            exponents = np.where(far, sizes, self.exponent)
            return scaled_copy(X, exponents[:, None], team), exponents, far

    def _index_of_class(self, code: int, n_threads: int) -> "Index":
        members = np.unique(self._point_of[self._codes == code])
        index = self._index
        at = np.empty_like(index.order)
        at[index.order] = np.arange(len(at))
        at = at[members]
        return self._new_index(index.points[at], index.costs[at], members, n_threads)

    def _new_index(
        self,
        points: FloatArray,
        costs: FloatArray,
        rank: IntArray,
        n_threads: int,
        space: SpaceTree | None = None,
    ) -> "Index":
        if self.algorithm == "kd_tree":
            space = build(points, n_threads) if space is None else space
            return CostedTree.build(space, costs[space.order], rank[space.order])
        block = block_size(points.shape[1], self._tile_bytes)
        return CostedBlocks.build(points, costs, rank, block, n_threads)


Index = CostedTree | CostedBlocks


def _squared_norms(queries: FloatArray) -> FloatArray:
    """Sum squares, feature after feature as everywhere."""
    total = np.zeros(len(queries))
    for column in queries.T:
        total += column * column
    return total


def _conquering_samples(distinct: DistinctPoints, codes: IntArray) -> IntArray:
    """Return the sample that conquers for each point: of the lowest class, the first."""
    if len(distinct.first) == len(codes):
        return distinct.first
    order = np.lexsort((np.arange(len(codes)), codes, distinct.point_of))
    points = distinct.point_of[order]
    leading = np.ones(len(order), dtype=np.bool_)
    leading[1:] = points[1:] != points[:-1]
    return order[leading]
