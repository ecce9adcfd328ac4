r"""The competition: prototypes conquer the training samples, each by the cheapest path that reaches it.

The cost of a path is its largest arc, :math:`f_{max}` (Equation 2 of the paper): 0 for a prototype alone,
infinite for any other sample alone, and :math:`\max(f_{max}(\pi_s), d(s, t))` for :math:`\pi_s` and then the
arc (s, t). The cost :math:`C_v` of a sample is the smallest of all paths from prototypes to it (Equation 1).

For f_max, an optimum path in the complete graph costs as much as the path in the minimum spanning tree. So the
competition needs no priority queue, as in the image foresting transform [1]_: one sweep from the leaves to the
root of the tree and one back give all costs. A sample that is not a prototype has only neighbours of its own
class in the tree, so its optimum path starts at a prototype of its class: the training error is 0, with or
without ties.

References
----------
.. [1] A. X. Falcão, J. Stolfi, R. A. Lotufo, "The image foresting transform: theory, algorithms, and
   applications", IEEE Transactions on Pattern Analysis and Machine Intelligence 26(1), 19-29, 2004.
"""

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.runtime.threads import Team
from popf.engine.structures import BoolArray, Forest, IntArray, SpanningTree

#: The state of a sample, in one cache line. `degree` counts the edges at the sample that are still in the tree,
#: `parent` is the exclusive or of their other ends, and `weight` that of the bits of their weights. When one
#: edge is left, these are its other end, which is the sample's parent, and its weight.
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


def compete(
    tree: SpanningTree, prototypes: BoolArray, index: IntArray, n_threads: int = 1
) -> Forest:
    """Let the prototypes compete for all samples; there must be at least one prototype.

    The edges of the tree may be in any order. Sample i has the index ``index[i]`` in the forest. These indices
    break ties between predecessors, and the sample with index 0 is the root of the sweeps, so that the forest
    does not depend on the order of the samples here. The sweeps themselves run on one thread.
    """
    n = len(prototypes)
    states = np.empty(n, dtype=STATE)
    order = np.empty(n, dtype=np.int32)
    forest = Forest(
        np.empty(n), np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64)
    )
    with Team(n_threads) as team:
        # Each thread scans all edges for those of its own samples.
        edges = tree.lower, tree.higher, tree.weights.view(np.int64)
        team.map_shares(lambda low, high: _attach_edges(*edges, prototypes, states, low, high), n)
        lengths = states["weight"].view(np.float64)
        _sweep(states, lengths, order, prototypes, index, np.argmin(index))
        team.map_rows(
            lambda start, stop: _write_forest(states, lengths, index, forest, start, stop), n
        )
    return forest


@jit
def _attach_edges(lower, higher, bits, prototypes, states, low, high):
    """Initialise the states of the samples from `low` to `high` with their edges."""
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
    """Remove leaves until only the root is left, offering paths inwards; then offer paths outwards.

    `lengths` is a view of the weights in `states` as floats. A path reaches a node through a child or through
    its parent: the first sweep offers the best path through the children, the second that through the parent.
    """
    # Inwards. Invariant: the cost of a node is that of the best path through the leaves removed below it.
    taken = 0
    for start in range(len(states)):
        v = start
        # A parent that becomes a leaf is removed next.
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
                # Among children with equal offers, the one with the lowest index is the predecessor.
                if offered < inner["cost"] or (
                    offered == inner["cost"]
                    and inner["predecessor"] >= 0
                    and index[v] < index[inner["predecessor"]]
                ):
                    inner["cost"], inner["predecessor"] = offered, v
                    inner["root"] = leaf["root"]
            v = u
    states[root]["parent"] = -1
    # Outwards, parents before children: take the path through the parent if it is better. If the parent's own
    # path comes through this child, it costs no less.
    for i in range(taken - 1, -1, -1):
        v = order[i]
        leaf, inner = states[v], states[states[v]["parent"]]
        offered = max(inner["cost"], lengths[v])
        if offered < leaf["cost"]:  # so the leaf is not a prototype
            leaf["cost"], leaf["predecessor"] = offered, leaf["parent"]
            leaf["root"] = inner["root"]


@jit
def _write_forest(states, lengths, index, forest, start, stop):
    """Write the forest of the samples from `start` to `stop` from their states."""
    # Local variables, because each access to an array in the tuple updates an atomic reference count.
    costs, predecessors, roots = forest.costs, forest.predecessors, forest.roots
    before_lengths = forest.lengths
    for v in range(start, stop):
        state, name, before = states[v], index[v], states[v]["predecessor"]
        costs[name], roots[name] = state["cost"], index[state["root"]]
        if before < 0:
            predecessors[name], before_lengths[name] = -1, 0.0
        else:  # the edge to the parent, or that of the child
            other = v if before == state["parent"] else before
            predecessors[name], before_lengths[name] = index[before], lengths[other]
