"""The competition among prototypes on the spanning tree, and the clusters of single linkage.

For f_max the best path in the complete graph costs what the path in the minimum spanning tree costs, so the
competition needs no queue: one sweep from the leaves to the root of the tree and one back settle all costs.
A sample that is no prototype has only neighbours of its own class in the tree, so every path ends at a
prototype of the right class: training makes no error, ties or not.
"""

import numpy as np

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.threads import Team
from popf.engine.structures import BoolArray, FloatArray, Forest, IntArray, SpanningTree


def compete(
    tree: SpanningTree, prototypes: BoolArray, index: IntArray, n_threads: int = 1
) -> Forest:
    """Let the prototypes, of which there is at least one, compete for all samples.

    The edges of the tree may come in any order. Sample i is called ``index[i]`` in the forest. These names
    break ties between predecessors, and the one called 0 is the root of the sweeps, so that the forest does
    not depend on the order of the samples here. The sweeps themselves take one thread.
    """
    n = len(prototypes)
    states = np.empty(n, dtype=STATE)
    order = np.empty(n, dtype=np.int32)
    forest = Forest(
        np.empty(n), np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64)
    )
    with Team(n_threads) as team:
        # Each thread has some of the samples, and looks for their edges among all.
        edges = tree.lower, tree.higher, tree.weights.view(np.int64)
        team.map_shares(lambda low, high: _attach_edges(*edges, prototypes, states, low, high), n)
        lengths = states["weight"].view(np.float64)
        _sweep(states, lengths, order, prototypes, index, np.argmin(index))
        team.map_rows(
            lambda start, stop: _write_forest(states, lengths, index, forest, start, stop), n
        )
    return forest


#: What is known of a sample, in one cache line. Of the edges not yet taken off the tree: how many there are
#: at the sample, and the exclusive or of their other ends and of the bits of their weights. So where one
#: is left these are its other end, the sample's parent in the end, and its weight.
STATE = np.dtype(
    [
        ("parent", np.int32),
        ("degree", np.int32),
        ("weight", np.int64),
        ("cost", np.float64),
        ("predecessor", np.int32),
        ("root", np.int32),
    ]
)


@jit
def _attach_edges(lower, higher, bits, prototypes, states, low, high):
    """Attach their edges to the samples from `low` to `high`."""
    for v in range(low, high):
        state = states[v]
        state["parent"], state["degree"], state["weight"] = 0, 0, 0
        state["cost"] = 0.0 if prototypes[v] else np.inf
        state["predecessor"], state["root"] = -1, v
    for e in range(len(lower)):
        u, v = lower[e], higher[e]
        if low <= u < high:
            state = states[u]
            state["parent"] ^= v
            state["degree"] += 1
            state["weight"] ^= bits[e]
        if low <= v < high:
            state = states[v]
            state["parent"] ^= u
            state["degree"] += 1
            state["weight"] ^= bits[e]


@jit
def _sweep(states, lengths, order, prototypes, index, root):
    """Take leaves off the tree until the root is left, offering paths inwards, and then outwards.

    The `lengths` are the weights in `states`, read as the numbers whose bits they are.
    """
    taken = 0
    for start in range(len(states)):
        v = start
        while states[v]["degree"] == 1 and v != root:
            leaf = states[v]
            u = leaf["parent"]
            inner = states[u]
            leaf["degree"] = 0
            inner["parent"] ^= v
            inner["degree"] -= 1
            inner["weight"] ^= leaf["weight"]
            order[taken] = v
            taken += 1
            if not prototypes[u]:
                offered = max(leaf["cost"], lengths[v])
                if offered < inner["cost"] or (
                    offered == inner["cost"]
                    and inner["predecessor"] >= 0
                    and index[v] < index[inner["predecessor"]]
                ):
                    inner["cost"], inner["predecessor"] = offered, v
                    inner["root"] = leaf["root"]
            v = u
    states[root]["parent"] = -1
    for i in range(taken - 1, -1, -1):  # and back: the best path from above, if it is better
        v = order[i]
        leaf, inner = states[v], states[states[v]["parent"]]
        offered = max(inner["cost"], lengths[v])
        if offered < leaf["cost"]:  # so it is no prototype
            leaf["cost"], leaf["predecessor"] = offered, leaf["parent"]
            leaf["root"] = inner["root"]


@jit
def _write_forest(states, lengths, index, forest, start, stop):
    """Write the forest of some samples from their states."""
    # Locals, because reading an array out of the tuple costs an atomic reference count each time.
    costs, predecessors, roots = forest.costs, forest.predecessors, forest.roots
    before_lengths = forest.lengths
    for v in range(start, stop):
        state, name, before = states[v], index[v], states[v]["predecessor"]
        costs[name], roots[name] = state["cost"], index[state["root"]]
        if before < 0:
            predecessors[name], before_lengths[name] = -1, 0.0
        else:  # the edge to its parent, or that of its child
            other = v if before == state["parent"] else before
            predecessors[name], before_lengths[name] = index[before], lengths[other]


@helper
def find_root(above: IntArray, node: int) -> int:
    """Find the root of a node's set in a union-find, with path compression."""
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


@jit
def merge_clusters(tree: SpanningTree, linkage: FloatArray) -> None:
    """Fill SciPy's linkage matrix: clusters merge in the order of the edges, which are sorted.

    Cluster n + i is the one that row i makes.
    """
    n_edges = len(tree.lower)
    above = np.arange(2 * n_edges + 1)
    size = np.ones(2 * n_edges + 1)
    for i in range(n_edges):
        merged = n_edges + 1 + i
        for column, node in ((0, tree.lower[i]), (1, tree.higher[i])):
            top = find_root(above, node)
            above[top] = merged
            linkage[i, column] = top
        first, second = int(linkage[i, 0]), int(linkage[i, 1])
        size[merged] = size[first] + size[second]
        linkage[i, 0], linkage[i, 1] = min(first, second), max(first, second)
        linkage[i, 2], linkage[i, 3] = tree.weights[i], size[merged]
