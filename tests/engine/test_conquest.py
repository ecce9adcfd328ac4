"""Who conquers a new sample is who the definition says: by a scan, in the space tree, by products."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from popf.engine.conquest import EuclideanConquest
from popf.engine.distances import rows_per_block
from popf.engine.points import DistinctPoints
from popf.engine.scanned_nodes import ScannedNodes
from popf.engine.structures import Resources
from popf.forest.metrics import choose_metric
from strategies import KINDS, bounded, random_points, seeds, size

PRECOMPUTED = choose_metric("precomputed")


@given(
    seed=seeds, kind=st.sampled_from(KINDS), n_levels=st.integers(1, 4), n_threads=st.integers(1, 2)
)
@pytest.mark.parametrize("algorithm", ["kd_tree", "brute"])
@bounded(40)
def test_indices_conquer_by_the_definition_whatever_the_costs(
    algorithm, seed, kind, n_levels, n_threads
):
    rng = np.random.default_rng(seed)
    points = random_points(seed, size(150), 2, kind)
    n = len(points)
    D = naive.squared_distances(points, points)
    # Few different costs, of the size of the distances, so that many offers are equal.
    levels = np.append(0.0, rng.choice(D.ravel(), n_levels))
    costs, classes = rng.choice(levels, n), rng.integers(0, 3, n)
    queries = np.concatenate([points[rng.integers(0, n, 15)], rng.choice(points, 5) + 0.1])
    distinct = DistinctPoints(points, 0, np.arange(n), np.arange(n))
    # So little memory that products come in the smallest blocks.
    index = EuclideanConquest(distinct, classes, costs, algorithm, Resources(n_bytes=1))
    found, _ = index.conquer(queries, n_threads)
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


@pytest.mark.parametrize(("rows", "n_threads"), [(6, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("levels", [st.integers(0, 2), st.floats(0, 1)], ids=["ties", "no ties"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_scan_is_the_definition(rows, n_threads, levels, data):
    D, costs, y = data.draw(problems(levels))
    nodes = ScannedNodes(PRECOMPUTED, None, y, costs, 8 * rows * n_threads * len(y))
    found, _ = nodes.conquer(D, n_threads)
    expected_nodes, expected_costs = naive.conquer(costs, D, y)
    np.testing.assert_array_equal(found.nodes, expected_nodes)
    np.testing.assert_array_equal(found.costs, expected_costs)
    np.testing.assert_array_equal(found.distances, D[np.arange(len(D)), found.nodes])
    offers, _ = nodes.costs_by_class(D, n_threads)
    np.testing.assert_array_equal(offers, naive.costs_by_class(costs, D, y, y.max() + 1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -2.0])
@pytest.mark.parametrize("n_bytes", [1, 2**20])
def test_a_negative_or_non_finite_distance_is_named(bad, n_bytes):
    D = np.ones((5, 3))
    D[3, 2] = bad
    nodes = ScannedNodes(PRECOMPUTED, None, np.zeros(3, dtype=np.int64), np.zeros(3), n_bytes)
    for ask in (nodes.conquer, nodes.costs_by_class):
        with pytest.raises(ValueError, match=f"new sample 3 and training sample 2 is {bad}"):
            ask(D)


def test_blocks_are_bounded_by_memory():
    assert rows_per_block(10**9, 2**30, 4) == 1
    assert rows_per_block(100, 2**30, 4) * 100 * 8 <= 2**24
    assert rows_per_block(100, 2**16, 4) * 100 * 8 <= 2**14
