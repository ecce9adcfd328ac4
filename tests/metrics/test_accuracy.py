"""Papa's accuracy against its definition."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

import naive_metrics
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
