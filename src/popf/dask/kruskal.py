"""The tree of all samples from candidate arcs: Kruskal's algorithm, paths in its result, the forest on it.

Everything here is linear in the number of samples, or nearly; features are not needed, only arcs.
"""

from typing import Any, NamedTuple

import numpy as np

from popf.engine.points import DistinctPoints
from popf.engine.runtime.jit import jit
from popf.engine.structures import BoolArray, FloatArray, IntArray, SpanningTree
from popf.engine.training import Trained, copy_to_samples
from popf.engine.trees.competition import compete, find_root

IN_TREE, TIED = 1, 2


class Arcs(NamedTuple):
    """Candidates for the spanning tree."""

    lower: IntArray
    higher: IntArray
    weights: FloatArray
    cross: BoolArray  # whether they join two classes

    def take(self, which: Any) -> "Arcs":
        """Choose some of them."""
        return Arcs(*(array[which] for array in self))


NO_ARCS = Arcs(*(np.empty(0, dtype=dtype) for dtype in (np.int64, np.int64, float, bool)))


class Links(NamedTuple):
    """A spanning tree as the history of its union-find: shallow, the larger set stays on top."""

    parent: IntArray  # the sample that each was joined to, itself at the top
    weight: FloatArray  # the edge that joined the two, infinite at the top
    rank: IntArray  # the position of that edge in the order of edges
    size: IntArray  # how many samples were joined below it, itself included


class Merged(NamedTuple):
    """The minimum spanning forest of candidates, and what ties with it."""

    tree: Arcs  # in the order (weight, lower index, higher index)
    tied: Arcs  # the other arcs between classes that lie in some minimum spanning forest


def reduce_arcs(candidates: list[Arcs], n_samples: int) -> Merged:
    """Keep the candidates that may belong to a minimum spanning tree of all samples."""
    arcs = Arcs(*map(np.concatenate, zip(*candidates, strict=True)))
    arcs = arcs.take(_order_of_arcs(arcs))
    state = np.zeros(len(arcs.weights), dtype=np.int8)
    _kruskal(arcs.lower, arcs.higher, arcs.weights, np.arange(n_samples), state)
    return Merged(arcs.take(state == IN_TREE), arcs.take((state == TIED) & arcs.cross))


def _order_of_arcs(arcs: Arcs) -> IntArray:
    """Order by (weight, lower, higher): sort by weight, and only ties again by all three."""
    order = np.argsort(arcs.weights, kind="stable")
    ranked = arcs.weights[order]
    same = ranked[1:] == ranked[:-1]
    if same.any():
        in_run = np.append(same, False) | np.insert(same, 0, False)
        some = order[in_run]
        order[in_run] = some[np.lexsort((arcs.higher[some], arcs.lower[some], arcs.weights[some]))]
    return order


@jit
def _kruskal(lower, higher, weights, parent, state):
    """Label each arc: in the tree, in another minimum tree, or in none."""
    n = len(weights)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and weights[stop] == weights[start]:
            stop += 1
        if stop - start > 1:  # arcs of one weight: all that join two components lie in some tree
            for e in range(start, stop):
                if find_root(parent, lower[e]) != find_root(parent, higher[e]):
                    state[e] = TIED
        for e in range(start, stop):
            if e > start and lower[e] == lower[e - 1] and higher[e] == higher[e - 1]:
                state[e] = 0  # two pairs of blocks found the same arc
                continue
            a, b = find_root(parent, lower[e]), find_root(parent, higher[e])
            if a != b:
                parent[max(a, b)] = min(a, b)
                state[e] = IN_TREE
        start = stop


def link(merged: Merged, n_samples: int) -> Links:
    """Arrange a tree so that longest edges on paths are found in log(n) steps."""
    tree = merged.tree
    links = Links(
        np.arange(n_samples),
        np.full(n_samples, np.inf),
        np.full(n_samples, len(tree.weights)),
        np.ones(n_samples, dtype=np.int64),
    )
    _link(tree.lower, tree.higher, tree.weights, links, np.arange(n_samples))
    return links


@jit
def _link(lower, higher, weights, links, shortcut):
    size = links.size
    for e in range(len(weights)):
        a, b = find_root(shortcut, lower[e]), find_root(shortcut, higher[e])
        if size[a] < size[b]:
            a, b = b, a
        shortcut[b] = links.parent[b] = a
        links.weight[b] = weights[e]
        links.rank[b] = e
        size[a] += size[b]


@jit
def longest_edges_to(head, samples, links):
    """Longest edge on the path from each of some samples to another one, 0 for itself."""
    longest = np.empty(len(samples))
    for i in range(len(samples)):
        longest[i] = longest_edge_between(links, samples[i], head)
    return longest


@jit
def longest_edge_between(links, u, v):
    """Climb to the set that holds both; whichever was joined first climbs first."""
    longest = 0.0
    while u != v:
        if links.rank[u] > links.rank[v]:
            u, v = v, u
        longest = links.weight[u]
        u = links.parent[u]
    return longest


def mark_prototypes(merged: Merged, n_samples: int, more: list[IntArray]) -> BoolArray:
    """Mark the ends of arcs between classes, and the samples that are known otherwise."""
    prototypes = np.zeros(n_samples, dtype=np.bool_)
    for arcs in merged:
        prototypes[arcs.lower[arcs.cross]] = True
        prototypes[arcs.higher[arcs.cross]] = True
    for samples in more:
        prototypes[samples] = True
    return prototypes


def forest_on_tree(
    merged: Merged, n_samples: int, more: list[IntArray], euclidean: bool
) -> Trained:
    """Let the prototypes compete on the tree of all samples.

    In Euclidean training samples at distance zero are one point, here as on one machine.
    """
    tree, prototypes = merged.tree, mark_prototypes(merged, n_samples, more)
    every = np.arange(n_samples)
    zero = tree.weights == 0.0
    if not euclidean or not zero.any():
        edges = SpanningTree(tree.lower, tree.higher, tree.weights)
        return Trained(edges, prototypes, compete(edges, prototypes, every))
    # Equal samples hang on the lowest of them, so one step leads there.
    home = every.copy()
    home[tree.higher[zero]] = tree.lower[zero]
    while (home[home] != home).any():
        home = home[home]
    is_first = home == every
    first, point_of = np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[home]
    is_prototype = np.zeros(len(first), dtype=np.bool_)
    is_prototype[point_of[prototypes]] = True
    apart = tree.take(~zero)
    edges = SpanningTree(point_of[apart.lower], point_of[apart.higher], apart.weights)
    forest = compete(edges, is_prototype, np.arange(len(first)))
    distinct = DistinctPoints(np.empty((0, 0)), 0, first, point_of)
    return copy_to_samples(Trained(edges, is_prototype, forest), distinct)
