"""Prim's tree and its prototypes are those of the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from popf.engine.mst.prim import spanning_tree
from popf.forest.metrics import choose_metric
from strategies import bounded


def from_matrix(D, y):
    rows = choose_metric("precomputed").rows(np.ascontiguousarray(D, dtype=np.float64))
    return spanning_tree(rows, len(D), np.asarray(y, dtype=np.int64))


def assert_is_the_tree(D, y):
    tree, is_prototype = from_matrix(D, y)
    edges = list(zip(tree.weights.tolist(), tree.lower.tolist(), tree.higher.tolist(), strict=True))
    assert edges == naive.kruskal(D)
    np.testing.assert_array_equal(is_prototype, naive.prototypes(D, y))


@pytest.mark.parametrize(
    "levels", [st.integers(0, 2), st.floats(0, 10, width=32)], ids=["heavy ties", "any weights"]
)
@given(data=st.data())
@bounded(50)
def test_tree_and_prototypes_on_arbitrary_weights(levels, data):
    n = data.draw(st.integers(1, 14))
    entries = data.draw(st.lists(levels, min_size=n * n, max_size=n * n))
    D = np.triu(np.array(entries, dtype=np.float64).reshape(n, n), 1)
    y = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    assert_is_the_tree(D + D.T, np.array(y))


def test_without_ties_prototypes_are_the_ends_of_edges_between_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    D = naive.squared_distances(X, X)
    assert_is_the_tree(D, y)
    np.testing.assert_array_equal(from_matrix(D, y)[1], naive.single_tree_prototypes(D, y))


def counting(D, lengths):
    """Rows of a matrix; notes how many weights are asked for at a time."""

    def among(others):
        def row(i):
            lengths.append(len(others))
            return D[i, others]

        return row

    return among


def test_continuous_data_cost_half_the_matrix():
    X = np.random.default_rng(0).normal(size=(100, 2))
    lengths = []
    spanning_tree(counting(naive.squared_distances(X, X), lengths), 100, np.arange(100) % 2)
    assert len(lengths) == 99  # one row a step: ties would have asked for more
    assert sum(lengths) < 0.6 * 100 * 100


def test_twins_among_equidistant_samples_cost_no_more_than_twice_the_distances():
    # Whenever a pair of twins has joined, everyone outside has two new rivals.
    n, lengths = 60, []
    twin = np.arange(n) // 2
    D = np.where(twin[:, None] == twin[None, :], 1.0, 2.0)
    _, is_prototype = spanning_tree(counting(D, lengths), n, np.arange(n) % 3)
    np.testing.assert_array_equal(is_prototype, naive.prototypes(D, np.arange(n) % 3))
    assert sum(lengths) <= 1.2 * n * n


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_a_negative_or_non_finite_weight_is_named(bad):
    D = np.ones((4, 4))
    D[2, 3] = D[3, 2] = bad
    with pytest.raises(ValueError, match=rf"samples 2 and 3 is {bad}|samples 3 and 2 is {bad}"):
        from_matrix(D, [0, 0, 1, 1])


def test_an_asymmetric_metric_still_gives_a_spanning_tree():
    D = np.random.default_rng(0).integers(0, 3, (12, 12)).astype(float)
    tree, _ = from_matrix(D, np.arange(12) % 2)
    assert len(set(zip(tree.lower.tolist(), tree.higher.tolist(), strict=True))) == 11
    assert set(tree.lower) | set(tree.higher) == set(range(12))
