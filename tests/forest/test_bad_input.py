"""What users get wrong: an error that names the value and says what would be right."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances

from popf import OPFClassifier
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


# Labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "shown"),
    [(np.zeros(30, dtype=int), "only, 0:"), (["ham"] * 30, "only, 'ham':"), ([True] * 30, "True:")],
)
def test_one_class_only(y, shown):
    said = "one class", shown, "at least two classes"
    refused(lambda: OPFClassifier().fit(X, y), *said)
    y = np.where(Y, "another", y)  # left out by its weight
    refused(lambda: OPFClassifier().fit(X, y, sample_weight=1 - Y), "one class", "at least two")


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ((b"a", b"b"), ["bytes", "Convert the labels"]),
        (("a", 1), ["y", "(int, str)", "one type"]),
        (("a", None), ["y", "(NoneType, str)", "one type"]),
    ],
    ids=["bytes", "mixed", "a gap"],
)
def test_labels_that_are_none(pair, said):
    y = np.array(pair * 15, dtype=None if isinstance(pair[1], bytes) else object)
    refused(lambda: OPFClassifier().fit(X, y), *said, kind=TypeError)


# Weights -----------------------------------------------------------------------------------------

WEIGHTS = {
    "negative": (changed(np.ones(30), 4, -1.5), ["sample_weight[4] is -1.5", "weight of 0"]),
    "nan": (changed(np.ones(30), 4, np.nan), ["sample_weight contains NaN"]),
    "infinity": (changed(np.ones(30), 4, np.inf), ["sample_weight contains infinity"]),
    "too large": (changed(np.ones(30), 4, 1e308), ["sample_weight[4] is 1e+308", "1e+100"]),
    "too small": (changed(np.ones(30), 4, 1e-308), ["sample_weight[4] is 1e-308", "1e-100"]),
    "too few": (np.ones(5), ["sample_weight.shape == (5,)", "expected (30,)"]),
}


@pytest.mark.parametrize(("weight", "said"), WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_weights_that_are_none(weight, said, metric):
    samples = X if metric == "euclidean" else D
    refused(lambda: OPFClassifier(metric).fit(samples, Y, weight), *said)


def test_all_weights_zero():
    with pytest.raises(ValueError, match=r"(?i)sample.weight.*(zero everywhere|non-zero)"):
        OPFClassifier().fit(X, Y, sample_weight=np.zeros(30))


# Metrics -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"), [("Euclidian", "euclidean"), ("chi-square", "chi_square")]
)
def test_an_unknown_metric_is_met_with_the_nearest_name(written, meant):
    said = f"unknown metric {written!r}", f"did you mean {meant}", "Choose one of"
    refused(lambda: OPFClassifier(written).fit(X, Y), *said, "function d(x, y)")


def test_a_metric_that_is_like_no_other():
    refused(lambda: OPFClassifier("zzz").fit(X, Y), "'zzz'", "Choose one of")
    for metric in [3, None, ["euclidean"]]:
        said = "a name or a function d(x, y)", repr(metric)
        refused(lambda m=metric: OPFClassifier(m).fit(X, Y), *said, kind=TypeError)


METRIC_PARAMS = {
    "not a dict": ("minkowski", [3], TypeError, ["must be a dict or None", "[3]", "list"]),
    "of another metric": ("euclidean", {"p": 3}, ValueError, ["'euclidean'", "leave it out"]),
    "misspelt": ("minkowski", {"q": 3}, ValueError, ["'minkowski'", "'q'", "leave it out"]),
    "of precomputed": ("precomputed", {"p": 3}, ValueError, ["'precomputed'", "'p'"]),
    "negative p": ("minkowski", {"p": -1}, ValueError, ["{'p': -1}", "greater than 0"]),
    "few weights": ("minkowski", {"p": 3, "w": [1, 1]}, ValueError, ["w", "3", "features"]),
    "gamma": ("gaussian", {"gamma": 0}, ValueError, ["gamma must be a positive number", "0"]),
    "a word": ("gaussian", {"gamma": "x"}, ValueError, ["gamma must be a positive number", "'x'"]),
    "small V": ("seuclidean", {"V": [1, 1]}, ValueError, ["V", "2", "3 features"]),
    "small VI": ("mahalanobis", {"VI": np.eye(2)}, ValueError, ["VI", "2", "3 features"]),
    "of a function": (lambda x, y: 0.0, {"p": 3}, TypeError, ["unexpected keyword argument 'p'"]),
}


@pytest.mark.parametrize(
    ("metric", "params", "kind", "said"), METRIC_PARAMS.values(), ids=METRIC_PARAMS
)
def test_parameters_that_the_metric_does_not_take(metric, params, kind, said):
    forest = OPFClassifier(metric, metric_params=params)
    refused(lambda: forest.fit(D if metric == "precomputed" else X, Y), *said, kind=kind)


def test_samples_outside_the_domain_of_the_metric():
    refused(lambda: OPFClassifier("haversine").fit(X, Y), "two features", "X has 3")
    positive = np.abs(X) + 0.1
    forest = OPFClassifier("chi_square").fit(positive, Y)
    for call in [
        lambda: OPFClassifier("chi_square").fit(changed(positive, (4, 2), -1.5), Y),
        lambda: forest.predict(changed(positive, (4, 2), -1.5)),
    ]:
        refused(call, "'chi_square'", "X[4, 2] is -1.5", "Shift or scale")
    constant = changed(X, (slice(None), 1), 2.0)
    refused(lambda: OPFClassifier("seuclidean").fit(constant, Y), "feature 1 is constant", "Drop")
    refused(lambda: OPFClassifier("mahalanobis").fit(constant, Y), "singular", "Drop")


# Algorithms and settings -------------------------------------------------------------------------

SETTINGS = {
    "algorithm": (
        ["kdtree", None, 3],
        "`algorithm` must be one of 'auto', 'kd_tree', 'brute', 'prim'",
    ),
    "n_jobs": ([0, "2", 1.5], "-1 for all cores"),
    "working_memory": ([0, -1, "64", np.nan, np.inf, 1j, [64]], "must be a positive number of MiB"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_none(name):
    values, said = SETTINGS[name]
    for value in values:
        forest = OPFClassifier(**{name: value})
        refused(lambda one=forest: one.fit(X, Y), f"`{name}`", said, f"not {value!r}")


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute"])
@pytest.mark.parametrize("metric", ["manhattan", "chi_square", "minkowski", "precomputed", max])
def test_an_algorithm_that_cannot_serve_the_metric(algorithm, metric):
    params = {"p": 3} if metric == "minkowski" else None
    forest = OPFClassifier(metric, algorithm=algorithm, metric_params=params)
    name = metric if isinstance(metric, str) else "max"
    said = f"{algorithm!r} serves Euclidean distances only", repr(name), "algorithm='auto'"
    refused(lambda: forest.fit(D if metric == "precomputed" else X, Y), *said)


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
    "nan": (np.nan, ValueError, ["returned nan", "must be finite and not negative"]),
    "negative": (-1.5, ValueError, ["returned -1.5", "must be finite and not negative"]),
    "none": (None, TypeError, ["returned None", "must return one number"]),
    "array": (np.ones(3), TypeError, ["returned array", "shape (3,)", "must return one number"]),
    "complex": (1j, TypeError, ["returned 1j", "must return one number"]),
}


@pytest.mark.parametrize(("value", "kind", "said"), NONSENSE.values(), ids=NONSENSE)
def test_a_function_that_returns_nonsense(value, kind, said):
    def distance(x, y):
        near = np.abs(x - y).sum()
        return value if near > 10 else near

    # Far from all others, sample 7 in training, or new sample 2.
    far = changed(X, 7, 99.0)
    fit = OPFClassifier(distance).fit
    refused(lambda: fit(far, Y), *said, "'distance'", "training samples", "7", kind=kind)
    forest = fit(X / 10, Y)
    for call in [forest.predict, forest.path_costs_by_class]:
        refused(
            lambda method=call: method(changed(X, 2, 99.0)), "'distance'", "new sample 2", kind=kind
        )


def test_what_a_function_raises_comes_through():
    def broken(x, y):
        raise ZeroDivisionError("of the user's own")

    refused(lambda: OPFClassifier(broken).fit(X, Y), "of the user's own", kind=ZeroDivisionError)
    refused(lambda: OPFClassifier(lambda x: 1.0).fit(X, Y), "positional argument", kind=TypeError)


# Order -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_nothing_can_be_asked_before_fit_or_after_one_that_failed(method):
    def broken(x, y):
        raise ZeroDivisionError

    for forest, y in [(OPFClassifier(), ["other"] * 30), (OPFClassifier().fit(X, Y), np.zeros(30))]:
        with pytest.raises(ValueError, match="one class only"):
            forest.fit(X, y)
        refused(lambda one=forest: getattr(one, method)(X), "Call 'fit'", kind=NotFittedError)
    forest = OPFClassifier().fit(X, Y).set_params(metric=broken)
    with pytest.raises(ZeroDivisionError):
        forest.fit(X, Y)
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        forest.spanning_tree_  # noqa: B018
