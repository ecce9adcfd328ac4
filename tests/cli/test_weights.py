"""``popf fit --sample-weight``: only ratios matter, and a row of weight 0 is none, in every step."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import popf
from table_commands import QUICK, consumers, facts, fit, fitting, printed, refused, scores

N = 100
WEIGHTS = np.random.default_rng(1).integers(0, 4, N)
WEIGHED = ("--sample-weight", "weight")


def with_gaps(frame, seed=2):
    """Take away nearly a third of the cells; numbers are rounded, so that some are frequent."""
    gaps = np.random.default_rng(seed)
    frame = frame.assign(load=frame["load"].round(1), demand=frame["demand"].round(-2))
    for name in ("demand", "load", "region"):
        frame.loc[gaps.random(len(frame)) < 0.3, name] = np.nan
    return frame


def fitted(folder, capsys, frame, *words):
    """Fit a table; give its probabilities of new rows, and what the fit says of itself."""
    frame.to_csv(folder / "train.csv", index=False)
    said = facts(capsys, *fitting(folder / "train.csv", folder / "m.popf", *words))
    consumers(120, seed=5).to_csv(folder / "new.csv", index=False)
    scored = scores(folder, folder / "scored.csv", model="m.popf")
    return scored["probability_yes"].to_numpy(), said


def test_only_the_ratios_of_weights_matter(tmp_path, capsys):
    frame = with_gaps(consumers(N))
    weighted, large = (
        fitted(tmp_path, capsys, frame.assign(weight=weights), *WEIGHED)[0]
        for weights in (WEIGHTS, 1e6 * WEIGHTS)
    )
    assert_allclose(weighted, large, rtol=0, atol=1e-9)
    plain, _ = fitted(tmp_path, capsys, frame[WEIGHTS > 0])
    assert np.abs(weighted - plain).max() > 0.01  # or the weights would not matter here


def test_large_weights_do_not_flatter_the_held_out_loss(tmp_path, capsys):
    consumers(60).assign(weight=1000).to_csv(tmp_path / "t.csv", index=False)
    heavy, plain = (
        facts(capsys, *fitting(tmp_path / "t.csv", tmp_path / "m.popf", *words))
        for words in (WEIGHED, ("--drop", "weight"))
    )
    assert heavy["held_out"]["pool"] == pytest.approx(plain["held_out"]["pool"], rel=1e-9)


BY_COST = (*QUICK, "--cost-fp", 1, "--cost-fn", 9)


@pytest.mark.parametrize("words", [(), BY_COST], ids=["plain", "by cost"])
def test_weight_zero_is_no_row_whatever_it_holds(tmp_path, capsys, words):
    frame = consumers(N).assign(weight=1.0)
    frame.loc[50:, "weight"] = 0.0
    frame.loc[50, "stolen"] = np.nan
    frame.loc[51, "stolen"] = "unknown"
    frame.loc[52, "region"] = "moon"
    frame.loc[53:60, "demand"] = [1e9, np.nan, np.inf, -1e9, 1e9, 1e9, 1e9, 1e9]
    with_none, said = fitted(tmp_path, capsys, frame, *WEIGHED, *words)
    assert popf.io.describe(tmp_path / "m.popf")["n_samples"] == 50
    without, fewer = fitted(tmp_path, capsys, frame[:50].drop(columns="weight"), *words)
    assert_allclose(with_none, without, rtol=0, atol=1e-9)
    told = {key: said[key] for key in ("n_rows", "n_rows_read", "n_zero_weight")}
    assert told == {"n_rows": 50, "n_rows_read": 100, "n_zero_weight": 50}
    assert fewer["n_zero_weight"] == 0
    for key in ("class_counts", "threshold", "cost_per_row"):
        assert said[key] == pytest.approx(fewer[key]) if said[key] else fewer[key] is None


@pytest.mark.parametrize("words", [WEIGHED, ("--one-per", "meter")])
def test_paths_name_the_rows_of_the_file(tmp_path, capsys, words):
    frame = consumers(N).assign(weight=np.arange(N) % 2, meter=[f"m{i // 3}" for i in range(N)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    dropped = "meter" if words == WEIGHED else "weight"
    fit(tmp_path / "t.csv", tmp_path / "m.popf", "--drop", dropped, *words, *QUICK)
    for row in (1, 8, 30):
        why = facts(capsys, "explain", tmp_path / "m.popf", tmp_path / "t.csv", "--row", row)
        for station in why["path"][:-1]:
            there = frame.iloc[station["training_row"] - 1]
            assert station["values"]["demand"] == pytest.approx(there["demand"], abs=1e-6)
            assert station["label"] == there["stolen"]


def test_one_row_per_consumer_is_a_row_that_counts(tmp_path, capsys):
    frame = consumers(N).assign(weight=np.arange(N) % 2, meter=[f"m{i // 2}" for i in range(N)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = (*WEIGHED, "--one-per", "meter", *QUICK)
    words = fitting(tmp_path / "t.csv", tmp_path / "m.popf", *words)
    found = facts(capsys, *words)
    assert (found["n_rows"], found["n_zero_weight"]) == (50, 50)
    said = " ".join(printed(capsys, *words).out.split())
    assert "rows 50 of 100 (" in said
    assert "left out 50 rows of weight 0" in said


def test_what_is_wrong_is_said_with_the_row_of_the_file(tmp_path, capsys):
    """The first 10 rows weigh nothing, so what is wrong with row 21 is the 11th row that counts."""
    base = consumers(40).assign(weight=1.0, height=1.0)
    base.loc[:9, "weight"] = 0.0

    def said(**cells):
        frame = base.copy()
        for name, (rows, value) in cells.items():
            frame.loc[rows, name] = value
        frame.to_csv(tmp_path / "t.csv", index=False)
        return refused(capsys, *fitting(tmp_path / "t.csv", tmp_path / "m.popf", *WEIGHED))

    assert "in 1 row, the first is row 21" in said(stolen=(20, np.nan))
    assert "row 21: column 'demand' holds infinity" in said(demand=(20, np.inf))
    assert "row 21: the weight in 'weight' must be a non-negative number" in said(weight=(20, -1.0))
    assert "all weights in 'weight' are 0" in said(weight=(slice(None), 0.0))
    assert "only one class, no" in said(weight=(base["stolen"] == "yes", 0.0))
