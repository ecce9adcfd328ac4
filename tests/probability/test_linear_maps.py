"""The linear maps: against their definitions, as transformers, and their leakage of labels."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive_probability
from popf import OPFClassifier, POPFClassifier
from popf.probability.features import (
    DiscriminantStretch,
    EffectSizeWeights,
    WithinClassWhitening,
)
from refusals import refused

MAPS = {
    "weights": EffectSizeWeights,
    "whitening": WithinClassWhitening,
    "discriminant": DiscriminantStretch,
}
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
WIDE, WIDE_Y = RNG.normal(size=(20, 90)), np.arange(20) % 2
WIDE[:, :3] += 2.0 * WIDE_Y[:, None]
WITH_CONSTANT = np.insert(X2, 3, 7.3, axis=1)
PROBLEMS["d > n"] = (WIDE, WIDE_Y)
PROBLEMS["constant feature"] = (WITH_CONSTANT, Y2)
PROBLEMS["one alone"] = (X2[:31], np.where(np.arange(31) == 5, 2, Y2[:31]))

every_map = pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)


# The definition ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *((name, {}) for name in MAPS),
        ("whitening", {"shrinkage": 0.3}),
        ("whitening", {"shrinkage": 1.0}),
        ("discriminant", {"shrinkage": 0.3, "strength": 5.0}),
        ("discriminant", {"strength": 0.0}),
    ],
)
@pytest.mark.parametrize(("X", "y"), PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_maps_are_the_naive_versions(name, parameters, X, y, weighted):
    w = np.random.default_rng(1).integers(0, 4, len(y)) if weighted else None
    new = np.random.default_rng(2).normal(size=(15, X.shape[1])) * 3.0
    found = MAPS[name](**parameters).fit(X, y, sample_weight=w).transform(new)
    expected = naive_probability.LINEAR_MAPS[name](X, y, new, w, **parameters)
    assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_without_any_effect_all_features_weigh_the_same():
    X = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 2.0], [1.0, 0.0]])  # exclusive or
    Z = EffectSizeWeights().fit_transform(X, [0, 0, 1, 1])
    assert_allclose(np.abs(Z), 1.0)


# Invariances -------------------------------------------------------------------------------------


@every_map
@pytest.mark.parametrize("factor", [1e-150, 1e-3, 1e150, 1e300])
def test_units_of_the_features(make, factor):
    units = np.where(np.arange(6) % 2, factor, 1.0)
    one = make().fit_transform(X2, Y2)
    assert_allclose(make().fit(X2 * units, Y2).transform(X2 * units), one, rtol=1e-7, atol=1e-9)
    assert_allclose(make().fit_transform(X2 * factor, Y2), one, rtol=1e-7, atol=1e-9)


# Nasty data --------------------------------------------------------------------------------------


@every_map
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((6, 3)), [0, 0, 0, 1, 1, 1]),
        ([[0.0, 1.0], [1.0, 1.0]], [0, 1]),
        ([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1]),
        (np.tile([[1.0, -1.0], [1.0, 1.0]], (5, 1)), [0, 1] * 5),
        ([[1e300, -1e300], [-1e300, 1e300], [1e300, 1e300]], [0, 1, 1]),
        ([[5e-324, 1.0], [0.0, 2.0], [5e-324, 3.0]], [0, 1, 1]),
        ([[1.0 + 1e-16, 2.0], [1.0, 3.0], [1.0, 4.0]], ["a", "b", "c"]),
        ([[1.0, 2.0], [1.5, 3.0], [1.0, 4.0]], ["a", "a", "a"]),
    ],
    ids=["constant", "two", "no spread", "twins", "huge", "tiny", "rounding", "one class"],
)
def test_nasty_data_stay_finite(make, X, y):
    model = make().fit(X, y)
    for samples in (X, np.asarray(X) * 0.5 + 1.0, np.full((2, np.shape(X)[1]), 1e308)):
        assert np.isfinite(model.transform(samples)).all()


@every_map
def test_constant_features_and_rounding_count_for_nothing(make):
    rounding = 7.3 * (1.0 + np.spacing(1.0) * (np.arange(60) % 2))
    X = np.column_stack([X2, np.full(60, 7.3), rounding])
    model = make().fit(X, Y2)
    moved = X.copy()
    moved[:, 6:] += 1000.0
    assert_array_equal(model.transform(moved), model.transform(X))


def test_many_features_need_no_square_matrix():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 20_000)), np.arange(30) % 3
    for make in MAPS.values():
        model = make().fit(X, y)
        assert model.transform(X).shape == X.shape
        assert len(pickle.dumps(model)) < 20e6  # a square matrix would take 3.2e9


# Transformers ------------------------------------------------------------------------------------


@parametrize_with_checks([EffectSizeWeights(), WithinClassWhitening(), DiscriminantStretch()])
@pytest.mark.filterwarnings("ignore:.*array_api.*:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_names_of_features():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X2, columns=list("abcdef"))
    weighted = EffectSizeWeights().set_output(transform="pandas").fit_transform(frame, Y2)
    assert list(weighted.columns) == list("abcdef")
    white = WithinClassWhitening().set_output(transform="pandas").fit_transform(frame, Y2)
    assert list(white.columns) == [f"withinclasswhitening{k}" for k in range(6)]
    assert DiscriminantStretch().fit(frame, Y2).get_feature_names_out()[0] == "discriminantstretch0"


@every_map
def test_maps_in_pipelines(make):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(make(), OPFClassifier())
    assert cross_val_score(model, X, y).mean() > 0.94  # 0.74 without a map: one feature dominates


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (WithinClassWhitening(shrinkage=1.5), ["shrinkage", "1.5"]),
        (DiscriminantStretch(shrinkage="some"), ["shrinkage", "'some'"]),
        (DiscriminantStretch(strength=-1.0), ["strength", "-1.0"]),
        (DiscriminantStretch(strength="much"), ["strength", "'much'"]),
    ],
)
def test_wrong_parameters(model, said):
    refused(lambda: model.fit(X2, Y2), *said)


@every_map
def test_wrong_data(make):
    refused(lambda: make().fit(X2, Y2, sample_weight=-np.ones(60)), "sample_weight[0] is -1")
    refused(lambda: make().fit(X2, X2[:, 0]), "Unknown label type")


# Leakage of labels -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_map_judged_on_its_own_training_samples_looks_better_than_it_is(seed):
    rng = np.random.default_rng(seed)  # labels are independent of the features
    X, y = rng.normal(size=(60, 100)), np.arange(60) % 2
    new, truth = rng.normal(size=(500, 100)), np.arange(500) % 2
    mapping = DiscriminantStretch().fit(X, y)
    leaky = POPFClassifier("forest", linear_map=None).fit(mapping.transform(X), y)
    # Folds are held out, but the map was fitted to their labels.
    promised = leaky.held_out_losses_["forest"]
    assert promised < np.log(2) - 0.08
    assert log_loss(truth, leaky.predict_proba(mapping.transform(new))) > promised + 0.1
    honest = POPFClassifier("forest", linear_map="discriminant").fit(X, y)
    assert honest.linear_map_losses_["discriminant"] > np.log(2) - 0.04
    assert log_loss(truth, honest.predict_proba(new)) < np.log(2) + 0.005
