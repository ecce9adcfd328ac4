"""What a forest tells about new samples: who conquered them, at what cost, by which path."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def class_margins(costs: FloatArray) -> FloatArray:
    """Give for each class the best cost that others offer minus its own; of two classes the second's only."""
    best, second = np.partition(costs, 1, axis=1)[:, :2].T
    others = np.where(costs == best[:, None], second[:, None], best[:, None])
    margins = np.zeros_like(costs)  # what equal costs keep, infinite ones too
    np.subtract(others, costs, out=margins, where=others != costs)
    return margins[:, 1] if costs.shape[1] == 2 else margins
