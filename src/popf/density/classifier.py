"""The Optimum-Path Forest classifier on a nearest-neighbour graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from popf.density.base import DensityEstimator
from popf.engine.structures import FloatArray, IntArray
from popf.forest.validation import check_enough_classes, to_device_of, validate_samples
from popf.state import Float, Labels, Sizes, StateError


class KNNOPFClassifier(ClassifierMixin, DensityEstimator):  # type: ignore[misc]
    r"""Optimum-Path Forest classifier on a nearest-neighbour graph.

    The density of a sample is computed from its k nearest neighbours of any class, as in `OPFClustering`. The
    prototypes are the maxima of the density in each class. They compete for the samples of their class; the
    value of a path is the lowest density on it. A new sample t gets the class of the training sample s, among
    its k nearest, that offers the best path,

    .. math:: s^* = \arg\max_s \min\{V(s), \rho(t)\},

    where V(s) is the value of the path to s; if several tie, the nearest. The prototypes of `OPFClassifier` lie
    at the borders between classes, these at their centres.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        The number k of nearest neighbours, limited to n_samples - 1. ``"auto"`` chooses the k with the highest
        accuracy in five-fold cross-validation; if several tie, the smallest. Samples are sorted by class and
        values and assigned to the folds in turn, so nothing is random or depends on the order of the rows.
    max_neighbors : int, default=20
        The largest k that ``"auto"`` tries.
    metric, metric_params, n_jobs, working_memory
        As for `OPFClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    accuracies_ : ndarray of shape (n_tried,) or None
        The cross-validated accuracy for 1, 2, ... neighbours; None if `n_neighbors` is not ``"auto"``.
    prototypes_ : ndarray of shape (n_prototypes,)
        The indices of the prototypes.
    n_neighbors_, density_, roots_, n_features_in_, feature_names_in_
        As for `OPFClustering`; the roots are the prototypes.

    See Also
    --------
    OPFClassifier : Uses prototypes where classes meet in the minimum spanning tree.

    References
    ----------
    .. [1] J. P. Papa, A. X. Falcão, "A new variant of the optimum-path forest classifier", International
       Symposium on Visual Computing, 2008.

    Examples
    --------
    >>> from popf import KNNOPFClassifier
    >>> X = [[0.0], [1.0], [1.5], [6.0], [7.0], [7.5]]
    >>> y = ["low", "low", "low", "high", "high", "high"]
    >>> model = KNNOPFClassifier(n_neighbors=2).fit(X, y)
    >>> model.predict([[2.0], [5.0]])
    array(['low', 'high'], dtype='<U4')
    >>> model.prototypes_
    array([1, 4])
    """

    classes_: Annotated[NDArray[Any], Labels()]
    accuracies_: Annotated[FloatArray, Float("n_tried", low=0.0, high=1.0)] | None

    def __init__(
        self,
        n_neighbors: int | str = "auto",
        *,
        max_neighbors: int = 20,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        working_memory: float | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_neighbors = max_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.working_memory = working_memory

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the prototypes, and the number of neighbours if it is not given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, or the distances between them if ``metric="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type, of at least two classes.

        Returns
        -------
        self : KNNOPFClassifier
        """
        metric = self._begin()
        data = validate_samples(self, X, y, None, metric.precomputed)
        check_enough_classes(data.classes)
        found = self._grow(data.samples, data.codes, metric)
        self.classes_, self.accuracies_, self.forest_ = data.classes, found.tried, found.forest
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the label of each sample, that of the neighbour that offers it the best path.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        nodes = self._claim(X).nodes
        return to_device_of(X, self.classes_[self.forest_.node_codes[nodes]])

    @property
    def prototypes_(self) -> IntArray:
        """The indices of the prototypes."""
        check_is_fitted(self)
        return np.unique(self.roots_)

    def check_state(self, sizes: Sizes) -> None:
        """Check that all nodes belong to the classes; see `popf.state`."""
        if self.forest_.node_codes.max() >= len(self.classes_):
            raise StateError("the labels of all classes of the samples", "classes_")
