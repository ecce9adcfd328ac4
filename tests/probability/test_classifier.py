"""POPFClassifier as an estimator: predictions, scikit-learn's tools and checks, invalid parameters."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive_probability
from popf import POPFClassifier
from probability_problems import NEW, NEW3, WIDE, WIDE_NEW, X3, Y3, X, Y, distances, fitted
from refusals import refused

# Predictions -------------------------------------------------------------------------------------


METHODS = ["pooled", "forest"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_answers_fit_together(method, n_classes):
    samples, y, new = (WIDE, Y, WIDE_NEW) if n_classes == 2 else (X3, Y3, NEW3)
    model = fitted(method, n_classes)
    P, decisions = model.predict_proba(new), model.decision_function(new)
    assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert_allclose(model.predict_log_proba(new), np.log(P), rtol=1e-9, atol=1e-12)
    again = softmax(decisions, axis=1)[:, 1] if n_classes > 2 else expit(decisions)
    assert_allclose(again, P[:, 1], rtol=0, atol=1e-12)
    assert_array_equal(model.predict(new), P.argmax(axis=1))
    assert log_loss(y, model.predict_proba(samples)) < 0.9 * np.log(n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_the_definition(n_classes):
    samples, new = (WIDE, WIDE_NEW) if n_classes == 2 else (X3, NEW3)
    model = fitted(n_classes=n_classes)
    pool, forest = model.pool_, model.opf_.forest_
    nodes, codes = pool.forest.nodes, pool.forest.node_codes
    assert_array_equal(pool.classes[codes], forest.codes[nodes])
    D = distances(model.prepare(new), model.prepare(samples)[nodes])
    u = naive_probability.scores(
        forest.costs[nodes], codes, pool.forest.node_weights, D, model.bandwidth_
    )
    expected = naive_probability.probabilities(pool, u, pool.scaler.apply(new))
    assert_allclose(model.predict_proba(new), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_predict_thresholds_the_probability(method):
    model = POPFClassifier(method, threshold=0.01).fit(WIDE, np.array(["no", "yes"])[Y])
    P = model.predict_proba(WIDE_NEW)[:, 1]
    for threshold in (0.01, 0.5, 0.99):
        above = np.greater_equal(P, threshold).astype(int)
        predicted = model.set_params(threshold=threshold).predict(WIDE_NEW)
        assert_array_equal(predicted, model.classes_[above])


def test_a_second_fit_forgets_the_first():
    model = POPFClassifier().fit(X3, Y3).fit(WIDE, Y)
    assert_array_equal(model.predict_proba(WIDE_NEW), fitted().predict_proba(WIDE_NEW))
    model.set_params(method="forest").fit(WIDE, Y)
    assert list(model.pool_weights_) == ["forest"]
    with pytest.raises(AttributeError, match="only available after fit"):
        POPFClassifier().bandwidth_  # noqa: B018


def test_fitted_attributes_show_what_each_part_got():
    model = fitted()
    assert list(model.pool_weights_) == ["forest", "linear", "additive", "trees"]
    assert min(model.pool_weights_.values()) >= 0.0
    assert set(model.held_out_losses_) == {*model.pool_weights_, "pool", "prior"}
    assert model.held_out_losses_["pool"] < model.held_out_losses_["prior"]
    frequent = np.bincount(Y).max() / len(Y)
    for scores, prior in ((model.held_out_accuracies_, frequent), (model.held_out_aucs_, 0.5)):
        assert list(scores) == list(model.held_out_losses_)
        assert scores["prior"] == pytest.approx(prior)
        assert prior < scores["pool"] <= 1.0
    assert list(model.linear_map_losses_) == ["none", "weights", "whitening", "discriminant"]
    assert model.linear_map_ in model.linear_map_losses_
    assert 0.0 <= model.prior_weight_ <= 1.0
    assert model.bandwidth_ > 0.0
    assert_array_equal(model.samples_, WIDE)


def test_parts_without_weight_are_not_fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 2))
    model = POPFClassifier().fit(X, (X[:, 0] * X[:, 1] > 0.0))  # without any linear effect
    unused = [name for name, weight in model.pool_weights_.items() if weight == 0.0]
    assert unused
    assert not set(unused) & set(model.pool_.components)
    assert set(unused) < set(model.held_out_losses_)
    split = model.explain_proba(X[:5])
    assert_allclose(split.prior + split.forest + split.features.sum(axis=1), split.total)


# scikit-learn's tools ----------------------------------------------------------------------------


def test_searches_and_calibration():
    search = GridSearchCV(
        POPFClassifier(), {"method": ["forest", "pooled"]}, scoring="neg_log_loss", cv=3
    ).fit(WIDE, Y)
    assert search.best_params_["method"] in ("forest", "pooled")
    y = (Y == 1) & (np.arange(len(Y)) % 3 == 0)
    forest = POPFClassifier("forest", linear_map="none")
    tuned = TunedThresholdClassifierCV(forest, scoring="balanced_accuracy", cv=3).fit(X, y)
    assert 0.0 < tuned.best_threshold_ < 0.5
    calibrated = CalibratedClassifierCV(forest, cv=3).fit(X, Y)
    assert calibrated.predict_proba(NEW).shape == (len(NEW), 2)


def test_precomputed_distances():
    direct = POPFClassifier("forest", squash=False).fit(WIDE, Y)
    given_ = POPFClassifier(metric="precomputed").fit(distances(WIDE, WIDE), Y)
    assert list(given_.pool_weights_) == ["forest"]
    P = given_.predict_proba(distances(WIDE_NEW, WIDE))
    # The folds differ, because there are no values to hash: as much as for other folds of the same samples.
    assert abs(P - direct.predict_proba(WIDE_NEW)).mean() < 0.08
    assert_array_equal(P.argmax(axis=1) == 1, given_.predict(distances(WIDE_NEW, WIDE)) == 1)


def test_a_callable_metric_has_the_forest_alone():
    model = POPFClassifier(metric=lambda a, b: float(np.abs(a - b).max())).fit(X[:40], Y[:40])
    assert list(model.pool_weights_) == ["forest"]
    assert model.linear_map_ == "as given"


def test_the_split_of_the_log_odds_is_exact():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    for rows in (y > 0, y >= 0):
        model = POPFClassifier().fit(frame[rows], y[rows])
        split = model.explain_proba(frame[rows])
        total = split.prior + split.forest + split.features.sum(axis=1)
        assert_allclose(total, split.total, rtol=0, atol=1e-9)
        assert split.feature_names == list(frame)
        P = model.predict_proba(frame[rows])
        found = softmax(split.total, axis=1) if P.shape[1] > 2 else expit(split.total)
        assert_allclose(found, P if P.shape[1] > 2 else P[:, 1], rtol=0, atol=1e-9)
        assert list(split.to_pandas().columns) == ["prior", "forest", *frame, "total"]
        assert len(model.explain(frame[rows])) == len(P)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_interactions_are_found_used_and_explained(n_classes):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, 10)), rng.normal(size=(2000, 10))
    X[:, 9] = new[:, 9] = 1.0
    draw = rng.gumbel(size=(len(X) + len(new), n_classes))
    exponents = np.zeros_like(draw)
    both = np.vstack([X, new])
    exponents[:, 1] = 3.0 * both[:, 0] * both[:, 1] + both[:, 2]
    y = (exponents + draw).argmax(axis=1)
    model = POPFClassifier().fit(X, y[:300])
    assert [0, 1] in model.interactions_.tolist()
    assert 9 not in model.interactions_
    without = LogisticRegression().fit(X, y[:300])
    assert model.score(new, y[300:]) > without.score(new, y[300:]) + 0.05
    split = model.explain_proba(new)
    assert_allclose(split.prior + split.forest + split.features.sum(axis=1), split.total, atol=1e-9)
    halves = abs(split.features[..., 1] if n_classes > 2 else split.features).mean(axis=0)
    assert halves[:3].min() > 2.0 * halves[3:].max()
    assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(new), model.predict_proba(new)
    )
    assert len(POPFClassifier().fit(X[:, :1], y[:300]).interactions_) == 0


@pytest.mark.parametrize("method", ["pooled", "forest"])
def test_what_all_samples_share_is_neither_the_forests_nor_a_features(method):
    rng = np.random.default_rng(0)
    y = (np.arange(300) % 5 == 0).astype(int)
    samples = rng.normal(size=(300, 3)) + y[:, None]
    split = POPFClassifier(method).fit(samples, y).explain_proba(samples)
    assert_allclose(split.features.mean(axis=0), 0.0, atol=1e-9)
    assert abs(split.forest.mean()) < 0.1
    noise = POPFClassifier(method).fit(samples, rng.permutation(y))
    # The class frequencies, with one sample added to each class; the pool, as far as it counts, adds less.
    assert noise.prior_weight_ > 0.75
    tolerance = 0.05 * (1.0 - noise.prior_weight_)
    of_noise = noise.explain_proba(samples)
    assert_allclose(of_noise.prior, np.log(61 / 241), atol=tolerance)
    assert_allclose(of_noise.forest, 0.0, atol=0.1)
    assert_allclose(of_noise.total, np.log(61 / 241), atol=0.1)


def test_paths_take_samples_as_they_are():
    (path,) = fitted().explain(WIDE[:1])
    assert_allclose(path.weights[-1], 0.0, atol=1e-9)
    assert fitted().prepare(WIDE).shape == WIDE.shape


# Invalid parameters ------------------------------------------------------------------------------


WRONG = {
    "threshold 0": ({"threshold": 0.0}, ["threshold", "0.0"]),
    "threshold nan": ({"threshold": np.nan}, ["threshold", "nan"]),
    "threshold word": ({"threshold": "half"}, ["threshold", "'half'"]),
    "method": ({"method": "hard"}, ["method", "'hard'", "pooled", "forest"]),
    "squash": ({"squash": "yes"}, ["squash", "'yes'"]),
    "linear_map": ({"linear_map": "pca"}, ["linear_map", "'pca'", "whitening"]),
    "linear_map none": ({"linear_map": None}, ["linear_map", "None", "none"]),
    "linear_map of a metric": (
        {"metric": "manhattan", "linear_map": "weights"},
        ["linear_map='weights'", "Euclidean"],
    ),
    "linear_map unsquashed": (
        {"squash": False, "linear_map": "discriminant"},
        ["linear_map='discriminant'", "squashed"],
    ),
    "metric": ({"metric": "crow"}, ["metric", "'crow'"]),
    "algorithm": ({"algorithm": "magic"}, ["algorithm", "'magic'"]),
}


@pytest.mark.parametrize(("parameters", "said"), WRONG.values(), ids=WRONG)
def test_wrong_parameters(parameters, said):
    model = POPFClassifier(**parameters)
    refused(lambda: model.fit(WIDE, Y), *said, kind=(ValueError, TypeError))


def test_a_negative_weight_is_refused():
    refused(lambda: POPFClassifier().fit(X, Y, sample_weight=-np.ones(len(Y))), "sample_weight[0]")


# scikit-learn's own checks -----------------------------------------------------------------------


def expected_failures(estimator):
    """Checks expected to fail, each with its reason."""
    if estimator.metric == "precomputed":
        return {"check_decision_proba_consistency": "passes features, not distances"}
    return {}


@parametrize_with_checks(
    [
        POPFClassifier(),
        POPFClassifier("forest", linear_map="discriminant"),
        POPFClassifier("forest", metric="manhattan", n_jobs=2),
        POPFClassifier(metric="precomputed"),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:.*array_api.*:UserWarning")
@pytest.mark.filterwarnings("ignore:The forest labels.*:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
