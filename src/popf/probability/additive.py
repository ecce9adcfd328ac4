"""Evidence of single features and pairs: ridge logistic regressions on features, splines and products."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn import config_context

from popf.engine.structures import FloatArray, IntArray

N_KNOTS, DEGREE = 5, 3
#: Splines of a feature: all but the last, which the others and a constant make up.
N_SPLINES = N_KNOTS + DEGREE - 2
#: Values that splines are evaluated for at a time, so that they stay in the cache.
BLOCK = 2**16
#: Inverse strengths of the ridge, as scikit-learn's C.
STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
#: What the strength times the mean weight may be; beyond, nothing or everything is free, and solvers fail.
STRENGTHS_ALLOWED = (1e-8, 1e6)
#: Knots that are closer than this, as a part of the feature's range, are as good as one.
SMALLEST_GAP = 1e-9
#: A column that varies less is constant but for rounding.
LEAST_DEVIATION = 1e-12
#: Up to so many parameters Newton's method is quicker than L-BFGS.
MOST_FOR_NEWTON = 300
#: What scikit-learn need not check again in every fit.
QUICKLY = {"assume_finite": True, "skip_parameter_validation": True}
#: So many features, those that tell most about the classes, are multiplied in pairs.
MOST_MULTIPLIED = 8
N_PRODUCTS = MOST_MULTIPLIED * (MOST_MULTIPLIED - 1) // 2


class Regression(NamedTuple):
    """A regression to fit; `kind` is "linear", "products" (linear, and products of pairs) or "spline"."""

    kind: str
    strength: float


class Basis(NamedTuple):
    """Columns made of features: as they are, cubic splines, linear beyond their knots, and products of two."""

    plain: IntArray  # features that are taken as they are
    smooth: IntArray  # features with splines
    pairs: IntArray  # (n_pairs, 2), features that are multiplied
    knots: FloatArray  # (n_knots, n_smooth)
    low: FloatArray  # features are cut one range beyond the training samples,
    high: FloatArray  # so that nothing grows without bounds

    def columns(self, samples: FloatArray) -> FloatArray:
        """Make the columns: (n_samples, n_columns)."""
        samples = np.clip(samples, self.low, self.high)
        found = [samples[:, self.plain]]
        if len(self.smooth):
            found.append(spline_columns(samples[:, self.smooth], self.knots))
        if len(self.pairs):
            found.append(samples[:, self.pairs[:, 0]] * samples[:, self.pairs[:, 1]])
        return np.hstack(found)

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


def make_basis(samples: FloatArray, codes: IntArray, weights: FloatArray, kind: str) -> Basis:
    """Choose the columns: splines for features of more than two values, none for constant features."""
    plain, smooth, knots = [], [], []
    ranked = np.sort(samples, axis=0)
    new = np.diff(ranked, axis=0) > 0.0
    n_distinct = 1 + new.sum(axis=0)
    for feature in np.flatnonzero(n_distinct > 1):
        if kind == "spline" and n_distinct[feature] > 2:
            # Quantiles of the distinct values, which lie apart however often a value is repeated.
            distinct = ranked[np.append(True, new[:, feature]), feature]
            places = np.linspace(0.0, len(distinct) - 1.0, N_KNOTS)
            own = np.interp(places, np.arange(len(distinct)), distinct)
            if np.diff(own).min() > SMALLEST_GAP * (own[-1] - own[0]):
                smooth.append(feature)
                knots.append(own)
                continue
        plain.append(feature)
    pairs = np.empty((0, 2), dtype=np.int64)
    if kind == "products":
        best = np.argsort(-_effects(samples[:, plain], codes, weights), kind="stable")
        multiplied = np.sort(np.array(plain, dtype=np.int64)[best[:MOST_MULTIPLIED]])
        pairs = np.column_stack(
            [multiplied[places] for places in np.triu_indices(len(multiplied), 1)]
        )
    low, high = ranked[0], ranked[-1]
    return Basis(
        np.array(plain, dtype=np.int64),
        np.array(smooth, dtype=np.int64),
        pairs,
        np.array(knots).reshape(-1, N_KNOTS).T,
        low - (high - low),
        high + (high - low),
    )


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

    `kind` is that of a `Regression`; some of the classes may be missing.
    """

    def __init__(
        self, samples: FloatArray, codes: IntArray, weights: FloatArray, n_classes: int, kind: str
    ) -> None:
        from sklearn.linear_model import LogisticRegression

        self._basis = make_basis(samples, codes, weights, kind)
        columns = self._basis.columns(samples)
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
        self._columns, self._codes, self._weights = columns, codes, weights / self._unit
        n_slopes = columns.shape[1] * (1 if len(self._present) == 2 else len(self._present))
        newton = n_slopes <= MOST_FOR_NEWTON
        self._model = LogisticRegression(
            solver="newton-cholesky" if newton else "lbfgs",
            max_iter=1000,
            tol=1e-8 if newton else 1e-4,
            warm_start=True,
        )

    def columns(self, samples: FloatArray) -> FloatArray:
        """Make the columns of new samples, for `AdditiveEvidence.exponents_of_columns`."""
        columns: FloatArray = self._basis.columns(samples) - self._center
        return columns

    def fit(self, strength: float) -> AdditiveEvidence:
        """Fit with one strength, beginning where the last one ended."""
        slopes, offsets = self._fit(float(np.clip(strength * self._unit, *STRENGTHS_ALLOWED)))
        if len(self._present) == 2:
            slopes, offsets = np.vstack([-slopes, slopes]) / 2.0, np.append(-offsets, offsets) / 2.0
        if self._rotation is not None:
            slopes = slopes @ self._rotation.T
        coefficients = np.zeros((self._n_classes, len(self._scale)))
        coefficients[self._present] = slopes / self._scale
        # A class that is not there is as rare as one half of a sample.
        intercepts = np.full(self._n_classes, offsets.max() - np.log(2.0 * max(self._total, 1.0)))
        intercepts[self._present] = offsets
        return AdditiveEvidence(self._basis, self._center, coefficients, intercepts)

    def _fit(self, strength: float) -> tuple[FloatArray, FloatArray]:
        """Slopes and offsets as scikit-learn has them."""
        if self._columns.shape[1] == 0:
            logs = np.log(np.bincount(self._codes, weights=self._weights)[self._present])
            offsets = logs[1:] - logs[:1] if len(logs) == 2 else logs - logs.mean()
            return np.empty((len(offsets), 0)), offsets
        self._model.set_params(C=strength)
        with warnings.catch_warnings(), config_context(**QUICKLY):
            # What did not quite converge is judged by its held-out loss like everything else.
            warnings.simplefilter("ignore")
            self._model.fit(self._columns, self._codes, sample_weight=self._weights)
        return self._model.coef_, self._model.intercept_


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
