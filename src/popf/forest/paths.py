"""Fitted forests as objects a person can look at."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import SpanningTree

if TYPE_CHECKING:
    import networkx
    import pandas

__all__ = ["Conquest", "OptimumPathForest", "Path", "SpanningTree"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Conquest(NamedTuple):
    """Who conquered some samples, and at what cost.

    Attributes
    ----------
    nodes : ndarray of shape (n_samples,)
        The training sample that conquered each of them.
    costs : ndarray of shape (n_samples,)
        The cost of the path by which it did, ``max(costs_[node], distance to node)``.
    """

    nodes: IntArray
    costs: FloatArray


class Path:
    """The path by which a sample was conquered, from a prototype to the sample.

    Attributes
    ----------
    nodes : ndarray of shape (n_nodes,)
        Training samples, from the prototype to the conqueror.
    weights : ndarray of shape (n_nodes,)
        Lengths of the edges; the last one leads from the conqueror to the sample.
    label : object
        The label of the prototype, which the sample takes.
    """

    def __init__(self, nodes: IntArray, weights: FloatArray, label: Any) -> None:
        self.nodes = nodes
        self.weights = weights
        self.label = label

    @property
    def bottleneck(self) -> int:
        """Which edge is the largest: ``weights[bottleneck]`` is the cost of the path."""
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
    """An optimum-path forest on its training samples.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The label of every sample.
    costs : ndarray of shape (n_samples,)
        The largest edge on the path from its prototype.
    predecessors : ndarray of shape (n_samples,)
        The sample before it on that path, -1 for a prototype.
    lengths : ndarray of shape (n_samples,)
        The length of the edge from the predecessor, 0 for a prototype.
    roots : ndarray of shape (n_samples,)
        Its prototype.
    """

    def __init__(
        self,
        labels: NDArray[Any],
        costs: FloatArray,
        predecessors: IntArray,
        lengths: FloatArray,
        roots: IntArray,
    ) -> None:
        self.labels = labels
        self.costs = costs
        self.predecessors = predecessors
        self.lengths = lengths
        self.roots = roots

    def __len__(self) -> int:
        return len(self.costs)

    def __repr__(self) -> str:
        n_trees = int((self.predecessors < 0).sum())
        return f"OptimumPathForest({len(self)} samples, {n_trees} prototypes)"

    def path(self, node: int) -> tuple[IntArray, FloatArray]:
        """Trace the path from the prototype of a training sample to that sample.

        Parameters
        ----------
        node : int
            A training sample.

        Returns
        -------
        nodes : ndarray
            From the prototype to `node`.
        weights : ndarray
            The edges between them, one fewer.
        """
        nodes, weights = [int(node)], []
        while self.predecessors[nodes[-1]] >= 0:
            weights.append(self.lengths[nodes[-1]])
            nodes.append(int(self.predecessors[nodes[-1]]))
        return np.array(nodes[::-1]), np.array(weights[::-1], dtype=np.float64)

    def to_pandas(self) -> "pandas.DataFrame":
        """Make a table with one row a training sample (needs pandas).

        Returns
        -------
        pandas.DataFrame
            Columns label, prototype (whether it is one), cost, predecessor, length, root.
        """
        pandas = _need("pandas")
        return pandas.DataFrame(
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
        """Make a graph whose edges lead from predecessors to the samples they conquered.

        Needs networkx.

        Returns
        -------
        networkx.DiGraph
            Nodes have label, cost, root and prototype; edges have weight.
        """
        graph = _need("networkx").DiGraph()
        for node in range(len(self)):
            graph.add_node(
                node,
                label=self.labels[node],
                cost=float(self.costs[node]),
                root=int(self.roots[node]),
                prototype=bool(self.predecessors[node] < 0),
            )
        for node in np.flatnonzero(self.predecessors >= 0).tolist():
            graph.add_edge(int(self.predecessors[node]), node, weight=float(self.lengths[node]))
        return graph


def _need(package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"This needs {package}, which is not installed: pip install popf[{package}]"
        ) from error
