"""What the stages hand to each other."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class SpanningTree(NamedTuple):
    """A minimum spanning tree as arrays, edges in the order (weight, lower index, higher index).

    Arcs of equal weight are ordered by their lower, then their higher index; that makes the tree
    unique, whatever the algorithm.

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


class Forest(NamedTuple):
    """An optimum-path forest on the training samples.

    Attributes
    ----------
    costs : ndarray of shape (n_samples,)
        C_v, the smallest largest edge on a path from a prototype to v.
    predecessors : ndarray of shape (n_samples,)
        The sample before v on its optimum path, -1 for a prototype.
    roots : ndarray of shape (n_samples,)
        The prototype at which the optimum path of v begins.
    """

    costs: FloatArray
    predecessors: IntArray
    roots: IntArray
