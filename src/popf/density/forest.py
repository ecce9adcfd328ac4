"""The optimum-path forest grown from the maxima of a density.

Equal samples form one node. Nodes are sorted by class and values, so that results do not depend on the order of
the rows. A new sample is claimed by the node, among its k nearest, that offers it the best path.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Annotated, NamedTuple

import numpy as np

from popf.density.propagation import (
    NeighbourGraph,
    arcs_back,
    claim,
    densities,
    longest_arc,
    normalized_cut,
    open_density,
    propagate,
)
from popf.engine.conquest import FAR
from popf.engine.distances import refuse_weight, rows_per_block
from popf.engine.mst.neighbours import Nearest, nearest_by_scan, nearest_in_space
from popf.engine.points import distinct_distances, scale_exponent, scaled_copy, sort_by_values
from popf.engine.runtime.threads import map_chunks
from popf.engine.space_tree import SpaceTree, build_space_tree
from popf.engine.structures import FloatArray, IntArray, Resources
from popf.forest.metrics import Metric
from popf.forest.state import MetricSpec
from popf.state import Float, Integer, Sizes, StateError

# Densities of training samples are scaled to this range.
LOWEST, HIGHEST = 1.0, 1000.0
# Number of cross-validation folds for choosing the number of neighbours of a classifier.
N_FOLDS = 5


class Removal(NamedTuple):
    """Height, area and volume that a maximum of the density needs to be a root."""

    height: float = 1.0
    area: float = 1.0
    volume: float = 0.0


class Paths(NamedTuple):
    """Densities of the nodes, and their optimum paths."""

    #: The longest arc; σ is a third of it.
    longest: Annotated[float, Float(low=0.0)]
    #: Unscaled densities; no mean is below exp(-4.5).
    raw: Annotated[FloatArray, Float("n_nodes", low=0.01, high=1.0)]
    #: The lowest density on the path to each node, possibly of a root that was lowered.
    values: Annotated[FloatArray, Float("n_nodes", low=-HIGHEST, high=HIGHEST)]
    #: The root of each path.
    roots: Annotated[IntArray, Integer("n_nodes", of="n_nodes")]

    @property
    def density(self) -> FloatArray:
        """The scaled densities of the nodes."""
        return scaled(self.raw, self.raw)

    def check_state(self, sizes: Sizes) -> None:
        """Check the roots; see `popf.state`."""
        if (self.roots[self.roots] != self.roots).any():
            raise StateError("nodes that are roots themselves", "roots")


class Claims(NamedTuple):
    """The nodes that claim new samples, and the densities of the samples."""

    nodes: IntArray
    raw: FloatArray  # unscaled densities
    density: FloatArray  # scaled densities
    twins: IntArray  # the node at distance 0, -1 if there is none


class NodeIndex:
    """Nearest-neighbour search among the nodes, with a space tree if the metric is Euclidean.

    With a precomputed metric, `points` are the distances between nodes, or None if only `graph_of` is called.
    """

    def __init__(self, points: FloatArray | None, counts: IntArray, metric: Metric) -> None:
        self._points, self._counts, self._metric = points, counts, metric
        self._tree: tuple[SpaceTree, int] | None = None

    def graph(self, k: int, resources: Resources) -> NeighbourGraph:
        """Find the k nearest other samples of every node."""
        n_listed = min(k, len(self._counts) - 1)
        if n_listed == 0 or self._points is None:  # all samples are equal
            empty = np.empty((len(self._counts), 0), dtype=np.int32)
            return NeighbourGraph(empty, empty.astype(np.float64), empty, self._counts)
        found = self._nearest(self._points, True, n_listed, resources)
        return self._counted(found, self._counts - 1)

    def graph_of(self, new: FloatArray, k: int, resources: Resources) -> NeighbourGraph:
        """Find the k nearest samples of new samples; if precomputed, `new` are their distances to all nodes."""
        found = self._nearest(new, False, min(k, len(self._counts)), resources)
        return self._counted(found, np.zeros(len(new), dtype=np.int64))

    def _nearest(self, queries: FloatArray, own: bool, k: int, resources: Resources) -> Nearest:
        """Find the k nearest nodes of the queries, or with `own` of the nodes, and their distances."""
        if self._metric.euclidean and self._points is not None:
            if self._tree is None:
                exponent = scale_exponent(self._points)
                scaled = scaled_copy(self._points, exponent)
                self._tree = build_space_tree(scaled, resources.n_threads), exponent
            tree, exponent = self._tree
            scaled_queries = None
            if not own:
                with np.errstate(over="ignore"):
                    scaled_queries = scaled_copy(queries, exponent)
                # Beyond, all nodes are equally far away, and the density is 0.
                np.clip(scaled_queries, -(2.0**FAR), 2.0**FAR, out=scaled_queries)
            found = nearest_in_space(tree, scaled_queries, k, resources.n_threads)
            return found._replace(weights=self._metric.transform(found.weights, exponent))
        return nearest_by_scan(
            self._metric.blocks(queries, self._points),
            len(queries),
            k,
            own,
            rows_per_block(len(self._counts), resources.n_bytes, resources.n_threads),
            resources.n_threads,
        )

    def _counted(self, found: Nearest, copies: IntArray) -> NeighbourGraph:
        """Count the samples before each listed node, with the `copies` of each row, which are not listed."""
        listed = self._counts[found.indices]
        before = np.cumsum(listed, axis=1) - listed + copies[:, np.newaxis]
        return NeighbourGraph(found.indices, found.weights, before.astype(np.int32), self._counts)


@dataclass(eq=False)
class DensityForest:
    """A fitted forest: the nodes and their optimum paths."""

    metric: Annotated[Metric, MetricSpec()]
    #: The class of each node, 0 where there are no classes.
    node_codes: Annotated[IntArray, Integer("n_nodes")]
    #: The node of each sample.
    node_of: Annotated[IntArray, Integer("n_samples", of="n_nodes")]
    #: The samples at the nodes; None if the metric is precomputed.
    points: Annotated[FloatArray, Float("n_nodes", "n_features")] | None
    n_neighbors: Annotated[int, Integer(low=1, of="n_samples")]
    paths: Paths

    @property
    def codes(self) -> IntArray:
        """The class of each sample."""
        return self.node_codes[self.node_of]

    @cached_property
    def rows(self) -> IntArray:
        """The first sample at each node."""
        return np.unique(self.node_of, return_index=True)[1]

    @cached_property
    def labels(self) -> IntArray:
        """The cluster of each node; clusters are sorted by the density of their roots, densest first."""
        return number_clusters(self.paths)

    @cached_property
    def _index(self) -> NodeIndex:
        return NodeIndex(self.points, np.bincount(self.node_of), self.metric)

    def claim(self, new: FloatArray, resources: Resources) -> Claims:
        """Find the node that offers each new sample the best path."""
        self.metric.check(new)
        if self.metric.precomputed:
            new = np.ascontiguousarray(new[:, self.rows])
        graph = self._index.graph_of(new, self.n_neighbors, resources)
        return claim_rows(graph, self.n_neighbors, self.paths)

    def check_state(self, sizes: Sizes) -> None:
        """Check nodes, classes and what the metric needs; see `popf.state`."""
        if len(np.unique(self.node_of)) < len(self.node_codes):
            raise StateError("nodes, each with at least one sample", "node_of")
        if (self.node_codes[self.paths.roots] != self.node_codes).any():
            raise StateError("the classes of the roots", "node_codes")
        if self.metric.precomputed and len(self.node_of) != sizes["n_features"]:
            raise StateError(f"the nodes of {sizes['n_features']} samples", "node_of")
        if (self.points is None) != self.metric.precomputed:
            raise StateError("None only if the metric is precomputed", "points")
        if self.points is not None:
            self.metric.check(self.points)


class Grown(NamedTuple):
    """A forest, the graph it was grown on, and the cut or accuracy of every k that was tried."""

    forest: DensityForest
    graph: NeighbourGraph
    tried: FloatArray | None


def grow_forest(
    samples: FloatArray,
    codes: IntArray | None,
    metric: Metric,
    n_neighbors: int | None,
    max_neighbors: int,
    removal: Removal,
    resources: Resources,
) -> Grown:
    """Grow the forest of samples, with or without classes.

    If `n_neighbors` is None, choose the one with the smallest normalised cut or, with classes, the highest
    cross-validated accuracy.
    """
    metric = metric.fitted(samples)
    metric.check(samples)
    labels = np.zeros(len(samples), dtype=np.int64) if codes is None else codes
    node_of, rows = order_nodes(samples, labels, metric.precomputed)
    points = samples[np.ix_(rows, rows)] if metric.precomputed else samples[rows]
    node_codes, counts, tried = labels[rows], np.bincount(node_of), None
    k = min(n_neighbors or max_neighbors, len(samples) - 1)
    graph = NodeIndex(points, counts, metric).graph(k, resources)
    for node, place in np.argwhere(np.isinf(graph.distances)):
        refuse_weight(np.inf, f"samples {rows[node]} and {rows[graph.neighbours[node, place]]}")
    if n_neighbors is None and codes is None:
        tried, k = _cuts(graph, k, removal, resources)
    elif n_neighbors is None:
        tried = _left_out_accuracies(points, node_codes, counts, metric, k, resources)
        k = int(np.argmax(tried)) + 1 if len(tried) else 1
    paths = _grow_paths(graph, k, node_codes, removal)
    kept = None if metric.precomputed else points
    return Grown(DensityForest(metric, node_codes, node_of, kept, k, paths), graph, tried)


def order_nodes(
    samples: FloatArray, codes: IntArray, precomputed: bool
) -> tuple[IntArray, IntArray]:
    """Sort samples by class and values, and merge equal ones; return the nodes of samples and a row per node.

    With precomputed distances, samples are sorted by class and distances, and none are merged.
    """
    features = distinct_distances(samples) if precomputed else samples
    order, values = sort_by_values(chain([codes.astype(np.float64)], features.T), len(samples))
    if precomputed:
        values = np.arange(len(samples))
    node_of = np.empty(len(samples), dtype=np.int64)
    node_of[order] = values
    return node_of, order[np.flatnonzero(np.diff(values, prepend=-1))]


def scaled(raw: FloatArray, training: FloatArray) -> FloatArray:
    """Scale densities so that those of the training samples range from 1 to 1000."""
    low, high = float(training.min()), float(training.max())
    if high == low:
        return HIGHEST + (raw - high) * (HIGHEST - LOWEST)
    return LOWEST + (HIGHEST - LOWEST) * ((raw - low) / (high - low))


def number_clusters(paths: Paths) -> IntArray:
    """Return the cluster of each node, numbered by the density of the roots, densest first."""
    roots, clusters = np.unique(paths.roots, return_inverse=True)
    rank = np.empty(len(roots), dtype=np.int64)
    rank[np.argsort(-paths.raw[roots], kind="stable")] = np.arange(len(roots))
    return rank[clusters]


def claim_rows(graph: NeighbourGraph, k: int, paths: Paths) -> Claims:
    """Find the nodes that claim new samples, from the graph of their nearest nodes."""
    raw = densities(graph, k, paths.longest)
    density = scaled(raw, paths.raw)
    nodes = claim(graph, k, density, paths.values, False)
    twins = np.where(graph.distances[:, 0] == 0.0, graph.neighbours[:, 0], -1)
    return Claims(nodes, raw, density, twins)


def _grow_paths(graph: NeighbourGraph, k: int, codes: IntArray, removal: Removal) -> Paths:
    """Compute densities from the k nearest samples, and optimum paths from their maxima in each class."""
    longest = longest_arc(graph, k)
    raw = densities(graph, k, longest)
    density = scaled(raw, raw)
    level = density
    if removal.area > 1.0 or removal.volume > 0.0:
        back = arcs_back(graph, k, density, False)
        level = open_density(graph, k, density, *back, removal.area, removal.volume)
    handicapped = level - removal.height
    waiting = np.lexsort((-density, -handicapped))
    back = arcs_back(graph, k, density, True)
    values, roots = propagate(graph, k, density, handicapped, waiting, codes, *back)
    return Paths(longest, raw, values, roots)


def _cuts(
    graph: NeighbourGraph, most: int, removal: Removal, resources: Resources
) -> tuple[FloatArray, int]:
    """Compute the normalised cut for 1, 2, ... neighbours; return all, and the best number of neighbours."""
    codes = np.zeros(len(graph.counts), dtype=np.int64)

    def cut(_start: int, k: int) -> tuple[bool, float]:
        paths = _grow_paths(graph, k, codes, removal)
        labels = number_clusters(paths)
        n_clusters = int(labels.max()) + 1
        return n_clusters == 1, normalized_cut(graph, k, paths.longest, labels, n_clusters)

    found = map_chunks(cut, most, 1, resources.n_threads)
    # A single cluster, whose cut is always 0, ranks last.
    best = min(range(most), key=found.__getitem__)
    return np.array([cut for _, cut in found]), best + 1


def _left_out_accuracies(
    points: FloatArray,
    codes: IntArray,
    counts: IntArray,
    metric: Metric,
    most: int,
    resources: Resources,
) -> FloatArray:
    """Compute the cross-validated accuracy for 1, 2, ... neighbours.

    Nodes are sorted by class and values, and assigned to the folds in turn.
    """
    fold = np.arange(len(points)) % N_FOLDS
    n_others = int(counts.sum() - np.bincount(fold, counts).max())  # without the largest fold
    n_tried = max(0, min(most, n_others - 1))

    def count_correct(number: int) -> list[int]:
        out, kept = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        training = points[np.ix_(kept, kept)] if metric.precomputed else points[kept]
        new = points[np.ix_(out, kept)] if metric.precomputed else points[out]
        index = NodeIndex(training, counts[kept], metric)
        graph, new_graph = index.graph(n_tried, resources), index.graph_of(new, n_tried, resources)

        def count_with(_start: int, k: int) -> int:
            paths = _grow_paths(graph, k, codes[kept], Removal())
            nodes = claim_rows(new_graph, k, paths).nodes
            return int(counts[out][codes[kept][nodes] == codes[out]].sum())

        return map_chunks(count_with, n_tried, 1, resources.n_threads)

    correct: FloatArray = np.zeros(n_tried)
    for number in np.unique(fold) if n_tried > 0 else ():
        correct += count_correct(number)
    correct /= counts.sum()
    return correct
