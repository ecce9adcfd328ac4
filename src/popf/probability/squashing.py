"""Features made comparable whatever their units, with tails that do not rule distances."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: The interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349
#: Ratios beyond this are cut, so that everything stays finite.
FAR = 1e150
#: A feature that varies by no more than this part of its largest value is rounding, and counts as constant.
ROUNDING = 32.0 * float(np.finfo(np.float64).eps)


class Scaling(NamedTuple):
    r"""A function of each feature, :math:`f (g((x - c) / s) - m)`, with g = asinh or nothing.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        c and s: median and interquartile range, or mean and standard deviation.
    mean, factor : ndarray of shape (n_features,)
        m and f, which bring the result to mean 0 and variance 1; f is 0 for a constant feature.
    squashed : bool
        Whether g is the inverse hyperbolic sine.
    """

    center: FloatArray
    scale: FloatArray
    mean: FloatArray
    factor: FloatArray
    squashed: bool

    def apply(self, samples: FloatArray) -> FloatArray:
        """Scale samples: (n_samples, n_features)."""
        with np.errstate(over="ignore"):
            ratio = np.clip((samples - self.center) / self.scale, -FAR, FAR)
        if self.squashed:
            ratio = np.arcsinh(ratio)
        scaled: FloatArray = (ratio - self.mean) * self.factor
        return scaled


def fit_scaling(samples: FloatArray, weights: FloatArray, squashed: bool = True) -> Scaling:
    """Fit the scaling of every feature, samples counted by their weights."""
    share = weights / weights.sum()
    # By a power of two, which is exact, every feature comes below 1: no square over- or underflows.
    _, exponents = np.frexp(np.abs(samples).max(axis=0))
    small = np.ldexp(samples, -exponents)
    center = share @ small
    scale = np.sqrt(share @ (small - center) ** 2)
    varies = scale > ROUNDING
    if squashed:
        low, center, high = weighted_quantile(small, weights, 0.25, 0.5, 0.75)
        spread = (high - low) / NORMAL_IQR
        scale = np.where(spread > 0.0, spread, scale)
    scale = np.ldexp(np.where(varies, scale, 0.5), exponents)
    nothing = np.zeros(samples.shape[1])
    plain = Scaling(
        np.ldexp(center, exponents),
        np.maximum(scale, np.finfo(np.float64).tiny),
        *(nothing, nothing + 1.0, squashed),
    )
    found = plain.apply(samples)
    mean = share @ found
    deviation = np.sqrt(share @ (found - mean) ** 2)
    varies &= deviation > ROUNDING * (1.0 + np.abs(mean))
    factor = np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)
    return plain._replace(mean=mean, factor=factor)


def weighted_quantile(values: FloatArray, weights: FloatArray, *shares: float) -> FloatArray:
    """Take quantiles of each column, samples repeated by their weights; between two samples, their mean.

    Returns
    -------
    ndarray of shape (n_columns,), or (n_shares, n_columns) for several shares
    """
    last, columns = len(values) - 1, np.arange(values.shape[1])
    if (weights == weights[0]).all():  # sorting is much quicker than finding the order
        ranked = np.sort(values, axis=0)
        mass = np.cumsum(weights)[:, None]
    else:
        order = np.argsort(values, axis=0, kind="stable")
        ranked, mass = np.take_along_axis(values, order, axis=0), np.cumsum(weights[order], axis=0)
    found = []
    for share in shares:
        wanted, tolerance = share * mass[-1], 1e-12 * mass[-1]
        lower = np.minimum((mass < wanted - tolerance).sum(axis=0), last)
        upper = np.minimum((mass <= wanted + tolerance).sum(axis=0), last)
        found.append(ranked[lower, columns] / 2.0 + ranked[upper, columns] / 2.0)
    return found[0] if len(found) == 1 else np.array(found)
