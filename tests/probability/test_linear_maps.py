"""The linear maps of the forest's features, against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import naive_probability
from popf.probability import linear_maps
from popf.probability.linear_maps import MAPS, effect_sizes, fit_map
from probability_problems import distances

RNG = np.random.default_rng(0)
MIXED = RNG.normal(size=(6, 6))
PROBLEMS = {}
for n_classes in (2, 4):
    labels = RNG.permutation(np.arange(60) % n_classes)
    shift = np.where(np.arange(6) < 2, 1.5, 0.0)
    PROBLEMS[f"{n_classes} classes"] = (
        (RNG.normal(size=(60, 6)) + labels[:, None] * shift) @ MIXED,
        labels,
    )
X2, Y2 = PROBLEMS["2 classes"]
MANY, MANY_Y = RNG.normal(size=(20, 90)), np.arange(20) % 2
MANY[:, :3] += 2.0 * MANY_Y[:, None]
PROBLEMS["d > n"] = (MANY, MANY_Y)
PROBLEMS["constant feature"] = (np.insert(X2, 3, 0.0, axis=1), Y2)
PROBLEMS["one alone"] = (X2[:31], np.where(np.arange(31) == 5, 2, Y2[:31]))


def standardised(X, w):
    mean = np.average(X, axis=0, weights=w)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    return (X - mean) / np.where(spread > 0.0, spread, 1.0)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(("X", "y"), PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_directions", [3, 24])
def test_maps_are_the_naive_versions(name, X, y, weighted, n_directions, monkeypatch):
    monkeypatch.setattr(linear_maps, "N_DIRECTIONS", n_directions)
    w = np.random.default_rng(1).integers(1, 4, len(y)) if weighted else np.ones(len(y), int)
    Z, new = standardised(X, w), np.random.default_rng(2).normal(size=(15, X.shape[1]))
    new[:, Z.std(axis=0) == 0.0] = 0.0  # as the scaler does
    matrix = fit_map(name, Z, y, w.astype(float))
    assert matrix.shape[1] <= max(n_directions, 1)
    repeated, labels = np.repeat(Z, w, axis=0), np.repeat(y, w)
    mapped = (
        naive_probability.LINEAR_MAPS[name](repeated, labels, each) for each in (repeated, new)
    )
    all_of_them, expected = mapped
    if X.shape[1] > n_directions:
        # No more directions vary than the samples span.
        expected = naive_probability.principal(all_of_them, expected, matrix.shape[1])
    # A rotation changes no distance, which is all that the forest sees.
    found = new @ matrix
    assert_allclose(distances(found, found), distances(expected, expected), rtol=1e-6, atol=1e-6)


def test_without_any_effect_all_features_weigh_the_same():
    X = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 2.0], [1.0, 0.0]])  # exclusive or
    y, Z = np.array([0, 0, 1, 1]), standardised(X, np.ones(4))
    assert_allclose(fit_map("weights", Z, y, np.ones(4)), np.eye(2))
    assert_allclose(effect_sizes(X[:, :1], X[:, 0].astype(int), np.ones(4)), 1.0)


@pytest.mark.parametrize("name", MAPS)
def test_where_nothing_varies_maps_stay_finite(name):
    y = np.arange(12) % 2
    for X in (
        np.zeros((12, 3)),
        np.zeros((12, 40)),
        np.eye(2)[y],
        np.repeat(y[:, None], 40, axis=1),
    ):
        assert np.isfinite(fit_map(name, X.astype(float), y, np.ones(12))).all()
