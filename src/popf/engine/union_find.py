"""Union-find: which samples are connected by the edges so far."""

import numpy as np

from popf.engine.runtime.jit import helper, jit
from popf.engine.structures import FloatArray, IntArray, SpanningTree


@helper
def find_root(above: IntArray, node: int) -> int:
    """Find the root of a node's set, with path compression; ``above[root]`` is the root itself."""
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


@jit
def merge_clusters(tree: SpanningTree, linkage: FloatArray) -> None:
    """Fill SciPy's linkage matrix from sorted edges; row i forms cluster n + i."""
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
