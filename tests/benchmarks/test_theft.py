"""The benchmark of theft over time, on a generated file with the layout of the real one."""

import numpy as np
import pandas
import pytest

from benchmarks import theft
from benchmarks.probability.contestants import OURS, PRIOR
from benchmarks.probability.journal import Journal
from inspections import generated_inspections, real_inspections


@pytest.mark.parametrize("name", theft.SPLITS)
def test_everyone_learns_from_earlier_months_only(name):
    months = pandas.date_range("2016-01", "2018-12", freq="MS")
    train, test = theft.split(pandas.DataFrame({"month": months}), name)
    assert train["month"].max() < test["month"].min()
    assert len(test) == {"2018": 12, "rest of 2017": 5}.get(name, 3)


def test_scores_of_known_probabilities():
    happened = np.repeat([1, 0, 1, 0], [3, 1, 1, 995])
    probability = np.repeat([0.9, 0.8, 0.05, 0.01], [3, 1, 1, 995])
    found = theft.score(happened, probability, 0.0)
    assert found["hits in 200"] == found["hits in 500"] == 4
    assert found["inspected"] == 4
    assert found["net gain"] == 3 * theft.GAIN - 4
    assert found["promised in 200"] == pytest.approx(3 * 0.9 + 0.8 + 0.05 + 195 * 0.01)
    assert found["MAP@200"] == pytest.approx((1 + 1 + 1 + 4 / 5) / 4, abs=0.2)


def test_a_run_is_kept_and_2018_is_only_scored_when_asked_for(tmp_path, capsys):
    file, out = tmp_path / "inspections.parquet", tmp_path / "theft.jsonl"
    generated_inspections(2_000).to_parquet(file)

    def bench(*more):
        names = ["--contestants", OURS + theft.FEATURES, theft.PAPER, PRIOR]
        splits = ["--splits", "2017-Q4", "2018-Q1"]
        return theft.main([str(file), *names, *splits, "--out", str(out), *more])

    assert bench() == 0
    assert {run["dataset"] for run in Journal(out).runs.values()} == {"2017-Q4"}
    before = out.read_text(encoding="utf-8")
    assert bench() == 0
    assert out.read_text(encoding="utf-8") == before
    capsys.readouterr()
    assert bench("--final") == 0
    runs = Journal(out).runs
    assert {run["dataset"] for run in runs.values()} == {"2017-Q4", "2018-Q1"}
    for run in runs.values():
        scores = run["scores"]
        assert scores[OURS + theft.FEATURES]["AUC"] > 0.6
        low, high = scores[PRIOR]["expected"][1:]
        assert low <= run["n_positive"] <= high
    assert "Log loss by quarter" in capsys.readouterr().out


def test_sizes_of_the_published_split():
    train, test = theft.split(real_inspections(), theft.PUBLISHED)
    assert len(test) == 9_995
    assert round(test["theft"].mean(), 4) == 0.0487
    assert train["month"].max() == pandas.Timestamp("2017-07-01")
