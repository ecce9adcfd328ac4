"""Softmax scaling: Platt's idea for more than two classes."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from popf.solvers.base import Record, Solution

FloatArray = NDArray[np.float64]

# Of the value, the part that the last step gained.
TOLERANCE = 1e-14
# Of the value, what a step may promise and yet be rounding.
ROUNDING = 1e-8


def softmax_targets(
    codes: NDArray[np.int64], masses: FloatArray, smoothing: float = 1.0
) -> FloatArray:
    r"""Give Platt's regularised targets for any number of classes.

    :math:`(N_k + a)/(N_k + 2a)` for the own class, the rest spread over the others; for two classes
    these are Platt's.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        The class of every sample, numbered from 0.
    masses : ndarray of shape (n_classes,)
        :math:`N_k`, the number or the weight of the samples of each class.
    smoothing : float, default=1.0
        a, as for `popf.solvers.platt_targets`.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from popf.solvers.softmax import softmax_targets
    >>> softmax_targets(np.array([0, 2]), np.array([2.0, 1.0, 1.0])).round(3)
    array([[0.75 , 0.125, 0.125],
           [0.167, 0.167, 0.667]])
    """
    n_classes = len(masses)
    whole = masses[codes] + 2.0 * smoothing
    others = smoothing / whole / (n_classes - 1)
    targets = np.repeat(others[:, None], n_classes, axis=1)
    targets[np.arange(len(codes)), codes] = (masses[codes] + smoothing) / whole
    return targets


def fit_softmax(
    scores: FloatArray, targets: FloatArray, weights: FloatArray, max_iterations: int = 100
) -> Solution:
    r"""Fit :math:`P_k \propto \exp(a s_k + b_k)` by Newton's method.

    Minimises :math:`-\sum_i w_i \sum_k t_{ik} \log P_k(i)`, which is convex, over the slope a and the
    biases b; the biases sum to zero.

    Parameters
    ----------
    scores, targets : ndarray of shape (n_samples, n_classes)
    weights : ndarray of shape (n_samples,)
    max_iterations : int

    Returns
    -------
    Solution
        Its ``theta`` has the slope first and then the bias of every class. One value with its
        derivatives counts as one evaluation, and so does a value tried along a step.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.solvers.softmax import fit_softmax
    >>> solution = fit_softmax(np.eye(3), np.full((3, 3), 1 / 3), np.ones(3))
    >>> solution.converged, bool(abs(solution.theta).max() < 1e-9)
    (True, True)
    """
    n_classes = scores.shape[1]
    theta = np.zeros(n_classes)  # the slope, and the biases but for the first
    value = _loss(theta, scores, targets, weights)
    evaluations, record = 1, Record()
    record.add(_slope_and_biases(theta), value)
    converged, message = False, f"still moving after {max_iterations} iterations"
    for _ in range(max_iterations):
        gradient, hessian = _derivatives(theta, scores, targets, weights)
        ridge = 1e-12 * max(float(np.trace(hessian)), 1e-300)
        step = np.linalg.solve(hessian + ridge * np.eye(n_classes), gradient)
        promised = float(gradient @ step)
        if promised <= 0.0:
            converged, message = True, "the gradient vanishes"
            break
        length = 1.0
        while length > 1e-10:
            moved = _loss(theta - length * step, scores, targets, weights)
            evaluations += 1
            if moved <= value - 1e-4 * length * promised:
                break
            length /= 2.0
        else:
            # Rounding hides what little there is to gain.
            converged = promised <= ROUNDING * abs(value)
            message = "no step along Newton's direction lowers the objective"
            break
        theta, before, value = theta - length * step, value, moved
        record.add(_slope_and_biases(theta), value)
        if before - value <= TOLERANCE * abs(value):
            converged, message = True, f"the last step gained less than {TOLERANCE:g} of the value"
            break
    return record.solution(evaluations, converged, message, None)


def _slope_and_biases(theta: FloatArray) -> FloatArray:
    """Give the slope and all biases, these with mean zero."""
    biases = np.concatenate([[0.0], theta[1:]])
    return np.concatenate([theta[:1], biases - biases.mean()])


def _exponents(theta: FloatArray, scores: FloatArray) -> FloatArray:
    exponents: FloatArray = theta[0] * scores
    exponents[:, 1:] += theta[1:]
    return exponents


def _loss(theta: FloatArray, scores: FloatArray, targets: FloatArray, weights: FloatArray) -> float:
    log_probability = log_softmax(_exponents(theta, scores), axis=1)
    return float(-(weights * (targets * log_probability).sum(axis=1)).sum())


def _derivatives(
    theta: FloatArray, scores: FloatArray, targets: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    probability = np.exp(log_softmax(_exponents(theta, scores), axis=1))
    residual = weights[:, None] * (probability - targets)
    gradient = np.concatenate([[(residual * scores).sum()], residual[:, 1:].sum(axis=0)])
    # The covariance, under the probabilities, of what multiplies each parameter.
    weighted = weights[:, None] * probability
    mean = (probability * scores).sum(axis=1)
    n_classes = scores.shape[1]
    hessian = np.empty((n_classes, n_classes))
    hessian[0, 0] = (weighted * scores * scores).sum() - (weights * mean * mean).sum()
    hessian[0, 1:] = hessian[1:, 0] = (weighted * (scores - mean[:, None]))[:, 1:].sum(axis=0)
    hessian[1:, 1:] = np.diag(weighted[:, 1:].sum(axis=0)) - weighted[:, 1:].T @ probability[:, 1:]
    return gradient, hessian
