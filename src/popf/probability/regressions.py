"""Evidence that adds up over features: ridge logistic regressions on them, on their splines, and on pairs."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from popf.engine.structures import FloatArray, IntArray
from popf.probability.features import weighted_quantile
from popf.probability.softmax import Penalty, TwoClasses, log_softmax, minimise

N_KNOTS, DEGREE = 5, 3
#: Splines of a feature: all but the last, which the others and a constant make up.
N_SPLINES = N_KNOTS + DEGREE - 2
#: Values that splines are evaluated for at a time, so that they stay in the cache.
BLOCK = 2**16
#: What the strength times the mean weight may be; beyond, nothing or everything is free, and solvers fail.
STRENGTHS_ALLOWED = (1e-8, 1e6)
#: Knots that are closer than this, as a part of the feature's range, are as good as one.
SMALLEST_GAP = 1e-9
#: A column that varies less is constant but for rounding.
LEAST_DEVIATION = 1e-12
#: What the variance of a score is at least, in samples.
LEAST_VARIANCE = 1e-9
#: Up to so many slopes Newton's method is quicker than L-BFGS, if there are two classes.
MOST_FOR_NEWTON = 300
#: L-BFGS ends where a step lowers the mean loss by less; after so many steps it begins anew, so often at most.
LEAST_GAIN, STEPS_AT_ONCE, MOST_BEGINNINGS = 1e-8, 50, 20
#: Up to so many columns for each class their uncorrelated directions cost less than they save.
MOST_DIRECTIONS = 50
#: What a sample's curvature is at least, so that sure probabilities leave some.
LEAST_CURVATURE = 1e-6
#: Pairs of features: so many steps of each, of so many features at most, and so many products of two steps.
N_STEPS, MOST_PAIRED, N_PRODUCTS = 5, 60, 24
#: How steep a step is, for features of variance 1.
STEEPNESS = 4.0
#: The ridge of the splines that pairs of features are to add something to.
STRENGTH_BEFORE_PAIRS = 0.1


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


class AdditiveEvidence(NamedTuple):
    """A function of the features that is a sum over them and their pairs, for every class."""

    basis: Basis
    center: FloatArray  # the mean of every column
    coefficients: FloatArray  # (n_classes, n_columns)
    intercepts: FloatArray

    def exponents(self, samples: FloatArray) -> FloatArray:
        """Exponents of the classes: (n_samples, n_classes)."""
        return self.exponents_of_columns(self.centered_columns(samples))

    def centered_columns(self, samples: FloatArray) -> FloatArray:
        """Make the columns of samples, with mean 0 among the training samples."""
        return self.basis.columns(samples) - self.center

    def exponents_of_columns(self, columns: FloatArray) -> FloatArray:
        """Exponents of the classes from centered columns."""
        return columns @ self.coefficients.T + self.intercepts

    def without_intercepts(self) -> tuple["AdditiveEvidence", FloatArray]:
        """Split into a function of mean 0 among the training samples, and the intercepts."""
        return self._replace(intercepts=np.zeros_like(self.intercepts)), self.intercepts

    def shares(self, samples: FloatArray) -> FloatArray:
        """Split the exponents, intercepts apart, by features: (n_samples, n_features, n_classes).

        Of a product each feature gets one half.
        """
        columns = self.centered_columns(samples)
        found = np.zeros((*samples.shape, len(self.intercepts)))
        for column, pair in enumerate(self.basis.features()):
            half = columns[:, column, None] * self.coefficients[:, column] / 2.0
            for feature in pair:
                found[:, feature] += half
        return found


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


class RidgeRegressions:
    """Ridge logistic regressions on the standardised columns of samples, for any strength.

    `columns` are those of the basis; some of the classes may be missing.
    """

    #: Inverse strengths of the ridge to try, as scikit-learn's C.
    strengths = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)

    def __init__(
        self,
        basis: Basis,
        columns: FloatArray,
        codes: IntArray,
        weights: FloatArray,
        n_classes: int,
    ) -> None:
        self._basis = basis
        share = weights / weights.sum()
        self._center = share @ columns
        columns = columns - self._center
        scale = np.sqrt(share @ columns**2)
        self._scale = np.where(scale > LEAST_DEVIATION, scale, np.inf)
        columns = columns / self._scale
        self._rotation = None
        if columns.shape[1] > len(columns):
            # A ridge does not feel rotations: as many directions as samples hold everything.
            self._rotation, triangle = np.linalg.qr(columns.T)
            columns = triangle.T
        self._present = np.unique(codes)
        self._n_classes, self._total = n_classes, float(weights.sum())
        # Only the product of weights and strength counts.
        self._unit = float(weights.mean())
        own = np.searchsorted(self._present, codes)
        solver: type[_ByNewton | _ByGradients] = _ByGradients
        if len(self._present) == 2 and columns.shape[1] <= MOST_FOR_NEWTON:
            solver = _ByNewton
        self._solver = solver(columns, own, weights / self._unit)

    def centered_columns(self, samples: FloatArray) -> FloatArray:
        """Make the columns of new samples, for `AdditiveEvidence.exponents_of_columns`."""
        columns: FloatArray = self._basis.columns(samples) - self._center
        return columns

    def fit(self, strength: float) -> AdditiveEvidence:
        """Fit with one strength, beginning where the last one ended."""
        strength = float(np.clip(strength * self._unit, *STRENGTHS_ALLOWED))
        theta = self._solver.fit(strength)
        slopes, offsets = theta[:, :-1], theta[:, -1]
        if self._rotation is not None:
            slopes = slopes @ self._rotation.T
        coefficients = np.zeros((self._n_classes, len(self._scale)))
        coefficients[self._present] = slopes / self._scale
        # A class that is not there is as rare as one half of a sample.
        intercepts = np.full(self._n_classes, offsets.max() - np.log(2.0 * max(self._total, 1.0)))
        intercepts[self._present] = offsets
        return AdditiveEvidence(self._basis, self._center, coefficients, intercepts)


class _ByNewton:
    """Ridge regressions of two classes, as scikit-learn's, by Newton's method.

    The first of the classes has minus the slopes and the intercept of the second.
    """

    def __init__(self, columns: FloatArray, codes: IntArray, weights: FloatArray) -> None:
        rows = np.vstack([columns.T, np.ones(len(codes))])
        targets = codes.astype(np.float64)
        self._log_odds = TwoClasses(rows[None], np.zeros(len(codes)), targets, weights)
        self._theta = np.zeros((1, len(rows)))

    def fit(self, strength: float) -> FloatArray:
        """Slopes and intercepts, beginning where the last fit ended: (n_classes, n_columns + 1)."""
        ridge = np.append(np.full(self._theta.shape[1] - 1, 1.0 / strength), 0.0)
        self._theta = minimise(self._log_odds, Penalty(ridge, np.zeros_like(ridge)), self._theta)
        return np.vstack([-self._theta, self._theta]) / 2.0


class _ByGradients:
    """Ridge regressions, as scikit-learn's, by L-BFGS, where it pays along uncorrelated directions."""

    def __init__(self, columns: FloatArray, codes: IntArray, weights: FloatArray) -> None:
        masses = np.bincount(codes, weights=weights)
        logs = np.log(masses)
        self._directions = None
        if columns.shape[1] <= MOST_DIRECTIONS * len(masses):
            _, self._directions = np.linalg.eigh((columns.T * weights) @ columns)
            columns = columns @ self._directions
        self._rows = np.vstack([columns.T, np.ones(len(codes))])
        self._weights, self._total = weights / weights.sum(), float(weights.sum())
        # Of two classes the log odds of the second are fitted, of more the exponents of all.
        self._two = len(masses) == 2
        classes = np.arange(len(masses))[-1:] if self._two else np.arange(len(masses))
        self._targets = (codes == classes[:, None]).astype(np.float64)
        self._theta = np.zeros((len(classes), len(self._rows)))
        self._theta[:, -1] = logs[1] - logs[0] if self._two else logs - logs.mean()

    def fit(self, strength: float) -> FloatArray:
        """Slopes and intercepts, beginning where the last fit ended: (n_classes, n_columns + 1)."""
        ridge = np.full(len(self._rows), 1.0 / (strength * self._total))
        ridge[-1] = 0.0
        for _ in range(MOST_BEGINNINGS):
            if self._improve(ridge):
                break
        theta = self._theta.copy()
        if self._directions is not None:
            theta[:, :-1] = theta[:, :-1] @ self._directions.T
        return np.vstack([-theta, theta]) / 2.0 if self._two else theta

    def _improve(self, ridge: FloatArray) -> bool:
        """Take some steps, scaled so that the curvature is about 1 now; tell whether they were enough."""
        from scipy.optimize import minimize

        rows, shape = self._rows, self._theta.shape
        _, probability = self._losses(self._theta @ rows)
        curvature = np.maximum((probability * (1.0 - probability)).mean(axis=0), LEAST_CURVATURE)
        scale = 1.0 / np.sqrt(rows**2 @ (self._weights * curvature) + ridge)

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            theta = flat.reshape(shape) * scale
            losses, probability = self._losses(theta @ rows)
            residual = self._weights * (probability - self._targets)
            value = self._weights @ losses + (theta**2 @ ridge).sum() / 2.0
            return value, (scale * (residual @ rows.T + ridge * theta)).ravel()

        options = {"maxiter": STEPS_AT_ONCE, "ftol": LEAST_GAIN, "gtol": 1e-9}
        start = (self._theta / scale).ravel()
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        self._theta = found.x.reshape(shape) * scale
        return bool(found.nit < STEPS_AT_ONCE)

    def _losses(self, exponents: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log losses, and probabilities in place of the exponents: (n_rows,) and as the exponents."""
        wanted = (self._targets * exponents).sum(axis=0)
        top = exponents.max(axis=0)
        if self._two:
            top = np.maximum(top, 0.0)
        probability = np.exp(exponents - top, out=exponents)
        total = probability.sum(axis=0)
        if self._two:
            total += np.exp(-top)
        probability /= total
        return np.log(total) + top - wanted, probability


def regressions_of_kind(
    kind: str, samples: FloatArray, codes: IntArray, weights: FloatArray, n_classes: int
) -> RidgeRegressions:
    """Prepare regressions on the features ("linear"), on splines of them ("spline"), or also on "pairs"."""
    basis = make_basis(samples, splines=kind != "linear")
    columns = basis.columns(samples)
    regressions = RidgeRegressions(basis, columns, codes, weights, n_classes)
    if kind != "pairs":
        return regressions
    splines = regressions.fit(STRENGTH_BEFORE_PAIRS)
    probability = np.exp(log_softmax(splines.exponents_of_columns(columns - splines.center)))
    basis = add_pairs(basis, samples, codes, weights, probability)
    columns = np.hstack([columns, basis.products(samples)])
    return RidgeRegressions(basis, columns, codes, weights, n_classes)


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
