"""The optimum-path forest: growing it, conquering new samples, tracing their paths, and export."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import (
    Backend,
    Conquest,
    FloatArray,
    IntArray,
    Resources,
    SpanningTree,
    TrainingResult,
)
from popf.formatting import import_extra

if TYPE_CHECKING:
    import networkx
    import pandas

    from popf.engine.conquest import EuclideanConquest
    from popf.engine.scanned_nodes import ScannedNodes
    from popf.forest.metrics import Metric


@dataclass(frozen=True, repr=False, eq=False)
class Path:
    """The path by which a sample was conquered, from a prototype to the sample.

    Attributes
    ----------
    nodes : ndarray of shape (n_nodes,)
        Training samples, from the prototype to the conqueror.
    weights : ndarray of shape (n_nodes,)
        Lengths of the edges; the last one leads from the conqueror to the sample.
    label : object
        The label of the prototype, which is predicted for the sample.
    """

    nodes: IntArray
    weights: FloatArray
    label: Any

    @property
    def bottleneck(self) -> int:
        """The index of the largest edge: ``weights[bottleneck]`` is the cost of the path."""
        return int(np.argmax(self.weights))

    @property
    def cost(self) -> float:
        """The largest edge on the path."""
        return float(self.weights[self.bottleneck])

    def __repr__(self) -> str:
        ends = [*map(str, self.nodes[1:].tolist()), "sample"]
        steps = [f"[{self.nodes[0]}]"]
        for edge, (weight, end) in enumerate(zip(self.weights, ends, strict=True)):
            mark = "*" if edge == self.bottleneck else ""
            steps.append(f"-{weight:.4g}{mark}- {end}")
        label = self.label.item() if isinstance(self.label, np.generic) else self.label
        return f"Path({' '.join(steps)}; label {label!r}, cost {self.cost:.4g})"


class OptimumPathForest:
    """A fitted optimum-path forest.

    Attributes
    ----------
    samples : ndarray of shape (n_samples, n_features) or None
        The training samples; None if the metric is precomputed.
    labels, costs, predecessors, lengths, roots : ndarray of shape (n_samples,)
        For every sample: its label, the largest edge on the path from its prototype, its predecessor on that
        path (-1 for a prototype), the length of the edge from the predecessor (0 for a prototype), and its
        prototype.
    prototypes : ndarray of shape (n_prototypes,)
        The indices of the prototypes.
    spanning_tree : SpanningTree
        Edges in the order (weight, lower index, higher index).
    """

    def __init__(
        self,
        metric: "Metric",  # fitted to the samples
        codes: IntArray,  # the class of every sample
        trained: TrainingResult,  # with the engine's weights, see `Metric.transform`
        algorithm: str,
        *,
        exponent: int = 0,  # Euclidean weights are squared distances of samples times 2**-exponent
        samples: FloatArray | None = None,
        index: "EuclideanConquest | ScannedNodes | None" = None,  # if None, built on first use
        backend: Backend | None = None,  # the GPU for conquest, None for the CPU
        classes: NDArray[Any] | None = None,  # the labels; by default 0, 1, ...
    ) -> None:
        self.metric = metric
        self.codes = codes
        self.classes = np.arange(int(codes.max()) + 1) if classes is None else classes
        self.algorithm = algorithm
        self.exponent = exponent
        self.predecessors = trained.forest.predecessors
        self.roots = trained.forest.roots
        self.prototypes = np.flatnonzero(trained.prototypes)
        self._trained = trained
        self._samples = samples
        self._index = index
        self.backend = backend

    @cached_property
    def costs(self) -> FloatArray:
        """Path costs in the metric's unit."""
        return self.metric.transform(self._trained.forest.costs, self.exponent)

    @cached_property
    def lengths(self) -> FloatArray:
        """Lengths of the edges from the predecessors in the metric's unit."""
        return self.metric.transform(self._trained.forest.lengths, self.exponent)

    @cached_property
    def spanning_tree(self) -> SpanningTree:
        """The minimum spanning tree, its edges sorted."""
        tree = self._trained.tree
        weights = self.metric.transform(tree.weights, self.exponent)
        return tree._replace(weights=weights).in_order()

    @property
    def labels(self) -> NDArray[Any]:
        """The label of every sample."""
        return self.classes[self.codes]

    @property
    def samples(self) -> FloatArray | None:
        """The training samples; None if the metric is precomputed."""
        return self._samples if self._index is None else self._index.samples()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "backend": None}  # a GPU cannot be pickled

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"OptimumPathForest({len(self)} samples, {len(self.prototypes)} prototypes)"

    def conquer(self, new: FloatArray, resources: Resources) -> Conquest:
        """Find the nodes that conquer new samples, with path costs and distances in the metric's unit."""
        self.metric.check(new)
        conquest, exponents = self._indexed(resources).conquer(new, resources.n_threads)
        costs = self.metric.transform(conquest.costs, exponents)
        return Conquest(conquest.nodes, costs, self.metric.transform(conquest.distances, exponents))

    def costs_by_class(self, new: FloatArray, resources: Resources) -> FloatArray:
        """Compute the cost of the cheapest path from each class to new samples: (n_samples, n_classes)."""
        self.metric.check(new)
        costs, exponents = self._indexed(resources).costs_by_class(new, resources.n_threads)
        return self.metric.transform(costs, exponents)

    def costs_left_out(self) -> FloatArray:
        """Compute for each sample the cost of the cheapest path that the other samples offer it.

        This is C_v, unless the sample is a prototype. Then it is the distance to its nearest neighbour: the arc
        between them is an edge of the tree, so the path cost of the neighbour is no larger.
        """
        (lower, higher, weights), costs = self._trained.tree, self.costs.copy()
        weights, nearest = self.metric.transform(weights, self.exponent), np.full(len(self), np.inf)
        for ends in (lower, higher):
            np.minimum.at(nearest, ends, weights)
        costs[self.prototypes] = nearest[self.prototypes]
        return costs

    def explain(self, new: FloatArray, resources: Resources) -> list[Path]:
        """Trace the paths by which new samples are conquered, from the conquerors back to the prototypes."""
        conquest, paths = self.conquer(new, resources), []
        for node, distance in zip(
            conquest.nodes.tolist(), conquest.distances.tolist(), strict=True
        ):
            nodes, weights = [node], [distance]
            while self.predecessors[nodes[-1]] >= 0:
                weights.append(self.lengths[nodes[-1]])
                nodes.append(int(self.predecessors[nodes[-1]]))
            label = self.classes[self.codes[node]]
            paths.append(Path(np.array(nodes[::-1]), np.array(weights[::-1]), label))
        return paths

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a table with one row per training sample (needs pandas).

        Returns
        -------
        pandas.DataFrame
            Columns label, prototype (bool), cost, predecessor, length, root.
        """
        return import_extra("pandas", "pandas", "to_pandas").DataFrame(
            {
                "label": self.labels,
                "prototype": self.predecessors < 0,
                "cost": self.costs,
                "predecessor": self.predecessors,
                "length": self.lengths,
                "root": self.roots,
            }
        )

    def to_networkx(self) -> "networkx.DiGraph":
        """Return a graph with edges from predecessors to the samples they conquered (needs networkx).

        Returns
        -------
        networkx.DiGraph
            Nodes have label, cost, root and prototype; edges have weight.
        """
        graph = import_extra("networkx", "networkx", "to_networkx").DiGraph()
        values = self.costs.tolist(), self.roots.tolist(), (self.predecessors < 0).tolist()
        for node, label, cost, root, first in zip(
            range(len(self)), self.labels, *values, strict=True
        ):
            graph.add_node(node, label=label, cost=cost, root=root, prototype=first)
        for node in np.flatnonzero(self.predecessors >= 0).tolist():
            graph.add_edge(int(self.predecessors[node]), node, weight=float(self.lengths[node]))
        return graph

    def _indexed(self, resources: Resources) -> "EuclideanConquest | ScannedNodes":
        """Return the index for conquest, built on first use."""
        if self._index is None:
            from popf.engine.conquest import EuclideanConquest
            from popf.engine.points import distinct_points
            from popf.engine.scanned_nodes import ScannedNodes

            samples, costs = self._samples, self._trained.forest.costs
            if samples is None and not self.metric.precomputed:
                raise ValueError(
                    "this forest was built without its samples, so it cannot conquer new ones."
                )
            if samples is None or not self.metric.euclidean:
                n_bytes = resources.n_bytes
                self._index = ScannedNodes(self.metric, samples, self.codes, costs, n_bytes)
            else:
                distinct = distinct_points(samples, resources.n_threads)
                costs, resources = costs[distinct.first], resources._replace(backend=self.backend)
                self._index = EuclideanConquest(
                    distinct, self.codes, costs, self.algorithm, resources
                )
            self._samples = None  # the index holds them
        return self._index


def grow_forest(
    samples: FloatArray,
    codes: IntArray,
    metric: "Metric",
    resources: Resources,
    algorithm: str = "auto",
    classes: NDArray[Any] | None = None,
) -> OptimumPathForest:
    """Grow a forest on validated samples or distances; `codes` are indices into `classes`."""
    from popf.engine.training import choose_algorithm, train, train_euclidean

    metric = metric.fitted(samples)
    metric.check(samples)
    if not metric.euclidean:
        trained = train(metric.rows(samples, resources.n_threads), codes)
        # A copy: the user may change X after the fit.
        kept = None if metric.precomputed else samples.copy()
        return OptimumPathForest(metric, codes, trained, "prim", samples=kept, classes=classes)
    algorithm = choose_algorithm(samples, algorithm, resources)
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


def order_of_samples(samples: FloatArray, codes: IntArray) -> IntArray:
    """Return the order that sorts samples by their values, and equal ones by class."""
    from popf.engine.points import sort_by_values

    order, values = sort_by_values(samples.T, len(codes))
    return np.asarray(order[np.lexsort((codes[order], values))])


def class_margins(costs: FloatArray) -> FloatArray:
    """Compute the lowest cost of the other classes minus that of each class; for two, only the second's."""
    best, second = np.partition(costs, 1, axis=1)[:, :2].T
    others = np.where(costs == best[:, None], second[:, None], best[:, None])
    margins = np.zeros_like(costs)  # the margin of equal costs, even infinite ones
    np.subtract(others, costs, out=margins, where=others != costs)
    return margins[:, 1] if costs.shape[1] == 2 else margins
