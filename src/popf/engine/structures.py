"""Data structures passed between the stages, and the resources that a computation may use."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

#: Up to this number of features, a space tree on the CPU is always the fastest.
LOW_DIMENSION = 4

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ArcArray = NDArray[np.void]
Integers = TypeVar("Integers", int, IntArray)
#: ``block(start, stop)`` returns the distances from these queries to all nodes, one row per query.
BlockOfDistances = Callable[[int, int], FloatArray]


def ceil_div(a: Integers, b: int) -> Integers:
    """Divide integers and round up; also in kernels, see `runtime.jit`."""
    return -(-a // b)


class SpanningTree(NamedTuple):
    """A minimum spanning tree as arrays.

    Arcs of equal weight are ordered by lower index, then by higher index, so the tree is unique and does not
    depend on the algorithm. The stages store edges in the order in which they find them; `in_order` sorts them.

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
        order = order_of_arcs(lower, higher, self.weights)
        return SpanningTree(lower[order], higher[order], self.weights[order])


def order_of_arcs(lower: IntArray, higher: IntArray, weights: FloatArray) -> IntArray:
    """Return the order of arcs by (weight, lower index, higher index); only ties are compared by all three."""
    order = np.argsort(weights)  # a stable sort would take three times as long
    ranked = weights[order]
    same = ranked[1:] == ranked[:-1]
    if same.any():
        in_run = np.append(same, False) | np.insert(same, 0, False)
        some = order[in_run]
        order[in_run] = some[np.lexsort((higher[some], lower[some], weights[some]))]
    return order


class Forest(NamedTuple):
    """An optimum-path forest on the training samples."""

    costs: FloatArray  # C_v: the minimum, over paths from a prototype to v, of the longest edge
    predecessors: IntArray  # the sample before v on its optimum path, -1 for a prototype
    lengths: FloatArray  # the length of the edge from the predecessor to v, 0 for a prototype
    roots: IntArray  # the prototype at which the optimum path to v starts


class NeighbourLists(NamedTuple):
    """The nearest neighbours of every point, and the distance up to which its list is complete."""

    positions: NDArray[np.int32]  # (n_points, k): nearest first, ties by index; -1 if missing
    squared: FloatArray  # (n_points, k): their squared distances, infinite if missing
    horizon: FloatArray  # every neighbour at a smaller squared distance is listed


#: The shortest known arc out of a component: its squared length, its ends as positions (-1 while none is
#: known), and whether another arc of the same length was seen. One record, so one cache line, per component.
ARC = np.dtype(
    [("squared", np.float64), ("inside", np.int32), ("outside", np.int32), ("tied", np.int64)]
)


class Components(NamedTuple):
    """The component of every point in a Borůvka round, and the points' indices and classes."""

    of: NDArray[np.int32]  # numbered from 0
    indices: IntArray  # break ties
    classes: IntArray


class OutgoingArcSearch(NamedTuple):
    """A search for the shortest arc out of every component that is not `certain`, shared by threads.

    All threads lower the `bounds` as they find arcs. If two threads write at once, either value is the length
    of an arc out of the component: bounds only save work, and never decide the result.
    """

    components: Components
    best: ArcArray  # ARC records: the arcs known before the search, then the shortest ones
    certain: BoolArray  # components whose shortest arc is already known
    horizon: FloatArray  # of `NeighbourLists`; raised to the distance searched
    tied: BoolArray  # set for the ends of arcs between classes that tie with a shortest one
    bounds: FloatArray  # upper bounds on the squared length of each component's shortest arc


class Conquest(NamedTuple):
    r"""The training samples that conquer new samples (Equation 3 of the paper).

    Attributes
    ----------
    nodes : ndarray of shape (n_samples,)
        The training sample that conquers each sample, :math:`\arg\min_v \max(C_v, d(v, t))`.
    costs : ndarray of shape (n_samples,)
        The cost of the path through that node, :math:`\max(C_v, d(v, t))`.
    distances : ndarray of shape (n_samples,)
        The distance to that node, :math:`d(v, t)`.
    """

    nodes: IntArray
    costs: FloatArray
    distances: FloatArray


class TrainingResult(NamedTuple):
    """The result of training, for every sample."""

    tree: SpanningTree  # edges in no particular order
    prototypes: BoolArray  # whether each sample is one
    forest: Forest


class Backend(Protocol):
    """Interface of a device that replaces the CPU for Euclidean distances; forests are identical to the bit."""

    def place(self, points: FloatArray) -> Any:
        """Copy points to the device, for the methods below."""

    def nearest_neighbours(self, placed: Any) -> NeighbourLists:
        """List the nearest neighbours of all points."""

    def nearest_outsiders(self, placed: Any, search: OutgoingArcSearch) -> None:
        """Find the shortest arcs out of components, like `mst.neighbours.nearest_outsiders`."""

    def conquer(
        self, placed: Any, costs: FloatArray, rank: IntArray, queries: FloatArray
    ) -> tuple[Conquest, IntArray]:
        """Find the conqueror of each query, and the queries for which it is uncertain."""

    def competing_nodes(
        self, samples: FloatArray, codes: IntArray, costs: FloatArray, weights: FloatArray
    ) -> Any:
        """Sort training nodes of the classes 0, 1, ..., for `soft_scores`."""

    def soft_scores(self, nodes: Any, queries: FloatArray, taus: FloatArray) -> FloatArray:
        """Compute the soft scores of queries, like `soft_scores.CompetingSpace.scores`."""


class Resources(NamedTuple):
    """Resources that a computation may use."""

    n_threads: int = 1
    n_bytes: int = 2**30  # for blocks of distances, all threads together
    backend: Backend | None = None  # a device; None for the CPU
