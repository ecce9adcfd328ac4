"""Scaling of the features: moved into the training range, squashed by asinh, and standardised."""

from typing import Annotated, NamedTuple

import numpy as np

from popf.engine.structures import FloatArray, IntArray
from popf.state import Float, Integer, Sizes, StateError

#: The interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349
#: Relative size of rounding errors, in sums of many terms and in what is computed from these.
ROUNDING = 1e-12
#: A feature whose standard deviation is at most this fraction of its largest magnitude counts as constant. It
#: is less than ROUNDING, because identifiers or times in a narrow range far from 0 are not constant.
CONSTANT = 32.0 * float(np.finfo(np.float64).eps)
#: Scaled features are clipped to this magnitude, so that everything stays finite.
MAX_RATIO = 1e150


class FeatureScaler(NamedTuple):
    r"""A function of each feature, :math:`f (\operatorname{asinh}((x - c) / s) - m)`.

    Before that, samples are moved into the range of the training samples, so that no component has to
    extrapolate.
    """

    #: The order of the features; all other arrays are in this order.
    columns: Annotated[IntArray, Integer("n_encoded", of="n_encoded")]
    #: c: the median.
    center: Annotated[FloatArray, Float("n_encoded")]
    #: s: the interquartile range / 1.349, or the standard deviation.
    scale: Annotated[FloatArray, Float("n_encoded", low=5e-324)]
    #: The training range of (x - c) / s.
    low: Annotated[FloatArray, Float("n_encoded", low=-MAX_RATIO, high=0.0)]
    high: Annotated[FloatArray, Float("n_encoded", low=0.0, high=MAX_RATIO)]
    #: m and f bring the result to mean 0 and variance 1.
    mean: Annotated[FloatArray, Float("n_encoded", low=-1e3, high=1e3)]
    #: f is 0 for a constant feature.
    factor: Annotated[FloatArray, Float("n_encoded", low=0.0, high=1e15)]

    def check_state(self, sizes: Sizes) -> None:
        """Check the order; see `popf.state`."""
        if (np.sort(self.columns) != np.arange(len(self.columns))).any():
            raise StateError("a permutation", "columns")

    def apply(self, samples: FloatArray) -> FloatArray:
        """Scale samples: (n_samples, n_features)."""
        found = _relative(samples[:, self.columns], self.center, self.scale)
        outside = ((found < self.low) | (found > self.high)).any(axis=1)
        if outside.any():
            found[outside] = self._moved_inside(found[outside])
        np.arcsinh(found, out=found)
        found -= self.mean
        found *= self.factor
        return found

    def _moved_inside(self, samples: FloatArray) -> FloatArray:
        """Move samples into the training range.

        A feature that alone is outside moves to the border. If several are outside, the farthest moves to the
        border, and others that are far outside keep their proportion to it, so that a sample far away keeps its
        direction. For a feature r times as far from the median as the border, and the farthest R times as far,
        the result is 1 / r + (r - 1) / R times the border: 1 for r = 1 and for r = R, and about r / R between.
        """
        border = np.where(samples < 0.0, self.low, self.high)
        ratio = np.divide(samples, border, out=np.ones_like(samples), where=border != 0.0)
        ratio = np.clip(ratio, 1.0, MAX_RATIO**2)
        kept = 1.0 / ratio + (ratio - 1.0) / ratio.max(axis=1, keepdims=True)
        moved: FloatArray = np.clip(samples, self.low, self.high) * kept
        return moved


def fit_scaler(samples: FloatArray, weights: FloatArray, columns: IntArray) -> FeatureScaler:
    """Fit the scaling of every feature to weighted samples; `columns` is the order of the scaled features."""
    samples, share = samples[:, columns], weights / weights.sum()
    # Dividing by a power of two is exact. Magnitudes are then below 1, and no square over- or underflows.
    _, exponents = np.frexp(np.abs(samples).max(axis=0))
    small = np.ldexp(samples, -exponents)
    deviation = np.sqrt(share @ (small - share @ small) ** 2)
    varies = deviation > CONSTANT
    first, median, third = weighted_quantile(small, weights, 0.25, 0.5, 0.75)
    spread = (third - first) / NORMAL_IQR
    scale = np.where(spread > 0.0, spread, np.where(varies, deviation, 0.5))
    center = np.ldexp(median, exponents)
    scale = np.maximum(np.ldexp(scale, exponents), np.finfo(np.float64).tiny)
    relative = _relative(samples, center, scale)
    low, high = np.minimum(relative.min(axis=0), 0.0), np.maximum(relative.max(axis=0), 0.0)
    np.arcsinh(relative, out=relative)
    mean = share @ relative
    deviation = np.sqrt(share @ (relative - mean) ** 2)
    varies &= deviation > CONSTANT * (1.0 + np.abs(mean))
    factor = np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)
    return FeatureScaler(columns, center, scale, low, high, mean, factor)


def _relative(samples: FloatArray, center: FloatArray, scale: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        found: FloatArray = np.subtract(samples, center)
        found /= scale  # in place: allocating new arrays would take as long as the rest
    return np.clip(found, -MAX_RATIO, MAX_RATIO, out=found)


def weighted_quantile(values: FloatArray, weights: FloatArray, *shares: float) -> FloatArray:
    """Compute quantiles of each column as if samples were repeated by their weights.

    A quantile between two samples is their mean. One share gives shape (n_columns,), several give
    (n_shares, n_columns).
    """
    last, columns = len(values) - 1, np.arange(values.shape[1])
    if (weights == weights[0]).all():  # np.sort is much faster than np.argsort
        ranked = np.sort(values, axis=0)
        mass = np.cumsum(weights)[:, None]
    else:
        order = np.argsort(values, axis=0, kind="stable")
        ranked, mass = np.take_along_axis(values, order, axis=0), np.cumsum(weights[order], axis=0)
    found = []
    for share in shares:
        wanted, tolerance = share * mass[-1], ROUNDING * mass[-1]
        lower = np.minimum((mass < wanted - tolerance).sum(axis=0), last)
        upper = np.minimum((mass <= wanted + tolerance).sum(axis=0), last)
        found.append(ranked[lower, columns] / 2.0 + ranked[upper, columns] / 2.0)
    return found[0] if len(found) == 1 else np.array(found)
