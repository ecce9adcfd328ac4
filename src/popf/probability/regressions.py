"""Evidence that adds up over features: ridge logistic regressions on them, on their splines, and on pairs."""

from typing import NamedTuple

import numpy as np

from popf.engine.structures import FloatArray, IntArray
from popf.probability.basis import Basis, add_pairs, make_basis
from popf.probability.softmax import Penalty, TwoClasses, log_softmax, minimise

#: What the strength times the mean weight may be; beyond, nothing or everything is free, and solvers fail.
STRENGTHS_ALLOWED = (1e-8, 1e6)
#: A column that varies less is constant but for rounding.
LEAST_DEVIATION = 1e-12
#: Up to so many slopes Newton's method is quicker than L-BFGS, if there are two classes.
MOST_FOR_NEWTON = 300
#: L-BFGS ends where a step lowers the mean loss by less; to compare strengths, a rougher minimum is enough.
LEAST_GAIN, ROUGHLY = 1e-8, 1e-6
#: After so many steps it begins anew, so often at most.
STEPS_AT_ONCE, MOST_BEGINNINGS = 50, 20
#: Up to so many columns for each class their uncorrelated directions cost less than they save.
MOST_DIRECTIONS = 50
#: Up to so many slopes of all classes their curvature is taken together.
MOST_TOGETHER = 500
#: From so many samples on, about so many of them begin: they come near the minimum at little cost.
MANY_SAMPLES, N_TO_BEGIN = 10_000, 5000
#: What a sample's curvature is at least, so that sure probabilities leave some.
LEAST_CURVATURE = 1e-6
#: The ridge of the splines that pairs of features are to add something to, and on how many samples at most.
STRENGTH_BEFORE_PAIRS, N_FOR_PAIRS = 0.1, 10_000


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


class RidgeRegressions:
    """Ridge logistic regressions on the standardised columns of samples, for any strength.

    `columns` are those of the basis; some of the classes may be missing. With many slopes a fit ends where a
    step lowers the mean loss by less than `least_gain`.
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
        least_gain: float = LEAST_GAIN,
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
        self._solver: _ByNewton | _ByGradients
        if len(self._present) == 2 and columns.shape[1] <= MOST_FOR_NEWTON:
            self._solver = _ByNewton(columns, own, weights / self._unit)
        else:
            self._solver = _ByGradients(columns, own, weights / self._unit, least_gain)

    def centered_columns(self, samples: FloatArray) -> FloatArray:
        """Make the columns of new samples, for `AdditiveEvidence.exponents_of_columns`."""
        columns: FloatArray = self._basis.columns(samples) - self._center
        return columns

    def begin_at(self, near: AdditiveEvidence) -> None:
        """Let the next fit begin at one to similar samples, with the same basis."""
        coefficients = near.coefficients[self._present]
        slopes = coefficients * np.where(np.isfinite(self._scale), self._scale, 0.0)
        if self._rotation is not None:
            slopes = slopes @ self._rotation
        offsets = near.intercepts[self._present] + coefficients @ (self._center - near.center)
        self._solver.begin_at(np.column_stack([slopes, offsets]))

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


class _Data(NamedTuple):
    """Standardised columns and a last row of ones, targets of the classes, and weights."""

    rows: FloatArray  # (n_columns + 1, n_samples)
    targets: FloatArray  # (n_classes or 1, n_samples)
    weights: FloatArray

    def sample(self) -> "_Data | None":
        """Take some of many samples, which are sorted by class, at even steps; None if there are not many."""
        n_samples = len(self.weights)
        if n_samples < MANY_SAMPLES:
            return None
        some = slice(None, None, -(-n_samples // N_TO_BEGIN))
        weights = self.weights[some] * (self.weights.sum() / self.weights[some].sum())
        rows, targets = np.ascontiguousarray(self.rows[:, some]), self.targets[:, some]
        return _Data(rows, np.ascontiguousarray(targets), weights)


class _ByNewton:
    """Ridge regressions of two classes, as scikit-learn's, by Newton's method.

    The first of the classes has minus the slopes and the intercept of the second.
    """

    def __init__(self, columns: FloatArray, codes: IntArray, weights: FloatArray) -> None:
        rows = np.vstack([columns.T, np.ones(len(codes))])
        data = _Data(rows, codes[None].astype(np.float64), weights)
        self._some, self._all = data.sample(), data
        self._theta = np.zeros((1, len(rows)))

    def begin_at(self, theta: FloatArray) -> None:
        """Begin at slopes and intercepts: (n_classes, n_columns + 1)."""
        self._theta, self._some = theta[1:] - theta[:1], None

    def fit(self, strength: float) -> FloatArray:
        """Slopes and intercepts, beginning where the last fit ended: (n_classes, n_columns + 1)."""
        ridge = np.append(np.full(self._theta.shape[1] - 1, 1.0 / strength), 0.0)
        penalty = Penalty(ridge, np.zeros_like(ridge))
        for data in (self._some, self._all):
            if data is not None:
                rows, targets, weights = data
                log_odds = TwoClasses(rows[None], np.zeros(len(weights)), targets[0], weights)
                self._theta = minimise(log_odds, penalty, self._theta)
        self._some = None
        return np.vstack([-self._theta, self._theta]) / 2.0


class _ByGradients:
    """Ridge regressions, as scikit-learn's, by L-BFGS, where it pays along uncorrelated directions.

    Where that takes many steps, they are scaled by the whole curvature: then a few are enough, as by Newton's
    method, whatever depends on what.
    """

    def __init__(
        self, columns: FloatArray, codes: IntArray, weights: FloatArray, least_gain: float
    ) -> None:
        self._least_gain = least_gain
        masses = np.bincount(codes, weights=weights)
        logs = np.log(masses)
        self._directions = None
        if columns.shape[1] <= MOST_DIRECTIONS * len(masses):
            _, self._directions = np.linalg.eigh((columns.T * weights) @ columns)
            columns = columns @ self._directions
        # Of two classes the log odds of the second are fitted, of more the exponents of all.
        self._two = len(masses) == 2
        classes = np.arange(len(masses))[-1:] if self._two else np.arange(len(masses))
        rows = np.vstack([columns.T, np.ones(len(codes))])
        targets = (codes == classes[:, None]).astype(np.float64)
        self._all = _Data(rows, targets, weights / weights.sum())
        self._some, self._total = self._all.sample(), float(weights.sum())
        self._together = self._some is not None
        self._theta = np.zeros((len(classes), len(rows)))
        self._theta[:, -1] = logs[1] - logs[0] if self._two else logs - logs.mean()
        self._begun = False

    def begin_at(self, theta: FloatArray) -> None:
        """Begin at slopes and intercepts: (n_classes, n_columns + 1)."""
        self._theta = theta[1:] - theta[:1] if self._two else theta.copy()
        if self._directions is not None:
            self._theta[:, :-1] = self._theta[:, :-1] @ self._directions
        self._begun = True

    def fit(self, strength: float) -> FloatArray:
        """Slopes and intercepts, beginning where the last fit ended: (n_classes, n_columns + 1)."""
        ridge = np.full(self._theta.shape[1], 1.0 / (strength * self._total))
        ridge[-1] = 0.0
        if self._some is not None and not self._begun:
            self._minimise(self._some, ridge)
        self._minimise(self._all, ridge)
        theta, self._begun = self._theta.copy(), True
        if self._directions is not None:
            theta[:, :-1] = theta[:, :-1] @ self._directions.T
        return np.vstack([-theta, theta]) / 2.0 if self._two else theta

    def _minimise(self, data: _Data, ridge: FloatArray) -> None:
        for _ in range(MOST_BEGINNINGS):
            if self._improve(data, ridge):
                break
            self._together = True

    def _improve(self, data: _Data, ridge: FloatArray) -> bool:
        """Take some steps, scaled so that the curvature is about 1 now; tell whether they were enough."""
        from scipy.optimize import minimize

        rows, targets, weights = data
        before, scale = self._theta, self._scale(ridge)

        def moved(step: FloatArray) -> FloatArray:
            return before + _times(scale, step).reshape(before.shape)

        def objective(step: FloatArray) -> tuple[float, FloatArray]:
            theta = moved(step)
            losses, probability = self._losses(theta @ rows, targets)
            residual = weights * (probability - targets)
            value = weights @ losses + (theta**2 @ ridge).sum() / 2.0
            return value, _times(scale.T, (residual @ rows.T + ridge * theta).ravel())

        options = {"maxiter": STEPS_AT_ONCE, "ftol": self._least_gain, "gtol": 1e-9}
        start = np.zeros(before.size)
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        self._theta = moved(found.x)
        return bool(found.nit < STEPS_AT_ONCE)

    def _scale(self, ridge: FloatArray) -> FloatArray:
        """Find what makes the curvature about 1: a factor for each slope, or a matrix for all together.

        Some of many samples are enough to estimate it.
        """
        rows, targets, weights = self._all if self._some is None else self._some
        n_classes, n_columns = self._theta.shape
        _, probability = self._losses(self._theta @ rows, targets)
        if not self._together or self._theta.size > MOST_TOGETHER:
            mean = np.maximum((probability * (1.0 - probability)).mean(axis=0), LEAST_CURVATURE)
            factors = 1.0 / np.sqrt(rows**2 @ (weights * mean) + ridge)
            return np.tile(factors, n_classes)
        curvature = np.empty((n_classes, n_columns, n_classes, n_columns))
        for j in range(n_classes):
            for k in range(j + 1):
                own = weights * probability[j] * ((j == k) - probability[k])
                curvature[j, :, k] = (rows * own) @ rows.T
                curvature[k, :, j] = curvature[j, :, k].T
            curvature[j, :, j] += np.diag(ridge + LEAST_CURVATURE)
        triangle = np.linalg.cholesky(curvature.reshape(self._theta.size, -1))
        return np.ascontiguousarray(np.linalg.inv(triangle).T)

    def _losses(self, exponents: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log losses, and probabilities in place of the exponents: (n_rows,) and as the exponents."""
        wanted = (targets * exponents).sum(axis=0)
        top = exponents.max(axis=0)
        if self._two:
            top = np.maximum(top, 0.0)
        probability = np.exp(exponents - top, out=exponents)
        total = probability.sum(axis=0)
        if self._two:
            total += np.exp(-top)
        probability /= total
        return np.log(total) + top - wanted, probability


def _times(scale: FloatArray, values: FloatArray) -> FloatArray:
    """Multiply by factors, or by a matrix."""
    product: FloatArray = scale * values if scale.ndim == 1 else scale @ values
    return product


def regressions_of_kind(
    kind: str,
    samples: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    n_classes: int,
    near: AdditiveEvidence | None = None,
    least_gain: float = LEAST_GAIN,
) -> RidgeRegressions:
    """Prepare regressions on the features ("linear"), on splines of them ("spline"), or also on "pairs".

    `near` is a fit of that kind to similar samples: its columns are taken, and its slopes to begin with.
    """
    if near is None:
        basis = make_basis(samples, splines=kind != "linear")
        columns = basis.columns(samples)
        if kind == "pairs":
            basis = _find_pairs(basis, columns, samples, codes, weights, n_classes)
            columns = np.hstack([columns, basis.products(samples)])
        return RidgeRegressions(basis, columns, codes, weights, n_classes, least_gain)
    columns = near.basis.columns(samples)
    regressions = RidgeRegressions(near.basis, columns, codes, weights, n_classes, least_gain)
    regressions.begin_at(near)
    return regressions


def _find_pairs(
    basis: Basis,
    columns: FloatArray,
    samples: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    n_classes: int,
) -> Basis:
    """Add pairs to a basis of splines, by what these leave to explain."""
    some = slice(None, None, -(-len(codes) // N_FOR_PAIRS))  # of samples sorted by class
    columns, samples, codes, weights = columns[some], samples[some], codes[some], weights[some]
    splines = RidgeRegressions(basis, columns, codes, weights, n_classes, ROUGHLY)
    fitted = splines.fit(STRENGTH_BEFORE_PAIRS)
    probability = np.exp(log_softmax(fitted.exponents_of_columns(columns - fitted.center)))
    return add_pairs(basis, samples, codes, weights, probability)
