"""``popf monitor``: who is listed, how early and surely the rule works, the picture."""

import json

import numpy as np
import pytest

from naive_metrics import naive_rise
from popf.__main__ import main
from popf.datasets import make_energy_theft_months

pd = pytest.importorskip("pandas", reason="tables need popf[cli]")
pytest.importorskip("typer", reason="the command line needs popf[cli]")


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
    base = ["monitor", place / "model.popf", place / "months.csv"]  # which knows the ids
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
    months = pd.read_csv(place / "months.csv")
    months.rename(columns={"consumer": "who"}).to_csv(tmp_path / "who.csv", index=False)
    words = ("monitor", place / "model.popf", tmp_path / "who.csv", "--time", "month")
    assert "--id: name the column" in said(*words)
    assert "neither a number nor a date" in said(*base, "--id", "month", "--time", "consumer")
    assert "same consumer" in said(*base, "--id", "stolen", "--time", "month")
    assert "--rise" in said(*base, "--id", "consumer", "--time", "month", "--rise", 3)
    months[months["month"] < "2024-03"].to_csv(tmp_path / "two.csv", index=False)
    words = ("monitor", place / "model.popf", tmp_path / "two.csv", "--id", "consumer")
    assert "longer series" in said(*words, "--time", "month")
