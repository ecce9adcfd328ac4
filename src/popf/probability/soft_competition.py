r"""The forest's logits: scores from all paths, a background floor, and a bandwidth and slope for each class.

The score of class k at bandwidth :math:`\tau` is
:math:`u_k = \log\,\operatorname{mean}_{v \in k} e^{-c_v / \tau}`, with the path costs
:math:`c_v = \max(C_v, d(v, t))`. Background mass is added as a floor,
:math:`u_k \leftarrow \log(e^{u_k} + e^{\phi})`, so that samples far from everything get the class frequencies.
The logit of class k is :math:`a_k u_k(\tau_k) + b_k`.
"""

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from popf.engine.conquest import FAR
from popf.engine.distances import kernel_blocks, rows_per_block
from popf.engine.points import scaled_copy
from popf.engine.runtime.simd import CHAIN, SHORT_CHAIN
from popf.engine.soft_scores import CompetingNodes, CompetingPoints, CompetingSpace
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray, Resources
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.probability.features import weighted_quantile
from popf.probability.softmax import Designs, Labels, fit_softmax, log_losses

#: Maximum number of features for a space tree with direct distances; beyond, matrix products are used.
MAX_TREE_FEATURES = 16
#: The widest bandwidth, in units of the median winning cost.
WIDEST = 8.0
#: Largest ratio between known bandwidths of the classes for which a short chain is enough.
MAX_RATIO_IN_SHORT_CHAIN = 8.0
#: Lower bound of scores, so that their squares stay finite.
MIN_SCORE = -1e100
#: The floor lies FLOOR_DEPTH below this quantile of the held-out samples' best scores.
FLOOR_QUANTILE, FLOOR_DEPTH = 0.02, 2.0
#: A wider bandwidth is preferred if its loss exceeds the lowest by at most this fraction of a standard error.
INDIFFERENCE = 0.5
#: A generous estimate of the standard deviation of a sample's difference in loss between two bandwidths.
LARGE_SPREAD = 0.5
#: A fit whose log likelihood is this far below the best, plus 1 per class, is unlikely to become the best.
FAR_BEHIND = 10.0
#: Penalty on a bandwidth and slope for each class, in log likelihood, beside log(widest / narrowest).
CLASS_PENALTY = 1.0
#: Steps on the grid by which a class's bandwidth may move at a time, with more than two classes.
MOVES = (-4, -2, -1, 1, 2, 4)


def competition_of(
    forest: OptimumPathForest, rows: IntArray, weights: FloatArray
) -> "SoftCompetition":
    """Create the soft competition of the samples of a forest at some rows."""
    samples = forest.samples  # a property that copies
    samples = None if samples is None else samples[rows]
    codes, costs, exponent = forest.codes[rows], forest.costs[rows], forest.exponent
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
        self._nodes: CompetingNodes | CompetingSpace | CompetingPoints
        if not plain or samples is None:
            self._nodes = CompetingNodes.build(codes, costs, weights)
            self._columns: Any = None if columns is None else columns[self._nodes.order]
            self._training = None if samples is None else samples[self._nodes.order]
        elif samples.shape[1] <= MAX_TREE_FEATURES and backend is None:
            self._nodes = CompetingSpace.build(samples, codes, costs, weights)
        else:
            self._nodes = CompetingPoints.build(samples, codes, costs, weights)

    def scores(self, new: FloatArray, taus: FloatArray, resources: Resources) -> FloatArray:
        """Compute the scores of new samples at several bandwidths: (n_samples, n_classes, n_bandwidths).

        With precomputed distances, `new` are the distances to the forest's samples. `taus` has the shape
        (n_chains, 1, 5 or 9), and in a row each bandwidth is half of the one before. Scores are in the order of
        the flattened array.
        """
        taus, nodes, n_threads = np.ldexp(taus, -self._exponent), self._nodes, resources.n_threads
        found: FloatArray
        if isinstance(nodes, CompetingNodes):
            rows = rows_per_block(len(nodes.costs), resources.n_bytes, n_threads)
            found = nodes.scores(self._blocks(new), len(new), taus, rows, n_threads)
        elif isinstance(nodes, CompetingPoints) and self._backend is not None:
            found = self._backend.soft_scores(nodes, self._scaled(new), taus)
        else:
            found = nodes.scores(self._scaled(new), taus, n_threads)
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


class BandwidthGrid(NamedTuple):
    """Bandwidths to choose from, in units of the median winning cost.

    Each is the one before divided by 2 ** (1 / n_chains); two chains range from 8 to 0.022.
    """

    widest: float = WIDEST
    n_chains: int = 2
    n_halvings: int = CHAIN

    @classmethod
    def for_more_samples(cls, known: FloatArray, unit: float) -> "BandwidthGrid":
        """Create a single chain for bandwidths known from fewer samples, which get narrower with more."""
        widest, narrowest = float(known.max()), float(known.min())
        if widest > MAX_RATIO_IN_SHORT_CHAIN * narrowest:
            return cls(2.0 * widest / unit, 1)
        return cls(2.0 * np.sqrt(widest * narrowest) / unit, 1, SHORT_CHAIN)

    def chains(self, unit: float) -> FloatArray:
        """Return all bandwidths in the shape for the engine: in a row, each is half of the one before."""
        tops = self.widest / 2.0 ** (np.arange(self.n_chains) / self.n_chains)
        return np.ldexp(tops[:, None] * unit, -np.arange(self.n_halvings))

    def ranked(self, unit: float) -> FloatArray:
        """Return all bandwidths, the widest first."""
        return self.chains(unit).T.ravel()


class ForestScaling(NamedTuple):
    """Parameters that turn the scores of a forest into logits."""

    steps: IntArray  # index of each class's bandwidth in the grid
    floors: FloatArray
    slopes: FloatArray
    biases: FloatArray
    loss: float  # the mean log loss of the held-out samples

    def exponents(self, scores: FloatArray) -> FloatArray:
        """Compute logits from scores at the bandwidths of the classes; both have shape (n_rows, n_classes)."""
        return self.slopes * _add_background(scores, self.floors) + self.biases

    def exponents_on_grid(self, scores: FloatArray) -> FloatArray:
        """Compute logits from scores at all bandwidths of the grid."""
        return self.exponents(scores[:, np.arange(scores.shape[1]), self.steps])


class SharedScalings(NamedTuple):
    """Fits with one slope for all classes at every bandwidth of a grid, and the best bandwidth by log loss."""

    raised: FloatArray  # scores with background mass: (n_bandwidths, n_rows, n_classes)
    floors: FloatArray
    parameters: FloatArray  # slope, and biases without the first: (n_bandwidths, n_classes)
    losses: FloatArray  # of the samples at every bandwidth: (n_bandwidths, n_rows)
    best: ForestScaling


def fit_shared_scalings(
    scores: FloatArray,
    labels: Labels,
    smoothing: float,
    background: bool,
    near: SharedScalings | None = None,
) -> SharedScalings:
    """Fit slope and biases to held-out samples at every bandwidth, and choose a bandwidth by log loss.

    Scores have shape (n_rows, n_classes, n_bandwidths), the widest first; they are minus infinity for classes
    without members. Of bandwidths with almost the lowest loss, the widest is chosen. `near` holds fits to these
    and other samples: they are starting points, and bandwidths at which they are far behind the best are not
    refitted. The returned `parameters` and `losses` are then those of `near`.
    """
    n_classes, n_steps = scores.shape[1:]
    codes, weights, prior = labels.codes, labels.weights, labels.prior
    floors = np.full(n_steps, MIN_SCORE)
    if background:
        top = np.maximum(scores.max(axis=1), MIN_SCORE)
        quantile = weighted_quantile(top, weights, FLOOR_QUANTILE)
        floors = np.maximum(quantile - FLOOR_DEPTH, MIN_SCORE)
    raised = np.moveaxis(_add_background(scores, floors), 2, 0)
    indifference = INDIFFERENCE * LARGE_SPREAD * float(np.sqrt(weights.sum()))
    margin = FAR_BEHIND + n_classes + indifference
    contenders, start = np.arange(n_steps), None
    if near is not None:
        totals = near.losses @ weights
        contenders = np.flatnonzero(totals <= totals.min() + margin)
    relative = raised[contenders] - raised[contenders, :, :1]
    square = np.einsum("i,tik->t", weights, relative**2) / weights.sum()
    unit = np.sqrt(np.where(square > 1e-200, square, 1.0))  # constant scores are not scaled
    units = np.append(unit[:, None], np.ones((len(contenders), n_classes - 1)), axis=1)
    if near is not None:
        start = near.parameters[contenders] * units
    designs = Designs((relative / unit[:, None, None])[:, None])
    theta = fit_softmax(designs, labels.targets(smoothing), weights, start=start, margin=margin)
    losses = log_losses(designs.exponents(theta), codes)
    wrong = theta[:, 0] <= 0.0  # scores that favour the wrong class are replaced by the prior
    losses[wrong] = -prior[codes]
    means = losses @ weights / weights.sum()
    own = _widest_good_bandwidth(losses, means, weights)
    steps, parameters = np.full(n_classes, contenders[own]), theta / units
    slopes, biases = np.full(n_classes, parameters[own, 0]), np.append(0.0, theta[own, 1:])
    if wrong[own]:
        slopes, biases = np.zeros(n_classes), prior
    best = ForestScaling(steps, floors[steps], slopes, biases, float(means[own]))
    if near is not None:
        parameters, losses = near.parameters, near.losses
    return SharedScalings(raised, floors, parameters, losses, best)


def fit_class_scaling(
    shared: SharedScalings, labels: Labels, smoothing: float, grid: BandwidthGrid
) -> ForestScaling:
    """Fit a bandwidth and slope for each class; return the shared ones if the likelihood gains too little."""
    if not shared.best.slopes.any():
        return shared.best
    search = _BandwidthSearch(
        shared.raised,
        shared.floors,
        labels.targets(smoothing),
        labels.codes,
        labels.weights,
        np.einsum("i,tik->tk", labels.weights / labels.weights.sum(), shared.raised),
        np.log(2.0) / grid.n_chains,
    )
    found = search.by_class(shared.best)
    shared_loss = shared.best.loss * labels.weights.sum()
    return found.scaling if found.penalised_loss < shared_loss else shared.best


def _add_background(scores: FloatArray, floors: FloatArray) -> FloatArray:
    """Add background mass to scores: log(exp(score) + exp(floor))."""
    scores = np.maximum(scores, MIN_SCORE)
    # Three times as fast as np.logaddexp.
    raised: FloatArray = np.maximum(scores, floors) + np.log1p(np.exp(-np.abs(scores - floors)))
    return raised


def _widest_good_bandwidth(losses: FloatArray, means: FloatArray, weights: FloatArray) -> int:
    """Choose the widest bandwidth whose loss exceeds the lowest by at most a fraction of a standard error."""
    best = int(np.argmin(means))
    total = weights.sum()
    square = (losses - losses[best]) ** 2 @ weights / total
    error = np.sqrt(square / max(total - 1.0, 1.0))
    return int(np.flatnonzero(means <= means[best] + INDIFFERENCE * error)[0])


class _PenalisedScaling(NamedTuple):
    """A bandwidth, slope and bias for each class, and the penalised loss."""

    scaling: ForestScaling
    penalised_loss: float  # infinity if a slope is negative, or all are 0


class _BandwidthSearch(NamedTuple):
    """Coordinate search for the bandwidths of the classes: one class moves after the other."""

    raised: FloatArray  # scores with background mass: (n_bandwidths, n_rows, n_classes)
    floors: FloatArray
    targets: FloatArray
    codes: IntArray
    weights: FloatArray
    means: FloatArray  # of the scores: (n_bandwidths, n_classes)
    log_step: float  # logarithm of the ratio between two bandwidths of the grid

    def by_class(self, shared: ForestScaling) -> _PenalisedScaling:
        """Move one class at a time to the bandwidth with the lowest penalised loss.

        With two classes, all bandwidths are tried, and all slopes are refitted for each. With more, only nearby
        bandwidths are tried and only the class's own slope is refitted; all slopes are refitted in the end.
        Classes take turns in the order of the samples, which does not depend on their labels.
        """
        n_steps, _, n_classes = self.raised.shape
        (best,) = self._fit_all(shared, shared.steps[None])
        in_turn = self.codes[np.sort(np.unique(self.codes, return_index=True)[1])]
        for k in in_turn:
            if n_classes == 2:
                steps = np.tile(best.scaling.steps, (n_steps, 1))
                steps[:, k] = np.arange(n_steps)
                moved = self._fit_all(best.scaling, steps)
            else:
                moved = self._moves(best.scaling, k)
            best = min([best, *moved], key=attrgetter("penalised_loss"))
        if n_classes > 2:
            refitted = self._fit_all(best.scaling, best.scaling.steps[None])
            best = min([best, *refitted], key=attrgetter("penalised_loss"))
        return best

    def _penalised(
        self, steps: IntArray, slopes: FloatArray, biases: FloatArray, losses: FloatArray
    ) -> _PenalisedScaling:
        """Compute the penalised loss: the loss, plus 1, plus log(widest / narrowest bandwidth)."""
        loss = float(losses @ self.weights)
        penalised_loss = loss + CLASS_PENALTY + float(np.ptp(steps)) * self.log_step
        usable = slopes.min() >= 0.0 and slopes.max() > 0.0
        mean = loss / float(self.weights.sum())
        scaling = ForestScaling(steps, self.floors[steps], slopes, biases, mean)
        return _PenalisedScaling(scaling, penalised_loss if usable else np.inf)

    def _fit_all(self, start: ForestScaling, steps: IntArray) -> list[_PenalisedScaling]:
        """Fit all slopes and biases for several choices of bandwidths, `steps`: (n_choices, n_classes)."""
        n_classes = self.raised.shape[2]
        classes = np.arange(n_classes)
        own = np.stack([self.raised[each, :, classes].T for each in steps])
        designs = Designs(own[:, None], by_class=True)
        slopes, biases = self._guess(start, steps)
        begin = np.concatenate([slopes, biases[:, 1:] - biases[:, :1]], axis=1)
        theta = fit_softmax(designs, self.targets, self.weights, start=begin, margin=FAR_BEHIND)
        # Slopes that are not positive are set to 0, and the rest is refitted.
        positive = theta[:, :n_classes] > 0.0
        wrong = np.flatnonzero(~positive.all(axis=1))
        if len(wrong):
            rest = designs._replace(columns=(own[wrong] * positive[wrong, None])[:, None])
            theta[wrong] = fit_softmax(rest, self.targets, self.weights, start=theta[wrong])
            theta[wrong, :n_classes] = np.where(positive, theta[:, :n_classes], 0.0)[wrong]
        losses = log_losses(designs.exponents(theta), self.codes)
        return [
            self._penalised(each, one[:n_classes], np.append(0.0, one[n_classes:]), loss)
            for each, one, loss in zip(steps, theta, losses, strict=True)
        ]

    def _moves(self, now: ForestScaling, k: int) -> list[_PenalisedScaling]:
        """Move the bandwidth of class k, and refit only its own slope and bias."""
        steps = now.steps[k] + np.array(MOVES)
        steps = steps[(steps >= 0) & (steps < len(self.raised))]
        exponents = now.slopes[:, None] * self.raised[now.steps, :, np.arange(len(now.steps))]
        exponents += now.biases[:, None]
        # A regression of class k against the rest, in which the relative probabilities of the others are fixed.
        others = np.delete(exponents, k, axis=0)
        top = others.max(axis=0)
        total = top + np.log(np.exp(others - top).sum(axis=0))
        right = self.codes == k
        among_others = np.where(right, 0.0, exponents[self.codes, np.arange(len(right))] - total)
        columns = np.zeros((len(steps), 1, len(right), 2))
        columns[:, 0, :, 1] = self.raised[steps, :, k]
        designs = Designs(columns, offset=np.column_stack([total, np.zeros(len(right))]))
        moved = np.tile(now.steps, (len(steps), 1))
        moved[:, k] = steps
        begin = np.stack(self._guess(now, moved), axis=1)[:, :, k]
        theta = fit_softmax(
            designs,
            np.column_stack([1.0 - self.targets[:, k], self.targets[:, k]]),
            self.weights,
            start=begin,
            margin=FAR_BEHIND,
        )
        losses = log_losses(designs.exponents(theta), right.astype(np.int64)) - among_others
        found = []
        for own, (slope, bias), loss in zip(moved, theta, losses, strict=True):
            slopes, biases = now.slopes.copy(), now.biases.copy()
            slopes[k], biases[k] = slope, bias
            found.append(self._penalised(own, slopes, biases - biases[0], loss))
        return found

    def _guess(self, now: ForestScaling, steps: IntArray) -> tuple[FloatArray, FloatArray]:
        """Guess slopes and biases at other bandwidths; both have the shape of `steps`."""
        # Slopes are roughly proportional to bandwidths, and mean logits of the classes roughly constant.
        slopes = now.slopes * np.exp((now.steps - steps) * self.log_step)
        classes = np.arange(len(now.steps))
        means = self.means[now.steps, classes] * now.slopes + now.biases
        return slopes, means - slopes * self.means[steps, classes]
