"""The optimum-path forest of densities: grown from their maxima, it claims new samples."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.density.graph import NeighbourGraph, NodeIndex, order_nodes
from popf.density.maxima import open_density
from popf.density.propagation import (
    arcs_back,
    claim,
    densities,
    longest_arc,
    normalized_cut,
    propagate,
)
from popf.engine.backends import Resources
from popf.engine.runtime.threads import map_chunks
from popf.forest.metrics import Metric, choose_metric
from popf.forest.state import Fields

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Densities of training samples are scaled to this range.
LOWEST, HIGHEST = 1.0, 1000.0


class Removal(NamedTuple):
    """Which maxima of the density are too small to be roots."""

    height: float = 1.0
    area: float = 1.0
    volume: float = 0.0


class Paths(NamedTuple):
    """Optimum paths of the nodes: what they depend on, their values and the roots where they begin."""

    longest: float  # arc
    raw: FloatArray  # densities, not scaled
    values: FloatArray
    roots: IntArray


class Claims(NamedTuple):
    """Who claims new samples, and their densities."""

    nodes: IntArray
    raw: FloatArray  # densities, not scaled
    density: FloatArray  # scaled
    twins: IntArray  # the node at the same place, -1 if there is none


@dataclass(eq=False)
class DensityForest:
    """What is kept of a forest: nodes in an order of their own, and their paths.

    Attributes
    ----------
    metric : Metric
    points : ndarray of shape (n_nodes, n_features) or None
        None if distances are precomputed.
    node_of : ndarray of shape (n_samples,)
        The node of each sample.
    node_codes : ndarray of shape (n_nodes,)
        The class of each node, 0 where there are no classes.
    n_neighbors : int
    paths : Paths
    """

    metric: Metric
    points: FloatArray | None
    node_of: IntArray
    node_codes: IntArray
    n_neighbors: int
    paths: Paths

    @property
    def codes(self) -> IntArray:
        """The class of each sample."""
        return self.node_codes[self.node_of]

    @cached_property
    def counts(self) -> IntArray:
        """How many samples each node stands for."""
        return np.bincount(self.node_of)

    @cached_property
    def rows(self) -> IntArray:
        """The first sample at each node."""
        return np.unique(self.node_of, return_index=True)[1]

    @cached_property
    def _index(self) -> NodeIndex:
        return NodeIndex(self.points, self.counts, self.metric)

    @cached_property
    def labels(self) -> IntArray:
        """The cluster of each node; clusters are numbered by the density of their roots, the densest first."""
        return number_clusters(self.paths)

    def scaled(self, raw: FloatArray) -> FloatArray:
        """Bring densities to the scale of the training samples."""
        return scaled(raw, self.paths.raw)

    def claim(self, new: FloatArray, resources: Resources) -> Claims:
        """Find the node that offers each new sample the best path."""
        self.metric.check(new)
        if self.metric.precomputed:
            new = np.ascontiguousarray(new[:, self.rows])
        graph = self._index.graph_of(new, self.n_neighbors, resources)
        return claim_rows(graph, self.n_neighbors, self.paths)

    def to_arrays(self) -> dict[str, Any]:
        """Give what `from_arrays` takes."""
        return {
            "metric": self.metric.source,
            "metric_params": self.metric.params,
            "n_neighbors": self.n_neighbors,
            "samples": self.points,
            "node_of": self.node_of,
            "codes": self.node_codes,
            "longest": self.paths.longest,
            "densities": self.paths.raw,
            "values": self.paths.values,
            "roots": self.paths.roots,
        }

    @classmethod
    def from_arrays(cls, fields: Fields, n_features: int) -> "DensityForest":
        """Check the arrays of a forest, and make it."""
        metric = choose_metric(fields.value("metric"), fields.value("metric_params"))
        codes = fields.integers("codes", (None,), 0, 2**62)
        n_nodes = len(codes)
        node_of = fields.integers("node_of", (None,), 0, n_nodes - 1)
        if len(node_of) < 2 or len(np.unique(node_of)) < n_nodes:
            raise fields.refuse("node_of", "two samples or more, of every node at least one")
        points = None
        if metric.precomputed:
            if fields.value("samples") is not None or len(node_of) != n_features:
                raise fields.refuse("samples", "None, as the metric is precomputed")
        else:
            points = fields.floats("samples", (n_nodes, n_features))
            metric.check(points)
        roots = fields.integers("roots", (n_nodes,), 0, n_nodes - 1)
        if not ((roots[roots] == roots).all() and (codes[roots] == codes).all()):
            raise fields.refuse("roots", "nodes of the same class that are roots themselves")
        paths = Paths(
            fields.number("longest", 0.0),
            fields.floats("densities", (n_nodes,), 0.01, 1.0),  # no mean is below exp(-4.5)
            fields.floats("values", (n_nodes,), -HIGHEST, HIGHEST),
            roots,
        )
        k = fields.integer("n_neighbors", 1, len(node_of) - 1)
        return cls(metric, points, node_of, codes, k, paths)


def number_clusters(paths: Paths) -> IntArray:
    """Give clusters numbers in the order of their roots' densities, the densest first."""
    roots, clusters = np.unique(paths.roots, return_inverse=True)
    rank = np.empty(len(roots), dtype=np.int64)
    rank[np.argsort(-paths.raw[roots], kind="stable")] = np.arange(len(roots))
    return rank[clusters]


def scaled(raw: FloatArray, training: FloatArray) -> FloatArray:
    """Scale densities so that those of the training samples span the range from 1 to 1000."""
    low, high = float(training.min()), float(training.max())
    if high == low:
        return HIGHEST + (raw - high) * (HIGHEST - LOWEST)
    return LOWEST + (HIGHEST - LOWEST) * ((raw - low) / (high - low))


def grow_paths(graph: NeighbourGraph, k: int, codes: IntArray, removal: Removal) -> Paths:
    """Find densities by the k nearest samples, and the optimum paths from their maxima in each class."""
    longest = longest_arc(graph, k)
    raw = densities(graph, k, longest)
    density = scaled(raw, raw)
    level = density
    if removal.area > 1.0 or removal.volume > 0.0:
        back = arcs_back(graph, k, density, False)
        level = open_density(graph, k, density, *back, *removal[1:])
    handicapped = level - removal.height
    waiting = np.lexsort((-density, -handicapped))
    back = arcs_back(graph, k, density, True)
    values, roots = propagate(graph, k, density, handicapped, waiting, codes, *back)
    return Paths(longest, raw, values, roots)


def claim_rows(graph: NeighbourGraph, k: int, paths: Paths) -> Claims:
    """Find who claims the rows of a graph, whose neighbours are the nodes of a forest."""
    raw = densities(graph, k, paths.longest)
    density = scaled(raw, paths.raw)
    nodes = claim(graph, k, density, paths.values, False)
    twins = np.where(graph.distances[:, 0] == 0.0, graph.neighbours[:, 0], -1)
    return Claims(nodes, raw, density, twins)


def claim_nodes(graph: NeighbourGraph, k: int, paths: Paths) -> IntArray:
    """Find who would claim each node, if it were new."""
    return claim(graph, k, scaled(paths.raw, paths.raw), paths.values, True)


class Grown(NamedTuple):
    """A forest, the graph that it was grown on, and the cut for every k that was tried."""

    forest: DensityForest
    graph: NeighbourGraph
    cuts: FloatArray | None


def cluster_samples(
    samples: FloatArray,
    metric: Metric,
    n_neighbors: int | None,
    max_neighbors: int,
    removal: Removal,
    resources: Resources,
) -> Grown:
    """Grow the forest of unlabelled samples; without `n_neighbors`, that of the smallest normalised cut."""
    metric = metric.fitted(samples)
    metric.check(samples)
    n_samples = len(samples)
    node_of, rows = order_nodes(samples, np.zeros(n_samples, dtype=np.int64), metric.precomputed)
    points = samples[np.ix_(rows, rows)] if metric.precomputed else samples[rows]
    codes = np.zeros(len(rows), dtype=np.int64)
    k = min(n_neighbors or max_neighbors, n_samples - 1)
    graph = NodeIndex(points, np.bincount(node_of), metric).graph(k, resources)
    cuts = None
    if n_neighbors is None:

        def cut(start: int, stop: int) -> tuple[bool, float]:
            paths = grow_paths(graph, stop, codes, removal)
            labels = number_clusters(paths)
            n_clusters = int(labels.max()) + 1
            return n_clusters == 1, normalized_cut(graph, stop, paths.longest, labels, n_clusters)

        found = map_chunks(cut, k, 1, resources.n_threads)
        cuts = np.array([cut for _, cut in found])
        k = min(range(k), key=found.__getitem__) + 1  # one cluster has nothing to cut
    paths = grow_paths(graph, k, codes, removal)
    kept = None if metric.precomputed else points
    return Grown(DensityForest(metric, kept, node_of, codes, k, paths), graph, cuts)
