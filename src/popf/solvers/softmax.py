"""Softmax scaling: Platt's idea for more than two classes."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from popf.solvers.base import FloatArray, Solution
from popf.solvers.newton import newton


def softmax_targets(
    codes: NDArray[np.int64], masses: FloatArray, smoothing: float = 1.0
) -> FloatArray:
    r"""Return Platt's regularised targets for any number of classes, one column per class.

    :math:`(N_k + a)/(N_k + 2a)` for the sample's own class, the rest spread evenly over the others.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        The class of every sample, numbered from 0.
    masses : ndarray of shape (n_classes,)
        :math:`N_k`, the number or total weight of the samples of each class.
    smoothing : float, default=1.0
        a, as for `popf.solvers.platt_targets`.
    """
    n_classes = len(masses)
    total = masses[codes] + 2.0 * smoothing
    others = smoothing / total / (n_classes - 1)
    targets = np.repeat(others[:, None], n_classes, axis=1)
    targets[np.arange(len(codes)), codes] = (masses[codes] + smoothing) / total
    return targets


def fit_softmax(
    scores: FloatArray, targets: FloatArray, weights: FloatArray, max_iterations: int = 100
) -> Solution:
    r"""Fit :math:`P_k \propto \exp(a s_k + b_k)` by Newton's method.

    Minimises :math:`-\sum_i w_i \sum_k t_{ik} \log P_k(i)`, which is convex, over the slope a and the
    biases b, which sum to zero.

    Parameters
    ----------
    scores, targets : ndarray of shape (n_samples, n_classes)
    weights : ndarray of shape (n_samples,)
    max_iterations : int

    Returns
    -------
    Solution
        Its ``theta`` has the slope first, then the bias of every class.
    """
    n_classes = scores.shape[1]

    def derivatives(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        # theta is the slope and the biases but for the first, which is 0.
        exponents = theta[0] * scores
        exponents[:, 1:] += theta[1:]
        log_probability = log_softmax(exponents, axis=1)
        value = -float((weights * (targets * log_probability).sum(axis=1)).sum())
        probability = np.exp(log_probability)
        residual = weights[:, None] * (probability - targets)
        gradient = np.concatenate([[(residual * scores).sum()], residual[:, 1:].sum(axis=0)])
        # The covariance, under the probabilities, of what multiplies each parameter.
        weighted = weights[:, None] * probability
        centred = scores - (probability * scores).sum(axis=1, keepdims=True)
        hessian = np.diag(np.append(0.0, weighted[:, 1:].sum(axis=0)))
        hessian[1:, 1:] -= weighted[:, 1:].T @ probability[:, 1:]
        hessian[0, 0] = (weighted * centred * centred).sum()
        hessian[0, 1:] = hessian[1:, 0] = (weighted * centred)[:, 1:].sum(axis=0)
        return value, gradient, hessian

    solution = newton(derivatives, np.zeros(n_classes), max_iterations=max_iterations)
    path = np.insert(solution.path, 1, 0.0, axis=1)
    path[:, 1:] -= path[:, 1:].mean(axis=1, keepdims=True)
    return replace(solution, theta=path[-1].copy(), path=path)
