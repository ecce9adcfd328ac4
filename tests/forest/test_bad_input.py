"""What users get wrong: an error that names the value and says what would be right."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances

from popf import OPFClassifier, PlattOPFClassifier, POPFClassifier
from refusals import changed, refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.arange(30) % 2
D = pairwise_distances(X)


METHODS = ["predict", "conquer", "decision_function", "path_costs_by_class", "explain"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_every_method_refuses_what_is_no_sample(method, metric):
    ask = getattr(OPFClassifier(metric).fit(X, Y), method)
    refused(lambda: ask(changed(X, (3, 1), np.nan)), "NaN", "imputer")
    refused(lambda: ask(X[:, :2]), "2 features", "expecting 3 features")
    refused(lambda: ask([["a", "b", "c"]]), "could not convert", "'a'")


# What a fit refuses ------------------------------------------------------------------------------


def fit(metric="euclidean", samples=None, y=Y, weight=None, **settings):
    if samples is None:
        samples = D if metric == "precomputed" else X
    return OPFClassifier(metric, **settings).fit(samples, y, weight)


def with_params(metric, params):
    return fit(metric, metric_params=params)


def weighing(weight):
    return fit(weight=changed(np.ones(30), 4, weight))


CONSTANT, FAR = changed(X, (slice(None), 1), 2.0), changed(np.abs(X) + 0.1, (4, 2), -1.5)
VALUES = {
    "one class": (lambda: fit(y=np.zeros(30, dtype=int)), "one class", "only, 0:", "two classes"),
    "one class of weight": (lambda: fit(weight=1 - Y), "one class only, 0:", "at least two"),
    "continuous": (lambda: fit(y=pd.Series(X[:, 0], name="price")), "'price' holds", "qcut"),
    "missing label": (lambda: fit(y=np.array(["a", None] * 15)), "y[1] is missing", "Drop"),
    "missing text": (lambda: fit(y=pd.Series(["a", None] * 15, dtype="string")), "y[1] is missing"),
    "negative weight": (lambda: weighing(-1.5), "sample_weight[4] is -1.5", "weight of 0"),
    "NaN weight": (lambda: weighing(np.nan), "sample_weight contains NaN"),
    "infinite weight": (lambda: weighing(np.inf), "sample_weight contains infinity"),
    "large weight": (lambda: weighing(1e308), "sample_weight[4] is 1e+308", "1e+100"),
    "no weights": (lambda: fit(weight=np.zeros(30)), "zero"),
    "few weights": (lambda: fit(weight=np.ones(5)), "sample_weight.shape == (5,)", "(30,)"),
    "misspelt": (lambda: fit("Euclidian"), "'Euclidian'", "did you mean euclidean", "d(x, y)"),
    "hyphenated": (lambda: fit("chi-square"), "'chi-square'", "did you mean chi_square"),
    "unknown": (lambda: with_params("euclidean", {"q": 3}), "'euclidean'", "'q'", "leave it out"),
    "unknown there": (lambda: with_params("minkowski", {"q": 3}), "'minkowski'", "'q'"),
    "negative p": (lambda: with_params("minkowski", {"p": -1}), "{'p': -1}", "greater than 0"),
    "few factors": (lambda: with_params("minkowski", {"p": 3, "w": [1, 1]}), "w", "3", "features"),
    "gamma": (lambda: with_params("gaussian", {"gamma": 0}), "gamma is 0", "greater than 0"),
    "small V": (lambda: with_params("seuclidean", {"V": [1, 1]}), "V", "2", "3 features"),
    "algorithm": (
        lambda: fit("canberra", algorithm="brute"),
        "'brute' supports only Euclidean",
        "'canberra'",
    ),
    "three features": (lambda: fit("haversine"), "two features", "X has 3"),
    "outside": (lambda: fit("chi_square", FAR), "'chi_square'", "X[4, 2] is -1.5", "Shift or"),
    "new outside": (lambda: fit("chi_square", np.abs(X)).predict(FAR), "X[4, 2] is -1.5"),
    "singular": (lambda: fit("mahalanobis", CONSTANT), "singular", "Drop"),
}
TYPES = {
    "bytes": (lambda: fit(y=np.array([b"a", b"b"] * 15)), "bytes", "Convert the labels"),
    "mixed": (lambda: fit(y=np.array(["a", 1] * 15, dtype=object)), "y", "(int, str)", "one type"),
    "number": (lambda: fit(3), "a name or a function d(x, y)", "3"),
    "no dict": (lambda: with_params("minkowski", [3]), "must be a dict or None", "[3]", "list"),
    "of a function": (lambda: with_params(lambda x, y: 0.0, {"p": 3}), "unexpected keyword", "'p'"),
    "one argument": (lambda: fit(lambda x: 1.0), "positional argument"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_wrong_value_is_named_with_its_remedy(name):
    refused(*VALUES[name])


@pytest.mark.parametrize("name", TYPES)
def test_a_wrong_type_is_named_with_its_remedy(name):
    refused(*TYPES[name], kind=TypeError)


# Algorithms and settings -------------------------------------------------------------------------

SETTINGS = {
    "algorithm": (["kdtree", None], "must be one of 'auto', 'kd_tree', 'brute', 'prim'"),
    "n_jobs": ([0, "2", 1.5], "-1 for all cores"),
    "working_memory": ([0, -1, "64", np.nan, np.inf, 1j, [64]], "must be a positive number of MiB"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_none(name):
    values, said = SETTINGS[name]
    for value in values:
        forest = OPFClassifier(**{name: value})
        refused(lambda one=forest: one.fit(X, Y), f"`{name}`", said, f"not {value!r}")


# Precomputed distances ---------------------------------------------------------------------------

MATRICES = {
    "samples": (X, ["square matrix", "(30, 3)", "pairwise_distances(X)"]),
    "more columns": (np.hstack([D, D[:, :4]]), ["square matrix", "(30, 34)"]),
    "asymmetric": (changed(D, (3, 4), 9.5), ["symmetric", "X[3, 4] is 9.5", "(X + X.T) / 2"]),
    "negative": (changed(D, ([3, 4], [4, 3]), -1.0), ["X[3, 4]", "-1.0", "not negative"]),
}


@pytest.mark.parametrize(("matrix", "said"), MATRICES.values(), ids=MATRICES)
@pytest.mark.parametrize("at_a_time", [2**20, 1])
def test_a_matrix_that_is_none_of_distances(matrix, said, at_a_time, monkeypatch):
    monkeypatch.setattr("popf.forest.validation.CHECKED_AT_A_TIME", at_a_time)
    refused(lambda: OPFClassifier("precomputed").fit(matrix, Y), *said)


def test_distances_of_new_samples_that_are_none():
    forest = OPFClassifier("precomputed").fit(D, Y)
    refused(lambda: forest.predict(D[:, :5]), *("X has 5", "30", "column", "training sample"))
    for call in [forest.predict, forest.decision_function, forest.explain]:
        refused(
            lambda method=call: method(changed(D, (3, 4), -1.5)),
            *("new sample 3 and training sample 4", "-1.5", "not negative"),
        )
        refused(lambda method=call: method(changed(D, (3, 4), np.nan)), "NaN")


# Functions that return nonsense ------------------------------------------------------------------

NONSENSE = {
    "nan": (np.nan, ValueError, ["is nan", "must be finite and not negative"]),
    "negative": (-1.5, ValueError, ["is -1.5", "must be finite and not negative"]),
    "none": (None, TypeError, ["'distance' returned None", "must return one number"]),
    "array": (np.ones(3), TypeError, ["returned array", "shape (3,)", "must return one number"]),
    "complex": (1j, TypeError, ["returned 1j", "must return one number"]),
}


@pytest.mark.parametrize(("value", "kind", "said"), NONSENSE.values(), ids=NONSENSE)
def test_a_function_that_returns_nonsense(value, kind, said):
    def distance(x, y):
        near = np.abs(x - y).sum()
        return value if near > 10 else near

    # Far from all others: sample 7 in training, or new sample 2. The engine names samples of wrong numbers.
    pairs = ("samples 0 and 7", "new sample 2") if kind is ValueError else ("", "")
    fit = OPFClassifier(distance).fit
    refused(lambda: fit(changed(X, 7, 99.0), Y), *said, pairs[0], kind=kind)
    forest = fit(X / 10, Y)
    for call in [forest.predict, forest.path_costs_by_class]:
        refused(lambda ask=call: ask(changed(X, 2, 99.0)), *said, pairs[1], kind=kind)


# Order -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_nothing_can_be_asked_before_fit_or_after_one_that_failed(method):
    def broken(x, y):
        raise ZeroDivisionError

    for forest, y in [(OPFClassifier(), ["other"] * 30), (OPFClassifier().fit(X, Y), np.zeros(30))]:
        with pytest.raises(ValueError, match="one class only"):
            forest.fit(X, y)
        refused(lambda one=forest: getattr(one, method)(X), "Call 'fit'", kind=NotFittedError)
    for model in (POPFClassifier(), PlattOPFClassifier()):
        refused(lambda one=model: one.explain(X), "Call 'fit'", kind=NotFittedError)
    forest = OPFClassifier().fit(X, Y).set_params(metric=broken)
    with pytest.raises(ZeroDivisionError):
        forest.fit(X, Y)
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        forest.spanning_tree_  # noqa: B018
