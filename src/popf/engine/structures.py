"""What the stages hand to each other."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
#: ``block(start, stop)`` gives the distances of some queries to all nodes, one row each.
BlockOfDistances = Callable[[int, int], FloatArray]


class SpanningTree(NamedTuple):
    """A minimum spanning tree as arrays.

    Arcs of equal weight are ordered by their lower, then their higher index; that makes the tree
    unique, whatever the algorithm. The stages leave its edges in the order in which they find them;
    `in_order` sorts them.

    Attributes
    ----------
    lower, higher : ndarray of shape (n_samples - 1,)
        The two ends of each edge, ``lower < higher``.
    weights : ndarray of shape (n_samples - 1,)
        The length of each edge.
    """

    lower: IntArray
    higher: IntArray
    weights: FloatArray

    def in_order(self) -> "SpanningTree":
        """Sort the ends of each edge, and the edges by (weight, lower index, higher index)."""
        lower, higher = np.minimum(self.lower, self.higher), np.maximum(self.lower, self.higher)
        order = np.lexsort((higher, lower, self.weights))
        return SpanningTree(lower[order], higher[order], self.weights[order])


class Forest(NamedTuple):
    """An optimum-path forest on the training samples."""

    costs: FloatArray  # C_v, the smallest largest edge on a path from a prototype to v
    predecessors: IntArray  # the sample before v on its optimum path, -1 for a prototype
    lengths: FloatArray  # the length of the edge from the predecessor to v, 0 for a prototype
    roots: IntArray  # the prototype at which the optimum path of v begins


class NeighbourLists(NamedTuple):
    """The nearest neighbours known of every point, and how far that knowledge reaches."""

    positions: NDArray[np.int32]  # (n_points, k): nearest first, ties by index; -1 for nobody
    squared: FloatArray  # (n_points, k): their squared distances, infinite for nobody
    horizon: FloatArray  # every neighbour strictly nearer than this squared distance is listed


class Conquered(NamedTuple):
    """Who conquered each query."""

    nodes: IntArray  # the conquering node
    costs: FloatArray  # the path cost it offers, max(C_v, d(v, t))
    distances: FloatArray  # its distance
