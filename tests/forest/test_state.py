"""The state of a fitted forest: plain values, and every wrong one refused by name."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import pairwise_distances

from popf import OPFClassifier
from refusals import refused
from strategies import X_NEW, X_TRAIN, Y_TRAIN, assert_same_forest

PLAIN = (np.ndarray, int, float, str, type(None))


def state_of(**settings):
    names = np.array(["setosa", "versicolor", "virginica"])
    return OPFClassifier(**settings).fit(X_TRAIN, names[Y_TRAIN]).__getstate__()


def from_state(state):
    model = OPFClassifier.__new__(OPFClassifier)
    model.__setstate__(state)
    return model


@pytest.mark.parametrize("metric", ["euclidean", "gaussian", "mahalanobis", "chi_square"])
def test_a_state_is_plain_values(metric):
    state = state_of(metric=metric)
    for value in (*state.values(), *state["forest_"].values()):
        assert isinstance(value, (*PLAIN, dict))
    params = state["forest_"]["metric"]["params"]
    assert all(isinstance(value, PLAIN) for value in params.values())
    model = from_state(state)
    assert_same_forest(model, OPFClassifier(metric).fit(X_TRAIN, model.forest_.labels))


WRONG = {
    "codes of one class": ("codes", lambda a: a * 0, "every class"),
    "predecessors of other classes": ("predecessors", lambda a: a * 0 + 74, "same class"),
    "paths in a circle": ("predecessors", lambda a: np.arange(len(a)), "start at a prototype"),
    "edges of no tree": ("higher", lambda a: a * 0 + 74, "tree"),
    "ends in another order": ("lower", lambda a: a * 0 + 74, "tree"),
    "no samples": ("samples", lambda _: None, "an array"),
    "lengths that follow": ("lengths", lambda _: np.zeros(75), "None"),
    "an algorithm for Euclidean metrics": ("metric", lambda _: MANHATTAN, "algorithm"),
}
MANHATTAN = {"source": "manhattan", "params": {}}


@pytest.mark.parametrize(("name", "change", "said"), WRONG.values(), ids=WRONG)
def test_values_that_contradict_each_other_are_refused(name, change, said):
    state = state_of(algorithm="kd_tree")
    state["forest_"][name] = change(state["forest_"][name])
    refused(lambda: from_state(state), "of forest_ of OPFClassifier must be", said)


def test_rows_that_pick_columns_of_distances_stay_in_range():
    D = pairwise_distances(X_TRAIN)
    state = OPFClassifier("precomputed").fit(D, Y_TRAIN).__getstate__()
    state["sample_indices_"] = np.arange(75) + 1
    refused(lambda: from_state(state), "sample_indices_ of OPFClassifier must be")


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_samples_that_change_after_the_fit_change_nothing(metric):
    X = X_TRAIN.copy()
    model = OPFClassifier(metric).fit(X, Y_TRAIN)
    expected = model.conquer(X_NEW).costs
    X[:] = 0.0
    assert_array_equal(model.conquer(X_NEW).costs, expected)
    assert_array_equal(from_state(model.__getstate__()).conquer(X_NEW).costs, expected)
