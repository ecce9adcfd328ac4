"""``popf monitor``: who is listed, how early and surely the rule works, the picture."""

import numpy as np
import pytest

from naive_metrics import naive_rise
from popf.datasets import make_energy_theft_months
from table_commands import facts, pd, printed, refused, run


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Monthly data of many consumers, and a model of others."""
    folder = tmp_path_factory.mktemp("monitor")
    drawn = make_energy_theft_months(
        n_consumers=300, n_months=12, theft_rate=0.3, realistic=False, random_state=0
    )
    frame = pd.DataFrame(drawn.data, columns=drawn.feature_names).round(4)
    frame.insert(0, "month", [f"2024-{m + 1:02d}" for m in drawn.month])
    frame.insert(0, "consumer", [f"C{c:03d}" for c in drawn.consumer])
    frame["stolen"] = np.where(drawn.target == 1, "yes", "no")
    known = drawn.consumer < 150
    frame[known].to_csv(folder / "past.csv", index=False)
    frame[~known].sample(frac=1.0, random_state=0).to_csv(folder / "months.csv", index=False)
    words = ["fit", folder / "past.csv", "--target", "stolen", "--drop", "month"]
    words += ["--one-per", "consumer", "--n-jobs", "1", "-o", folder / "model.popf"]
    run(*words)
    return folder


def monitor(place, *words, data="months.csv"):
    """The words of a command on a model that knows the ids."""
    return ["monitor", place / "model.popf", place / data, "--time", "month", *words]


def test_those_who_rise_are_listed_the_most_first(place, tmp_path, capsys):
    found = facts(capsys, *monitor(place, "-o", tmp_path / "rising.csv"))
    listed = pd.read_csv(tmp_path / "rising.csv")
    assert listed["consumer"].tolist() == [row["consumer"] for row in found["rising"]]
    assert listed["highest_rise"].is_monotonic_decreasing
    assert found["n_units"] == 150
    months = pd.read_csv(place / "months.csv").sort_values(["consumer", "month"])
    scored = tmp_path / "scored.csv"
    months.to_csv(tmp_path / "sorted.csv", index=False)
    run("predict", place / "model.popf", tmp_path / "sorted.csv", "-o", scored)
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


def test_dates_may_have_time_zones(place, tmp_path, capsys):
    months = pd.read_csv(place / "months.csv")
    months["month"] += "-01T00:00:00+02:00"
    months.to_csv(tmp_path / "zones.csv", index=False)
    plain, zoned = (
        [row["consumer"] for row in facts(capsys, *monitor(place, data=data))["rising"]]
        for data in ("months.csv", tmp_path / "zones.csv")
    )
    assert zoned == plain


def test_the_table_tells_how_early_and_how_surely(place, capsys):
    table = facts(capsys, *monitor(place, "--truth", "stolen"))["detection"]
    assert [row["allowed_rate"] for row in table] == [0.01, 0.05, 0.1]
    assert all(row["n_regular"] + row["n_turned"] == 75 for row in table)
    assert [row["limit"] for row in table] == sorted((row["limit"] for row in table), reverse=True)
    assert table[1]["found"] > 0.5  # by chance it would be near the rate of false alarms
    assert "median delay" in printed(capsys, *monitor(place, "--truth", "stolen")).out


def test_a_picture_of_those_who_rise(place, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    run(*monitor(place, "--plot", tmp_path / "a.svg"))
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    run(*monitor(place, "--plot", tmp_path / "none.png", "--rise", 1))
    assert not (tmp_path / "none.png").exists()


def test_what_cannot_be_watched_is_refused(place, tmp_path, capsys):
    months = pd.read_csv(place / "months.csv")
    months.rename(columns={"consumer": "who"}).to_csv(tmp_path / "who.csv", index=False)
    months[months["month"] < "2024-03"].to_csv(tmp_path / "two.csv", index=False)
    months.assign(month=["1", *months["month"][1:]]).to_csv(tmp_path / "mixed.csv", index=False)
    for words, expected in (
        (monitor(place, data=tmp_path / "mixed.csv"), "'1' (row 1) is a number among dates"),
        (monitor(place, data=tmp_path / "who.csv"), "--id: name the column"),
        (monitor(place, "--time", "consumer"), "neither a number nor a date"),
        (monitor(place, "--id", "stolen"), "same consumer"),
        (monitor(place, data=tmp_path / "two.csv"), "longer series"),
    ):
        assert expected in refused(capsys, *words)
