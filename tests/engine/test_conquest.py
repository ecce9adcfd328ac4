"""Who conquers a new sample is who the definition says: by a scan, in the space tree, by products."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from popf.engine import space_tree, tiles
from popf.engine.conquest.by_scan import conquer, costs_by_class, rows_per_block
from popf.engine.conquest.by_space_tree import CostedTree
from popf.engine.conquest.by_tiles import CostedBlocks
from popf.forest.metrics import choose_metric
from strategies import KINDS, bounded, random_points, seeds, size


@given(
    seed=seeds, kind=st.sampled_from(KINDS), n_levels=st.integers(1, 4), n_threads=st.integers(1, 2)
)
@pytest.mark.parametrize("by_products", [False, True])
@bounded(40)
def test_indices_conquer_by_the_definition_whatever_the_costs(
    by_products, seed, kind, n_levels, n_threads
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
        space = space_tree.build(points)
        index = CostedTree.build(space, costs[space.order], rank[space.order])
    found = index.conquer(queries, n_threads)
    to_queries = naive.squared_distances(queries, points)
    nodes, path_costs = naive.conquer(costs, to_queries, classes)
    np.testing.assert_array_equal(found.nodes, nodes)
    np.testing.assert_array_equal(found.costs, path_costs)
    np.testing.assert_array_equal(found.distances, to_queries[np.arange(20), nodes])


@st.composite
def problems(draw, levels):
    n, q = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    D = draw(st.lists(levels, min_size=n * q, max_size=n * q))
    C = draw(st.lists(levels, min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    return np.array(D, dtype=np.float64).reshape(q, n), np.array(C, dtype=np.float64), np.array(y)


def blocks(D):
    return lambda start, stop: D[start:stop]


@pytest.mark.parametrize(("block_rows", "n_threads"), [(None, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("levels", [st.integers(0, 2), st.floats(0, 1)], ids=["ties", "no ties"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_scan_is_the_definition(block_rows, n_threads, levels, data):
    D, costs, y = data.draw(problems(levels))
    nodes, path_costs, distances = conquer(blocks(D), len(D), costs, y, block_rows, n_threads)
    expected_nodes, expected_costs = naive.conquer(costs, D, y)
    np.testing.assert_array_equal(nodes, expected_nodes)
    np.testing.assert_array_equal(path_costs, expected_costs)
    np.testing.assert_array_equal(distances, D[np.arange(len(D)), nodes])
    offers = costs_by_class(blocks(D), len(D), costs, y, 3, block_rows, n_threads)
    np.testing.assert_array_equal(offers, naive.costs_by_class(costs, D, y, 3))
    np.testing.assert_array_equal(offers.min(axis=1), path_costs)


def test_ties_go_to_the_nearer_then_the_lower_class_then_the_lower_index():
    D = np.array([[2.0, 1.0, 1.0, 1.0]])
    costs = np.array([2.0, 2.0, 2.0, 2.0])
    assert conquer(blocks(D), 1, costs, np.array([0, 2, 1, 1]))[0] == [2]
    assert conquer(blocks(D), 1, costs, np.array([0, 1, 1, 1]))[0] == [1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -2.0])
@pytest.mark.parametrize("block_rows", [None, 1])
def test_a_distance_that_is_none_is_named(bad, block_rows):
    D = np.ones((5, 3))
    D[3, 2] = bad
    message = f"new sample 3 and training sample 2 is {bad}"
    with pytest.raises(ValueError, match=message):
        conquer(blocks(D), 5, np.zeros(3), np.zeros(3, dtype=np.int64), block_rows)
    with pytest.raises(ValueError, match=message):
        costs_by_class(blocks(D), 5, np.zeros(3), np.zeros(3, dtype=np.int64), 1, block_rows)


def test_no_queries():
    nodes, path_costs, _ = conquer(blocks(np.ones((0, 2))), 0, np.zeros(2), np.array([0, 1]))
    assert len(nodes) == len(path_costs) == 0


def test_blocks_are_bounded_by_memory():
    assert rows_per_block(10**9) == 1
    assert rows_per_block(100) * 100 * 8 <= 2**24


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", lambda x, y: abs(x - y).sum()])
def test_scan_with_the_blocks_of_a_metric(metric):
    rng = np.random.default_rng(0)
    X, Q, costs, y = rng.random((9, 2)), rng.random((4, 2)), rng.random(9), np.arange(9) % 2
    block = choose_metric(metric).blocks(Q, X)
    nodes, _, _ = conquer(block, 4, costs, y, block_rows=3)
    np.testing.assert_array_equal(nodes, naive.conquer(costs, block(0, 4), y)[0])
