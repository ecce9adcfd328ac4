"""What the stages hand to each other, and what they may use."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

#: With up to so many features a space tree on the processor is always the quickest.
LOW_DIMENSION = 4

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ArcArray = NDArray[np.void]
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
        order = order_of_arcs(lower, higher, self.weights)
        return SpanningTree(lower[order], higher[order], self.weights[order])


def order_of_arcs(lower: IntArray, higher: IntArray, weights: FloatArray) -> IntArray:
    """Order arcs by (weight, lower index, higher index): sort by weight, and only ties again by all three."""
    order = np.argsort(weights, kind="stable")
    ranked = weights[order]
    same = ranked[1:] == ranked[:-1]
    if same.any():
        in_run = np.append(same, False) | np.insert(same, 0, False)
        some = order[in_run]
        order[in_run] = some[np.lexsort((higher[some], lower[some], weights[some]))]
    return order


class Forest(NamedTuple):
    """An optimum-path forest on the training samples."""

    costs: FloatArray  # C_v, the smallest largest edge on a path from a prototype to v
    predecessors: IntArray  # the sample before v on its optimum path, -1 for a prototype
    lengths: FloatArray  # the length of the edge from the predecessor to v, 0 for a prototype
    roots: IntArray  # the prototype at which the optimum path of v begins


class NeighbourLists(NamedTuple):
    """The nearest neighbours known of every point, and how far that knowledge reaches."""

    positions: NDArray[np.int32]  # (n_points, k): nearest first, ties by index; -1 for none
    squared: FloatArray  # (n_points, k): their squared distances, infinite for none
    horizon: FloatArray  # every neighbour strictly nearer than this squared distance is listed


#: The shortest arc known to leave a component: its squared length, its ends as positions (-1 while
#: none is known), and whether another arc as short was seen. One record, so one cache line, a component.
ARC = np.dtype(
    [("squared", np.float64), ("inside", np.int32), ("outside", np.int32), ("tied", np.int64)]
)


class Components(NamedTuple):
    """The component of every point in a Borůvka round, and the points' indices and classes."""

    of: NDArray[np.int32]  # numbered from 0
    indices: IntArray  # break ties
    classes: IntArray


class OutgoingArcSearch(NamedTuple):
    """A search for the shortest arc out of every component that is not certain of it, shared by threads.

    All threads lower the `bounds` as they find arcs. Whichever of two writes stays, it is the length of an arc
    that leaves the component, so it spares work and decides nothing.
    """

    components: Components
    best: ArcArray  # ARC records: arcs known on entry, the shortest when the search is over
    certain: BoolArray  # components that need no search
    horizon: FloatArray  # of `NeighbourLists`; grows to what the search has seen
    prototypes: BoolArray  # ends of arcs between classes that tie with a shortest one are marked
    bounds: FloatArray  # how long the shortest arc out of each component is at most


class Conquered(NamedTuple):
    """Who conquered each query."""

    nodes: IntArray  # the conquering node
    costs: FloatArray  # the path cost it offers, max(C_v, d(v, t))
    distances: FloatArray  # its distance


class Backend(Protocol):
    """What a device computes in place of the processor: Euclidean distances only, the same to the bit."""

    def place(self, points: FloatArray) -> Any:
        """Lay out points on the device, for the methods below."""

    def nearest_neighbours(self, placed: Any, split: int | None = None) -> NeighbourLists:
        """List neighbours of all points; with `split`, those on the other side of that position."""

    def nearest_outsiders(
        self, placed: Any, search: OutgoingArcSearch, split: int | None = None
    ) -> None:
        """Find the shortest arcs out of components, as `trees.neighbours.nearest_outsiders`."""

    def conquer(
        self, placed: Any, costs: FloatArray, rank: IntArray, queries: FloatArray
    ) -> tuple[Conquered, IntArray]:
        """Find who conquers each query, and which queries stay uncertain."""

    def soft_scores(self, nodes: Any, queries: FloatArray, taus: FloatArray) -> FloatArray:
        """Score queries softly, as ``nodes.scores`` of `soft.CompetingPoints`."""


class Resources(NamedTuple):
    """What a computation may use."""

    n_threads: int = 1
    n_bytes: int = 2**30  # for blocks of distances, of all threads together
    backend: Backend | None = None  # a device, None for the processor
