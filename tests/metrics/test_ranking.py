"""What is found among the highest scores, against walks down the ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

import naive_metrics
from popf.metrics import average_precision_at, lift_curve, precision_at
from strategies import bounded


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


@bounded(150)
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


@bounded(100)
@given(rankings(), st.data())
def test_a_weight_repeats_a_sample_and_rows_have_no_order(ranking, data):
    y, scores, weights = ranking
    k = data.draw(st.integers(1, int(weights.sum())))
    order = data.draw(st.permutations(range(len(y))))
    repeated, shuffled = np.repeat(np.arange(len(y)), weights), np.array(order)
    for score in (precision_at, average_precision_at):
        expected = score(y, scores, k, sample_weight=weights)
        other = score(y[shuffled], scores[shuffled], k, sample_weight=weights[shuffled])
        assert other == pytest.approx(expected, abs=1e-12)
        assert score(y[repeated], scores[repeated], k) == pytest.approx(expected, abs=1e-12)


@bounded(100)
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
