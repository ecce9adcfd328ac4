"""Neighbour lists, the shortest arcs out of components, and the tree from both, by each algorithm."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from popf.engine.mst import neighbours, neighbours_by_tiles
from popf.engine.mst.boruvka import padded_range, spanning_tree
from popf.engine.points import order_points
from popf.engine.prototypes import find_prototypes
from popf.engine.space_tree import build_space_tree
from popf.engine.structures import ARC, Components, OutgoingArcSearch, SpanningTree
from popf.engine.tiles import SMALLEST_BLOCK
from strategies import KINDS, bounded, random_points, seeds, size

kinds = st.sampled_from(KINDS)


def lists_of(kind, n, d, n_neighbours):
    """List neighbours by a space tree, or by products if `n_neighbours` is None."""
    X = random_points(n, n, d, kind)
    if n_neighbours is None:
        ordered = order_points(X, SMALLEST_BLOCK)
        return ordered.points, neighbours_by_tiles.nearest_neighbours(ordered)
    tree = build_space_tree(X)
    return tree.points, neighbours.nearest_neighbours(tree, n_neighbours)


class TestNeighbourLists:
    @pytest.mark.parametrize(
        ("n", "n_neighbours"),
        [(2, 3), (17, 1), (150, 2), (300, 5), *((n, None) for n in (2, 9, 150, 300))],
    )
    @pytest.mark.parametrize("d", [1, 2, 5])
    @pytest.mark.parametrize("kind", KINDS)
    def test_are_complete_below_the_horizon(self, kind, d, n, n_neighbours):
        points, lists = lists_of(kind, size(n), d, n_neighbours)
        D = naive.squared_distances(points, points)
        np.fill_diagonal(D, np.inf)
        for u in range(len(points)):
            listed = lists.positions[u][lists.positions[u] >= 0]
            assert len(set(listed)) == len(listed)
            assert u not in listed
            np.testing.assert_array_equal(lists.squared[u, : len(listed)], D[u, listed])
            assert (np.diff(lists.squared[u, : len(listed)]) >= 0.0).all()
            within = np.flatnonzero(D[u] < lists.horizon[u])
            assert set(within) <= set(listed)
            # They are the nearest ones: nothing left out is nearer than the last.
            assert len(listed) == min(lists.squared.shape[1], len(points) - 1)
            np.testing.assert_array_equal(
                lists.squared[u, : len(listed)], np.sort(D[u])[: len(listed)]
            )
            # And the horizon is no farther short of them than a tie forces it to be.
            assert lists.horizon[u] >= lists.squared[u, len(listed) - 1]


def shortest_arcs_out(D, of, index):
    """For every component its shortest arc (weight, lower, higher), and the ends of all as short."""
    arcs = {}
    for u in range(len(D)):
        for v in np.flatnonzero(of != of[u]):
            arc = (float(D[u, v]), int(min(index[u], index[v])), int(max(index[u], index[v])))
            arcs.setdefault(int(of[u]), []).append((arc, u, int(v)))
    first = {c: min(found)[0] for c, found in arcs.items()}
    ties = {c: [(u, v) for a, u, v in found if a[0] == first[c][0]] for c, found in arcs.items()}
    return first, ties


class TestNearestOutsiders:
    @given(seed=seeds, kind=kinds, n_components=st.integers(2, 12), n_threads=st.integers(1, 3))
    @pytest.mark.parametrize("by_products", [False, True])
    @bounded(30)
    def test_are_the_first_arcs_out(self, by_products, seed, kind, n_components, n_threads):
        rng = np.random.default_rng(seed)
        X = random_points(seed, size(90), 2, kind)
        if by_products:
            ordered = order_points(X, SMALLEST_BLOCK)
            search = partial(neighbours_by_tiles.nearest_outsiders, ordered)
        else:
            ordered = build_space_tree(X)
            search = partial(neighbours.nearest_outsiders, ordered)
        points, index = ordered.points, ordered.order
        n = len(points)
        components = Components(padded_range(n), index, rng.integers(0, 3, n))
        n_components = min(n_components, n)
        components.of[:] = np.concatenate(
            [np.arange(n_components), rng.integers(0, n_components, n - n_components)]
        )[rng.permutation(n)]
        # Nothing is known yet but what `certain` components know.
        certain, horizon = rng.random(n_components) < 0.2, np.zeros(n)
        best = np.array([(np.inf, -1, -1, 0)] * n_components, dtype=ARC)
        tied, bounds = np.zeros(n, dtype=bool), best["squared"].copy()
        state = OutgoingArcSearch(components, best, certain, horizon, tied, bounds)
        search(n_threads, state)
        D = naive.squared_distances(points, points)
        first, ties = shortest_arcs_out(D, components.of, index)
        ends = set()
        for c in np.flatnonzero(~certain):
            u, v = index[best[c]["inside"]], index[best[c]["outside"]]
            assert (best[c]["squared"], min(u, v), max(u, v)) == first[c]
            assert components.of[best[c]["inside"]] == c
            assert bool(best[c]["tied"]) == (len(ties[c]) > 1)
            if best[c]["tied"]:
                classes = components.classes
                ends |= {p for u, v in ties[c] if classes[u] != classes[v] for p in (u, v)}
        assert set(np.flatnonzero(tied)) == ends
        # Horizons are still true: nobody outside is nearer.
        D[components.of[:, None] == components.of[None, :]] = np.inf
        assert (D.min(axis=1) >= horizon).all()


@given(seed=seeds, kind=kinds, k=st.integers(1, 6))
@bounded(30)
def test_the_tree_does_not_depend_on_how_long_the_lists_are(seed, kind, k):
    tree = build_space_tree(random_points(seed, size(80), 2, kind))
    classes = np.random.default_rng(seed).integers(0, 2, len(tree.points))
    lists = neighbours.nearest_neighbours(tree, k)

    search = partial(neighbours.nearest_outsiders, tree, 1)
    found, tied = spanning_tree(lists, tree.order, classes, search)
    prototypes = find_prototypes(found, classes, tied)
    X, y = np.empty_like(tree.points), np.empty_like(classes)
    X[tree.order], y[tree.order] = tree.points, classes
    D = naive.squared_distances(X, X)
    edges = SpanningTree(tree.order[found.lower], tree.order[found.higher], found.weights)
    lower, higher, weights = (array.tolist() for array in edges.in_order())
    assert list(zip(weights, lower, higher, strict=True)) == naive.kruskal(D)
    np.testing.assert_array_equal(prototypes, naive.prototypes(D, y)[tree.order])
