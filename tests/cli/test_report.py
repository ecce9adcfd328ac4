"""``popf report``: the page from files, and one line where something is wrong."""

import re

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import popf
from popf import POPFClassifier
from popf.datasets import make_energy_theft
from popf.table_models import open_model
from table_commands import QUICK, facts, fit, fitting, pd, printed, refused, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data = make_energy_theft(n_samples=900, theft_rate=0.2, realistic=False, random_state=6)
    frame = pd.DataFrame(data.data.round(3), columns=data.feature_names)
    frame.insert(0, "consumer", [f"C-{number}" for number in range(900)])
    frame["region"] = np.random.default_rng(0).choice(["north", "south"], 900)
    frame["stolen"] = np.where(data.target == 1, "yes", "no")
    frame[:400].to_csv(folder / "train.csv", index=False)
    frame[400:].to_csv(folder / "test.csv", index=False)
    fit(folder / "train.csv", folder / "model.popf", *QUICK)
    return folder


@pytest.fixture
def report(folder, tmp_path, monkeypatch):
    """The words of a command that reports on a model in the folder, to a page elsewhere."""
    monkeypatch.chdir(folder)
    return lambda *words: ["report", *words, "-o", tmp_path / "page.html"]


def test_a_model_and_a_file_give_a_page(report, tmp_path, capsys):
    words = report("model.popf", "test.csv", "--cost-fp", 1, "--cost-fn", 10)
    said = printed(capsys, *words)
    assert said.out.startswith(f"Wrote {tmp_path / 'page.html'}: 500 rows")
    assert "if a miss costs 10 times as much as a false alarm" in said.out
    assert said.err == ""
    (page,) = tmp_path.iterdir()
    text = page.read_text(encoding="utf-8")
    for words in ("How likely is stolen = yes?", "model.popf on test.csv", ">C-4", "region"):
        assert words in text
    assert re.search(r'A miss costs as much as <input [^>]*value="10"', text)


def test_the_costs_that_the_model_was_fitted_with_are_remembered(report, tmp_path, capsys):
    costs = (*QUICK, "--cost-fp", 2, "--cost-fn", 14)
    run(*fitting("train.csv", tmp_path / "m.popf", *costs))
    words = report(tmp_path / "m.popf", "test.csv")
    own = open_model(tmp_path / "m.popf").layout.threshold
    found = facts(capsys, *words)
    assert (found["miss_per_false_alarm"], found["threshold"]) == (7.0, own)
    other = facts(capsys, *words, "--positive", "no")
    assert other["miss_per_false_alarm"] == pytest.approx(1 / 7)
    assert other["threshold"] == pytest.approx(1 - own)
    assert "How likely is stolen = no?" in (tmp_path / "page.html").read_text(encoding="utf-8")
    asked = facts(capsys, *words, "--cost-fp", 1, "--cost-fn", 3)
    assert asked["miss_per_false_alarm"] == 3.0
    assert asked["threshold"] == asked["recommended_threshold"]


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_evaluate_and_report_agree_on_every_figure(report, tmp_path, capsys, threshold):
    page = tmp_path / "page.html"
    more = ["--seed", 5, *([] if threshold is None else ["--threshold", threshold])]
    reported = facts(capsys, *report("model.popf", "test.csv", *more))
    assert reported["n_bytes"] == page.stat().st_size
    evaluated = facts(capsys, "evaluate", "model.popf", "test.csv", *more)
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


def test_three_classes_of_a_table_and_of_a_saved_model(report, three, tmp_path, capsys):
    page, test = tmp_path / "page.html", three / "test.csv"
    found = facts(capsys, "evaluate", three / "model.popf", test)["measures"]
    run(*report(three / "model.popf", test))
    text = page.read_text(encoding="utf-8")
    for key in ("log_loss", "brier", "ece", "accuracy", "balanced_accuracy"):
        assert f'<dd class="value">{found[key]["value"]:.3f}</dd>' in text, key
    train, saved = pd.read_csv(three / "train.csv"), tmp_path / "saved.popf"
    model = make_pipeline(StandardScaler(), POPFClassifier("forest"))
    popf.save(model.fit(train[["demand", "load"]], train["stolen"]), saved)
    words = report(saved, test, "--target", "stolen")
    assert "--positive chooses another, the page shows every class" in printed(capsys, *words).out
    run(*words, "--positive", "mid")
    text = page.read_text(encoding="utf-8")
    assert "How likely is each stolen?" in text
    assert "How good are the probabilities of “mid”?" in text


def test_rows_of_one_class_give_no_report(report, tmp_path, capsys):
    test = pd.read_csv("test.csv")
    test[test["stolen"] == "no"].to_csv("one_class.csv", index=False)
    said = refused(capsys, *report("model.popf", "one_class.csv"))
    assert "a report needs samples of this class and of others" in said
    assert not list(tmp_path.iterdir())
