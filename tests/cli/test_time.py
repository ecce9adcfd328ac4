"""``popf fit --time`` and ``popf evaluate --time``: the latest rows judge, and scores by period."""

import json

import numpy as np
import pytest

from popf.__main__ import main
from popf.metrics import evaluate
from popf.table_models import open_model
from table_commands import QUICK, consumers, facts, pd, printed, refused, run

MONTHS = np.array(["2017-11", "2017-12", "2018-01", "2018-02"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Visits of four months, in no order, and a model of the first three."""
    folder = tmp_path_factory.mktemp("time")
    visits = consumers(400).assign(month=MONTHS[np.arange(400) % 4])
    visits.to_csv(folder / "visits.csv", index=False)
    run(*fitting(folder / "visits.csv", folder / "model.popf"))
    return folder


def fitting(data, out, *words):
    more = ("--id", "consumer", "--time", "month", "--test-size", 0.2, *QUICK, *words)
    return ["fit", data, "--target", "stolen", *more, "-o", out]


def changed(files, folder, **columns):
    """Write the visits with other columns."""
    visits = pd.read_csv(files / "visits.csv", dtype={"consumer": str})
    visits.assign(**columns).to_csv(folder / "changed.csv", index=False)
    return folder / "changed.csv"


def test_the_latest_whole_periods_are_kept_aside_and_time_is_no_feature(files, tmp_path, capsys):
    found = facts(capsys, *fitting(files / "visits.csv", tmp_path / "m.popf"))
    visits = pd.read_csv(files / "visits.csv")
    model = open_model(tmp_path / "m.popf")
    assert visits.iloc[model.layout.rows]["month"].unique().tolist() == MONTHS[:3].tolist()
    assert (found["n_rows"], found["test"]["n_rows"]) == (300, 100)
    assert "month" not in model.features
    assert [row["period"] for row in found["test"]["by_period"]] == ["2018-02"]
    half = facts(capsys, *fitting(files / "visits.csv", tmp_path / "m.popf", "--test-size", 0.45))
    assert [row["period"] for row in half["test"]["by_period"]] == ["2018-01", "2018-02"]
    assert (
        "2018-01   100 "
        in printed(
            capsys, *fitting(files / "visits.csv", tmp_path / "m.popf", "--test-size", 0.45)
        ).out
    )


def test_scores_by_period_are_those_of_the_rows_of_the_period(files, capsys):
    words = ("evaluate", files / "model.popf", files / "visits.csv")
    found = facts(capsys, *words)  # the model knows the column
    assert found == facts(capsys, *words, "--time", "month")
    visits = pd.read_csv(files / "visits.csv")
    p = open_model(files / "model.popf").score(visits).probability
    assert [row["period"] for row in found["by_period"]] == MONTHS.tolist()
    for row in found["by_period"]:
        some = (visits["month"] == row["period"]).to_numpy()
        stolen = visits["stolen"][some]
        expected = evaluate(stolen, p[some], pos_label="yes").scores
        assert (row["n_rows"], row["found"]) == (100, (stolen == "yes").sum())
        assert row["promised"] == pytest.approx(p[some, 1].sum())
        for name in ("log_loss", "auc"):
            assert list(row[name].values()) == pytest.approx(list(expected[name]))
    assert "promised  found  log loss" in printed(capsys, *words).out


def test_a_model_with_times_allows_for_shifts_as_between_its_periods(files, tmp_path, capsys):
    visits = pd.read_csv(files / "visits.csv")
    missed = visits["month"].isin(MONTHS[::2]) & (visits.index % 8 < 4)
    data = changed(files, tmp_path, stolen=visits["stolen"].where(~missed, "no"))

    def widths(*words):
        run("fit", data, "--target", "stolen", "--id", "consumer", *QUICK, *words, "-o", model)
        ranking = facts(capsys, "rank", model, data)
        main(["drift", str(model), str(data), "--json"])
        ends = json.loads(capsys.readouterr().out)["expected"]["positives"]
        hits = ranking["expected_hits_upper"] - ranking["expected_hits_lower"]
        return ends["upper"] - ends["lower"], hits, open_model(model).layout.spread

    model = tmp_path / "m.popf"
    narrow, wide = widths("--drop", "month"), widths("--time", "month")
    assert narrow[2] is None
    assert 0.2 < wide[2] < 1.5
    assert wide[0] > 1.3 * narrow[0]
    assert wide[1] > 1.3 * narrow[1]
    assert "time        month" in printed(capsys, "info", model).out


def test_more_classes_have_an_accuracy_by_period(three, tmp_path, capsys):
    test = pd.read_csv(three / "test.csv")
    test.assign(day=np.arange(len(test)) % 2).to_csv(tmp_path / "days.csv", index=False)
    words = ("evaluate", three / "model.popf", tmp_path / "days.csv", "--time", "day")
    found = facts(capsys, *words)["by_period"]
    assert [row["period"] for row in found] == ["0", "1"]
    assert found[0].keys() == {"period", "n_rows", "log_loss", "accuracy"}
    assert "period  rows  log loss" in printed(capsys, *words).out


def test_earlier_rows_of_an_id_in_the_test_rows_are_left_out(files, tmp_path, capsys):
    # Of the consumers visited last, every other one was visited before.
    numbers = np.arange(400)
    again = np.where((numbers % 4 == 3) & (numbers % 8 > 3), numbers - 1, numbers)
    data = changed(files, tmp_path, consumer=[f"C{each:03d}" for each in again])
    said = printed(capsys, *fitting(data, tmp_path / "m.popf"))
    assert "50 earlier rows with a value of 'consumer' in the test rows are left out" in said.err
    assert "250 of 400" in said.out
    assert "test row" in said.out


def test_rows_drawn_at_random_from_a_table_with_dates_are_pointed_out(files, tmp_path, capsys):
    words = ["fit", files / "visits.csv", "--target", "stolen", "--id", "consumer", *QUICK]
    words += ["-o", tmp_path / "m.popf"]
    said = printed(capsys, *words, "--test-size", 0.25).err
    assert "column 'month' holds dates, but the test rows are drawn at random" in said
    assert "--time month tests on the latest rows" in said
    assert "drawn at random" not in printed(capsys, *words).err


def test_times_that_cannot_be_used_are_refused(files, tmp_path, capsys):
    fit, test = fitting, tmp_path / "m.popf"
    months = pd.read_csv(files / "visits.csv")["month"]
    early = ["yes"] + ["no"] * 399
    for columns, words, expected in (
        ({"month": months.replace("2018-01", "soon")}, (), "'soon' (row 3) is neither a number"),
        ({"month": months.replace("2018-01", "")}, (), "row 3 has no time"),
        ({"month": "2018-01"}, (), "--time holds one period only in all 400 rows"),
        ({"consumer": np.arange(400) // 4}, (), "no earlier row without ids of the test rows"),
        ({"stolen": early[::-1]}, (), "no earlier row is of class yes: give --test-size a smaller"),
        ({}, ("--time", "when"), "--time: there is no column 'when'"),
        ({}, ("--time", "stolen"), "column 'stolen' is the target"),
    ):
        said = refused(capsys, *fit(changed(files, tmp_path, **columns), test, *words))
        assert expected in said
        assert not test.exists()
    words = ("evaluate", files / "model.popf", files / "visits.csv", "--time")
    assert "there is no column 'when'" in refused(capsys, *words, "when")
    assert "'north' (row 1) is neither a number" in refused(capsys, *words, "region")
    one = changed(files, tmp_path, month="2018-01")
    found = facts(capsys, "evaluate", files / "model.popf", one)
    assert [row["n_rows"] for row in found["by_period"]] == [400]
