"""The competition among prototypes, on the spanning tree.

For f_max the best path in the complete graph costs what the path in the minimum spanning tree costs, so the
competition needs no queue: one sweep from the leaves to the root of the tree and one back settle all costs.
A sample that is no prototype has only neighbours of its own class in the tree, so every path ends at a
prototype of the right class: training makes no error, ties or not.
"""

import numpy as np

from .jit import jit
from .structures import BoolArray, Forest, IntArray, SpanningTree


def compete(tree: SpanningTree, prototypes: BoolArray, index: IntArray) -> Forest:
    """Let the prototypes compete for all samples.

    Parameters
    ----------
    tree : SpanningTree
        In whatever order of edges; the costs come in the unit of its weights.
    prototypes : ndarray of shape (n_samples,)
        Whether each sample is one; at least one is.
    index : ndarray of shape (n_samples,)
        Breaks ties between predecessors, and says (by its 0) where the sweeps are rooted, so that the
        forest does not depend on how the samples are numbered here.

    Returns
    -------
    Forest

    Examples
    --------
    Four samples in a row, 1, 3 and 2 apart, the last one a prototype:

    >>> import numpy as np
    >>> from popf.engine.competition import compete
    >>> from popf.engine.structures import SpanningTree
    >>> tree = SpanningTree(np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([1.0, 3.0, 2.0]))
    >>> forest = compete(tree, np.array([False, False, False, True]), np.arange(4))
    >>> forest.costs.tolist(), forest.predecessors.tolist(), forest.roots.tolist()
    ([3.0, 3.0, 2.0, 0.0], [1, 2, 3, -1], [3, 3, 3, 3])
    """
    start = int(np.argmin(index))
    order, parent, weight = _rooted(tree.lower, tree.higher, tree.weights, len(prototypes), start)
    return Forest(*_sweep(order, parent, weight, prototypes, index))


@jit
def _rooted(lower, higher, weights, n, start):
    """Order the samples breadth first from `start`, with each one's parent and the edge to it."""
    offset = np.zeros(n + 1, dtype=np.int32)
    for e in range(n - 1):
        offset[lower[e] + 1] += 1
        offset[higher[e] + 1] += 1
    for v in range(n):
        offset[v + 1] += offset[v]
    neighbour = np.empty(2 * (n - 1), dtype=np.int32)
    length = np.empty(2 * (n - 1))
    fill = np.empty(n, dtype=np.int32)
    for v in range(n):
        fill[v] = offset[v]
    for e in range(n - 1):
        u, v = lower[e], higher[e]
        neighbour[fill[u]], length[fill[u]] = v, weights[e]
        fill[u] += 1
        neighbour[fill[v]], length[fill[v]] = u, weights[e]
        fill[v] += 1
    order = np.empty(n, dtype=np.int32)
    parent = np.empty(n, dtype=np.int32)
    weight = np.empty(n)
    order[0], parent[start], weight[start] = start, -1, 0.0
    found = 1
    for done in range(n):
        u = order[done]
        for slot in range(offset[u], offset[u + 1]):
            v = neighbour[slot]
            if v != parent[u]:
                parent[v] = u
                weight[v] = length[slot]
                order[found] = v
                found += 1
    return order, parent, weight


@jit
def _sweep(order, parent, weight, prototypes, index):
    n = len(order)
    costs = np.empty(n)
    predecessors = np.empty(n, dtype=np.int64)
    lengths = np.zeros(n)
    roots = np.empty(n, dtype=np.int64)
    for v in range(n):
        costs[v] = 0.0 if prototypes[v] else np.inf
        predecessors[v] = roots[v] = -1
    for i in range(n - 1, 0, -1):  # towards the root: the best path from below
        v = order[i]
        u = parent[v]
        offered = max(costs[v], weight[v])
        if not prototypes[u] and (
            offered < costs[u]
            or (offered == costs[u] and predecessors[u] >= 0 and index[v] < index[predecessors[u]])
        ):
            costs[u], predecessors[u], lengths[u] = offered, v, weight[v]
    for i in range(1, n):  # and back: the best path from above, if it is better
        v = order[i]
        offered = max(costs[parent[v]], weight[v])
        if not prototypes[v] and offered < costs[v]:
            costs[v], predecessors[v], lengths[v] = offered, parent[v], weight[v]
    for i in range(n):
        v = i
        while predecessors[v] >= 0 and roots[v] < 0:
            v = predecessors[v]
        root = roots[v] if roots[v] >= 0 else v
        v = i
        while roots[v] < 0:
            roots[v] = root
            if predecessors[v] < 0:
                break
            v = predecessors[v]
    return costs, predecessors, lengths, roots
