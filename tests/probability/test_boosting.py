"""Boosted trees against their definition, and the exact split of their logits by feature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import naive_probability
from popf.probability.boosting import Boosting


def start(X, y, w, n_classes):
    """Return boosting on all samples."""
    return Boosting(X, y, w, n_classes, len(y))


def noisy(n, n_features, n_classes, seed=0):
    """Make classes by thresholds in two features, with a quarter of the labels replaced by random ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    X[:, -1] = np.round(X[:, -1])  # few values
    y = (X[:, 0] > 0.3).astype(int) + ((X[:, 1] > 0.0) & (X[:, 0] < 0.3)) * (n_classes - 1)
    return X, np.where(rng.random(n) < 0.25, rng.integers(0, n_classes, n), y % n_classes), rng


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("n_samples", "n_features", "n_rounds", "n_inner"),
    [(120, 1, 12, 15), (120, 5, 12, 15), (120, 210, 3, 15), (3300, 4, 3, 31), (21_000, 45, 1, 127)],
)
def test_trees_are_those_of_the_definition(n_samples, n_features, n_rounds, n_inner, n_classes):
    # Of many samples these are a part, as in a fold.
    X, y, rng = noisy(min(n_samples, 400), max(n_features, 2), n_classes)
    X, w, new = X[:, :n_features], rng.integers(1, 4, len(X)), rng.normal(size=(40, n_features))
    trees = Boosting(X, y, w.astype(float), n_classes, n_samples).fit(n_rounds)
    assert trees.features.shape == (n_rounds * (1 if n_classes == 2 else n_classes), n_inner)
    expected = naive_probability.boosted(X, y, w, n_classes, n_samples, n_rounds, new)
    found = trees.exponents(new)
    assert_allclose(
        found - found.mean(1, keepdims=True), expected - expected.mean(1, keepdims=True), atol=1e-9
    )
    assert_allclose(found, naive_probability.trees_exponents(trees._asdict(), new), atol=1e-12)
    assert np.ptp(found[:, 1]) > 0.1


@pytest.mark.parametrize(("n_classes", "n_rounds"), [(2, 40), (4, 20)])
def test_exponents_are_sums_over_features_of_mean_0(n_classes, n_rounds):
    X, y, rng = noisy(300, 6, n_classes)
    w = rng.random(300) + 0.5
    trees, intercepts = start(X, y, w, n_classes).fit(n_rounds).without_intercepts()
    shares = trees.shares(X)
    assert shares.shape == (300, 6, n_classes)
    assert_allclose(shares.sum(axis=1), trees.exponents(X), atol=1e-10)
    assert_allclose(np.average(shares, axis=0, weights=w), 0.0, atol=1e-10)
    assert np.abs(shares[:, 0]).mean() > 3.0 * np.abs(shares[:, 3]).mean()
    assert_allclose(
        np.exp(intercepts) / np.exp(intercepts).sum(), np.bincount(y, w) / w.sum(), atol=0.1
    )


def test_more_samples_try_up_to_twice_the_known_rounds_if_that_is_quick(monkeypatch):
    X, y, _ = noisy(200, 6, 3)
    boosting = start(X, y, np.ones(200), 3)
    assert boosting.strengths_near(40.0) == (40.0, 80.0)
    per_round = 200 * 3 * 3  # samples, classes, half of the features
    monkeypatch.setattr("popf.probability.boosting.MAX_VALUES", 50 * per_round)
    assert boosting.strengths_near(40.0) == (40.0, 50.0)
    assert boosting.strengths_near(80.0) == (80.0,)


def test_a_fit_goes_on_where_the_last_one_ended():
    X, y, _ = noisy(200, 20, 2)
    at_once = start(X, y, np.ones(200), 2).fit(45)
    boosting = start(X, y, np.ones(200), 2)
    for n_rounds in (5, 20, 45):
        trees = boosting.fit(n_rounds)
        assert len(trees.features) == n_rounds
    for one, other in zip(trees, at_once, strict=True):
        assert_array_equal(one, other)


def test_weights_are_repetition_and_monotone_changes_are_none():
    X, y, rng = noisy(150, 4, 3)
    w = rng.integers(1, 5, 150)
    one = start(X, y, w.astype(float), 3).fit(30)
    repeated = start(np.repeat(X, w, axis=0), np.repeat(y, w), np.ones(w.sum()), 3).fit(30)
    assert_array_equal(one.features, repeated.features)
    assert_allclose(one.exponents(X), repeated.exponents(X), atol=1e-10)
    curved = start(X**3, y, w.astype(float), 3).fit(30)
    assert_allclose(one.exponents(X), curved.exponents(X**3), atol=1e-12)


def test_without_anything_to_split_by_the_class_frequencies_remain():
    X, y = np.ones((30, 2)), np.arange(30) % 3 // 2
    trees = start(X, y, np.ones(30), 2).fit(20)
    assert (trees.features == -1).all()
    assert_allclose(np.diff(trees.exponents(X[:4])), np.log(0.5), atol=0.05)


def test_a_class_that_is_missing_is_rare_and_light_samples_count_as_one():
    X, y, _ = noisy(100, 3, 2)
    z = start(X, y, np.ones(100), 3).fit(10).exponents(X)
    assert (np.exp(z[:, 2]) / np.exp(z).sum(axis=1) < 0.02).all()
    heavy, light = (start(X, y, np.full(100, w), 2).fit(10).exponents(X) for w in (1.0, 0.01))
    assert_allclose(heavy, light, atol=1e-9)


def test_neighbouring_floats_are_told_apart():
    x = np.array([1.0, np.nextafter(1.0, 2.0)])[np.arange(60) % 2]
    trees = start(x[:, None], np.arange(60) % 2, np.ones(60), 2).fit(10)
    assert (np.diff(trees.exponents(x[:, None]))[:, 0] > 0.0).tolist() == [False, True] * 30
