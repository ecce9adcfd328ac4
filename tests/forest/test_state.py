"""The state of a fitted forest: plain values, and every wrong one refused by name."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import pairwise_distances

from popf import OPFClassifier
from refusals import changed, refused
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
    assert all(isinstance(value, PLAIN) for value in state["forest_"]["metric_params"].values())
    model = from_state(state)
    assert_same_forest(model, OPFClassifier(metric).fit(X_TRAIN, model.forest_.labels))


WRONG = {
    "samples of another size": ("samples", lambda a: a[:-1], "(75, 4)"),
    "samples that are none": ("samples", lambda a: changed(a, (3, 1), np.nan), "finite"),
    "no samples": ("samples", lambda _: None, "an array of numbers"),
    "codes out of range": ("codes", lambda a: changed(a, 3, 3), "from 0 to 2"),
    "codes of one class": ("codes", lambda a: a * 0, "every class"),
    "codes that are numbers": ("codes", lambda a: a.astype(float), "integers"),
    "predecessors out of range": ("predecessors", lambda a: changed(a, 3, 75), "from -1 to 74"),
    "predecessors of other classes": ("predecessors", lambda a: a * 0 + 74, "same class"),
    "paths in a circle": ("predecessors", lambda a: np.arange(len(a)), "start at a prototype"),
    "edges out of range": ("higher", lambda a: changed(a, 3, 2**31 - 1), "from 0 to 74"),
    "edges of no tree": ("higher", lambda a: a * 0 + 74, "tree"),
    "an algorithm": ("algorithm", lambda _: "bubble sort", "'kd_tree', 'brute', 'prim'"),
}


@pytest.mark.parametrize(("name", "change", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_array_is_refused_by_name(name, change, said):
    state = state_of(algorithm="kd_tree")
    state["forest_"] = {**state["forest_"], name: change(state["forest_"][name])}
    refused(lambda: from_state(state), f"{name} of forest_ of OPFClassifier must be", said)


@pytest.mark.parametrize("name", ["metric", "codes", "samples", "lower", "lengths"])
def test_a_missing_array_is_named(name):
    state = state_of(metric="manhattan")
    state["forest_"] = {key: value for key, value in state["forest_"].items() if key != name}
    refused(lambda: from_state(state), f"forest_ of OPFClassifier lacks {name}")


def test_wrong_attributes_are_refused_by_name():
    state = state_of()
    for name, value in {
        "classes_": np.array(["a", "a", "b"]),
        "n_features_in_": True,
        "sample_indices_": np.arange(75)[::-1],
        "feature_names_in_": np.array(["a", "b", "c"], dtype=object),
        "forest_": 3,
    }.items():
        refused(lambda one={**state, name: value}: from_state(one), name, "must be")


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
