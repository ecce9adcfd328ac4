"""Papa's accuracy against its definition."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import cross_val_score

import naive_metrics
from popf import OPFClassifier
from popf.metrics import opf_accuracy_score
from strategies import bounded, whole_weights

NAMES = np.array(["ape", "bee", "cat", "dog"])


@st.composite
def labelled(draw, n_true, n_predicted):
    n = draw(st.integers(1, 40))
    true = draw(st.lists(st.integers(0, n_true - 1), min_size=n, max_size=n))
    predicted = draw(st.lists(st.integers(0, n_predicted - 1), min_size=n, max_size=n))
    weights = draw(whole_weights)[:n]
    assume(sum(weights) > 0)
    return np.array(true), np.array(predicted), np.array(weights)


@bounded(200)
@given(labelled(4, 5))
def test_accuracy_is_that_of_the_formula(problem):
    true, predicted, weights = problem
    for sample_weight in (np.ones(len(true)), weights):
        found = opf_accuracy_score(true, predicted, sample_weight=sample_weight)
        expected = naive_metrics.accuracy(true, predicted, sample_weight)
        assert found == pytest.approx(expected, abs=1e-15)


@bounded(200)
@given(labelled(2, 2))
def test_for_two_classes_it_is_the_balanced_accuracy(problem):
    true, predicted, weights = problem
    assume(len(set(true[weights > 0])) == 2)
    for sample_weight in (None, weights):
        assert opf_accuracy_score(true, predicted, sample_weight=sample_weight) == pytest.approx(
            balanced_accuracy_score(true, predicted, sample_weight=sample_weight), abs=1e-15
        )


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_accuracy_is_that_of_opfython(n_classes):
    # With a handler already there, opfython neither prints nor writes a log file.
    logging.getLogger("opfython").addHandler(logging.NullHandler())
    general = pytest.importorskip(
        "opfython.math.general", reason="opfython is not installed: nothing to compare with"
    )
    rng = np.random.default_rng(n_classes)
    # From 0: where labels begin at 1, opfython counts a class 0 without samples or errors.
    true = rng.integers(0, n_classes, 200)
    predicted = np.where(rng.random(200) < 0.7, true, rng.integers(0, n_classes, 200))
    theirs = general.opf_accuracy(true, predicted)
    assert opf_accuracy_score(true, predicted) == pytest.approx(theirs, abs=1e-15)


def test_accuracy_of_three_classes_by_hand():
    true, predicted = [0, 0, 0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 2, 2, 2]
    # class 0: FP 0/4, FN 1/4; class 1: FP 1/6, FN 1/2; class 2: FP 1/6, FN 0/2
    expected = 1 - (1 / 4 + 1 / 6 + 1 / 2 + 1 / 6) / 6
    assert opf_accuracy_score(true, predicted) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_best_is_1_and_guessing_is_a_half(n_classes):
    true = np.repeat(np.arange(n_classes), np.arange(1, n_classes + 1))
    assert opf_accuracy_score(true, true) == 1.0
    for guess in range(n_classes):
        constant = np.full(len(true), guess)
        assert opf_accuracy_score(true, constant) == pytest.approx(0.5, abs=1e-15)
    assert opf_accuracy_score([0, 1], [1, 0]) == 0.0


def test_a_class_of_tiny_weight_is_not_lost():
    # N - N_0 as a difference would be 0.
    score = opf_accuracy_score([0, 0, 1], [0, 0, 0], sample_weight=[1.0, 1.0, 1e-20])
    assert score == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize(
    "dress",
    [
        lambda y: NAMES[y],
        lambda y: NAMES[y].astype(object),
        lambda y: NAMES[y].tolist(),
        lambda y: pd.Series(NAMES[y], dtype="category"),
        lambda y: pd.Series(NAMES[y], dtype="string"),
        lambda y: pl.Series(NAMES[y]),
        lambda y: pd.Series(y, dtype="Int64"),
        lambda y: y.astype(object),
        lambda y: y.astype(np.int8) - np.int8(2),
        lambda y: y.astype(float),
        lambda y: y.reshape(-1, 1),
    ],
)
def test_labels_of_any_type(dress):
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 4, 50), rng.integers(0, 4, 50)
    assert opf_accuracy_score(dress(true), dress(predicted)) == opf_accuracy_score(true, predicted)


def test_accuracy_as_a_scorer():
    X, y = load_iris(return_X_y=True)
    scorer = make_scorer(opf_accuracy_score)
    scores = cross_val_score(OPFClassifier(), X, NAMES[y], scoring=scorer, error_score="raise")
    assert 0.9 < scores.min() <= scores.max() <= 1
