"""Forests as plain arrays, and back.

Kept are the samples, their classes, the predecessors and the ends of the spanning tree's edges. Costs and roots
follow from these, to the bit, so that no state can hold a forest that contradicts itself.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from popf.engine.points import scale_exponent, scaled_copy
from popf.engine.structures import FloatArray, Forest, IntArray, SpanningTree
from popf.engine.training import Trained
from popf.forest.metrics import choose_metric
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.forest.state import Fields

# Rows whose differences are taken together: they stay in the cache.
CHUNK_ROWS = 4096


def forest_to_arrays(forest: OptimumPathForest) -> dict[str, Any]:
    """Give what `forest_from_arrays` takes."""
    n, tree, metric = len(forest), forest.spanning_tree, forest.metric
    arrays = {
        "metric": metric.source,
        "metric_params": metric.params,
        "algorithm": forest.algorithm,
        "samples": forest.samples,
        "codes": forest.codes.astype(np.min_scalar_type(len(forest.classes))),
        "predecessors": _small(forest.predecessors, n),
        "lower": _small(tree.lower, n),
        "higher": _small(tree.higher, n),
    }
    if not metric.euclidean:
        arrays["lengths"], arrays["weights"] = forest.lengths, tree.weights
    return arrays


def forest_from_arrays(fields: Fields, classes: NDArray[Any], n_features: int) -> OptimumPathForest:
    """Check the arrays of a forest, and make it; its index is built on first use."""
    metric = choose_metric(fields.value("metric"), fields.value("metric_params"))
    algorithms = ("kd_tree", "brute", "prim") if metric.euclidean else ("prim",)
    algorithm = fields.choice("algorithm", algorithms)
    codes = fields.integers("codes", (None,), 0, len(classes) - 1)
    n = len(codes)
    if n < 2 or np.bincount(codes, minlength=len(classes)).min() == 0:
        raise fields.refuse("codes", "two samples or more, of every class at least one")
    predecessors = fields.integers("predecessors", (n,), -1, n - 1)
    inner = predecessors >= 0
    if not (codes[predecessors] == codes)[inner].all():
        raise fields.refuse("predecessors", "samples of the same class")
    lower = fields.integers("lower", (n - 1,), 0, n - 1)
    higher = fields.integers("higher", (n - 1,), 0, n - 1)
    if not ((lower < higher).all() and _is_connected(lower, higher, n)):
        raise fields.refuse("higher", "the upper ends of a tree's edges, with 'lower' the others")
    samples, exponent = None, 0
    if metric.precomputed:
        if fields.value("samples") is not None:
            raise fields.refuse("samples", "None, as the metric is precomputed")
    else:
        samples = fields.floats("samples", (n, n_features))
        metric.check(samples)
    if metric.euclidean and samples is not None:
        exponent = scale_exponent(samples)
        points = scaled_copy(samples, exponent)
        before = np.where(inner, predecessors, np.arange(n))
        lengths = _squared_distances(points, np.arange(n), before)
        weights = _squared_distances(points, lower, higher)
    else:
        lengths = np.where(inner, fields.floats("lengths", (n,), 0.0), 0.0)
        weights = fields.floats("weights", (n - 1,), 0.0)
    costs, roots = _costs_and_roots(predecessors, lengths)
    if inner[roots].any():
        raise fields.refuse("predecessors", "paths that begin at a prototype")
    trained = Trained(
        SpanningTree(lower, higher, weights), ~inner, Forest(costs, predecessors, lengths, roots)
    )
    return OptimumPathForest(
        metric, codes, trained, algorithm, exponent=exponent, samples=samples, classes=classes
    )


def read_rows(fields: Fields, n_samples: int, n_columns: int | None) -> IntArray:
    """Read which rows of X were used, None for all; with `n_columns` they pick columns of distances, too."""
    rows = np.arange(n_samples)
    if fields.value("sample_indices_") is not None:
        rows = fields.integers("sample_indices_", (n_samples,), 0, 2**62)
    if not (np.diff(rows) > 0).all() or (n_columns is not None and rows[-1] >= n_columns):
        raise fields.refuse("sample_indices_", "the rows that were used, in order")
    return rows


def _squared_distances(points: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Give the squared distances of pairs, summed feature after feature as the engine does."""
    total = np.zeros(len(first))
    for start in range(0, len(first), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        differences = points[first[rows]] - points[second[rows]]
        for column in differences.T:
            total[rows] += column * column
    return total


def _costs_and_roots(predecessors: IntArray, lengths: FloatArray) -> tuple[FloatArray, IntArray]:
    """Find where each path begins, and its largest edge, by paths of doubling length."""
    n = len(predecessors)
    roots = np.where(predecessors < 0, np.arange(n), predecessors)
    costs = lengths.copy()
    for _ in range(n.bit_length()):
        np.maximum(costs, costs[roots], out=costs)
        roots = roots[roots]
    return costs, roots


def _is_connected(lower: IntArray, higher: IntArray, n: int) -> bool:
    graph = coo_array((np.ones(n - 1, dtype=np.int8), (lower, higher)), shape=(n, n))
    n_components: int = connected_components(graph, directed=False)[0]
    return n_components == 1


def _small(indices: IntArray, n: int) -> NDArray[Any]:
    return indices.astype(np.int32) if n <= 2**31 else indices
