"""Clustering by optimum paths from the maxima of a density."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from popf.density.base import DensityEstimator
from popf.engine.structures import FloatArray, IntArray
from popf.forest.validation import to_device_of
from popf.formatting import check_real
from popf.state import Float


class OPFClustering(ClusterMixin, DensityEstimator):  # type: ignore[misc]
    r"""Clustering by an optimum-path forest on a nearest-neighbour graph.

    Every sample has arcs to its k nearest neighbours. Its density is

    .. math:: \rho(s) = \frac{1}{k} \sum_{t} \exp\left(-\frac{d(s, t)^2}{2 \sigma^2}\right),

    where σ is a third of the longest arc; densities are then scaled to the range from 1 to 1000. The maxima of
    the density are roots, and each root conquers the samples to which it offers the best path: the path whose
    lowest density is highest. The samples of a root form a cluster. Clusters can have any shape; their number
    is that of the maxima, and depends on the number of neighbours.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        The number k of nearest neighbours, limited to n_samples - 1. ``"auto"`` chooses the k whose clusters
        have the smallest normalised cut; a k that gives a single cluster is chosen only if all do.
    max_neighbors : int, default=50
        The largest k that ``"auto"`` tries.
    min_height : float, default=1.0
        How far a maximum must rise above the best path that another root offers it, on the scale from 1 to
        1000. Lower maxima join the cluster of the other root.
    min_area : float, default=1
        Minimum number of samples on a maximum, above the level at which it meets a higher one.
    min_volume : float, default=0.0
        Minimum sum of the heights of these samples above that level.
    metric, metric_params, n_jobs, working_memory
        As for `OPFClassifier`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of every sample. Clusters are numbered by the density of their roots, densest first.
    n_clusters_ : int
    density_ : ndarray of shape (n_samples,)
        The density of every sample, from 1 to 1000.
    roots_ : ndarray of shape (n_samples,)
        The root of every sample, where its path starts.
    n_neighbors_ : int
        The number of neighbours that was used.
    cuts_ : ndarray of shape (n_tried,) or None
        The normalised cut for 1, 2, ... neighbours; None if `n_neighbors` is not ``"auto"``.
    n_features_in_, feature_names_in_
        As in `OPFClassifier`.

    See Also
    --------
    OPFOutlierDetector : Outlier detection with this density.
    single_linkage : Hierarchical clustering from the minimum spanning tree.

    Notes
    -----
    Results do not depend on the order of the rows: ties are broken by the values of the samples, and equal
    samples get equal results. The normalised cut is the sum over clusters of the share of a cluster's arcs,
    weighted by 1/d, that leave the cluster. A sample that is among nobody's neighbours is a root; increase the
    number of neighbours to avoid this.

    References
    ----------
    .. [1] L. M. Rocha, F. A. M. Cappabianco, A. X. Falcão, "Data clustering as an optimum-path forest
       problem with applications in image analysis", International Journal of Imaging Systems and
       Technology 19(2), 2009.

    Examples
    --------
    >>> from popf import OPFClustering
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0], [11.0], [12.5]]
    >>> clustering = OPFClustering(n_neighbors=2).fit(X)
    >>> clustering.labels_
    array([0, 0, 0, 0, 1, 1, 1])
    >>> clustering.predict([[4.0], [9.0]])
    array([0, 1])
    """

    cuts_: Annotated[FloatArray, Float("n_tried", low=0.0)] | None

    def __init__(
        self,
        n_neighbors: int | str = "auto",
        *,
        max_neighbors: int = 50,
        min_height: float = 1.0,
        min_area: float = 1,
        min_volume: float = 0.0,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        working_memory: float | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_neighbors = max_neighbors
        self.min_height = min_height
        self.min_area = min_area
        self.min_volume = min_volume
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.working_memory = working_memory

    def check_parameters(self) -> None:
        """Check all parameters; see `popf.state`."""
        super().check_parameters()
        check_real("`min_height`", self.min_height, 0.0, strictly=True)
        check_real("`min_area`", self.min_area, 0.0)
        check_real("`min_volume`", self.min_volume, 0.0)

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, or the distances between them if ``metric="precomputed"``.
        y : ignored

        Returns
        -------
        self : OPFClustering
        """
        metric = self._begin()
        found = self._cluster(
            X,
            metric,
            height=float(self.min_height),
            area=float(self.min_area),
            volume=float(self.min_volume),
        )
        self.cuts_, self.forest_ = found.tried, found.forest
        return self

    def predict(self, X: ArrayLike) -> IntArray:
        r"""Predict the cluster of each sample, that of the neighbour that offers it the best path.

        This is the training sample s, among the k nearest, with the largest :math:`\min(V(s), \rho(t))`, where
        V(s) is the lowest density on the path to s; if several tie, the nearest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        nodes = self._claim(X).nodes
        return to_device_of(X, self.forest_.labels[nodes])

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Compute the density at each sample from its k nearest training samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            On the scale of ``density_``; less than 1 if it is lower than at every training sample.
        """
        return to_device_of(X, self._claim(X).density)

    @property
    def labels_(self) -> IntArray:
        """The cluster of every sample."""
        check_is_fitted(self)
        return self.forest_.labels[self.forest_.node_of]

    @property
    def n_clusters_(self) -> int:
        """The number of clusters."""
        check_is_fitted(self)
        return int(self.forest_.labels.max()) + 1
