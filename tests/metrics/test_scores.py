"""Papa's accuracy and the calibration error against their definitions."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import naive_metrics
from popf.metrics import expected_calibration_error, opf_accuracy_score
from strategies import bounded, whole_weights

NAMES = np.array(["ape", "bee", "cat", "dog"])
KINDS = ("confidence", "classwise", "binary")


@st.composite
def labelled(draw):
    n = draw(st.integers(1, 40))
    true = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    predicted = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    weights = draw(whole_weights)[:n]
    assume(sum(weights) > 0)
    return np.array(true), np.array(predicted), np.array(weights)


@bounded(60)
@given(labelled())
def test_accuracy_is_that_of_the_formula(problem):
    true, predicted, weights = problem
    for sample_weight in (np.ones(len(true)), weights):
        found = opf_accuracy_score(true, predicted, sample_weight=sample_weight)
        expected = naive_metrics.accuracy(true, predicted, sample_weight)
        assert found == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_accuracy_is_that_of_opfython(opfython, n_classes):
    from opfython.math import general

    rng = np.random.default_rng(n_classes)
    # From 0: where labels begin at 1, opfython counts a class 0 without samples or errors.
    true = rng.integers(0, n_classes, 200)
    predicted = np.where(rng.random(200) < 0.7, true, rng.integers(0, n_classes, 200))
    theirs = general.opf_accuracy(true, predicted)
    assert opf_accuracy_score(true, predicted) == pytest.approx(theirs, abs=1e-15)


def test_a_class_of_tiny_weight_is_not_lost():
    # N - N_0 as a difference would be 0.
    score = opf_accuracy_score([0, 0, 1], [0, 0, 0], sample_weight=[1.0, 1.0, 1e-20])
    assert score == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize(
    "dress",
    [
        lambda y: NAMES[y],
        lambda y: NAMES[y].tolist(),
        lambda y: pd.Series(NAMES[y], dtype="category"),
        lambda y: pd.Series(NAMES[y], dtype="string"),
        lambda y: pl.Series(NAMES[y]),
        lambda y: pd.Series(y, dtype="Int64"),
        lambda y: y.astype(object),
        lambda y: y.astype(np.int8) - np.int8(2),
        lambda y: y.reshape(-1, 1),
    ],
)
def test_labels_of_any_type(dress):
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 4, 50), rng.integers(0, 4, 50)
    assert opf_accuracy_score(dress(true), dress(predicted)) == opf_accuracy_score(true, predicted)


def test_the_order_of_the_classes_does_not_matter():
    for seed in range(30):
        true, predicted = np.random.default_rng(seed).integers(0, 2, (2, 50))
        reversed_ = opf_accuracy_score(1 - true, 1 - predicted)
        assert opf_accuracy_score(true, predicted) == reversed_


@st.composite
def forecasts(draw, max_classes=4):
    """Labels, rows of probabilities (many of them equal), weights and a number of bins."""
    n, c = draw(st.integers(1, 30)), draw(st.integers(2, max_classes))
    parts = draw(
        st.lists(st.lists(st.integers(0, 4), min_size=c, max_size=c), min_size=n, max_size=n)
    )
    table = np.array(parts, dtype=float) + (0 if draw(st.booleans()) else 0.3)
    table[table.sum(axis=1) == 0] = 1
    table /= table.sum(axis=1, keepdims=True)
    codes = np.array(draw(st.lists(st.integers(0, c - 1), min_size=n, max_size=n)))
    weights = np.array(draw(whole_weights)[:n])
    assume(weights.sum() > 0)
    return codes, np.clip(table, 0, 1), weights, draw(st.integers(1, 20))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@bounded(40)
def test_calibration_error_is_that_of_the_definition(kind, strategy, data):
    codes, table, weights, n_bins = data.draw(forecasts(2 if kind == "binary" else 4))
    settings = {"n_bins": n_bins, "strategy": strategy, "kind": kind}
    labels = range(table.shape[1])
    for w in (np.ones(len(codes)), weights):
        expected = naive_metrics.calibration_error(codes, table, w, **settings)
        got = expected_calibration_error(codes, table, labels=labels, sample_weight=w, **settings)
        assert got == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_one_column_and_two_say_the_same(kind):
    rng = np.random.default_rng(2)
    p = rng.random(80)
    y = rng.integers(0, 2, 80)
    table = np.column_stack([1 - p, p])
    error = expected_calibration_error(y, p, kind=kind)
    assert expected_calibration_error(y, table, kind=kind) == pytest.approx(error)
    assert expected_calibration_error(y == 1, p.tolist(), kind=kind) == pytest.approx(error)
    names = NAMES[y]
    assert expected_calibration_error(names, p, kind=kind) == pytest.approx(error)
    swapped = {"y_true": names, "y_prob": table[:, ::-1], "labels": ["bee", "ape"], "kind": kind}
    assert expected_calibration_error(**swapped, pos_label="bee") == pytest.approx(error)
    other = expected_calibration_error(names, 1 - p, pos_label="ape", kind=kind)
    assert expected_calibration_error(**swapped) == pytest.approx(other)
    if kind != "binary":  # whose positive class is "ape" in both
        assert other == pytest.approx(error)


def test_a_class_that_does_not_occur_is_named():
    assert expected_calibration_error(["a"], [0.25], labels=["a", "b"]) == pytest.approx(0.25)
    assert expected_calibration_error([False, False], [0.25, 0.25]) == pytest.approx(0.25)


def test_single_precision_and_frames_are_welcome():
    rng = np.random.default_rng(3)
    table = rng.dirichlet([1, 1, 1], 60)
    y = rng.integers(0, 3, 60)
    expected = expected_calibration_error(y, table)
    for dressed in (table.astype(np.float32), pd.DataFrame(table), pl.DataFrame(table)):
        assert expected_calibration_error(y, dressed) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_calibration_error_as_a_scorer(load):
    X, y = load(return_X_y=True)
    settings = {"response_method": "predict_proba", "greater_is_better": False}
    scorer = make_scorer(expected_calibration_error, labels=np.unique(y), **settings)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    scores = cross_val_score(model, X, y, scoring=scorer, error_score="raise")
    assert ((scores > -0.3) & (scores < 0)).all()
