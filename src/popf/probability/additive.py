"""Evidence that adds up over features: ridge logistic regressions on the features and on splines of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LINEAR, SPLINE = "linear", "spline"
#: Inverse strengths of the ridge, as scikit-learn's C.
STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
N_KNOTS, DEGREE = 5, 3
#: Up to so many parameters Newton's method is quicker than L-BFGS.
MOST_FOR_NEWTON = 300


class Basis(NamedTuple):
    """Columns made of features: some as they are, of others cubic splines that are linear beyond their knots.

    Attributes
    ----------
    plain, smooth : ndarray
        Which features are taken as they are, and which have splines.
    knots : ndarray of shape (n_knots, n_smooth)
    """

    plain: IntArray
    smooth: IntArray
    knots: FloatArray

    def columns(self, samples: FloatArray) -> FloatArray:
        """Make the columns: (n_samples, n_columns)."""
        if len(self.smooth) == 0:
            return samples[:, self.plain]
        splines = _transformer(self.knots).transform(samples[:, self.smooth])
        return np.hstack([samples[:, self.plain], splines])

    def features(self) -> IntArray:
        """Tell which feature each column is made of."""
        each = N_KNOTS + DEGREE - 2
        return np.concatenate([self.plain, np.repeat(self.smooth, each)])


class AdditiveEvidence(NamedTuple):
    """A function of the features that is a sum over them, for every class.

    Attributes
    ----------
    basis : Basis
    center : ndarray of shape (n_columns,)
        The mean of every column.
    coefficients : ndarray of shape (n_classes, n_columns)
    intercepts : ndarray of shape (n_classes,)
    """

    basis: Basis
    center: FloatArray
    coefficients: FloatArray
    intercepts: FloatArray

    def exponents(self, samples: FloatArray) -> FloatArray:
        """Exponents of the classes: (n_samples, n_classes)."""
        return self.exponents_of_columns(self.centered_columns(samples))

    def centered_columns(self, samples: FloatArray) -> FloatArray:
        """Make the columns of samples, with mean 0 among the training samples."""
        return self.basis.columns(samples) - self.center

    def exponents_of_columns(self, columns: FloatArray) -> FloatArray:
        """Exponents of the classes from centered columns."""
        exponents: FloatArray = columns @ self.coefficients.T + self.intercepts
        return exponents

    def shares(self, samples: FloatArray) -> FloatArray:
        """Split the exponents, intercepts apart, by features: (n_samples, n_features, n_classes)."""
        columns = self.centered_columns(samples)
        found = np.zeros((*samples.shape, len(self.intercepts)))
        for column, feature in enumerate(self.basis.features()):
            found[:, feature] += columns[:, column, None] * self.coefficients[:, column]
        return found


def make_basis(samples: FloatArray, kind: str) -> Basis:
    """Choose the columns: splines for features of more than two values, none for constant features."""
    distinct = [np.unique(column) for column in samples.T]
    varies = np.array([len(values) > 1 for values in distinct], dtype=bool)
    smooth = np.array([kind == SPLINE and len(values) > 2 for values in distinct], dtype=bool)
    parts = np.linspace(0.0, 1.0, N_KNOTS)
    # Quantiles of the distinct values, which lie apart however often a value is repeated.
    knots = [np.quantile(distinct[j], parts) for j in np.flatnonzero(smooth)]
    return Basis(
        np.flatnonzero(varies & ~smooth),
        np.flatnonzero(smooth),
        np.array(knots).reshape(-1, N_KNOTS).T,
    )


def fit_additive(
    samples: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    n_classes: int,
    kind: str,
    strengths: tuple[float, ...] = STRENGTHS,
) -> list[AdditiveEvidence]:
    """Fit ridge logistic regressions on standardised columns, one for each strength."""
    from sklearn.linear_model import LogisticRegression

    basis = make_basis(samples, kind)
    columns = basis.columns(samples)
    share = weights / weights.sum()
    center = share @ columns
    columns = columns - center
    scale = np.sqrt(share @ columns**2)
    scale = np.where(scale > 1e-12, scale, np.inf)
    columns = columns / scale
    present = np.unique(codes)
    rotation = None
    if columns.shape[1] > len(columns):
        # A ridge does not feel rotations: as many directions as samples hold everything.
        rotation, triangle = np.linalg.qr(columns.T)
        columns = triangle.T
    n_parameters = columns.shape[1] * (1 if len(present) == 2 else len(present))
    model = LogisticRegression(
        solver="newton-cholesky" if n_parameters <= MOST_FOR_NEWTON else "lbfgs",
        max_iter=1000,
        tol=1e-8,
        warm_start=True,
    )
    found = []
    for strength in strengths:
        model.set_params(C=strength)
        model.fit(columns, codes, sample_weight=weights)
        slopes, offsets = model.coef_, model.intercept_
        if len(present) == 2:
            slopes, offsets = np.vstack([-slopes, slopes]) / 2.0, np.append(-offsets, offsets) / 2.0
        if rotation is not None:
            slopes = slopes @ rotation.T
        coefficients = np.zeros((n_classes, len(scale)))
        coefficients[present] = slopes / scale
        # A class that is not there is as rare as one half of a sample.
        intercepts = np.full(n_classes, offsets.max() - np.log(2.0 * weights.sum()))
        intercepts[present] = offsets
        found.append(AdditiveEvidence(basis, center, coefficients, intercepts))
    return found


def _transformer(knots: FloatArray) -> Any:
    from sklearn.preprocessing import SplineTransformer

    splines = SplineTransformer(
        knots=knots, degree=DEGREE, extrapolation="linear", include_bias=False
    )
    return splines.fit(knots)
