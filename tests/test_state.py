"""What `popf.state` promises: plain values, the same object again, and every wrong value refused by name."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator

import popf
from damaged_states import damaged_states
from popf.state import (
    Choice,
    Float,
    Integer,
    Spec,
    StateError,
    StateMixin,
    Text,
    from_plain,
    to_plain,
)
from refusals import refused

# Parts


class Line(NamedTuple):
    ends: Annotated[np.ndarray, Integer("n_ends", low=-1, dtype=np.int32)]


class Scale(NamedTuple):
    center: Annotated[np.ndarray, Float("n_features")]
    factor: Annotated[np.ndarray, Float("n_features", low=0.0, high=9.0)]
    squashed: bool


@dataclass(eq=False)
class Steps:
    scale: Scale
    features: Annotated[np.ndarray, Integer("n_steps", of="n_features")]
    cuts: Annotated[np.ndarray, Float("n_steps - 1", low=-1e3, high=1e3)] | None
    parts: dict[str, Scale | Line]
    kind: Annotated[str, Choice("up", "down")]
    names: Annotated[np.ndarray, Text(2, "n_names")]
    last: Annotated[int, Integer(low=0, of="n_steps")]
    share: Annotated[float, Float(low=0.0, high=1.0)]
    losses: dict[str, float]
    more: Annotated[Any, Spec()]

    def check_state(self, sizes):
        if sizes["n_names"] > 2:
            raise StateError("at most two columns", "names")


SCALE = Scale(np.zeros(3), np.ones(3), True)
STEPS = Steps(
    scale=SCALE,
    features=np.array([2, 0, 1, 2]),
    cuts=np.arange(3.0),
    parts={"line": Line(np.array([-1, 7], dtype=np.int32)), "scale": SCALE},
    kind="up",
    names=np.array([["a"], ["b"]]),
    last=3,
    share=0.5,
    losses={"all": 0.25},
    more=(1, None),
)


def test_a_part_becomes_plain_values_and_the_same_part_again():
    state = to_plain(STEPS)
    assert state["scale"] == SCALE._asdict()
    assert [entry["part"] for entry in state["parts"].values()] == ["Line", "Scale"]
    again = from_plain(Steps, state, "it")
    assert type(again.parts["line"]) is Line
    assert again.parts["line"].ends.dtype == np.int32
    assert_array_equal(again.scale.factor, SCALE.factor)
    assert (again.kind, again.last, again.share, again.losses) == ("up", 3, 0.5, {"all": 0.25})
    assert from_plain(Steps, {**state, "cuts": None}, "it").cuts is None


WRONG = [
    ("colour", 3, "it has no colour"),
    ("kind", "left", "kind of it must be one of 'up', 'down', not 'left'."),
    ("last", 4, "last of it must be an integer from 0 to 3, not 4."),
    ("share", np.nan, "share of it must be a finite number from 0 to 1, not nan."),
    ("losses all", 10**400, "all of losses of it must be a finite number, not 1"),
    ("cuts", np.ones(4), "cuts of it must be None or an array of finite numbers of shape (3)"),
    (
        "cuts",
        np.full(3, 1e300),
        "None or finite numbers from -1000 to 1000, not an array of float64",
    ),
    ("features", np.array([0, 3]), "features of it must be integers from 0 to 2"),
    (
        "scale factor",
        np.ones(2),
        "factor of scale of it must be an array of finite numbers of shape (3)",
    ),
    ("parts scale part", "Steps", "scale of parts of it must be a dict whose part is one of Scale"),
    ("parts line ends", np.ones(2), "ends of line of parts of it must be an array of integers"),
    ("names", np.full((2, 3), "a"), "at most two columns, not an array of <U1 of shape (2, 3)."),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG)
def test_a_wrong_value_is_named_with_what_would_be_right(path, value, said):
    state = to_plain(STEPS)
    *parts, name = path.split()
    inner = state
    for part in parts:
        inner = inner[part]
    inner[name] = value
    refused(lambda: from_plain(Steps, state, "it"), said)


def test_every_wrong_value_in_a_part_is_refused():
    states = list(damaged_states(Steps, to_plain(STEPS)))
    assert len(states) > 120
    for name, state in states:
        refused(lambda state=state: from_plain(Steps, state, "it"), name)


def test_an_annotation_that_describes_nothing_is_an_error():
    class Vague(NamedTuple):
        values: "np.ndarray"

    with pytest.raises(TypeError, match="describes no value"):
        to_plain(Vague(np.zeros(2)))


# Estimators


class Mean(StateMixin, BaseEstimator):
    mean_: Annotated[np.ndarray, Float("n_features")]

    def __init__(self, copy=True):
        self.copy = copy

    def fit(self, X):
        self.n_features_in_, self.mean_ = X.shape[1], X.mean(axis=0)
        self.largest_ = self.mean_.max()
        return self

    def check_state(self, sizes):
        self.largest_ = self.mean_.max()


def test_the_state_of_an_estimator_is_its_parameters_and_described_attributes():
    model = Mean(copy=False)
    assert model.__getstate__() == {"copy": False}
    state = model.fit(np.ones((2, 3))).__getstate__()
    assert list(state) == ["copy", "n_features_in_", "mean_"]
    again = Mean()
    again.__setstate__(state)
    assert (again.copy, again.largest_) == (False, 1.0)


def test_what_a_failed_fit_left_behind_is_not_stored():
    model = Mean()
    model.n_features_in_ = 3
    assert model.__getstate__() == {"copy": True}
    refused(lambda: model.__setstate__({"copy": True, "n_features_in_": 3}), "Mean lacks mean_")


# All estimators of popf

X = np.random.default_rng(4).normal(size=(60, 3)) + np.arange(60)[:, None] % 3
Y = np.array(["a", "b", "c"])[np.arange(60) % 3]
FRAME = pd.DataFrame(X, columns=["u", "v", "w"])
DISTANCES = np.abs(X[:, :1] - X[:, 0])
ESTIMATORS = [
    popf.OPFClassifier(),
    popf.OPFClassifier("mahalanobis"),
    popf.OPFClassifier("precomputed"),
    popf.SemiSupervisedOPFClassifier("manhattan"),
    popf.POPFClassifier(),
    popf.POPFClassifier("forest", linear_map="discriminant"),
    popf.POPFClassifier(metric="manhattan"),
    popf.POPFClassifier("forest", squash=False),
    popf.POPFClassifier(metric="precomputed"),
    popf.PlattOPFClassifier(box=None),
    popf.PlattOPFClassifier(
        "pso", box=((-99, 99), (-99, 99)), metric="precomputed", random_state=0
    ),
    popf.OPFClustering(5),
    popf.OPFOutlierDetector(5, metric="minkowski", metric_params={"p": 3}),
    popf.KNNOPFClassifier(metric="precomputed"),
    popf.TableEncoder(["v"]),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_every_wrong_value_in_an_estimator_is_refused(model):
    precomputed = getattr(model, "metric", None) == "precomputed"
    model.fit(DISTANCES if precomputed else FRAME.round(1), Y)
    states = list(damaged_states(type(model), model.__getstate__()))
    assert len(states) > 40
    for name, state in states:
        empty = type(model).__new__(type(model))
        refused(lambda empty=empty, state=state: empty.__setstate__(state), name)


# What POPFClassifier and PlattOPFClassifier rule out beyond single values

POOL = {
    "classes twice": (("classes",), lambda a: a * 0, "a permutation"),
    "columns twice": (("scaler", "columns"), lambda a: a * 0, "a permutation"),
    "no scaler": (("scaler",), lambda _: None, "scaling"),
    "a weight too many": (("weights",), lambda a: np.append(a, 0.5), "every component"),
    "a component without scores": (
        ("components",),
        lambda parts: {**parts, "more": parts["trees"]},
        "components with scores",
    ),
    "scores of one kind": (("scores", "aucs"), lambda _: {}, "names of the losses"),
    "a class without nodes": (("forest", "node_codes"), lambda a: a * 0, "nodes of every class"),
    "nodes twice": (("forest", "nodes"), lambda a: a * 0, "different samples"),
    "nodes of other classes": (("forest", "node_codes"), lambda a: (a + 1) % 3, "their classes"),
    "a bandwidth out of range": (("forest", "bandwidth"), lambda _: 5e-324, "range of the costs"),
    "a high floor": (("forest", "floor"), lambda _: 1e300, "floor"),
    "a far map": (("forest", "matrix"), lambda a: a + 1e300, "matrix"),
    "equal knots": (("components", "additive", "basis", "knots"), lambda a: a * 0, "increasing"),
    "far knots": (("components", "additive", "basis", "knots"), lambda a: a + 1e300, "knots"),
    "far cuts": (("components", "additive", "basis", "cuts"), lambda a: a + 1e300, "cuts"),
    "far centres": (("components", "linear", "center"), lambda a: a + 1e300, "center"),
    "fewer columns": (("components", "linear", "basis", "plain"), lambda a: a[1:], "columns"),
    "far thresholds": (("components", "trees", "cuts"), lambda a: a + 1e300, "cuts"),
    "values at roots": (("components", "trees", "values"), lambda a: a + 1.0, "0 at the roots"),
}


@pytest.fixture(scope="module")
def pooled():
    rng = np.random.default_rng(1)
    samples, zeros = rng.normal(size=(120, 4)), np.zeros(120)
    steps = 1.2 * samples[:, 0] + 2.0 * (samples[:, 1] > 0.3)
    odds = np.column_stack([zeros, steps, 1.5 * samples[:, 2] * samples[:, 3]])
    y = np.array(["a", "b", "c"])[(odds + rng.gumbel(size=odds.shape)).argmax(axis=1)]
    model = popf.POPFClassifier().fit(samples.round(1), y)
    assert list(model.pool_.components) == ["linear", "additive", "trees"]
    assert len(model.interactions_)
    return model


@pytest.mark.parametrize(("path", "change", "said"), POOL.values(), ids=POOL)
def test_values_of_a_pool_that_contradict_each_other_are_refused(pooled, path, change, said):
    state = pooled.__getstate__()
    *outer, name = ("pool_", *path)
    inner = state
    for key in outer:
        inner = inner[key]
    inner[name] = change(inner[name])
    refused(lambda: popf.POPFClassifier().__setstate__(state), said, "must be")


def test_trees_of_some_classes_only_are_refused(pooled):
    state = pooled.__getstate__()
    trees = state["pool_"]["components"]["trees"]
    trees |= {name: trees[name][:-1] for name in ("features", "cuts", "values")}
    refused(lambda: popf.POPFClassifier().__setstate__(state), "a multiple of 3 trees")


def test_the_forest_of_a_pool_is_restored_on_its_own_samples(pooled):
    state = pooled.__getstate__()
    assert state["opf_"]["forest"]["samples"] is None
    assert "competition_" not in state
    again = popf.POPFClassifier().__new__(popf.POPFClassifier)
    again.__setstate__(state)
    assert_array_equal(again.opf_.forest_.samples, pooled.opf_.forest_.samples)
    assert_array_equal(again.opf_.costs_, pooled.opf_.costs_)
    new = pooled.samples_ + 0.1
    assert_array_equal(again.predict_proba(new), pooled.predict_proba(new))


def test_columns_of_precomputed_distances_stay_in_range():
    for model in (popf.POPFClassifier(metric="precomputed"), popf.PlattOPFClassifier(box=None)):
        model.set_params(metric="precomputed").fit(DISTANCES, Y)
        state = model.__getstate__()
        state["opf_"]["sample_indices"] = np.arange(60) + 1
        refused(lambda m=model, s=state: m.__setstate__(s), "sample_indices_ of", "columns")


def test_samples_that_change_after_the_fit_change_nothing():
    for model in (popf.POPFClassifier("forest"), popf.PlattOPFClassifier(box=None)):
        given = X.copy()
        P = model.fit(given, Y).predict_proba(X)
        given[:] = 0.0
        again = type(model).__new__(type(model))
        again.__setstate__(model.__getstate__())
        assert_array_equal(again.predict_proba(X), P)


def test_slopes_that_no_cost_allows_are_refused():
    state = popf.PlattOPFClassifier(box=None).fit(X * 1e10, Y).__getstate__()
    state["solution_"][1]["path"][:] = 1e305
    refused(lambda: popf.PlattOPFClassifier().__setstate__(state), "solution_", "finite log odds")
