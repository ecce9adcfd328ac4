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
from popf.io import container, describe
from saved_models import CANCER_X, CANCER_Y, IRIS_X, IRIS_Y

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


def test_a_full_disk_leaves_the_old_model(model_path, monkeypatch):
    old = OPFClassifier().fit(IRIS_X[::2], IRIS_Y[::2])
    popf.save(old, model_path)
    before, write = model_path.read_bytes(), container.write
    new = OPFClassifier("l1").fit(IRIS_X, IRIS_Y)
    size = len(before)
    for room in (0, 10, 1000, size // 2, size):

        def write_a_little(file, *rest, room=room):
            write(FullDisk(file, room), *rest)

        monkeypatch.setattr(container, "write", write_a_little)
        with pytest.raises(OSError, match="No space left"):
            popf.save(new, model_path)
        assert model_path.read_bytes() == before
        assert os.listdir(model_path.parent) == [model_path.name]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("broken"), KeyboardInterrupt()])
def test_a_failure_at_the_last_steps_leaves_the_old_model(model_path, monkeypatch, step, error):
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system with processes to kill")
def test_a_crash_leaves_the_old_model_whole(model_path):
    popf.save(OPFClassifier().fit(IRIS_X, IRIS_Y), model_path)
    before = model_path.read_bytes()
    code = """
import os, sys, popf
model = popf.load(sys.argv[1])
os.replace = lambda *_: os._exit(9)
popf.save(model, sys.argv[1])
"""
    done = subprocess.run([sys.executable, "-c", code, str(model_path)], timeout=120)
    assert done.returncode == 9
    assert model_path.read_bytes() == before
    assert popf.load(model_path).classes_.tolist() == [0, 1, 2]


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


def test_loading_runs_nothing(model_path):
    popf.save(pipeline()[0], model_path)
    code = """
import sys, popf
popf.load(sys.argv[1])  # imports what it needs
seen = set()
sys.addaudithook(lambda event, _: seen.add(event))
popf.load(sys.argv[1])
harmless = ("builtins.id", "object.", "open", "os.listdir")  # the last: versions of libraries
print(sorted(event for event in seen if not event.startswith(harmless)))
"""
    command = [sys.executable, "-c", code, str(model_path)]
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
