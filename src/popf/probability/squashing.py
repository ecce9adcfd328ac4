"""Features made comparable whatever their units, with tails that do not rule distances."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: The interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349
#: Ratios beyond this are cut, so that everything stays finite.
FAR = 1e150
#: What a constant feature is divided by, so that nothing of it is left.
HUGE = 1e300


class Scaling(NamedTuple):
    r"""A function of each feature, :math:`(g((x - c) / s) - m) / t`, with g = asinh or nothing.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        c and s: median and interquartile range, or mean and standard deviation.
    mean, deviation : ndarray of shape (n_features,)
        m and t, which bring the result to mean 0 and variance 1; t is huge for a constant feature.
    squashed : bool
        Whether g is the inverse hyperbolic sine.
    """

    center: FloatArray
    scale: FloatArray
    mean: FloatArray
    deviation: FloatArray
    squashed: bool

    def apply(self, samples: FloatArray) -> FloatArray:
        """Scale samples: (n_samples, n_features)."""
        scaled: FloatArray = (self._ratio(samples) - self.mean) / self.deviation
        return scaled

    def _ratio(self, samples: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            ratio = np.clip((samples - self.center) / self.scale, -FAR, FAR)
        return np.arcsinh(ratio) if self.squashed else ratio


def fit_scaling(samples: FloatArray, weights: FloatArray, squashed: bool = True) -> Scaling:
    """Fit the scaling of every feature, samples counted by their weights."""
    share = weights / weights.sum()
    # By a power of two, which is exact, every feature comes below 1: no square over- or underflows.
    _, exponents = np.frexp(np.abs(samples).max(axis=0))
    small = np.ldexp(samples, -exponents)
    mean = share @ small
    deviation = np.sqrt(share @ (small - mean) ** 2)
    center, scale = mean, deviation
    if squashed:
        quartiles = [weighted_quantile(small, weights, part) for part in (0.25, 0.5, 0.75)]
        center, scale = quartiles[1], (quartiles[2] - quartiles[0]) / NORMAL_IQR
        scale = np.where(scale > 0.0, scale, deviation)
    center = np.ldexp(center, exponents)
    scale = np.ldexp(np.where(scale > 0.0, scale, 1.0), exponents)
    n_features = samples.shape[1]
    plain = Scaling(center, scale, np.zeros(n_features), np.ones(n_features), squashed)
    found = plain.apply(samples)
    mean = share @ found
    deviation = np.sqrt(share @ (found - mean) ** 2)
    rounding = 64.0 * np.finfo(np.float64).eps * (1.0 + np.abs(mean))
    return plain._replace(mean=mean, deviation=np.where(deviation > rounding, deviation, HUGE))


def weighted_quantile(values: FloatArray, weights: FloatArray, share: float) -> FloatArray:
    """Take the quantile of each column, samples repeated by their weights; between two, their mean."""
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    mass = np.cumsum(weights[order], axis=0)
    wanted = share * mass[-1]
    tolerance = 1e-12 * mass[-1]
    columns = np.arange(values.shape[1])
    last = len(values) - 1
    lower = np.minimum((mass < wanted - tolerance).sum(axis=0), last)
    upper = np.minimum((mass <= wanted + tolerance).sum(axis=0), last)
    quantile: FloatArray = ranked[lower, columns] / 2.0 + ranked[upper, columns] / 2.0
    return quantile
