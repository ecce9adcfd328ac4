"""Features for the forest: squashed or standardised, and optionally transformed by a linear map.

The linear maps make Euclidean distances separate the classes better; they can also be used in pipelines. All
standardise the features first, so that units do not matter, and set constant features to 0. They use the
labels, so **the samples that a map was fitted to look better separated than new ones**: evaluate a map by
cross-validation with the map inside the pipeline, as ``POPFClassifier(linear_map=...)`` does.
"""

from abc import abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from popf.engine.structures import FloatArray, IntArray
from popf.forest.state import Fields, read_features
from popf.forest.validation import validate_samples

if TYPE_CHECKING:
    from popf.forest.metrics import Metric

#: The interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349
#: Scaled features are clipped to this magnitude, so that everything stays finite.
MAX_RATIO = 1e150
#: Maximum number of repeated samples for a map that does not support weights.
MAX_COPIES = 10_000_000
#: Standardised features are clipped to this magnitude, at which all training samples look alike.
FAR = 1e100
#: Correlation ratios up to this are rounding errors.
MIN_EFFECT = 1e-7
#: A feature whose standard deviation is at most this fraction of its largest magnitude counts as constant.
ROUNDING = 32.0 * float(np.finfo(np.float64).eps)
#: Lower bound of the variances within the classes, as a fraction of their mean.
MIN_VARIANCE = 1e-10
#: Variances up to this fraction of the largest are rounding errors of the decomposition.
RANK_TOLERANCE = 1e-12


class Scaling(NamedTuple):
    r"""A function of each feature, :math:`f (g((x - c) / s) - m)`, where g is asinh or the identity."""

    center: FloatArray  # c: the median, or the mean
    scale: FloatArray  # s: the interquartile range / 1.349, or the standard deviation
    mean: FloatArray  # m and f bring the result to mean 0 and variance 1
    factor: FloatArray  # f is 0 for a constant feature
    squashed: bool  # whether g is asinh

    def apply(self, samples: FloatArray) -> FloatArray:
        """Scale samples: (n_samples, n_features)."""
        with np.errstate(over="ignore"):
            found: FloatArray = samples - self.center
            found /= self.scale  # in place: allocating new arrays would take as long as the rest
        np.clip(found, -MAX_RATIO, MAX_RATIO, out=found)
        if self.squashed:
            np.arcsinh(found, out=found)
        found -= self.mean
        found *= self.factor
        return found


def fit_scaling(samples: FloatArray, weights: FloatArray, squashed: bool = True) -> Scaling:
    """Fit the scaling of every feature to weighted samples."""
    share = weights / weights.sum()
    # Dividing by a power of two is exact. Magnitudes are then below 1, and no square over- or underflows.
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
        nothing,
        nothing + 1.0,
        squashed,
    )
    found = plain.apply(samples)
    mean = share @ found
    deviation = np.sqrt(share @ (found - mean) ** 2)
    varies &= deviation > ROUNDING * (1.0 + np.abs(mean))
    factor = np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)
    return plain._replace(mean=mean, factor=factor)


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
        wanted, tolerance = share * mass[-1], 1e-12 * mass[-1]
        lower = np.minimum((mass < wanted - tolerance).sum(axis=0), last)
        upper = np.minimum((mass <= wanted + tolerance).sum(axis=0), last)
        found.append(ranked[lower, columns] / 2.0 + ranked[upper, columns] / 2.0)
    return found[0] if len(found) == 1 else np.array(found)


class _LinearMap(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the maps: validates and standardises samples."""

    mean_: FloatArray
    scale_: FloatArray

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the map to labelled samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels, of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            A sample of weight 2 counts as two samples, one of weight 0 is left out.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        data = validate_samples(self, X, y, sample_weight)
        self.mean_, self.scale_, standard = standardise(data.samples, data.weights)
        self._fit(standard, data.codes, data.weights)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Map samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        samples = validate_data(self, X, dtype=np.float64, reset=False)
        varies = self.scale_ > 0.0
        with np.errstate(over="ignore"):
            standard = (samples - self.mean_) / np.where(varies, self.scale_, 1.0)
        standard = np.clip(standard, -FAR, FAR)
        standard[:, ~varies] = 0.0
        return self._map(standard)

    def _check_parameters(self) -> None:
        """Raise an error if a parameter is invalid."""

    @abstractmethod
    def _fit(self, samples: FloatArray, codes: IntArray, weights: FloatArray) -> None: ...

    @abstractmethod
    def _map(self, samples: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _check_state(self, fields: Fields, n_features: int) -> None: ...

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Check a state of unknown origin and restore it; see `popf.forest.state`."""
        if "mean_" in state:
            fields = Fields(state, type(self).__name__)
            n_features = read_features(fields)["n_features_in_"]
            fields.floats("mean_", (n_features,))
            fields.floats("scale_", (n_features,), 0.0)
            self._check_state(fields, n_features)
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class EffectSizeWeights(OneToOneFeatureMixin, _LinearMap):  # type: ignore[misc]
    r"""Weight every feature by how well it alone separates the classes.

    The weight of a standardised feature is its correlation ratio,

    .. math:: \eta = \sqrt{\text{variance of the class means} / \text{variance}},

    which is 0 if all classes have the same mean, and 1 if nothing varies within the classes. For two classes
    it is the absolute correlation with the label. If no feature has an effect, all get the same weight.

    Attributes
    ----------
    effect_sizes_ : ndarray of shape (n_features,)
        :math:`\eta` of every feature, 0 for constant ones.
    mean_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation of the features, 0 for constant ones.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        The number of features, and their names if all column names of X are strings.

    Examples
    --------
    >>> from popf.probability import EffectSizeWeights
    >>> X = [[0.0, 5.0], [1.0, 9.0], [10.0, 5.0], [11.0, 9.0]]
    >>> EffectSizeWeights().fit(X, [0, 0, 1, 1]).effect_sizes_.round(2)
    array([1., 0.])
    """

    effect_sizes_: FloatArray

    def _fit(self, samples: FloatArray, codes: IntArray, weights: FloatArray) -> None:
        share = np.bincount(codes, weights=weights) / weights.sum()
        between = share @ class_means(samples, codes, weights) ** 2
        self.effect_sizes_ = np.sqrt(np.clip(between, 0.0, 1.0))

    def _map(self, samples: FloatArray) -> FloatArray:
        if self.effect_sizes_.max() <= MIN_EFFECT:
            return samples
        return samples * self.effect_sizes_

    def _check_state(self, fields: Fields, n_features: int) -> None:
        fields.floats("effect_sizes_", (n_features,), 0.0, 1.0)


class WithinClassWhitening(ClassNamePrefixFeaturesOutMixin, _LinearMap):  # type: ignore[misc]
    r"""Whiten samples by the covariance within the classes.

    The covariance of the standardised features around their class means is estimated as
    :math:`\Sigma = (1 - \delta) S + \delta \mu I`, with Ledoit and Wolf's :math:`\delta` [1]_, and samples are
    multiplied by :math:`\Sigma^{-1/2}`. Distances become Mahalanobis distances: correlated features count once,
    and directions in which classes vary widely count less.

    Parameters
    ----------
    shrinkage : "auto" or float, default="auto"
        :math:`\delta`, from 0 (no shrinkage) to 1 (only standardise); "auto" is Ledoit and Wolf's estimate of
        the best.

    Attributes
    ----------
    shrinkage_ : float
        :math:`\delta`.
    variances_, directions_, rest_ : ndarray, ndarray, float
        Variances within the classes along orthonormal directions, and the variance in all other directions.
    mean_, scale_, n_features_in_, feature_names_in_
        As of `EffectSizeWeights`.

    Notes
    -----
    With d features and n samples, fitting takes O(n·d·min(n, d)) time, and no d × d matrix if d > n.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
       Journal of Multivariate Analysis 88, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.probability import WithinClassWhitening
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(1000) % 2
    >>> X = rng.normal(size=(1000, 2)) @ [[5.0, 4.0], [0.0, 1.0]] + 3.0 * y[:, None]
    >>> Z = WithinClassWhitening().fit_transform(X, y)
    >>> [f"{np.corrcoef(samples[y == 0].T)[0, 1]:.1f}" for samples in (X, Z + 0.0)]
    ['1.0', '0.1']
    """

    shrinkage_: float
    variances_: FloatArray
    directions_: FloatArray
    rest_: float

    def __init__(self, shrinkage: str | float = "auto") -> None:
        self.shrinkage = shrinkage

    def _check_parameters(self) -> None:
        value: Any = self.shrinkage
        if value == "auto" or (isinstance(value, Real) and 0.0 <= float(value) <= 1.0):
            return
        raise ValueError(f"shrinkage must be 'auto' or a number from 0 to 1, not {value!r}.")

    def _fit(self, samples: FloatArray, codes: IntArray, weights: FloatArray) -> None:
        means = class_means(samples, codes, weights)
        shrinkage = None if self.shrinkage == "auto" else float(self.shrinkage)
        n_features = int((self.scale_ > 0.0).sum())
        found = shrunken_covariance(samples - means[codes], weights, shrinkage, n_features)
        self.variances_, directions, self.rest_, self.shrinkage_ = found
        # Rounding in products depends on the memory layout, which must be that of a restored state.
        self.directions_ = np.ascontiguousarray(directions)

    def _map(self, samples: FloatArray) -> FloatArray:
        rest = self.rest_**-0.5
        along = (samples @ self.directions_.T) * (self.variances_**-0.5 - rest)
        whitened: FloatArray = rest * samples + along @ self.directions_
        return whitened

    def _check_state(self, fields: Fields, n_features: int) -> None:
        n_directions = len(fields.floats("variances_", (None,), 1e-300))
        fields.floats("directions_", (n_directions, n_features), -1.5, 1.5)
        fields.number("rest_", 1e-300)
        fields.number("shrinkage_", 0.0, 1.0)

    @property
    def _n_features_out(self) -> int:
        return len(self.scale_)


class DiscriminantStretch(WithinClassWhitening):
    r"""Whiten within the classes, then stretch the directions in which the class means differ.

    After whitening, the scatter of the class means :math:`B = \sum_k \pi_k m_k m_k^T` has at most
    n_classes - 1 directions, those of Fisher's discriminant. Directions in which the means have variance
    :math:`\lambda` are stretched by :math:`\sqrt{1 + s \lambda}`. With s = 1 this is the metric of Hastie and
    Tibshirani [1]_, computed once for all samples instead of locally.

    Parameters
    ----------
    shrinkage : "auto" or float, default="auto"
        As for `WithinClassWhitening`.
    strength : float, default=1.0
        s; 0 is whitening alone.

    Attributes
    ----------
    stretches_, stretched_ : ndarray
        The factors, and the directions that are stretched.
    shrinkage_, mean_, scale_, n_features_in_, feature_names_in_
        As of `WithinClassWhitening`.

    References
    ----------
    .. [1] T. Hastie, R. Tibshirani, "Discriminant adaptive nearest neighbor classification", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 18, 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from popf.probability import DiscriminantStretch
    >>> DiscriminantStretch().fit(*load_iris(return_X_y=True)).stretches_.round(1)
    array([5.4, 1.1])
    """

    stretches_: FloatArray
    stretched_: FloatArray

    def __init__(self, shrinkage: str | float = "auto", strength: float = 1.0) -> None:
        super().__init__(shrinkage)
        self.strength = strength

    def _check_parameters(self) -> None:
        super()._check_parameters()
        value: Any = self.strength
        if not (isinstance(value, Real) and 0.0 <= float(value) < np.inf):
            raise ValueError(f"strength must be a finite number of at least 0, not {value!r}.")

    def _fit(self, samples: FloatArray, codes: IntArray, weights: FloatArray) -> None:
        super()._fit(samples, codes, weights)
        share = np.bincount(codes, weights=weights) / weights.sum()
        means = super()._map(class_means(samples, codes, weights))
        _, roots, directions = np.linalg.svd(np.sqrt(share)[:, None] * means, full_matrices=False)
        rank = len(means) - 1  # because the weighted mean of the class means is 0
        self.stretched_ = np.ascontiguousarray(directions[:rank])
        self.stretches_ = np.sqrt(1.0 + self.strength * roots[:rank] ** 2)

    def _map(self, samples: FloatArray) -> FloatArray:
        whitened = super()._map(samples)
        along = (whitened @ self.stretched_.T) * (self.stretches_ - 1.0)
        return whitened + along @ self.stretched_

    def _check_state(self, fields: Fields, n_features: int) -> None:
        super()._check_state(fields, n_features)
        n_directions = len(fields.floats("stretches_", (None,), 0.0, 1e150))
        fields.floats("stretched_", (n_directions, n_features), -1.5, 1.5)


def standardise(
    samples: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, scale and standardised features; constant features get the scale 0 and become 0."""
    # Dividing by a power of two is exact. Magnitudes are then below 1, and no square over- or underflows.
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
    return np.ldexp(mean, exponents), np.ldexp(spread, exponents), scaled


def class_means(samples: FloatArray, codes: IntArray, weights: FloatArray) -> FloatArray:
    """Compute the mean of every class: (n_classes, n_features)."""
    means = []
    for code in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == code)
        means.append(np.average(samples[members], axis=0, weights=weights[members]))
    return np.array(means)


def shrunken_covariance(
    residuals: FloatArray, weights: FloatArray, shrinkage: float | None, n_features: int
) -> tuple[FloatArray, FloatArray, float, float]:
    r"""Estimate the covariance of centred samples as :math:`(1 - \delta) S + \delta \mu I`.

    If `shrinkage` is None, Ledoit and Wolf's is used; `n_features` is the number of non-constant columns.
    Returns the variances along orthonormal directions, the directions as rows, the variance in all other
    directions, and the shrinkage.
    """
    total = float(weights.sum())
    rows = np.sqrt(weights / total)[:, None] * residuals
    if rows.shape[1] <= rows.shape[0]:
        variances, directions = np.linalg.eigh(rows.T @ rows)
        variances, directions = np.maximum(variances, 0.0), directions.T
    else:  # fewer samples than features: all other directions have variance 0 before shrinkage
        # Decomposing the small matrix of inner products is a hundred times as fast as decomposing the rows.
        variances, mixtures = np.linalg.eigh(rows @ rows.T)
        there = variances > RANK_TOLERANCE * variances[-1]
        variances = variances[there]
        directions = (mixtures.T[there] @ rows) / np.sqrt(variances)[:, None]
    mean = float(variances.sum()) / max(n_features, 1)
    if mean <= ROUNDING**2:  # nothing varies within the classes
        return np.ones(0), np.zeros((0, rows.shape[1])), 1.0, 0.0
    if shrinkage is None:
        squared = float((variances**2).sum())
        # Squared distance of S from the target mu I, and estimated squared distance from the true covariance.
        distance = max(squared - n_features * mean**2, 0.0)
        lengths = (residuals**2).sum(axis=1)
        chance = (float(weights @ lengths**2) / total - squared) / total
        shrinkage = 1.0 if chance >= distance > 0.0 else max(chance, 0.0) / (distance or 1.0)
        shrinkage = min(shrinkage, 1.0)
    target = shrinkage * mean
    variances = np.maximum((1.0 - shrinkage) * variances + target, MIN_VARIANCE * mean)
    return variances, directions, max(target, MIN_VARIANCE * mean), float(shrinkage)


LINEAR_MAPS: dict[str, Callable[[], Any]] = {
    "weights": EffectSizeWeights,
    "whitening": WithinClassWhitening,
    "discriminant": DiscriminantStretch,
}


class Candidate(NamedTuple):
    """Candidate features for the forest: a scaling, and a linear map or None."""

    name: str
    squashed: bool | None  # True: squashed, False: only standardised, None: unscaled
    linear_map: Any = None


class Preparation(NamedTuple):
    """The fitted scaling and linear map of the features for the forest."""

    scaling: Scaling | None = None
    linear_map: Any = None

    @property
    def changes(self) -> bool:
        """Whether samples are changed at all."""
        return self.scaling is not None or self.linear_map is not None

    def apply(self, samples: FloatArray) -> FloatArray:
        """Scale and map samples."""
        if self.scaling is not None:
            samples = self.scaling.apply(samples)
        if self.linear_map is not None:
            samples = self.linear_map.transform(samples)
            samples = check_array(samples, dtype=np.float64, input_name="linear_map's output")
        return np.ascontiguousarray(samples)


def candidates_for(squash: str | bool, linear_map: Any, metric: "Metric") -> list[Candidate]:
    """List the candidate features for the forest."""
    squashed = True if squash and metric.euclidean else None
    if not (linear_map is None or isinstance(linear_map, str)):
        return [Candidate(type(linear_map).__name__, squashed, linear_map)]
    mapped = [Candidate(name, squashed, make()) for name, make in LINEAR_MAPS.items()]
    if linear_map in LINEAR_MAPS:
        return [candidate for candidate in mapped if candidate.name == linear_map]
    found = [Candidate("none", squashed)]
    if squash == "auto" and metric.euclidean:
        found.append(Candidate("unsquashed", False))
    return found + mapped if linear_map == "auto" and metric.euclidean else found


def fit_preparation(
    candidate: Candidate, samples: FloatArray, codes: IntArray, weights: FloatArray
) -> Preparation:
    """Fit the scaling and map of a candidate to samples."""
    scaling = None
    if candidate.squashed is not None:
        scaling = fit_scaling(samples, weights, candidate.squashed)
        samples = scaling.apply(samples)
    if candidate.linear_map is None:
        return Preparation(scaling)
    linear_map = clone(candidate.linear_map)
    if has_fit_parameter(linear_map, "sample_weight"):
        return Preparation(scaling, linear_map.fit(samples, codes, sample_weight=weights))
    if weights.sum() > MAX_COPIES or (weights % 1.0 != 0.0).any():
        raise ValueError(
            f"linear_map {linear_map!r} does not support sample_weight, so samples are repeated instead, but "
            f"sample_weight has fractions or a sum above {MAX_COPIES:,}: use a map that supports weights, such "
            "as those of popf.probability."
        )
    copies = np.repeat(np.arange(len(samples)), weights.astype(np.int64))
    return Preparation(scaling, linear_map.fit(samples[copies], codes[copies]))
