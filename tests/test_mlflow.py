"""Models in MLflow: stored as `.popf`, loaded without pickle, and served over HTTP."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import popf
import popf.mlflow

pd = pytest.importorskip("pandas")
mlflow = pytest.importorskip("mlflow", reason="popf.mlflow needs popf[mlflow]")

pytestmark = pytest.mark.filterwarnings("default")  # those of MLflow and what it imports


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """A store of runs in a folder, and MLflow's strict mode."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("t", f"file://{tmp_path}/files"))


@pytest.fixture(scope="module")
def messy():
    """A table with numbers, a category, a date, integers and gaps, and a model of it."""
    rng = np.random.default_rng(0)
    n = 120
    X = pd.DataFrame(
        {
            "length": rng.normal(size=n),
            "count": rng.integers(0, 9, n).astype(np.float64),
            "place": rng.choice(["north", "south", "west"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    )
    y = np.where((X["length"] + X["count"] / 5 > 0.8) ^ (rng.random(n) < 0.05), "yes", "no")
    X.loc[::7, "length"] = np.nan
    X.loc[::11, "place"] = None
    return X, popf.POPFClassifier(threshold=0.3).fit(X, y)


def expected_answer(model, X):
    found = pd.DataFrame(
        model.predict_proba(X), columns=["probability_no", "probability_yes"], index=X.index
    )
    return found.assign(predicted=model.predict(X))


def test_a_logged_model_is_loaded_as_it_was_and_answers_with_probabilities(messy):
    X, model = messy
    with mlflow.start_run():
        logged = popf.mlflow.log_model(
            model, "model", input_example=X[:5], registered_model_name="tables"
        )
    for uri in (logged.model_uri, "models:/tables/1"):
        same = popf.mlflow.load_model(uri)
        assert same.get_params() == model.get_params()
        np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    served = mlflow.pyfunc.load_model(logged.model_uri)
    shuffled = X.assign(other=1)[["place", "other", "day", "count", "length"]]
    pd.testing.assert_frame_equal(served.predict(shuffled), expected_answer(model, X))
    inputs = {one.name: one.type.name for one in served.metadata.signature.inputs}
    assert inputs == {"length": "double", "count": "double", "place": "string", "day": "datetime"}
    outputs = {one.name: one.type.name for one in served.metadata.signature.outputs}
    assert outputs == {
        "probability_no": "double",
        "probability_yes": "double",
        "predicted": "string",
    }


def test_the_folder_holds_a_popf_file_and_nothing_that_is_pickled(messy, tmp_path):
    X, model = messy
    popf.mlflow.save_model(model, tmp_path / "model", input_example=X[:2], metadata={"by": "me"})
    names = {path.name for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert "model.popf" in names
    assert not any(name.endswith((".pkl", ".pickle", ".skops", ".joblib")) for name in names)
    requirements = (tmp_path / "model" / "requirements.txt").read_text(encoding="utf-8")
    assert f"popf=={popf.__version__}" in requirements.splitlines()
    known = mlflow.models.Model.load(tmp_path / "model")
    assert known.flavors["popf"] == {"popf_version": popf.__version__, "data": "data/model.popf"}
    assert known.metadata == {"by": "me"}
    assert (
        popf.io.describe(tmp_path / "model" / "data" / "model.popf")["features"][2]["name"]
        == "place"
    )


@pytest.mark.parametrize(
    "model",
    [
        popf.OPFClassifier(),
        make_pipeline(StandardScaler(), popf.POPFClassifier("forest")),
        popf.OPFClustering(),
    ],
    ids=["labels", "pipeline", "clusters"],
)
def test_every_estimator_can_be_stored_and_needs_no_names(model, tmp_path):
    X = np.random.default_rng(1).normal(size=(60, 2))
    model = model.fit(X, X[:, 0] > 0)
    popf.mlflow.save_model(model, tmp_path / "model", input_example=X[:2])
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(X)
    np.testing.assert_array_equal(found["predicted"], model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(found["probability_True"], model.predict_proba(X)[:, 1])


def test_what_cannot_be_stored_or_loaded_is_refused(tmp_path):
    with pytest.raises(TypeError, match="StandardScaler"):
        popf.mlflow.save_model(StandardScaler().fit([[0.0], [1.0]]), tmp_path / "no")
    mlflow.sklearn.save_model(StandardScaler().fit([[0.0], [1.0]]), tmp_path / "other")
    with pytest.raises(ValueError, match="is no model of popf; it has the flavors"):
        popf.mlflow.load_model(tmp_path / "other")


def test_mlflow_serves_probabilities_on_request(messy, tmp_path):
    X, model = messy
    popf.mlflow.save_model(model, tmp_path / "model", input_example=X[:2])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", str(tmp_path / "model")]
    command += ["-h", "127.0.0.1", "-p", str(port), "--env-manager", "local", "-w", "1"]
    with open(tmp_path / "log", "wb") as log:
        # MLflow looks for its server on the path, where it is only in an activated environment.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path}
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        while True:
            assert server.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/ping")
            except urllib.error.URLError:
                time.sleep(0.2)
            else:
                break
        rows = json.loads(X[:8].to_json(orient="split", date_format="iso", index=False))
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/invocations",
            json.dumps({"dataframe_split": rows}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            found = pd.DataFrame(json.load(answer)["predictions"])
    finally:
        server.terminate()
        server.wait()
    pd.testing.assert_frame_equal(found, expected_answer(model, X[:8]))
