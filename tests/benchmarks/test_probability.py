"""The benchmark of probabilities, end to end on tiny runs, and what it makes of its scores."""

import json
import math
import warnings

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import brier_score_loss

from benchmarks.page import file_by_suite
from benchmarks.probability import __main__ as command
from benchmarks.probability import contestants
from benchmarks.probability import page as probability_page
from benchmarks.probability.contestants import (
    MAKERS,
    MAPPED,
    MULTINOMIAL,
    PAPER,
    PRIOR,
    SOFT,
    SVM,
)
from benchmarks.probability.datasets import GENERATED, PUBLIC, QUICK, datasets
from benchmarks.probability.journal import Journal
from benchmarks.probability.measure import METRICS, measure, score
from benchmarks.probability.summary import against, criteria, means_of, ranks, summarise
from benchmarks.probability.tables import tables
from benchmarks.tables import as_text

FAST = (SOFT, MAPPED, MULTINOMIAL, PAPER, "logistic regression", PRIOR)


def tiny(out, *more):
    arguments = ["--datasets", "moons", "iris", "--out", out, "--contestants", *FAST, *more]
    return command.main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "probability-tiny.json"
    assert tiny(out, "--seeds", 2) == 0
    return out


def run_of(dataset, seed, losses, kind="binary", **more):
    scores = {
        name: {**dict.fromkeys(METRICS, loss), "fit": 0.0, "predict": 0.0, "warnings": 0.0}
        for name, loss in losses.items()
    }
    run = {"dataset": dataset, "kind": kind, "seed": seed, "scores": scores}
    return {**run, "failed": {}, "absent": [], **more}


def means(**by_dataset):
    """The same number for every metric, by dataset and contestant."""
    runs = [run_of(dataset, 0, losses) for dataset, losses in by_dataset.items()]
    return means_of(runs)


def test_a_tiny_run_has_every_dataset_seed_and_contestant(tiny_run):
    content = json.loads(tiny_run.read_text(encoding="utf-8"))
    found = {(run["dataset"], run["seed"]): set(run["scores"]) for run in content["runs"]}
    binary, multiclass = set(FAST) - {MULTINOMIAL}, set(FAST) - {PAPER}
    assert found == {
        **{("moons", seed): binary for seed in range(2)},
        **{("iris", seed): multiclass for seed in range(2)},
    }
    assert not any(run["failed"] for run in content["runs"])
    for run in content["runs"]:
        assert run["n_train"] == (run["n_train"] + run["n_test"]) // 4
        prior = run["scores"][PRIOR]
        assert prior["AUC"] == 0.5
        assert prior["balanced accuracy"] == pytest.approx(1 / run["n_classes"])
        assert prior["log loss"] == pytest.approx(math.log(run["n_classes"]), abs=0.01)
        assert run["scores"][SOFT]["log loss"] < prior["log loss"]
        assert run["scores"][MAPPED]["log loss"] < prior["log loss"]


def test_the_tables_show_everyone_and_the_criteria(tiny_run):
    shown = "\n".join(map(as_text, tables(Journal.resume(tiny_run).content["summary"])))
    for text in (*FAST, "Means over 1 binary datasets, 2 seed(s) each", "never above"):
        assert text in shown


def test_the_page_shows_the_tables(tiny_run, tmp_path):
    out = tmp_path / "page.md"
    probability_page.main(["--results", str(tiny_run), "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    for shown in (*FAST, "## Criteria, binary", "## Means over 1 multiclass datasets", "| fit |"):
        assert shown in text
    few = tmp_path / "probability-1-seeds.json"
    few.write_text(tiny_run.read_text(encoding="utf-8"), encoding="utf-8")
    assert probability_page.latest(tmp_path).path == few
    with pytest.raises(ValueError, match="run the benchmark first"):
        probability_page.latest(tmp_path / "nowhere")


def test_runs_in_the_file_are_not_made_again(tiny_run, monkeypatch, capsys):
    before = tiny_run.read_text(encoding="utf-8")

    def forbidden(*_):
        raise AssertionError("measured again")

    monkeypatch.setattr(command, "measure", forbidden)
    assert tiny(tiny_run, "--seeds", 2) == 0
    assert tiny_run.read_text(encoding="utf-8") == before
    assert "4 of 4 runs are in" in capsys.readouterr().err


def test_a_run_that_is_stopped_keeps_what_was_finished(tmp_path, monkeypatch, capsys):
    out = tmp_path / "probability.json"
    done = []

    def stopped(dataset, seed, only):
        if done:
            raise KeyboardInterrupt
        done.append((dataset.name, seed))
        return measure(dataset, seed, only)

    monkeypatch.setattr(command, "measure", stopped)
    assert tiny(out, "--seeds", 1) == 130
    assert [(run["dataset"], run["seed"]) for run in Journal.resume(out).runs] == done
    assert "stopped" in capsys.readouterr().out
    monkeypatch.undo()
    assert tiny(out, "--seeds", 1) == 0
    assert len(Journal.resume(out).runs) == 2
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_runs_in_the_file_are_made_again_on_request(tmp_path, monkeypatch):
    out, made = tmp_path / "probability.json", []

    def counted(dataset, seed, only):
        made.append(dataset.name)
        return run_of(dataset.name, seed, dict.fromkeys(FAST, 0.1 * len(made)), dataset.kind)

    monkeypatch.setattr(command, "measure", counted)
    for _ in range(2):
        assert tiny(out, "--seeds", 1, "--again") == 0
    assert made == 2 * ["moons", "iris"]
    losses = {run["dataset"]: run["scores"][SOFT]["log loss"] for run in Journal.resume(out).runs}
    assert losses == pytest.approx({"moons": 0.3, "iris": 0.4})


def test_a_further_contestant_joins_the_runs_that_are_there(tmp_path):
    journal = Journal(tmp_path / "probability.json")
    journal.add(run_of("a", 0, {SOFT: 0.3}))
    assert journal.has("a", 0)
    assert not journal.has("a", 0, (SVM,))
    journal.add(run_of("a", 0, {SVM: 0.4}))
    (run,) = Journal.resume(journal.path).runs
    assert {name: scores["log loss"] for name, scores in run["scores"].items()} == {
        SOFT: 0.3,
        SVM: 0.4,
    }


def test_the_page_of_the_timings_passes_these_files_over(tiny_run):
    assert file_by_suite(tiny_run.parent) == {}


def test_a_file_of_something_else_is_refused(tmp_path, capsys):
    out = tmp_path / "other.json"
    out.write_text('{"schema": 1, "scale": "full"}', encoding="utf-8")
    with pytest.raises(SystemExit):
        tiny(out)
    assert "is not a file of benchmarks.probability" in capsys.readouterr().err


def test_every_contestant_gives_probabilities():
    run = measure(datasets()["versicolor or virginica"], 0)
    assert run["failed"] == {}
    assert set(run["scores"]) == set(MAKERS) - {MULTINOMIAL}
    for name, scores in run["scores"].items():
        assert all(math.isfinite(value) for value in scores.values()), name


def test_all_see_one_split_standardised_by_its_training_part(monkeypatch):
    seen = []

    class Witness(DummyClassifier):
        def fit(self, X, y):
            seen.append((X, y))
            return super().fit(X, y)

    monkeypatch.setattr(
        contestants, "MAKERS", {name: lambda task: Witness(strategy="prior") for name in "ab"}
    )
    measure(datasets()["moons"], 3)
    (X, y), (other, _) = seen
    np.testing.assert_array_equal(X, other)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    assert np.bincount(y).tolist() == [50, 50]


def test_one_that_fails_is_named_and_the_others_go_on(monkeypatch):
    class Broken(DummyClassifier):
        def fit(self, X, y):
            raise RuntimeError("no luck")

    monkeypatch.setitem(MAKERS, "logistic regression", lambda task: Broken())
    run = measure(datasets()["moons"], 0, (PRIOR, "logistic regression"))
    assert run["failed"] == {"logistic regression": "RuntimeError: no luck"}
    assert set(run["scores"]) == {PRIOR}
    part = summarise([run])["binary"]
    assert "failed fits: logistic regression 1" in as_text(tables({"binary": part})[0])


def test_warnings_are_counted_and_go_no_further(monkeypatch):
    class Anxious(DummyClassifier):
        def fit(self, X, y):
            warnings.warn("hm", UserWarning, stacklevel=1)
            return super().fit(X, y)

    monkeypatch.setitem(MAKERS, PRIOR, lambda task: Anxious(strategy="prior"))
    assert measure(datasets()["moons"], 0, (PRIOR,))["scores"][PRIOR]["warnings"] == 1.0


def test_scores_are_those_of_their_definitions():
    y, p = np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.4, 0.1])
    found = score(y, np.column_stack([1 - p, p]), np.array([0, 1]))
    assert found["Brier"] == pytest.approx(brier_score_loss(y, p))
    assert found["log loss"] == pytest.approx(-np.log([0.8, 0.7, 0.4, 0.9]).mean())
    assert found["AUC"] == 1.0
    assert found["balanced accuracy"] == 0.75
    assert found["ECE"] == pytest.approx((0.2 + 0.3 + 0.6 + 0.1) / 4)
    three = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    found = score(np.arange(3), three, np.arange(3))
    assert found["Brier"] == pytest.approx((0.38 + 0.24 + 0.14) / 6)
    assert found["AUC"] == 1.0
    with pytest.raises(ValueError, match="not finite"):
        score(y, np.full((4, 2), np.nan), np.array([0, 1]))


def test_ranks_and_tests_are_paired_over_datasets():
    table = means(
        a={SOFT: 0.1, SVM: 0.2, PRIOR: 0.7},
        b={SOFT: 0.3, SVM: 0.2, PRIOR: 0.7},
        c={SOFT: 0.2, SVM: 0.2, PRIOR: 0.7, "Gaussian process": 0.1},
    )
    assert ranks(table, "log loss") == pytest.approx({SOFT: 1.5, SVM: 1.5, PRIOR: 3.0})
    assert ranks(table, "AUC")[PRIOR] == 1.0  # there, more is better
    found = against(table, "log loss")
    assert {key: found[PRIOR][key] for key in ("wins", "losses", "p")} == {
        "wins": 3,
        "losses": 0,
        "p": 0.25,
    }
    assert (found[SVM]["wins"], found[SVM]["losses"]) == (1, 1)
    assert found["Gaussian process"]["datasets"] == 1
    same = against(means(a={SOFT: 0.1, SVM: 0.1}), "log loss")
    assert same[SVM]["p"] is None


def test_a_mean_needs_every_seed():
    runs = [run_of("a", 0, {SOFT: 0.1, SVM: 0.2}), run_of("a", 1, {SOFT: 0.3})]
    (found,) = means_of(runs).values()
    assert set(found) == {SOFT}
    assert found[SOFT]["log loss"] == pytest.approx(0.2)


def test_criteria_name_the_datasets_that_miss_them():
    near, prior, calibrated = criteria(
        means(a={SOFT: 0.2, SVM: 0.2, PRIOR: 0.7}, b={SOFT: 0.71, SVM: 0.6, PRIOR: 0.7})
    )
    assert near["value"] == pytest.approx(0.455)
    assert near["limit"] == pytest.approx(1.05 * 0.4)
    assert not near["met"]
    assert prior["worse"] == {"b": [0.71, 0.7]}
    assert not prior["met"]
    assert set(calibrated["worse"]) == {"b"}
    part = summarise([run_of("b", 0, {SOFT: 0.71, SVM: 0.6, PRIOR: 0.7})])["binary"]
    assert tables({"binary": part})[-1].rows[0][:3] == ("b", "0.7100 > 0.6300", "0.7100 > 0.7000")
    assert all(entry["met"] for entry in criteria(means(a={SOFT: 0.2, SVM: 0.2, PRIOR: 0.7})))


def test_the_map_is_held_to_more():
    row = {SOFT: 0.205, MAPPED: 0.205, SVM: 0.2, PRIOR: 0.7}
    met = {entry["criterion"]: entry["met"] for entry in criteria(means(a=row))}
    assert len(met) == 6
    assert met[f"{SOFT}: mean log loss at most 1.05 × {SVM}"]
    assert not met[f"{MAPPED}: mean log loss at most that of {SVM}"]
    assert against(means(a=row), "log loss", MAPPED)[SVM]["losses"] == 1


def test_datasets_are_seeded_and_have_the_classes_they_promise():
    for name, dataset in datasets().items():
        X, y = dataset.load(0)
        counts = np.bincount(y)
        assert np.isfinite(X).all(), name
        assert (len(counts) == 2) == (dataset.kind == "binary"), name
        assert counts.min() >= 20, name
        again, _ = dataset.load(0)
        np.testing.assert_array_equal(X, again)
        other, _ = dataset.load(1)
        assert np.array_equal(X, other) == (name not in GENERATED), name


def test_without_the_public_data_the_others_remain(tmp_path, monkeypatch):
    monkeypatch.setenv("POPF_DATA", str(tmp_path))
    found = datasets()
    assert not set(PUBLIC) & set(found)
    assert set(QUICK) <= set(found)


def test_an_unknown_dataset_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["--datasets", "atlantis"])
    assert "no dataset 'atlantis' is at hand" in capsys.readouterr().err
