"""Columns for regressions: features, their cubic splines, and products of smooth steps in two features."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from popf.engine.runtime.jit import jit
from popf.engine.structures import FloatArray, IntArray
from popf.probability.features import weighted_quantile

N_KNOTS, DEGREE = 5, 3
#: Spline columns per feature. The last B-spline is left out, because all of them sum to 1.
N_SPLINES = N_KNOTS + DEGREE - 2
#: A feature gets no splines if two of its knots are closer than this fraction of its range.
MIN_KNOT_GAP = 1e-9
#: Lower bound of the variance in a score test.
MIN_SCORE_VARIANCE = 1e-9
#: Products of two steps: steps per feature, maximum number of features, and maximum number of products.
N_STEPS, MAX_PAIRED_FEATURES, N_PRODUCTS = 5, 60, 24
#: Steepness of a step, for features of variance 1.
STEEPNESS = 4.0


class Basis(NamedTuple):
    """Columns built from features: the features themselves, cubic splines, and products of steps.

    Splines are linear beyond their knots. A step in a feature x is the logistic function of 4 (x - cut), minus
    its mean.
    """

    plain: IntArray  # features that are used unchanged
    smooth: IntArray  # features with splines
    knots: FloatArray  # (n_knots, n_smooth)
    low: FloatArray  # features are clipped one range beyond the training samples,
    high: FloatArray  # so that extrapolation is bounded
    pairs: IntArray = np.empty((0, 2), dtype=np.int64)  # features whose steps are multiplied
    cuts: FloatArray = np.empty((0, 2))  # positions of the steps
    means: FloatArray = np.empty((0, 2))  # means of the steps

    def columns(self, samples: FloatArray) -> FloatArray:
        """Compute the columns: (n_samples, n_columns)."""
        samples = np.clip(samples, self.low, self.high)
        splines = spline_columns(samples[:, self.smooth], self.knots)
        if not len(self.plain) and not len(self.pairs):
            return splines
        return np.hstack([samples[:, self.plain], splines, self.products(samples)])

    def products(self, samples: FloatArray) -> FloatArray:
        """Compute the last columns, the products: (n_samples, n_pairs)."""
        first, second = (
            expit(STEEPNESS * (samples[:, self.pairs[:, side]] - self.cuts[:, side]))
            - self.means[:, side]
            for side in range(2)
        )
        product: FloatArray = first * second
        return product

    def features(self) -> IntArray:
        """Return the two features of each column, (n_columns, 2); they are the same except for products."""
        single = np.concatenate([self.plain, np.repeat(self.smooth, N_SPLINES)])
        return np.concatenate([np.column_stack([single, single]), self.pairs])


def make_basis(samples: FloatArray, splines: bool) -> Basis:
    """Choose the columns: splines, if wanted, for features with more than two values; none for constants."""
    plain, smooth, knots = [], [], []
    ranked = np.sort(samples, axis=0)
    new = np.diff(ranked, axis=0) > 0.0
    n_distinct = 1 + new.sum(axis=0)
    for feature in np.flatnonzero(n_distinct > 1):
        if splines and n_distinct[feature] > 2:
            # Quantiles of the distinct values, so that knots differ even if a value is frequent.
            distinct = ranked[np.append(True, new[:, feature]), feature]
            places = np.linspace(0.0, len(distinct) - 1.0, N_KNOTS)
            own = np.interp(places, np.arange(len(distinct)), distinct)
            if np.diff(own).min() > MIN_KNOT_GAP * (own[-1] - own[0]):
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
    r"""Add the products of steps in two features that would improve given probabilities most.

    Products z are ranked by the score test :math:`(\sum_i w_i r_i z_i)^2 / \sum_i w_i p_i (1 - p_i) z_i^2`,
    where r are the residuals. It is summed over the classes; of two classes, the second is enough.
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
        scores += covariance**2 / np.maximum(variance, MIN_SCORE_VARIANCE)
    first, second = np.nonzero(features[:, None] < features)
    best = np.argsort(-scores[first, second], kind="stable")[:N_PRODUCTS]
    chosen = np.column_stack([first[best], second[best]])
    return basis._replace(pairs=features[chosen], cuts=cuts[chosen], means=means[chosen])


def _steps(
    basis: Basis, samples: FloatArray, codes: IntArray, weights: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return features and cuts of the candidate steps.

    Cuts are at quantiles, or halfway between the minimum and maximum if a feature has only two values or
    only one distinct quantile. Of many features, those with the largest effects are used.
    """
    varying = np.sort(np.concatenate([basis.plain, basis.smooth]))
    if len(varying) > MAX_PAIRED_FEATURES:
        effects = _effects(samples[:, varying], codes, weights)
        varying = np.sort(varying[np.argsort(-effects, kind="stable")[:MAX_PAIRED_FEATURES]])
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
    """Compute the variance of the class means of each feature, as a fraction of its variance."""
    own = (codes[:, None] == np.unique(codes)) * weights[:, None]
    share = own.sum(axis=0) / weights.sum()
    centered = samples - weights @ samples / weights.sum()
    means = (own / own.sum(axis=0)).T @ centered
    effects: FloatArray = share @ means**2 / (weights @ centered**2)
    return effects


def spline_columns(samples: FloatArray, knots: FloatArray) -> FloatArray:
    """Evaluate cubic B-splines, linear beyond their knots, as scikit-learn's `SplineTransformer` does.

    Samples have shape (n_samples, n_features), knots (5, n_features), in increasing order. The 6 columns of a
    feature are adjacent.
    """
    found = np.zeros((len(samples), knots.shape[1] * N_SPLINES))
    pieces, knots = _polynomials(knots), np.ascontiguousarray(knots.T)
    _evaluate_polynomials(np.ascontiguousarray(samples), knots, pieces, found)
    return found


def _polynomials(knots: FloatArray) -> FloatArray:
    """Compute the polynomials of the four splines that are not 0 to the right of each knot.

    The result has the shape (n_features, n_knots, 4, 4): coefficients of the powers of the distance from the
    knot, lowest power first.
    """
    # Extend the knots at both ends, with the spacing of the first two and of the last two.
    outside = np.arange(DEGREE, 0, -1)[:, None]
    below = knots[0] - outside * (knots[1] - knots[0])
    above = knots[-1] + outside[::-1] * (knots[-1] - knots[-2])
    t = np.concatenate([below, knots, above])
    found = []
    for left in range(DEGREE, DEGREE + N_KNOTS):
        pieces = np.ones((1, 1, knots.shape[1]))
        for p in range(1, DEGREE + 1):
            # The Cox-de Boor recursion: a spline of degree p - 1 is a part of two of degree p.
            higher = np.zeros((p + 1, p + 1, knots.shape[1]))
            for r in range(p):
                first, last = t[left - p + 1 + r], t[left + 1 + r]
                share = pieces[r] / (last - first)
                higher[r, :-1] += (last - t[left]) * share
                higher[r, 1:] -= share
                higher[r + 1, :-1] += (t[left] - first) * share
                higher[r + 1, 1:] += share
            pieces = higher
        found.append(pieces)
    return np.ascontiguousarray(np.moveaxis(np.stack(found), 3, 0))


@jit
def _evaluate_polynomials(
    samples: FloatArray, knots: FloatArray, pieces: FloatArray, found: FloatArray
) -> None:
    """Write the splines that are not 0; beyond the knots they continue linearly."""
    for row in range(len(samples)):
        for feature in range(len(knots)):
            t, x = knots[feature], samples[row, feature]
            inside = min(max(x, t[0]), t[N_KNOTS - 1])
            j = 0
            for k in range(1, N_KNOTS):
                j += inside >= t[k]
            u, beyond = inside - t[j], x - inside
            for r in range(DEGREE + 1):
                if j + r < N_SPLINES:
                    c = pieces[feature, j, r]
                    value = c[0] + u * (c[1] + u * (c[2] + u * c[3]))
                    slope = c[1] + u * (2.0 * c[2] + u * 3.0 * c[3])
                    found[row, N_SPLINES * feature + j + r] = value + slope * beyond
