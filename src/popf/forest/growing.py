"""From samples and classes to an optimum-path forest, on plain arrays."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.backends import Resources
from popf.engine.points import sort_by_values
from popf.engine.structures import FloatArray, Forest, IntArray, SpanningTree
from popf.engine.training import (
    Trained,
    choose_algorithm,
    euclidean_tree,
    train,
    train_euclidean,
)
from popf.engine.trees import prim
from popf.engine.trees.competition import compete
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest


def grow_forest(
    samples: FloatArray,
    codes: IntArray,
    metric: Metric,
    resources: Resources,
    algorithm: str = "auto",
    classes: NDArray[Any] | None = None,
) -> OptimumPathForest:
    """Grow a forest on samples, or on the distances among them if the metric is precomputed.

    They are finite and C-contiguous; `codes` numbers their classes from 0, and `classes` are the labels. The
    algorithm must serve the metric.
    """
    metric = metric.fitted(samples)
    metric.check(samples)
    if not metric.euclidean:
        trained = train(metric.rows(samples, resources.n_threads), codes)
        # A copy: the user may change X after the fit.
        kept = None if metric.precomputed else samples.copy()
        return OptimumPathForest(metric, codes, trained, "prim", samples=kept, classes=classes)
    algorithm = settle_algorithm(samples, resources, algorithm)
    trained, index = train_euclidean(samples, codes, algorithm, resources)
    return OptimumPathForest(
        metric,
        codes,
        trained,
        algorithm,
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
    algorithm = settle_algorithm(samples, resources, algorithm)
    tree, exponent = euclidean_tree(samples, algorithm, resources)
    return GrownTree(tree, metric, exponent, algorithm)


def settle_algorithm(samples: FloatArray, resources: Resources, algorithm: str) -> str:
    """Replace "auto" by the algorithm that suits Euclidean distances; a GPU takes products."""
    if resources.backend is not None:
        return "brute"
    return choose_algorithm(samples) if algorithm == "auto" else algorithm


def spread_labels(
    samples: FloatArray,
    codes: IntArray,
    metric: Metric,
    resources: Resources,
    algorithm: str = "auto",
    classes: NDArray[Any] | None = None,
) -> OptimumPathForest:
    """Grow a forest whose prototypes are the labelled samples; parameters as for `grow_forest`.

    The code of an unlabelled sample is -1. The tree is grown on the samples in an order of their own, so that
    ties do not fall to the order of the rows.
    """
    labelled = codes >= 0
    last = np.where(labelled, codes, codes.max() + 1)  # unlabelled samples after labelled ones
    if metric.precomputed:
        order = _order_by_distances(samples, last)
        sorted_samples = samples[np.ix_(order, order)]
    else:
        order = order_of_samples(samples, last)
        sorted_samples = samples[order]
    tree, metric, exponent, algorithm = grow_tree(sorted_samples, metric, resources, algorithm)
    found = compete(tree, labelled[order], np.arange(len(codes)), resources.n_threads)
    back = np.argsort(order)  # where each row stands in the order
    named = np.append(order, -1)  # a predecessor of -1 stays -1
    roots = order[found.roots[back]]
    forest = Forest(found.costs[back], named[found.predecessors[back]], found.lengths[back], roots)
    tree = SpanningTree(order[tree.lower], order[tree.higher], tree.weights)
    return OptimumPathForest(
        metric,
        codes[roots],
        Trained(tree, labelled, forest),
        algorithm,
        exponent=exponent,
        samples=None if metric.precomputed else samples.copy(),
        backend=resources.backend,
        classes=classes,
    )


def order_of_samples(samples: FloatArray, codes: IntArray) -> IntArray:
    """Sort samples by their values, equal ones by their class."""
    order, values = sort_by_values(samples.T, len(codes))
    by_class: IntArray = order[np.lexsort((codes[order], values))]
    return by_class


def _order_by_distances(D: FloatArray, groups: IntArray) -> IntArray:
    """Sort samples by their group and their sorted distances to each group, which makes smaller groups."""
    while True:
        parts = [np.sort(D[:, groups == group], axis=1) for group in np.unique(groups)]
        order, values = sort_by_values(np.hstack([groups[:, None], *parts]).T, len(D))
        if values[-1] in (groups.max(), len(D) - 1):  # no smaller, or all apart
            return order
        groups = np.empty_like(values)
        groups[order] = values
