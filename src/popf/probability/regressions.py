"""Ridge logistic regressions on features, on their splines, and on products of pairs of features."""

from typing import NamedTuple

import numpy as np

from popf.engine.structures import FloatArray, IntArray
from popf.probability.basis import Basis, add_pairs, make_basis
from popf.probability.softmax import Penalty, TwoClasses, log_softmax, minimise

#: Bounds of strength times mean weight; beyond them the ridge is too strong or too weak, and solvers fail.
STRENGTHS_ALLOWED = (1e-8, 1e6)
#: Columns with a standard deviation up to this are constant, except for rounding.
MIN_DEVIATION = 1e-12
#: Maximum number of slopes for Newton's method, with two classes; beyond, L-BFGS is faster.
MAX_NEWTON_SLOPES = 300
#: L-BFGS stops when a step lowers the mean loss by less than this; the rough one is for comparing strengths
#: and for fits to many samples.
TOLERANCE, ROUGH_TOLERANCE = 1e-8, 1e-5
#: Steps of L-BFGS before it is restarted with a new scaling, and maximum number of runs.
STEPS_PER_RUN, MAX_RUNS = 50, 20
#: Maximum number of columns per class for which a rotation to uncorrelated directions saves time.
MAX_ROTATED_COLUMNS = 50
#: Maximum number of parameters for which L-BFGS is scaled by the full Hessian.
MAX_HESSIAN_SIZE = 500
#: From this number of samples on, a fit starts with a cheap fit to about N_WARM_START of them.
MANY_SAMPLES, N_WARM_START = 10_000, 5000
#: Lower bound of a sample's curvature p (1 - p), for probabilities near 0 or 1.
MIN_CURVATURE = 1e-6
#: Strength of the spline regression that pairs are to improve, and maximum number of samples for finding pairs.
STRENGTH_BEFORE_PAIRS, N_FOR_PAIRS = 0.1, 10_000


class AdditiveEvidence(NamedTuple):
    """Logits of the classes that are sums of functions of single features and of pairs."""

    basis: Basis
    center: FloatArray  # the mean of every column
    coefficients: FloatArray  # (n_classes, n_columns)
    intercepts: FloatArray

    def exponents(self, samples: FloatArray) -> FloatArray:
        """Compute the logits of the classes: (n_samples, n_classes)."""
        return self.exponents_of_columns(self.centered_columns(samples))

    def centered_columns(self, samples: FloatArray) -> FloatArray:
        """Compute the columns of samples, with mean 0 over the training samples."""
        return self.basis.columns(samples) - self.center

    def exponents_of_columns(self, columns: FloatArray) -> FloatArray:
        """Compute the logits of the classes from centered columns."""
        return columns @ self.coefficients.T + self.intercepts

    def without_intercepts(self) -> tuple["AdditiveEvidence", FloatArray]:
        """Split into a function with mean 0 over the training samples, and the intercepts."""
        return self._replace(intercepts=np.zeros_like(self.intercepts)), self.intercepts

    def shares(self, samples: FloatArray) -> FloatArray:
        """Split the logits without intercepts by feature: (n_samples, n_features, n_classes).

        Each feature of a product gets half of it.
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

    `columns` are those of the basis, and are overwritten; some of the classes may have no samples. L-BFGS stops
    when a step lowers the mean loss by less than the `tolerance`.
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
        tolerance: float = TOLERANCE,
    ) -> None:
        self._basis = basis
        share = weights / weights.sum()
        self._center = share @ columns
        columns -= self._center
        scale = np.sqrt(np.einsum("i,ij,ij->j", share, columns, columns))
        self._scale = np.where(scale > MIN_DEVIATION, scale, np.inf)
        columns /= self._scale
        self._rotation = None
        if columns.shape[1] > len(columns):
            # A ridge is invariant to rotations: the directions that the samples span are enough.
            self._rotation, triangle = np.linalg.qr(columns.T)
            columns = triangle.T
        self._present = np.unique(codes)
        self._n_classes, self._total = n_classes, float(weights.sum())
        # Only the product of weights and strength matters, so weights are scaled to mean 1.
        self._unit = float(weights.mean())
        own = np.searchsorted(self._present, codes)
        self._solver: _NewtonSolver | _LbfgsSolver
        if len(self._present) == 2 and columns.shape[1] <= MAX_NEWTON_SLOPES:
            self._solver = _NewtonSolver(columns, own, weights / self._unit)
        else:
            self._solver = _LbfgsSolver(columns, own, weights / self._unit, tolerance)

    def centered_columns(self, samples: FloatArray) -> FloatArray:
        """Compute the centered columns of new samples, for `AdditiveEvidence.exponents_of_columns`."""
        columns: FloatArray = self._basis.columns(samples) - self._center
        return columns

    def strengths_near(self, known: float) -> tuple[float, ...]:
        """Return the strengths to try if one is `known` from fewer samples: only this one."""
        return (known,)

    def begin_at(self, near: AdditiveEvidence) -> None:
        """Start the next fit from a fit to similar samples with the same basis."""
        coefficients = near.coefficients[self._present]
        slopes = coefficients * np.where(np.isfinite(self._scale), self._scale, 0.0)
        if self._rotation is not None:
            slopes = slopes @ self._rotation
        offsets = near.intercepts[self._present] + coefficients @ (self._center - near.center)
        self._solver.begin_at(np.column_stack([slopes, offsets]))

    def fit(self, strength: float) -> AdditiveEvidence:
        """Fit with one strength, starting from the last fit."""
        strength = float(np.clip(strength * self._unit, *STRENGTHS_ALLOWED))
        theta = self._solver.fit(strength)
        slopes, offsets = theta[:, :-1], theta[:, -1]
        if self._rotation is not None:
            slopes = slopes @ self._rotation.T
        coefficients = np.zeros((self._n_classes, len(self._scale)))
        coefficients[self._present] = slopes / self._scale
        # A class without samples gets about the frequency of half a sample.
        intercepts = np.full(self._n_classes, offsets.max() - np.log(2.0 * max(self._total, 1.0)))
        intercepts[self._present] = offsets
        return AdditiveEvidence(self._basis, self._center, coefficients, intercepts)


class _Data(NamedTuple):
    """Standardised columns with a last row of ones, targets of the classes, and weights."""

    rows: FloatArray  # (n_columns + 1, n_samples)
    targets: FloatArray  # (n_classes or 1, n_samples)
    weights: FloatArray

    def sample(self) -> "_Data | None":
        """Take evenly spaced samples for a warm start (they are sorted by class); None if there are few."""
        n_samples = len(self.weights)
        if n_samples < MANY_SAMPLES:
            return None
        some = slice(None, None, -(-n_samples // N_WARM_START))
        weights = self.weights[some] * (self.weights.sum() / self.weights[some].sum())
        rows, targets = np.ascontiguousarray(self.rows[:, some]), self.targets[:, some]
        return _Data(rows, np.ascontiguousarray(targets), weights)


class _NewtonSolver:
    """Solver for ridge regressions of two classes, as scikit-learn's, by Newton's method.

    Slopes and intercept of the first class are minus those of the second.
    """

    def __init__(self, columns: FloatArray, codes: IntArray, weights: FloatArray) -> None:
        rows = np.vstack([columns.T, np.ones(len(codes))])
        data = _Data(rows, codes[None].astype(np.float64), weights)
        self._subset, self._all = data.sample(), data
        self._theta = np.zeros((1, len(rows)))

    def begin_at(self, theta: FloatArray) -> None:
        """Start the next fit from slopes and intercepts: (n_classes, n_columns + 1)."""
        self._theta, self._subset = theta[1:] - theta[:1], None

    def fit(self, strength: float) -> FloatArray:
        """Return slopes and intercepts, starting from the last fit: (n_classes, n_columns + 1)."""
        ridge = np.append(np.full(self._theta.shape[1] - 1, 1.0 / strength), 0.0)
        penalty = Penalty(ridge, np.zeros_like(ridge))
        for data in (self._subset, self._all):
            if data is not None:
                rows, targets, weights = data
                problem = TwoClasses(rows[None], np.zeros(len(weights)), targets[0], weights)
                self._theta = minimise(problem, penalty, self._theta)
        self._subset = None
        return np.vstack([-self._theta, self._theta]) / 2.0


class _LbfgsSolver:
    """Solver for ridge regressions, as scikit-learn's, by L-BFGS.

    Columns are rotated to uncorrelated directions if that saves time. With many samples, or after a run of many
    steps, parameters are scaled by the full Hessian: then a few steps are enough, as with Newton's method, even
    if parameters are strongly dependent.
    """

    def __init__(
        self, columns: FloatArray, codes: IntArray, weights: FloatArray, tolerance: float
    ) -> None:
        self._tolerance = tolerance
        masses = np.bincount(codes, weights=weights)
        logs = np.log(masses)
        self._directions = None
        if columns.shape[1] <= MAX_ROTATED_COLUMNS * len(masses):
            _, self._directions = np.linalg.eigh((columns.T * weights) @ columns)
            columns = columns @ self._directions
        # For two classes the log odds of the second are fitted, for more the logits of all.
        self._two = len(masses) == 2
        classes = np.arange(len(masses))[-1:] if self._two else np.arange(len(masses))
        rows = np.vstack([columns.T, np.ones(len(codes))])
        targets = (codes == classes[:, None]).astype(np.float64)
        self._all = _Data(rows, targets, weights / weights.sum())
        self._subset, self._total = self._all.sample(), float(weights.sum())
        self._use_hessian = self._subset is not None
        self._theta = np.zeros((len(classes), len(rows)))
        self._theta[:, -1] = logs[1] - logs[0] if self._two else logs - logs.mean()
        self._started = False

    def begin_at(self, theta: FloatArray) -> None:
        """Start the next fit from slopes and intercepts: (n_classes, n_columns + 1)."""
        self._theta = theta[1:] - theta[:1] if self._two else theta.copy()
        if self._directions is not None:
            self._theta[:, :-1] = self._theta[:, :-1] @ self._directions
        self._started = True

    def fit(self, strength: float) -> FloatArray:
        """Return slopes and intercepts, starting from the last fit: (n_classes, n_columns + 1)."""
        ridge = np.full(self._theta.shape[1], 1.0 / (strength * self._total))
        ridge[-1] = 0.0
        if self._subset is not None and not self._started:
            self._minimise(self._subset, ridge)
        self._minimise(self._all, ridge)
        theta, self._started = self._theta.copy(), True
        if self._directions is not None:
            theta[:, :-1] = theta[:, :-1] @ self._directions.T
        return np.vstack([-theta, theta]) / 2.0 if self._two else theta

    def _minimise(self, data: _Data, ridge: FloatArray) -> None:
        for _ in range(MAX_RUNS):
            if self._run(data, ridge):
                break
            self._use_hessian = True

    def _run(self, data: _Data, ridge: FloatArray) -> bool:
        """Run L-BFGS, scaled to a curvature of about 1 at the start; return whether it converged."""
        from scipy.optimize import minimize

        rows, targets, weights = data
        before, scale = self._theta, self._scale(ridge)

        def moved(step: FloatArray) -> FloatArray:
            return before + _apply_scaling(scale, step).reshape(before.shape)

        def objective(step: FloatArray) -> tuple[float, FloatArray]:
            theta = moved(step)
            losses, probability = self._losses(theta @ rows, targets)
            residual = weights * (probability - targets)
            value = weights @ losses + (theta**2 @ ridge).sum() / 2.0
            return value, _apply_scaling(scale.T, (residual @ rows.T + ridge * theta).ravel())

        options = {"maxiter": STEPS_PER_RUN, "ftol": self._tolerance, "gtol": 1e-9}
        start = np.zeros(before.size)
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        self._theta = moved(found.x)
        return bool(found.nit < STEPS_PER_RUN)

    def _scale(self, ridge: FloatArray) -> FloatArray:
        """Compute the scaling that makes the curvature about 1: a factor for each parameter, or a full matrix.

        If there are many samples, it is estimated from a subset.
        """
        from scipy.linalg.lapack import dtrtri

        rows, targets, weights = self._all if self._subset is None else self._subset
        n_classes, n_columns = self._theta.shape
        _, probability = self._losses(self._theta @ rows, targets)
        if not self._use_hessian or self._theta.size > MAX_HESSIAN_SIZE:
            mean = np.maximum((probability * (1.0 - probability)).mean(axis=0), MIN_CURVATURE)
            factors = 1.0 / np.sqrt(rows**2 @ (weights * mean) + ridge)
            return np.tile(factors, n_classes)
        curvature = np.empty((n_classes, n_columns, n_classes, n_columns))
        for j in range(n_classes):
            for k in range(j + 1):
                own = weights * probability[j] * ((j == k) - probability[k])
                curvature[j, :, k] = (rows * own) @ rows.T
                curvature[k, :, j] = curvature[j, :, k].T
            curvature[j, :, j] += np.diag(ridge + MIN_CURVATURE)
        triangle = np.linalg.cholesky(curvature.reshape(self._theta.size, -1))
        inverse, _ = dtrtri(triangle, lower=1)  # several times as fast as an inverse by elimination
        return np.ascontiguousarray(inverse.T)

    def _losses(self, exponents: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute log losses, (n_rows,), and probabilities, which overwrite the exponents."""
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


def _apply_scaling(scale: FloatArray, values: FloatArray) -> FloatArray:
    """Multiply `values` by factors, or by a matrix."""
    product: FloatArray = scale * values if scale.ndim == 1 else scale @ values
    return product


def regressions_of_kind(
    kind: str,
    samples: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    n_classes: int,
    near: AdditiveEvidence | None = None,
    tolerance: float = TOLERANCE,
) -> RidgeRegressions:
    """Create regressions on the features ("linear"), on their splines ("spline"), or on splines and "pairs".

    `near` is a fit of the same kind to similar samples: its columns are reused, and its slopes are the start.
    """
    if near is None:
        basis = make_basis(samples, splines=kind != "linear")
        columns = basis.columns(samples)
        if kind == "pairs":
            basis = _find_pairs(basis, columns, samples, codes, weights, n_classes)
            columns = np.hstack([columns, basis.products(samples)])
        return RidgeRegressions(basis, columns, codes, weights, n_classes, tolerance)
    columns = near.basis.columns(samples)
    regressions = RidgeRegressions(near.basis, columns, codes, weights, n_classes, tolerance)
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
    """Add the pairs to a basis of splines that would improve a spline regression most."""
    some = slice(None, None, -(-len(codes) // N_FOR_PAIRS))  # samples are sorted by class
    columns, samples, codes, weights = columns[some], samples[some], codes[some], weights[some]
    splines = RidgeRegressions(basis, columns.copy(), codes, weights, n_classes, ROUGH_TOLERANCE)
    fitted = splines.fit(STRENGTH_BEFORE_PAIRS)
    probability = np.exp(log_softmax(fitted.exponents_of_columns(columns - fitted.center)))
    return add_pairs(basis, samples, codes, weights, probability)
