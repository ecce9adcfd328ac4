r"""From scores of held-out samples to the forest's evidence: bandwidths, a background, slopes and biases.

The score of class k at bandwidth :math:`\tau` is
:math:`u_k = \log \operatorname{mean}_{v \in k} e^{-c_v / \tau}`, with the path costs
:math:`c_v = \max(C_v, d(v, t))`. A floor of background mass lies under it,
:math:`u_k \leftarrow \log(e^{u_k} + e^{\phi})`, so that a sample far from everything is answered by the prior.
The exponent of class k is :math:`a_k u_k(\tau_k) + b_k`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.probability.softmax import exponents_of, fit_softmax, log_losses, softmax_targets
from popf.probability.squashing import weighted_quantile

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Bandwidths in units of the median winning cost: 8 ... 0.022, each the last over the root of two.
WIDEST, N_CHAINS, N_HALVINGS = 8.0, 2, 9
#: The floor lies so far below this quantile of the largest score of a held-out sample.
FLOOR_QUANTILE, FLOOR_DEPTH = 0.02, 3.0
#: A wider bandwidth is preferred where it costs less than this part of a standard error.
INDIFFERENCE = 0.1
#: What a bandwidth and a slope for each class must gain, in log likelihood, beside what their ratio costs.
PRICE_OF_CLASSES = 1.0
#: How far a class's bandwidth may move at a time where there are more than two classes, in steps of the grid.
MOVES = (-4, -2, -1, 0, 1, 2, 4)


class HeldOutScores(NamedTuple):
    """Scores of samples by forests that have not seen them.

    Attributes
    ----------
    scores : ndarray of shape (n_rows, n_classes, n_bandwidths)
        From the widest bandwidth to the narrowest; minus infinity for a class without members.
    codes, weights : ndarray of shape (n_rows,)
    masses : ndarray of shape (n_classes,)
        The weight of each class among all samples.
    """

    scores: FloatArray
    codes: IntArray
    weights: FloatArray
    masses: FloatArray


class ForestScaling(NamedTuple):
    """What turns the scores of a forest into the exponents of probabilities.

    Attributes
    ----------
    steps : ndarray of shape (n_classes,)
        The place of each class's bandwidth in the grid.
    floors, slopes, biases : ndarray of shape (n_classes,)
    loss : float
        The mean log loss of the held-out samples.
    """

    steps: IntArray
    floors: FloatArray
    slopes: FloatArray
    biases: FloatArray
    loss: float

    def exponents(self, scores: FloatArray) -> FloatArray:
        """Exponents from scores at the bandwidths of the classes: (n_rows, n_classes) both."""
        raised: FloatArray = self.slopes * np.logaddexp(scores, self.floors) + self.biases
        return raised

    def exponents_on_grid(self, scores: FloatArray) -> FloatArray:
        """Exponents from scores at all bandwidths of the grid."""
        return self.exponents(scores[:, np.arange(scores.shape[1]), self.steps])


def bandwidth_grid(unit: float) -> FloatArray:
    """Make the bandwidths to choose from; in each of the rows one is half of the one before."""
    tops = WIDEST / 2.0 ** (np.arange(N_CHAINS) / N_CHAINS)
    halvings: FloatArray = np.ldexp(tops[:, None] * unit, -np.arange(N_HALVINGS))
    return halvings


def prior_exponents(masses: FloatArray) -> FloatArray:
    """Logarithms of the class frequencies, one sample added to each class."""
    logs: FloatArray = np.log((masses + 1.0) / (masses.sum() + len(masses)))
    return logs


def fit_forest_scaling(
    held: HeldOutScores, smoothing: float, background: bool, by_class: bool
) -> ForestScaling:
    """Choose the bandwidth by the log loss of held-out samples, and fit slopes and biases.

    Where the loss is flat, the widest bandwidth of those that cost next to nothing is taken. With `by_class`
    each class gets its own bandwidth and slope if the likelihood gains enough by it.
    """
    n_classes, n_steps = held.scores.shape[1:]
    floors = np.full(n_steps, -np.inf)
    if background:
        top = held.scores.max(axis=1)
        floors = weighted_quantile(top, held.weights, FLOOR_QUANTILE) - FLOOR_DEPTH
    raised = np.logaddexp(held.scores, floors)
    targets = softmax_targets(held.codes, _masses_of(held), smoothing)
    prior = prior_exponents(held.masses)
    prior_losses = log_losses(np.tile(prior, (len(held.codes), 1)), held.codes)

    # One bandwidth and one slope for all classes, at every bandwidth of the grid.
    relative = np.moveaxis(raised[:, 1:] - raised[:, :1], 2, 0)
    square = np.einsum("i,tik->t", held.weights, relative**2) / held.weights.sum()
    unit = np.sqrt(np.where(square > 1e-200, square, 1.0))  # scores that are all alike stay so
    design = np.zeros((*relative.shape, n_classes))
    design[..., 0] = relative / unit[:, None, None]
    design[:, :, np.arange(n_classes - 1), np.arange(1, n_classes)] = 1.0
    theta = fit_softmax(design, targets, held.weights)
    losses = log_losses(exponents_of(design, theta), held.codes)
    wrong = theta[:, 0] <= 0.0  # scores that speak for the other class say nothing
    losses[wrong] = prior_losses
    means = losses @ held.weights / held.weights.sum()
    best = _widest_of_the_best(losses, means, held.weights)
    steps = np.full(n_classes, best)
    if wrong[best]:
        return ForestScaling(steps, floors[steps], np.zeros(n_classes), prior, float(means[best]))
    slopes = np.full(n_classes, theta[best, 0] / unit[best])
    biases = np.append(0.0, theta[best, 1:])
    shared = ForestScaling(steps, floors[steps], slopes, biases, float(means[best]))
    if not by_class:
        return shared
    return _fit_by_class(shared, raised, floors, targets, held)


def _masses_of(held: HeldOutScores) -> FloatArray:
    counts = np.bincount(held.codes, weights=held.weights, minlength=len(held.masses))
    return counts.astype(np.float64)


def _widest_of_the_best(losses: FloatArray, means: FloatArray, weights: FloatArray) -> int:
    """Choose the widest bandwidth whose loss exceeds the least by a small part of a standard error."""
    best = int(np.argmin(means))
    total = weights.sum()
    square = (losses - losses[best]) ** 2 @ weights / total
    error = np.sqrt(square / max(total - 1.0, 1.0))
    return int(np.flatnonzero(means <= means[best] + INDIFFERENCE * error)[0])


def _fit_by_class(
    shared: ForestScaling,
    raised: FloatArray,
    floors: FloatArray,
    targets: FloatArray,
    held: HeldOutScores,
) -> ForestScaling:
    """Move the bandwidth of one class at a time, all slopes and biases fitted anew, while that pays.

    A move must gain one unit of log likelihood, and as much again as the logarithm of the ratio between the
    widest and the narrowest bandwidth. All slopes must stay positive.
    """
    n_classes, n_steps = raised.shape[1:]
    total = float(held.weights.sum())
    best, found = shared.loss * total, shared
    start = np.concatenate([shared.slopes, shared.biases[1:] - shared.biases[0]])
    tried: set[tuple[int, ...]] = set()
    for _ in range(2):
        before = best
        for k in range(n_classes):
            reach = range(n_steps) if n_classes == 2 else (found.steps[k] + np.array(MOVES))
            moves = [
                (*found.steps[:k].tolist(), int(step), *found.steps[k + 1 :].tolist())
                for step in reach
                if 0 <= step < n_steps
            ]
            moves = [move for move in moves if move not in tried]
            tried.update(moves)
            if not moves:
                continue
            candidates = np.array(moves)
            design = _design_by_class(raised, candidates)
            theta = fit_softmax(design, targets, held.weights, start=start)
            losses = log_losses(exponents_of(design, theta), held.codes) @ held.weights
            # Neighbours in the grid differ by the root of two.
            ratio = np.ptp(candidates, axis=1) * np.log(2.0) / N_CHAINS
            price = losses + PRICE_OF_CLASSES + ratio
            price[(theta[:, :n_classes] <= 0.0).any(axis=1)] = np.inf
            j = int(np.argmin(price))
            if price[j] < best:
                best, start = float(price[j]), theta[j]
                biases = np.append(0.0, start[n_classes:])
                steps, loss = candidates[j], float(losses[j] / total)
                found = ForestScaling(steps, floors[steps], start[:n_classes], biases, loss)
        if best == before:
            break
    return found


def _design_by_class(raised: FloatArray, candidates: IntArray) -> FloatArray:
    """Make designs for a slope and a bias of each class; the first class has exponent 0 and no bias."""
    n_rows, n_classes, _ = raised.shape
    design = np.zeros((len(candidates), n_rows, n_classes - 1, 2 * n_classes - 1))
    others = np.arange(n_classes - 1)
    for j, steps in enumerate(candidates):
        scores = raised[:, np.arange(n_classes), steps]
        design[j, :, :, 0] = -scores[:, :1]
        design[j, :, others, others + 1] = scores[:, 1:].T
        design[j, :, others, others + n_classes] = 1.0
    return design
