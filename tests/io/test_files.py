"""Model files are whole or not there, tell what is in them, and run nothing."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import popf
from popf import OPFClassifier, POPFClassifier
from popf import files as atomic
from popf.io import describe
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


def pipeline():
    frame = pd.DataFrame(CANCER_X[::4], columns=["a", "b", "c", "d", "e"])
    y = np.array(["benign", "malignant"])[CANCER_Y[::4]]
    return make_pipeline(StandardScaler(), POPFClassifier("forest")).fit(frame, y), frame


def test_describe_tells_the_facts_without_the_arrays(model_path):
    model, frame = pipeline()
    popf.save(model, model_path, X=frame, facts={"source": "meters", "fit_seconds": 0.5})
    known = describe(model_path)
    assert known == json.loads(json.dumps(known))
    assert known["estimator"] == "POPFClassifier"
    assert known["steps"] == [
        ["standardscaler", "StandardScaler"],
        ["popfclassifier", "POPFClassifier"],
    ]
    assert known["n_samples"] == len(frame)
    assert known["classes"] == ["benign", "malignant"]
    assert sum(known["class_counts"]) == len(frame)
    assert known["features"][0] == {"name": "a", "dtype": "float64"}
    assert known["parameters"]["method"] == "forest"
    assert known["facts"] == {"source": "meters", "fit_seconds": 0.5}
    assert known["popf_version"] == popf.__version__
    assert set(known["libraries"]) == {"python", "numpy", "scipy", "scikit-learn", "numba"}
    assert known["file_bytes"] == model_path.stat().st_size
    assert len(known["sha256"]) == 64


def test_numpy_reads_the_arrays_too(model_path):
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    popf.save(model, model_path)
    with np.load(model_path, allow_pickle=False) as arrays:
        (samples,) = (arrays[name] for name in arrays if "samples" in name)
    assert samples.tobytes() == IRIS_X.tobytes()


def test_importing_popf_leaves_io_alone():
    code = "import sys, popf; a = 'popf.io' in sys.modules; popf.save; print(a, 'popf.io' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False True\n", done.stderr
    with pytest.raises(AttributeError, match="no attribute 'dance'"):
        popf.dance  # noqa: B018
