"""Trees made of candidate arcs: Kruskal's algorithm, the paths in its result, and the forest on it.

Everything here is linear in the number of samples, or nearly; no sample is looked at, only arcs between them.
"""

from typing import Any, NamedTuple

import numpy as np

from popf.engine.points import DistinctPoints
from popf.engine.runtime.jit import jit
from popf.engine.structures import BoolArray, FloatArray, Forest, IntArray, SpanningTree
from popf.engine.training import Spanned, Trained, copy_to_samples
from popf.engine.trees.competition import compete

IN_TREE, TIED = 1, 2


class Arcs(NamedTuple):
    """Candidates for the spanning tree.

    Attributes
    ----------
    lower, higher : ndarray of int64
        The samples that they join.
    weights : ndarray of float64
    cross : ndarray of bool
        Whether they join two classes.
    """

    lower: IntArray
    higher: IntArray
    weights: FloatArray
    cross: BoolArray

    def take(self, which: Any) -> "Arcs":
        """Choose some of them."""
        return Arcs(*(array[which] for array in self))


class Links(NamedTuple):
    """A spanning tree as a forest of joined sets, shallow because the larger set stays on top.

    Attributes
    ----------
    parent : ndarray of shape (n_samples,)
        The sample that each was joined to, itself at the top.
    weight : ndarray of shape (n_samples,)
        The edge that joined the two, infinite at the top.
    rank : ndarray of shape (n_samples,)
        When: the number of the edge.
    size : ndarray of shape (n_samples,)
        How many were joined to it before.
    """

    parent: IntArray
    weight: FloatArray
    rank: IntArray
    size: IntArray


NO_ARCS = Arcs(
    np.empty(0, dtype=np.int64),
    np.empty(0, dtype=np.int64),
    np.empty(0),
    np.empty(0, dtype=np.bool_),
)


def reduce_arcs(candidates: list[Arcs], n_samples: int) -> tuple[Arcs, Arcs]:
    """Keep of some candidates what may belong to a minimum spanning tree of all samples.

    Parameters
    ----------
    candidates : list of Arcs
    n_samples : int

    Returns
    -------
    tree : Arcs
        Their minimum spanning forest, in the order (weight, lower index, higher index).
    ties : Arcs
        Others between classes that lie in some minimum spanning forest.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.dask.kruskal import Arcs, reduce_arcs
    >>> triangle = Arcs(np.array([1, 0, 0]), np.array([2, 1, 2]), np.ones(3), np.array([True, False, True]))
    >>> tree, ties = reduce_arcs([triangle], 3)
    >>> tree.lower.tolist(), tree.higher.tolist(), ties.lower.tolist(), ties.higher.tolist()
    ([0, 0], [1, 2], [1], [2])
    """
    arcs = Arcs(*map(np.concatenate, zip(*candidates, strict=True)))
    arcs = arcs.take(_order_of_arcs(arcs))
    state = np.zeros(len(arcs.weights), dtype=np.int8)
    _kruskal(arcs.lower, arcs.higher, arcs.weights, np.arange(n_samples), state)
    return arcs.take(state == IN_TREE), arcs.take((state == TIED) & arcs.cross)


def _order_of_arcs(arcs: Arcs) -> IntArray:
    """Order by (weight, lower, higher): a sort by weight, and only ties are looked at again."""
    order = np.argsort(arcs.weights, kind="stable")
    ranked = arcs.weights[order]
    same = ranked[1:] == ranked[:-1]
    if same.any():
        run = np.zeros(len(order), dtype=np.bool_)
        run[1:] |= same
        run[:-1] |= same
        some = order[run]
        keys = (arcs.higher[some], arcs.lower[some], arcs.weights[some])
        order[run] = some[np.lexsort(keys)]
    return order


@jit
def _find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@jit
def _kruskal(lower, higher, weights, parent, state):
    """Say of sorted arcs whether they are in the tree, or would be under another order of ties."""
    n = len(weights)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and weights[stop] == weights[start]:
            stop += 1
        if stop - start > 1:
            for e in range(start, stop):
                if _find(parent, lower[e]) != _find(parent, higher[e]):
                    state[e] = TIED
        for e in range(start, stop):
            if e > start and lower[e] == lower[e - 1] and higher[e] == higher[e - 1]:
                state[e] = 0  # two pairs of blocks found the same arc
                continue
            a, b = _find(parent, lower[e]), _find(parent, higher[e])
            if a != b:
                parent[max(a, b)] = min(a, b)
                state[e] = IN_TREE
        start = stop


def link(tree: Arcs, n_samples: int) -> Links:
    """Arrange a spanning tree so that the longest edge between two samples is found in log(n) steps.

    Parameters
    ----------
    tree : Arcs
        Sorted by weight.
    n_samples : int

    Returns
    -------
    Links
    """
    links = Links(
        np.arange(n_samples),
        np.full(n_samples, np.inf),
        np.full(n_samples, len(tree.weights)),
        np.ones(n_samples, dtype=np.int64),
    )
    _link(tree.lower, tree.higher, tree.weights, links, np.arange(n_samples))
    return links


@jit
def _link(lower, higher, weights, links, short):
    size = links.size
    for e in range(len(weights)):
        a, b = _find(short, lower[e]), _find(short, higher[e])
        if size[a] < size[b]:
            a, b = b, a
        short[b] = links.parent[b] = a
        links.weight[b] = weights[e]
        links.rank[b] = e
        size[a] += size[b]


def largest_on_paths(links: Links, samples: IntArray, other: int) -> FloatArray:
    """Give the longest edge on the paths from some samples to another, 0 for itself.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.dask.kruskal import Arcs, largest_on_paths, link
    >>> tree = Arcs(np.array([0, 2, 1]), np.array([1, 3, 2]), np.array([1.0, 2.0, 5.0]), np.zeros(3, bool))
    >>> largest_on_paths(link(tree, 4), np.arange(4), 3)
    array([5., 5., 2., 0.])
    """
    largest = np.empty(len(samples))
    _largest_on_paths(links, samples, other, largest)
    return largest


@jit
def _largest_on_paths(links, samples, other, largest):
    for i in range(len(samples)):
        largest[i] = largest_between(links, samples[i], other)


@jit
def largest_between(links, u, v):
    """Climb to the set that holds both; what was joined first is climbed first."""
    longest = 0.0
    while u != v:
        if links.rank[u] > links.rank[v]:
            u, v = v, u
        longest = links.weight[u]
        u = links.parent[u]
    return longest


def forest_of(tree: Arcs, prototypes: BoolArray, euclidean: bool) -> Trained:
    """Let the prototypes compete on the tree of all samples.

    Parameters
    ----------
    tree : Arcs
    prototypes : ndarray of shape (n_samples,)
    euclidean : bool
        Whether samples at no distance are one point, as everywhere in Euclidean training.

    Returns
    -------
    Trained
    """
    n_samples = len(prototypes)
    every = np.arange(n_samples)
    edges = SpanningTree(tree.lower, tree.higher, tree.weights)
    level = tree.weights == 0.0
    if not euclidean or not level.any():
        forest: Forest = compete(edges, prototypes, every)
        return Trained(edges, prototypes, forest)
    # Equal samples hang on the lowest of them, so one step leads there.
    home = every.copy()
    home[tree.higher[level]] = tree.lower[level]
    while (home[home] != home).any():
        home = home[home]
    first = np.flatnonzero(home == every)
    number = np.empty(n_samples, dtype=np.int64)
    number[first] = np.arange(len(first))
    point_of = number[home]
    of_points = prototypes[first]
    of_points[point_of[prototypes]] = True
    short = SpanningTree(
        point_of[tree.lower[~level]], point_of[tree.higher[~level]], tree.weights[~level]
    )
    numbers = np.arange(len(first))
    spanned = Spanned(short, of_points, numbers, None)
    distinct = DistinctPoints(np.empty((0, 0)), 0, first, point_of)
    return copy_to_samples(spanned, compete(short, of_points, numbers), distinct)
