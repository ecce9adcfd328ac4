"""The engine's parts, each against the plain formula it speeds up."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from popf.engine import space_tree as kdtree
from popf.engine import tiles
from popf.engine.conquest.by_space_tree import CostedTree
from popf.engine.conquest.by_tiles import CostedBlocks
from popf.engine.points import distinct_points, scaled_copy
from popf.engine.runtime import simd as lanes
from popf.engine.runtime.simd import LANES
from popf.engine.structures import SpanningTree
from popf.engine.trees import neighbours
from popf.engine.trees import tile_neighbours as products
from popf.engine.trees import tile_outsiders as product_outsiders
from popf.engine.trees.boruvka import spanning_tree
from popf.engine.trees.outgoing_arcs import ARC, Components, OutgoingArcSearch
from strategies import bounded, size

seeds = st.integers(0, 2**32 - 1)


def distinct(X):
    """Different points, as the engine's trees and tiles get them."""
    return distinct_points(np.asarray(X, dtype=np.float64)).points


def random_points(seed, n, d, kind):
    rng = np.random.default_rng(seed)
    if kind == "continuous":
        return distinct(rng.normal(size=(n, d)))
    if kind == "offset":
        return distinct(rng.normal(size=(n, d)) + 1e8)
    if kind == "clusters":
        return distinct(rng.random((4, d))[rng.integers(0, 4, n)] + 1e-7 * rng.normal(size=(n, d)))
    return distinct(rng.integers(0, 5, (n, d)))


KINDS = ("continuous", "grid", "offset", "clusters")
kinds = st.sampled_from(KINDS)
each_kind = pytest.mark.parametrize("kind", KINDS)


class TestDistinctPoints:
    @given(st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 2)), min_size=1, max_size=30))
    @bounded(60)
    def test_every_sample_has_the_point_where_it_lies(self, rows):
        X = np.array(rows, dtype=np.float64)
        found = distinct_points(X)
        np.testing.assert_array_equal(np.ldexp(found.points, found.exponent)[found.point_of], X)
        assert len(np.unique(X, axis=0)) == len(found.points)
        # Points are numbered as they first occur, and `first` is where that is.
        np.testing.assert_array_equal(found.first, np.sort(found.first))
        expected = [rows.index(row) for row in dict.fromkeys(rows)]
        np.testing.assert_array_equal(found.first, expected)

    def test_zeros_of_both_signs_are_one_point(self):
        found = distinct_points(np.array([[0.0, 1.0], [-0.0, 1.0]]))
        np.testing.assert_array_equal(found.point_of, 0)
        assert not np.signbit(found.points).any()

    @pytest.mark.parametrize("scale", [1e-310, 1e-150, 1.0, 1e150, 1.7e308])
    def test_the_largest_value_comes_between_a_half_and_one(self, scale):
        found = distinct_points(np.array([[0.5 * scale], [-scale], [0.0]]))
        assert 0.5 <= np.abs(found.points).max() < 1.0
        np.testing.assert_array_equal(
            np.ldexp(found.points, found.exponent)[:, 0], [0.5 * scale, -scale, 0.0]
        )

    def test_all_zeros_have_no_scale(self):
        found = distinct_points(np.zeros((3, 2)))
        assert found.exponent == 0
        assert len(found.points) == 1

    def test_a_scaled_copy_is_a_copy(self):
        X = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
        copy = scaled_copy(X, 0)
        assert copy.flags.c_contiguous
        assert not np.shares_memory(copy, X)


def children(tree):
    """Walk down a space tree: each node with its first and last block and its children."""
    waiting = [(0, 0, len(tree.blocks))]
    while waiting:
        node, first, last = waiting.pop()
        left, right = node + 1, int(tree.nodes["right"][node])
        if right < 0:
            yield node, first, last, None
            continue
        middle = int(tree.nodes["block"][right])
        yield node, first, last, (left, right)
        waiting += [(left, first, middle), (right, middle, last)]


class TestSpaceTree:
    @pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 32, 33, 100, 777])
    @each_kind
    def test_holds_all_points_in_tight_boxes(self, n, kind):
        X = random_points(n, size(n), 3, kind)
        tree = kdtree.build(X)
        n_points, n_blocks = len(X), len(tree.blocks)
        np.testing.assert_array_equal(np.sort(tree.order), np.arange(n_points))
        np.testing.assert_array_equal(tree.points, X[tree.order])
        columns = tree.blocks.transpose(0, 2, 1).reshape(-1, 3)
        np.testing.assert_array_equal(columns[:n_points], tree.points)
        assert np.isinf(columns[n_points:]).all()
        assert n_blocks == -(-n_points // LANES)
        for node, first, last, _ in children(tree):
            inside = tree.points[first * LANES : last * LANES]
            np.testing.assert_array_equal(tree.lows[node], inside.min(axis=0))
            np.testing.assert_array_equal(tree.highs[node], inside.max(axis=0))

    @pytest.mark.parametrize("n", [1, 17, 33, 500])
    def test_nodes_are_cut_in_two(self, n):
        tree = kdtree.build(random_points(n, size(n), 2, "grid"))
        assert tree.nodes["parent"][0] == -1
        seen = []
        for node, first, last, cut in children(tree):
            seen.append(node)
            assert tree.nodes["block"][node] == first
            if cut is None:
                assert last == first + 1
                assert tree.leaf[first] == node
                continue
            left, right = cut
            assert tree.nodes["parent"][left] == tree.nodes["parent"][right] == node
            feature, value = tree.nodes["feature"][node], tree.nodes["value"][node]
            assert tree.highs[left, feature] <= value
            assert tree.lows[right, feature] == value
        assert sorted(seen) == list(range(len(tree.nodes))) == list(range(2 * len(tree.leaf) - 1))

    @pytest.mark.parametrize("n_threads", [1, 3])
    def test_large_trees_are_built_from_the_top(self, monkeypatch, n_threads):
        X = random_points(0, size(2000), 2, "continuous")
        whole = kdtree.build(X)
        monkeypatch.setattr(kdtree, "SUBTREE_POINTS", 64)
        level_by_level = kdtree.build(X, n_threads)
        for name in ("points", "order", "blocks", "leaf", "lows", "highs"):
            np.testing.assert_array_equal(getattr(level_by_level, name), getattr(whole, name))
        for name in ("block", "right", "parent"):
            np.testing.assert_array_equal(level_by_level.nodes[name], whole.nodes[name])

    def test_the_input_is_left_alone(self):
        X = random_points(0, 50, 2, "continuous")
        before = X.copy()
        kdtree.build(X)
        np.testing.assert_array_equal(X, before)

    def test_equal_points_are_no_obstacle(self):
        # Queries are grouped by a tree as well, and they may coincide.
        tree = kdtree.build(np.ones((100, 2)))
        np.testing.assert_array_equal(np.sort(tree.order), np.arange(100))


def lists_of(kind, n, d, n_neighbours, by_products, n_threads=1):
    X = random_points(n, n, d, kind)
    if by_products:
        ordered = tiles.order_points(X, tiles.SMALLEST_BLOCK)
        return ordered.points, products.nearest_neighbours(ordered, n_threads)
    tree = kdtree.build(X)
    return tree.points, neighbours.nearest_neighbours(tree, n_neighbours, n_threads)


class TestNeighbourLists:
    @pytest.mark.parametrize(
        ("n", "n_neighbours", "by_products"),
        [
            (2, 3, False),
            (17, 1, False),
            (150, 2, False),
            (300, 5, False),
            (2, 8, True),
            (9, 8, True),
            (150, 8, True),
            (300, 8, True),
        ],
    )
    @pytest.mark.parametrize("d", [1, 2, 5])
    @each_kind
    def test_are_complete_below_the_horizon(self, kind, d, n, n_neighbours, by_products):
        points, lists = lists_of(kind, size(n), d, n_neighbours, by_products)
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

    @pytest.mark.parametrize("by_products", [False, True])
    @each_kind
    def test_do_not_depend_on_the_threads(self, kind, by_products, monkeypatch):
        monkeypatch.setattr(neighbours, "CHUNK_BLOCKS", 2)
        _, one = lists_of(kind, size(300), 3, 4, by_products)
        _, many = lists_of(kind, size(300), 3, 4, by_products, n_threads=3)
        for array, other in zip(one, many, strict=True):
            np.testing.assert_array_equal(array, other)


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
            ordered = tiles.order_points(X, tiles.SMALLEST_BLOCK)
            search = partial(product_outsiders.nearest_outsiders, ordered)
        else:
            ordered = kdtree.build(X)
            search = partial(neighbours.nearest_outsiders, ordered)
        points, index = ordered.points, ordered.order
        n = len(points)
        components = Components(lanes.padded_range(n), index, rng.integers(0, 3, n))
        n_components = min(n_components, n)
        components.of[:] = np.concatenate(
            [np.arange(n_components), rng.integers(0, n_components, n - n_components)]
        )[rng.permutation(n)]
        # Nothing is known yet but what `certain` components know.
        certain, horizon = rng.random(n_components) < 0.2, np.zeros(n)
        best = np.array([(np.inf, -1, -1, 0)] * n_components, dtype=ARC)
        prototypes, bounds = np.zeros(n, dtype=bool), best["squared"].copy()
        state = OutgoingArcSearch(components, best, certain, horizon, prototypes, bounds)
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
        assert set(np.flatnonzero(prototypes)) == ends
        # Horizons are still true: nobody outside is nearer.
        D[components.of[:, None] == components.of[None, :]] = np.inf
        assert (D.min(axis=1) >= horizon).all()


@given(seed=seeds, kind=kinds, k=st.integers(1, 6))
@bounded(30)
def test_the_tree_does_not_depend_on_how_long_the_lists_are(seed, kind, k):
    tree = kdtree.build(random_points(seed, size(80), 2, kind))
    classes = np.random.default_rng(seed).integers(0, 2, len(tree.points))
    lists = neighbours.nearest_neighbours(tree, k)

    search = partial(neighbours.nearest_outsiders, tree, 1)
    found, prototypes = spanning_tree(lists, tree.order, classes, search)
    X, y = np.empty_like(tree.points), np.empty_like(classes)
    X[tree.order], y[tree.order] = tree.points, classes
    D = naive.squared_distances(X, X)
    edges = SpanningTree(tree.order[found.lower], tree.order[found.higher], found.weights)
    lower, higher, weights = (array.tolist() for array in edges.in_order())
    assert list(zip(weights, lower, higher, strict=True)) == naive.kruskal(D)
    np.testing.assert_array_equal(prototypes, naive.prototypes(D, y)[tree.order])


def make_tile(rows, columns, center, real, left_over=0.0):
    """Lay out two blocks in a precision, None for the one that tells nothing, in memory used before."""
    tile = tiles.empty_tile(len(rows), len(columns), rows.shape[1], real or np.float64)
    for part in tile[:7]:
        part.fill(left_over)
    if real is None:
        tile = tile._replace(shrink=0.0)
    tiles.set_rows(tile, rows, np.arange(len(rows)), len(rows), center)
    tiles.set_columns(tile, columns, 0, len(columns), center)
    return tile


def lower_bounds(tile):
    """What a tile tells about squared distances, in its own precision, as `tile_hits` takes it."""
    products = tiles.multiply(tile, 0, len(tile.left), 0, len(tile.right))
    return tile.row_norms[:, np.newaxis] + tile.column_norms - (products + products)


class TestTiles:
    @given(
        seed=seeds,
        d=st.sampled_from([1, 2, 7, 100, 3000]),
        offset=st.sampled_from([0.0, 1.0, 1e4, 1e8]),
        spread=st.sampled_from([1e-12, 1e-6, 1.0]),
    )
    @pytest.mark.parametrize("real", [np.float32, np.float64, None])
    @bounded(60)
    def test_never_exceed_the_distances(self, real, seed, d, offset, spread):
        rng = np.random.default_rng(seed)
        center = offset * rng.normal(size=d)
        rows = center + spread * rng.normal(size=(rng.integers(1, 40), d))
        columns = center + rng.choice([spread, 1.0]) * rng.normal(size=(rng.integers(1, 40), d))
        columns[: len(rows)] = rows[: len(columns)]  # some pairs are at no distance
        squared = naive.squared_distances(rows, columns)
        tile = make_tile(rows, columns, center, real)
        bounds = lower_bounds(tile)
        assert bounds.shape[1] % LANES == 0
        assert np.isinf(bounds[:, len(columns) :]).all()
        bounds = bounds[:, : len(columns)]
        assert (bounds <= squared).all()
        # Rounded to the precision of the tile, no bound falls below what it was.
        tile.row_bounds[:] = squared.min(axis=1) * tile.widen + tile.slack
        assert (tile.row_bounds >= squared.min(axis=1)).all()
        if real is not None:  # and they are worth having
            loose = 8.0 * (d + 16) * np.finfo(real).eps
            norms = ((rows - center) ** 2).sum(axis=1)[:, None] + ((columns - center) ** 2).sum(1)
            nothing = 4.0 * (d + 16) * np.finfo(real).tiny
            assert (bounds >= squared - loose * norms - nothing).all()

    @pytest.mark.parametrize("real", [np.float32, np.float64, None])
    def test_do_not_depend_on_what_was_in_their_memory(self, real):
        rows, columns = np.random.default_rng(0).normal(size=(2, 30, 5))
        fresh, used = (make_tile(rows, columns, rows[0], real, value) for value in (0.0, np.nan))
        np.testing.assert_array_equal(lower_bounds(used), lower_bounds(fresh))

    @given(seed=seeds, exponent=st.integers(-85, -60))
    @bounded(60)
    def test_admit_pairs_whose_squares_nearly_vanish_in_float32(self, seed, exponent):
        rng = np.random.default_rng(seed)
        points = np.ldexp(rng.normal(size=(20, 2)), exponent)
        squared = naive.squared_distances(points, points)
        tile = make_tile(points, points, np.zeros(2), np.float32)
        for column in range(20):  # each bound is that of one pair, which must pass
            tile.row_bounds[:] = squared[:, column] * tile.widen + tile.slack
            assert (lower_bounds(tile)[:, column] <= tile.row_bounds).all()

    @pytest.mark.parametrize("block", [tiles.SMALLEST_BLOCK, 100])
    @each_kind
    def test_blocks_hold_all_points_within_their_radius(self, kind, block):
        X = random_points(0, size(500), 4, kind)
        ordered = tiles.order_points(X, block)
        np.testing.assert_array_equal(np.sort(ordered.order), np.arange(len(X)))
        np.testing.assert_array_equal(ordered.points, X[ordered.order])
        assert ordered.starts[0] == 0
        assert ordered.starts[-1] == len(X)
        assert (np.diff(ordered.starts) <= block).all()
        assert (np.diff(ordered.starts)[:-1] == block).all()
        for b, (start, stop) in enumerate(zip(ordered.starts, ordered.starts[1:], strict=False)):
            away = naive.squared_distances(ordered.points[start:stop], ordered.centers[[b]])
            assert np.sqrt(away.max()) <= ordered.radii[b]

    @each_kind
    def test_gaps_never_exceed_the_distances_between_blocks(self, kind):
        ordered = tiles.order_points(random_points(1, size(500), 3, kind), tiles.SMALLEST_BLOCK)
        D = naive.squared_distances(ordered.points, ordered.points)
        n_blocks = len(ordered.radii)
        nearest = np.minimum.reduceat(D, ordered.starts[:-1], axis=0)
        nearest = np.minimum.reduceat(nearest, ordered.starts[:-1], axis=1)
        for b in range(n_blocks):
            assert (tiles.gap(ordered, b, np.arange(n_blocks)) <= nearest[b]).all()

    def test_precision_is_as_low_as_the_bound_allows(self):
        assert tiles.sufficient_bits(10, 1.0, 1.0, 1.0) == 32
        assert tiles.sufficient_bits(10, 1.0, 1e-6, 1.0) == 64
        assert tiles.sufficient_bits(10, 1e-20, 1.0, 1.0) == 64
        assert tiles.sufficient_bits(10, 0.0, 1.0, 1.0) == 0

    @pytest.mark.parametrize("n_bytes", [1, 2**16, 2**20, 2**30])
    @pytest.mark.parametrize("d", [1, 100, 5000])
    def test_block_sizes_are_whole_lanes_within_the_memory(self, d, n_bytes):
        block = tiles.block_size(d, n_bytes)
        assert block % LANES == 0
        assert tiles.SMALLEST_BLOCK <= block <= tiles.BLOCK
        if block > tiles.SMALLEST_BLOCK:
            assert 8 * block * (block + 4 * d) <= n_bytes


@pytest.mark.parametrize("n_blocks", range(1, 14))
def test_in_a_tournament_every_two_meet_once_and_nobody_is_in_two_places(n_blocks):
    turns = products.tournament(n_blocks)
    for pairs in turns:
        players = [block for pair in pairs for block in pair]
        assert len(set(players)) == len(players)
    met = sorted(pair for pairs in turns for pair in pairs)
    assert met == [(i, j) for i in range(n_blocks) for j in range(i + 1, n_blocks)]


class TestConquest:
    @given(seed=seeds, kind=kinds, n_levels=st.integers(1, 4), n_threads=st.integers(1, 2))
    @pytest.mark.parametrize("by_products", [False, True])
    @bounded(40)
    def test_is_the_definition_whatever_the_costs(
        self, by_products, seed, kind, n_levels, n_threads
    ):
        rng = np.random.default_rng(seed)
        points = random_points(seed, size(150), 2, kind)
        n = len(points)
        D = naive.squared_distances(points, points)
        # Few different costs, of the size of the distances, so that many offers are equal.
        levels = np.append(0.0, rng.choice(D.ravel(), n_levels))
        costs, classes = rng.choice(levels, n), rng.integers(0, 3, n)
        queries = np.concatenate([points[rng.integers(0, n, 15)], rng.choice(points, 5) + 0.1])
        rank = classes * n + np.arange(n)
        if by_products:
            index = CostedBlocks.build(points, costs, rank, tiles.SMALLEST_BLOCK)
        else:
            space = kdtree.build(points)
            index = CostedTree.build(space, costs[space.order], rank[space.order])
        found = index.conquer(queries, n_threads)
        to_queries = naive.squared_distances(queries, points)
        nodes, path_costs = naive.conquer(costs, to_queries, classes)
        np.testing.assert_array_equal(found.nodes, nodes)
        np.testing.assert_array_equal(found.costs, path_costs)
        np.testing.assert_array_equal(found.distances, to_queries[np.arange(20), nodes])

    def test_every_node_knows_its_lowest_cost(self):
        points = random_points(0, size(300), 2, "continuous")
        costs = np.random.default_rng(0).random(len(points))
        index = CostedTree.build(kdtree.build(points), costs, np.arange(len(points)))
        for node, first, last, _ in children(index.space):
            assert index.lowest[node] == index.costs[first * LANES : last * LANES].min()
