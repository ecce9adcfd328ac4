"""Columns for regressions, made of features: as they are, their splines, and products of steps of two."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from popf.engine.structures import FloatArray, IntArray
from popf.probability.features import weighted_quantile

N_KNOTS, DEGREE = 5, 3
#: Splines of a feature: all but the last, which the others and a constant make up.
N_SPLINES = N_KNOTS + DEGREE - 2
#: Values that splines are evaluated for at a time, so that they stay in the cache.
BLOCK = 2**16
#: Knots that are closer than this, as a part of the feature's range, are as good as one.
SMALLEST_GAP = 1e-9
#: What the variance of a score is at least, in samples.
LEAST_VARIANCE = 1e-9
#: Pairs of features: so many steps of each, of so many features at most, and so many products of two steps.
N_STEPS, MOST_PAIRED, N_PRODUCTS = 5, 60, 24
#: How steep a step is, for features of variance 1.
STEEPNESS = 4.0


class Basis(NamedTuple):
    """Columns made of features: as they are, cubic splines, linear beyond their knots, and products of steps.

    A step of a feature x is the logistic function of 4 (x - cut), less its mean.
    """

    plain: IntArray  # features that are taken as they are
    smooth: IntArray  # features with splines
    knots: FloatArray  # (n_knots, n_smooth)
    low: FloatArray  # features are cut one range beyond the training samples,
    high: FloatArray  # so that nothing grows without bounds
    pairs: IntArray = np.empty((0, 2), dtype=np.int64)  # features whose steps are multiplied
    cuts: FloatArray = np.empty((0, 2))  # where the steps are
    means: FloatArray = np.empty((0, 2))

    def columns(self, samples: FloatArray) -> FloatArray:
        """Make the columns: (n_samples, n_columns)."""
        samples = np.clip(samples, self.low, self.high)
        found = [samples[:, self.plain]]
        if len(self.smooth):
            found.append(spline_columns(samples[:, self.smooth], self.knots))
        if len(self.pairs):
            found.append(self.products(samples))
        return np.hstack(found)

    def products(self, samples: FloatArray) -> FloatArray:
        """Make the last columns, those of the pairs."""
        first, second = (
            expit(STEEPNESS * (samples[:, self.pairs[:, side]] - self.cuts[:, side]))
            - self.means[:, side]
            for side in range(2)
        )
        product: FloatArray = first * second
        return product

    def features(self) -> IntArray:
        """Tell which features each column is made of: (n_columns, 2), twice the same but for products."""
        single = np.concatenate([self.plain, np.repeat(self.smooth, N_SPLINES)])
        return np.concatenate([np.column_stack([single, single]), self.pairs])


def make_basis(samples: FloatArray, splines: bool) -> Basis:
    """Choose the columns: splines, if wanted, of features with more than two values; none of constants."""
    plain, smooth, knots = [], [], []
    ranked = np.sort(samples, axis=0)
    new = np.diff(ranked, axis=0) > 0.0
    n_distinct = 1 + new.sum(axis=0)
    for feature in np.flatnonzero(n_distinct > 1):
        if splines and n_distinct[feature] > 2:
            # Quantiles of the distinct values, which lie apart however often a value is repeated.
            distinct = ranked[np.append(True, new[:, feature]), feature]
            places = np.linspace(0.0, len(distinct) - 1.0, N_KNOTS)
            own = np.interp(places, np.arange(len(distinct)), distinct)
            if np.diff(own).min() > SMALLEST_GAP * (own[-1] - own[0]):
                smooth.append(feature)
                knots.append(own)
                continue
        plain.append(feature)
    low, high = ranked[0], ranked[-1]
    return Basis(
        np.array(plain, dtype=np.int64),
        np.array(smooth, dtype=np.int64),
        np.array(knots).reshape(-1, N_KNOTS).T,
        low - (high - low),
        high + (high - low),
    )


def add_pairs(
    basis: Basis, samples: FloatArray, codes: IntArray, weights: FloatArray, probability: FloatArray
) -> Basis:
    r"""Add products of steps of two features that would improve given probabilities most.

    A product z is judged by the score test, :math:`(\sum_i w_i r_i z_i)^2 / \sum_i w_i p_i (1 - p_i) z_i^2`
    with the residuals r, summed over the classes.
    """
    features, cuts = _steps(basis, samples, codes, weights)
    steps = expit(STEEPNESS * (samples[:, features] - cuts))
    means = weights @ steps / weights.sum()
    steps -= means
    squares, scores = steps**2, np.zeros((len(cuts), len(cuts)))
    present = np.unique(codes)
    for k in present if len(present) > 2 else present[1:]:
        own = probability[:, k]
        covariance = steps.T @ ((weights * ((codes == k) - own))[:, None] * steps)
        variance = squares.T @ ((weights * own * (1.0 - own))[:, None] * squares)
        scores += covariance**2 / np.maximum(variance, LEAST_VARIANCE)
    first, second = np.nonzero(features[:, None] < features)
    best = np.argsort(-scores[first, second], kind="stable")[:N_PRODUCTS]
    chosen = np.column_stack([first[best], second[best]])
    return basis._replace(pairs=features[chosen], cuts=cuts[chosen], means=means[chosen])


def _steps(
    basis: Basis, samples: FloatArray, codes: IntArray, weights: FloatArray
) -> tuple[IntArray, FloatArray]:
    """List steps, by their features and cuts: at quantiles, but halfway between the two values of a feature."""
    varying = np.sort(np.concatenate([basis.plain, basis.smooth]))
    if len(varying) > MOST_PAIRED:
        effects = _effects(samples[:, varying], codes, weights)
        varying = np.sort(varying[np.argsort(-effects, kind="stable")[:MOST_PAIRED]])
    shares = np.arange(1, N_STEPS + 1) / (N_STEPS + 1.0)
    features, cuts = [], []
    for feature in varying:
        values = samples[:, feature]
        low, high = values.min(), values.max()
        own = np.unique(weighted_quantile(values[:, None], weights, *shares))
        if ((values == low) | (values == high)).all() or len(own) == 1:
            own = np.array([low / 2.0 + high / 2.0])
        features += [feature] * len(own)
        cuts += own.tolist()
    return np.array(features, dtype=np.int64), np.array(cuts)


def _effects(samples: FloatArray, codes: IntArray, weights: FloatArray) -> FloatArray:
    """Variance of the class means of each feature, as a part of its variance."""
    own = (codes[:, None] == np.unique(codes)) * weights[:, None]
    share = own.sum(axis=0) / weights.sum()
    centered = samples - weights @ samples / weights.sum()
    means = (own / own.sum(axis=0)).T @ centered
    effects: FloatArray = share @ means**2 / (weights @ centered**2)
    return effects


def spline_columns(samples: FloatArray, knots: FloatArray) -> FloatArray:
    """Evaluate cubic B-splines, linear beyond their knots, as scikit-learn's `SplineTransformer` does.

    Samples are (n_samples, n_features), knots (5, n_features) and increasing; a feature's 6 columns are beside
    each other.
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
    return (lower[:-1] - lower[1:])[:N_SPLINES]
