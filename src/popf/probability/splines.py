"""Cubic B-splines of many features at once, linear beyond their knots: scikit-learn's `SplineTransformer`."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

N_KNOTS, DEGREE = 5, 3
#: Splines of a feature: all but the last, which the others and a constant make up.
N_SPLINES = N_KNOTS + DEGREE - 2
# Values that are worked on at a time, so that they stay in the cache.
BLOCK = 2**16


def spline_columns(samples: FloatArray, knots: FloatArray) -> FloatArray:
    """Evaluate the splines of all features, those of a feature beside each other.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
    knots : ndarray of shape (5, n_features)
        Increasing.

    Returns
    -------
    ndarray of shape (n_samples, 6 * n_features)
    """
    # More knots at both ends, as far apart as the first two and the last two.
    outside = np.arange(DEGREE, 0, -1)[:, None]
    below = knots[0] - outside * (knots[1] - knots[0])
    above = knots[-1] + outside[::-1] * (knots[-1] - knots[-2])
    every = np.concatenate([below, knots, above])
    ends = knots[[0, -1]]
    slopes = _slopes(ends, every)
    found = np.empty((len(samples), knots.shape[1], N_SPLINES))
    size = max(1, BLOCK // max(1, knots.shape[1]))
    for start in range(0, len(samples), size):
        here = samples[start : start + size]
        inside = np.clip(here, *ends)
        values = _basis(inside, every, DEGREE)[:N_SPLINES]
        beyond = here - inside
        values += np.where(beyond < 0.0, slopes[:, :1], slopes[:, 1:]) * beyond
        found[start : start + size] = np.moveaxis(values, 0, 2)
    return found.reshape(len(samples), -1)


def _basis(x: FloatArray, knots: FloatArray, degree: int) -> FloatArray:
    """Evaluate B-splines by Cox and de Boor's recursion: (n_splines, n_samples, n_features)."""
    at = knots[:, None]
    found = ((at[:-1] <= x) & (x < at[1:])).astype(np.float64)
    for p in range(1, degree + 1):
        rising = (x - at[: -p - 1]) / (at[p:-1] - at[: -p - 1])
        falling = (at[p + 1 :] - x) / (at[p + 1 :] - at[1:-p])
        found = rising * found[:-1] + falling * found[1:]
    return found


def _slopes(x: FloatArray, knots: FloatArray) -> FloatArray:
    """Differentiate the splines at some places: (n_splines, n_places, n_features)."""
    at = knots[:, None]
    lower = _basis(x, knots, DEGREE - 1) * DEGREE / (at[DEGREE:] - at[:-DEGREE])
    slopes: FloatArray = (lower[:-1] - lower[1:])[:N_SPLINES]
    return slopes
