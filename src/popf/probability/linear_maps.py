"""Linear maps of standardised features, after which Euclidean distances separate the classes better.

They use the labels, so **the samples that a map was fitted to look better separated than new ones**: a map is
fitted inside each fold. The forest sees the `N_DIRECTIONS` principal components of the mapped features: more
cost time, and brought nothing on wide tables.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.structures import FloatArray, IntArray
from popf.probability.scaler import ROUNDING

#: Whitening alone is worth 0.3 % on average, and 3 % with many classes. To choose a map by two folds instead of
#: all would save a tenth of the time, and cost 0.2 to 0.6 %.
MAPS = ("none", "weights", "whitening", "discriminant")
#: In place of a map, for a forest on features as they are given.
AS_GIVEN = "as given"
#: Number of directions that the forest sees; 12 cost 1 %, 48 cost 0.6 %.
N_DIRECTIONS = 24


def fit_map(name: str, samples: FloatArray, codes: IntArray, weights: FloatArray) -> FloatArray:
    """Fit a map to standardised samples, and return its matrix: (n_features, n_directions)."""
    share = weights / weights.sum()
    if name == "weights":
        effects = effect_sizes(samples, codes, weights)
        factors = effects if effects.max() ** 2 > ROUNDING else np.ones_like(effects)
        matrix = factors[:, None] * principal_directions(samples * factors, share).T
        return np.ascontiguousarray(matrix)
    if name in ("whitening", "discriminant"):
        return discriminant_directions(samples, codes, weights, name == "discriminant")
    return principal_directions(samples, share).T.copy()


def effect_sizes(samples: FloatArray, codes: IntArray, weights: FloatArray) -> FloatArray:
    r"""Compute how well each feature alone separates the classes, by its correlation ratio.

    .. math:: \eta = \sqrt{\text{variance of the class means} / \text{variance}}

    It is 0 if all classes have the same mean or the feature is constant, and 1 if nothing varies within the
    classes. For two classes it is the absolute correlation with the label.
    """
    share = weights / weights.sum()
    moved = samples - share @ samples
    between = np.bincount(codes, weights=share) @ class_means(moved, codes, share) ** 2
    within = share @ moved**2
    ratio = np.divide(between, within, out=np.zeros_like(within), where=within > 0.0)
    effects: FloatArray = np.sqrt(np.minimum(ratio, 1.0))
    return effects


def class_means(samples: FloatArray, codes: IntArray, share: FloatArray) -> FloatArray:
    """Compute the mean of every class, (n_classes, n_features); 0 for a class without samples."""
    own = (codes == np.arange(int(codes.max()) + 1)[:, None]) * share
    total = own.sum(axis=1, keepdims=True)
    means: FloatArray = np.divide(own, total, out=np.zeros_like(own), where=total > 0.0) @ samples
    return means


def principal_directions(samples: FloatArray, share: FloatArray) -> FloatArray:
    """Return the orthonormal directions of the largest variances, at most `N_DIRECTIONS`, as rows.

    With few features, no direction is left out, so the features themselves serve: a rotation changes no
    distance.
    """
    n_features = samples.shape[1]
    if n_features <= N_DIRECTIONS:
        return np.eye(n_features)
    _, directions = decompose(np.sqrt(share)[:, None] * (samples - share @ samples))
    return directions[::-1][:N_DIRECTIONS]


def decompose(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of ``rows.T @ rows`` above 0, in ascending order, and their directions as rows."""
    if rows.shape[1] <= rows.shape[0]:
        variances, directions = np.linalg.eigh(rows.T @ rows)
        directions = directions.T
    else:  # a hundred times as fast as decomposing the rows
        variances, mixtures = np.linalg.eigh(rows @ rows.T)
        directions = mixtures.T @ rows
        lengths = np.sqrt(np.maximum(variances, 0.0))[:, None]
        directions = np.divide(
            directions, lengths, out=np.zeros_like(directions), where=lengths > 0.0
        )
    there = variances > ROUNDING * max(variances[-1], 0.0)
    if not there.any():
        there[-1] = True
    return variances[there], directions[there]


def discriminant_directions(
    samples: FloatArray, codes: IntArray, weights: FloatArray, stretch: bool
) -> FloatArray:
    r"""Whiten by the covariance within the classes, then stretch the directions in which class means differ.

    The covariance of the samples around their class means is estimated as
    :math:`\Sigma = (1 - \delta) S + \delta \mu I`, with Ledoit and Wolf's :math:`\delta` [1]_, and samples are
    multiplied by :math:`\Sigma^{-1/2}`. After that, the directions in which the class means have variance
    :math:`\lambda` are stretched by :math:`\sqrt{1 + \lambda}`: the metric of Hastie and Tibshirani [2]_,
    computed once for all samples instead of locally.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
       Journal of Multivariate Analysis 88, 2004.
    .. [2] T. Hastie, R. Tibshirani, "Discriminant adaptive nearest neighbor classification", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 18, 1996.
    """
    share = weights / weights.sum()
    means = class_means(samples, codes, share)
    whitening = Stretch.fit_whitening(samples - means[codes], weights)
    frequencies = np.sqrt(np.bincount(codes, weights=share))[:, None]
    _, roots, directions = np.linalg.svd(frequencies * whitening.apply(means), full_matrices=False)
    stretching = Stretch(1.0, np.sqrt(1.0 + stretch * roots**2), directions)
    mapped = stretching.apply(whitening.apply(samples))
    # Both maps are symmetric, so the matrix of all three applies them to the directions in reverse order.
    matrix: FloatArray = whitening.apply(stretching.apply(principal_directions(mapped, share))).T
    return np.ascontiguousarray(matrix)


class Stretch(NamedTuple):
    """A symmetric map that multiplies orthonormal directions by factors, and everything else by one factor."""

    rest: float
    factors: FloatArray
    directions: FloatArray  # as rows

    def apply(self, samples: FloatArray) -> FloatArray:
        """Map samples."""
        along = (samples @ self.directions.T) * (self.factors - self.rest)
        mapped: FloatArray = self.rest * samples + along @ self.directions
        return mapped

    @classmethod
    def fit_whitening(cls, residuals: FloatArray, weights: FloatArray) -> "Stretch":
        """Fit the map by the inverse root of a shrunken covariance of centred samples."""
        total = float(weights.sum())
        share = weights / total
        n_features = max(int((np.abs(residuals).max(axis=0) > 0.0).sum()), 1)
        variances, directions = decompose(np.sqrt(share)[:, None] * residuals)
        mean = float(variances.sum()) / n_features
        if mean <= ROUNDING**2:  # nothing varies within the classes
            return cls(1.0, np.ones(0), np.zeros((0, residuals.shape[1])))
        squared = float((variances**2).sum())
        # Squared distance of S from the target mu I, and estimated squared distance from the true covariance.
        distance = max(squared - n_features * mean**2, 0.0)
        lengths = (residuals**2).sum(axis=1)
        chance = (float(share @ lengths**2) - squared) / total
        shrinkage = min(max(chance, 0.0) / distance, 1.0) if distance > 0.0 else 1.0
        target = max(shrinkage, ROUNDING) * mean
        variances = np.maximum((1.0 - shrinkage) * variances + shrinkage * mean, ROUNDING * mean)
        return cls(target**-0.5, variances**-0.5, directions)
