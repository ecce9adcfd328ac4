"""From samples and classes to an optimum-path forest, on plain arrays."""

from typing import Any

from numpy.typing import NDArray

from popf.engine.structures import FloatArray, IntArray
from popf.engine.tiles import block_size
from popf.engine.training import choose_algorithm, train, train_euclidean
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
    if resources.backend is not None:
        algorithm = "brute"
    elif algorithm == "auto":
        algorithm = choose_algorithm(samples)
    block = block_size(samples.shape[1], resources.n_bytes // resources.n_threads)
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
