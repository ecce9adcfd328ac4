"""Ridge logistic regressions: on the features ("linear"), and on splines and products of pairs ("additive")."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.preprocessing import SplineTransformer

from popf.engine.structures import FloatArray, IntArray
from popf.forest.probabilities import log_softmax
from popf.probability.components import Fold
from popf.probability.folds import ENOUGH
from popf.probability.logits import (
    Coefficient,
    cross_entropy,
    from_log_odds,
    minimise,
)
from popf.probability.scaler import ROUNDING, weighted_quantile
from popf.state import Float, Integer, Sizes, StateError

#: Inverse strengths of the ridge to try, as scikit-learn's C. Here and elsewhere, what a value costs is the
#: change of the log loss, as a mean over 244 splits of 127 tables with at most 500 samples.
STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
#: Largest derivative of the mean loss, along axes of about unit curvature, where the solver stops: 1e-3 costs
#: 0.2 %, and 5e-5 saves nothing in 5 % more time.
TOLERANCE = 1.5e-4
#: Maximum number of columns that are rotated to their axes; with 420, a fit to 1,000 samples takes a quarter
#: longer.
MAX_AXES = 250
#: Knots of a feature's splines, and steps of a feature in products. Seven cost 0.4 %, and four nothing.
N_KNOTS = 5
#: Strength of the regression on splines that pairs are to improve; 0.01 and 1 are as good.
STRENGTH_BEFORE_PAIRS = 0.1
#: Number of products of two steps; half as many cost 0.6 % with 1,500 samples. Products save 0.6 to 2 % with
#: two classes, and nothing with many.
N_PRODUCTS = 24
#: Maximum number of coefficients with products; without it, a fit takes three times as long for 0.1 %.
MAX_COEFFICIENTS = 600
#: Steepness of a step, for features of variance 1; 2 costs 0.2 %, and 8 nothing.
STEEPNESS = 4.0


class Basis(NamedTuple):
    """Columns built from features: features as they are, cubic splines, and products of steps in two features.

    A step in a feature x is the logistic function of 4 (x - cut), minus its mean.
    """

    #: Features that are used unchanged.
    plain: Annotated[IntArray, Integer("n_plain", of="n_encoded")]
    #: Features with splines.
    smooth: Annotated[IntArray, Integer("n_smooth", of="n_encoded")]
    knots: Annotated[FloatArray, Coefficient(N_KNOTS, "n_smooth")]
    #: Features whose steps are multiplied.
    pairs: Annotated[IntArray, Integer("n_pairs", 2, of="n_encoded")]
    #: Positions and means of the steps.
    cuts: Annotated[FloatArray, Coefficient("n_pairs", 2)]
    means: Annotated[FloatArray, Float("n_pairs", 2, low=0.0, high=1.0)]

    def check_state(self, sizes: Sizes) -> None:
        """Check the order of the knots; see `popf.state`."""
        if (np.diff(self.knots, axis=0) <= 0.0).any():
            raise StateError("strictly increasing numbers", "knots")

    def columns(self, samples: FloatArray) -> FloatArray:
        """Compute the columns: (n_samples, n_columns)."""
        columns = [samples[:, self.plain]]
        if len(self.smooth):
            splines = SplineTransformer(
                knots=self.knots, include_bias=False, extrapolation="constant"
            )
            columns.append(splines.fit(self.knots).transform(samples[:, self.smooth]))
        if len(self.pairs):
            first, second = (
                expit(STEEPNESS * (samples[:, self.pairs[:, side]] - self.cuts[:, side]))
                - self.means[:, side]
                for side in range(2)
            )
            columns.append(first * second)
        return np.hstack(columns)

    def features(self) -> IntArray:
        """Return the two features of each column, (n_columns, 2); they are the same except for products."""
        # Of the cubic B-splines of a feature, the last one is left out, because all of them sum to 1.
        single = np.concatenate([self.plain, np.repeat(self.smooth, N_KNOTS + 1)])
        return np.concatenate([np.column_stack([single, single]), self.pairs])


class AdditiveModel(NamedTuple):
    """Logits of the classes that are sums of functions of single features and of pairs."""

    basis: Basis
    #: The mean of every column.
    center: Annotated[FloatArray, Coefficient("n_columns")]
    coefficients: Annotated[FloatArray, Coefficient("n_classes", "n_columns")]
    intercepts: Annotated[FloatArray, Coefficient("n_classes")]

    def check_state(self, sizes: Sizes) -> None:
        """Check the number of columns; see `popf.state`."""
        if len(self.center) != len(self.basis.features()):
            raise StateError(f"the means of {len(self.basis.features())} columns", "center")

    def logits(self, samples: FloatArray) -> FloatArray:
        """Compute the logits of scaled samples: (n_samples, n_classes)."""
        # Unlike BLAS, this rounds a row in the same way whichever rows are beside it.
        columns = np.ascontiguousarray(self.basis.columns(samples))
        products: FloatArray = np.einsum(
            "ij,kj->ik", columns, np.ascontiguousarray(self.coefficients)
        )
        return products + (self.intercepts - self.coefficients @ self.center)

    def logits_of_columns(self, columns: FloatArray) -> FloatArray:
        """Compute the logits from the columns of the basis; rounding may depend on the rows beside a row."""
        return columns @ self.coefficients.T + (self.intercepts - self.coefficients @ self.center)

    def contributions(self, samples: FloatArray) -> FloatArray:
        """Split logits minus intercepts by feature, (n_samples, n_features, n_classes); a product is halved."""
        columns = self.basis.columns(samples) - self.center
        found = np.zeros((*samples.shape, len(self.intercepts)))
        for column, pair in enumerate(self.basis.features()):
            half = columns[:, column, None] * self.coefficients[:, column] / 2.0
            for feature in pair:
                found[:, feature] += half
        return found


class Regressions:
    """The component of ridge regressions on one or several kinds of columns.

    Its complexity is the kind, "features", "splines" or "products" (with splines), and the inverse strength of
    the ridge.
    """

    def __init__(self, *kinds: str) -> None:
        self.paths: Sequence[Sequence[Any]] = [
            [(kind, strength) for strength in STRENGTHS] for kind in kinds
        ]

    def fit(self, fold: Fold, complexity: Any) -> AdditiveModel:
        """Fit one strength."""
        kind, strength = complexity
        basis = make_basis(fold.samples, splines=kind != "features")
        if kind == "products":
            basis = add_pairs(basis, fold)
        return RidgeRegression(basis, fold).fit(strength)

    def score_path(
        self, fold: Fold, queries: FloatArray, path: Sequence[Any]
    ) -> Iterator[FloatArray]:
        """Fit and score one strength after the other; none if there would be too many products."""
        kind = path[0][0]
        basis = make_basis(fold.samples, splines=kind != "features")
        if kind == "products":
            n_outputs = 1 if fold.n_classes == 2 else fold.n_classes
            too_many = (len(basis.features()) + N_PRODUCTS) * n_outputs > MAX_COEFFICIENTS
            if too_many or len(basis.plain) + len(basis.smooth) < 2:
                return
            basis = add_pairs(basis, fold)
        regression, columns = RidgeRegression(basis, fold), basis.columns(queries)
        for _, strength in path:  # each fit starts from the last one
            yield regression.fit(strength).logits_of_columns(columns)


class RidgeRegression:
    """Ridge logistic regression on the standardised columns of a basis, for any strength.

    It minimises what scikit-learn's LogisticRegression minimises. With that class in its place, the default fit
    takes 1.5 times as long with at most 500 samples, and 1.25 times with 1,500, for the same losses.
    """

    def __init__(self, basis: Basis, fold: Fold) -> None:
        self._basis, self._weights = basis, fold.weights / fold.weights.sum()
        columns = basis.columns(fold.samples)
        self._center = self._weights @ columns
        columns -= self._center
        scale = np.sqrt(np.einsum("i,ij,ij->j", self._weights, columns, columns))
        self._scale = np.where(scale > ROUNDING, scale, np.inf)
        columns /= self._scale
        self._axes = None
        if columns.shape[1] <= MAX_AXES or columns.shape[1] > len(columns):
            self._axes = principal_axes(columns)
            columns = columns @ self._axes
        self._columns = np.column_stack([columns, np.ones(len(columns))])
        self._present, self._codes = np.unique(fold.codes, return_inverse=True)
        frequencies = np.bincount(self._codes, weights=self._weights)
        # The mean of p (1 - p) where the probabilities of all samples are the class frequencies.
        spread = max((1.0 - (frequencies**2).sum()) / len(frequencies), ROUNDING)
        self._curvatures = spread * (self._weights @ self._columns**2)
        self._total, self._n_classes = float(fold.weights.sum()), fold.n_classes
        # For two classes the log odds of the second are fitted, for more the logits of all.
        n_outputs = 1 if len(self._present) == 2 else len(self._present)
        self._theta = np.zeros((n_outputs, self._columns.shape[1]))

    def fit(self, strength: float) -> AdditiveModel:
        """Fit with one inverse strength, starting from the last fit."""
        ridge = np.full(self._theta.shape[1], 1.0 / (strength * self._total))
        ridge[-1] = 0.0
        scale = 1.0 / np.sqrt(self._curvatures + ridge)
        targets = np.eye(len(self._present))[self._codes]
        weighted = self._weights[:, None] * targets

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            theta = flat.reshape(self._theta.shape) * scale
            logits = from_log_odds(self._columns @ theta.T)
            loss, residual = cross_entropy(logits, targets, self._weights, weighted)
            gradient = residual[:, -len(theta) :].T @ self._columns + ridge * theta
            return loss + (theta**2 @ ridge).sum() / 2.0, (gradient * scale).ravel()

        start = (self._theta / scale).ravel()
        found = minimise(objective, start, tolerance=TOLERANCE).reshape(self._theta.shape)
        self._theta = found * scale
        slopes, offsets = self._theta[:, :-1], from_log_odds(self._theta[:, -1])
        if self._axes is not None:
            slopes = slopes @ self._axes.T
        coefficients = np.zeros((self._n_classes, len(self._scale)))
        coefficients[self._present] = from_log_odds((slopes / self._scale).T).T
        # A class without samples gets about the frequency of half a sample.
        intercepts = np.full(self._n_classes, offsets.max() - np.log(2.0 * self._total))
        intercepts[self._present] = offsets
        return AdditiveModel(self._basis, self._center, coefficients, intercepts)


def principal_axes(columns: FloatArray) -> FloatArray:
    """Return the directions that some rows span, orthogonal to each other: (n_columns, n_directions).

    Along them the second derivatives of a regression are almost diagonal, which saves up to nine in ten
    evaluations; and a ridge is invariant to rotations.
    """
    tall = len(columns) >= columns.shape[1]
    squares, axes = np.linalg.eigh(columns.T @ columns if tall else columns @ columns.T)
    kept = squares > ROUNDING * squares.max(initial=0.0)
    return axes[:, kept] if tall else columns.T @ (axes[:, kept] / np.sqrt(squares[kept]))


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
            positions = np.linspace(0.0, len(distinct) - 1.0, N_KNOTS)
            own = np.interp(positions, np.arange(len(distinct)), distinct)
            if np.diff(own).min() > ROUNDING * (own[-1] - own[0]):
                smooth.append(feature)
                knots.append(own)
                continue
        plain.append(feature)
    nothing = np.empty((0, 2))
    return Basis(
        np.array(plain, dtype=np.int64),
        np.array(smooth, dtype=np.int64),
        np.array(knots).reshape(-1, N_KNOTS).T.copy(),
        nothing.astype(np.int64),
        nothing,
        nothing,
    )


def add_pairs(basis: Basis, fold: Fold) -> Basis:
    r"""Add the products of steps in two features that would improve a regression on splines most.

    Products z are ranked by the score test :math:`(\sum_i w_i r_i z_i)^2 / \sum_i w_i p_i (1 - p_i) z_i^2`,
    where r are the residuals. It is summed over the classes; of two classes, the second is enough.
    """
    fold = fold.subsample(ENOUGH)
    samples, codes, weights = fold.samples, fold.codes, fold.weights
    before = RidgeRegression(basis, fold).fit(STRENGTH_BEFORE_PAIRS)
    probability = np.exp(log_softmax(before.logits(samples)))
    features, cuts = _steps(basis, fold)
    steps = expit(STEEPNESS * (samples[:, features] - cuts))
    means = weights @ steps / weights.sum()
    steps -= means
    squares, scores = steps**2, np.zeros((len(cuts), len(cuts)))
    present = np.unique(codes)
    for k in present if len(present) > 2 else present[1:]:
        own = probability[:, k]
        covariance = steps.T @ ((weights * ((codes == k) - own))[:, None] * steps)
        variance = squares.T @ ((weights * own * (1.0 - own))[:, None] * squares)
        scores += covariance**2 / np.maximum(variance, ROUNDING)
    first, second = np.nonzero(features[:, None] < features)
    best = np.argsort(-scores[first, second], kind="stable")[:N_PRODUCTS]
    chosen = np.column_stack([first[best], second[best]])
    return basis._replace(pairs=features[chosen], cuts=cuts[chosen], means=means[chosen])


def _steps(basis: Basis, fold: Fold) -> tuple[IntArray, FloatArray]:
    """Return features and cuts of the candidate steps.

    Cuts are at quantiles, or halfway between the minimum and maximum if a feature has only two values or
    only one distinct quantile.
    """
    varying = np.sort(np.concatenate([basis.plain, basis.smooth]))
    shares = np.arange(1, N_KNOTS + 1) / (N_KNOTS + 1.0)
    quantiles = weighted_quantile(fold.samples[:, varying], fold.weights, *shares)
    features, cuts = [], []
    for feature, own in zip(varying, quantiles.T, strict=True):
        values = fold.samples[:, feature]
        low, high, own = values.min(), values.max(), np.unique(own)
        if ((values == low) | (values == high)).all() or len(own) == 1:
            own = np.array([low / 2.0 + high / 2.0])
        features += [feature] * len(own)
        cuts += own.tolist()
    return np.array(features, dtype=np.int64), np.array(cuts)
