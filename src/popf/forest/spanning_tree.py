"""The minimum spanning tree of samples, and single-linkage clustering from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from popf.engine.structures import FloatArray, IntArray, Resources, SpanningTree
from popf.forest.classifier import OPFClassifier
from popf.forest.validation import (
    check_precomputed,
    processor_is_faster,
    to_host,
    validate_parameters,
)

if TYPE_CHECKING:
    from popf.forest.metrics import Metric


def minimum_spanning_tree(
    X: ArrayLike,
    metric: str | Callable[..., float] = "euclidean",
    *,
    metric_params: Mapping[str, Any] | None = None,
    algorithm: str = "auto",
    n_jobs: int | None = None,
    device: str | None = None,
    working_memory: float | None = None,
) -> tuple[IntArray, FloatArray]:
    """Compute the exact minimum spanning tree of the samples, for any metric.

    Ties are broken by a fixed rule, so the tree does not depend on the algorithm, the threads or the device.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The samples, or the distances between them if ``metric="precomputed"``.
    metric, metric_params, algorithm, n_jobs, device, working_memory
        As for `OPFClassifier`.

    Returns
    -------
    edges, lengths : ndarray of shape (n_samples - 1, 2) and (n_samples - 1,)
        The two samples that each edge joins, and its length, sorted by (length, lower index, higher index).

    See Also
    --------
    single_linkage : Hierarchical clustering from this tree.

    Examples
    --------
    >>> from popf import minimum_spanning_tree
    >>> edges, lengths = minimum_spanning_tree([[0.0], [5.0], [1.0], [3.0]])
    >>> edges.tolist(), lengths.tolist()
    ([[0, 2], [1, 3], [2, 3]], [1.0, 2.0, 2.0])
    """
    tree = _sorted_tree(X, 1, metric, metric_params, algorithm, n_jobs, device, working_memory)
    return np.column_stack([tree.lower, tree.higher]), tree.weights


def single_linkage(
    X: ArrayLike,
    metric: str | Callable[..., float] = "euclidean",
    *,
    metric_params: Mapping[str, Any] | None = None,
    algorithm: str = "auto",
    n_jobs: int | None = None,
    device: str | None = None,
    working_memory: float | None = None,
) -> FloatArray:
    """Compute the single-linkage hierarchy of the samples from their minimum spanning tree.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        At least two samples, or the distances between them if ``metric="precomputed"``.
    metric, metric_params, algorithm, n_jobs, device, working_memory
        As for `OPFClassifier`.

    Returns
    -------
    ndarray of shape (n_samples - 1, 4)
        The linkage matrix of `scipy.cluster.hierarchy.linkage`: row i joins the clusters in its first two
        columns into cluster n_samples + i, at the distance in the third; the fourth counts its samples.

    See Also
    --------
    scipy.cluster.hierarchy.fcluster : Cuts the hierarchy into flat clusters.
    scipy.cluster.hierarchy.dendrogram : Draws it.

    Examples
    --------
    >>> from popf import single_linkage
    >>> single_linkage([[0.0], [5.0], [1.0], [3.0]])
    array([[0., 2., 1., 2.],
           [1., 3., 2., 2.],
           [4., 5., 2., 4.]])
    """
    from popf.engine.union_find import merge_clusters

    tree = _sorted_tree(X, 2, metric, metric_params, algorithm, n_jobs, device, working_memory)
    linkage: FloatArray = np.empty((len(tree.weights), 4))
    merge_clusters(tree, linkage)
    return linkage


def _sorted_tree(X: ArrayLike, min_samples: int, *settings: Any) -> SpanningTree:
    """Check samples and parameters; return the tree with distances as weights and sorted edges."""
    names = ("metric", "metric_params", "algorithm", "n_jobs", "device", "working_memory")
    estimator = OPFClassifier(**dict(zip(names, settings, strict=True)))
    metric, device, resources = validate_parameters(estimator, X)
    samples = check_array(
        to_host(X), dtype=np.float64, order="C", ensure_min_samples=min_samples, input_name="X"
    )
    if metric.precomputed:
        samples = check_precomputed(samples)
    if processor_is_faster(device, estimator.algorithm, samples.shape[1]):
        resources = resources._replace(backend=None)
    tree, metric, exponent, _ = grow_tree(samples, metric, resources, estimator.algorithm)
    return tree._replace(weights=metric.transform(tree.weights, exponent)).in_order()


def grow_tree(
    samples: FloatArray, metric: Metric, resources: Resources, algorithm: str = "auto"
) -> tuple[SpanningTree, Metric, int, str]:
    """Compute the spanning tree; return it with unsorted edges, the fitted metric, exponent and algorithm."""
    from popf.engine.mst import prim
    from popf.engine.training import choose_algorithm, euclidean_tree

    metric = metric.fitted(samples)
    metric.check(samples)
    if not metric.euclidean:
        one_class = np.zeros(len(samples), dtype=np.int64)
        rows = metric.rows(samples, resources.n_threads)
        tree, _ = prim.spanning_tree(rows, len(samples), one_class)
        return tree, metric, 0, "prim"
    algorithm = choose_algorithm(samples, algorithm, resources)
    tree, exponent = euclidean_tree(samples, algorithm, resources)
    return tree, metric, exponent, algorithm
