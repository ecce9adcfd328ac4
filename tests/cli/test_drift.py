"""``popf drift``: what it prints and how it exits, with and without labels, and what it refuses."""

import json

import pytest

from popf.__main__ import main
from table_commands import consumers, facts, fit, pd, printed, refused


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drift")
    consumers(600).to_csv(folder / "train.csv", index=False)
    consumers(500, 1, 1000).to_csv(folder / "same.csv", index=False)
    changed = consumers(500, 2, 5000)
    changed["demand"] += 1500
    changed.loc[::3, "region"] = "east"
    changed.to_csv(folder / "changed.csv", index=False)
    changed.drop(columns="stolen").to_csv(folder / "unlabelled.csv", index=False)
    fit(folder / "train.csv", folder / "model.popf")
    return folder


def test_nothing_has_changed_and_the_promises_are_kept(folder, capsys):
    words = ("drift", folder / "model.popf", folder / "same.csv")
    found = facts(capsys, *words)
    assert found["drifted"] == []
    assert {column["name"] for column in found["columns"]} == {"demand", "load", "region"}
    assert found["n_labelled"] == found["n_rows"] == 500
    stolen = (pd.read_csv(folder / "same.csv")["stolen"] == "yes").sum()
    assert found["found"]["positives"] == stolen
    promised = found["expected"]["positives"]
    assert promised["lower"] <= stolen <= promised["upper"]
    said = printed(capsys, *words).out
    assert "compared with 600 training rows" in said
    assert "Drifted: nothing." in said


def drifted(capsys, *words):
    capsys.readouterr()
    assert main(["drift", *map(str, words)]) == 3
    return capsys.readouterr().out


def test_a_scheduler_sees_by_the_exit_status_that_something_has_changed(folder, capsys):
    model = folder / "model.popf"
    found = json.loads(drifted(capsys, model, folder / "changed.csv", "--json"))
    assert {"demand", "region"} <= set(found["drifted"])
    assert found["columns"][0]["name"] in ("demand", "region")
    (region,) = [column for column in found["columns"] if column["name"] == "region"]
    assert region["unseen"] == pytest.approx(1 / 3, abs=0.01)
    assert "positives" in found["drifted"]
    said = drifted(capsys, model, folder / "changed.csv")
    assert "not as promised" in said
    assert "Drifted: " in said
    without = json.loads(drifted(capsys, model, folder / "unlabelled.csv", "--json"))
    assert without["found"] is None
    assert without["n_labelled"] == 0
    assert without["expected"]["positives"] == found["expected"]["positives"]
    assert "not as promised" not in drifted(capsys, model, folder / "unlabelled.csv")
    far = json.loads(drifted(capsys, model, folder / "unlabelled.csv", "--limit", "1000", "--json"))
    assert far["drifted"] == ["novelty"]


def test_rows_without_a_label_are_left_out_of_the_comparison(folder, tmp_path, capsys):
    some = pd.read_csv(folder / "same.csv")
    some.loc[100:, "stolen"] = None
    some.to_csv(tmp_path / "some.csv", index=False)
    found = facts(capsys, "drift", folder / "model.popf", tmp_path / "some.csv")
    assert (found["n_labelled"], found["n_rows"]) == (100, 500)
    assert found["found"]["positives"] == (some["stolen"] == "yes").sum()
    assert 15 < found["expected"]["positives"]["value"] < 45


def test_bad_input_is_refused(folder, three, tmp_path, capsys):
    model, same = folder / "model.popf", folder / "same.csv"
    rows = pd.read_csv(same)
    rows.drop(columns="load").to_csv(tmp_path / "short.csv", index=False)
    rows.assign(stolen="perhaps").to_csv(tmp_path / "odd.csv", index=False)
    for words, expected in (
        ((three / "model.popf", three / "test.csv"), "needs a model with two"),
        ((model, tmp_path / "short.csv"), "a column that is missing: 'load'"),
        ((model, tmp_path / "odd.csv"), "'perhaps'"),
        ((model, same, "--target", "theft"), "no column 'theft'"),
        ((model, same, "--limit", "0"), "--limit must be above 0"),
        ((model, same, "--id", "who"), "no column 'who'"),
        ((model, tmp_path / "none.csv"), "none.csv"),
    ):
        assert expected in refused(capsys, "drift", *words)
