"""``popf fit --readings``: features of readings, and every other command on raw tables."""

import numpy as np
import pytest

import popf
from inspections import generated_inspections
from popf import ConsumptionFeatures
from table_commands import facts, pd, printed, refused, run

RANGE = "12_anterior:1_anterior"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training rows, new rows and a model."""
    where = tmp_path_factory.mktemp("readings")
    frame = generated_inspections(500).drop(columns=["fecha_inspeccion", "actividad"])
    frame[:350].to_csv(where / "train.csv", index=False)
    frame[350:].to_csv(where / "new.csv", index=False)
    run(*fitting(where), "-o", where / "m.popf")
    return where


def fitting(folder, *words, readings=RANGE):
    words = ["--id", "index", "--n-jobs", 1, "--readings", readings, *words]
    return ["fit", folder / "train.csv", "--target", "target", *words]


def test_the_model_makes_its_features_of_raw_tables(folder, capsys):
    frame = pd.read_csv(folder / "new.csv")
    model = popf.load(folder / "m.popf")
    assert isinstance(model[0], ConsumptionFeatures)
    probability = model.predict_proba(frame.drop(columns=["index", "target"]))[:, 1]
    measures = facts(capsys, "evaluate", folder / "m.popf", folder / "new.csv")["measures"]
    assert 0.6 < measures["auc"]["value"] < 0.99
    run("predict", folder / "m.popf", folder / "new.csv", "-o", folder / "o.csv")
    np.testing.assert_allclose(
        pd.read_csv(folder / "o.csv")["probability_1"], probability, atol=1e-6
    )
    ranked = facts(capsys, "rank", folder / "m.popf", folder / "new.csv", "--budget", "5")
    assert ranked["n_ranked"] == 5
    assert (
        "readings    12: 12_anterior to 1_anterior"
        in printed(capsys, *fitting(folder, "--method", "forest", "-o", folder / "f.popf")).out
    )


def test_explanations_are_in_features_of_readings(folder, capsys):
    shown = facts(capsys, "explain", folder / "m.popf", folder / "new.csv", "--row", "3")
    names = shown["path"][0]["values"].keys()
    assert "readings: trend" in names
    assert "zona" in names
    assert "1_anterior" not in names
    assert {*shown["log_odds"]["features"]} <= {*names}
    page = folder / "r.html"
    run("report", folder / "m.popf", folder / "new.csv", "-o", page)
    assert "readings: " in page.read_text(encoding="utf-8")
    words = ("info", folder / "m.popf")
    assert "POPFClassifier after ConsumptionFeatures" in printed(capsys, *words).out


def test_rows_of_the_training_file_are_recognised(folder, capsys):
    found = printed(capsys, "evaluate", folder / "m.popf", folder / "train.csv")
    assert "350 of the 350 rows of" in found.err
    assert "have the same features as a training row" in found.err


def test_weights_costs_and_the_papers_method_work_with_readings(folder, capsys):
    frame = pd.read_csv(folder / "train.csv").assign(weight=1.0)
    frame.to_csv(folder / "weighted.csv", index=False)
    words = fitting(folder, "--method", "paper", "-o", folder / "p.popf")
    run(*words)
    measures = facts(capsys, "evaluate", folder / "p.popf", folder / "new.csv")["measures"]
    assert measures["auc"]["value"] > 0.5
    words = fitting(folder, "--cost-fp", 1, "--cost-fn", 10, "--sample-weight", "weight")
    words[1] = folder / "weighted.csv"
    words += ["--method", "forest", "--linear-map", "none", "-o", folder / "c.popf"]
    assert facts(capsys, *words)["threshold"] < 0.5


@pytest.mark.parametrize(
    ("readings", "message"),
    [
        ("1_anterior:12_anterior", "column '1_anterior' comes after '12_anterior': swap them"),
        ("12_anterior:zona", "--readings has zona, but readings must be features that are numbers"),
        ("1_anterior:target", "has zona, tipo_tarifa, nivel_tension, material_instalacion, target"),
        ("kwh", "there is no column 'kwh'"),
        ("index", "--readings has index"),
    ],
)
def test_readings_that_cannot_be_are_refused(folder, capsys, readings, message):
    words = fitting(folder, "-o", folder / "x.popf", readings=readings)
    assert message in refused(capsys, *words)


@pytest.mark.parametrize("command", ["evaluate", "predict", "rank", "drift"])
def test_tables_without_readings_are_refused(folder, tmp_path, capsys, command):
    new = pd.read_csv(folder / "new.csv")
    new.loc[:, "zona":].to_csv(tmp_path / "bare.csv", index=False)
    said = refused(capsys, command, folder / "m.popf", tmp_path / "bare.csv")
    assert "the model needs 12 columns that are missing: '12_anterior'" in said


def test_a_reading_is_named_once(folder, capsys):
    words = fitting(folder, "--readings", "3_anterior", "-o", folder / "x.popf")
    assert "--readings has '3_anterior' twice" in refused(capsys, *words)
