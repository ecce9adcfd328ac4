"""All training nodes of a forest as competitors for a sample, by sums over their path costs."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.backends import Resources
from popf.engine.conquest.by_scan import BLOCK_BYTES, rows_per_block
from popf.engine.conquest.euclidean import FAR
from popf.engine.distances import kernel_blocks
from popf.engine.points import scaled_copy
from popf.engine.soft.by_blocks import CompetingNodes
from popf.engine.soft.by_space_tree import CompetingSpace
from popf.engine.soft.by_tiles import CompetingPoints
from popf.engine.structures import BlockOfDistances
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.probability.features import weighted_quantile

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Up to this many features distances are computed one by one, beyond from matrix products.
MOST_FEATURES = 16
# From how many of the left-out samples the median winning cost is taken at most.
N_FOR_UNIT = 1000
# From how many samples distances are averaged where all of those costs are 0.
N_FOR_DISTANCE = 100


class Nodes(NamedTuple):
    """Training samples that compete.

    Attributes
    ----------
    samples : ndarray of shape (n_nodes, n_features)
        Not needed if distances are precomputed.
    codes : ndarray of shape (n_nodes,)
    costs : ndarray of shape (n_nodes,)
        Path costs in the unit of the metric.
    weights : ndarray of shape (n_nodes,)
        How many samples each stands for.
    columns : ndarray of shape (n_nodes,)
        Where precomputed distances to each are found.
    n_classes : int
    """

    samples: FloatArray
    codes: IntArray
    costs: FloatArray
    weights: FloatArray
    columns: IntArray
    n_classes: int


def competition_of(
    forest: OptimumPathForest, samples: FloatArray, weights: FloatArray, rows: IntArray
) -> "SoftCompetition":
    """Let some samples of a forest compete, given by their rows."""
    nodes = Nodes(
        samples, forest.codes[rows], forest.costs[rows], weights, rows, len(forest.classes)
    )
    return SoftCompetition(nodes, forest.metric, forest.exponent, forest.backend)


def median_cost(forest: OptimumPathForest, rows: IntArray, weights: FloatArray) -> float:
    """Find the median cost by which samples of a forest are conquered when they are left out.

    Where that is 0, the mean of the positive costs is taken; 0 if there are none.

    Parameters
    ----------
    forest : OptimumPathForest
    rows : ndarray of shape (n_nodes,)
        The nodes; some may come several times, with parts of their weight.
    weights : ndarray of shape (n_nodes,)
    """
    # Where a row stands for several samples, one of them is left out.
    several = np.bincount(rows, weights=weights)[rows] > 1.0
    costs = np.where(several, forest.costs[rows], forest.costs_left_out()[rows])
    some = slice(None, None, -(-len(rows) // N_FOR_UNIT))
    costs, weights = costs[some], weights[some]
    positive = costs > 0.0
    if not positive.any():
        return 0.0
    median = float(weighted_quantile(costs[:, None], weights, 0.5)[0])
    return median or float(np.average(costs[positive], weights=weights[positive]))


def mean_positive_distance(metric: Metric, new: FloatArray, samples: FloatArray) -> float:
    """Take the mean of the distances from a few samples to others that are not 0; 0 if all are."""
    few = new[:N_FOR_DISTANCE]
    distances = metric.transform(metric.blocks(few, samples)(0, len(few)))
    usable = (distances > 0.0) & (distances < np.inf)
    return float(distances[usable].mean()) if usable.any() else 0.0


class SoftCompetition:
    r"""Training nodes that all compete for a sample.

    The score of class k at bandwidth :math:`\tau` is
    :math:`\log\,\operatorname{mean}_{v \in k} e^{-c_v / \tau}`, with path costs
    :math:`c_v = \max(C_v, d(v, t))`: 0 at most, and higher for a likelier class.

    Parameters
    ----------
    nodes : Nodes
    metric : Metric
    exponent : int, default=0
        The power of two that the engine takes out of Euclidean samples.
    backend : Backend, default=None
        The GPU that is to sum, None for the processor.
    """

    def __init__(
        self, nodes: Nodes, metric: Metric, exponent: int = 0, backend: Any = None
    ) -> None:
        samples, codes, weights, n_classes = (
            nodes.samples,
            nodes.codes,
            nodes.weights,
            nodes.n_classes,
        )
        self._metric, self._backend = metric, backend
        self._codes, self._weights = codes, weights
        self._masses = np.bincount(codes, weights=weights, minlength=n_classes).astype(np.float64)
        self._sample_exponent = exponent if metric.euclidean else 0
        # Plain Euclidean costs and bandwidths stay scaled by a power of two, as the samples are.
        plain = metric.name == "euclidean"
        self._exponent = self._sample_exponent if plain else 0
        costs = np.ldexp(nodes.costs, -self._exponent)
        scaled = scaled_copy(samples, self._sample_exponent) if metric.euclidean else samples
        self._nodes: CompetingNodes | CompetingSpace | CompetingPoints
        if plain and samples.shape[1] <= MOST_FEATURES and self._backend is None:
            self._nodes = CompetingSpace.build(scaled, codes, costs, weights)
        elif plain:
            self._nodes = CompetingPoints.build(scaled, codes, costs, weights)
        else:
            self._nodes = CompetingNodes.build(codes, costs, weights)
            self._columns = nodes.columns[self._nodes.order]
            self._training = None if metric.precomputed else scaled[self._nodes.order]

    def scores(self, new: FloatArray, taus: FloatArray, resources: Resources) -> FloatArray:
        """Score new samples for several bandwidths: (n_samples, n_classes, n_bandwidths).

        Parameters
        ----------
        new : ndarray of shape (n_samples, n_features)
            Or their distances to the forest's samples, if these are precomputed.
        taus : ndarray of shape (n_chains, 1 or 9)
            In a row each is half of the one before. Scores follow the flattened array.
        resources : Resources
        """
        scaled = np.ldexp(taus, -self._exponent)
        scores = self._compete(new, scaled, resources)
        return -scores.reshape(*scores.shape[:2], -1)

    def _compete(self, new: FloatArray, taus: FloatArray, resources: Resources) -> FloatArray:
        """Let the nodes compete for samples, in whatever way suits their number of features."""
        nodes, n_threads = self._nodes, resources.n_threads
        if isinstance(nodes, CompetingNodes):
            rows = rows_per_block(
                len(nodes.costs), min(BLOCK_BYTES, resources.n_bytes // n_threads)
            )
            return nodes.scores(self._blocks(new), len(new), taus, rows, n_threads)
        if isinstance(nodes, CompetingPoints) and self._backend is not None:
            found: FloatArray = self._backend.soft_scores(nodes, self._scaled(new), taus)
            return found
        return nodes.scores(self._scaled(new), taus, n_threads)

    def _scaled(self, new: FloatArray) -> FloatArray:
        """Scale new samples as the training samples are."""
        # From farther away all training samples look alike, so that far is far enough.
        return np.clip(scaled_copy(new, self._sample_exponent), -(2.0**FAR), 2.0**FAR)

    def _blocks(self, new: FloatArray) -> BlockOfDistances:
        """Make blocks of distances to the nodes, for any metric but the plain one."""
        metric, training = self._metric, self._training
        if metric.precomputed:
            return lambda start, stop: new[start:stop].take(self._columns, axis=1)
        if not metric.euclidean or training is None:
            return metric.blocks(new, training)
        squared = kernel_blocks("sqeuclidean", self._scaled(new), training)
        return lambda start, stop: metric.transform(squared(start, stop), self._sample_exponent)
