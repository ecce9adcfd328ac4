"""Saved models answer as before, to the bit."""

import copy
import pickle
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import popf
from popf import (
    KNNOPFClassifier,
    OPFClassifier,
    OPFClustering,
    OPFOutlierDetector,
    PlattOPFClassifier,
    POPFClassifier,
    SemiSupervisedOPFClassifier,
)
from popf.forest.metrics import ALIASES, METRIC_NAMES
from popf.io import container, trusted_types
from popf.paper import PSO, NelderMead
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
def test_a_forest_with_ties_and_duplicates_survives(algorithm, model_path):
    model = OPFClassifier(algorithm=algorithm).fit(CANCER_X[::2], CANCER_Y[::2])
    assert_same_model(model, again(model, model_path), CANCER_X[1::2])
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 5, (300, 2)).astype(float), rng.integers(0, 3, 300)
    model = OPFClassifier(algorithm=algorithm).fit(X, y)
    assert_same_model(model, again(model, model_path), rng.integers(-1, 6, (200, 2)).astype(float))
    model = OPFClassifier(algorithm=algorithm).fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert_same_model(model, again(model, model_path), np.ones((2, 2)))


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-5, 1e200, 1e300])
@pytest.mark.parametrize("model", [OPFClassifier(), POPFClassifier("forest")], ids=repr)
def test_any_scale_survives(scale, model, model_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * scale
    X[0] = 0.0
    X[1, 0] = -0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.arange(60) % 2)
    assert_same_model(model, again(model, model_path), np.concatenate([X * 1.1, X[:5]]))


@pytest.mark.parametrize("metric", sorted({*METRIC_NAMES} - {*ALIASES, "precomputed"}))
def test_every_metric_survives(metric, model_path):
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
        model = OPFClassifier(metric, metric_params=params).fit(X, y)
        assert_same_model(model, again(model, model_path), X * 1.01)


@pytest.mark.parametrize("make", [OPFClassifier, POPFClassifier, PlattOPFClassifier])
@pytest.mark.filterwarnings("ignore:.*of the box")
@pytest.mark.parametrize("weighted", [False, True])
def test_distances_computed_beforehand(make, weighted, model_path):
    D = pairwise_distances(IRIS_X)
    weights = (np.arange(150) % 4).astype(float) if weighted else None
    model = make(metric="precomputed").fit(D, IRIS_Y, sample_weight=weights)
    assert_same_model(model, again(model, model_path), D * 1.01)
    assert model_path.stat().st_size < D.nbytes / 4  # the matrix itself is not needed


@pytest.mark.parametrize(("method", "linear_map"), [("pooled", "auto"), ("forest", "discriminant")])
def test_probabilities_of_three_classes_survive(method, linear_map, model_path):
    model = POPFClassifier(method, linear_map=linear_map)
    model.fit(IRIS_X[::2], IRIS_Y[::2], sample_weight=1.0 + np.arange(75) % 3)
    assert_same_model(model, again(model, model_path), IRIS_X[1::2])


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


def test_zero_weights_and_names_survive(model_path):
    frame = pd.DataFrame(IRIS_X, columns=["länge", "b", "c d", "'"])
    weights = (np.arange(150) % 5 > 0).astype(float)
    for model in (OPFClassifier(), POPFClassifier("forest")):
        model.fit(frame, IRIS_Y, sample_weight=weights)
        loaded = again(model, model_path)
        assert_same_model(model, loaded, frame)
        assert loaded.feature_names_in_.tolist() == ["länge", "b", "c d", "'"]


def test_a_loaded_model_is_an_estimator_like_any_other(model_path):
    model = OPFClassifier("manhattan").fit(CANCER_X[::4], CANCER_Y[::4])
    loaded = again(model, model_path)
    assert (clone(loaded).fit(CANCER_X[::4], CANCER_Y[::4]).costs_ == model.costs_).all()
    second = model_path.with_name("second.popf")
    popf.save(loaded, second)
    assert_same_value(*(container.read(path)[1] for path in (model_path, second)))


def test_parameters_set_after_the_fit_do_not_change_what_was_fitted(model_path):
    model = OPFClassifier().fit(CANCER_X[::4], CANCER_Y[::4])
    model.set_params(metric="manhattan", n_jobs=2)
    loaded = again(model, model_path)
    assert loaded.metric == "manhattan"
    assert loaded.n_jobs is None  # how to run is no part of a model
    assert_same_value(model.conquer(CANCER_X), loaded.conquer(CANCER_X))


# Pipelines

STEPS = [
    StandardScaler(with_mean=False),
    MinMaxScaler(feature_range=(-1, 1), clip=True),
    MaxAbsScaler(),
    RobustScaler(quantile_range=(10.0, 90.0)),
    make_pipeline(StandardScaler(), "passthrough", MinMaxScaler()),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d", "e"]])
def test_steps_before_a_forest_survive(step, names, model_path):
    X = CANCER_X if names is None else pd.DataFrame(CANCER_X, columns=names)
    model = Pipeline([("step", step), ("nothing", None), ("forest", OPFClassifier())])
    model.fit(X[::2], CANCER_Y[::2])
    loaded = again(model, model_path)
    assert_same_value(model[:-1].transform(X), loaded[:-1].transform(X))
    assert_same_model(model[-1], loaded[-1], model[:-1].transform(X))
    assert hasattr(loaded, "feature_names_in_") == (names is not None)
    loaded.fit(X[::2], CANCER_Y[::2])  # a loaded pipeline can learn anew
    assert_same_value(model.predict(X), loaded.predict(X))


def test_how_to_run_is_not_kept(model_path, tmp_path):
    steps = [("scale", StandardScaler()), ("forest", OPFClassifier(n_jobs=2, working_memory=7))]
    model = Pipeline(steps, memory=str(tmp_path / "cache"), verbose=True).fit(IRIS_X, IRIS_Y)
    loaded = again(model, model_path)
    assert loaded.memory is None
    assert loaded[-1].get_params() == OPFClassifier().get_params()


def test_a_pipeline_that_routed_weights_is_saved(model_path):
    weights = np.linspace(0.5, 1.5, len(IRIS_Y))
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        model = POPFClassifier("forest").set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, model).fit(IRIS_X, IRIS_Y, sample_weight=weights)
    loaded = again(pipeline, model_path)
    np.testing.assert_array_equal(loaded.predict_proba(IRIS_X), pipeline.predict_proba(IRIS_X))


# The other ways to keep a model go through the same door.

KEPT = [
    OPFClassifier(algorithm="brute"),
    OPFClassifier("mahalanobis"),
    POPFClassifier(),
    POPFClassifier(metric="mahalanobis"),
    SemiSupervisedOPFClassifier("manhattan"),
    POPFClassifier("forest", threshold=0.3, working_memory=1.5, algorithm="brute", n_jobs=2),
    PlattOPFClassifier(),
    PlattOPFClassifier("nelder-mead", box=None),
    PlattOPFClassifier(NelderMead(), box=((-3, 3), [-2.0, 2])),
    PlattOPFClassifier(replace(PSO(), inertia=0.6), random_state=0),
    POPFClassifier("forest", linear_map="weights"),
    POPFClassifier("forest", linear_map="whitening"),
    POPFClassifier("forest", linear_map="discriminant"),
    POPFClassifier("forest", linear_map="none"),
    POPFClassifier(squash=False),
    OPFClustering(6),
    OPFClustering(max_neighbors=8, metric="mahalanobis"),
    OPFOutlierDetector(),
    KNNOPFClassifier(max_neighbors=4),
]


@pytest.mark.parametrize("estimator", KEPT, ids=repr)
@pytest.mark.filterwarnings("ignore:.*of the box")
def test_files_pickle_joblib_skops_and_copies_keep_models(estimator, model_path):
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    model = pipeline.fit(CANCER_X[::4], CANCER_Y[::4])[-1]
    assert_same_model(model, pickle.loads(pickle.dumps(model)), CANCER_X[1::4])
    assert_same_model(model, copy.deepcopy(model), CANCER_X[1::4])
    assert_same_model(model, again(model, model_path), CANCER_X[1::4])
    joblib.dump(model, model_path)
    assert_same_model(model, joblib.load(model_path), CANCER_X[1::4])
    read_only = joblib.load(model_path, mmap_mode="r")
    assert_same_value(model.predict(CANCER_X), read_only.predict(CANCER_X))
    assert b"popf.engine" not in pickle.dumps(model)
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    kept = skops.dumps(pipeline)
    unknown = skops.get_untrusted_types(data=kept)
    assert set(unknown) <= set(trusted_types)  # public classes only
    assert f"{type(estimator).__module__}.{type(estimator).__name__}" in unknown
    loaded = skops.loads(kept, trusted=trusted_types)
    assert_same_model(model, loaded[-1], CANCER_X[1::4])
