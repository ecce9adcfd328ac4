r"""The forest's evidence: scores by all its paths, a background, and for each class a bandwidth and a slope.

The score of class k at bandwidth :math:`\tau` is
:math:`u_k = \log\,\operatorname{mean}_{v \in k} e^{-c_v / \tau}`, with the path costs
:math:`c_v = \max(C_v, d(v, t))`. A floor of background mass lies under it,
:math:`u_k \leftarrow \log(e^{u_k} + e^{\phi})`, so that a sample far from everything is answered by the prior.
The exponent of class k is :math:`a_k u_k(\tau_k) + b_k`.
"""

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from popf.engine.conquest import FAR
from popf.engine.distances import kernel_blocks, rows_per_block
from popf.engine.points import scaled_copy
from popf.engine.soft import CompetingNodes, CompetingPoints, CompetingSpace
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray, Resources
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.probability.features import weighted_quantile
from popf.probability.softmax import Designs, Labels, fit_softmax, log_losses

#: Up to this many features distances are computed one by one, beyond from matrix products.
MOST_FEATURES = 16
#: The widest bandwidth, in units of the median winning cost, and how often it is halved.
WIDEST, N_HALVINGS = 8.0, 9
#: Scores are not lower than this, so that their squares stay finite.
LOWEST = -1e100
#: The floor lies so far below this quantile of the largest score of a held-out sample.
FLOOR_QUANTILE, FLOOR_DEPTH = 0.02, 2.0
#: A wider bandwidth is preferred where it costs less than this part of a standard error.
INDIFFERENCE = 0.5
#: A large standard deviation of what the losses of a sample differ by between two bandwidths.
LARGE_SPREAD = 0.5
#: What is behind in log likelihood by this, and by one more for each class, will not be the best.
FAR_BEHIND = 10.0
#: What a bandwidth and a slope for each class must gain, in log likelihood, beside what their ratio costs.
PRICE_OF_CLASSES = 1.0
#: How far a class's bandwidth may move at a time where there are more than two classes, in steps of the grid.
MOVES = (-4, -2, -1, 1, 2, 4)
#: How often all classes are gone through, while it pays.
MOST_ROUNDS = 2


def competition_of(
    forest: OptimumPathForest, rows: IntArray, weights: FloatArray
) -> "SoftCompetition":
    """Let some samples of a forest compete, given by their rows."""
    samples = None if forest.samples is None else forest.samples[rows]
    codes, costs, exponent = forest.codes[rows], forest.costs[rows], forest.exponent
    return SoftCompetition(
        samples, codes, costs, weights, forest.metric, exponent, forest.backend, rows
    )


class SoftCompetition:
    """Training nodes that all compete for a sample.

    `samples` are None if distances are precomputed: `columns` tells where those to each node are found.
    `costs` are in the unit of the metric, `weights` how many samples each node stands for. `exponent` is the
    power of two that the engine takes out of Euclidean samples; `backend` the GPU that is to sum, or None.
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
        # Plain Euclidean costs and bandwidths stay scaled by a power of two, as the samples are.
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
        elif samples.shape[1] <= MOST_FEATURES and backend is None:
            self._nodes = CompetingSpace.build(samples, codes, costs, weights)
        else:
            self._nodes = CompetingPoints.build(samples, codes, costs, weights)

    def scores(self, new: FloatArray, taus: FloatArray, resources: Resources) -> FloatArray:
        """Score new samples for several bandwidths: (n_samples, n_classes, n_bandwidths).

        `new` are their distances to the forest's samples, if these are precomputed. `taus` have shape
        (n_chains, 1 or 9): in a row each is half of the one before. Scores follow the flattened array.
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
        """Scale new samples as the training samples are."""
        with np.errstate(over="ignore"):
            scaled = np.ldexp(new, -self._sample_exponent)
        # From farther away all training samples look alike, so that far is far enough.
        return np.ascontiguousarray(np.clip(scaled, -(2.0**FAR), 2.0**FAR))

    def _blocks(self, new: FloatArray) -> BlockOfDistances:
        """Make blocks of distances to the nodes, for any metric but the plain one."""
        metric, training = self._metric, self._training
        if training is None:
            return lambda start, stop: new[start:stop].take(self._columns, axis=1)
        if not metric.euclidean:
            return metric.blocks(new, training)
        squared = kernel_blocks("sqeuclidean", self._scaled(new), training)
        return lambda start, stop: metric.transform(squared(start, stop), self._sample_exponent)


class BandwidthGrid(NamedTuple):
    """Bandwidths to choose from, in units of the median winning cost.

    Each is the one before over 2 to the power of 1 / n_chains; so 8 ... 0.022 for two chains.
    """

    widest: float = WIDEST
    n_chains: int = 2

    def chains(self, unit: float) -> FloatArray:
        """Make all bandwidths, as the engine wants them: in a row each is half of the one before."""
        tops = self.widest / 2.0 ** (np.arange(self.n_chains) / self.n_chains)
        return np.ldexp(tops[:, None] * unit, -np.arange(N_HALVINGS))

    def ranked(self, unit: float) -> FloatArray:
        """Make all bandwidths, the widest first."""
        return self.chains(unit).T.ravel()


class ForestScaling(NamedTuple):
    """What turns the scores of a forest into the exponents of probabilities."""

    steps: IntArray  # the place of each class's bandwidth in the grid
    floors: FloatArray
    slopes: FloatArray
    biases: FloatArray
    loss: float  # the mean log loss of the held-out samples

    def exponents(self, scores: FloatArray) -> FloatArray:
        """Exponents from scores at the bandwidths of the classes: (n_rows, n_classes) both."""
        return self.slopes * _raise(scores, self.floors) + self.biases

    def exponents_on_grid(self, scores: FloatArray) -> FloatArray:
        """Exponents from scores at all bandwidths of the grid."""
        return self.exponents(scores[:, np.arange(scores.shape[1]), self.steps])


class SharedScalings(NamedTuple):
    """One slope for all classes at every bandwidth of a grid, and the bandwidth whose log loss is best."""

    raised: FloatArray  # scores above the floors: (n_bandwidths, n_rows, n_classes)
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
    """Fit slope and biases to held-out samples at every bandwidth, and choose one by the log loss.

    Scores are (n_rows, n_classes, n_bandwidths), the widest first, minus infinity for classes without members.
    Where the loss is flat, the widest bandwidth of those that cost next to nothing is taken. `near` is what
    suits these samples and others: bandwidths at which it is far behind are left as they are there.
    """
    n_classes, n_steps = scores.shape[1:]
    codes, weights, prior = labels.codes, labels.weights, labels.prior
    floors = np.full(n_steps, LOWEST)
    if background:
        top = np.maximum(scores.max(axis=1), LOWEST)
        floors = np.maximum(weighted_quantile(top, weights, FLOOR_QUANTILE) - FLOOR_DEPTH, LOWEST)
    raised = np.moveaxis(_raise(scores, floors), 2, 0)
    passes_for_equal = INDIFFERENCE * LARGE_SPREAD * float(np.sqrt(weights.sum()))
    margin = FAR_BEHIND + n_classes + passes_for_equal
    hopeful, start = np.arange(n_steps), None
    if near is not None:
        totals = near.losses @ weights
        hopeful = np.flatnonzero(totals <= totals.min() + margin)
    relative = raised[hopeful] - raised[hopeful, :, :1]
    square = np.einsum("i,tik->t", weights, relative**2) / weights.sum()
    unit = np.sqrt(np.where(square > 1e-200, square, 1.0))  # scores that are all alike stay so
    units = np.append(unit[:, None], np.ones((len(hopeful), n_classes - 1)), axis=1)
    if near is not None:
        start = near.parameters[hopeful] * units
    designs = Designs((relative / unit[:, None, None])[:, None])
    theta = fit_softmax(designs, labels.targets(smoothing), weights, start=start, margin=margin)
    losses = log_losses(designs.exponents(theta), codes)
    wrong = theta[:, 0] <= 0.0  # scores that speak for the other class say nothing
    losses[wrong] = -prior[codes]
    means = losses @ weights / weights.sum()
    own = _widest_of_the_best(losses, means, weights)
    steps, parameters = np.full(n_classes, hopeful[own]), theta / units
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
    """Give each class its own bandwidth and slope, if the likelihood gains enough by it."""
    if not shared.best.slopes.any():
        return shared.best
    search = _Search(
        shared.raised,
        shared.floors,
        labels.targets(smoothing),
        labels.codes,
        labels.weights,
        np.einsum("i,tik->tk", labels.weights / labels.weights.sum(), shared.raised),
        np.log(2.0) / grid.n_chains,
    )
    found = search.by_class(shared.best)
    return found.scaling if found.price < shared.best.loss * labels.weights.sum() else shared.best


def _raise(scores: FloatArray, floors: FloatArray) -> FloatArray:
    """Add background mass to scores."""
    scores = np.maximum(scores, LOWEST)
    # NumPy's logaddexp takes three times as long.
    raised: FloatArray = np.maximum(scores, floors) + np.log1p(np.exp(-np.abs(scores - floors)))
    return raised


def _widest_of_the_best(losses: FloatArray, means: FloatArray, weights: FloatArray) -> int:
    """Choose the widest bandwidth whose loss exceeds the least by a small part of a standard error."""
    best = int(np.argmin(means))
    total = weights.sum()
    square = (losses - losses[best]) ** 2 @ weights / total
    error = np.sqrt(square / max(total - 1.0, 1.0))
    return int(np.flatnonzero(means <= means[best] + INDIFFERENCE * error)[0])


class _Priced(NamedTuple):
    """A bandwidth, a slope and a bias for each class, and what that costs, infinity where a slope is wrong."""

    scaling: ForestScaling
    price: float


class _Search(NamedTuple):
    """The search for bandwidths of the classes: one class moves at a time, while the price falls."""

    raised: FloatArray  # scores above the floor: (n_bandwidths, n_rows, n_classes)
    floors: FloatArray
    targets: FloatArray
    codes: IntArray
    weights: FloatArray
    means: FloatArray  # of the scores: (n_bandwidths, n_classes)
    log_step: float  # logarithm of the ratio between two bandwidths of the grid

    def by_class(self, shared: ForestScaling) -> _Priced:
        """Move one class after the other, of two classes to all bandwidths and with all slopes fitted anew.

        Of more classes the others stay as they are, and all slopes are fitted anew after each round. Classes
        have their turn in the order of the samples, in which their names have no say.
        """
        n_steps, _, n_classes = self.raised.shape
        (best,) = self._fit_all(shared, shared.steps[None])
        in_turn = self.codes[np.sort(np.unique(self.codes, return_index=True)[1])]
        for _ in range(MOST_ROUNDS):
            before = best
            for k in in_turn:
                if n_classes == 2:
                    steps = np.tile(best.scaling.steps, (n_steps, 1))
                    steps[:, k] = np.arange(n_steps)
                    moved = self._fit_all(best.scaling, steps)
                else:
                    moved = self._moves(best.scaling, k)
                best = min([best, *moved], key=attrgetter("price"))
            if best is before:
                break
            if n_classes > 2:
                anew = self._fit_all(best.scaling, best.scaling.steps[None])
                best = min([best, *anew], key=attrgetter("price"))
        return best

    def _found(
        self, steps: IntArray, slopes: FloatArray, biases: FloatArray, losses: FloatArray
    ) -> _Priced:
        """Set the price: the loss, one unit, and the logarithm of the widest over the narrowest bandwidth."""
        loss = float(losses @ self.weights)
        price = loss + PRICE_OF_CLASSES + float(np.ptp(steps)) * self.log_step
        usable = slopes.min() >= 0.0 and slopes.max() > 0.0
        mean = loss / float(self.weights.sum())
        scaling = ForestScaling(steps, self.floors[steps], slopes, biases, mean)
        return _Priced(scaling, price if usable else np.inf)

    def _fit_all(self, start: ForestScaling, steps: IntArray) -> list[_Priced]:
        """Fit all slopes and biases for several choices of bandwidths: (n_choices, n_classes)."""
        n_classes = self.raised.shape[2]
        classes = np.arange(n_classes)
        own = np.stack([self.raised[each, :, classes].T for each in steps])
        designs = Designs(own[:, None], by_class=True)
        slopes, biases = self._near(start, steps)
        begin = np.concatenate([slopes, biases[:, 1:] - biases[:, :1]], axis=1)
        theta = fit_softmax(designs, self.targets, self.weights, start=begin, margin=FAR_BEHIND)
        # A class whose nearness speaks against it says nothing: its slope is 0.
        positive = theta[:, :n_classes] > 0.0
        wrong = np.flatnonzero(~positive.all(axis=1))
        if len(wrong):
            rest = designs._replace(columns=(own[wrong] * positive[wrong, None])[:, None])
            theta[wrong] = fit_softmax(rest, self.targets, self.weights, start=theta[wrong])
            theta[wrong, :n_classes] = np.where(positive, theta[:, :n_classes], 0.0)[wrong]
        losses = log_losses(designs.exponents(theta), self.codes)
        return [
            self._found(each, one[:n_classes], np.append(0.0, one[n_classes:]), loss)
            for each, one, loss in zip(steps, theta, losses, strict=True)
        ]

    def _moves(self, now: ForestScaling, k: int) -> list[_Priced]:
        """Move the bandwidth of class k, only its own slope and bias fitted anew."""
        steps = now.steps[k] + np.array(MOVES)
        steps = steps[(steps >= 0) & (steps < len(self.raised))]
        exponents = now.slopes[:, None] * self.raised[now.steps, :, np.arange(len(now.steps))]
        exponents += now.biases[:, None]
        # Against all other classes together: their relative probabilities do not change.
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
        begin = np.stack(self._near(now, moved), axis=1)[:, :, k]
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
            found.append(self._found(own, slopes, biases - biases[0], loss))
        return found

    def _near(self, now: ForestScaling, steps: IntArray) -> tuple[FloatArray, FloatArray]:
        """Guess slopes and biases at other bandwidths: (n_choices, n_classes) both, as the steps."""
        # A slope goes about with the bandwidth, and the mean exponent of a class stays about where it is.
        slopes = now.slopes * np.exp((now.steps - steps) * self.log_step)
        classes = np.arange(len(now.steps))
        means = self.means[now.steps, classes] * now.slopes + now.biases
        return slopes, means - slopes * self.means[steps, classes]
