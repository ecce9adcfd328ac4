"""POPFClassifier on weighted, scaled, shuffled and nasty data."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

from popf import POPFClassifier
from probability_problems import (
    DUPLICATE_LABELS,
    DUPLICATES,
    NEW,
    NEW3,
    WIDE,
    WIDE_NEW,
    X3,
    Y3,
    X,
    Y,
    distances,
    soft,
)
from strategies import size

# What must not matter ----------------------------------------------------------------------------


SCALED = {"moons": (X, Y, NEW), "blobs": (X3, Y3, NEW3)}
SCALED["duplicates"] = (DUPLICATES, DUPLICATE_LABELS, np.array([[0.0, 0.0], [1.0, 0.0]]))


@pytest.mark.parametrize("factor", [1e-150, 1e-3, 1e6, 1e150])
@pytest.mark.parametrize(("samples", "y", "queries"), SCALED.values(), ids=SCALED)
def test_the_scale_of_the_features(samples, y, queries, factor):
    one = soft().fit(samples, y)
    other = soft().fit(samples * factor, y)
    assert_allclose(
        other.predict_proba(queries * factor), one.predict_proba(queries), rtol=0, atol=1e-9
    )
    assert_allclose(other.bandwidth_, one.bandwidth_ * factor, rtol=1e-9)


@pytest.mark.parametrize("calibration", ["softmax", "multinomial"])
@pytest.mark.parametrize(("samples", "y", "queries"), [(X, Y, NEW), (X3, Y3, NEW3)])
def test_rows_rotation_and_names_of_the_labels(samples, y, queries, calibration):
    def soft():
        return POPFClassifier(calibration=calibration)

    P = soft().fit(samples, y).predict_proba(queries)
    shuffled = np.random.default_rng(0).permutation(len(y))
    again = soft().fit(samples[shuffled], y[shuffled]).predict_proba(queries)
    assert_allclose(again, P, rtol=0, atol=1e-9)
    turn = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    turned = soft().fit(samples @ turn, y).predict_proba(queries @ turn)
    assert_allclose(turned, P, rtol=0, atol=1e-9)
    named = soft().fit(samples, np.array(["ant", "bee", "cat"])[y])
    assert_array_equal(named.classes_, ["ant", "bee", "cat"][: y.max() + 1])
    assert_array_equal(named.predict_proba(queries), P)
    assert set(named.predict(queries)) <= {"ant", "bee", "cat"}
    reversed_ = soft().fit(samples, y.max() - y).predict_proba(queries)
    assert_allclose(reversed_[:, ::-1], P, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_threads_and_memory(method):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(size(700), 12)) * 3.0
    y = (samples[:, 0] + rng.normal(size=len(samples)) > 0).astype(int)
    queries = rng.normal(size=(150, 12)) * 3.0
    for algorithm in ["kd_tree", "brute", "prim"]:
        one = POPFClassifier(method, algorithm=algorithm).fit(samples, y)
        P = one.predict_proba(queries)
        for parameters in [{"n_jobs": 2}, {"working_memory": 0.05}]:
            other = POPFClassifier(method, algorithm=algorithm, **parameters).fit(samples, y)
            assert_array_equal(other.predict_proba(queries), P)
            assert (other.A_, other.B_) == (one.A_, one.B_)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_few_queries_or_many_get_the_same_answer(method):
    model = POPFClassifier(method).fit(WIDE, Y)
    P = model.predict_proba(WIDE_NEW)
    one_by_one = np.concatenate([model.predict_proba(row[np.newaxis]) for row in WIDE_NEW])
    assert_allclose(one_by_one, P, rtol=0, atol=1e-12)


# Weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_integer_weights_are_repetition(method):
    w = np.random.default_rng(1).integers(0, 4, len(Y))
    weighted = POPFClassifier(method).fit(WIDE, Y, sample_weight=w)
    repeated = POPFClassifier(method).fit(np.repeat(WIDE, w, axis=0), np.repeat(Y, w))
    assert_allclose(
        weighted.predict_proba(WIDE_NEW), repeated.predict_proba(WIDE_NEW), rtol=0, atol=1e-9
    )
    if method == "soft":
        assert_allclose(weighted.bandwidth_, repeated.bandwidth_, rtol=1e-12)


def test_integer_weights_are_repetition_for_three_classes():
    w = np.random.default_rng(1).integers(0, 4, len(Y3))
    weighted = soft().fit(X3, Y3, sample_weight=w).predict_proba(NEW3)
    repeated = soft().fit(np.repeat(X3, w, axis=0), np.repeat(Y3, w)).predict_proba(NEW3)
    assert_allclose(weighted, repeated, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_zero_weights_are_absence(method):
    w = (np.arange(len(Y)) % 3 > 0).astype(float)
    weighted = POPFClassifier(method).fit(WIDE, Y, sample_weight=w)
    absent = POPFClassifier(method).fit(WIDE[w > 0], Y[w > 0])
    assert_array_equal(weighted.predict_proba(WIDE_NEW), absent.predict_proba(WIDE_NEW))
    unit = POPFClassifier(method).fit(WIDE, Y, sample_weight=np.ones(len(Y)))
    assert_allclose(
        unit.predict_proba(WIDE_NEW),
        POPFClassifier(method).fit(WIDE, Y).predict_proba(WIDE_NEW),
        rtol=0,
        atol=1e-12,
    )


def test_zero_weights_are_absence_from_a_matrix():
    w = (np.arange(len(Y)) % 3 > 0).astype(float)
    D, D_new = distances(X, X), distances(NEW, X)
    kept = w > 0
    weighted = soft(metric="precomputed").fit(D, Y, sample_weight=w)
    absent = soft(metric="precomputed").fit(D[np.ix_(kept, kept)], Y[kept])
    assert_array_equal(weighted.predict_proba(D_new), absent.predict_proba(D_new[:, kept]))


def test_weights_that_almost_vanish():
    w = np.where(np.arange(len(Y)) % 2 == 0, 1.0, 1e-20)
    P = soft().fit(X, Y, sample_weight=w).predict_proba(NEW)
    rest = soft().fit(X, Y, sample_weight=np.full(len(Y), 1e-20)).predict_proba(NEW)
    pair = (
        soft().fit(X[:4], [0, 0, 1, 1], sample_weight=[1.0, 1e-20, 1.0, 1e-20]).predict_proba(NEW)
    )
    for answer in (P, rest, pair):
        assert np.isfinite(answer).all()
        assert_allclose(answer.sum(axis=1), 1.0)


def test_fractional_weights():
    w = np.random.default_rng(1).uniform(0.1, 2.0, len(Y))
    P = soft().fit(X, Y, sample_weight=w).predict_proba(NEW)
    assert ((P > 0.0) & (P < 1.0)).all()
    assert log_loss(Y, soft().fit(X, Y, sample_weight=w).predict_proba(X)) < 0.5


# Nasty data --------------------------------------------------------------------------------------


def test_every_point_with_both_labels():
    samples = np.concatenate([X, X])
    y = np.repeat([0, 1], len(X))
    assert_allclose(soft().fit(samples, y).predict_proba(NEW), 0.5, rtol=0, atol=1e-12)


def test_constant_features_give_the_smoothed_prior():
    model = soft().fit(np.ones((20, 3)), np.repeat([0, 1], [14, 6]))
    expected = np.tile([15 / 22, 7 / 22], (2, 1))
    assert_allclose(model.predict_proba([[1, 1, 1], [5, 5, 5]]), expected, rtol=1e-12)


def test_constant_features_and_three_classes():
    P = (
        soft()
        .fit(np.ones((20, 3)), np.repeat([0, 1, 2], [12, 6, 2]))
        .predict_proba(np.ones((1, 3)))
    )
    assert (np.diff(P[0]) < 0.0).all()
    assert_allclose(P[0], [0.6, 0.3, 0.1], atol=0.08)


def test_a_class_with_one_sample():
    samples = np.concatenate([X[Y == 0], [[5.0, 5.0]]])
    y = np.repeat([0, 1], [len(samples) - 1, 1])
    P = soft().fit(samples, y).predict_proba(np.concatenate([NEW, samples]))
    # Left out, it leaves its class without a score: the smoothed prior is all that can be known.
    assert_allclose(P[:, 1], 2 / (len(y) + 2))


def test_one_sample_of_each_class():
    P = soft().fit([[0.0], [1.0]], [0, 1]).predict_proba([[0.0], [0.4], [1.0]])
    assert ((P > 0.0) & (P < 1.0)).all()
    assert_allclose(P, 0.5)
    P = soft().fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict_proba([[0.0], [1.0], [3.0]])
    assert_allclose(P, 1 / 3)


def test_heavy_duplicates():
    model = soft().fit(DUPLICATES, DUPLICATE_LABELS)
    P = model.predict_proba([[0.0, 0.0], [1.0, 0.0]])[:, 1]
    assert ((P > 0.0) & (P < 1.0)).all()
    assert_allclose(P, [0.25, 0.875], atol=0.06)


def test_separate_classes_and_an_outlier():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(60, 2)) + np.repeat([0.0, 20.0], 30)[:, np.newaxis]
    y = np.repeat([0, 1], 30)
    P = soft().fit(samples, y).predict_proba(samples)
    assert ((P > 0.0) & (P < 1.0)).all()
    assert P[np.arange(60), y].min() > 0.9
    samples[0] = 1e8
    model = soft().fit(samples, y)
    assert model.predict_proba(samples)[np.arange(60), y][1:].min() > 0.9
    assert np.isfinite(model.predict_log_proba(samples)).all()


def test_a_class_of_one_sample_has_its_probability_in_either_calibration():
    rows, y = np.vstack([X3, [[9.0, 9.0]]]), np.append(Y3, 3)
    model = soft(calibration="multinomial").fit(rows, y)
    P = model.predict_proba(rows)
    # No sample of the last class can be left out: there is nothing to fit a regression to.
    assert P.shape == (len(rows), 4)
    assert_array_equal(P, soft(calibration="softmax").fit(rows, y).predict_proba(rows))
    assert model.predict(rows)[-1] == 3
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(rows), P)
    # With two there is.
    rows, y = np.vstack([rows, [[9.0, 8.5]]]), np.append(y, 3)
    two = soft(calibration="multinomial").fit(rows, y).predict_proba(rows)
    assert two.shape == (len(rows), 4)
    assert not np.array_equal(two, soft(calibration="softmax").fit(rows, y).predict_proba(rows))


def test_extreme_queries_stay_finite():
    model = soft().fit(X, Y)
    P = model.predict_proba([[1e100, 0.0], [-1e100, 1e100]])
    assert np.isfinite(P).all()
    assert_allclose(P.sum(axis=1), 1.0)
    assert not np.isnan(model.decision_function([[1e100, 0.0]])).any()
