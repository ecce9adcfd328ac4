"""``popf evaluate`` and ``info`` on a person's own table."""

import numpy as np
import pytest

import popf
from popf.metrics import evaluate
from popf.table_models import open_model
from table_commands import QUICK, consumers, facts, pd, printed, refused, run


def test_measures_are_those_of_the_library(place, capsys):
    words = ("evaluate", place / "model.popf", place / "test.csv", "--threshold", 0.4, "--seed", 3)
    found = facts(capsys, *words)
    test = pd.read_csv(place / "test.csv")
    p = popf.load(place / "model.popf").predict_proba(test[["demand", "load", "region"]])
    expected = evaluate(test["stolen"], p, pos_label="yes", threshold=0.4, seed=3)
    assert found["confusion"] == expected.confusion.tolist()
    assert found["measures"].keys() == expected.scores.keys()
    for name, score in expected.scores.items():
        assert list(found["measures"][name].values()) == pytest.approx(list(score)), name
    assert found["threshold"] == 0.4
    said = printed(capsys, *words).out
    assert "balanced accuracy" in said
    assert "OPF accuracy" not in said  # the same, of two classes


def test_intervals_draw_the_values_of_an_id_that_repeats(months, tmp_path, capsys):
    data = months / "good.csv"
    words = ("evaluate", months / "model.popf", data)
    found, table = facts(capsys, *words), pd.read_csv(data)
    assert (found["resampled_id"], found["n_resampled"]) == (
        "consumer",
        table["consumer"].nunique(),
    )
    p = popf.load(months / "model.popf").predict_proba(table[["demand", "load", "region"]])
    expected = evaluate(table["stolen"], p, pos_label="yes", groups=table["consumer"]).scores
    measures = found["measures"]
    assert list(measures["brier"].values()) == pytest.approx(list(expected["brier"]))
    said = f"Intervals: bootstrap over the {found['n_resampled']} values of 'consumer'."
    assert said in printed(capsys, *words).out
    reported = facts(capsys, "report", *words[1:], "-o", tmp_path / "page.html")
    assert reported["measures"] == measures
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"bootstrap over the {found['n_resampled']} values of consumer." in page
    assert facts(capsys, *words, "--id", "month")["n_resampled"] == table["month"].nunique()
    assert "--id stolen holds the labels" in refused(capsys, *words, "--id", "stolen")
    table.drop(columns="consumer").to_csv(tmp_path / "new.csv", index=False)
    nameless = printed(capsys, *words[:2], tmp_path / "new.csv")
    assert "has no column 'consumer' to group rows by" in nameless.err
    assert "Intervals: bootstrap over" not in nameless.out


def test_one_class_alone_leaves_some_measures_undefined(place, tmp_path, capsys):
    test = pd.read_csv(place / "test.csv")
    test[test["stolen"] == "no"].to_csv(tmp_path / "no.csv", index=False)
    words = ("evaluate", place / "model.popf", tmp_path / "no.csv")
    found = facts(capsys, *words)["measures"]
    assert found["auc"] == {"value": None, "lower": None, "upper": None}
    assert found["recall"]["value"] is None
    assert found["accuracy"]["value"] > 0.5
    assert "undefined" in printed(capsys, *words).out


def test_more_classes_have_precision_and_recall_each(three, capsys):
    words = ("evaluate", three / "model.popf", three / "test.csv")
    found = facts(capsys, *words)
    assert "recall" not in found["measures"]
    counts = np.array(found["confusion"])
    recalls, precisions = (counts.diagonal() / counts.sum(axis=axis) for axis in (1, 0))
    assert found["recall_by_class"] == pytest.approx(recalls)
    assert found["precision_by_class"] == pytest.approx(precisions)
    *_, low, mid, top, last = printed(capsys, *words).out.splitlines()
    for line, row, recall in zip((low, mid, top), counts, recalls, strict=True):
        assert line.split()[1:] == [*map(str, row), f"{recall:.3f}"]
    assert last.split() == ["precision", *(f"{share:.3f}" for share in precisions)]


def test_info_tells_what_is_in_the_file(place, capsys):
    found = facts(capsys, "info", place / "model.popf")
    assert found["facts"]["table"]["target"] == "stolen"
    assert found["n_samples"] == 200
    said = printed(capsys, "info", place / "model.popf").out
    for word in ("POPFClassifier", "train.csv", "region (categories)", "consumer", "threshold"):
        assert word in said


def test_a_layout_that_makes_no_sense_is_refused(place, tmp_path, capsys):
    model = popf.load(place / "model.popf")
    layout = open_model(place / "model.popf").layout.as_facts()["table"]
    odd = ({"threshold": 7}, {"numbers": ["demand"]}, {"positive": "yes"}, {"ids": [1]})
    for change in (*odd, {"spread": -1.0}, {"spread": "wide"}, {"time": 1}):
        popf.save(model, tmp_path / "m.popf", facts={"table": {**layout, **change}})
        said = refused(capsys, "predict", tmp_path / "m.popf", place / "new.csv")
        assert "invalid description of its table" in said


def test_rows_that_are_alike_by_chance_are_not_taken_for_training_rows(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 12, 240), "b": rng.integers(0, 12, 240)})
    table["y"] = np.where(table["a"] + rng.integers(0, 3, 240) > 6, "yes", "no")
    for name, rows in (("train", table[:120]), ("test", table[120:])):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    train, model = tmp_path / "train.csv", tmp_path / "model.popf"
    run("fit", train, "--target", "y", *QUICK, "-o", model)
    for name, noticed in (("test", False), ("train", True)):
        said = printed(capsys, "evaluate", model, tmp_path / f"{name}.csv").err
        assert ("same features as a training row" in said) is noticed


def test_training_rows_in_a_file_that_was_saved_again_are_noticed(tmp_path, capsys):
    frame = consumers(120)
    frame["day"] = pd.date_range("2024-01-01", periods=120).strftime("%d.%m.%Y")
    frame.loc[::7, "load"] = np.nan
    frame.to_csv(tmp_path / "train.csv", index=False)
    model = tmp_path / "m.popf"
    run(
        "fit", tmp_path / "train.csv", "--target", "stolen", "--id", "consumer", *QUICK, "-o", model
    )
    again = frame.assign(demand=frame["demand"] * (1.0 + 3e-14))
    again["day"] = pd.to_datetime(again["day"], dayfirst=True).dt.strftime("%Y-%m-%d")
    again.to_csv(tmp_path / "again.csv", index=False)
    said = printed(capsys, "evaluate", model, tmp_path / "again.csv").err
    assert "120 of the 120 rows" in said
