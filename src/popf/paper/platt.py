"""Platt's targets, probability and objective: equations 4 to 11 of the paper.

Equations 10 and 11, the objective in the stable form of Lin, Lin and Weng, are printed with a minus before the
sum. The minus is an error: of equation 9 it has already been used. Minimising F as printed ends in a corner of
the box and swaps the classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils import check_array

from popf.engine.structures import FloatArray
from popf.forest.probabilities import smoothed_targets
from popf.formatting import check_real

# Number of values of q computed at a time; a few arrays of this size fit into the L2 cache.
BLOCK = 16_384


def platt_targets(
    y: ArrayLike, weights: ArrayLike | None = None, smoothing: float = 1.0
) -> FloatArray:
    r"""Compute Platt's regularised targets, which replace 1 and 0: equation 7, where a is 1.

    .. math:: t_i = \frac{N_+ + a}{N_+ + 2 a} \text{ for } y_i = +1, \qquad
              t_i = \frac{a}{N_- + 2 a} \text{ for } y_i = -1.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The classes; values greater than 0 (1, True) are positive.
    weights : array-like of shape (n_samples,), default=None
        Non-negative weights: N₊ and N₋ are then sums of weights.
    smoothing : float, default=1.0
        The constant a: 1 is Platt's choice, 1/2 that of Jeffreys.

    Returns
    -------
    targets : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from popf.paper import platt_targets
    >>> platt_targets([1, 1, -1])
    array([0.75      , 0.75      , 0.33333333])
    """
    positive = _as_vector(y, "y") > 0.0
    check_real("smoothing", smoothing, 0.0, strictly=True)
    w = _as_weights(weights, positive.size)
    return smoothed_targets(positive.astype(np.int64), w, 2, smoothing)[:, 1]


def platt_probability(f: ArrayLike, theta: ArrayLike) -> FloatArray:
    r"""Compute the probability of the class +1, :math:`P = 1 / (1 + e^{A f + B})`, without overflow.

    This is equation 4, and with the signed cost f = y·C equation 8.

    Parameters
    ----------
    f : array-like
        Scores.
    theta : pair of floats or arrays
        A and B.

    Returns
    -------
    probability : ndarray of the shape of f

    Examples
    --------
    >>> from popf.paper import platt_probability
    >>> platt_probability([0.0, 1e6, -1e6], (-1.0, 0.0))
    array([0.5, 1. , 0. ])
    """
    slope, bias = np.asarray(theta, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(expit(-(slope * np.asarray(f, dtype=np.float64) + bias)))


class PlattObjective:
    r"""The objective F of Platt scaling, a function of θ = (A, B): equations 10 and 11 with the right sign.

    .. math:: F(A, B) = \sum_i w_i \begin{cases}
                  t_i q_i + \log(1 + e^{-q_i}) & q_i \ge 0 \\
                  (t_i - 1) q_i + \log(1 + e^{q_i}) & q_i < 0
              \end{cases}, \qquad q_i = A f_i + B,

    where the paper prints :math:`-\sum_i`. It equals equation 6,
    :math:`-\sum_i w_i [t_i \log p_i + (1 - t_i) \log(1 - p_i)]` with :math:`p_i = 1 / (1 + e^{q_i})`, without
    overflow or cancellation. The weights are an extension; in the paper all are 1.

    Parameters
    ----------
    f : array-like of shape (n_samples,)
        Scores; the paper's is the signed cost y·C.
    t : array-like of shape (n_samples,)
        Targets in [0, 1], such as those of `platt_targets`.
    weights : array-like of shape (n_samples,), default=None
        Non-negative weights of the samples.

    Attributes
    ----------
    start : ndarray of shape (2,)
        Where solvers start: A = 0 and the optimal B for it.

    References
    ----------
    H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs for support vector
    machines", Machine Learning 68 (2007), 267-276.

    Examples
    --------
    >>> from popf.paper import PlattObjective
    >>> objective = PlattObjective([-1.0, 1.0], [0.25, 0.75])
    >>> objective([0.0, 0.0])
    1.38629436...
    >>> objective([[0.0, 0.0], [1e5, 0.0]])
    array([1.38629436e+00, 1.50000000e+05])
    >>> value, gradient, hessian = objective.derivatives([0.0, 0.0])
    >>> gradient
    array([0.5, 0. ])
    """

    def __init__(self, f: ArrayLike, t: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.f = _as_vector(f, "f")
        self.t = _as_vector(t, "t")
        if self.t.size != self.f.size:
            raise ValueError(
                f"f has {self.f.size} scores and t {self.t.size} targets; give one target per score"
            )
        if not (self.t.min() >= 0.0 and self.t.max() <= 1.0):
            raise ValueError(
                f"targets lie in [{self.t.min():g}, {self.t.max():g}]; they must lie in [0, 1], "
                "see platt_targets"
            )
        self.weights = _as_weights(weights, self.f.size)
        mean = float(np.average(self.t, weights=self.weights))
        mean = min(max(mean, 1e-12), 1.0 - 1e-12)  # B is infinite if all targets are 0 or 1
        self.start = np.array([0.0, np.log1p(-mean) - np.log(mean)])

    def __call__(self, thetas: ArrayLike) -> Any:
        """Compute F: a float for one θ of shape (2,), an array of n values for shape (n, 2)."""
        points = np.asarray(thetas, dtype=np.float64)
        if points.ndim not in (1, 2) or points.shape[-1] != 2:
            raise ValueError(f"thetas has shape {points.shape}; give (2,) or (n, 2)")
        slopes, biases = points.reshape(-1, 2).T[:, :, np.newaxis]
        values = np.zeros(len(slopes))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for part in self._blocks(len(slopes)):
                q = slopes * self.f[part] + biases
                values += (self.weights[part] * _terms(q, _decay(q), self.t[part])).sum(axis=1)
        return float(values[0]) if points.ndim == 1 else values

    def derivatives(self, theta: ArrayLike) -> tuple[float, FloatArray, FloatArray]:
        r"""Compute value, gradient and Hessian at θ.

        .. math:: \nabla F = \sum_i w_i (t_i - p_i) \binom{f_i}{1}, \qquad
                  \nabla^2 F = \sum_i w_i p_i (1 - p_i) \begin{pmatrix} f_i^2 & f_i \\ f_i & 1 \end{pmatrix}.
        """
        slope, bias = np.asarray(theta, dtype=np.float64)
        value, gradient, hessian = 0.0, np.zeros(2), np.zeros((2, 2))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for part in self._blocks(1):
                f, t, w = self.f[part], self.t[part], self.weights[part]
                q = slope * f + bias
                e = _decay(q)
                share = 1.0 / (1.0 + e)  # probability of the likelier class
                residual = w * (t - np.where(q >= 0.0, e * share, share))
                curvature = w * (e * share * share)
                # Sums, not dot products: BLAS would start threads for little work, and NumPy's pairwise
                # sums are more precise.
                value += float((w * _terms(q, e, t)).sum())
                gradient += (residual * f).sum(), residual.sum()
                cross = curvature * f
                hessian += [[(cross * f).sum(), cross.sum()], [cross.sum(), curvature.sum()]]
        return value, gradient, hessian

    def _blocks(self, n_points: int) -> Iterator[slice]:
        """Yield slices of the samples, for `BLOCK` values at a time with `n_points` points."""
        size = max(1, BLOCK // max(1, n_points))
        for first in range(0, self.f.size, size):
            yield slice(first, first + size)


def _decay(q: FloatArray) -> FloatArray:
    """Compute exp(-|q|), but at least exp(-700): subnormal numbers are slow, and negligible beside |q|."""
    return np.exp(-np.minimum(np.abs(q), 700.0))


def _terms(q: FloatArray, e: FloatArray, t: FloatArray) -> FloatArray:
    """Compute each sample's term of F, given q and e = exp(-|q|)."""
    return (t - (q < 0.0)) * q + np.log1p(e)


def _as_vector(values: ArrayLike, name: str) -> FloatArray:
    vector: FloatArray = check_array(
        values, dtype=np.float64, order="C", ensure_2d=False, input_name=name
    )
    if vector.ndim != 1:
        raise ValueError(
            f"{name} has shape {vector.shape}; give one value per sample, (n_samples,)"
        )
    return vector


def _as_weights(values: ArrayLike | None, n_samples: int) -> FloatArray:
    if values is None:
        return np.ones(n_samples)
    weights = _as_vector(values, "weights")
    if weights.size != n_samples:
        raise ValueError(f"there are {weights.size} weights for {n_samples} samples; give one each")
    if weights.min() < 0.0:
        where = int(np.argmin(weights))
        raise ValueError(f"weights[{where}] is {weights[where]}; weights must not be negative")
    if weights.max() == 0.0:
        raise ValueError("all weights are 0; at least one sample must count")
    return weights
