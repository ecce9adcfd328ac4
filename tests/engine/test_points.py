"""Distinct points among the samples: copied, scaled, without duplicates; and the space tree over them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popf.engine import points
from popf.engine.points import build_space_tree, distinct_points
from popf.engine.runtime.simd import LANES
from strategies import KINDS, bounded, random_points, size


@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 2)), min_size=1, max_size=30))
@bounded(60)
def test_every_sample_has_the_point_where_it_lies(rows):
    X = np.array(rows, dtype=np.float64)
    found = distinct_points(X)
    np.testing.assert_array_equal(np.ldexp(found.points, found.exponent)[found.point_of], X)
    # Points are numbered as they first occur, and `first` is where that is.
    expected = [rows.index(row) for row in dict.fromkeys(rows)]
    np.testing.assert_array_equal(found.first, expected)


def test_zeros_of_both_signs_are_one_point():
    found = distinct_points(np.array([[0.0, 1.0], [-0.0, 1.0]]))
    np.testing.assert_array_equal(found.point_of, 0)
    assert not np.signbit(found.points).any()


@pytest.mark.parametrize("scale", [1e-310, 1e-150, 1.0, 1e150, 1.7e308])
def test_the_largest_value_comes_between_a_half_and_one(scale):
    X = np.array([[0.5 * scale], [-scale], [0.0]])
    found = distinct_points(X)
    assert 0.5 <= np.abs(found.points).max() < 1.0
    np.testing.assert_array_equal(np.ldexp(found.points, found.exponent), X)


def test_all_zeros_have_no_scale():
    found = distinct_points(np.zeros((3, 2)))
    assert (found.exponent, len(found.points)) == (0, 1)


# The space tree -----------------------------------------------------------------------------------


def nodes_of(tree):
    """Walk down a tree: each node with its first and last block."""
    waiting = [(0, 0, len(tree.blocks))]
    while waiting:
        node, first, last = waiting.pop()
        yield node, first, last
        right = int(tree.nodes["right"][node])
        if right >= 0:
            middle = int(tree.nodes["block"][right])
            waiting += [(node + 1, first, middle), (right, middle, last)]


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 32, 33, 100, 777])
@pytest.mark.parametrize("kind", KINDS)
def test_holds_all_points_in_tight_boxes(n, kind):
    X = random_points(n, size(n), 3, kind)
    before = X.copy()
    tree = build_space_tree(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(np.sort(tree.order), np.arange(len(X)))
    np.testing.assert_array_equal(tree.points, X[tree.order])
    columns = tree.blocks.transpose(0, 2, 1).reshape(-1, 3)
    np.testing.assert_array_equal(columns[: len(X)], tree.points)
    assert np.isinf(columns[len(X) :]).all()
    assert len(tree.blocks) == -(-len(X) // LANES)
    assert tree.blocks.ctypes.data % points.ALIGNMENT == 0
    costs = np.random.default_rng(n).random(len(X))
    lowest = points.lowest_in_nodes(tree.nodes, costs)
    seen = []
    for node, first, last in nodes_of(tree):
        here = slice(first * LANES, last * LANES)
        np.testing.assert_array_equal(tree.lows[node], tree.points[here].min(axis=0))
        np.testing.assert_array_equal(tree.highs[node], tree.points[here].max(axis=0))
        assert lowest[node] == costs[here].min()
        seen.append(node)
    assert sorted(seen) == list(range(len(tree.nodes)))


def test_equal_points_are_no_obstacle():
    # Queries are grouped by a tree as well, and they may coincide.
    tree = build_space_tree(np.ones((100, 2)))
    np.testing.assert_array_equal(np.sort(tree.order), np.arange(100))


def test_a_split_separates_categories():
    # A median would leave zeros on both sides, in every node on the way down to the ones.
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(size(2000)) % 20 == 0, 0.1 * rng.random((size(2000), 2))])
    tree = build_space_tree(X)
    assert tree.lows[1, 0] == tree.highs[1, 0] == 0.0  # zeros only, and one block of both
    leaves = tree.leaf
    assert np.count_nonzero(tree.lows[leaves, 0] < tree.highs[leaves, 0]) <= 1


def test_many_rare_categories_do_not_make_a_tree_too_deep():
    X = np.eye(100)[np.random.default_rng(0).permutation(1700) % 100]
    tree = build_space_tree(X)
    depth = np.zeros(len(tree.nodes), dtype=int)
    for node, *_ in sorted(nodes_of(tree))[1:]:  # parents come first
        depth[node] = depth[tree.nodes["parent"][node]] + 1
    assert points.MAX_UNEQUAL_SPLITS < depth.max() < 100  # searches have stacks for 128 nodes
