"""Slow and obvious versions of what stands on densities, straight from the definitions.

Every function takes a matrix D of distances between samples, in the order in which ties are settled. Nothing
here imports popf.
"""

import math

import numpy as np

from naive import squared_distances


def distances(X, Y):
    """Euclidean distances."""
    return np.sqrt(squared_distances(X, Y))


def in_order(X):
    """Samples sorted by their values, which is how ties are settled."""
    X = np.asarray(X, dtype=np.float64) + 0.0
    return X[np.lexsort(X.T[::-1])]


def nearest(D, k):
    """The k nearest others of every sample, by (distance, index)."""
    n = len(D)
    return [
        sorted((j for j in range(n) if j != i), key=lambda j: (D[i, j], j))[:k] for i in range(n)
    ]


def raw_density(distances, longest):
    """Mean of exp(-d²/2σ²), σ a third of the longest arc."""
    if longest == 0.0:
        return np.mean([d == 0.0 for d in distances])
    sigma = longest / 3.0
    return sum(math.exp(-((d / sigma) ** 2) / 2.0) for d in sorted(distances)) / len(distances)


def densities(D, k):
    """Raw density of every sample, and the longest arc."""
    arcs = nearest(D, k)
    longest = max(D[i, j] for i, near in enumerate(arcs) for j in near)
    return np.array([raw_density(D[i, near], longest) for i, near in enumerate(arcs)]), longest


def scaled(raw, training):
    """On the scale where training samples span 1 to 1000; 1000 if they are all equal."""
    low, high = min(training), max(training)
    if low == high:
        return 1000.0 + (np.asarray(raw) - high) * 999.0
    return 1.0 + 999.0 * ((np.asarray(raw) - low) / (high - low))


def opened(rho, arcs, min_area, min_volume):
    """The level of the smallest component around each sample that is large enough, or that never grows.

    A component is what is connected to the sample through densities of some level or more, by arcs in either
    direction. It ends at the highest density beside it, above which its volume is measured.
    """
    joined = [set(near) for near in arcs]
    for i, near in enumerate(arcs):
        for j in near:
            joined[j].add(i)

    def component(s, level):
        found, front = {s}, [s]
        while front:
            for q in joined[front.pop()]:
                if rho[q] >= level and q not in found:
                    found.add(q)
                    front.append(q)
        return found

    levels = []
    for s in range(len(rho)):
        level = rho[s]
        while True:
            found = component(s, level)
            beside = {q for p in found for q in joined[p]} - found
            end = max((rho[q] for q in beside), default=None)
            volume = None if end is None else sum(rho[q] - end for q in found)
            if end is None or (len(found) >= min_area and volume >= min_volume):
                break
            level = end
        levels.append(level)
    return np.array(levels)


def paths(D, k, codes=None, min_height=1.0, min_area=1, min_volume=0.0):
    """Values and roots of the optimum paths under f_min, from the maxima of the density of each class."""
    n = len(D)
    codes = [0] * n if codes is None else codes
    raw, _ = densities(D, k)
    rho = scaled(raw, raw)
    arcs = nearest(D, k)
    start = opened(rho, arcs, min_area, min_volume) - min_height
    to = [set(near) for near in arcs]
    for i, near in enumerate(arcs):
        for j in near:
            if rho[i] == rho[j]:
                to[j].add(i)
    V, root = start.copy(), [None] * n
    queue = set(range(n))
    while queue:
        s = min(queue, key=lambda v: (-V[v], -rho[v], v))
        queue.remove(s)
        if root[s] is None:
            V[s], root[s] = rho[s], s
        for t in to[s]:
            if t in queue and codes[t] == codes[s] and min(V[s], rho[t]) > V[t]:
                V[t], root[t] = min(V[s], rho[t]), root[s]
    return V, np.array(root)


def labels(rho, roots):
    """Clusters numbered by the density of their roots, then by the roots' order."""
    ranked = sorted(set(roots.tolist()), key=lambda r: (-rho[r], r))
    return np.array([ranked.index(r) for r in roots])


def normalized_cut(D, k, label):
    """Sum over clusters of leaving / all arcs, weighted by 1/d."""
    inside, leaving = np.zeros(max(label) + 1), np.zeros(max(label) + 1)
    for i, near in enumerate(nearest(D, k)):
        for j in near:
            if D[i, j] > 0.0:
                (inside if label[i] == label[j] else leaving)[label[i]] += 1.0 / D[i, j]
    return sum(out / (out + within) for out, within in zip(leaving, inside, strict=True) if out > 0)


def claim(D, D_new, k, V):
    """Who claims new samples: the nearest of the k that offer the most; and their scaled densities."""
    raw, longest = densities(D, k)
    nodes, rho = [], []
    for row in D_new:
        near = sorted(range(len(row)), key=lambda j: (row[j], j))[:k]
        density = float(scaled(raw_density(row[near], longest), raw))
        nodes.append(max(near, key=lambda j: (min(V[j], density), -near.index(j))))
        rho.append(density)
    return np.array(nodes), np.array(rho)
