r"""The scores of a forest, to which all paths contribute.

The score of class k at bandwidth :math:`\tau` is
:math:`u_k = \log\,\operatorname{mean}_{v \in k} e^{-c_v / \tau}`, with the path costs
:math:`c_v = \max(C_v, d(v, t))`.
"""

from typing import Any

import numpy as np

from popf.engine.conquest import FAR
from popf.engine.distances import kernel_blocks, rows_per_block
from popf.engine.points import scaled_copy
from popf.engine.soft_scores import CompetingNodes, CompetingSpace
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray, Resources
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest


def competition_of(
    forest: OptimumPathForest, rows: IntArray, codes: IntArray, weights: FloatArray
) -> "SoftCompetition":
    """Create the soft competition of the samples of a forest at some rows, with their classes."""
    samples = forest.samples  # a property that copies
    samples = None if samples is None else samples[rows]
    costs, exponent = forest.costs[rows], forest.exponent
    return SoftCompetition(
        samples, codes, costs, weights, forest.metric, exponent, forest.backend, rows
    )


class SoftCompetition:
    """Training nodes that all compete for a sample.

    With precomputed distances, `samples` is None, and `columns` are the nodes' columns in the matrix of
    distances. `costs` are in the unit of the metric; `weights` are the numbers of samples that the nodes stand
    for. The engine multiplies Euclidean samples by ``2**-exponent``. `backend` is the GPU that computes the
    sums, or None.
    """

    def __init__(
        self,
        samples: FloatArray | None,
        codes: IntArray,
        costs: FloatArray,
        weights: FloatArray,
        metric: Metric,
        exponent: int,
        backend: Any,
        columns: IntArray | None = None,
    ) -> None:
        self._metric, self._backend = metric, backend
        self._sample_exponent = exponent if metric.euclidean else 0
        # Plain Euclidean costs and bandwidths are scaled by the same power of two as the samples.
        plain = metric.name == "euclidean"
        self._exponent = self._sample_exponent if plain else 0
        costs = np.ldexp(costs, -self._exponent)
        if samples is not None and metric.euclidean:
            samples = scaled_copy(samples, self._sample_exponent)
        self._nodes: Any
        if not plain or samples is None:
            self._nodes = CompetingNodes.build(codes, costs, weights)
            self._columns: Any = None if columns is None else columns[self._nodes.order]
            self._training = None if samples is None else samples[self._nodes.order]
        elif backend is None:
            self._nodes = CompetingSpace.build(samples, codes, costs, weights)
        else:
            self._nodes = backend.competing_nodes(samples, codes, costs, weights)

    def scores(self, new: FloatArray, taus: FloatArray, resources: Resources) -> FloatArray:
        """Compute the scores of new samples at several bandwidths: (n_samples, n_classes, n_bandwidths).

        With precomputed distances, `new` are the distances to the forest's samples. `taus` has the shape
        (n_chains, 1 or 9), and in a row each bandwidth is half of the one before. Scores are in the order of
        the flattened array.
        """
        taus, nodes, n_threads = np.ldexp(taus, -self._exponent), self._nodes, resources.n_threads
        found: FloatArray
        if isinstance(nodes, CompetingNodes):
            rows = rows_per_block(len(nodes.costs), resources.n_bytes, n_threads)
            found = nodes.scores(self._blocks(new), len(new), taus, rows, n_threads)
        elif isinstance(nodes, CompetingSpace):
            found = nodes.scores(self._scaled(new), taus, n_threads)
        else:
            found = self._backend.soft_scores(nodes, self._scaled(new), taus)
        return -found.reshape(*found.shape[:2], -1)

    def _scaled(self, new: FloatArray) -> FloatArray:
        """Scale new samples like the training samples."""
        with np.errstate(over="ignore"):
            scaled = np.ldexp(new, -self._sample_exponent)
        # Clip extreme values: beyond them, all training samples look alike.
        return np.ascontiguousarray(np.clip(scaled, -(2.0**FAR), 2.0**FAR))

    def _blocks(self, new: FloatArray) -> BlockOfDistances:
        """Return a function that computes blocks of distances to the nodes, unless they are plain Euclidean."""
        metric, training = self._metric, self._training
        if training is None:
            return lambda start, stop: new[start:stop].take(self._columns, axis=1)
        if not metric.euclidean:
            return metric.blocks(new, training)
        squared = kernel_blocks("sqeuclidean", self._scaled(new), training)
        return lambda start, stop: metric.transform(squared(start, stop), self._sample_exponent)
