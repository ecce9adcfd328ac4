r"""The forest as a component of the pool.

It is grown on scaled and mapped features, or on the features as given. The score of
class k at bandwidth :math:`\tau`, to which all paths contribute, is
:math:`u_k = \log\,\operatorname{mean}_{v \in k} e^{-c_v / \tau}`, with the path costs
:math:`c_v = \max(C_v, d(v, t))`. It is raised by background mass,
:math:`u_k \leftarrow \log(e^{u_k} + e^{\phi})`, so that samples far from everything get the class
frequencies. The logit of class k is :math:`a_k u_k(\tau) + b_k`, with bandwidth, slopes and biases fitted to
held-out samples.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from popf.engine.conquest import FAR
from popf.engine.distances import kernel_blocks, rows_per_block
from popf.engine.points import scaled_copy
from popf.engine.runtime.simd_sums import CHAIN
from popf.engine.soft_scores import CompetingNodes, CompetingSpace
from popf.engine.structures import BlockOfDistances, BoolArray, FloatArray, IntArray, Resources
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest, grow_forest
from popf.probability.components import Split
from popf.probability.folds import ENOUGH
from popf.probability.linear_maps import fit_map
from popf.probability.logits import (
    Coefficient,
    Labels,
    fit_softmax,
    log_losses,
)
from popf.probability.scaler import FeatureScaler, weighted_quantile
from popf.state import Float, Integer, Sizes, StateError

#: The widest bandwidth, in units of the median winning cost. Bandwidths are tried down to 1/256 of it. With a
#: quarter of them, or four times, the loss is the same.
WIDEST = 8.0
#: Lower bound of scores, so that their squares stay finite.
MIN_SCORE = -1e100
#: The background is worth 0.25 % on average, and 0.9 % with many classes. Its floor lies FLOOR_DEPTH below this
#: quantile of the held-out samples' best scores: depths of 0 and 6 cost 0.1 and 0 %, and the lowest score
#: instead of a quantile 0.3 %.
FLOOR_QUANTILE, FLOOR_DEPTH = 0.02, 2.0
#: Ridge that shrinks the slopes of the classes towards their mean. With equal slopes the forest alone lost
#: 0.7 % on average, and 15 to 20 % where one class spreads more widely. A ridge of 20 cost 0.4 %, 0.2 nothing.
SLOPE_RIDGE = 2.0

Prepare = Callable[[FloatArray], FloatArray]


class Growing(NamedTuple):
    """How forests are grown."""

    metric: Metric
    algorithm: str
    resources: Resources

    def grow(self, samples: FloatArray, codes: IntArray) -> OptimumPathForest:
        """Grow a forest on samples whose classes need not be 0, 1, ..."""
        present = np.unique(codes, return_inverse=True)[1]
        metric = self.metric.fitted(samples)
        return grow_forest(samples, present, metric, self.resources, self.algorithm)


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
        self.on_device = backend is not None
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

        With precomputed distances, `new` are the distances to the forest's samples. There are at most nine
        bandwidths `taus`, each half of the one before.
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
        return -found

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


class HeldOutForest(NamedTuple):
    """Scores of held-out samples at all bandwidths, with background mass, and log losses by them."""

    scores: FloatArray  # (n_bandwidths, n_rows, n_classes)
    floors: FloatArray  # (n_bandwidths,)
    losses: FloatArray  # (n_bandwidths, n_rows)
    taus: FloatArray  # the bandwidths, in the unit of the metric
    accuracy: float  # of the scores at the narrowest bandwidth

    def calibrate(
        self, step: int, labels: Labels, rows: BoolArray
    ) -> "tuple[Calibration, FloatArray]":
        """Fit slopes and biases at a bandwidth to some of the rows; return also the logits of all rows."""
        scores, tau, floor = self.scores[step], float(self.taus[step]), float(self.floors[step])
        slopes, biases = calibrate(scores[rows], labels.take(rows))
        return Calibration(tau, floor, slopes, biases), slopes * scores + biases


class Calibration(NamedTuple):
    """What turns scores into logits."""

    bandwidth: float  # in the unit of the metric
    floor: float
    slopes: FloatArray  # of the classes
    biases: FloatArray


def hold_out_forest(
    splits: Sequence[Split], map_name: str, labels: Labels, growing: Growing
) -> HeldOutForest:
    """Score held-out samples by forests that were not fitted to them, at all bandwidths."""
    competitions, units, scores = [], [], []
    every_split = [mapped(split, map_name) for split in splits]
    for codes, weights, samples, _ in every_split:
        forest, nodes = growing.grow(samples, codes), np.arange(len(codes))
        units.append(unit_cost(forest, weights))
        competitions.append(competition_of(forest, nodes, forest.codes, weights))
    # In one unit, because that of a few values may differ much from fold to fold.
    taus = bandwidths(float(np.mean(units)))
    for (codes, _, _, queries), competition in zip(every_split, competitions, strict=True):
        own = competition.scores(queries, taus, growing.resources)
        every = np.full((len(queries), splits[0].fold.n_classes, own.shape[2]), MIN_SCORE)
        every[:, np.unique(codes)] = np.maximum(own, MIN_SCORE)
        scores.append(every[:, labels.classes])
    found = np.moveaxis(np.concatenate(scores), 2, 0)
    top = found.max(axis=2).T
    floors = np.maximum(
        weighted_quantile(top, labels.weights, FLOOR_QUANTILE) - FLOOR_DEPTH, MIN_SCORE
    )
    accuracy = labels.accuracy(found[-1])
    found = add_background(found, floors[:, None, None])
    losses = losses_with_one_slope(found, labels)
    return HeldOutForest(found, floors, losses, taus, accuracy)


def mapped(split: Split, map_name: str) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return classes, weights and values of the fitted samples of a split, and the held-out values."""
    if split.given is not None:
        return split.fold.codes, split.fold.weights, *split.given
    fold = split.fold.subsample(ENOUGH)
    matrix = fit_map(map_name, fold.samples, fold.codes, fold.weights)
    return fold.codes, fold.weights, fold.samples @ matrix, split.queries @ matrix


def prepare(
    scaler: FeatureScaler | None, matrix: FloatArray | None, given: FloatArray
) -> FloatArray:
    """Scale and map samples for the forest; without a map they are used as given."""
    if scaler is None or matrix is None:
        return given
    # Unlike BLAS, this rounds a row in the same way whichever rows are beside it. So equal samples stay equal,
    # and blocks of samples on a cluster have the same bits as all samples in memory.
    scaled, matrix = (np.ascontiguousarray(each) for each in (scaler.apply(given), matrix))
    prepared: FloatArray = np.einsum("ij,jk->ik", scaled, matrix)
    return prepared


def losses_with_one_slope(scores: FloatArray, labels: Labels) -> FloatArray:
    """Compute log losses with one slope for all classes: (n_bandwidths, n_rows).

    They rank bandwidths and maps as well as losses with a slope for each class, in a fraction of the time.
    """
    found, start = [], (np.ones(1), labels.prior)
    for own in scores:
        _, relative, _ = standardised(own, labels.weights)
        # Each fit starts from the last one, and is as exact as a ranking needs: of 500 classes, this takes a
        # fit from 12 to 8 seconds.
        start = fit_softmax(relative[None], labels, start, 0.0, np.zeros(1), tolerance=1e-5)
        found.append(log_losses(start[0] * relative + start[1], labels.codes))
    return np.stack(found)


def calibrate(scores: FloatArray, labels: Labels) -> tuple[FloatArray, FloatArray]:
    """Fit slopes and biases of the classes to scores; a ridge shrinks the slopes towards their mean."""
    center, relative, unit = standardised(scores, labels.weights)
    start = np.ones(labels.n_classes), labels.prior
    slopes, biases = fit_softmax(relative[None], labels, start, SLOPE_RIDGE)
    slopes = slopes / unit
    return slopes, biases - slopes * center


def standardised(scores: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the mean score of each class, the scores relative to it in units of one size, and the unit."""
    center = np.average(scores, axis=0, weights=weights)
    relative = scores - center
    square = np.average((relative**2).mean(axis=1), weights=weights)
    unit = float(np.sqrt(square)) if square > 1e-200 else 1.0  # constant scores are not scaled
    return center, relative / unit, unit


def bandwidths(unit: float) -> FloatArray:
    """Return all bandwidths, each half of the one before."""
    return np.ldexp(WIDEST * unit, -np.arange(CHAIN))


def add_background(scores: FloatArray, floors: FloatArray | float) -> FloatArray:
    """Add background mass to scores: log(exp(score) + exp(floor))."""
    # Three times as fast as np.logaddexp.
    raised: FloatArray = np.maximum(scores, floors) + np.log1p(np.exp(-np.abs(scores - floors)))
    return raised


def unit_cost(forest: OptimumPathForest, weights: FloatArray) -> float:
    """Compute the unit of bandwidths: the median cost at which left-out samples are conquered.

    If it is 0, return the mean of the positive costs, or 1 if there are none.
    """
    costs = forest.costs_left_out()
    positive = costs > 0.0
    if not positive.any():
        return 1.0
    median = float(weighted_quantile(costs[:, None], weights, 0.5)[0])
    return median or float(np.average(costs[positive], weights=weights[positive]))


class ForestModel(NamedTuple):
    """The fitted forest component, without the forest itself."""

    #: The map of scaled features, None for features as given.
    matrix: Annotated[FloatArray, Coefficient("n_encoded", "n_prepared")] | None
    #: Samples of the forest that compete, each on behalf of all samples equal to it.
    nodes: Annotated[IntArray, Integer("n_nodes", of="n_samples")]
    #: Their canonical classes.
    node_codes: Annotated[IntArray, Integer("n_nodes", of="n_classes")]
    node_weights: Annotated[FloatArray, Float("n_nodes", low=1e-100, high=1e200)]
    bandwidth: Annotated[float, Float(low=5e-324)]
    floor: Annotated[float, Float(low=MIN_SCORE, high=0.0)]
    slopes: Annotated[FloatArray, Coefficient("n_classes", low=0.0)]
    biases: Annotated[FloatArray, Coefficient("n_classes")]

    def check_state(self, sizes: Sizes) -> None:
        """Check nodes and classes; see `popf.state`."""
        if len(np.unique(self.nodes)) < len(self.nodes):
            raise StateError("different samples", "nodes")
        if np.bincount(self.node_codes, minlength=sizes["n_classes"]).min() == 0:
            raise StateError("nodes of every class", "node_codes")

    def logits(self, scores: FloatArray | None, n_rows: int) -> FloatArray:
        """Compute logits from scores, (n_rows, n_classes); None where the slope is 0."""
        if scores is None:
            return np.tile(self.biases, (n_rows, 1))
        return self.slopes * add_background(np.maximum(scores, MIN_SCORE), self.floor) + self.biases

    def competition(self, forest: OptimumPathForest) -> SoftCompetition:
        """Create the soft competition of the nodes."""
        return competition_of(forest, self.nodes, self.node_codes, self.node_weights)
