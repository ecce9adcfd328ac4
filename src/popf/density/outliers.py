"""Detection of outliers: samples with low density compared with their cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin

from popf.density.base import DensityEstimator
from popf.engine.structures import FloatArray, IntArray
from popf.forest.validation import to_device_of
from popf.formatting import check_real
from popf.state import Float

if TYPE_CHECKING:
    from popf.density.forest import DensityForest


class OPFOutlierDetector(OutlierMixin, DensityEstimator):  # type: ignore[misc]
    """Outlier detection by density, relative to the cluster of each sample.

    Samples are clustered as by `OPFClustering`. The score of a sample is its unscaled density divided by the
    median density of its cluster: that of the neighbour that offers it the best path. Thus the samples of a
    sparse cluster are not outliers just because another cluster is dense. For a cluster of at most
    ``n_neighbors_`` samples, some of whose neighbours lie outside, the median of all samples is used instead.

    Parameters
    ----------
    n_neighbors : int or "auto", default=20
        The number of nearest neighbours, limited to n_samples - 1, or ``"auto"`` as for `OPFClustering`.
    contamination : float, default=0.1
        The proportion of outliers among the training samples, at most 0.5.
    max_neighbors : int, default=50
        The largest number of neighbours that ``"auto"`` tries.
    metric, metric_params, n_jobs, working_memory
        As for `OPFClassifier`.

    Attributes
    ----------
    offset_ : float
        The threshold on the score: samples with lower scores are outliers.
    scores_ : ndarray of shape (n_samples,)
        The scores of the training samples, each computed from the others. New samples that are equal to a
        training sample get its score.
    n_neighbors_, density_, roots_, n_features_in_, feature_names_in_
        As for `OPFClustering`.

    See Also
    --------
    OPFClustering : The clustering that the scores are based on.
    sklearn.neighbors.LocalOutlierFactor : Compares the density of a sample with that of its neighbours.

    Examples
    --------
    >>> from popf import OPFOutlierDetector
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [9.0]]
    >>> detector = OPFOutlierDetector(n_neighbors=2, contamination=0.2).fit(X)
    >>> detector.predict(X)
    array([ 1,  1,  1,  1,  1, -1])
    >>> detector.score_samples([[2.5], [20.0]]).round(2)
    array([1.1, 0. ])
    """

    offset_: Annotated[float, Float()]
    scores_: Annotated[FloatArray, Float("n_samples", low=0.0)]

    def __init__(
        self,
        n_neighbors: int | str = 20,
        *,
        contamination: float = 0.1,
        max_neighbors: int = 50,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        working_memory: float | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.contamination = contamination
        self.max_neighbors = max_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.working_memory = working_memory

    def check_parameters(self) -> None:
        """Check all parameters; see `popf.state`."""
        super().check_parameters()
        check_real("`contamination`", self.contamination, 0.0, 0.5, strictly=True)

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Cluster the samples, and compute their scores and the threshold ``offset_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, or the distances between them if ``metric="precomputed"``.
        y : ignored

        Returns
        -------
        self : OPFOutlierDetector
        """
        from popf.density.propagation import claim

        metric = self._begin()
        forest, graph, _ = self._cluster(X, metric)
        paths = forest.paths
        # The node that would claim each training sample if it were new.
        nodes = claim(graph, forest.n_neighbors, paths.density, paths.values, True)
        self.scores_ = _relative_density(forest, paths.raw, nodes)[forest.node_of]
        self.offset_ = float(np.percentile(self.scores_, 100.0 * float(self.contamination)))
        self.forest_ = forest
        return self

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Compute the density of each sample relative to its cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            About 1 for a typical sample of a cluster, 0 far from all clusters.
        """
        return to_device_of(X, self._scores(X))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the score of each sample minus the threshold ``offset_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Negative for outliers.
        """
        return to_device_of(X, self._scores(X) - self.offset_)

    def predict(self, X: ArrayLike) -> IntArray:
        """Predict whether each sample is an outlier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 for outliers, 1 for inliers.
        """
        return to_device_of(X, np.where(self._scores(X) < self.offset_, -1, 1))

    def _scores(self, X: ArrayLike) -> FloatArray:
        found = self._claim(X)
        scores = _relative_density(self.forest_, found.raw, found.nodes)
        known = found.twins >= 0
        scores[known] = self.scores_[self.forest_.rows[found.twins[known]]]
        return scores


def _relative_density(forest: DensityForest, raw: FloatArray, nodes: IntArray) -> FloatArray:
    """Divide unscaled densities by the median density of the clusters of `nodes`."""
    from scipy import ndimage

    density, labels = forest.paths.raw[forest.node_of], forest.labels[forest.node_of]
    sizes = np.bincount(labels)
    medians = np.array(ndimage.median(density, labels, np.arange(len(sizes))))
    medians[sizes <= forest.n_neighbors] = np.median(density)
    relative: FloatArray = raw / medians[forest.labels[nodes]]
    return relative
