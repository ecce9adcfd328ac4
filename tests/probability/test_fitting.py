"""How POPFClassifier is fitted: on weighted, scaled, shuffled, grouped and nasty data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import OPFClassifier, POPFClassifier
from popf.probability import fitting, folds
from popf.probability.fitting import warn_if_useless
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
    fitted,
)
from strategies import size

# Invariances -------------------------------------------------------------------------------------


SETS = {2: (WIDE, Y, WIDE_NEW), 3: (X3, Y3, NEW3)}


@pytest.mark.parametrize("factor", [1e-150, 1e6])
@pytest.mark.parametrize("n_classes", SETS)
def test_the_units_of_the_features(n_classes, factor):
    samples, y, queries = SETS[n_classes]
    units = np.array([factor, 1.0 / factor])
    P = POPFClassifier().fit(samples * units, y).predict_proba(queries * units)
    assert_allclose(P, fitted(n_classes=n_classes).predict_proba(queries), rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["pooled", "forest"])
@pytest.mark.parametrize("n_classes", SETS)
def test_order_of_the_rows_and_names_of_the_labels(n_classes, method):
    samples, y, queries = SETS[n_classes]
    P = fitted(method, n_classes).predict_proba(queries)
    shuffled = np.random.default_rng(0).permutation(len(y))
    again = POPFClassifier(method).fit(samples[shuffled], y[shuffled]).predict_proba(queries)
    assert_allclose(again, P, rtol=0, atol=1e-12)
    named = POPFClassifier(method).fit(samples, np.array(["ant", "bee", "cat"])[y])
    assert_array_equal(named.predict_proba(queries), P)
    names = np.array(["no", "maybe", "always"])[:n_classes]  # in another order
    renamed = POPFClassifier(method).fit(samples, names[y]).predict_proba(queries)
    assert_allclose(renamed[:, ::-1], P, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [300, 3000, size(30_000)])
def test_order_of_the_rows_of_larger_sets(n):
    rng = np.random.default_rng(n)
    samples = rng.normal(size=(n, 3))
    y = (np.sin(2.0 * samples[:, 0]) + samples[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    queries, shuffled = rng.normal(size=(50, 3)), rng.permutation(n)
    model = POPFClassifier() if n < 3000 else POPFClassifier("forest", linear_map="none")
    P = model.fit(samples, y).predict_proba(queries)
    again = model.fit(samples[shuffled], y[shuffled]).predict_proba(queries)
    assert_allclose(again, P, rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["pooled", "forest"])
def test_some_of_many_samples_choose_for_all(method, monkeypatch):
    limits = {"MANY": 100, "ENOUGH": 300, "N_HELD_OUT": 150, "MAX_SAMPLES": 500}
    limits |= {"N_FOLDS": 4}  # so that a third is held out
    for name, limit in limits.items():
        monkeypatch.setattr(folds, name, limit)
    rng = np.random.default_rng(1)
    n = 2000
    samples, shuffled = rng.normal(size=(n, 2)), rng.permutation(n)
    y = (samples[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
    y[::200] = 2  # all of them are in the subset, where the class is four times as frequent
    model = POPFClassifier(method).fit(samples, y)
    P = model.predict_proba(samples)
    assert len(model.opf_.costs_) == n
    again = POPFClassifier(method).fit(samples[shuffled], y[shuffled])
    assert_allclose(again.predict_proba(samples), P, rtol=0, atol=1e-9)
    monkeypatch.setattr(folds, "MAX_SAMPLES", n)
    whole = POPFClassifier(method).fit(samples, y)
    assert log_loss(y, P) < 1.05 * log_loss(y, whole.predict_proba(samples))


def test_threads_and_memory():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(size(400), 12)) * 3.0
    y = (samples[:, 0] + rng.normal(size=len(samples)) > 0).astype(int)
    queries = rng.normal(size=(150, 12)) * 3.0
    P = POPFClassifier(linear_map="none").fit(samples, y).predict_proba(queries)
    others = [
        ("n_jobs", 2),
        ("working_memory", 0.05),
        ("algorithm", "prim"),
        ("algorithm", "brute"),
    ]
    for name, value in others:
        other = POPFClassifier(linear_map="none", **{name: value}).fit(samples, y)
        assert_allclose(other.predict_proba(queries), P, rtol=0, atol=1e-12)


# Groups ------------------------------------------------------------------------------------------


def months(n_consumers, seed, n_months=8):
    """Make months of consumers, similar for each consumer; return samples, labels and consumers."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n_consumers) % 3 == 0).astype(int)
    own = rng.normal(size=(n_consumers, 4)) + y[:, None] * [1.5, 0.0, 0.0, 0.0]
    samples = np.repeat(own, n_months, axis=0) + 0.2 * rng.normal(size=(n_consumers * n_months, 4))
    return samples, np.repeat(y, n_months), np.repeat(np.arange(n_consumers), n_months)


@pytest.mark.parametrize(
    "limits", [{}, {"MANY": 100, "ENOUGH": 300, "N_HELD_OUT": 240, "N_FOLDS": 4}], ids=str
)
def test_groups_are_held_out_whole(monkeypatch, limits):
    for name, limit in limits.items():
        monkeypatch.setattr(folds, name, limit)
    samples, y, consumers = months(60, 0)
    queries, truth, _ = months(300, 1)
    torn = POPFClassifier().fit(samples, y)
    model = POPFClassifier().fit(samples, y, groups=consumers)
    prior = log_loss(truth, np.tile([2 / 3, 1 / 3], (len(truth), 1)))
    P = model.predict_proba(queries)
    assert log_loss(truth, torn.predict_proba(queries)) > 1.2 * prior  # months are split over folds
    assert log_loss(truth, P) < prior
    assert (
        torn.held_out_losses_["pool"] < 0.3 * prior < 0.7 * prior < model.held_out_losses_["pool"]
    )
    # Neither the order of the rows nor the names of the groups matter.
    shuffled = np.random.default_rng(2).permutation(len(y))
    names = np.array([f"meter {999 - number}" for number in consumers])
    again = POPFClassifier().fit(samples[shuffled], y[shuffled], groups=names[shuffled])
    assert_allclose(again.predict_proba(queries), P, rtol=0, atol=1e-12)


def test_groups_and_weights():
    samples, y, consumers = months(40, 3, 3)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    copies = np.repeat(np.arange(len(y)), weights)
    weighted = POPFClassifier().fit(samples, y, weights, consumers)
    repeated = POPFClassifier().fit(samples[copies], y[copies], groups=consumers[copies])
    P = weighted.predict_proba(samples)
    assert_allclose(repeated.predict_proba(samples), P, rtol=0, atol=1e-6)
    D = distances(samples, samples)
    model = POPFClassifier(metric="precomputed").fit(D, y, groups=consumers)
    assert model.held_out_losses_["pool"] > 0.4


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (np.arange(23), r"groups has the shape \(23,\), but there are 24 samples: give one"),
        (np.zeros((24, 2)), r"groups has the shape \(24, 2\)"),
        ([*range(23), np.nan], r"groups\[23\] is missing: give every sample a group"),
        ([*"abcdefghijklmnopqrstuvw", None], r"groups\[23\] is missing"),
        (
            ["north"] * 24,
            "groups has only one value, north: no group can be held out. Give at least two",
        ),
        (["a", 1] * 12, "groups mixes values of several types.*groups.astype"),
    ],
    ids=str,
)
def test_groups_that_cannot_be(groups, said):
    samples, y, _ = months(8, 0, 3)
    if any(isinstance(group, str) for group in groups):
        groups = np.array(groups, dtype=object)
    with pytest.raises((ValueError, TypeError), match=said):
        POPFClassifier().fit(samples, y, groups=groups)


def test_groups_travel_through_searches():
    samples, y, consumers = months(24, 5, 4)
    with config_context(enable_metadata_routing=True):
        model = POPFClassifier("forest", linear_map="none")
        model.set_fit_request(groups=True)
        search = GridSearchCV(model, {"squash": [True, False]}, cv=GroupKFold(4))
        search.fit(samples, y, groups=consumers)
    best = clone(search.best_estimator_).fit(samples, y, groups=consumers)
    P = best.predict_proba(samples)
    assert_array_equal(search.predict_proba(samples), P)
    assert (
        abs(POPFClassifier(**best.get_params()).fit(samples, y).predict_proba(samples) - P).max()
        > 0.1
    )


# Weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_classes", "linear_map"), [(2, "auto"), (3, "auto"), (2, "none")])
def test_integer_weights_are_repetition(n_classes, linear_map):
    samples, y, queries = SETS[n_classes]
    w = np.random.default_rng(1).integers(0, 4, len(y))
    model = POPFClassifier(linear_map=linear_map)
    weighted = model.fit(samples, y, sample_weight=w).predict_proba(queries)
    repeated = model.fit(np.repeat(samples, w, axis=0), np.repeat(y, w)).predict_proba(queries)
    assert_allclose(weighted, repeated, rtol=0, atol=1e-6)


def test_zero_weights_are_absence_from_a_matrix_of_distances():
    kept = np.arange(len(Y)) % 3 > 0
    D, new = distances(WIDE, WIDE), distances(WIDE_NEW, WIDE)
    D[0, 1] = 7.0  # not symmetric, but the first sample has no weight
    model = POPFClassifier(metric="precomputed")
    P = model.fit(D, Y, sample_weight=kept * 1.0).predict_proba(new)
    model.fit(D[np.ix_(kept, kept)], Y[kept])
    assert_array_equal(model.predict_proba(new[:, kept]), P)


# Nasty data --------------------------------------------------------------------------------------


KNOWN = {
    "both labels": (np.concatenate([X, X]), np.repeat([0, 1], len(X)), NEW, 0.5, 0.02),
    "constant": (np.ones((20, 3)), np.repeat([0, 1], [14, 6]), [[1.0] * 3, [5.0] * 3], 0.3, 0.05),
    "duplicates": (DUPLICATES, DUPLICATE_LABELS, [[0.0, 0.0], [1.0, 0.0]], [0.25, 0.875], 0.1),
    "one of each": ([[0.0], [1.0]], [0, 1], [[0.0], [0.4], [1.0]], 0.5, 1e-7),
    "three": ([[0.0], [1.0], [3.0]], [0, 1, 2], [[0.0], [3.0]], 1 / 3, 1e-7),
}


@pytest.mark.parametrize(("samples", "y", "new", "expected", "atol"), KNOWN.values(), ids=KNOWN)
def test_where_the_frequencies_are_all_there_is(samples, y, new, expected, atol):
    P = POPFClassifier().fit(samples, y).predict_proba(new)
    assert_allclose(P[:, 1], expected, rtol=0, atol=atol)


@pytest.mark.parametrize("few", [[[9.0, 9.0]], [[9.0, 9.0], [9.0, 8.5]]], ids=["one", "two"])
def test_classes_with_one_or_two_samples(few):
    rows, y = np.vstack([X3, few]), np.append(Y3, [3] * len(few))
    P = POPFClassifier().fit(rows, y).predict_proba(rows)
    assert P.shape == (len(rows), 4)
    assert np.isfinite(P).all()


def test_scattered_copies_follow_neither_the_order_of_rows_nor_weights_for_copies():
    rng = np.random.default_rng(0)
    samples, weights = rng.integers(0, 3, (300, 3)).astype(float), rng.integers(1, 4, 300)
    y = (samples[:, 0] + rng.normal(size=300) > 1.0).astype(int)
    copies = rng.permutation(np.repeat(np.arange(300), weights))
    repeated = POPFClassifier().fit(samples[copies], y[copies])
    weighted = POPFClassifier().fit(samples, y, sample_weight=weights.astype(float))
    P = weighted.predict_proba(samples)
    assert_allclose(repeated.predict_proba(samples), P, rtol=0, atol=1e-6)
    assert np.ptp(P[:, 1]) > 0.2


def test_noise_of_categories_is_answered_by_the_class_frequencies():
    rng = np.random.default_rng(0)
    samples, new = rng.integers(0, 2, (2, 1000, 6))
    y = np.arange(1000) % 2
    assert log_loss(y, POPFClassifier().fit(samples, y).predict_proba(new)) < np.log(2.0) + 0.002


@pytest.mark.parametrize(("n", "d", "n_classes"), [(100, 5, 2), (120, 4, 3)])
def test_noise_is_answered_by_the_class_frequencies(n, d, n_classes):
    excess = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        samples, y = rng.normal(size=(n, d)), np.arange(n) % n_classes
        new, truth = rng.normal(size=(2000, d)), np.arange(2000) % n_classes
        P = POPFClassifier().fit(samples, y).predict_proba(new)
        excess.append(log_loss(truth, P) - log_loss(truth, [np.bincount(y) / n] * 2000))
    assert max(excess) < 0.015
    assert np.mean(excess) < 0.0025


def test_probabilities_that_are_no_better_than_the_frequencies_are_reported():
    weights, frequencies = np.ones(400), np.array([0.5, 0.5])
    with pytest.warns(UserWarning, match="80%.*50%.*OPFClassifier"):
        warn_if_useless(0.0, 0.8, weights, frequencies)
    for confidence, accuracy in ((0.9, 0.8), (0.0, 0.55), (0.0, 0.3)):
        warn_if_useless(confidence, accuracy, weights, frequencies)


def test_a_fit_warns_where_the_forest_is_good_and_the_probabilities_are_not(monkeypatch):
    monkeypatch.setattr(fitting, "confidence_in", lambda *_: 0.0)
    with pytest.warns(UserWarning, match="The forest labels .* OPFClassifier may serve you better"):
        POPFClassifier().fit(X, Y)


def heavy(kind, d):
    """Make two classes with heavy tails, and 5 % of the labels wrong."""
    rng = np.random.default_rng(d)
    Z = rng.normal(size=(1600, d))
    y = (Z[:, 0] + Z[:, 1] ** 2 > 1.0).astype(int) ^ (rng.random(1600) < 0.05)
    if kind == "far rows":
        y = np.arange(1600) % 2
        Z += 4.0 / np.sqrt(d) * y[:, None]
        Z[rng.permutation(1600)[:8]] *= 1e6
        return Z, y
    if kind == "pareto":
        return np.sign(Z) * (1.0 - np.minimum(np.abs(Z) / 5.0, 0.9999)) ** -3.0, y
    return np.exp(float(kind) * Z), y


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("kind", ["2", "3", "pareto", "far rows"])
def test_heavy_tails(kind, d):
    samples, y = heavy(kind, d)
    samples, new, y, truth = samples[:600], samples[600:], y[:600], y[600:]
    model, forest = POPFClassifier().fit(samples, y), OPFClassifier().fit(samples, y)
    assert model.score(new, truth) > forest.score(new, truth) - 0.03
    neighbours = make_pipeline(StandardScaler(), KNeighborsClassifier())
    grid = {"kneighborsclassifier__n_neighbors": [10, 20, 40, 80]}
    tuned = GridSearchCV(neighbours, grid, scoring="neg_log_loss", cv=3).fit(samples, y)
    loss = log_loss(truth, tuned.predict_proba(new))
    assert log_loss(truth, model.predict_proba(new)) < 1.1 * loss


def test_far_rows_leave_no_nan():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(2200, 2))
    y = (samples[:, 0] > 0).astype(int)
    samples[:10] *= 1e5
    assert np.isfinite(POPFClassifier("forest").fit(samples, y).predict_proba(samples)).all()
    wide = rng.normal(size=(400, 17))
    y = (wide[:, 0] > 0).astype(int)
    wide[0, 0] = 1e20
    assert POPFClassifier().fit(wide, y).score(wide, y) > 0.9


def test_extreme_queries_stay_finite():
    model, far = fitted(), [[1e100, 0.0], [-1e100, 1e100]]
    assert np.isfinite(model.predict_proba(far)).all()
    assert not np.isnan(model.decision_function(far)).any()


def test_a_verbose_fit_prints_its_stages(capsys):
    POPFClassifier(linear_map="whitening").fit(WIDE, Y)
    assert capsys.readouterr().out == ""
    POPFClassifier(linear_map="whitening", verbose=True).fit(WIDE, Y)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[POPFClassifier] ") for line in lines)
    assert f"{len(WIDE)} rows, 2 classes" in lines[0]
    scored = [line.rpartition(": ")[2] for line in lines[1:-1]]
    assert scored == ["forest, map 'whitening'", "linear", "additive", "trees"]
    assert "fitting to all samples: forest" in lines[-1]
