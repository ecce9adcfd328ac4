"""Few labels: the classifier against the definition, ties, marks of unlabelled samples, files."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist

import naive
from popf import SemiSupervisedOPFClassifier
from strategies import (
    ALGORITHMS,
    MOON,
    MOONS,
    assert_paths_are_valid,
    bounded,
    furthest_feature,
    gaussian,
    problems,
    small_integers,
)


def with_few_labels(y, share=0.1, seed=0):
    """Keep some labels, of every class at least one; -1 for the others."""
    rng = np.random.default_rng(seed)
    few = np.where(rng.random(len(y)) < share, y, -1)
    for label in np.unique(y):
        few[rng.choice(np.flatnonzero(y == label))] = label
    return few


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n_features", [1, 2, 7])
def test_labels_and_costs_are_those_of_the_competition_on_the_complete_graph(algorithm, n_features):
    X, y, queries = gaussian(n_features, 70, n_features, n_classes=3)
    y = with_few_labels(y)
    model = SemiSupervisedOPFClassifier("sqeuclidean", algorithm=algorithm, n_jobs=2).fit(X, y)
    costs, roots = naive.competition(naive.squared_distances(X, X), y >= 0)
    assert_array_equal(model.costs_, costs)
    assert_array_equal(model.roots_, roots)
    assert_array_equal(model.transduction_, y[roots])
    assert_array_equal(model.prototypes_, np.flatnonzero(y >= 0))
    assert_paths_are_valid(model, y[roots])
    nodes, _ = naive.conquer(costs, naive.squared_distances(queries, X), y[roots])
    assert_array_equal(model.predict(queries), y[roots][nodes])


@bounded(60)
@given(problems(small_integers), st.randoms(use_true_random=False))
def test_ties_and_conflicting_duplicates_do_not_fall_to_the_order_of_the_rows(problem, random):
    X, y, queries = problem
    few = np.array([label if i < 2 or random.random() < 0.3 else -1 for i, label in enumerate(y)])
    if len(set(few[few >= 0])) < 2:
        few = y
    shuffled = np.array(random.sample(range(len(y)), len(y)))
    model = SemiSupervisedOPFClassifier("sqeuclidean").fit(X, few)
    twin = SemiSupervisedOPFClassifier("sqeuclidean", algorithm="prim").fit(
        X[shuffled], few[shuffled]
    )
    costs, _ = naive.competition(naive.squared_distances(X, X), few >= 0)
    assert_array_equal(model.costs_, costs)
    assert_array_equal(model.transduction_[few >= 0], few[few >= 0])
    assert_paths_are_valid(model, model.transduction_)
    assert_array_equal(model.transduction_[shuffled], twin.transduction_)
    assert_array_equal(model.predict(queries), twin.predict(queries))


@pytest.mark.parametrize(
    ("metric", "distance"),
    [("manhattan", "cityblock"), (furthest_feature, "chebyshev"), ("precomputed", "euclidean")],
)
def test_any_metric_serves(metric, distance):
    y, D = with_few_labels(MOON), cdist(MOONS, MOONS, distance)
    model = SemiSupervisedOPFClassifier(metric).fit(D if metric == "precomputed" else MOONS, y)
    costs, roots = naive.competition(D, y >= 0)
    np.testing.assert_allclose(model.costs_, costs, rtol=1e-14)
    assert_array_equal(model.transduction_, y[roots])


def test_ties_among_precomputed_distances_do_not_fall_to_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    for _ in range(40):
        D = rng.integers(1, 5, (12, 12)).astype(float)
        D = np.maximum(D, D.T)
        y = np.where(rng.random(12) < 0.3, rng.integers(0, 2, 12), -1)
        y[:2] = 0, 1
        shuffled = rng.permutation(12)
        model = SemiSupervisedOPFClassifier("precomputed").fit(D, y)
        twin = SemiSupervisedOPFClassifier("precomputed")
        twin.fit(D[np.ix_(shuffled, shuffled)], y[shuffled])
        assert_array_equal(model.transduction_[shuffled], twin.transduction_)


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b", None, None],
        np.array(["a", "b", -1, -1], dtype=object),
        pd.Series(["a", "b", None, None]),
        pd.Series(["a", "b", pd.NA, pd.NA], dtype="string"),
        [0, 1, None, None],
        [0.0, 1.0, -1.0, -1.0],
        pd.Series([0, 1, None, None], dtype="Int64"),
    ],
    ids=["None", "-1 among text", "Series", "NA", "None among numbers", "real numbers", "Int64"],
)
def test_marks_of_unlabelled_samples(y):
    model = SemiSupervisedOPFClassifier().fit([[0.0], [9.0], [1.0], [8.0]], y)
    assert model.transduction_.tolist() == [y[0], y[1], y[0], y[1]]
    assert model.classes_.tolist() == [y[0], y[1]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1, 1, 1], "one class only, 1: .* -1 and None mark"),
        ([-1, -1, -1], "no class"),
        (np.array(["a", "b", "-1"]), "None in an array of text of dtype object"),
        ([0.5, 1.5, -1], "continuous"),
        ([0, 1], "inconsistent numbers of samples"),
    ],
)
def test_what_is_no_labelling_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        SemiSupervisedOPFClassifier().fit([[0.0], [1.0], [2.0]], y)


def test_samples_of_weight_zero_are_left_out():
    X, y = [[0.0], [1.0], [2.0], [5.0]], [0, 1, -1, 1]
    model = SemiSupervisedOPFClassifier().fit(X, y, sample_weight=[1, 0, 1, 1])
    assert_array_equal(model.sample_indices_, [0, 2, 3])
    assert_array_equal(model.transduction_, [0, 0, 1])
    with pytest.raises(ValueError, match="one class only"):
        SemiSupervisedOPFClassifier().fit(X, y, sample_weight=[0, 1, 1, 1])
