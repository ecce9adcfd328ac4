r"""The forest as a component of the pool.

It is grown on scaled and mapped features, or on the features as given. A class's score
:math:`u_k` (see `soft_competition`) is raised by background mass,
:math:`u_k \leftarrow \log(e^{u_k} + e^{\phi})`, so that samples far from everything get the class
frequencies. The logit of class k is :math:`a_k u_k(\tau) + b_k`, with bandwidth, slopes and biases fitted to
held-out samples.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from popf.engine.runtime.simd import CHAIN
from popf.engine.structures import BoolArray, FloatArray, IntArray, Resources
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest, grow_forest
from popf.probability.components import Split
from popf.probability.linear_maps import fit_map
from popf.probability.logits import Coefficient, Labels, log_losses
from popf.probability.newton import Ridge, fit_softmax
from popf.probability.scaler import FeatureScaler, weighted_quantile
from popf.probability.soft_competition import SoftCompetition, competition_of
from popf.state import Float, Integer, Sizes, StateError

#: The widest bandwidth, in units of the median winning cost, and the number of chains: bandwidths are tried
#: from 8 to 0.022, each the one before divided by the square root of 2.
WIDEST, N_CHAINS = 8.0, 2
#: Lower bound of scores, so that their squares stay finite.
MIN_SCORE = -1e100
#: The background is worth 0.25 % on average, and 0.9 % with many classes.
#: The floor lies FLOOR_DEPTH below this quantile of the held-out samples' best scores.
FLOOR_QUANTILE, FLOOR_DEPTH = 0.02, 2.0
#: Ridge that shrinks the slopes of the classes towards their mean, and one that makes them equal. With equal
#: slopes the forest alone lost 0.7 % on average, and 15 to 20 % where one class spreads more widely.
SLOPE_RIDGE, EQUAL = 2.0, 1e9
#: Maximum number of samples of a forest that scores others; with more, that took longer than all else together.
MAX_NODES = 10_000
#: Maximum number of samples for the median winning cost.
N_FOR_UNIT = 1000

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


class HeldOutForest(NamedTuple):
    """Scores of held-out samples at all bandwidths, with floors, slopes and biases."""

    scores: FloatArray  # with background mass: (n_bandwidths, n_rows, n_classes)
    floors: FloatArray  # (n_bandwidths,)
    slopes: FloatArray  # (n_bandwidths, n_classes)
    biases: FloatArray  # (n_bandwidths, n_classes)
    losses: FloatArray  # (n_bandwidths, n_rows)
    taus: FloatArray  # the bandwidths, in the unit of the metric
    accuracy: float  # of the scores at the narrowest bandwidth

    def calibrated(
        self, step: int, labels: Labels, rows: BoolArray
    ) -> "tuple[Calibration, FloatArray]":
        """Fit slopes and biases at a bandwidth to some rows; return them and the logits of all rows."""
        slopes, biases = self.slopes[step], self.biases[step]
        if not rows.all():
            slopes, biases = (
                values[0] for values in calibrate(self.scores[step][None, rows], labels.take(rows))
            )
        calibration = Calibration(step, float(self.floors[step]), slopes, biases)
        return calibration, slopes * self.scores[step] + biases


class Calibration(NamedTuple):
    """What turns scores into logits."""

    step: int  # number of the bandwidth, the widest first
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
        every = np.full((len(queries), labels.n_classes, own.shape[2]), MIN_SCORE)
        every[:, np.unique(codes)] = np.maximum(own, MIN_SCORE)
        # From chains of halved bandwidths to descending order.
        by_chain = every.reshape(*every.shape[:2], N_CHAINS, -1)
        scores.append(np.swapaxes(by_chain, 2, 3).reshape(every.shape))
    found = np.moveaxis(np.concatenate(scores), 2, 0)
    top = found.max(axis=2).T
    floors = np.maximum(
        weighted_quantile(top, labels.weights, FLOOR_QUANTILE) - FLOOR_DEPTH, MIN_SCORE
    )
    accuracy = labels.accuracy(found[-1])
    found = add_background(found, floors[:, None, None])
    slopes, biases = calibrate(found, labels)
    losses = log_losses(slopes[:, None] * found + biases[:, None], labels.codes)
    return HeldOutForest(found, floors, slopes, biases, losses, taus.T.ravel(), accuracy)


def mapped(split: Split, map_name: str) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return classes, weights and values of the fitted samples of a split, and the held-out values."""
    if split.given is not None:
        return split.fold.codes, split.fold.weights, *split.given
    fold = split.fold.subsample(MAX_NODES)
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


def calibrate(scores: FloatArray, labels: Labels) -> tuple[FloatArray, FloatArray]:
    """Fit slopes and biases of the classes, (n_bandwidths, n_classes) each, to scores at several bandwidths.

    A ridge shrinks the slopes of the classes towards their mean. Where a slope would be negative, all are
    equal; if they are negative still, because the scores favour the wrong class, the class frequencies take
    their place.
    """
    n_classes, weights, targets = labels.n_classes, labels.weights, labels.targets()
    center = np.einsum("i,tik->tk", weights, scores) / weights.sum()
    relative = scores - center[:, None]
    square = np.einsum("i,tik->t", weights, relative**2) / (weights.sum() * n_classes)
    unit = np.sqrt(np.where(square > 1e-200, square, 1.0))[
        :, None
    ]  # constant scores are not scaled
    columns = (relative / unit[:, None])[:, None]
    apart = np.eye(n_classes) - 1.0 / n_classes
    theta = np.zeros((len(scores), 2 * n_classes - 1))
    wrong = np.full(len(scores), True)
    for strength in (SLOPE_RIDGE, EQUAL):
        ridge = Ridge(strength * apart, np.zeros(n_classes))
        theta[wrong] = fit_softmax(columns[wrong], targets, weights, ridge, by_class=True)
        wrong &= theta[:, :n_classes].min(axis=1) <= 0.0
        if not wrong.any():
            break
    slopes = theta[:, :n_classes] / unit
    biases = np.insert(theta[:, n_classes:], 0, 0.0, axis=1) - slopes * center
    slopes[wrong], biases[wrong] = 0.0, labels.prior
    return slopes, biases


def bandwidths(unit: float) -> FloatArray:
    """Return all bandwidths in the shape for the engine: in a row, each is half of the one before."""
    tops = WIDEST / 2.0 ** (np.arange(N_CHAINS) / N_CHAINS)
    return np.ldexp(tops[:, None] * unit, -np.arange(CHAIN))


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
    some = slice(None, None, -(-len(costs) // N_FOR_UNIT))
    costs, weights = costs[some], weights[some]
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
