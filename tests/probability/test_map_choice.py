"""POPFClassifier with a linear map of the features before the forest."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import naive_maps
import naive_soft
from popf import OPFClassifier, POPFClassifier
from popf.forest.growing import grow_forest
from popf.forest.metrics import choose_metric
from popf.forest.validation import Resources
from popf.probability import map_choice
from popf.probability.linear_maps import DiscriminantStretch
from probability_problems import (
    DUPLICATE_LABELS,
    DUPLICATES,
    NEW,
    WIDE,
    X3,
    Y3,
    X,
    Y,
    distances,
    mapped,
    soft,
)
from refusals import refused

WINE, CULTIVAR = load_wine(return_X_y=True)
MAPS = ["weights", "whitening", "discriminant"]
CORRELATED = WINE[:, [0, 5, 6, 9]] * [1.0, 10.0, 0.1, 100.0]  # units that have nothing in common


@pytest.mark.parametrize("linear_map", MAPS)
def test_a_map_is_fitted_on_all_samples_and_its_probabilities_on_held_out_ones(linear_map):
    model = mapped(linear_map).fit(CORRELATED[::2], CULTIVAR[::2])
    new = naive_maps.MAPS[linear_map](CORRELATED[::2], CULTIVAR[::2], CORRELATED[1::2])
    assert_allclose(model.linear_map_.transform(CORRELATED[1::2]), new, rtol=1e-6, atol=1e-6)
    training = model.linear_map_.transform(CORRELATED[::2])
    forest = naive_soft.grow(distances(training, training), CULTIVAR[::2])
    m = naive_soft.scores(forest, distances(new, training), model.bandwidth_)
    expected = softmax(-model.slope_ * m + model.biases_, axis=1)
    assert_allclose(model.predict_proba(CORRELATED[1::2]), expected, rtol=0, atol=2e-6)
    assert model.linear_map_losses_ == {linear_map: model.left_out_losses_.min()}
    assert_array_equal(
        model.opf_.predict(new), OPFClassifier().fit(training, CULTIVAR[::2]).predict(new)
    )


@pytest.mark.parametrize("linear_map", [None, *MAPS])
@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_scores_are_the_naive_ones(linear_map, weighted):
    samples, y = CORRELATED[::3], CULTIVAR[::3]
    w = np.random.default_rng(0).integers(1, 4, len(y)) if weighted else np.ones(len(y), dtype=int)
    grow = partial(grow_forest, metric=choose_metric("euclidean"), resources=Resources(1, 2**20))
    problem = map_choice.Problem(samples, y, w.astype(float), grow, 1, 2**20)
    transformer = None if linear_map is None else map_choice.MAPS[linear_map]()
    found, taus = map_choice.held_out(transformer, problem, None, 0)
    folds = map_choice.deal(problem, 0)
    assert set(folds) == set(range(5))
    row = 0
    for fold in range(5):
        rest, out = folds != fold, folds == fold
        training, new = samples[rest], samples[out]
        if linear_map is not None:
            training, new = (
                naive_maps.MAPS[linear_map](samples[rest], y[rest], part, w[rest])
                for part in (training, new)
            )
        forest = naive_soft.grow(distances(training, training), y[rest], w[rest])
        for j in (0, 7, 14):
            expected = naive_soft.scores(forest, distances(new, training), taus[j])
            assert_allclose(
                found.scores[row : row + len(new), :, j], expected, rtol=1e-6, atol=1e-6
            )
        assert_array_equal(found.codes[row : row + len(new)], y[out])
        assert_array_equal(found.weights[row : row + len(new)], w[out])
        row += len(new)
    assert row == len(y)


def test_auto_takes_the_map_of_the_least_held_out_loss():
    model = mapped().fit(CORRELATED, CULTIVAR)
    assert list(model.linear_map_losses_) == ["none", *MAPS]
    best = min(model.linear_map_losses_, key=model.linear_map_losses_.get)
    assert best != "none"  # with such units no map is no choice
    assert type(model.linear_map_) is map_choice.MAPS[best]
    same = mapped(best).fit(CORRELATED, CULTIVAR)
    assert_array_equal(model.predict_proba(CORRELATED), same.predict_proba(CORRELATED))
    assert_allclose(same.linear_map_losses_[best], model.linear_map_losses_[best], rtol=1e-12)


def test_auto_leaves_round_classes_alone():
    model = mapped().fit(X, Y)
    losses = model.linear_map_losses_
    assert min(losses, key=losses.get) == "none"
    assert model.linear_map_ is None
    assert_array_equal(model.predict_proba(NEW), soft().fit(X, Y).predict_proba(NEW))


def test_a_map_pays_where_most_features_tell_nothing():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(500, 30))
    y = (samples[:, 0] + samples[:, 1] + 0.5 * rng.normal(size=500) > 0).astype(int)
    train, new = slice(0, 150), slice(150, 500)
    plain, auto = (
        log_loss(y[new], model.fit(samples[train], y[train]).predict_proba(samples[new]))
        for model in (soft(), mapped())
    )
    assert auto < plain - 0.1


def test_many_samples_are_judged_by_a_part_of_them(monkeypatch):
    seen = []
    real = map_choice.held_out

    def watched(transformer, problem, *more):
        seen.append((type(transformer).__name__, len(problem.codes)))
        return real(transformer, problem, *more)

    monkeypatch.setattr(map_choice, "held_out", watched)
    monkeypatch.setattr(map_choice, "N_TO_CHOOSE", 90)
    model = mapped(n_left_out=60).fit(CORRELATED, CULTIVAR)
    assert [n for _, n in seen[:4]] == [90] * 4
    assert seen[4:] == [(type(model.linear_map_).__name__, len(CULTIVAR))]
    P = model.predict_proba(CORRELATED)
    assert_array_equal(mapped(n_left_out=60).fit(CORRELATED, CULTIVAR).predict_proba(CORRELATED), P)
    assert log_loss(CULTIVAR, P) < 0.3


@pytest.mark.parametrize("linear_map", ["auto", *MAPS])
def test_what_must_not_matter_to_a_map(linear_map):
    samples, y = CORRELATED, CULTIVAR
    P = mapped(linear_map).fit(samples, y).predict_proba(samples)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = mapped(linear_map).fit(samples[order], y[order])
    assert_allclose(shuffled.predict_proba(samples), P, rtol=0, atol=3e-6)
    named = mapped(linear_map).fit(samples, np.array(["ant", "bee", "cat"])[y])
    assert_array_equal(named.predict_proba(samples), P)
    for factor in (1e-150, 1e150):
        scaled = mapped(linear_map).fit(samples * factor, y)
        assert_allclose(scaled.predict_proba(samples * factor), P, rtol=0, atol=3e-6)
    zero = np.concatenate([np.ones(len(y)), np.zeros(3)])
    more, labels = np.concatenate([samples, samples[:3] + 1.0]), np.concatenate([y, [2, 2, 2]])
    absent = mapped(linear_map).fit(more, labels, sample_weight=zero)
    assert_array_equal(absent.predict_proba(samples), P)
    assert len(absent.opf_.sample_indices_) == len(y)


@pytest.mark.parametrize("linear_map", ["auto", *MAPS])
def test_tiny_classes_and_duplicates_under_a_map(linear_map):
    alone = np.where(np.arange(len(Y)) == 7, 2, Y)
    pair = np.where(np.isin(np.arange(len(Y)), [7, 30]), 2, Y)
    for samples, y in (
        (X, alone),
        (X, pair),
        (X[:2], [0, 1]),
        (X[:3], [0, 1, 2]),
        (X[:5], [0, 0, 1, 1, 1]),
        (np.ones((8, 2)), [0, 1] * 4),
        (DUPLICATES, DUPLICATE_LABELS),
    ):
        P = mapped(linear_map).fit(samples, y).predict_proba(samples)
        assert ((P > 0.0) & (P < 1.0)).all()
        assert_allclose(P.sum(axis=1), 1.0)
    assert_allclose(P[[0, -1], 1], [0.25, 0.875], atol=0.08)


@pytest.mark.parametrize("linear_map", ["auto", *MAPS])
def test_weights_under_a_map(linear_map):
    w = np.random.default_rng(0).uniform(0.5, 3.0, len(Y3))
    P = mapped(linear_map).fit(X3, Y3, sample_weight=w).predict_proba(X3)
    assert log_loss(Y3, P) < 0.9 * np.log(3)
    plain = mapped(linear_map).fit(X3, Y3)
    assert (plain.predict_proba(X3) != P).any()
    ones = mapped(linear_map).fit(X3, Y3, sample_weight=np.ones(len(Y3)))
    assert_array_equal(ones.predict_proba(X3), plain.predict_proba(X3))


def test_a_transformer_of_the_users_own():
    model = mapped(PCA(2, random_state=0)).fit(CORRELATED, CULTIVAR)
    assert model.linear_map_.n_components_ == 2
    assert model.opf_.n_features_in_ == 2
    assert model.n_features_in_ == 4
    assert list(model.linear_map_losses_) == ["PCA"]
    assert not hasattr(model.linear_map, "components_")  # the parameter itself is left alone
    pipeline = make_pipeline(StandardScaler(), DiscriminantStretch())
    named = mapped("discriminant").fit(CORRELATED, CULTIVAR)
    same = mapped(pipeline).fit(CORRELATED, CULTIVAR)
    P = named.predict_proba(CORRELATED)
    assert_allclose(same.predict_proba(CORRELATED), P, rtol=0, atol=3e-6)
    assert clone(mapped(DiscriminantStretch(strength=3.0))).linear_map.strength == 3.0
    search = GridSearchCV(
        mapped(DiscriminantStretch()), {"linear_map__strength": [0.0, 4.0]}, scoring="neg_log_loss"
    )
    assert np.isfinite(search.fit(CORRELATED, CULTIVAR).best_score_)
    w = np.linspace(1.0, 2.0, len(CULTIVAR))
    refused(
        lambda: mapped(PCA()).fit(CORRELATED, CULTIVAR, sample_weight=w), "PCA()", "sample_weight"
    )


@pytest.mark.parametrize("linear_map", ["auto", "weights"])
def test_pickles_names_and_paths_with_a_map(linear_map):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(CORRELATED, columns=["alcohol", "phenols", "flavanoids", "colour"])
    model = mapped(linear_map).fit(frame, CULTIVAR)
    assert_array_equal(model.feature_names_in_, frame.columns)
    P = model.predict_proba(frame)
    for other in [pickle.loads(pickle.dumps(model)), clone(model).fit(frame, CULTIVAR)]:
        assert_array_equal(other.predict_proba(frame), P)
    with config_context(transform_output="pandas"):
        again = mapped(linear_map).fit(frame, CULTIVAR)
        assert_array_equal(again.predict_proba(frame), P)
    (path,) = model.opf_.explain(model.linear_map_.transform(CORRELATED[:1]))
    assert path.label == CULTIVAR[0]
    model.set_params(linear_map=None).fit(frame, CULTIVAR)
    assert model.linear_map_ is None
    assert not hasattr(model, "linear_map_losses_")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"linear_map": "rotation"}, ["linear_map", "'rotation'", "'whitening'"]),
        ({"linear_map": 3}, ["linear_map", "3"]),
        ({"linear_map": PCA}, ["linear_map", "PCA"]),
        ({"linear_map": "auto", "metric": "precomputed"}, ["linear_map", "precomputed"]),
        ({"linear_map": "auto", "method": "paper"}, ["linear_map", "paper", "pipeline"]),
    ],
)
def test_maps_that_cannot_be_had(parameters, said):
    kind = (ValueError, TypeError)
    refused(lambda: POPFClassifier(**parameters).fit(WIDE, Y), *said, kind=kind)


def test_a_map_for_one_class():
    refused(lambda: mapped().fit(X, ["ham"] * len(X)), "one class", "'ham'")


def test_a_map_that_gives_nonsense_is_named():
    nonsense = FunctionTransformer(lambda samples: samples * np.nan)
    refused(lambda: mapped(nonsense).fit(X, Y), "linear_map", "NaN")
