"""From samples and classes to an optimum-path forest, on plain arrays."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray, IntArray, SpanningTree
from popf.engine.tiles import block_size
from popf.engine.training import choose_algorithm, euclidean_tree, train, train_euclidean
from popf.engine.trees import prim
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.forest.validation import Resources


def grow_forest(
    samples: FloatArray,
    codes: IntArray,
    metric: Metric,
    resources: Resources,
    algorithm: str = "auto",
    classes: NDArray[Any] | None = None,
) -> OptimumPathForest:
    """Grow a forest.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
        Finite, C-contiguous; the distances among samples if the metric is precomputed.
    codes : ndarray of shape (n_samples,)
        The class of every sample; classes are numbered from 0, and all occur.
    metric, resources, algorithm
        What to work with; the algorithm must serve the metric.
    classes : ndarray of shape (n_classes,), optional
        The labels.
    """
    metric = metric.fitted(samples)
    metric.check(samples)
    if not metric.euclidean:
        trained = train(metric.rows(samples, resources.n_threads), codes)
        # A copy: the user may change X after the fit.
        kept = None if metric.precomputed else samples.copy()
        return OptimumPathForest(metric, codes, trained, "prim", samples=kept, classes=classes)
    algorithm, block = _plan(samples, resources, algorithm)
    trained, index = train_euclidean(
        samples, codes, algorithm, resources.n_threads, block, resources.backend
    )
    return OptimumPathForest(
        *(metric, codes, trained, algorithm),
        exponent=index.exponent,
        index=index,
        backend=resources.backend,
        classes=classes,
    )


class GrownTree(NamedTuple):
    """A spanning tree and what it was grown with."""

    tree: SpanningTree  # in the engine's unit: `metric.transform(tree.weights, exponent)` gives lengths
    metric: Metric  # fitted to the samples
    exponent: int
    algorithm: str


def grow_tree(
    samples: FloatArray, metric: Metric, resources: Resources, algorithm: str = "auto"
) -> GrownTree:
    """Grow the spanning tree alone, its edges in no particular order; parameters as for `grow_forest`."""
    metric = metric.fitted(samples)
    metric.check(samples)
    if not metric.euclidean:
        one_class = np.zeros(len(samples), dtype=np.int64)
        rows = metric.rows(samples, resources.n_threads)
        tree, _ = prim.spanning_tree(rows, len(samples), one_class)
        return GrownTree(tree, metric, 0, "prim")
    algorithm, block = _plan(samples, resources, algorithm)
    tree, exponent = euclidean_tree(
        samples, algorithm, resources.n_threads, block, resources.backend
    )
    return GrownTree(tree, metric, exponent, algorithm)


def _plan(samples: FloatArray, resources: Resources, algorithm: str) -> tuple[str, int]:
    """Choose the algorithm for Euclidean distances, and how many points make a block of a product."""
    if resources.backend is not None:
        algorithm = "brute"
    elif algorithm == "auto":
        algorithm = choose_algorithm(samples)
    return algorithm, block_size(samples.shape[1], resources.n_bytes // resources.n_threads)
