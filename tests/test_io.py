"""Saved models answer as before, to the bit; files that are not what they should be are refused."""

import errno
import io
import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

import popf
from popf import OPFClassifier, POPFClassifier
from popf.io import ModelFileError, align, atomic, container, describe
from popf.metric_choice import ALIASES, METRIC_NAMES
from popf.solvers import PSO, NelderMead

CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = CANCER_X[:, :5]
IRIS_X, IRIS_Y = load_iris(return_X_y=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.popf"


def again(model, path):
    popf.save(model, path)
    return popf.load(path)


def attributes(model):
    """Public fitted attributes, as a user sees them."""
    names = [name for name in dir(type(model)) if name.endswith("_") and name[0] != "_"]
    names += [name for name in vars(model) if name.endswith("_") and name[0] != "_"]
    return {name: getattr(model, name) for name in sorted(set(names))}


def assert_same_value(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.flags.c_contiguous == other.flags.c_contiguous
        if one.dtype.kind in "OU":
            assert one.tolist() == other.tolist()
        else:
            assert one.tobytes() == other.tobytes()
    elif hasattr(one, "_asdict"):
        assert_same_value(one._asdict(), other._asdict())
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same_value(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same_value(a, b)
    elif hasattr(one, "get_params"):
        assert repr(one) == repr(other)
        assert_same_value(attributes(one), attributes(other))
    elif type(one).__module__.startswith("popf"):
        assert_same_value(vars(one), vars(other))
    else:
        assert one == other


def assert_same_model(one, other, X):
    """Everything a user can ask of a model gives the same, to the bit."""
    assert type(one) is type(other)
    assert repr(one) == repr(other)
    assert_same_value(attributes(one), attributes(other))
    methods = ["predict", "decision_function", "predict_proba", "predict_log_proba"]
    methods += ["conquer", "path_costs_by_class"]
    for method in methods:
        if hasattr(one, method):
            assert_same_value(getattr(one, method)(X), getattr(other, method)(X))
    if getattr(one, "linear_map_", None) is None:
        same_X = X if hasattr(one, "explain") else np.asarray(X)  # the inner forest knows no names
        paths, twins = (getattr(model, "opf_", model).explain(same_X) for model in (one, other))
        assert_same_value([vars(path) for path in paths], [vars(path) for path in twins])


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute", "prim"])
def test_a_forest_is_the_same_after_loading(algorithm, path):
    model = OPFClassifier(algorithm=algorithm).fit(CANCER_X[::2], CANCER_Y[::2])
    assert_same_model(model, again(model, path), CANCER_X[1::2])


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute", "prim"])
def test_ties_duplicates_and_mixed_places_survive(algorithm, path):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 5, (300, 2)).astype(float)
    y = rng.integers(0, 3, 300)
    model = OPFClassifier(algorithm=algorithm).fit(X, y)
    assert_same_model(model, again(model, path), rng.integers(-1, 6, (200, 2)).astype(float))


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-5, 1e200, 1e300])
@pytest.mark.parametrize("make", [OPFClassifier, POPFClassifier])
def test_any_scale_survives(scale, make, path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * scale
    X[0] = 0.0
    X[1, 0] = -0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, np.arange(60) % 2)
    assert_same_model(model, again(model, path), np.concatenate([X * 1.1, X[:5]]))


def test_one_place_for_all_samples(path):
    model = OPFClassifier(algorithm="kd_tree").fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert_same_model(model, again(model, path), np.ones((2, 2)))


@pytest.mark.parametrize("metric", sorted({*METRIC_NAMES} - {*ALIASES, "precomputed"}))
@pytest.mark.parametrize("make", [OPFClassifier, POPFClassifier])
def test_every_metric_survives(metric, make, path):
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
        try:
            model = make(metric=metric, metric_params=params).fit(X, y)
        except ValueError as error:
            pytest.skip(f"this scikit-learn has no {metric}: {error}")
        assert_same_model(model, again(model, path), X * 1.01)


@pytest.mark.parametrize("make", [OPFClassifier, POPFClassifier])
@pytest.mark.parametrize("weighted", [False, True])
def test_distances_computed_beforehand(make, weighted, path):
    D = pairwise_distances(IRIS_X)
    weights = (np.arange(150) % 4).astype(float) if weighted else None
    model = make(metric="precomputed").fit(D, IRIS_Y, sample_weight=weights)
    loaded = again(model, path)
    assert_same_model(model, loaded, D * 1.01)
    assert path.stat().st_size < D.nbytes / 4  # the matrix itself is not needed


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
def test_probabilities_of_two_classes_survive(name, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(VARIANTS[name]).fit(CANCER_X[::3], CANCER_Y[::3])
    assert_same_model(model, again(model, path), CANCER_X[1::3])


@pytest.mark.parametrize("calibration", ["softmax", "multinomial"])
@pytest.mark.parametrize("linear_map", [None, "discriminant"])
def test_probabilities_of_three_classes_survive(calibration, linear_map, path):
    model = POPFClassifier(calibration=calibration, linear_map=linear_map)
    model.fit(IRIS_X[::2], IRIS_Y[::2], sample_weight=1.0 + np.arange(75) % 3)
    assert_same_model(model, again(model, path), IRIS_X[1::2])


def test_a_prior_without_information_survives(path):
    model = POPFClassifier().fit([[0.0], [0.0], [0.0], [0.0]], [0, 1, 0, 1])
    assert_same_model(model, again(model, path), np.array([[0.0], [1.0]]))


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
def test_labels_of_any_kind_survive(kind, path):
    y = LABELS[kind][np.arange(40) % 2]
    model = OPFClassifier().fit(IRIS_X[:40], y)
    loaded = again(model, path)
    assert loaded.classes_.dtype == model.classes_.dtype.newbyteorder("=")
    assert loaded.predict(IRIS_X[:9]).tolist() == model.predict(IRIS_X[:9]).tolist()
    assert type(loaded.predict(IRIS_X[:1])[0]) is type(model.predict(IRIS_X[:1])[0])


def test_labels_that_are_no_plain_values_are_refused(path):
    y = np.array(["2001-01-01", "2002-01-01"], dtype="datetime64[D]")[np.arange(20) % 2]
    model = OPFClassifier().fit(IRIS_X[:20], np.arange(20) % 2)
    model.classes_ = np.unique(y)
    with pytest.raises(TypeError, match=r"classes_ of the model.*datetime64"):
        popf.save(model, path)
    assert not path.exists()


def test_zero_weights_and_names_survive(path):
    frame = pd.DataFrame(IRIS_X, columns=["länge", "b", "c d", "'"])
    weights = (np.arange(150) % 5 > 0).astype(float)
    for make in (OPFClassifier, POPFClassifier):
        model = make().fit(frame, IRIS_Y, sample_weight=weights)
        loaded = again(model, path)
        assert_same_model(model, loaded, frame)
        assert loaded.feature_names_in_.tolist() == ["länge", "b", "c d", "'"]


def test_a_loaded_model_is_an_estimator_like_any_other(path):
    model = POPFClassifier(threshold=0.2, metric="manhattan").fit(CANCER_X[::4], CANCER_Y[::4])
    loaded = again(model, path)
    assert loaded.get_params() == model.get_params()
    assert clone(loaded).fit(CANCER_X[::4], CANCER_Y[::4]).A_ == model.A_
    second = path.with_name("second.popf")
    popf.save(loaded, second)
    assert_same_model(model, popf.load(second), CANCER_X[1::4])
    with zipfile.ZipFile(path) as one, zipfile.ZipFile(second) as other:
        assert one.namelist() == other.namelist()
        for name in one.namelist():
            if name.endswith(".npy"):
                assert one.read(name) == other.read(name)


def test_parameters_set_after_the_fit_do_not_change_what_was_fitted(path):
    model = OPFClassifier().fit(CANCER_X[::4], CANCER_Y[::4])
    model.set_params(metric="manhattan", n_jobs=2)
    loaded = again(model, path)
    assert loaded.get_params() == model.get_params()
    assert_same_value(model.conquer(CANCER_X), loaded.conquer(CANCER_X))


def consumers(n=60):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "demand": rng.gamma(2.0, 50.0, n),
            "peak": rng.normal(10.0, 2.0, n),
            "tariff": np.array(["low", "high", "night"], dtype=object)[rng.integers(0, 3, n)],
            "phases": rng.integers(1, 4, n),
            "street": np.array(["a", "b"], dtype=object)[rng.integers(0, 2, n)],
        }
    )
    frame.loc[3, "demand"] = np.nan
    frame.loc[5, "tariff"] = np.nan
    stolen = np.array(["no", "yes"])[(frame["peak"] > 10).astype(int)]
    return frame, stolen


def columns_by_kind():
    impute = make_pipeline(SimpleImputer(), StandardScaler())
    fill = SimpleImputer(strategy="most_frequent")
    onehot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer(
        [
            ("numbers", impute, ["demand", "peak"]),
            ("text", make_pipeline(fill, onehot), ["tariff", "street"]),
        ],
        remainder="passthrough",
    )
    return make_pipeline(columns, POPFClassifier())


def ordinal_sparse_and_indicator():
    columns = ColumnTransformer(
        [
            ("ordinal", OrdinalEncoder(encoded_missing_value=-1), ["tariff"]),
            ("onehot", OneHotEncoder(drop="if_binary", dtype=np.float32), ["street", "phases"]),
            ("impute", SimpleImputer(add_indicator=True), ["demand", "peak"]),
        ],
        sparse_threshold=0.0,
    )
    return make_pipeline(columns, MinMaxScaler(feature_range=(-1, 1)), OPFClassifier())


def selected_grouped_and_dropped():
    fill = SimpleImputer(strategy="constant", fill_value=7)
    rare = OneHotEncoder(
        min_frequency=12, handle_unknown="infrequent_if_exist", sparse_output=False, drop="first"
    )
    columns = ColumnTransformer(
        [
            ("all", make_pipeline(fill, "passthrough"), make_column_selector("(demand|peak)")),
            ("rare", rare, [2]),
            ("none", "passthrough", slice(3, 4)),
            ("gone", "drop", ["street"]),
        ],
        verbose_feature_names_out=False,
        transformer_weights={"all": 2.0},
    ).set_output(transform="pandas")
    paper = POPFClassifier("paper", solver="nelder-mead", box=((-99, 99), (-99, 99)))
    steps = [("prepare", columns), ("robust", RobustScaler(quantile_range=(10.0, 90.0)))]
    return Pipeline([*steps, ("nothing", None), ("model", paper)])


PIPELINES = [columns_by_kind, ordinal_sparse_and_indicator, selected_grouped_and_dropped]


@pytest.mark.parametrize("make", PIPELINES)
def test_pipelines_survive(make, path):
    frame, stolen = consumers()
    model = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame, stolen)
    loaded = again(model, path)
    new = consumers(200)[0]
    new["tariff"] = new["tariff"].where(new["tariff"].notna(), "low")
    assert_same_value(model[:-1].transform(new).__array__(), loaded[:-1].transform(new).__array__())
    assert_same_model(model[-1], loaded[-1], model[:-1].transform(new))
    assert_same_value(model.predict(new), loaded.predict(new))
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()
    assert (model[0].get_feature_names_out() == loaded[0].get_feature_names_out()).all()
    loaded.fit(frame, stolen)  # a loaded pipeline can learn anew
    assert_same_value(model.predict(new), loaded.predict(new))


@pytest.mark.parametrize("scaler", [StandardScaler(with_mean=False), MinMaxScaler(clip=True)])
def test_scalers_of_plain_arrays_survive(scaler, path):
    model = make_pipeline(scaler, "passthrough", OPFClassifier()).fit(CANCER_X[::2], CANCER_Y[::2])
    loaded = again(model, path)
    assert_same_value(model.decision_function(CANCER_X), loaded.decision_function(CANCER_X))
    assert not hasattr(loaded, "feature_names_in_")


def manhattan(x, y):
    return float(np.abs(x - y).sum())


class OwnForest(OPFClassifier):
    pass


class OwnScaler(StandardScaler):
    pass


def with_an_attribute():
    model = OPFClassifier()
    model.notes_ = "mine"
    return model


REFUSED = {
    "function": (lambda: OPFClassifier(manhattan), r"metric of the model is a function.*pickle"),
    "own class": (OwnForest, r"the model is a .* OwnForest.*skops or pickle"),
    "step": (
        lambda: make_pipeline(PCA(2), OPFClassifier()),
        r"step 'pca' is a sklearn PCA.*StandardScaler",
    ),
    "own step": (lambda: make_pipeline(OwnScaler(), OPFClassifier()), r"step 'ownscaler'"),
    "function as step": (
        lambda: make_pipeline(FunctionTransformer(np.abs), OPFClassifier()),
        r"func of step 'functiontransformer' is a function",
    ),
    "inner step": (
        lambda: make_pipeline(
            ColumnTransformer([("a", make_pipeline(PCA(1)), [0, 1])]), OPFClassifier()
        ),
        r"'pca' of 'a' of step 'columntransformer'",
    ),
    "no classifier": (
        lambda: make_pipeline(StandardScaler()),
        r"must end in OPFClassifier or POPF",
    ),
    "no forest": (lambda: PCA(2), r"the model is a sklearn PCA"),
    "random numbers": (
        lambda: POPFClassifier(random_state=np.random.RandomState(0)),
        r"random_state of the model.*set_params\(random_state=0\)",
    ),
    "attribute": (with_an_attribute, r"attribute 'notes_'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_saved_is_refused_with_a_remedy(what, path):
    make, message = REFUSED[what]
    model = make().fit(CANCER_X[::8], CANCER_Y[::8])
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match=message):
        popf.save(model, path)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_a_function_that_was_the_metric_is_refused(path):
    model = OPFClassifier(manhattan).fit(CANCER_X[::8], CANCER_Y[::8]).set_params(metric="l1")
    with pytest.raises(TypeError, match=r"fitted with a function as its metric, 'manhattan'"):
        popf.save(model, path)


def test_an_unfitted_model_is_refused(path):
    with pytest.raises(NotFittedError):
        popf.save(OPFClassifier(), path)
    with pytest.raises(NotFittedError):
        popf.save(make_pipeline(StandardScaler(), POPFClassifier()), path)


def test_bad_paths_and_facts_are_refused(path, tmp_path):
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    with pytest.raises(TypeError, match="name of a file"):
        popf.save(model, io.BytesIO())
    with pytest.raises(IsADirectoryError, match="is a folder"):
        popf.save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        popf.save(model, tmp_path / "no" / "model.popf")
    with pytest.raises(TypeError, match="facts must be"):
        popf.save(model, path, facts={"when": np.float64})
    with pytest.raises(TypeError, match="facts must be"):
        popf.save(model, path, facts={"loss": float("nan")})
    with pytest.raises(ValueError, match="X has 3 columns"):
        popf.save(model, path, X=IRIS_X[:, :3])
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        popf.load(path)
    with pytest.raises(ModelFileError, match="folder or a device"):
        popf.load(tmp_path)


# Whole or not there


class FullDisk:
    """A file on a disk that is full after so many bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_a_full_disk_leaves_the_old_model(path, monkeypatch):
    old = OPFClassifier().fit(IRIS_X[::2], IRIS_Y[::2])
    popf.save(old, path)
    before, write = path.read_bytes(), container.write
    new = POPFClassifier().fit(IRIS_X, IRIS_Y)
    size = len(before)
    for room in (0, 10, 1000, size // 2, size):

        def write_a_little(file, *rest, room=room):
            write(FullDisk(file, room), *rest)

        monkeypatch.setattr(container, "write", write_a_little)
        with pytest.raises(OSError, match="No space left"):
            popf.save(new, path)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("broken"), KeyboardInterrupt()])
def test_a_failure_at_the_last_steps_leaves_the_old_model(path, monkeypatch, step, error):
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    path.write_bytes(b"old")

    def fail(*_):
        raise error

    monkeypatch.setattr(atomic.os, step, fail)
    with pytest.raises(type(error)):
        popf.save(model, path)
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system with processes to kill")
@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_a_crash_leaves_the_old_model_whole(path, moment):
    popf.save(OPFClassifier().fit(IRIS_X, IRIS_Y), path)
    before = path.read_bytes()
    code = f"""
import os, sys, popf
from popf.io import atomic, container
model = popf.load(sys.argv[1])
def die(*_):
    os._exit(9)
if {moment!r} == "write":
    add = container._add
    container._add = lambda archive, name, *parts: die() if "codes" in name else add(archive, name, *parts)
else:
    setattr(atomic.os, {moment!r}, die)
popf.save(model, sys.argv[1])
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], timeout=120)
    assert done.returncode == 9
    assert path.read_bytes() == before
    assert popf.load(path).classes_.tolist() == [0, 1, 2]


@pytest.mark.skipif(os.name == "nt", reason="permissions and links are POSIX's")
def test_permissions_and_links_are_kept(path, tmp_path):
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    umask = os.umask(0o027)
    try:
        popf.save(model, path)
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    popf.save(model, link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600


# What is in a file


def test_describe_tells_the_facts_without_the_arrays(path):
    frame, stolen = consumers()
    model = columns_by_kind().fit(frame, stolen)
    popf.save(model, path, X=frame, facts={"source": "meters", "fit_seconds": 0.5})
    known = describe(path)
    assert known == json.loads(json.dumps(known))
    assert known["estimator"] == "POPFClassifier"
    assert known["steps"] == [
        ["columntransformer", "ColumnTransformer"],
        ["popfclassifier", "POPFClassifier"],
    ]
    assert known["n_samples"] == 60
    assert known["classes"] == ["no", "yes"]
    assert known["class_counts"] == [int((stolen == label).sum()) for label in ("no", "yes")]
    assert known["features"][0] == {"name": "demand", "dtype": "float64"}
    assert known["features"][3] == {"name": "phases", "dtype": "int64"}
    assert known["parameters"]["method"] == "soft"
    assert known["facts"] == {"source": "meters", "fit_seconds": 0.5}
    assert known["popf_version"] == popf.__version__
    assert set(known["libraries"]) == {"python", "numpy", "scipy", "scikit-learn", "numba"}
    assert known["file_bytes"] == path.stat().st_size
    assert len(known["sha256"]) == 64


def test_numpy_reads_the_arrays_too(path):
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    popf.save(model, path)
    with np.load(path, allow_pickle=False) as arrays:
        (samples,) = (arrays[name] for name in arrays if name.endswith("_samples"))
    assert samples.tobytes() == IRIS_X.tobytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"a,b\n1,2\n", "not a popf model"),
        (pickle.dumps(OPFClassifier()), "begins as a pickle"),
        (b"PK\x03\x04" + bytes(200), "copied in full"),
    ],
)
def test_foreign_files_are_refused(path, content, message):
    path.write_bytes(content)
    for read in (popf.load, describe):
        with pytest.raises(ModelFileError, match=message):
            read(path)


def test_another_zip_is_refused(path):
    with path.open("wb") as file:
        np.savez(file, a=np.arange(3))
    with pytest.raises(ModelFileError, match="another kind of zip"):
        popf.load(path)


def test_a_truncated_file_is_refused_at_any_length(path):
    popf.save(OPFClassifier().fit(IRIS_X[::10], IRIS_Y[::10]), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            popf.load(path)


def test_a_newer_file_asks_for_an_upgrade(path, monkeypatch):
    monkeypatch.setattr(container, "FORMAT_VERSION", 2)
    popf.save(OPFClassifier().fit(IRIS_X, IRIS_Y), path)
    monkeypatch.undo()
    for read in (popf.load, describe):
        with pytest.raises(ModelFileError, match=r"newer popf.*format 2.*upgrade popf"):
            read(path)


def test_steps_of_another_scikit_learn_come_with_a_warning(path, monkeypatch):
    model = make_pipeline(StandardScaler(), OPFClassifier()).fit(IRIS_X, IRIS_Y)
    from popf.io import models

    monkeypatch.setattr(models, "versions", lambda: {"scikit-learn": "1.2.3"})
    popf.save(model, path)
    with pytest.warns(UserWarning, match=r"fitted by scikit-learn 1\.2\.3"):
        popf.load(path)


def test_loading_runs_nothing(path):
    frame, stolen = consumers()
    popf.save(columns_by_kind().fit(frame, stolen), path)
    code = """
import sys, popf
popf.load(sys.argv[1])  # imports what it needs
seen = set()
sys.addaudithook(lambda event, _: seen.add(event))
popf.load(sys.argv[1])
harmless = ("builtins.id", "object.", "open", "os.listdir")  # the last: versions of libraries
print(sorted(event for event in seen if not event.startswith(harmless)))
"""
    command = [sys.executable, "-c", code, str(path)]
    # Without compiled kernels: Numba keeps these in files of its own.
    settings = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=settings)
    assert done.stdout == "[]\n", done.stderr


def test_importing_popf_leaves_io_alone():
    code = "import sys, popf; a = 'popf.io' in sys.modules; popf.save; print(a, 'popf.io' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False True\n", done.stderr
    with pytest.raises(AttributeError, match="no attribute 'dance'"):
        popf.dance  # noqa: B018


# Columns by name


COLUMNS = {"b": [1.0, 2.0, 8.0, 9.0], "a": [0.0, 1.0, 7.0, 9.0]}
FRAMES = {
    "pandas": (pd.DataFrame, lambda frame: list(frame.columns)),
    "polars": (pl.DataFrame, lambda frame: frame.columns),
    "pyarrow": (pa.table, lambda frame: frame.column_names),
}


@pytest.mark.parametrize("library", FRAMES)
def test_columns_are_found_by_name(library, path):
    make, names = FRAMES[library]
    frame = make(COLUMNS)
    training = pd.DataFrame({"a": [0.0, 1.0, 7.0, 9.0], "b": [1.0, 2.0, 8.0, 9.0]})
    model = again(OPFClassifier().fit(training, [0, 0, 1, 1]), path)
    aligned = align(model, frame)
    assert names(aligned) == ["a", "b"]
    if library != "pyarrow":  # which scikit-learn does not take
        assert model.predict(aligned).tolist() == [0, 0, 1, 1]
    assert align(model, aligned) is aligned


def test_extra_missing_and_repeated_columns(path):
    training = pd.DataFrame({"demand": [0.0, 9.0], "peak": [1.0, 2.0]})
    model = again(make_pipeline(StandardScaler(), OPFClassifier()).fit(training, [0, 1]), path)
    new = training.assign(id=[1, 2])[["id", "peak", "demand"]]
    with pytest.warns(UserWarning, match="ignores them: 'id'"):
        assert list(align(model, new).columns) == ["demand", "peak"]
    assert model.predict(align(model, new, extra="ignore")).tolist() == [0, 1]
    with pytest.raises(ValueError, match="does not know these columns: 'id'"):
        align(model, new, extra="error")
    with pytest.raises(ValueError, match="extra must be"):
        align(model, new, extra="maybe")
    with pytest.raises(
        ValueError, match=r"2 columns that are missing: 'demand', 'peak'.*'Demand' meant"
    ):
        align(model, pd.DataFrame({"Demand": [1]}))
    twice = pd.concat([training, training[["peak"]]], axis=1)
    with pytest.raises(ValueError, match="'peak' occurs more than once"):
        align(model, twice)


def test_models_without_names_only_count():
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    frame = pd.DataFrame(IRIS_X)
    assert align(model, frame) is frame
    with pytest.raises(ValueError, match="needs 4 columns, but there are 3"):
        align(model, frame.iloc[:, :3])
    named = OPFClassifier().fit(frame.rename(columns=str), IRIS_Y)
    assert align(named, IRIS_X) is IRIS_X
    with pytest.raises(ValueError, match="got no names"):
        align(named, IRIS_X[:, :2])


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
def test_pickle_and_joblib_keep_models(estimator, path):
    model, X = fitted(estimator)
    assert_same_model(model, pickle.loads(pickle.dumps(model)), X)
    joblib.dump(model, path)
    assert_same_model(model, joblib.load(path), X)


@pytest.mark.parametrize("estimator", KEPT, ids=repr)
def test_skops_keeps_models_once_popf_is_trusted(estimator, path):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model, X = fitted(estimator)
    skops.dump(model, path)
    unknown = skops.get_untrusted_types(file=path)
    assert unknown
    loaded = skops.load(path, trusted=unknown)
    assert_same_value(model.decision_function(X), loaded.decision_function(X))
    assert_same_value(model.predict(X), loaded.predict(X))
