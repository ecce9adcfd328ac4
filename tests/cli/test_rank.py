"""``popf rank``: the order of the rows, what is expected of the first, and tables through pipes."""

import io
import sys
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit

from popf.table_models import open_model
from popf.table_models.ranking import N_EXACT, hits_interval, rank_rows
from table_commands import facts, pd, printed, refused


@pytest.mark.parametrize("n", [0, 1, 3, 9])
@pytest.mark.parametrize("power", [1, 6])
def test_hits_lie_in_the_interval_19_times_in_20(n, power):
    p = np.random.default_rng(n).random(n) ** power
    mass = np.zeros(n + 1)
    for hits in product([0, 1], repeat=n):
        mass[sum(hits)] += np.prod(np.where(hits, p, 1.0 - p))
    lower, upper = hits_interval(p)
    assert mass[:lower].sum() < 0.025 <= mass[: lower + 1].sum()
    assert mass[:upper].sum() < 0.975 <= mass[: upper + 1].sum() + 1e-12


def test_the_interval_of_many_rows_is_that_of_the_exact_distribution():
    p = np.random.default_rng(0).random(N_EXACT)
    exact, normal = hits_interval(p), hits_interval(np.append(p, 0.0))
    assert normal == pytest.approx(exact, abs=1)


@pytest.mark.parametrize("n", [30, N_EXACT, N_EXACT + 1])
def test_a_shift_of_all_log_odds_widens_the_interval(n):
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 4.0, n)
    lower, upper = hits_interval(p, 0.3)
    shifted = expit(logit(p) + 0.3 * rng.standard_normal((4000, 1)))
    hits = (rng.random((4000, n)) < shifted).sum(axis=1)
    assert (hits < lower).mean() < 0.035
    assert (hits > upper).mean() < 0.035
    assert ((hits <= lower) | (hits >= upper)).mean() > 0.04
    assert hits_interval(p, 0.0) == hits_interval(p)


def test_rows_are_ranked_by_probability_or_by_what_a_visit_brings():
    p = np.array([0.5, 0.9, 0.1, 0.5])
    by_probability = rank_rows(p, 3)
    assert by_probability.rows.tolist() == [1, 0, 3]
    assert by_probability.expected_hits == pytest.approx(1.9)
    assert by_probability.lift == pytest.approx(1.9 / 1.5)
    by_gain = rank_rows(p, None, np.array([100.0, 10.0, 1000.0, 300.0]), 20.0)
    assert by_gain.rows.tolist() == [3, 2, 0]  # a visit of row 1 costs more than it brings
    assert by_gain.gains.tolist() == pytest.approx([30.0, -11.0, 80.0, 130.0])


def test_ranked_rows_are_the_most_probable_ones(place, tmp_path, capsys):
    out = tmp_path / "visits.csv"
    words = ("rank", place / "model.popf", place / "new.csv", "-o", out)
    found = facts(capsys, *words, "--budget", 20)
    new = pd.read_csv(place / "new.csv", dtype={"consumer": str})
    p = open_model(place / "model.popf").score(new).probability[:, 1]
    listed = pd.read_csv(out, dtype={"consumer": str})
    assert list(listed) == ["rank", "consumer", "probability_yes"]
    assert listed["consumer"].tolist() == new["consumer"][np.argsort(-p)[:20]].tolist()
    assert (found["n_rows"], found["n_ranked"], found["positive"]) == (90, 20, "yes")
    assert found["expected_hits"] == pytest.approx(np.sort(p)[-20:].sum())
    assert found["lift"] == pytest.approx(found["expected_hits"] / (20 * p.mean()))
    gain = facts(capsys, *words, "--value", "demand", "--visit-cost", 500)
    listed = pd.read_csv(out)
    assert listed["expected_gain"].is_monotonic_decreasing
    assert listed["expected_gain"].min() > 0
    assert gain["expected_gain"] == pytest.approx(listed["expected_gain"].sum(), rel=1e-6)
    first, *_, last = printed(capsys, *words, "--budget", 15).out.splitlines()
    assert first.startswith("Ranked 90 rows of")
    assert "positive class: yes" in first
    assert "... 5 more in" in last


def test_results_keep_their_names_and_three_classes_need_one(place, three, tmp_path, capsys):
    new = pd.read_csv(place / "new.csv").rename(columns={"consumer": "rank"})
    new.to_csv(tmp_path / "n.csv", index=False)
    clash = ("rank", place / "model.popf", tmp_path / "n.csv", "--id", "rank")
    assert "has the name of an output column" in refused(capsys, *clash)
    words = ("rank", three / "model.popf", three / "test.csv")
    assert "choose the positive one with --positive" in refused(capsys, *words)
    assert facts(capsys, *words, "--positive", "top")["positive"] == "top"


@pytest.mark.parametrize(
    "command",
    ["predict model.popf {}", "rank model.popf {} -o -", "evaluate model.popf {}", "convert {} -"],
)
def test_a_dash_is_standard_input_and_output(place, monkeypatch, capsys, command):
    monkeypatch.chdir(place)
    piped = io.TextIOWrapper(io.BytesIO((place / "test.csv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", piped)
    through_pipes = printed(capsys, *command.format("-").split()).out
    from_file = printed(capsys, *command.format("test.csv").split()).out
    assert through_pipes == from_file.replace("test.csv", "standard input")
    assert through_pipes


def test_visits_are_compared_with_what_the_ranking_promised(place, tmp_path, capsys):
    out, model = tmp_path / "visits.csv", place / "model.popf"
    words = ("rank", model, place / "test.csv", "--budget", 40, "-o", out)
    ranking = facts(capsys, *words, "--all-columns")
    listed, test = pd.read_csv(out), pd.read_csv(place / "test.csv")
    assert list(listed) == [
        "rank",
        "consumer",
        "probability_yes",
        "demand",
        "load",
        "region",
        "stolen",
    ]
    both = listed.merge(test, on="consumer", suffixes=("", "_was"))
    assert all(both[name].equals(both[f"{name}_was"]) for name in ("demand", "region", "stolen"))
    found = facts(capsys, "evaluate", model, out)["visits"]
    assert found["promised"] == pytest.approx(ranking["expected_hits"], abs=1e-4)
    ends = ranking["expected_hits_lower"], ranking["expected_hits_upper"]
    assert (found["lower"], found["upper"]) == ends
    assert found["found"] == (listed["stolen"] == "yes").sum()
    said = printed(capsys, "evaluate", model, out)
    summary = f"Promised {found['promised']:.0f} hits in 40 visits, found {found['found']}; "
    assert summary + f"{ends[0]} to {ends[1]} were to be expected." in said.out
    assert "no random sample" in said.err
    assert facts(capsys, "evaluate", model, place / "test.csv")["visits"] is None
    listed[["rank", "consumer", "stolen"]].to_csv(tmp_path / "bare.csv", index=False)
    bare = refused(capsys, "evaluate", model, tmp_path / "bare.csv")
    assert "a list without features: write it by `popf rank --all-columns`" in bare
    listed.assign(probability_yes="high").to_csv(tmp_path / "odd.csv", index=False)
    assert "column 'probability_yes'" in refused(capsys, "evaluate", model, tmp_path / "odd.csv")
    test.assign(rank=1).to_csv(tmp_path / "clash.csv", index=False)
    clash = refused(capsys, "rank", model, tmp_path / "clash.csv", "--all-columns", "-o", out)
    assert "column 'rank' has the name of an output column" in clash
