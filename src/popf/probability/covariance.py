"""Standardised features, class means, and a covariance that is shrunk to what can be known of it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A feature that varies by no more than this part of its largest value is rounding, and counts as constant.
ROUNDING = 32.0 * float(np.finfo(np.float64).eps)
# The least variance inside the classes that is believed, as a part of the mean over all directions.
LEAST_VARIANCE = 1e-10
# Variances below this part of the largest are rounding where products of samples were decomposed.
SMALLEST = 1e-12


class Standardised(NamedTuple):
    """Features of mean 0 and variance 1; constant ones have scale and variance 0."""

    mean: FloatArray
    scale: FloatArray
    samples: FloatArray


def standardise(samples: FloatArray, weights: FloatArray) -> Standardised:
    """Bring features to mean 0 and variance 1, whatever their units."""
    # By a power of two, which is exact, every feature comes below 1: no square over- or underflows.
    _, exponents = np.frexp(np.abs(samples).max(axis=0))
    scaled = np.ldexp(samples, -exponents)
    share = weights / weights.max()
    share = share / share.sum()
    mean = share @ scaled
    scaled -= mean
    spread = np.sqrt(share @ scaled**2)
    spread[spread <= ROUNDING] = 0.0
    scaled[:, spread == 0.0] = 0.0
    scaled /= np.where(spread == 0.0, 1.0, spread)
    return Standardised(np.ldexp(mean, exponents), np.ldexp(spread, exponents), scaled)


def class_means(samples: FloatArray, codes: IntArray, weights: FloatArray) -> FloatArray:
    """Give the mean of every class: (n_classes, n_features)."""
    means = []
    for code in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == code)
        means.append(np.average(samples[members], axis=0, weights=weights[members]))
    return np.array(means)


class Spectrum(NamedTuple):
    """A covariance by its variances along orthonormal directions; all others have variance `rest`."""

    variances: FloatArray
    directions: FloatArray  # rows
    rest: float
    shrinkage: float  # how much of the way to a multiple of the identity it was moved

    def whiten(self, samples: FloatArray) -> FloatArray:
        """Multiply by the inverse of the covariance's symmetric root."""
        rest = self.rest**-0.5
        along = (samples @ self.directions.T) * (self.variances**-0.5 - rest)
        whitened: FloatArray = rest * samples + along @ self.directions
        return whitened


def shrunken_covariance(
    residuals: FloatArray, weights: FloatArray, shrinkage: float | None, n_features: int
) -> Spectrum:
    r"""Estimate the covariance of centred samples as :math:`(1 - \delta) S + \delta \mu I`.

    A `shrinkage` of None is that of Ledoit and Wolf; `n_features` counts the columns that are not constant.
    """
    total = float(weights.sum())
    rows = np.sqrt(weights / total)[:, None] * residuals
    if rows.shape[1] <= rows.shape[0]:
        variances, directions = np.linalg.eigh(rows.T @ rows)
        variances, directions = np.maximum(variances, 0.0), directions.T
    else:  # fewer samples than features: all else has variance 0 before shrinking
        # By the small matrix of inner products: a hundred times as fast as a decomposition of the rows.
        variances, mixtures = np.linalg.eigh(rows @ rows.T)
        there = variances > SMALLEST * variances[-1]
        variances = variances[there]
        directions = (mixtures.T[there] @ rows) / np.sqrt(variances)[:, None]
    mean = float(variances.sum()) / max(n_features, 1)
    if mean <= ROUNDING**2:  # no class varies at all: there is nothing to divide by
        return Spectrum(np.ones(0), np.zeros((0, rows.shape[1])), 1.0, 0.0)
    if shrinkage is None:
        squared = float((variances**2).sum())
        # Mean squared distance of S from the identity's multiple, and from the truth by chance.
        distance = max(squared - n_features * mean**2, 0.0)
        lengths = (residuals**2).sum(axis=1)
        chance = (float(weights @ lengths**2) / total - squared) / total
        shrinkage = 1.0 if chance >= distance > 0.0 else max(chance, 0.0) / (distance or 1.0)
        shrinkage = min(shrinkage, 1.0)
    target = shrinkage * mean
    variances = np.maximum((1.0 - shrinkage) * variances + target, LEAST_VARIANCE * mean)
    return Spectrum(variances, directions, max(target, LEAST_VARIANCE * mean), float(shrinkage))
