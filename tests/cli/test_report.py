"""``popf report``: the page from files, and one line where something is wrong."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import popf
from popf import OPFClassifier, POPFClassifier
from popf.cli import main
from popf.datasets import make_energy_theft
from popf.table_models import open_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data = make_energy_theft(n_samples=900, theft_rate=0.2, random_state=6)
    frame = pd.DataFrame(data.data.round(3), columns=data.feature_names)
    frame.insert(0, "consumer", [f"C-{number}" for number in range(900)])
    frame["region"] = np.random.default_rng(0).choice(["north", "south"], 900)
    frame["stolen"] = np.where(data.target == 1, "yes", "no")
    frame[:400].to_csv(folder / "train.csv", index=False)
    frame[400:].to_csv(folder / "test.csv", index=False)
    frame[400:].to_parquet(folder / "test.parquet", index=False)
    words = ["--target", "stolen", "--id", "consumer", "-o", str(folder / "model.popf")]
    assert main(["fit", str(folder / "train.csv"), *words]) == 0
    _spoil(folder)
    return folder


def _spoil(folder):
    """Write files that are wrong in one way each."""
    frame = pd.read_csv(folder / "test.csv")
    frame.drop(columns="stolen").to_csv(folder / "unlabelled.csv", index=False)
    frame.drop(columns="region").to_csv(folder / "short.csv", index=False)
    frame[frame["stolen"] == "no"].to_csv(folder / "one_class.csv", index=False)
    numbers = frame.select_dtypes("number")
    popf.save(OPFClassifier().fit(numbers, frame["stolen"].to_numpy()), folder / "labels.popf")


@pytest.fixture
def run(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def run(*words):
        status = main(["report", *map(str, words)])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_a_model_and_a_file_give_a_page(run, tmp_path):
    page = tmp_path / "page.html"
    status, out, err = run("model.popf", "test.csv", "-o", page, "--cost-fp", 1, "--cost-fn", 10)
    assert (status, err) == (0, "")
    assert out.startswith(f"Wrote {page}: 500 rows")
    assert "where a miss costs 10 times as much as a false alarm" in out
    text = page.read_text(encoding="utf-8")
    assert "How likely is stolen = yes?" in text
    assert "model.popf on test.csv" in text
    assert ">C-4" in text
    assert "region" in text
    assert re.search(r'A miss costs as much as <input [^>]*value="10"', text)
    assert list(tmp_path.iterdir()) == [page]


def test_the_costs_that_the_model_was_fitted_with_are_remembered(run, tmp_path):
    words = ["fit", "train.csv", "--target", "stolen", "--id", "consumer", "--method", "forest"]
    words += ["--cost-fp", "2", "--cost-fn", "14", "-o", str(tmp_path / "m.popf")]
    assert main(words) == 0

    def facts(*more):
        out = run(tmp_path / "m.popf", "test.csv", "-o", tmp_path / "page.html", "--json", *more)[1]
        return json.loads(out[out.index("{") :])

    own = open_model(tmp_path / "m.popf").layout.threshold
    found = facts()
    assert (found["miss_per_false_alarm"], found["threshold"]) == (7.0, own)
    other = facts("--positive", "no")
    assert other["miss_per_false_alarm"] == pytest.approx(1 / 7)
    assert other["threshold"] == pytest.approx(1 - own)
    asked = facts("--cost-fp", 1, "--cost-fn", 3)
    assert asked["miss_per_false_alarm"] == 3.0
    assert asked["threshold"] == asked["recommended_threshold"]


def test_json_says_what_the_page_says(run, tmp_path):
    page = tmp_path / "page.html"
    status, out, _ = run("model.popf", "test.csv", "-o", page, "--json", "--top", 5)
    assert status == 0
    facts = json.loads(out)
    assert facts["n_bytes"] == page.stat().st_size
    assert facts["n_rows"] == 500
    assert facts["positive"] == "yes"
    assert facts["threshold"] == 0.5
    score = facts["measures"]["log_loss"]
    assert f'<dd class="value">{score["value"]:.3f}</dd>' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_evaluate_and_report_agree_on_every_figure(run, tmp_path, capsys, threshold):
    page = tmp_path / "page.html"
    more = ["--seed", "5", "--json", *([] if threshold is None else ["--threshold", threshold])]
    reported = json.loads(run("model.popf", "test.csv", "-o", page, *more)[1])
    assert main(["evaluate", "model.popf", "test.csv", *map(str, more)]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    for key in ("measures", "n_rows", "positive", "threshold"):
        assert reported[key] == evaluated[key]
    assert len(evaluated["measures"]) == 10
    text = page.read_text(encoding="utf-8")
    for name in ("log_loss", "brier", "ece", "auc"):
        score = evaluated["measures"][name]
        shown = f'{score["value"]:.3f}</dd><dd class="small">[{score["lower"]:.3f}, '
        assert f'<dd class="value">{shown}{score["upper"]:.3f}]</dd>' in text, name
    for name in ("accuracy", "balanced_accuracy", "precision", "recall"):
        value = evaluated["measures"][name]["value"]
        assert f'<td id="{name}">{100 * value:.1f}\N{NO-BREAK SPACE}%</td>' in text, name
    (passes, alarms), (misses, hits) = evaluated["confusion"]
    for name, n in {"passes": passes, "alarms": alarms, "misses": misses, "hits": hits}.items():
        assert f'<b id="{name}">{n}</b>' in text, name


def test_evaluate_and_report_agree_on_all_classes_together(run, tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(240, 3)), columns=["a", "b", "c"])
    frame["kind"] = np.digitize(frame["a"] + 0.3 * rng.normal(size=240), [-0.5, 0.8])
    frame[:120].to_csv(tmp_path / "train.csv", index=False)
    frame[120:].to_csv(tmp_path / "test.csv", index=False)
    model = str(tmp_path / "model.popf")
    assert main(["fit", str(tmp_path / "train.csv"), "--target", "kind", "-o", model]) == 0
    capsys.readouterr()
    assert main(["evaluate", model, str(tmp_path / "test.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["measures"]
    assert run(model, tmp_path / "test.csv", "-o", tmp_path / "page.html")[0] == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = {"log loss": "log_loss", "Brier score": "brier", "calibration error": "ece"}
    for name, key in shown.items():
        assert f"{name} {found[key]['value']:.3f}" in text
    assert f"accuracy {100 * found['accuracy']['value']:.1f}\N{NO-BREAK SPACE}%" in text


def test_parquet_and_csv_give_the_same_page(run, tmp_path):
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page, data in zip(pages, ("test.csv", "test.parquet"), strict=True):
        assert run("model.popf", data, "-o", page)[0] == 0
    one, other = (page.read_text(encoding="utf-8") for page in pages)
    assert one.replace("test.csv", "test.parquet") == other


def test_the_other_class_can_be_asked_for(run, tmp_path):
    page = tmp_path / "page.html"
    assert run("model.popf", "test.csv", "-o", page, "--positive", "no")[0] == 0
    assert "How likely is stolen = no?" in page.read_text(encoding="utf-8")


def test_models_of_popf_save_and_of_three_classes(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(240, 3)), columns=["a", "b", "c"])
    kind = np.digitize(frame["a"] + 0.3 * rng.normal(size=240), [-0.5, 0.8])
    model = make_pipeline(StandardScaler(), POPFClassifier()).fit(frame[:120], kind[:120])
    popf.save(model, tmp_path / "three.popf")
    frame.assign(kind=kind)[120:].to_csv(tmp_path / "three.csv", index=False)
    page = tmp_path / "page.html"
    words = (tmp_path / "three.popf", tmp_path / "three.csv", "-o", page)
    status, _, err = run(*words)
    assert status == 2
    assert "give --target" in err
    status, out, _ = run(*words, "--target", "kind")
    assert status == 0
    assert "for another class use --positive" in out
    assert run(*words, "--target", "kind", "--positive", "1")[0] == 0
    assert "How likely is kind = 1?" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model.popf", "unlabelled.csv"], "has no column 'stolen' with labels"),
        (["model.popf", "short.csv"], "missing"),
        (
            ["model.popf", "one_class.csv"],
            "a report needs samples that are and samples that are not",
        ),
        (["labels.popf", "test.csv", "--target", "stolen"], "gives labels only"),
        (["model.popf", "test.csv", "--target", "region"], "is a feature of the model"),
        (["model.popf", "test.csv", "--id", "stolen"], "cannot be an id as well"),
        (["model.popf", "test.csv", "--id", "nobody"], "'nobody'"),
        (["model.popf", "test.csv", "--positive", "maybe"], "--positive maybe is no class"),
        (["model.popf", "test.csv", "--cost-fp", "1"], "give both --cost-fp and --cost-fn"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_status_2(run, tmp_path, words, message):
    status, out, err = run(*words, "-o", tmp_path / "page.html")
    assert (status, out) == (2, "")
    (line,) = [line for line in err.splitlines() if "popf: note" not in line]
    assert line.startswith("popf: ")
    assert message in line
    assert not list(tmp_path.iterdir())


def test_an_interrupted_run_leaves_no_page(run, tmp_path, monkeypatch):
    def interrupt(*arguments, **context):
        raise KeyboardInterrupt

    monkeypatch.setattr("popf.report.page.render", interrupt)
    status, _, err = run("model.popf", "test.csv", "-o", tmp_path / "page.html")
    assert status == 130
    assert "interrupted" in err
    assert not list(tmp_path.iterdir())
