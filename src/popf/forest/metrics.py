"""Distance metrics: from the parameters `metric` and `metric_params` to weights for the engine."""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from popf.engine.distances import KERNELS, WeightsAmong, WeightsFrom, kernel_blocks, kernel_rows
from popf.engine.structures import BlockOfDistances, FloatArray, IntArray
from popf.formatting import check_real, near_words

# Other names for the same formula, among them scikit-learn's names for metrics in `KERNELS`.
ALIASES = {
    "l2": "euclidean",
    "log_squared_euclidean": "log_euclidean",
    "squared_euclidean": "sqeuclidean",
    "cityblock": "manhattan",
    "l1": "manhattan",
    "braycurtis": "bray_curtis",
    "chi_squared": "chi_square",
    "squared_chi_squared": "squared_chi_square",
    "infinity": "chebyshev",
    "p": "minkowski",
}

# Increasing functions of the Euclidean distance, see `_Euclidean.transform`.
EUCLIDEAN_TRANSFORMS = ("euclidean", "gaussian", "log_euclidean", "sqeuclidean")

#: Distances from a callable that are negative by at most this count as 0: rounding makes 1 - cos(x, x)
#: negative for many x.
ROUNDING = 1e-12

SKLEARN_METRICS = (
    *("dice", "haversine", "jaccard", "kulsinski", "mahalanobis", "matching", "minkowski"),
    *("rogerstanimoto", "russellrao", "seuclidean", "sokalmichener", "sokalsneath"),
)

METRIC_NAMES = tuple(
    sorted({*EUCLIDEAN_TRANSFORMS, *KERNELS, *SKLEARN_METRICS, *ALIASES, "precomputed"})
)


class Metric(ABC):
    """A distance between samples."""

    # Whether the engine's weights are squared Euclidean distances, so that fast algorithms apply.
    euclidean = False
    precomputed = False  # X is a matrix of distances
    learns_parameters = False  # `fitted` estimates them from the training data

    def __init__(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        self.name = name  # as in `METRIC_NAMES`, with aliases resolved
        # ``choose_metric(source, params)`` recreates this metric, with its learned parameters.
        self.source: str | Callable[..., Any] = name
        self.params = dict(params or {})

    def fitted(self, X: FloatArray) -> "Metric":
        """Return the metric with those parameters that are estimated from the training data."""
        return self

    def check(self, X: FloatArray) -> None:  # noqa: B027, most metrics accept all finite numbers
        """Raise ValueError if `X` lies outside the domain of the metric."""

    def transform(self, weights: FloatArray, exponent: int | IntArray = 0) -> FloatArray:
        """Convert the engine's weights to distances.

        Euclidean weights are squared distances between samples times ``2**-exponent``.
        """
        return weights

    @abstractmethod
    def rows(self, X: FloatArray, n_threads: int = 1) -> WeightsAmong:
        """Return a function that computes weights between training samples, for Prim's algorithm."""

    @abstractmethod
    def blocks(self, queries: FloatArray, training: Any) -> BlockOfDistances:
        """Return a function that computes blocks of weights from new to training samples, for conquest."""


class _Compiled(Metric):
    """A compiled metric, one of `popf.engine.distances.KERNELS`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.kernel = name

    def check(self, X: FloatArray) -> None:
        kernel = KERNELS[self.kernel]
        if kernel.non_negative and (X < 0.0).any():
            row, column = np.argwhere(X < 0.0)[0]
            raise ValueError(
                f"Negative values in data: metric {self.name!r}, {kernel.formula}, needs non-negative "
                f"features, but X[{row}, {column}] is {X[row, column]}. Shift or scale the features "
                "(sklearn.preprocessing.MinMaxScaler), or choose a metric such as 'manhattan'."
            )
        if kernel.positive_mass and not X.any(axis=1).all():
            row = np.flatnonzero(~X.any(axis=1))[0]
            raise ValueError(
                f"metric {self.name!r}, {kernel.formula}, would divide by 0: all features of X[{row}] are 0. "
                "Drop the sample, or choose a metric such as 'squared_chi_square' or 'manhattan'."
            )

    def rows(self, X: FloatArray, n_threads: int = 1) -> WeightsAmong:
        return kernel_rows(self.kernel, X, n_threads)

    def blocks(self, queries: FloatArray, training: Any) -> BlockOfDistances:
        return kernel_blocks(self.kernel, queries, training)


class _Euclidean(_Compiled):
    """An increasing function of the Euclidean distance; the weights are squared distances.

    The forest is the same for all of them, only its costs differ.
    """

    euclidean = True

    def __init__(self, name: str, gamma: float = 1.0) -> None:
        super().__init__(name)
        self.kernel = "sqeuclidean"
        self.gamma = gamma
        if name == "gaussian":
            self.params = {"gamma": gamma}

    def transform(self, weights: FloatArray, exponent: int | IntArray = 0) -> FloatArray:
        with np.errstate(over="ignore", under="ignore"):  # overflow gives inf, underflow 0
            if self.name == "euclidean":  # root first: the scaled square may be out of range
                return np.asarray(np.ldexp(np.sqrt(weights), exponent))
            squared: FloatArray = np.ldexp(weights, 2 * exponent)
            if self.name == "sqeuclidean":
                return squared
            if self.name == "log_euclidean":  # LibOPF's default
                return 1e5 * np.log1p(squared)
            # LibOPF's Gaussian "distance", exp(-gamma d), is largest for equal samples; this is its complement.
            return -np.expm1(-self.gamma * np.sqrt(squared))


class _Sklearn(Metric):
    """A metric of `sklearn.metrics.DistanceMetric`."""

    def __init__(self, name: str, params: Mapping[str, Any]) -> None:
        super().__init__(name, params)
        self.learns_parameters = name in ("seuclidean", "mahalanobis") and not params
        if self.learns_parameters:
            return
        from sklearn.metrics import DistanceMetric  # here, because that takes 50 ms

        try:
            self._distance = DistanceMetric.get_metric(name, **params)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"metric {name!r} does not take `metric_params={dict(params)!r}`: {error}. See "
                "sklearn.metrics.DistanceMetric for the parameters of each metric."
            ) from error

    def fitted(self, X: FloatArray) -> Metric:
        """Estimate V or VI from the training data, as scikit-learn's `pairwise_distances` does."""
        if not self.learns_parameters:
            return self
        if self.name == "seuclidean":
            variance = np.var(X, axis=0, ddof=1) if len(X) > 1 else np.zeros(X.shape[1])
            # A constant feature has no unit, and tells no samples apart: it has no influence.
            largest = np.finfo(np.float64).max
            return _Sklearn(self.name, {"V": np.where(variance > 0.0, variance, largest)})
        covariance = np.atleast_2d(np.cov(X.T))
        if np.linalg.matrix_rank(covariance, hermitian=True) < len(covariance):
            raise ValueError(
                "metric 'mahalanobis' needs the inverse of the covariance of the features, but it "
                f"is singular for these {X.shape[0]} samples of {X.shape[1]} features. Drop "
                "redundant features, or pass an inverse as metric_params={'VI': ...}."
            )
        return _Sklearn(self.name, {"VI": np.ascontiguousarray(np.linalg.inv(covariance).T)})

    def check(self, X: FloatArray) -> None:
        if self.name == "haversine" and X.shape[1] != 2:
            raise ValueError(
                "metric 'haversine' needs two features, latitude and longitude in radians, but X has "
                f"{X.shape[1]}."
            )
        for name in ("V", "VI", "w"):
            size = np.shape(self.params.get(name, 0.0))
            if size and size[-1] != X.shape[1]:
                raise ValueError(
                    f"metric {self.name!r} was given {name} of shape {size} in `metric_params`, but X "
                    f"has {X.shape[1]} features: give one entry per feature."
                )

    def rows(self, X: FloatArray, n_threads: int = 1) -> WeightsAmong:
        # scikit-learn holds the GIL, so threads do not help.
        def among(others: IntArray) -> WeightsFrom:
            points = X[others]
            return lambda i: self._pairwise(X[i : i + 1], points)[0]

        return among

    def blocks(self, queries: FloatArray, training: Any) -> BlockOfDistances:
        return lambda start, stop: self._pairwise(queries[start:stop], training)

    def _pairwise(self, queries: FloatArray, others: FloatArray) -> FloatArray:
        found: FloatArray = np.asarray(self._distance.pairwise(queries, others))
        if self.name in ("dice", "sokalsneath"):
            found[np.isnan(found)] = 0.0  # 0 / 0: all features of both samples are 0
        return found


class _Callable(Metric):
    """A function ``d(x, y)`` of the user.

    It may be slightly asymmetric, so x is always the sample with the lower index, and y the new sample.
    """

    def __init__(self, function: Callable[..., Any], params: Mapping[str, Any]) -> None:
        super().__init__(getattr(function, "__name__", type(function).__name__), params)
        self.source = self.function = function

    def rows(self, X: FloatArray, n_threads: int = 1) -> WeightsAmong:
        def row(i: int, others: IntArray) -> FloatArray:
            ends = [(i, j) if i < j else (j, i) for j in others.tolist()]
            return np.array([self._weight(X[a], X[b]) for a, b in ends])

        return lambda others: lambda i: row(i, others)

    def blocks(self, queries: FloatArray, training: Any) -> BlockOfDistances:
        return lambda start, stop: np.array(
            [[self._weight(node, new) for node in training] for new in queries[start:stop]]
        )

    def _weight(self, x: FloatArray, y: FloatArray) -> float:
        """Call the function and check the type; the engine checks for negative and non-finite distances."""
        weight = self.function(x, y, **self.params)
        if isinstance(weight, np.ndarray) and weight.ndim == 0:
            weight = weight.item()
        if not isinstance(weight, numbers.Real | np.bool_):
            shape = f" of shape {np.shape(weight)}" if isinstance(weight, np.ndarray) else ""
            raise TypeError(
                f"metric {self.name!r} returned {weight!r}, a {type(weight).__name__}{shape}; it must "
                "return one number, the distance between two samples."
            )
        distance = float(weight)
        return 0.0 if -ROUNDING <= distance < 0.0 else distance


class _Precomputed(Metric):
    """Distances computed by the user; X is the matrix of distances."""

    precomputed = True

    def rows(self, X: FloatArray, n_threads: int = 1) -> WeightsAmong:
        return lambda others: lambda i: X[i].take(others)

    def blocks(self, queries: FloatArray, training: Any) -> BlockOfDistances:
        return lambda start, stop: queries[start:stop]


def choose_metric(
    metric: str | Callable[..., float], metric_params: Mapping[str, Any] | None = None
) -> Metric:
    """Return the metric for the parameters `metric` and `metric_params` of an estimator."""
    if metric_params is not None and not isinstance(metric_params, Mapping):
        raise TypeError(
            f"`metric_params` must be a dict or None, not {metric_params!r}, "
            f"a {type(metric_params).__name__}."
        )
    params = dict(metric_params or {})
    if not isinstance(metric, str):
        if not callable(metric):
            raise TypeError(
                f"`metric` must be a name or a function d(x, y) of two samples, not {metric!r}, "
                f"a {type(metric).__name__}."
            )
        return _Callable(metric, params)
    name = ALIASES.get(metric, metric)
    if name not in METRIC_NAMES:
        hint = near_words(metric.replace("-", "_"), METRIC_NAMES)
        raise ValueError(
            f"unknown metric {metric!r}{hint} Choose one of {', '.join(METRIC_NAMES)}, or pass a "
            "function d(x, y) of two samples."
        )
    if name == "minkowski" and params.get("w") is None and params.get("p", 2) == 2:
        name = "euclidean"
        params = {key: value for key, value in params.items() if key not in ("p", "w")}
    if name in SKLEARN_METRICS:
        return _Sklearn(name, params)
    gamma = 1.0
    if name == "gaussian":
        gamma = params.pop("gamma", gamma)
        check_real("gamma", gamma, 0.0, strictly=True)
    if params:
        raise ValueError(
            f"metric {metric!r} does not take {', '.join(map(repr, params))}: leave it out of "
            "`metric_params`."
        )
    if name in EUCLIDEAN_TRANSFORMS:
        return _Euclidean(name, float(gamma))
    return _Precomputed(name) if name == "precomputed" else _Compiled(name)
