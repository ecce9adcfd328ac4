"""``popf evaluate``, ``explain`` and ``info`` on a person's own table."""

import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

import popf
from popf.__main__ import main
from popf.metrics import expected_calibration_error, opf_accuracy_score
from popf.table_models import open_model
from table_commands import facts, fit, refused

pd = pytest.importorskip("pandas", reason="tables need popf[cli]")

# Evaluate


def test_measures_are_those_of_scikit_learn_and_popf(place, capsys):
    found = facts(capsys, "evaluate", place / "model.popf", place / "test.csv", "--threshold", 0.4)
    test = pd.read_csv(place / "test.csv")
    y = (test["stolen"] == "yes").to_numpy()
    model = popf.load(place / "model.popf")
    p = model.predict_proba(test[["demand", "load", "region"]])[:, 1]
    called = p >= 0.4
    expected = {
        "log_loss": log_loss(y, p),
        "brier": brier_score_loss(y, p),
        "ece": expected_calibration_error(y, p, kind="binary"),
        "auc": roc_auc_score(y, p),
        "accuracy": accuracy_score(y, called),
        "balanced_accuracy": balanced_accuracy_score(y, called),
        "opf_accuracy": opf_accuracy_score(y, called),
        "precision": precision_score(y, called),
        "recall": recall_score(y, called),
        "false_alarm_rate": called[~y].mean(),
    }
    measures = found["measures"]
    assert measures.keys() == expected.keys()
    for name, value in expected.items():
        assert measures[name]["value"] == pytest.approx(value, abs=1e-12), name
        assert measures[name]["lower"] < measures[name]["upper"]
        assert measures[name]["lower"] <= value <= measures[name]["upper"]
    assert found["confusion"] == confusion_matrix(y, called).tolist()
    assert found["threshold"] == 0.4


def test_one_class_alone_leaves_some_measures_undefined(place, tmp_path, capsys):
    test = pd.read_csv(place / "test.csv")
    test[test["stolen"] == "no"].to_csv(tmp_path / "no.csv", index=False)
    found = facts(capsys, "evaluate", place / "model.popf", tmp_path / "no.csv")["measures"]
    assert found["auc"] == {"value": None, "lower": None, "upper": None}
    assert found["recall"]["value"] is None
    assert found["accuracy"]["value"] > 0.5
    assert main(["evaluate", str(place / "model.popf"), str(tmp_path / "no.csv")]) == 0
    assert "undefined" in capsys.readouterr().out


# Explain and info


def test_a_path_is_told_in_the_units_of_the_data(place, tmp_path, capsys):
    assert fit(place / "train.csv", tmp_path / "m.popf", "--linear-map", "none") == 0
    train = pd.read_csv(place / "train.csv")
    new = pd.read_csv(place / "new.csv")
    why = facts(capsys, "explain", tmp_path / "m.popf", place / "new.csv", "--row", 17)
    assert why["row"] == 17
    *stations, own = why["path"]
    for station in stations:
        row = train.iloc[station["training_row"] - 1]
        assert station["values"]["region"] == row["region"]
        for name in ("demand", "load"):
            assert station["values"][name] == pytest.approx(row[name], abs=1e-9)
        assert station["label"] == row["stolen"] == why["path_label"]
    assert own["values"]["demand"] == new["demand"][16]
    model = popf.load(tmp_path / "m.popf")
    forest, prepared = model[-1].opf_, model[-1].prepare(model[:-1].transform(new[16:17]))
    (path,) = forest.explain(prepared)
    assert [s["training_row"] for s in stations] == [node + 1 for node in path.nodes]
    assert [s["length"] for s in why["path"][1:]] == pytest.approx(path.weights.tolist())
    assert why["path_cost"] == max(s["length"] for s in why["path"][1:])
    assert why["path"][why["deciding_arc"]]["length"] == why["path_cost"]
    offers = forest.path_costs_by_class(prepared)[0]
    assert list(why["offers"].values()) == pytest.approx(offers.tolist())
    assert sum(why["contributions"].values()) == pytest.approx(1.0)
    assert sum(why["probabilities"].values()) == pytest.approx(1.0)


@pytest.mark.parametrize("linear_map", ["weights", "whitening", "discriminant"])
def test_a_map_is_undone_for_the_eyes_of_people(place, tmp_path, capsys, linear_map):
    train = pd.read_csv(place / "train.csv")
    assert fit(place / "train.csv", tmp_path / "m.popf", "--linear-map", linear_map) == 0
    why = facts(capsys, "explain", tmp_path / "m.popf", place / "new.csv", "--row", 2)
    # One-hot columns are redundant, so a map may lose one of them; not so here.
    for station in why["path"][:-1]:
        row = train.iloc[station["training_row"] - 1]
        assert station["values"]["demand"] == pytest.approx(row["demand"], rel=1e-6, abs=1e-6)
        assert station["values"]["region"] == row["region"]
    assert why["contributions"] is None
    assert main(["explain", str(tmp_path / "m.popf"), str(place / "new.csv"), "--row", "2"]) == 0
    assert "The path, from a prototype of" in capsys.readouterr().out


def test_a_row_is_found_by_its_id(place, capsys):
    words = ("explain", place / "model.popf", place / "new.csv")
    assert facts(capsys, *words, "--where", "consumer=5041")["row"] == 42
    assert "no row" in refused(capsys, *words, "--where", "consumer=nobody")
    assert "beyond the end" in refused(capsys, *words, "--row", 91)
    assert "either --row or --where" in refused(capsys, *words)


def test_an_explanation_names_features_and_the_arc_that_decides(place, capsys):
    assert main(["explain", str(place / "model.popf"), str(place / "new.csv"), "--row", "5"]) == 0
    said = capsys.readouterr().out
    for word in ("Row 5 is called", "demand", "load", "it decides", "What each class offers"):
        assert word in said


def test_info_tells_what_is_in_the_file(place, capsys):
    found = facts(capsys, "info", place / "model.popf")
    assert found["facts"]["table"]["target"] == "stolen"
    assert found["n_samples"] == 200
    assert main(["info", str(place / "model.popf")]) == 0
    said = capsys.readouterr().out
    for word in ("POPFClassifier", "train.csv", "region (categories)", "consumer", "threshold"):
        assert word in said


def test_a_layout_that_makes_no_sense_is_refused(place, tmp_path, capsys):
    model = popf.load(place / "model.popf")
    layout = open_model(place / "model.popf").layout.as_facts()["table"]
    for change in ({"threshold": 7}, {"numbers": ["demand"]}, {"positive": "yes"}, {"ids": [1]}):
        popf.save(model, tmp_path / "m.popf", facts={"table": {**layout, **change}})
        said = refused(capsys, "predict", tmp_path / "m.popf", place / "new.csv")
        assert "makes no sense" in said
