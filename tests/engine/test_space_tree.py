"""The space tree: all points in tight boxes, categories apart, and never too deep."""

import numpy as np
import pytest

from popf.engine.runtime.simd import LANES
from popf.engine.space_tree import (
    ALIGNMENT,
    MAX_UNEQUAL_SPLITS,
    build_space_tree,
    lowest_in_nodes,
)
from strategies import KINDS, random_points, size


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
    assert tree.blocks.ctypes.data % ALIGNMENT == 0
    costs = np.random.default_rng(n).random(len(X))
    lowest = lowest_in_nodes(tree.nodes, costs)
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


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_split_separates_categories(noise):
    # A median would leave zeros on both sides, in every node on the way down to the ones. Other sides are
    # wider, but they have no gaps.
    rng, n = np.random.default_rng(0), size(2000)
    values = (np.arange(n) % 20 == 0) + noise * rng.random(n)
    tree = build_space_tree(np.column_stack([values, 3.0 * rng.random((n, 2))]))
    assert tree.highs[1, 0] < 0.5  # zeros on the left; the ones and a few zeros on the right
    leaves = tree.leaf
    mixed = (tree.lows[leaves, 0] < 0.5) & (tree.highs[leaves, 0] > 0.5)
    assert np.count_nonzero(mixed) <= 1


def test_gaps_too_narrow_for_a_division_do_not_count():
    tiny = 5e-324 * (np.arange(200) % 2)
    tree = build_space_tree(np.column_stack([np.full(200, 0.5), tiny]))
    assert tree.nodes["block"][tree.nodes["right"][0]] == len(tree.blocks) // 2


def test_many_rare_categories_do_not_make_a_tree_too_deep():
    X = np.eye(100)[np.random.default_rng(0).permutation(1700) % 100]
    tree = build_space_tree(X)
    depth = np.zeros(len(tree.nodes), dtype=int)
    for node, *_ in sorted(nodes_of(tree))[1:]:  # parents come first
        depth[node] = depth[tree.nodes["parent"][node]] + 1
    assert MAX_UNEQUAL_SPLITS < depth.max() < 100  # searches have stacks for 128 nodes
