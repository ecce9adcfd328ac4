"""The soft method's fit: left-out scores, a bandwidth, and what turns scores into probabilities."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax
from sklearn.utils import check_random_state

from popf.solvers import Newton, PlattObjective, Solution, Solver, platt_targets
from popf.solvers.softmax import fit_softmax, softmax_targets

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Bandwidths in units of the median winning cost: 8 ... 0.022, each the last over the root of two.
WIDEST, N_CHAINS, N_HALVINGS = 8.0, 2, 9
# From how many of the left-out samples the median winning cost is taken at most.
N_FOR_UNIT = 1000
# How many pairs of samples are looked at to choose a bandwidth, and by how many left-out samples.
PAIRS_FOR_BANDWIDTH, FEWEST_FOR_BANDWIDTH, MOST_FOR_BANDWIDTH = 15_000_000, 300, 2000


@dataclass(frozen=True)
class Scaling:
    """From the scores of the classes to log probabilities, whatever their number.

    Attributes
    ----------
    slope : float
        What the scores are multiplied by; 0 leaves the prior.
    biases : ndarray of shape (n_classes,)
        What is added to each.
    solution : Solution or None
        How the solver got there, None for the prior.
    """

    slope: float
    biases: FloatArray
    solution: Solution | None = None

    @property
    def gain(self) -> float:
        """How much exponents change with scores, at most; 0 if they do not."""
        return self.slope

    def drawn_to(self, other: "Scaling", weight: float) -> "Scaling":
        """Mix exponents: `weight` of these, the rest of another scaling, which has slope 0."""
        biases = weight * self.biases + (1.0 - weight) * other.biases
        return Scaling(weight * self.slope, biases, self.solution)

    def logits(self, scores: FloatArray) -> FloatArray:
        """Give exponents whose softmax are the probabilities; a low score is a high one."""
        if self.slope == 0.0:
            return np.tile(self.biases, (len(scores), 1))
        exponents: FloatArray = self.biases - self.slope * scores
        return exponents


def bandwidth_grid(unit: float) -> FloatArray:
    """Make the bandwidths to choose from, as chains of halves.

    Examples
    --------
    >>> from popf.probability.calibration import bandwidth_grid
    >>> bandwidth_grid(1.0)[0, :4].tolist()
    [8.0, 4.0, 2.0, 1.0]
    """
    tops = WIDEST / 2.0 ** (np.arange(N_CHAINS) / N_CHAINS)
    halvings: FloatArray = np.ldexp(tops[:, None] * unit, -np.arange(N_HALVINGS))
    return halvings


def n_for_bandwidth(n_samples: int) -> int:
    """From how many left-out samples the bandwidth is chosen at most.

    Examples
    --------
    >>> from popf.probability.calibration import n_for_bandwidth
    >>> [n_for_bandwidth(n) for n in (1_000, 50_000, 1_000_000)]
    [2000, 300, 300]
    """
    wanted = PAIRS_FOR_BANDWIDTH // n_samples
    return min(MOST_FOR_BANDWIDTH, max(FEWEST_FOR_BANDWIDTH, wanted))


def rows_to_leave_out(
    codes: IntArray, at_most: int | None, random_state: int | np.random.RandomState | None
) -> IntArray:
    """Draw a stratified sample of the training rows, all of them if there are no more.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.probability.calibration import rows_to_leave_out
    >>> rows_to_leave_out(np.array([0, 0, 0, 0, 1, 1]), 3, 0)
    array([2, 3, 4])
    """
    if at_most is None or len(codes) <= at_most:
        return np.arange(len(codes))
    random = check_random_state(random_state)
    chosen = []
    for code in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == code)
        share = max(1, round(at_most * len(members) / len(codes)))
        chosen.append(random.choice(members, size=min(share, len(members)), replace=False))
    return np.sort(np.concatenate(chosen))


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Give the value with half of the weight on either side, between two such values their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.probability.calibration import weighted_median
    >>> weighted_median(np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0]))
    2.5
    """
    order = np.argsort(values, kind="stable")
    ranked, mass = values[order], np.cumsum(weights[order])
    middle = int(np.searchsorted(mass, mass[-1] / 2.0))
    if mass[middle] == mass[-1] / 2.0 and middle + 1 < len(ranked):
        return float(ranked[middle] / 2.0 + ranked[middle + 1] / 2.0)
    return float(ranked[middle])


def unit_of_cost(winning: FloatArray, weights: FloatArray) -> float:
    """Give the median winning cost, or if that is 0 the mean positive one, or 0.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.probability.calibration import unit_of_cost
    >>> unit_of_cost(np.array([0.0, 0.0, 0.0, 3.0, 5.0]), np.ones(5))
    4.0
    """
    median = weighted_median(winning, weights)
    positive = winning > 0.0
    if median > 0.0 or not positive.any():
        return median
    return float(np.average(winning[positive], weights=weights[positive]))


def prior(masses: FloatArray) -> Scaling:
    """Make the scaling that answers the smoothed prior whatever the scores."""
    return Scaling(0.0, np.log((masses + 1.0) / (masses.sum() + len(masses))))


def fit_scaling(
    scores: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    masses: FloatArray,
    solver: Solver | None = None,
    box: Any = None,
    random_state: int | np.random.RandomState | None = None,
    smoothing: float = 1.0,
) -> Scaling:
    """Fit slope and biases to left-out scores: for two classes exactly Platt's.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
        Finite.
    codes : ndarray of shape (n_rows,)
        The class of every row.
    weights : ndarray of shape (n_rows,)
    masses : ndarray of shape (n_classes,)
        The weight of each class, for the prior.
    solver : Solver, optional
        Newton's method by default, and always for more than two classes.
    box, random_state
        For the solver.
    smoothing : float
        Of the targets; see `popf.solvers.platt_targets`.

    Returns
    -------
    Scaling
        The prior if the scores tell nothing, or the wrong way round.
    """
    offsets = scores - scores.mean(axis=1, keepdims=True)
    spread = float(np.sqrt(np.average((offsets**2).sum(axis=1), weights=weights)))
    if len(codes) == 0 or not 0.0 < spread < np.inf or len(np.unique(codes)) < 2:
        return prior(masses)
    own = np.bincount(codes, weights=weights, minlength=len(masses)).astype(np.float64)
    if len(masses) == 2:
        margin = scores[:, 0] - scores[:, 1]
        unit = float(np.sqrt(np.average(margin**2, weights=weights)))
        objective = PlattObjective(margin / unit, platt_targets(codes, weights, smoothing), weights)
        solution = (solver or Newton()).minimize(objective, box, random_state)
        slope, bias = solution.theta
        if slope > 0.0:
            return prior(masses)
        # P = 1 / (1 + exp(A s + B)) as a softmax: half of the exponent goes to each class.
        biases = np.array([bias / 2.0, -bias / 2.0])
        return Scaling(float(-slope / unit), biases, solution)
    limit = solver.max_iterations if isinstance(solver, Newton) else Newton.max_iterations
    solution = fit_softmax(
        -offsets / spread, softmax_targets(codes, own, smoothing), weights, limit
    )
    slope, biases = float(solution.theta[0]), solution.theta[1:]
    return Scaling(slope / spread, biases, solution) if slope > 0.0 else prior(masses)


def weight_of_evidence(
    loss: float, codes: IntArray, weights: FloatArray, masses: FloatArray
) -> float:
    r"""Give the probability that the scores say more than the class prior does, between 0 and 1.

    Slope and bandwidth are fitted to the left-out scores, so that they gain a little even where labels
    have nothing to do with the features. By Schwarz's approximation of the evidence, two parameters that
    raise the log likelihood by g are as probable as the prior alone if :math:`g = \log N`, and the odds
    are :math:`e^g / N`. For N stands the number of classes times the harmonic mean of their sizes:
    the number of samples where classes are equal, less where one of them is rare.

    Parameters
    ----------
    loss : float
        The mean left-out log loss.
    codes, weights : ndarray of shape (n_rows,)
        Of the samples left out. Weights count as repetition, but the mean sample as no less than one.
    masses : ndarray of shape (n_classes,)
        The weight of each class, for the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.probability.calibration import weight_of_evidence
    >>> codes, masses = np.arange(100) % 2, np.array([50.0, 50.0])
    >>> [round(weight_of_evidence(loss, codes, np.ones(100), masses), 3) for loss in (0.69, 0.65, 0.6)]
    [0.014, 0.428, 0.991]
    """
    own = np.bincount(codes, weights=weights).astype(np.float64)
    own = own[own > 0.0] * max(1.0, len(codes) / weights.sum()) if len(codes) else own
    if len(own) < 2:
        return 0.0
    gain = float(np.average(-prior(masses).biases[codes], weights=weights)) - loss
    equal = len(own) ** 2 / float((1.0 / own).sum())
    return float(expit(own.sum() * gain - np.log(max(equal, 1.0))))


def log_loss(scaling: Scaling, scores: FloatArray, codes: IntArray, weights: FloatArray) -> float:
    """Mean log loss of the probabilities that a scaling gives."""
    log_probability = log_softmax(scaling.logits(scores), axis=1)
    return float(-np.average(log_probability[np.arange(len(codes)), codes], weights=weights))


def binary_probability(logit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give probabilities and log probabilities of two classes, (n, 2) each, from the logit."""
    both = np.column_stack([-logit, logit])
    return expit(both), log_expit(both)
