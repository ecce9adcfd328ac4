"""The classifier on a nearest-neighbour graph, beside the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

import naive_density
import strategies
from naive_density import distances
from popf import KNNOPFClassifier

IRIS_X, IRIS_Y = load_iris(return_X_y=True)
IRIS_X, first = np.unique(IRIS_X, axis=0, return_index=True)
IRIS_Y = IRIS_Y[first]


def by_class(X, y):
    """Samples sorted by class and values, which is how ties are settled."""
    order = np.lexsort((*X.T[::-1], y))
    return X[order] + 0.0, y[order]


def naive_labels(X, y, new, k):
    D = distances(X, X)
    V, _ = naive_density.paths(D, k, codes=y.tolist())
    nodes, _ = naive_density.claim(D, distances(new, X), k, V)
    return y[nodes]


@given(problem=strategies.problems(strategies.small_integers), k=st.integers(1, 5))
@strategies.bounded(50)
def test_with_ties_and_conflicting_labels_it_is_the_definition(problem, k):
    X, y = by_class(problem.X, problem.y)
    k = min(k, len(X) - 1)
    model = KNNOPFClassifier(k).fit(X, y)
    assert_array_equal(model.predict(problem.queries), naive_labels(X, y, problem.queries, k))
    _, roots = naive_density.paths(distances(X, X), k, codes=y.tolist())
    assert_array_equal(y[model.roots_], y)
    # Of equal samples of a class any may be named as the root.
    assert_array_equal(X[model.roots_], X[roots])


def test_neighbours_are_chosen_by_the_accuracy_of_the_model_on_samples_left_out():
    X, y = by_class(IRIS_X[::2], IRIS_Y[::2])
    fold = np.arange(len(X)) % 5
    expected = []
    for k in range(1, 9):
        right = 0
        for out in range(5):
            kept = fold != out
            found = naive_labels(X[kept], y[kept], X[~kept], k)
            right += (found == y[~kept]).sum()
        expected.append(right / len(X))
    model = KNNOPFClassifier(max_neighbors=8).fit(X, y)
    assert_allclose(model.accuracies_, expected)
    assert model.n_neighbors_ == int(np.argmax(expected)) + 1
    alone = KNNOPFClassifier(model.n_neighbors_).fit(X, y)
    assert_array_equal(alone.predict(IRIS_X), model.predict(IRIS_X))
    assert alone.accuracies_ is None


@pytest.mark.parametrize("n", [2, 3, 6])
def test_few_samples_are_enough(n):
    X, y = np.arange(float(n))[:, np.newaxis], np.arange(n) % 2
    model = KNNOPFClassifier().fit(X, y)
    assert set(model.predict(X)) <= {0, 1}
    same = KNNOPFClassifier().fit(np.ones((n, 1)), y)
    assert set(same.predict([[1.0], [2.0]])) <= {0, 1}
