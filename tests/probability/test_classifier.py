"""POPFClassifier as an estimator: its answers, scikit-learn's tools and checks, wrong use."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logit, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from popf import POPFClassifier
from popf.solvers import PSO, Newton
from probability_problems import (
    NEW,
    NEW3,
    SWARMS,
    WIDE,
    WIDE_NEW,
    X3,
    Y3,
    X,
    Y,
    distances,
    paper,
    soft,
)
from refusals import refused

# Answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_answers_fit_together(method):
    model = POPFClassifier(method).fit(WIDE, Y)
    P = model.predict_proba(WIDE_NEW)
    assert P.shape == (len(WIDE_NEW), 2)
    assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert_allclose(model.predict_log_proba(WIDE_NEW), np.log(P), rtol=1e-9, atol=1e-12)
    assert_allclose(model.decision_function(WIDE_NEW), logit(P[:, 1]), rtol=1e-6, atol=1e-9)
    assert model.n_features_in_ == 2
    assert isinstance(model.A_, float)
    assert isinstance(model.B_, float)


@pytest.mark.parametrize("calibration", ["softmax", "multinomial"])
def test_answers_fit_together_for_three_classes(calibration):
    model = soft(calibration=calibration).fit(X3, Y3)
    P = model.predict_proba(NEW3)
    assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert_allclose(softmax(model.decision_function(NEW3), axis=1), P, rtol=0, atol=1e-12)
    assert_allclose(model.predict_log_proba(NEW3), np.log(P), rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict(NEW3), model.classes_[P.argmax(axis=1)])
    assert log_loss(Y3, model.predict_proba(X3)) < 0.9 * np.log(3)
    if calibration == "softmax":
        assert model.slope_ > 0.0
        assert model.biases_.shape == (3,)


@pytest.mark.parametrize("method", ["soft", "paper"])
@pytest.mark.parametrize("threshold", [0.01, 0.2, 0.5, 0.7, 0.99])
def test_predict_thresholds_the_probability(method, threshold):
    y = np.array(["no", "yes"])[Y]
    model = POPFClassifier(method, threshold=threshold).fit(WIDE, y)
    P = model.predict_proba(WIDE_NEW)[:, 1]
    above = np.greater_equal(P, threshold).astype(int)
    assert_array_equal(model.predict(WIDE_NEW), model.classes_[above])


def test_a_second_fit_forgets_the_first():
    model = soft().fit(X3, Y3).fit(X, Y)
    assert_array_equal(model.predict_proba(NEW), soft().fit(X, Y).predict_proba(NEW))
    assert not hasattr(model, "slope_")
    assert not hasattr(model, "biases_")
    model.fit(X3, Y3)
    assert not hasattr(model, "A_")
    model = soft().fit(WIDE, Y).set_params(method="paper").fit(WIDE, Y)
    assert not hasattr(model, "bandwidth_")
    assert not hasattr(model, "left_out_losses_")


def test_not_fitted():
    with pytest.raises(NotFittedError):
        soft().predict_proba(NEW)


# scikit-learn's tools ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_precomputed_distances(method):
    direct = POPFClassifier(method).fit(WIDE, Y)
    given_ = POPFClassifier(method, metric="precomputed").fit(distances(WIDE, WIDE), Y)
    P = given_.predict_proba(distances(WIDE_NEW, WIDE))
    assert_allclose(P, direct.predict_proba(WIDE_NEW), rtol=0, atol=1e-9)
    model = POPFClassifier(method, metric="precomputed")
    folds = cross_val_score(model, distances(WIDE, WIDE), Y, cv=3, scoring="neg_log_loss")
    direct = cross_val_score(POPFClassifier(method), WIDE, Y, cv=3, scoring="neg_log_loss")
    assert_allclose(folds, direct, rtol=1e-6)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_pickle_and_clone(method):
    model = POPFClassifier(method, threshold=0.4, solver=Newton()).fit(WIDE, Y)
    for other in [pickle.loads(pickle.dumps(model)), clone(model).fit(WIDE, Y)]:
        assert_array_equal(other.predict_proba(WIDE_NEW), model.predict_proba(WIDE_NEW))
        assert other.get_params() == model.get_params()
    assert not hasattr(clone(model), "opf_")


def test_searches():
    search = GridSearchCV(
        POPFClassifier(), {"method": ["soft", "paper"]}, scoring="neg_log_loss", cv=3
    ).fit(WIDE, Y)
    assert search.best_params_ == {"method": "soft"}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    y = (Y == 1) & (np.arange(len(Y)) % 3 == 0)
    tuned = TunedThresholdClassifierCV(soft(), scoring="balanced_accuracy", cv=3).fit(X, y)
    assert 0.0 < tuned.best_threshold_ < 0.5


def test_soft_learns_iris():
    samples, y = load_iris(return_X_y=True)
    assert cross_val_score(soft(), samples, y, scoring="neg_log_loss").mean() > -0.25
    assert cross_val_score(soft(), samples, y).mean() > 0.93


# What users get wrong ----------------------------------------------------------------------------


WRONG = {
    "threshold 0": ({"threshold": 0.0}, ["threshold", "0.0"]),
    "threshold 1": ({"threshold": 1.0}, ["threshold", "1.0"]),
    "threshold 1.5": ({"threshold": 1.5}, ["threshold", "1.5"]),
    "threshold nan": ({"threshold": np.nan}, ["threshold", "nan"]),
    "threshold word": ({"threshold": "half"}, ["threshold", "'half'"]),
    "box empty": ({"method": "paper", "box": ((1, 1), (-3, 3))}, ["box", "1.0", "empty"]),
    "box inverted": ({"method": "paper", "box": ((-3, 3), (4, -4))}, ["box", "4.0", "-4.0"]),
    "box shape": ({"method": "paper", "box": (-3, 3)}, ["box", "(2,)"]),
    "box soft": ({"box": ((1, 1), (-3, 3))}, ["box", "1.0", "empty"]),
    "solver": ({"solver": "sgd"}, ["solver", "'sgd'", "'newton'"]),
    "solver number": ({"solver": 3}, ["solver", "3"]),
    "solver class": ({"solver": PSO}, ["solver", "PSO"]),
    "method": ({"method": "hard"}, ["method", "'hard'", "'soft'", "'paper'"]),
    "calibration": ({"calibration": "isotonic"}, ["calibration", "'isotonic'", "'softmax'"]),
    "n_left_out": ({"n_left_out": 0}, ["n_left_out", "0"]),
    "n_left_out word": ({"n_left_out": "all"}, ["n_left_out", "'all'"]),
    "metric": ({"metric": "crow"}, ["metric", "'crow'"]),
    "algorithm": ({"algorithm": "magic"}, ["algorithm", "'magic'"]),
}


@pytest.mark.parametrize(("parameters", "said"), WRONG.values(), ids=WRONG)
def test_wrong_parameters(parameters, said):
    kind = (ValueError, TypeError)
    refused(lambda: POPFClassifier(**parameters).fit(WIDE, Y), *said, kind=kind)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_wrong_data(method):
    model = POPFClassifier(method)
    refused(lambda: model.fit(X, ["ham"] * len(X)), "one class", "'ham'")
    w = np.ones(len(Y))
    w[3] = -2.0
    refused(lambda: model.fit(X, Y, sample_weight=w), "sample_weight[3]", "-2.0")
    refused(lambda: model.fit(X, Y, sample_weight=np.zeros(len(Y))), "zero")
    refused(lambda: model.fit(X, Y, sample_weight=(Y == 0).astype(float)), "one class", "0")
    fitted = model.fit(WIDE, Y)
    refused(lambda: fitted.predict_proba(WIDE[:, :1]), "1 features", "2 features")


def test_more_than_two_classes():
    refused(lambda: paper().fit(X3, Y3), "3", "soft")
    for solver in ["nelder-mead", *SWARMS]:
        refused(lambda solver=solver: soft(solver=solver).fit(X3, Y3), "3", repr(solver), "newton")


# scikit-learn's own checks -----------------------------------------------------------------------


def expected_failures(estimator):
    """Checks expected to fail, each with its reason."""
    if estimator.metric == "precomputed":
        return {"check_decision_proba_consistency": "gives features, not distances"}
    if estimator.n_left_out == 20:
        return {
            "check_sample_weight_equivalence_on_dense_data": "other rows are drawn to be left out"
        }
    if estimator.linear_map is not None:
        return {
            "check_sample_weight_equivalence_on_dense_data": "a sample is in one fold, its copies in several"
        }
    return {}


@parametrize_with_checks(
    [
        POPFClassifier(),
        POPFClassifier(n_left_out=20, random_state=0),
        POPFClassifier(calibration="multinomial"),
        POPFClassifier(metric="manhattan", n_jobs=2),
        POPFClassifier(metric="precomputed"),
        POPFClassifier(linear_map="auto", random_state=0),
        POPFClassifier(linear_map="discriminant"),
        POPFClassifier("paper"),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:.*array_api.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*box.*:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_frames_are_explained_without_a_warning_about_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = POPFClassifier("forest").fit(X[y > 0], y[y > 0])
    assert model.explain_proba(X[-2:]).feature_names == list(X)
    assert len(model.explain(X[-2:])) == 2
