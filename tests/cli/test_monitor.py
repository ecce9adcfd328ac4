"""Watching probabilities over time: the rule, how early it finds, the command."""

import json

import numpy as np
import pytest

from popf.__main__ import main
from popf.datasets import make_energy_theft_months
from popf.monitoring import alarms, detection_table, make_series, rises

pd = pytest.importorskip("pandas", reason="tables need popf[cli]")
pytest.importorskip("typer", reason="the command line needs popf[cli]")


def naive_rise(values, recent, history):
    """The rule as it is stated, for one series."""
    found = []
    for at in range(len(values)):
        past, now = values[: max(0, at - recent + 1)], values[max(0, at - recent + 1) : at + 1]
        ready = len(past) >= history and len(now) == recent
        found.append(np.mean(now) - np.median(past) if ready else np.nan)
    return found


@pytest.mark.parametrize("recent", [1, 2, 3])
@pytest.mark.parametrize("history", [1, 4])
def test_the_rise_is_what_the_rule_says(recent, history):
    p = np.random.default_rng(0).random((9, 12))
    expected = [naive_rise(row, recent, history) for row in p.tolist()]
    np.testing.assert_allclose(rises(p, recent, history), expected, atol=1e-12)


def test_series_of_different_lengths_do_not_disturb_each_other():
    p = np.random.default_rng(1).random((5, 10))
    lengths = [10, 3, 7, 1, 9]
    unit = np.concatenate([np.full(n, i) for i, n in enumerate(lengths)])
    time = np.concatenate([np.arange(n) * 2.0 for n in lengths])
    value = np.concatenate([p[i, :n] for i, n in enumerate(lengths)])
    order = np.random.default_rng(2).permutation(len(unit))
    series = make_series(unit[order], time[order], value[order])
    for row, first in enumerate(series.units):
        who = unit[order][first]
        n = lengths[who]
        np.testing.assert_array_equal(series.probability[row, :n], p[who, :n])
        assert np.isnan(series.probability[row, n:]).all()
        expected = naive_rise(p[who, :n].tolist(), 2, 1)
        np.testing.assert_allclose(rises(series.probability)[row, :n], expected, atol=1e-12)


def test_a_steady_probability_is_no_alarm_and_a_step_is_one_at_once():
    steady = np.full((1, 8), 0.95)
    step = np.array([[0.1] * 4 + [0.9] * 4])
    assert alarms(rises(steady), 0.3).tolist() == [-1]
    assert alarms(rises(step), 0.3).tolist() == [4]
    assert alarms(rises(step), 0.5).tolist() == [5]


def test_one_consumer_twice_at_one_time_is_refused():
    with pytest.raises(ValueError, match="rows 1 and 3"):
        make_series([4, 5, 4], [1, 1, 1], [0.1, 0.2, 0.3])


def test_limits_are_set_on_one_side_and_measured_on_the_other():
    rng = np.random.default_rng(3)
    rise = rng.random((400, 6))
    onset = np.full(400, -1)
    onset[300:] = 2
    rise[300:, 3:] += 2.0  # found one period after it began
    calibration = np.arange(400) % 2 == 0
    for row in detection_table(rise, onset, calibration=calibration, rates=[0.02, 0.2]):
        peaks = rise[:300].max(axis=1)
        assert (peaks[::2] >= row.limit).mean() <= row.aimed
        assert row.false_alarm_rate == (peaks[1::2] >= row.limit).mean()
        first = [int(np.flatnonzero(r >= row.limit)[0]) for r in rise[301::2]]
        assert row.found == np.mean([at >= 2 for at in first])
        assert row.too_early == pytest.approx(1 - row.found)
        assert row.median_delay == np.median([at - 2 for at in first if at >= 2])
        assert row.found_lower < row.found < row.found_upper or row.found == 1.0


def test_a_table_needs_both_kinds_of_consumers():
    with pytest.raises(ValueError, match="give more consumers"):
        detection_table(np.zeros((4, 3)), [-1] * 4, calibration=[True, False, True, False])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Monthly data of many consumers, and a model of others."""
    folder = tmp_path_factory.mktemp("monitor")
    drawn = make_energy_theft_months(n_consumers=300, n_months=12, theft_rate=0.3, random_state=0)
    frame = pd.DataFrame(drawn.data, columns=drawn.feature_names).round(4)
    frame.insert(0, "month", [f"2024-{m + 1:02d}" for m in drawn.month])
    frame.insert(0, "consumer", [f"C{c:03d}" for c in drawn.consumer])
    frame["stolen"] = np.where(drawn.target == 1, "yes", "no")
    known = drawn.consumer < 150
    frame[known].to_csv(folder / "past.csv", index=False)
    frame[~known].sample(frac=1.0, random_state=0).to_csv(folder / "months.csv", index=False)
    words = ["fit", folder / "past.csv", "--target", "stolen", "--drop", "month"]
    words += ["--one-per", "consumer", "--n-jobs", "1", "-o", folder / "model.popf"]
    assert main(list(map(str, words))) == 0
    return folder


def monitor(place, *words):
    base = ["monitor", place / "model.popf", place / "months.csv", "--id", "consumer"]
    return main([*map(str, base), "--time", "month", *map(str, words)])


def test_those_who_rise_are_listed_the_most_first(place, tmp_path, capsys):
    assert monitor(place, "-o", tmp_path / "rising.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    listed = pd.read_csv(tmp_path / "rising.csv")
    assert listed["consumer"].tolist() == [row["consumer"] for row in found["rising"]]
    assert listed["highest_rise"].is_monotonic_decreasing
    assert found["n_units"] == 150
    months = pd.read_csv(place / "months.csv").sort_values(["consumer", "month"])
    scored = tmp_path / "scored.csv"
    months.to_csv(tmp_path / "sorted.csv", index=False)
    words = ("predict", place / "model.popf", tmp_path / "sorted.csv", "--id", "consumer")
    assert main([*map(str, words), "-o", str(scored)]) == 0
    p = pd.read_csv(scored)["probability_yes"].to_numpy().reshape(150, 12)
    names = months["consumer"].to_numpy()[::12]
    rise = [naive_rise(row, 2, 1) for row in p.tolist()]
    expected = {name for name, row in zip(names, rise, strict=True) if np.nanmax(row) >= 0.3}
    assert set(listed["consumer"]) == expected
    assert 10 < len(expected) < 100
    for _, row in listed.iterrows():
        own = rise[names.tolist().index(row["consumer"])]
        first = int(np.flatnonzero(np.nan_to_num(own, nan=-1) >= 0.3)[0])
        assert row["first_alarm"] == f"2024-{first + 1:02d}"
        assert row["at_alarm"] - row["before"] == pytest.approx(own[first], abs=1e-5)


def test_the_table_tells_how_early_and_how_surely(place, capsys):
    assert monitor(place, "--truth", "stolen", "--json") == 0
    table = json.loads(capsys.readouterr().out)["detection"]
    assert [row["aimed"] for row in table] == [0.01, 0.05, 0.1]
    assert all(row["n_regular"] + row["n_turned"] == 75 for row in table)
    assert [row["limit"] for row in table] == sorted((row["limit"] for row in table), reverse=True)
    assert table[1]["found"] > 0.5  # by chance it would be near the rate of false alarms
    assert monitor(place, "--truth", "stolen") == 0
    assert "median delay" in capsys.readouterr().out


def test_a_picture_of_those_who_rise(place, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert monitor(place, "--plot", tmp_path / "a.png") == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert monitor(place, "--plot", tmp_path / "a.svg") == 0
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    assert monitor(place, "--plot", tmp_path / "a.gif") == 2
    assert "must be .png, .svg or .pdf" in capsys.readouterr().err
    assert monitor(place, "--plot", tmp_path / "none.png", "--rise", "1") == 0
    assert not (tmp_path / "none.png").exists()


def test_what_cannot_be_watched_is_refused(place, tmp_path, capsys):
    def said(*words):
        capsys.readouterr()
        assert main([str(word) for word in words]) == 2
        return capsys.readouterr().err

    base = ("monitor", place / "model.popf", place / "months.csv")
    assert "--id" in said(*base, "--time", "month")
    assert "neither a number nor a date" in said(*base, "--id", "month", "--time", "consumer")
    assert "same consumer" in said(*base, "--id", "stolen", "--time", "month")
    assert "--rise" in said(*base, "--id", "consumer", "--time", "month", "--rise", 3)
    months = pd.read_csv(place / "months.csv")
    months[months["month"] < "2024-03"].to_csv(tmp_path / "two.csv", index=False)
    words = ("monitor", place / "model.popf", tmp_path / "two.csv", "--id", "consumer")
    assert "longer series" in said(*words, "--time", "month")
