"""Accuracy, calibration error and thresholds, against their definitions written out sample by sample."""

import functools
import logging
import math
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    make_scorer,
    precision_score,
)
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import popf.metrics
from popf import OPFClassifier
from popf.metrics import (
    ThresholdCurve,
    expected_calibration_error,
    opf_accuracy_score,
    threshold_curve,
)
from strategies import bounded

NAMES = np.array(["ape", "bee", "cat", "dog"])
KINDS = ("confidence", "classwise", "binary")


# The definitions ---------------------------------------------------------------------------------


def naive_accuracy(y_true, y_pred, weights):
    """Papa's accuracy, term by term; classes without samples are none, undefined terms are left out."""
    rows = [row for row in zip(y_true, y_pred, weights, strict=True) if row[2] > 0]
    terms = []
    for label in sorted({true for true, _, _ in rows}):
        inside = sum(w for true, _, w in rows if true == label)
        outside = sum(w for true, _, w in rows if true != label)
        missed = sum(w for true, pred, w in rows if true == label and pred != label)
        alarms = sum(w for true, pred, w in rows if true != label and pred == label)
        terms.append(missed / inside)
        if outside > 0:
            terms.append(alarms / outside)
    return 1 - sum(terms) / len(terms)


def naive_error(probabilities, happened, weights, n_bins, strategy):
    """Calibration error of one event: N_b / N times the gap between the means, for every bin."""
    total = sum(weights)
    if strategy == "uniform":
        ends = [b / n_bins for b in range(1, n_bins)]
    else:
        ends = []
        for b in range(1, n_bins):
            for p in sorted(set(probabilities)):
                reached = sum(w for q, w in zip(probabilities, weights, strict=True) if q <= p)
                if reached * n_bins >= b * total:
                    ends.append(p)
                    break
    bins = {}
    for p, h, w in zip(probabilities, happened, weights, strict=True):
        bins.setdefault(sum(end < p for end in ends), []).append((p, h, w))
    error = 0.0
    for members in bins.values():
        mass = sum(w for _, _, w in members)
        if mass > 0:
            frequency = sum(w * h for _, h, w in members) / mass
            mean = sum(w * p for p, _, w in members) / mass
            error += mass / total * abs(frequency - mean)
    return error


def naive_calibration(codes, table, weights, n_bins, strategy, kind):
    table = np.asarray(table).tolist()
    if kind == "confidence":
        top = [max(row) for row in table]
        hits = [row.index(max(row)) == code for row, code in zip(table, codes, strict=True)]
        return naive_error(top, hits, weights, n_bins, strategy)
    columns = [1] if kind == "binary" else range(len(table[0]))
    errors = [
        naive_error([row[k] for row in table], codes == k, weights, n_bins, strategy)
        for k in columns
    ]
    return sum(errors) / len(errors)


def naive_curve(y_true, probabilities, thresholds, score):
    """Score labels at every threshold; of equal scores the nearest to 0.5 wins, then the lower."""
    scores = [score(y_true, (probabilities >= t).astype(int)) for t in thresholds]
    ties = [t for t, s in zip(thresholds, scores, strict=True) if s >= max(scores) - 1e-12]
    return scores, min(ties, key=lambda t: (round(abs(t - 0.5), 12), t))


# Accuracy ----------------------------------------------------------------------------------------

whole_weights = st.lists(st.integers(0, 3), min_size=40, max_size=40)


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
    ones = np.ones(len(true))
    assert opf_accuracy_score(true, predicted) == pytest.approx(
        naive_accuracy(true, predicted, ones), abs=1e-15
    )
    assert opf_accuracy_score(true, predicted, sample_weight=weights) == pytest.approx(
        naive_accuracy(true, predicted, weights), abs=1e-15
    )


@bounded(200)
@given(labelled(2, 2))
def test_for_two_classes_it_is_the_balanced_accuracy(problem):
    true, predicted, weights = problem
    assume(len(set(true[weights > 0])) == 2)
    for sample_weight in (None, weights):
        assert opf_accuracy_score(true, predicted, sample_weight=sample_weight) == pytest.approx(
            balanced_accuracy_score(true, predicted, sample_weight=sample_weight), abs=1e-15
        )


@bounded(100)
@given(labelled(4, 5))
def test_a_weight_is_a_number_of_repetitions(problem):
    true, predicted, weights = problem
    repeated = opf_accuracy_score(np.repeat(true, weights), np.repeat(predicted, weights))
    assert opf_accuracy_score(true, predicted, sample_weight=weights) == repeated


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
    true = [0, 0, 0, 0, 1, 1, 2, 2]
    predicted = [0, 0, 0, 1, 1, 2, 2, 2]
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


def test_one_class_gives_the_share_of_right_labels():
    assert opf_accuracy_score(["a"] * 4, ["a", "a", "a", "b"]) == 0.75
    assert opf_accuracy_score([1, 1], [0, 0]) == 0.0
    assert opf_accuracy_score([1, 1], [1, 1]) == 1.0


def test_a_label_unknown_to_y_true_is_an_error_of_the_true_class_and_no_class():
    # FN of class 0 is 1/2; the unknown label 9 adds neither FP nor a class.
    assert opf_accuracy_score([0, 0, 1, 1], [0, 9, 1, 1]) == 1 - (1 / 2) / 4


def test_labels_choose_the_classes_of_the_sum():
    true, predicted = ["a", "a", "b", "b", "c"], ["a", "b", "b", "c", "c"]
    # class b: FP 1/3, FN 1/2; class c: FP 1/4, FN 0
    score = opf_accuracy_score(true, predicted, labels=["c", "b"])
    assert score == pytest.approx(1 - (1 / 3 + 1 / 2 + 1 / 4) / 4, abs=1e-15)
    everything = opf_accuracy_score(true, predicted)
    assert opf_accuracy_score(true, predicted, labels=["d", "c", "b", "a"]) == everything


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


def test_truth_values_are_0_and_1():
    assert opf_accuracy_score([True, False, False], [1, 0, 1]) == 0.75


def test_accuracy_as_a_scorer():
    X, y = load_iris(return_X_y=True)
    scorer = make_scorer(opf_accuracy_score)
    scores = cross_val_score(OPFClassifier(), X, NAMES[y], scoring=scorer)
    assert len(scores) == 5
    assert 0.9 < scores.min() <= scores.max() <= 1
    search = GridSearchCV(
        OPFClassifier(), {"metric": ["euclidean", "canberra"]}, scoring=scorer, error_score="raise"
    ).fit(X, y)
    assert search.best_score_ >= scores.mean()


# Calibration error -------------------------------------------------------------------------------


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
def test_calibration_error_is_that_of_the_definition(kind, strategy):
    @bounded(120)
    @given(forecasts(2 if kind == "binary" else 4))
    def check(forecast):
        codes, table, weights, n_bins = forecast
        settings = {"n_bins": n_bins, "strategy": strategy, "kind": kind}
        labels = range(table.shape[1])
        for w in (np.ones(len(codes)), weights):
            expected = naive_calibration(codes, table, w, **settings)
            got = expected_calibration_error(
                codes, table, labels=labels, sample_weight=w, **settings
            )
            assert got == pytest.approx(expected, abs=1e-13)

    check()


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_repeat_and_rows_have_no_order(kind, strategy):
    @bounded(60)
    @given(forecasts(2), st.randoms(use_true_random=False))
    def check(forecast, random):
        codes, table, weights, n_bins = forecast
        error = functools.partial(
            expected_calibration_error, n_bins=n_bins, strategy=strategy, kind=kind, labels=[0, 1]
        )
        expected = error(codes, table, sample_weight=weights)
        repeated = error(np.repeat(codes, weights), np.repeat(table, weights, axis=0))
        assert repeated == pytest.approx(expected, abs=1e-13)
        order = random.sample(range(len(codes)), len(codes))
        shuffled = error(codes[order], table[order], sample_weight=weights[order])
        assert shuffled == pytest.approx(expected, abs=1e-13)

    check()


def test_one_bin_compares_the_means():
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.3, 0.9, 0.4, 0.7])
    for strategy in ("uniform", "quantile"):
        error = expected_calibration_error(y, p, n_bins=1, kind="binary", strategy=strategy)
        assert error == pytest.approx(abs(y.mean() - p.mean()))


def test_uniform_bins_are_closed_above():
    # 0.5 lies in (0, 0.5] with 0.25: gaps |0 + 1 - 0.75| and |1 - 0.75|, over three samples.
    error = expected_calibration_error([0, 1, 1], [0.25, 0.5, 0.75], n_bins=2, kind="binary")
    assert error == pytest.approx((0.25 + 0.25) / 3)


def test_quantile_bins_hold_equal_shares_and_never_part_equal_probabilities():
    rng = np.random.default_rng(1)
    p = rng.random(100)
    y = (rng.random(100) < p).astype(int)
    order = np.argsort(p)
    expected = np.abs((y - p)[order].reshape(10, 10).sum(axis=1)).sum() / 100
    settings = {"n_bins": 10, "strategy": "quantile", "kind": "binary"}
    assert expected_calibration_error(y, p, **settings) == pytest.approx(expected)
    # All equal: one bin, whatever n_bins.
    error = expected_calibration_error([0, 1] * 20, np.full(40, 0.3), **settings)
    assert error == pytest.approx(0.2)


def test_what_is_perfectly_calibrated_and_what_is_perfectly_wrong():
    y = np.array([0, 1, 2, 2])
    sure = np.eye(3)[y]
    for kind in ("confidence", "classwise"):
        for strategy in ("uniform", "quantile"):
            settings = {"kind": kind, "strategy": strategy}
            assert expected_calibration_error(y, sure, **settings) == 0
    assert expected_calibration_error(y, sure[:, [1, 2, 0]]) == 1
    assert expected_calibration_error([0, 1], [1.0, 0.0], kind="binary") == 1


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
    swapped = expected_calibration_error(names, table[:, ::-1], labels=["bee", "ape"], kind=kind)
    other = expected_calibration_error(names, 1 - p, pos_label="ape", kind=kind)
    if kind == "binary":  # the positive class is "ape" in both
        assert swapped == pytest.approx(other)
        assert expected_calibration_error(
            names, table[:, ::-1], labels=["bee", "ape"], pos_label="bee", kind=kind
        ) == pytest.approx(error)
    else:
        assert swapped == pytest.approx(error)
        assert other == pytest.approx(error)


def test_a_class_that_does_not_occur_is_named():
    table = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    error = expected_calibration_error([0, 1], table, labels=[0, 1, 2], kind="classwise", n_bins=1)
    assert error == pytest.approx((0.25 / 2 + 0.25 / 2 + 0.5 / 2) / 3)
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
    scorer = make_scorer(
        expected_calibration_error,
        response_method="predict_proba",
        greater_is_better=False,
        labels=np.unique(y),
    )
    model = make_pipeline(StandardScaler(), LogisticRegression())
    scores = cross_val_score(model, X, y, scoring=scorer, error_score="raise")
    assert (scores > -0.3).all()
    assert (scores < 0).all()


# Thresholds --------------------------------------------------------------------------------------

probabilities = st.lists(
    st.one_of(st.integers(0, 20).map(lambda k: k / 20), st.floats(0, 1)), min_size=2, max_size=30
)


@st.composite
def binary_forecasts(draw):
    p = np.array(draw(probabilities))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=len(p), max_size=len(p))))
    assume(0 < y.sum() < len(y))
    return y, p


given_thresholds = st.lists(
    st.one_of(
        st.integers(1, 19).map(lambda k: k / 20),
        st.floats(0, 1, exclude_min=True, exclude_max=True),
    ),
    min_size=1,
    max_size=15,
)


@bounded(60)
@given(binary_forecasts(), given_thresholds)
def test_the_curve_is_that_of_a_plain_loop(forecast, thresholds):
    y, p = forecast
    for score in (opf_accuracy_score, balanced_accuracy_score, accuracy_score):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # accuracy of labels of one class
            scores, best = naive_curve(y, p, thresholds, score)
            curve = threshold_curve(y, p, score=score, thresholds=thresholds)
        np.testing.assert_array_equal(curve.thresholds, thresholds)
        np.testing.assert_allclose(curve.scores, scores, rtol=0, atol=1e-15)
        assert curve.best_threshold == best
        assert curve.best_score == pytest.approx(max(scores), abs=1e-12)


@bounded(150)
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


def test_a_probability_at_the_threshold_is_positive():
    curve = threshold_curve([0, 1], [0.25, 0.5], thresholds=[0.5])
    assert curve == ThresholdCurve(np.array([0.5]), np.array([1.0]), 0.5, 1.0)
    assert threshold_curve([0, 1], [0.5, 0.75], thresholds=[0.5]).best_score == 0.5


def test_ties_go_to_the_middle_and_then_down():
    y, p = [0, 1], [0.1, 0.9]
    assert threshold_curve(y, p).best_threshold == 0.5
    assert threshold_curve(y, p, thresholds="all").best_threshold == 0.5
    assert threshold_curve(y, p, thresholds=[0.8, 0.3, 0.4]).best_threshold == 0.4
    for k in range(1, 40):  # as far from 0.5 on either side, up to rounding
        low, high = (50 - k) / 100, (50 + k) / 100
        assert threshold_curve(y, p, thresholds=[high, low]).best_threshold == low


def test_the_default_is_every_hundredth():
    curve = threshold_curve([0, 1], [0.2, 0.7])
    np.testing.assert_array_equal(curve.thresholds, [k / 100 for k in range(1, 100)])
    assert curve.scores.shape == (99,)
    assert type(curve.best_threshold) is type(curve.best_score) is float


def test_which_class_is_positive():
    names, p = np.array(["no", "yes", "no", "yes"]), np.array([0.1, 0.4, 0.2, 0.8])
    curve = threshold_curve(names, p)
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


def test_weights_reach_the_score():
    y, p, weights = [0, 1, 0, 1], [0.1, 0.45, 0.6, 0.8], [1, 1, 5, 1]
    weighted = functools.partial(opf_accuracy_score, sample_weight=weights)
    curve = threshold_curve(y, p, score=weighted)
    assert curve.best_threshold == 0.61
    assert threshold_curve(y, p).best_threshold == 0.45


def test_a_threshold_without_a_score_is_passed_over():
    precision = functools.partial(precision_score, zero_division=np.nan)
    curve = threshold_curve([0, 1, 0], [0.1, 0.4, 0.5], score=precision)
    assert np.isnan(curve.scores[-1])
    assert curve.best_score == 0.5
    with pytest.raises(ValueError, match=r"no finite number at any of 99 thresholds, nan at 0\.01"):
        threshold_curve([0, 1], [0.1, 0.4], score=lambda y, labels: math.nan)


def test_it_agrees_with_the_tuned_classifier_of_scikit_learn():
    X, y = make_classification(400, weights=[0.85], flip_y=0.1, random_state=3)
    model = LogisticRegression().fit(X[:200], y[:200])
    curve = threshold_curve(y[200:], model.predict_proba(X[200:]))
    tuned = TunedThresholdClassifierCV(
        model,
        scoring=make_scorer(opf_accuracy_score),
        thresholds=curve.thresholds,
        cv="prefit",
        refit=False,
        store_cv_results=True,
    ).fit(X[200:], y[200:])
    assert tuned.best_score_ == pytest.approx(curve.best_score, abs=1e-15)
    np.testing.assert_allclose(tuned.cv_results_["scores"], curve.scores, atol=1e-15)
    assert curve.best_threshold < 0.5


# Bad input ---------------------------------------------------------------------------------------

Y, P = [0, 1, 1], [0.2, 0.7, 0.9]
T3 = np.full((3, 3), 1 / 3)
BAD = {
    # accuracy
    "lengths": (lambda: opf_accuracy_score(Y, [0, 1]), ["3 samples", "y_pred has 2"]),
    "empty": (lambda: opf_accuracy_score([], []), ["y_true is empty", "at least one"]),
    "probability for label": (lambda: opf_accuracy_score(Y, P), ["y_pred", "0.2", ">= 0.5"]),
    "NaN label": (lambda: opf_accuracy_score([0, np.nan], [0, 1]), ["nan at row 1", "drop"]),
    "missing label": (lambda: opf_accuracy_score([0, None], [0, 1]), ["NoneType", "drop"]),
    "mixed labels": (lambda: opf_accuracy_score(["a", 1], [0, 1]), ["strings and 1", "one type"]),
    "missing string": (lambda: opf_accuracy_score(["a", None], ["a", "b"]), ["None", "drop"]),
    "strings and numbers": (lambda: opf_accuracy_score(["a"], [1]), ["'a'", "1", "one type"]),
    "lists": (lambda: opf_accuracy_score([[1], [1, 2]], [1, 2]), ["list", "integers"]),
    "dates": (lambda: opf_accuracy_score(np.array(["2020"], "M8"), [1]), ["date", "strings"]),
    "many labels a sample": (lambda: opf_accuracy_score(T3 > 0, Y), ["(3, 3)", "(n_samples,)"]),
    "labels that do not occur": (
        lambda: opf_accuracy_score(Y, Y, labels=[7, 8]),
        ["[7, 8]", "0, 1", "name a class that occurs"],
    ),
    "labels of another type": (lambda: opf_accuracy_score(Y, Y, labels=["a"]), ["'a'", "one type"]),
    "labels twice": (lambda: opf_accuracy_score(Y, Y, labels=[1, 1]), ["[1, 1]", "once"]),
    "no labels": (lambda: opf_accuracy_score(Y, Y, labels=[]), ["labels is empty"]),
    "negative weight": (
        lambda: opf_accuracy_score(Y, Y, sample_weight=[1, -2, 1]),
        ["-2.0 at row 1", "use 0"],
    ),
    "NaN weight": (
        lambda: opf_accuracy_score(Y, Y, sample_weight=[1, 1, np.nan]),
        ["nan at row 2", "finite"],
    ),
    "no weight": (
        lambda: opf_accuracy_score(Y, Y, sample_weight=[0, 0, 0]),
        ["sums to 0.0", "at least one"],
    ),
    "one weight": (lambda: opf_accuracy_score(Y, Y, sample_weight=2.0), ["()", "(3,)"]),
    "weights of another length": (
        lambda: expected_calibration_error(Y, P, sample_weight=[1, 1]),
        ["(2,)", "(3,)"],
    ),
    # calibration error
    "above 1": (
        lambda: expected_calibration_error(Y, [0.2, 1.5, 0.1]),
        ["1.5 at row 1", "predict_proba"],
    ),
    "below 0": (lambda: expected_calibration_error(Y, [-0.1, 0, 0]), ["-0.1 at row 0"]),
    "NaN": (lambda: expected_calibration_error(Y, [0.1, 0.2, np.nan]), ["nan at row 2", "drop"]),
    "row sums": (
        lambda: expected_calibration_error(Y, [[0.5, 0.5], [0.9, 0.9], [1, 0]]),
        ["sums to 1.8", "row 1", "divide"],
    ),
    "one column": (
        lambda: expected_calibration_error(Y, np.transpose([P])),
        ["(3, 1)", "ravel"],
    ),
    "probability lengths": (
        lambda: expected_calibration_error(Y, P[:2]),
        ["3 samples", "y_prob has 2"],
    ),
    "strategy": (
        lambda: expected_calibration_error(Y, P, strategy="kmeans"),
        ["strategy='kmeans'", "'uniform' or 'quantile'"],
    ),
    "kind": (lambda: expected_calibration_error(Y, P, kind="top"), ["kind='top'", "'classwise'"]),
    "no bins": (lambda: expected_calibration_error(Y, P, n_bins=0), ["n_bins=0", "at least 1"]),
    "half a bin": (lambda: expected_calibration_error(Y, P, n_bins=2.5), ["n_bins=2.5"]),
    "more columns than classes": (
        lambda: expected_calibration_error(Y, T3),
        ["2 classes (0, 1)", "3 columns", "labels=classifier.classes_"],
    ),
    "more classes than one column takes": (
        lambda: expected_calibration_error([0, 1, 2], P),
        ["3 classes (0, 1, 2)", "takes 2", "one column for each class"],
    ),
    "one class": (
        lambda: expected_calibration_error([1, 1, 1], P),
        ["1 classes (1)", "labels="],
    ),
    "strange label": (
        lambda: expected_calibration_error([0, 1, 5], P, labels=[0, 1]),
        ["5", "[0, 1]", "name all"],
    ),
    "binary of three": (
        lambda: expected_calibration_error([0, 1, 2], T3, kind="binary"),
        ["there are 3", 'kind="classwise"'],
    ),
    "positive of three": (
        lambda: expected_calibration_error([0, 1, 2], T3, pos_label=1),
        ["pos_label=1", "leave it None"],
    ),
    "unknown positive": (
        lambda: expected_calibration_error(Y, P, pos_label="yes"),
        ["pos_label='yes'", "use 0 or 1"],
    ),
    # thresholds
    "threshold 0": (
        lambda: threshold_curve(Y, P, thresholds=[0.0, 0.5]),
        ["holds 0.0", "excluded"],
    ),
    "threshold 1": (lambda: threshold_curve(Y, P, thresholds=[0.5, 1]), ["holds 1.0"]),
    "threshold NaN": (lambda: threshold_curve(Y, P, thresholds=[np.nan]), ["holds nan"]),
    "no thresholds": (lambda: threshold_curve(Y, P, thresholds=[]), ["(0,)", "list of numbers"]),
    "one threshold": (lambda: threshold_curve(Y, P, thresholds=0.5), ["()", "list of numbers"]),
    "word": (lambda: threshold_curve(Y, P, thresholds="some"), ["'some'", "use 'all'"]),
    "three classes": (
        lambda: threshold_curve([0, 1, 2], P),
        ["holds 3: 0, 1, 2", "y_true == k"],
    ),
    "a single class": (lambda: threshold_curve([1, 1, 1], P), ["holds 1: 1", "two classes"]),
    "three columns": (lambda: threshold_curve(Y, T3), ["2 classes", "3 columns"]),
    "threshold lengths": (lambda: threshold_curve(Y, P[:2]), ["3 samples", "y_prob has 2"]),
    "threshold positive": (lambda: threshold_curve(Y, P, pos_label=3), ["pos_label=3", "0 or 1"]),
}


@pytest.mark.parametrize(("call", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_named_with_its_remedy(call, said):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - what it says is checked below
        call()
    missing = [words for words in said if words not in str(refusal.value)]
    assert not missing, str(refusal.value)


def test_a_score_is_a_function():
    with pytest.raises(TypeError, match="score='f1' is no function"):
        threshold_curve(Y, P, score="f1")


# The package -------------------------------------------------------------------------------------


def test_what_it_offers_and_that_scikit_learn_is_not_repeated():
    assert set(popf.metrics.__all__) == {
        "ThresholdCurve",
        "expected_calibration_error",
        "opf_accuracy_score",
        "threshold_curve",
    }


def test_importing_the_metrics_imports_no_engine():
    code = (
        "import sys, popf.metrics; print('numba' in sys.modules, "
        "sorted(name for name in sys.modules if name.startswith('popf.engine')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False []\n", done.stderr
