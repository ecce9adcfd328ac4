"""The benchmark of probabilities: small runs end to end, and the tables of made-up runs."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from benchmarks.probability import __main__ as command
from benchmarks.probability.contestants import CONTESTANTS, LESS, OURS, PRIOR, SVM
from benchmarks.probability.datasets import datasets
from benchmarks.probability.journal import Journal
from benchmarks.probability.measure import measure, score
from benchmarks.probability.tables import tables

LOGISTIC = "logistic regression"


def run_of(dataset, losses):
    scores = {
        name: dict.fromkeys(("log loss", "Brier", "ECE"), loss) for name, loss in losses.items()
    }
    for one in scores.values():
        one |= {"AUC": 0.5, "balanced accuracy": 0.5, "fit": 0.0, "predict": 0.0}
    run = {"dataset": dataset, "group": "design", "size": None, "seed": 0, "scores": scores}
    return {**run, "failed": {}, "absent": {}}


def test_a_run_is_kept_and_a_further_contestant_joins_it(tmp_path, capsys):
    out = tmp_path / "runs.jsonl"

    def bench(*contestants):
        options = ["--datasets", "moons", "iris", "--seeds", "1", "--sizes", "60"]
        return command.main([*options, "--out", str(out), "--contestants", *contestants])

    assert bench(PRIOR, "popf paper") == 0
    assert bench(PRIOR, LOGISTIC) == 0
    runs = Journal(out).runs
    binary = runs["moons", 60, 0]
    assert set(binary["scores"]) == {PRIOR, "popf paper", LOGISTIC}
    assert binary["n_train"] == 60
    assert binary["scores"][PRIOR]["log loss"] == pytest.approx(np.log(2))
    assert set(runs["iris", 60, 0]["absent"]) == {"popf paper"}
    before = out.read_text(encoding="utf-8")
    assert bench(PRIOR, LOGISTIC) == 0
    assert out.read_text(encoding="utf-8") == before
    assert "Means over 1 sets, multiclass, 60 training samples" in capsys.readouterr().out


def test_every_contestant_gives_probabilities_or_says_why_not():
    run = measure(datasets()["versicolor or virginica"], 24, 0, [*CONTESTANTS, *LESS])
    assert run["failed"] == {}
    assert all(reason.startswith("not installed") for reason in run["absent"].values())


def test_scores_are_those_of_their_definitions():
    y, p = np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.4, 0.1])
    found = score(y, np.column_stack([1 - p, p]), np.array([0, 1]))
    assert found["Brier"] == pytest.approx(brier_score_loss(y, p))
    assert found["log loss"] == pytest.approx(-np.log([0.8, 0.7, 0.4, 0.9]).mean())
    assert found["AUC"] == 1.0
    assert found["ECE"] == pytest.approx((0.2 + 0.3 + 0.6 + 0.1) / 4)
    assert found["bins"][7] == [1, 0.7, 1]
    three = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    assert score(np.arange(3), three, np.arange(3))["Brier"] == pytest.approx(
        (0.38 + 0.24 + 0.14) / 6
    )


def test_means_ranks_and_tests_are_paired_over_datasets():
    runs = [
        run_of("a", {OURS: 0.1, SVM: 0.2, PRIOR: 0.7}),
        run_of("b", {OURS: 0.3, SVM: 0.2, PRIOR: 0.7}),
        run_of("liver-disorders", {OURS: 0.8, SVM: 0.2, PRIOR: 0.7}),
    ]
    overall, summary, best = tables(runs)[:3]
    rows = {row[0]: dict(zip(overall.header, row, strict=True)) for row in overall.rows}
    assert [row[0] for row in overall.rows] == [SVM, OURS, PRIOR]
    assert rows[OURS]["ratio to SVC"] == "2.000"
    assert rows[OURS]["log loss"] == "0.4000"
    assert rows[OURS]["without liver-disorders"] == "0.2000"
    assert rows[OURS]["rank"] == "2.00"
    assert rows[OURS]["wins : losses"] == "1 : 2"
    assert rows[OURS]["worst excess"] == "+0.100"
    assert summary.rows[0] == (SVM, "0.200", "0.50", "1 of 3")
    assert best.rows[0] == ("a", "0.100", "0.200", SVM)
