"""Thresholds against a plain loop over them, rankings against walks down the scores."""

import functools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, precision_score

import naive_metrics
from popf.metrics import (
    average_precision_at,
    lift_curve,
    opf_accuracy_score,
    precision_at,
    threshold_curve,
)
from strategies import bounded

shares = st.integers(0, 20).map(lambda k: k / 20) | st.floats(0, 1)
given_thresholds = st.lists(shares.filter(lambda t: 0 < t < 1), min_size=1, max_size=15)


@st.composite
def binary_forecasts(draw):
    p = np.array(draw(st.lists(shares, min_size=2, max_size=30)))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=len(p), max_size=len(p))))
    assume(0 < y.sum() < len(y))
    return y, p


@bounded(40)
@given(binary_forecasts(), given_thresholds)
def test_the_curve_is_that_of_a_plain_loop(forecast, thresholds):
    y, p = forecast
    for score in (opf_accuracy_score, accuracy_score):
        scores, best = naive_metrics.curve(y, p, thresholds, score)
        curve = threshold_curve(y, p, score=score, thresholds=thresholds)
        np.testing.assert_array_equal(curve.thresholds, thresholds)
        np.testing.assert_allclose(curve.scores, scores, rtol=0, atol=1e-15)
        assert curve.best_threshold == best
        assert curve.best_score == pytest.approx(max(scores), abs=1e-12)


@bounded(60)
@given(binary_forecasts())
def test_all_thresholds_reach_every_labelling(forecast):
    y, p = forecast
    curve = threshold_curve(y, p, thresholds="all")
    assert ((curve.thresholds > 0) & (curve.thresholds < 1)).all()
    assert (np.diff(curve.thresholds) > 0).all()
    reached = {tuple(p >= t) for t in curve.thresholds}
    candidates = [*p, *np.nextafter(p, 2), 0.5, np.nextafter(0, 1), np.nextafter(1, 0)]
    assert {tuple(p >= t) for t in candidates if 0 < t < 1} == reached
    assert curve.best_score >= threshold_curve(y, p).best_score - 1e-15


def test_neighbours_in_floating_point_are_parted():
    tiny, almost = np.nextafter(0, 1), np.nextafter(1, 0)
    for low, high in [(0.3, np.nextafter(0.3, 1)), (0.0, tiny)]:
        curve = threshold_curve([0, 1], [low, high], thresholds="all")
        assert curve.best_score == 1.0
        assert low < curve.best_threshold <= high
    # Between these two no threshold is left: 1 itself is none.
    assert threshold_curve([0, 1], [almost, 1.0], thresholds="all").best_score == 0.5


def test_ties_go_to_the_middle_and_then_down():
    y, p = [0, 1], [0.1, 0.9]
    assert threshold_curve(y, p, thresholds="all").best_threshold == 0.5
    for k in range(1, 40):  # as far from 0.5 on either side, up to rounding
        low, high = (50 - k) / 100, (50 + k) / 100
        assert threshold_curve(y, p, thresholds=[high, low]).best_threshold == low


def test_which_class_is_positive():
    names, p = np.array(["no", "yes", "no", "yes"]), np.array([0.1, 0.4, 0.2, 0.8])
    curve = threshold_curve(names, p)
    np.testing.assert_array_equal(curve.thresholds, [k / 100 for k in range(1, 100)])
    assert (curve.best_threshold, curve.best_score) == (0.4, 1.0)
    other = threshold_curve(names, 1 - p, pos_label="no")
    assert other.best_score == 1.0
    assert 0.6 < other.best_threshold <= 0.8
    table = np.column_stack([1 - p, p])
    np.testing.assert_array_equal(threshold_curve(names, table).scores, curve.scores)
    np.testing.assert_array_equal(
        threshold_curve(names, table, pos_label="no").scores, other.scores
    )
    # A score sees the labels as they are.
    f1 = functools.partial(f1_score, pos_label="yes")
    assert threshold_curve(names, p, score=f1).best_score == 1.0
    assert threshold_curve(names.astype(object), p, score=f1).best_score == 1.0


def test_a_score_is_called_once_for_every_labelling():
    calls = []

    def score(y_true, y_pred):
        calls.append(tuple(y_pred))
        return accuracy_score(y_true, y_pred)

    threshold_curve([0, 1, 1], [0.2, 0.6, 0.6], score=score)
    assert sorted(calls) == [(0, 0, 0), (0, 1, 1), (1, 1, 1)]


def test_a_threshold_without_a_score_is_passed_over():
    precision = functools.partial(precision_score, zero_division=np.nan)
    curve = threshold_curve([0, 1, 0], [0.1, 0.4, 0.5], score=precision)
    assert np.isnan(curve.scores[-1])
    assert curve.best_score == 0.5
    with pytest.raises(ValueError, match=r"no finite number at any of 99 thresholds, nan at 0\.01"):
        threshold_curve([0, 1], [0.1, 0.4], score=lambda y, labels: math.nan)


# Rankings


@st.composite
def rankings(draw, max_samples=30):
    """Labels with at least one positive, scores with ties, and whole weights that do not sum to 0."""
    n = draw(st.integers(1, max_samples))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    scores = np.array(draw(st.lists(st.integers(-2, 3), min_size=n, max_size=n))) / 4
    weights = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    best = draw(st.integers(0, n - 1))
    y[best], weights[best] = 1, max(1, weights[best])
    return y == 1, scores, weights


@bounded(60)
@given(rankings(max_samples=6), st.data())
def test_precision_is_the_mean_over_all_orders_of_ties(ranking, data):
    y, scores, _ = ranking
    k = data.draw(st.integers(1, len(y)))
    expected = np.mean([sum(order[:k]) / k for order in naive_metrics.orders_by_score(y, scores)])
    assert precision_at(y, scores, k) == pytest.approx(expected, abs=1e-12)


@bounded(60)
@given(rankings(), st.data())
def test_average_precision_is_that_of_a_walk_down_the_scores(ranking, data):
    y, scores, weights = ranking
    for sample_weight in (np.ones(len(y)), weights):
        k = data.draw(st.integers(1, int(sample_weight.sum())))
        found = average_precision_at(y, scores, k, sample_weight=sample_weight)
        expected = naive_metrics.average_precision_at(y, scores, sample_weight, k)
        assert found == pytest.approx(expected, abs=1e-12)
        n = sample_weight.sum()
        everything = average_precision_at(y, scores, n, sample_weight=sample_weight)
        theirs = average_precision_score(y, scores, sample_weight=sample_weight)
        assert everything == pytest.approx(theirs, abs=1e-12)


@bounded(50)
@given(rankings())
def test_the_lift_curve_counts_what_scores_at_least_as_much(ranking):
    y, scores, weights = ranking
    curve = lift_curve(y, scores, sample_weight=weights)
    levels = sorted({s for s, w in zip(scores, weights, strict=True) if w}, reverse=True)
    total, positive = weights.sum(), weights[y].sum()
    seen = [weights[scores >= level].sum() / total for level in levels]
    found = [weights[y & (scores >= level)].sum() / positive for level in levels]
    assert curve.fractions == pytest.approx([0.0, *seen])
    assert curve.gains == pytest.approx([0.0, *found])
    assert curve.lift[1:] == pytest.approx(np.divide(found, seen))
    assert curve.lift[0] == curve.lift[1]
    k = total / 2
    middle = np.interp(0.5, curve.fractions, curve.gains) * positive / k
    assert precision_at(y, scores, k, sample_weight=weights) == pytest.approx(middle)


def test_the_positive_class_can_be_named_among_many():
    y, scores = np.array(["a", "b", "c", "b"]), [0.1, 0.9, 0.8, 0.7]
    assert precision_at(y, scores, 2, pos_label="b") == 0.5
    assert precision_at(y == "b", scores, 2) == 0.5
    assert precision_at(["no", "yes"], [0.1, 0.2], 1) == 1.0
