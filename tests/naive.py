"""Slow and obvious versions of everything the engine computes, straight from the definitions.

Every function takes a symmetric matrix D of arc weights: squared distances, distances, or whatever
the user gave as ``precomputed``. Nothing here imports popf.
"""

import numpy as np


def squared_distances(X, Y):
    """Squared Euclidean distances, summed over the features one after the other."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    squared = np.zeros((len(X), len(Y)))
    for feature in range(X.shape[1]):
        difference = X[:, feature][:, np.newaxis] - Y[:, feature][np.newaxis, :]
        squared += difference * difference
    return squared


def kruskal(D):
    """Edges (weight, lower, higher) of the minimum spanning tree, in that order of arcs."""
    n = len(D)
    component = list(range(n))
    edges = []
    for weight, lower, higher in sorted((D[i, j], i, j) for i in range(n) for j in range(i + 1, n)):
        if component[lower] != component[higher]:
            merged, kept = component[higher], component[lower]
            component = [kept if c == merged else c for c in component]
            edges.append((float(weight), lower, higher))
    return edges


def tree_path(edges, start, end):
    """The samples from `start` to `end` along the edges of a tree."""
    paths = [[start]]
    while paths[0][-1] != end:
        path = paths.pop(0)
        ends = [b if a == path[-1] else a for a, b in edges if path[-1] in (a, b)]
        paths += [[*path, sample] for sample in ends if sample not in path]
    return paths[0]


def minimax(D):
    """For each pair the smallest possible largest arc on a path between the two."""
    best = np.array(D, dtype=np.float64)
    np.fill_diagonal(best, 0.0)
    for k in range(len(best)):
        best = np.minimum(best, np.maximum(best[:, [k]], best[[k], :]))
    return best


def prototypes(D, y):
    """Both ends of every arc that joins two classes in some minimum spanning tree."""
    y = np.asarray(y)
    return ((y[:, np.newaxis] != y[np.newaxis, :]) & (minimax(D) >= D)).any(axis=1)


def single_tree_prototypes(D, y):
    """Both ends of every edge that joins two classes in the tree of `kruskal`."""
    is_prototype = np.zeros(len(D), dtype=bool)
    for _, lower, higher in kruskal(D):
        if y[lower] != y[higher]:
            is_prototype[[lower, higher]] = True
    return is_prototype


def competition(D, is_prototype):
    """The paper's competition on the complete graph: path costs and the prototypes that won.

    Nodes leave the queue in the order of their cost, and offer max(cost, arc) to all that remain.
    """
    n = len(D)
    costs = np.where(is_prototype, 0.0, np.inf)
    roots = np.where(is_prototype, np.arange(n), -1)
    queue = set(range(n))
    while queue:
        s = min(queue, key=lambda v: (costs[v], v))
        queue.remove(s)
        for t in queue:
            offer = max(costs[s], D[s, t])
            if offer < costs[t]:
                costs[t], roots[t] = offer, roots[s]
    return costs, roots


def conquer(costs, D_queries, class_index):
    """Who conquers each query, by (max(C, d), d, class, index): nodes and their path costs."""
    nodes, path_costs = [], []
    for distances in D_queries:
        path_cost, _, _, node = min(
            (float(max(C, d)), float(d), int(label), v)
            for v, (C, d, label) in enumerate(zip(costs, distances, class_index, strict=True))
        )
        nodes.append(node)
        path_costs.append(path_cost)
    return np.array(nodes, dtype=np.int64), np.array(path_costs, dtype=np.float64)


def costs_by_class(costs, D_queries, class_index, n_classes):
    """The smallest path cost that each class offers to each query."""
    offers = np.maximum(np.asarray(costs)[np.newaxis, :], D_queries)
    by_class = np.full((len(D_queries), n_classes), np.inf)
    for label in range(n_classes):
        of_class = np.asarray(class_index) == label
        if of_class.any():
            by_class[:, label] = offers[:, of_class].min(axis=1)
    return by_class


def soft_score(path_costs, w, tau):
    """-log of the weighted mean of exp(-c/tau) over the nodes of one class, nan without any."""
    path_costs, w = path_costs[w > 0.0], w[w > 0.0]
    if len(w) == 0:
        return np.nan
    least = path_costs.min()
    return least / tau - np.log((w * np.exp((least - path_costs) / tau)).sum() / w.sum())
