"""Saved models answer as before, to the bit."""

import pickle
import warnings
import zipfile
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.preprocessing import StandardScaler

import popf
from popf import OPFClassifier, POPFClassifier
from popf.forest.metrics import ALIASES, METRIC_NAMES
from popf.solvers import PSO, NelderMead
from saved_models import (
    CANCER_X,
    CANCER_Y,
    IRIS_X,
    IRIS_Y,
    again,
    assert_same_model,
    assert_same_value,
)


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute", "prim"])
def test_a_forest_is_the_same_after_loading(algorithm, model_path):
    model = OPFClassifier(algorithm=algorithm).fit(CANCER_X[::2], CANCER_Y[::2])
    assert_same_model(model, again(model, model_path), CANCER_X[1::2])


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute", "prim"])
def test_ties_duplicates_and_mixed_places_survive(algorithm, model_path):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 5, (300, 2)).astype(float)
    y = rng.integers(0, 3, 300)
    model = OPFClassifier(algorithm=algorithm).fit(X, y)
    assert_same_model(model, again(model, model_path), rng.integers(-1, 6, (200, 2)).astype(float))


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-5, 1e200, 1e300])
@pytest.mark.parametrize("make", [OPFClassifier, POPFClassifier])
def test_any_scale_survives(scale, make, model_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * scale
    X[0] = 0.0
    X[1, 0] = -0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, np.arange(60) % 2)
    assert_same_model(model, again(model, model_path), np.concatenate([X * 1.1, X[:5]]))


def test_one_place_for_all_samples(model_path):
    model = OPFClassifier(algorithm="kd_tree").fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert_same_model(model, again(model, model_path), np.ones((2, 2)))


@pytest.mark.parametrize("metric", sorted({*METRIC_NAMES} - {*ALIASES, "precomputed"}))
@pytest.mark.parametrize("make", [OPFClassifier, POPFClassifier])
def test_every_metric_survives(metric, make, model_path):
    X, y, params = np.abs(IRIS_X[::3]) + 0.5, IRIS_Y[::3], None
    if metric == "haversine":
        X = X[:, :2]
    if metric == "minkowski":
        params = {"p": 3, "w": [1.0, 2.0, 3.0, 4.0]}
    if metric == "gaussian":
        params = {"gamma": 0.3}
    booleans = "dice jaccard kulsinski matching rogerstanimoto russellrao sokalmichener sokalsneath"
    if metric in booleans.split():
        X = (np.median(X, axis=0) < X).astype(float)
        X[:, 0] = 1.0  # no sample is false throughout, where some have 0/0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(metric=metric, metric_params=params).fit(X, y)
        assert_same_model(model, again(model, model_path), X * 1.01)


@pytest.mark.parametrize("make", [OPFClassifier, POPFClassifier])
@pytest.mark.parametrize("weighted", [False, True])
def test_distances_computed_beforehand(make, weighted, model_path):
    D = pairwise_distances(IRIS_X)
    weights = (np.arange(150) % 4).astype(float) if weighted else None
    model = make(metric="precomputed").fit(D, IRIS_Y, sample_weight=weights)
    loaded = again(model, model_path)
    assert_same_model(model, loaded, D * 1.01)
    assert model_path.stat().st_size < D.nbytes / 4  # the matrix itself is not needed


VARIANTS = {
    "soft": POPFClassifier(),
    "soft, other solver": POPFClassifier(solver=NelderMead(), threshold=0.3),
    "soft, swarm": POPFClassifier(solver=replace(PSO(), inertia=0.6), random_state=0),
    "soft, few left out": POPFClassifier(n_left_out=50, random_state=1, n_jobs=2),
    "paper": POPFClassifier("paper"),
    "paper, swarm": POPFClassifier("paper", solver="bat", random_state=0),
    "paper, box": POPFClassifier("paper", solver="nelder-mead", box=((-3, 3), [-2.0, 2])),
    "weights": POPFClassifier(linear_map="weights"),
    "whitening": POPFClassifier(linear_map="whitening"),
    "discriminant": POPFClassifier(linear_map="discriminant"),
    "auto": POPFClassifier(linear_map="auto", random_state=0),
    "scaler as map": POPFClassifier(linear_map=StandardScaler()),
    "memory": POPFClassifier(working_memory=1.5, algorithm="brute"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_probabilities_of_two_classes_survive(name, model_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(VARIANTS[name]).fit(CANCER_X[::3], CANCER_Y[::3])
    assert_same_model(model, again(model, model_path), CANCER_X[1::3])


@pytest.mark.parametrize("calibration", ["softmax", "multinomial"])
@pytest.mark.parametrize("linear_map", [None, "discriminant"])
def test_probabilities_of_three_classes_survive(calibration, linear_map, model_path):
    model = POPFClassifier(calibration=calibration, linear_map=linear_map)
    model.fit(IRIS_X[::2], IRIS_Y[::2], sample_weight=1.0 + np.arange(75) % 3)
    assert_same_model(model, again(model, model_path), IRIS_X[1::2])


def test_a_prior_without_information_survives(model_path):
    model = POPFClassifier().fit([[0.0], [0.0], [0.0], [0.0]], [0, 1, 0, 1])
    assert_same_model(model, again(model, model_path), np.array([[0.0], [1.0]]))


LABELS = {
    "str": np.array(["no", "yes, indeed"]),
    "wide str": np.array(["no", "yes"], dtype="<U40"),
    "unicode": np.array(["não", "🙂 \ud800 \x00x"]),
    "object": np.array(["no", "yes"], dtype=object),
    "bool": np.array([False, True]),
    "int8": np.array([-128, 127], dtype=np.int8),
    "uint64": np.array([0, 2**64 - 1], dtype=np.uint64),
    "float": np.array([-1.0, 2.0]),
    "float32": np.array([1, 3], dtype=np.float32),
    "big-endian": np.array([1, 3], dtype=">i4"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind_survive(kind, model_path):
    y = LABELS[kind][np.arange(40) % 2]
    model = OPFClassifier().fit(IRIS_X[:40], y)
    loaded = again(model, model_path)
    assert loaded.classes_.dtype == model.classes_.dtype.newbyteorder("=")
    assert loaded.predict(IRIS_X[:9]).tolist() == model.predict(IRIS_X[:9]).tolist()
    assert type(loaded.predict(IRIS_X[:1])[0]) is type(model.predict(IRIS_X[:1])[0])


def test_labels_that_are_no_plain_values_are_refused(model_path):
    y = np.array(["2001-01-01", "2002-01-01"], dtype="datetime64[D]")[np.arange(20) % 2]
    model = OPFClassifier().fit(IRIS_X[:20], np.arange(20) % 2)
    model.classes_ = np.unique(y)
    with pytest.raises(TypeError, match=r"classes_ of the model.*datetime64"):
        popf.save(model, model_path)
    assert not model_path.exists()


def test_zero_weights_and_names_survive(model_path):
    frame = pd.DataFrame(IRIS_X, columns=["länge", "b", "c d", "'"])
    weights = (np.arange(150) % 5 > 0).astype(float)
    for make in (OPFClassifier, POPFClassifier):
        model = make().fit(frame, IRIS_Y, sample_weight=weights)
        loaded = again(model, model_path)
        assert_same_model(model, loaded, frame)
        assert loaded.feature_names_in_.tolist() == ["länge", "b", "c d", "'"]


def test_a_loaded_model_is_an_estimator_like_any_other(model_path):
    model = POPFClassifier(threshold=0.2, metric="manhattan").fit(CANCER_X[::4], CANCER_Y[::4])
    loaded = again(model, model_path)
    assert loaded.get_params() == model.get_params()
    assert clone(loaded).fit(CANCER_X[::4], CANCER_Y[::4]).A_ == model.A_
    second = model_path.with_name("second.popf")
    popf.save(loaded, second)
    assert_same_model(model, popf.load(second), CANCER_X[1::4])
    with zipfile.ZipFile(model_path) as one, zipfile.ZipFile(second) as other:
        assert one.namelist() == other.namelist()
        for name in one.namelist():
            if name.endswith(".npy"):
                assert one.read(name) == other.read(name)


def test_parameters_set_after_the_fit_do_not_change_what_was_fitted(model_path):
    model = OPFClassifier().fit(CANCER_X[::4], CANCER_Y[::4])
    model.set_params(metric="manhattan", n_jobs=2)
    loaded = again(model, model_path)
    assert loaded.get_params() == model.get_params()
    assert_same_value(model.conquer(CANCER_X), loaded.conquer(CANCER_X))


# The other ways to keep a model


KEPT = [
    OPFClassifier(algorithm="brute"),
    OPFClassifier("manhattan"),
    POPFClassifier(),
    POPFClassifier("paper", solver="nelder-mead", box=None),
    POPFClassifier(calibration="multinomial", linear_map="whitening"),
    POPFClassifier(metric="mahalanobis"),
]


def fitted(estimator):
    """Fit, and give new samples too."""
    if estimator.get_params().get("calibration") == "multinomial":
        return clone(estimator).fit(IRIS_X, IRIS_Y), IRIS_X + 0.1
    return clone(estimator).fit(CANCER_X[::4], CANCER_Y[::4]), CANCER_X[1::4]


@pytest.mark.parametrize("estimator", KEPT, ids=repr)
def test_pickle_and_joblib_keep_models(estimator, model_path):
    model, X = fitted(estimator)
    assert_same_model(model, pickle.loads(pickle.dumps(model)), X)
    joblib.dump(model, model_path)
    assert_same_model(model, joblib.load(model_path), X)


@pytest.mark.parametrize("estimator", KEPT, ids=repr)
def test_skops_keeps_models_once_popf_is_trusted(estimator, model_path):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model, X = fitted(estimator)
    skops.dump(model, model_path)
    unknown = skops.get_untrusted_types(file=model_path)
    assert unknown
    loaded = skops.load(model_path, trusted=unknown)
    assert_same_value(model.decision_function(X), loaded.decision_function(X))
    assert_same_value(model.predict(X), loaded.predict(X))
