"""Model files are whole or not there, tell what is in them and which columns they want, and refuse the rest."""

import errno
import io
import json
import os
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import popf
from popf import OPFClassifier, PlattOPFClassifier, POPFClassifier, TableEncoder
from popf import files as atomic
from popf.io import ModelFileError, align, container, describe
from saved_models import CANCER_X, CANCER_Y, IRIS_X, IRIS_Y

# Whole or not there


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "disk full"), KeyboardInterrupt()])
def test_a_failure_at_any_step_leaves_the_old_model(model_path, monkeypatch, step, error):
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    model_path.write_bytes(b"old")

    def fail(*_):
        raise error

    monkeypatch.setattr(atomic.os, step, fail)
    with pytest.raises(type(error)):
        popf.save(model, model_path)
    monkeypatch.undo()
    assert model_path.read_bytes() == b"old"
    assert os.listdir(model_path.parent) == [model_path.name]


@pytest.mark.skipif(os.name == "nt", reason="permissions and links are POSIX's")
def test_permissions_and_links_are_kept(model_path, tmp_path):
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    umask = os.umask(0o027)
    try:
        popf.save(model, model_path)
    finally:
        os.umask(umask)
    assert model_path.stat().st_mode & 0o777 == 0o640
    model_path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(model_path)
    popf.save(model, link)
    assert link.is_symlink()
    assert model_path.stat().st_mode & 0o777 == 0o600


# What is in a file


def test_describe_tells_the_facts_without_the_arrays(model_path):
    frame = pd.DataFrame(CANCER_X[::4], columns=["a", "b", "c", "d", "e"])
    y = np.array(["benign", "malignant"])[CANCER_Y[::4]]
    model = make_pipeline(StandardScaler(), POPFClassifier("forest")).fit(frame, y)
    popf.save(model, model_path, X=frame, facts={"source": "meters", "fit_seconds": 0.5})
    known = describe(model_path)
    assert known == json.loads(json.dumps(known))
    expected = {
        "estimator": "POPFClassifier",
        "steps": [[kind.lower(), kind] for kind in ("StandardScaler", "POPFClassifier")],
        "n_samples": len(frame),
        "classes": ["benign", "malignant"],
        "class_counts": np.bincount(CANCER_Y[::4]).tolist(),
        "features": [{"name": name, "dtype": "float64"} for name in frame],
        "facts": {"source": "meters", "fit_seconds": 0.5},
        "popf_version": popf.__version__,
        "file_bytes": model_path.stat().st_size,
    }
    assert {key: known[key] for key in expected} == expected
    assert known["parameters"]["method"] == "forest"
    assert set(known["libraries"]) == {"python", "numpy", "scipy", "scikit-learn", "numba"}


def test_arrays_lie_in_a_file_as_in_safetensors(model_path):
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    popf.save(model, model_path)
    content = model_path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    assert all(type(value) is str for value in header["__metadata__"].values())
    (samples,) = (entry for name, entry in header.items() if "samples" in name)
    first, last = samples["data_offsets"]
    assert (samples["dtype"], samples["shape"]) == ("F64", [150, 4])
    assert content[start + first : start + last] == IRIS_X.tobytes()
    assert start % 8 == 0


# Columns by name


COLUMNS = {"b": [1.0, 2.0, 8.0, 9.0], "a": [0.0, 1.0, 7.0, 9.0]}
FRAMES = {
    "pandas": (pd.DataFrame, lambda frame: list(frame.columns)),
    "polars": (pl.DataFrame, lambda frame: frame.columns),
    "pyarrow": (pa.table, lambda frame: frame.column_names),
}


@pytest.mark.parametrize("library", FRAMES)
def test_columns_are_found_by_name(library):
    make, names = FRAMES[library]
    frame = make(COLUMNS)
    model = OPFClassifier().fit(pd.DataFrame(COLUMNS)[["a", "b"]], [0, 0, 1, 1])
    aligned = align(model, frame)
    assert names(aligned) == ["a", "b"]
    if library != "pyarrow":  # which scikit-learn does not take
        assert model.predict(aligned).tolist() == [0, 0, 1, 1]
    assert align(model, aligned) is aligned


def test_extra_missing_and_repeated_columns():
    training = pd.DataFrame({"demand": [0.0, 9.0], "peak": [1.0, 2.0]})
    model = make_pipeline(StandardScaler(), OPFClassifier()).fit(training, [0, 1])
    new = training.assign(id=[1, 2])[["id", "peak", "demand"]]
    with pytest.warns(UserWarning, match="are ignored: 'id'"):
        assert list(align(model, new).columns) == ["demand", "peak"]
    assert model.predict(align(model, new, extra="ignore")).tolist() == [0, 1]
    with pytest.raises(ValueError, match="does not use these columns: 'id'"):
        align(model, new, extra="error")
    with pytest.raises(ValueError, match="`extra` must be"):
        align(model, new, extra="maybe")
    with pytest.raises(
        ValueError, match=r"2 columns that are missing: 'demand', 'peak'; did you mean Demand"
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
    with pytest.raises(ValueError, match="the data have no column names"):
        align(named, IRIS_X[:, :2])


# What cannot be saved


def manhattan(x, y):
    return float(np.abs(x - y).sum())


class OwnForest(OPFClassifier):
    pass


class OwnScaler(StandardScaler):
    pass


def with_an_attribute():
    model = OPFClassifier()
    model._notes = "mine"
    return model


REFUSED = {
    "function": (lambda: OPFClassifier(manhattan), r"metric of the model is a function.*pickle"),
    "own class": (OwnForest, r"the model is a .* OwnForest.*skops"),
    "step": (
        lambda: make_pipeline(PCA(2), OPFClassifier()),
        r"step 'pca' is a sklearn PCA.*StandardScaler.*trusted=popf\.io\.trusted_types",
    ),
    "own step": (lambda: make_pipeline(OwnScaler(), OPFClassifier()), r"step 'ownscaler'"),
    "inner step": (
        lambda: make_pipeline(make_pipeline(PCA(2)), OPFClassifier()),
        r"'pca' of step 'pipeline' is a sklearn PCA",
    ),
    "frames": (
        lambda: make_pipeline(StandardScaler().set_output(transform="pandas"), OPFClassifier()),
        r"step 'standardscaler'.*_sklearn_output_config",
    ),
    "no classifier": (
        lambda: make_pipeline(StandardScaler()),
        r"must end in a popf estimator",
    ),
    "no forest": (lambda: PCA(2), r"the model is a sklearn PCA"),
    "random numbers": (
        lambda: PlattOPFClassifier(random_state=np.random.RandomState(0)),
        r"random_state of the model is a random number generator.*set_params",
    ),
    "attribute": (with_an_attribute, r"attribute '_notes'"),
}


def test_pipelines_on_tables_are_saved_here_or_by_skops(model_path):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    frame = pd.DataFrame({"x": [1.0, None, 3.0, 4.0] * 5, "c": ["a", "b", "b", None] * 5})
    y = np.arange(20) % 2
    own = make_pipeline(TableEncoder(), StandardScaler(), OPFClassifier()).fit(frame, y)
    popf.save(own, model_path)
    assert (popf.load(model_path).predict(frame) == own.predict(frame)).all()
    encoders = (SimpleImputer(), ["x"]), (OneHotEncoder(sparse_output=False), ["c"])
    other = make_pipeline(make_column_transformer(*encoders), POPFClassifier()).fit(frame, y)
    with pytest.raises(TypeError, match=r"TableEncoder, which fills gaps.*io\.trusted_types"):
        popf.save(other, model_path)
    loaded = skops.loads(skops.dumps(other), trusted=popf.io.trusted_types)
    assert (loaded.predict_proba(frame) == other.predict_proba(frame)).all()


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_saved_is_refused_with_a_remedy(what, model_path):
    make, message = REFUSED[what]
    model = make().fit(CANCER_X[::8], CANCER_Y[::8])
    model_path.write_bytes(b"old")
    with pytest.raises(TypeError, match=message):
        popf.save(model, model_path)
    assert model_path.read_bytes() == b"old"
    assert os.listdir(model_path.parent) == [model_path.name]


def test_what_was_fitted_and_cannot_be_saved_is_refused(model_path):
    model = OPFClassifier(manhattan).fit(CANCER_X[::8], CANCER_Y[::8]).set_params(metric="l1")
    with pytest.raises(
        TypeError, match=r"metric of forest_ of the model is a function, 'manhattan'"
    ):
        popf.save(model, model_path)
    model = OPFClassifier().fit(CANCER_X[::8], CANCER_Y[::8])
    model.classes_ = np.array(["2001-01-01", "2002-01-01"], dtype="datetime64[D]")
    with pytest.raises(TypeError, match=r"classes_ of the model is an array of datetime64"):
        popf.save(model, model_path)
    model.classes_ = np.array([(0,), (1,)], dtype=object)
    with pytest.raises(TypeError, match="classes_ of the model"):
        popf.save(model, model_path)


def test_an_unfitted_model_is_refused(model_path):
    with pytest.raises(NotFittedError):
        popf.save(OPFClassifier(), model_path)
    with pytest.raises(NotFittedError):
        popf.save(make_pipeline(StandardScaler(), POPFClassifier()), model_path)


def test_bad_paths_and_facts_are_refused(model_path, tmp_path):
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    with pytest.raises(TypeError, match="name of a file"):
        popf.save(model, io.BytesIO())
    with pytest.raises(IsADirectoryError, match="is a folder"):
        popf.save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        popf.save(model, tmp_path / "no" / "model.popf")
    with pytest.raises(TypeError, match="facts must be"):
        popf.save(model, model_path, facts={"when": np.float64})
    with pytest.raises(TypeError, match="facts must be"):
        popf.save(model, model_path, facts={"loss": float("nan")})
    with pytest.raises(ValueError, match="X has 3 columns"):
        popf.save(model, model_path, X=IRIS_X[:, :3])
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        popf.load(model_path)
    with pytest.raises(ModelFileError, match="folder or a device"):
        popf.load(tmp_path)


# Files that are no models


def an_npz_file():
    file = io.BytesIO()
    np.savez(file, a=np.arange(3))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (an_npz_file(), r"a zip archive.*format 1: fit the model again"),
        (b"a,b\n1,2\n", "not a popf model"),
        (pickle.dumps(OPFClassifier()), "looks like a pickle"),
        (b"\x02" + bytes(7) + b"{}", "header is that of another format"),
    ],
)
def test_foreign_files_are_refused(model_path, content, message):
    model_path.write_bytes(content)
    for read in (popf.load, describe):
        with pytest.raises(ModelFileError, match=message):
            read(model_path)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (3, r"a newer version, popf .* in format 3.*upgrade popf"),
        (1, r"an older .*fit the model again"),
    ],
)
def test_a_file_in_another_format_says_what_to_do(model_path, monkeypatch, version, said):
    monkeypatch.setattr(container, "FORMAT_VERSION", version)
    popf.save(OPFClassifier().fit(IRIS_X, IRIS_Y), model_path)
    monkeypatch.undo()
    for read in (popf.load, describe):
        with pytest.raises(ModelFileError, match=said):
            read(model_path)
