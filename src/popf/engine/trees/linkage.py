"""Single linkage from the spanning tree: clusters merge in the order of its edges."""

import numpy as np

from popf.engine.runtime.jit import jit
from popf.engine.structures import FloatArray, SpanningTree


@jit
def merge_clusters(tree: SpanningTree, linkage: FloatArray) -> None:
    """Fill SciPy's linkage matrix; the edges of the tree are in order.

    The clusters that an edge joins are found by union-find, with path compression; cluster n + i is
    the one that row i makes.
    """
    n_edges = len(tree.lower)
    above = np.arange(2 * n_edges + 1)
    size = np.ones(2 * n_edges + 1)
    for i in range(n_edges):
        merged = n_edges + 1 + i
        for column, node in ((0, tree.lower[i]), (1, tree.higher[i])):
            top = node
            while above[top] != top:
                top = above[top]
            while above[node] != node:
                above[node], node = top, above[node]
            above[top] = merged
            linkage[i, column] = top
        first, second = int(linkage[i, 0]), int(linkage[i, 1])
        size[merged] = size[first] + size[second]
        linkage[i, 0], linkage[i, 1] = min(first, second), max(first, second)
        linkage[i, 2], linkage[i, 3] = tree.weights[i], size[merged]
