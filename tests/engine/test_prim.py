"""Prim's tree is the one unique tree, and its prototypes are those of the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from popf.engine.distances import kernel_rows
from popf.engine.trees.prim import spanning_tree
from popf.forest.metrics import choose_metric


def from_matrix(D, y):
    rows = choose_metric("precomputed").rows(np.ascontiguousarray(D, dtype=np.float64))
    return spanning_tree(rows, len(D), np.asarray(y, dtype=np.int64))


def assert_is_the_tree(D, y):
    tree, is_prototype = from_matrix(D, y)
    edges = list(zip(tree.weights.tolist(), tree.lower.tolist(), tree.higher.tolist(), strict=True))
    assert edges == naive.kruskal(D)
    np.testing.assert_array_equal(is_prototype, naive.prototypes(D, y))


@st.composite
def weights_and_labels(draw, levels, max_size=14):
    """Symmetric matrices whose entries take few values, so that nearly all arcs tie."""
    n = draw(st.integers(2, max_size))
    entries = draw(st.lists(levels, min_size=n * n, max_size=n * n))
    D = np.triu(np.array(entries, dtype=np.float64).reshape(n, n), 1)
    y = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    return D + D.T, np.array(y)


@st.composite
def points_and_labels(draw, n_values=3, max_size=18):
    n, d = draw(st.integers(2, max_size)), draw(st.integers(1, 3))
    X = draw(st.lists(st.integers(0, n_values), min_size=n * d, max_size=n * d))
    y = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    return np.array(X, dtype=np.float64).reshape(n, d), np.array(y)


def test_the_references_agree():
    D = naive.squared_distances(*[np.random.default_rng(0).integers(0, 3, (15, 2))] * 2)
    assert naive.prim(D) == naive.kruskal(D)


@given(weights_and_labels(st.integers(0, 2)))
@settings(max_examples=150, deadline=None)
def test_tree_and_prototypes_under_heavy_ties(problem):
    assert_is_the_tree(*problem)


@given(weights_and_labels(st.floats(0, 10, width=32)))
@settings(max_examples=50, deadline=None)
def test_tree_and_prototypes_on_arbitrary_weights(problem):
    assert_is_the_tree(*problem)


@given(points_and_labels())
@settings(max_examples=100, deadline=None)
def test_tree_and_prototypes_on_small_grids(problem):
    X, y = problem
    D = naive.squared_distances(X, X)
    assert_is_the_tree(D, y)
    tree, is_prototype = spanning_tree(kernel_rows("sqeuclidean", X), len(X), y)
    expected, expected_prototypes = from_matrix(D, y)
    np.testing.assert_array_equal(np.array(tree), np.array(expected))
    np.testing.assert_array_equal(is_prototype, expected_prototypes)


@pytest.mark.parametrize("seed", range(5))
def test_continuous_data_have_the_prototypes_of_the_one_tree(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    D = naive.squared_distances(X, X)
    assert_is_the_tree(D, y)
    np.testing.assert_array_equal(from_matrix(D, y)[1], naive.single_tree_prototypes(D, y))


@given(points_and_labels(), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_prototypes_do_not_depend_on_the_order_of_the_rows(problem, random):
    X, y = problem
    shuffled = list(range(len(X)))
    random.shuffle(shuffled)
    _, before = spanning_tree(kernel_rows("manhattan", X), len(X), y)
    _, after = spanning_tree(kernel_rows("manhattan", X[shuffled]), len(X), y[shuffled])
    np.testing.assert_array_equal(before[shuffled], after)


def test_an_arc_that_a_shorter_detour_beats_makes_no_prototype():
    # 0 ties with 1 and 2; then 1 leads over 3 to 2 by shorter arcs, so 1-2 lies in no tree, though
    # it was as short as the shortest arc to 2 when 1 joined.
    D = np.array([[0, 4, 4, 9], [4, 0, 4, 1], [4, 4, 0, 1], [9, 1, 1, 0]], dtype=float)
    y = np.array([0, 1, 0, 1])
    np.testing.assert_array_equal(from_matrix(D, y)[1], naive.prototypes(D, y))


def test_twins_among_equidistant_samples_cost_no_more_than_twice_the_distances():
    # Whenever a pair of twins has joined, everyone outside has two new rivals.
    n = 60
    twin = np.arange(n) // 2
    D = np.where(twin[:, None] == twin[None, :], 1.0, 2.0)
    y = np.arange(n) % 3
    evaluations = 0

    def among(others):
        def row(i):
            nonlocal evaluations
            evaluations += len(others)
            return D[i, others]

        return row

    _, is_prototype = spanning_tree(among, n, y)
    np.testing.assert_array_equal(is_prototype, naive.prototypes(D, y))
    assert evaluations <= 1.2 * n * n


def test_continuous_data_cost_half_the_matrix():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    D = naive.squared_distances(X, X)
    evaluated = []

    def among(others):
        def row(i):
            evaluated.append(len(others))
            return D[i, others]

        return row

    spanning_tree(among, 100, y)
    assert len(evaluated) == 99  # one row a step: ties would have asked for more
    assert sum(evaluated) < 0.6 * 100 * 100


@pytest.mark.parametrize("y", [[0, 1], [0, 0]])
def test_two_samples(y):
    assert_is_the_tree(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array(y))


def test_one_sample_has_no_edges():
    tree, is_prototype = from_matrix(np.zeros((1, 1)), [0])
    assert len(tree.weights) == 0
    assert not is_prototype.any()


def test_equal_points_of_two_classes_are_all_prototypes():
    X, y = np.ones((9, 2)), np.arange(9) % 2
    tree, is_prototype = spanning_tree(kernel_rows("sqeuclidean", X), 9, y)
    np.testing.assert_array_equal(tree.lower, 0)
    np.testing.assert_array_equal(tree.weights, 0.0)
    assert is_prototype.all()


def test_duplicates_with_conflicting_labels():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [5.0]])
    assert_is_the_tree(naive.squared_distances(X, X), np.array([0, 1, 0, 0, 0, 1]))


def test_threads_do_not_change_the_tree(monkeypatch):
    monkeypatch.setattr("popf.engine.distances.GRAIN", 1)
    X = np.random.default_rng(3).integers(0, 4, (80, 2)).astype(float)
    y = np.arange(80) % 2
    one = spanning_tree(kernel_rows("manhattan", X), 80, y)
    many = spanning_tree(kernel_rows("manhattan", X, n_threads=3), 80, y)
    np.testing.assert_array_equal(np.array(one[0]), np.array(many[0]))
    np.testing.assert_array_equal(one[1], many[1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_a_weight_that_is_none_is_named(bad):
    D = np.ones((4, 4))
    D[2, 3] = D[3, 2] = bad
    with pytest.raises(ValueError, match=rf"samples 2 and 3 is {bad}|samples 3 and 2 is {bad}"):
        from_matrix(D, [0, 0, 1, 1])


def test_an_asymmetric_metric_still_gives_a_spanning_tree():
    D = np.random.default_rng(0).integers(0, 3, (12, 12)).astype(float)
    tree, _ = from_matrix(D, np.arange(12) % 2)
    assert len(set(zip(tree.lower.tolist(), tree.higher.tolist(), strict=True))) == 11
    assert set(tree.lower) | set(tree.higher) == set(range(12))
