"""``popf explain``: the log odds by columns, the path, and words that hold when the two disagree."""

import numpy as np
import pytest

import popf
from popf.cli.explain import lines_of
from popf.table_models import TableModel, explain_row, open_model
from popf.table_models.model import Layout
from table_commands import facts, fit, pd, printed, refused

COLUMNS = ["demand", "load", "region"]


@pytest.mark.parametrize("linear_map", ["none", "weights", "whitening", "discriminant"])
def test_a_path_is_told_in_the_units_of_the_data(place, tmp_path, capsys, linear_map):
    fit(place / "train.csv", tmp_path / "m.popf", "--linear-map", linear_map)
    train, new = pd.read_csv(place / "train.csv"), pd.read_csv(place / "new.csv")
    words = ("explain", tmp_path / "m.popf", place / "new.csv", "--row", 17)
    why = facts(capsys, *words)
    assert why["row"] == 17
    *stations, own = why["path"]
    for station in stations:
        row = train.iloc[station["training_row"] - 1]
        # One-hot columns are redundant, so a map may lose one of them; not so here.
        assert station["values"]["region"] == row["region"]
        for name in ("demand", "load"):
            assert station["values"][name] == pytest.approx(row[name], rel=1e-9, abs=1e-9)
        assert station["label"] == row["stolen"] == why["path_label"]
    assert own["values"]["demand"] == new["demand"][16]
    model = popf.load(tmp_path / "m.popf")
    forest, prepared = model.opf_, model.prepare(new[COLUMNS][16:17])
    (path,) = forest.explain(prepared)
    assert [s["training_row"] for s in stations] == [node + 1 for node in path.nodes]
    assert [s["length"] for s in why["path"][1:]] == pytest.approx(path.weights.tolist())
    assert why["path_cost"] == max(s["length"] for s in why["path"][1:])
    assert why["path"][why["deciding_arc"]]["length"] == why["path_cost"]
    offers = forest.path_costs_by_class(prepared)[0]
    assert list(why["offers"].values()) == pytest.approx(offers.tolist())
    if linear_map in ("none", "weights"):  # each axis is one column
        assert sum(why["contributions"].values()) == pytest.approx(1.0)
    else:
        assert why["contributions"] is None
    assert sum(why["probabilities"].values()) == pytest.approx(1.0)
    assert "Path from a prototype of" in printed(capsys, *words).out


def test_dates_are_told_alike_on_the_whole_path():
    days = pd.date_range("2024-01-01", periods=12).strftime("%d.%m.%Y")
    frame = pd.DataFrame({"size": range(12), "day": days})
    model = popf.POPFClassifier().fit(frame, [*"ab"] * 6)
    path = explain_row(TableModel(model, Layout(["size"], dates=["day"])), frame[3:4])["path"]
    assert all(node["values"]["day"].startswith("2024-01-") for node in path)
    assert path[-1]["values"] == {"size": 3, "day": "2024-01-04"}


def test_long_text_is_cut():
    remarks = [f"{i} of many words" * 20 for i in range(12)]
    frame = pd.DataFrame({"size": range(12), "remark": remarks})
    model = popf.POPFClassifier().fit(frame, [*"ab"] * 6)
    why = explain_row(TableModel(model, Layout(["size"], ["remark"])), frame[3:4])
    assert max(map(len, lines_of({"row": 4, **why}, 8))) < 200


def test_a_row_is_found_by_its_id(place, capsys):
    words = ("explain", place / "model.popf", place / "new.csv")
    assert facts(capsys, *words, "--where", "consumer=5041")["row"] == 42
    assert "no row" in refused(capsys, *words, "--where", "consumer=nobody")


def test_the_log_odds_are_split_by_the_columns_of_the_table(place, capsys):
    words = ("explain", place / "model.popf", place / "new.csv", "--row", 5)
    why = facts(capsys, *words)
    split, new = why["log_odds"], pd.read_csv(place / "new.csv")[COLUMNS]
    assert (split["pos_label"], split["against"]) == ("yes", "no")
    assert set(split["features"]) <= set(COLUMNS)
    total = split["prior"] + split["forest"] + sum(split["features"].values())
    p = popf.load(place / "model.popf").predict_proba(new[4:5])[0]
    assert total == pytest.approx(split["total"], abs=1e-9)
    assert total == pytest.approx(np.log(p[1] / p[0]), abs=1e-9)
    said = printed(capsys, *words, "--features", 1).out
    first, share = next(iter(split["features"].items()))
    assert "Contributions to the log odds of yes against no" in said
    value = new[first][4]
    assert f"  {first} = {value if isinstance(value, str) else f'{value:.5g}'}" in said
    assert f"{share:+.2f}" in said
    assert "2 other features" in said
    assert "<- longest arc, the cost of the path" in said


def test_the_words_hold_when_the_path_the_probability_and_the_threshold_disagree(place, capsys):
    model = open_model(place / "model.popf")
    new = pd.read_csv(place / "new.csv")[COLUMNS]
    said = set()
    for row in range(len(new)):
        why = explain_row(model, new[row : row + 1])
        best, p = why["path_label"], why["probabilities"]["yes"]
        if best == ("yes" if p >= 0.5 else "no"):
            # The path and the probability agree; a threshold above or below makes the other label.
            threshold, words = ((1 + p) / 2 if best == "yes" else p / 2), "more probable class, but"
        else:
            threshold, words = 0.5, "but all paths and the columns together make"
        if words in said:
            continue
        said.add(words)
        label = "yes" if p >= threshold else "no"
        model_at = model.with_threshold(threshold)
        lines = lines_of({"row": 1, **explain_row(model_at, new[row : row + 1])}, 8)
        assert lines[0].startswith(f"Row 1 is classified as {label}: the probability of yes")
        (sentence,) = [line for line in lines if line.startswith("The best single path comes from")]
        assert f"comes from {best}, " in sentence
        assert words in sentence
    assert len(said) == 2


def test_three_classes_compare_the_most_probable_with_the_next(three, capsys):
    words = ("explain", three / "model.popf", three / "test.csv", "--row", 9)
    why = facts(capsys, *words)
    first, second, _ = sorted(why["probabilities"], key=why["probabilities"].get, reverse=True)
    split = why["log_odds"]
    assert [split["pos_label"], split["against"]] == [first, second]
    assert why["label"] == first
    ratio = why["probabilities"][first] / why["probabilities"][second]
    assert split["total"] == pytest.approx(np.log(ratio), abs=1e-9)
    said = printed(capsys, *words).out
    assert f"Row 9 is classified as {first}, the most probable of 3 classes." in said
    assert f"log odds of {first} against {second}" in said


@pytest.mark.parametrize("method", ["paper", "forest"])
def test_methods_without_columns_of_their_own_are_explained_too(place, tmp_path, capsys, method):
    fit(place / "train.csv", tmp_path / "m.popf", "--method", method, "--linear-map", "none")
    words = ("explain", tmp_path / "m.popf", place / "new.csv", "--row", 2)
    split = facts(capsys, *words)["log_odds"]
    assert split is None if method == "paper" else split["features"] == {}
    assert ("Contributions to the log odds" in printed(capsys, *words).out) == (method == "forest")
