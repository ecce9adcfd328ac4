"""``popf fit``, ``predict``, ``evaluate``, ``explain`` and ``info`` on a person's own table."""

import gzip
import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import popf
from popf.__main__ import main
from popf.metrics import expected_calibration_error, opf_accuracy_score
from popf.tables import evaluate, evaluation, open_model

pd = pytest.importorskip("pandas", reason="tables need popf[cli]")
pytest.importorskip("typer", reason="the command line needs popf[cli]")


def consumers(n, seed=0, first=0):
    """Make consumers with two numbers, a category, and a label that depends on all three."""
    rng = np.random.default_rng(seed)
    stolen = rng.random(n) < 0.3
    region = np.where(rng.random(n) < 0.5 + 0.3 * stolen, "north", "south")
    return pd.DataFrame(
        {
            "consumer": [f"{first + i:04d}" for i in range(n)],
            "demand": (1000.0 * (rng.normal(size=n) + 1.5 * stolen)).round(3),
            "load": (rng.normal(size=n) - 1.0 * stolen).round(5),
            "region": region,
            "stolen": np.where(stolen, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with training, test and new rows, and a model fitted to the first."""
    folder = tmp_path_factory.mktemp("tables")
    consumers(200).to_csv(folder / "train.csv", index=False)
    consumers(120, 1, 1000).to_csv(folder / "test.csv", index=False)
    consumers(90, 2, 5000).drop(columns="stolen").to_csv(folder / "new.csv", index=False)
    assert fit(folder / "train.csv", folder / "model.popf") == 0
    return folder


def fit(data, out, *words):
    command = ["fit", data, "--target", "stolen", "--id", "consumer", "--n-jobs", "1", "-o", out]
    return main([*map(str, command), *map(str, words)])


def facts(capsys, *words):
    """Run a command with --json, and give what it printed: JSON, and nothing else."""
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def scores(place, out, *words, model="model.popf", data="new.csv"):
    assert main([str(w) for w in ("predict", place / model, place / data, "-o", out, *words)]) == 0
    return pd.read_csv(out, dtype={"consumer": str})


def refused(capsys, *words):
    capsys.readouterr()
    assert main(list(map(str, words))) == 2
    said = capsys.readouterr().err
    assert said.startswith("popf: ")
    assert said.count("\n") == 1
    return said


# ---------------------------------------------------------------- fit and predict


def test_scores_are_those_of_the_same_pipeline_built_by_hand(place, tmp_path):
    frame = consumers(200)
    numbers = frame[["demand", "load"]]
    scaler = StandardScaler().fit(numbers)

    def by_hand(rows):
        one_hot = np.column_stack([rows["region"] == name for name in ("north", "south")])
        return np.column_stack([scaler.transform(rows[["demand", "load"]]), one_hot])

    model = popf.POPFClassifier(random_state=0).fit(by_hand(frame), frame["stolen"])
    new = pd.read_csv(place / "new.csv")
    expected = model.predict_proba(by_hand(new))
    scored = scores(place, tmp_path / "scored.csv")
    np.testing.assert_allclose(scored["probability_yes"], expected[:, 1], atol=1e-6)
    np.testing.assert_allclose(scored["probability_no"], expected[:, 0], atol=1e-6)
    assert scored["predicted"].tolist() == model.predict(by_hand(new)).tolist()
    assert list(scored) == ["consumer", "probability_no", "probability_yes", "predicted"]


def test_ids_are_carried_through_as_they_stand_and_are_no_features(place, tmp_path):
    scored = scores(place, tmp_path / "scored.csv")
    assert scored["consumer"].tolist()[:2] == ["5000", "5001"]
    renamed = consumers(200).assign(consumer=[f"other {i}" for i in range(200)])
    renamed.to_csv(tmp_path / "renamed.csv", index=False)
    assert fit(tmp_path / "renamed.csv", tmp_path / "other.popf") == 0
    again = popf.load(tmp_path / "other.popf")
    assert list(again.feature_names_in_) == ["demand", "load", "region"]
    same = pd.read_csv(place / "new.csv")[["demand", "load", "region"]]
    first = popf.load(place / "model.popf").predict_proba(same)
    np.testing.assert_array_equal(again.predict_proba(same), first)


def test_leading_zeros_of_ids_survive(place, tmp_path):
    assert scores(place, tmp_path / "out.csv", data="train.csv")["consumer"][7] == "0007"


def test_columns_are_found_by_name_whatever_their_order(place, tmp_path):
    new = pd.read_csv(place / "new.csv", dtype={"consumer": str})
    shuffled = new[["region", "load", "consumer", "demand"]].assign(more=1)
    shuffled.to_csv(tmp_path / "shuffled.csv", index=False)
    first = scores(place, tmp_path / "a.csv")
    again = scores(place, tmp_path / "b.csv", data=tmp_path / "shuffled.csv")
    pd.testing.assert_frame_equal(first, again)


@pytest.mark.parametrize("rows", [1, 7, 90, 1000])
def test_the_size_of_the_pieces_does_not_matter(place, tmp_path, rows):
    first = scores(place, tmp_path / "a.csv")
    again = scores(place, tmp_path / "b.csv", "--chunk-rows", rows)
    pd.testing.assert_frame_equal(first, again, rtol=0, atol=2e-6)


def test_parquet_and_packed_files_give_the_same(place, tmp_path):
    pytest.importorskip("pyarrow")
    new = pd.read_csv(place / "new.csv", dtype={"consumer": str})
    new.to_parquet(tmp_path / "new.parquet", index=False)
    (tmp_path / "new.csv.gz").write_bytes(gzip.compress((place / "new.csv").read_bytes()))
    first = scores(place, tmp_path / "a.csv")
    for name in ("new.parquet", "new.csv.gz"):
        again = scores(place, tmp_path / "b.csv", data=tmp_path / name)
        pd.testing.assert_frame_equal(first, again)
    words = ["predict", str(place / "model.popf"), str(place / "new.csv"), "--chunk-rows", "40"]
    assert main([*words, "-o", str(tmp_path / "out.parquet")]) == 0
    kept = pd.read_parquet(tmp_path / "out.parquet")
    np.testing.assert_allclose(kept["probability_yes"], first["probability_yes"], atol=2e-6)
    assert main([*words, "-o", str(tmp_path / "out.csv.gz")]) == 0
    assert (
        gzip.decompress((tmp_path / "out.csv.gz").read_bytes()) == (tmp_path / "a.csv").read_bytes()
    )


def test_other_delimiters_decimal_marks_and_encodings(place, tmp_path, capsys):
    new = pd.read_csv(place / "new.csv", dtype={"consumer": str})
    new.to_csv(tmp_path / "own.csv", sep=";", decimal=",", index=False, encoding="utf-16")
    first = scores(place, tmp_path / "a.csv")
    words = ("--delimiter", ";", "--decimal", ",", "--encoding", "utf-16")
    again = scores(place, tmp_path / "b.csv", *words, data=tmp_path / "own.csv")
    pd.testing.assert_frame_equal(first, again)


def test_without_ids_rows_are_numbered(place, tmp_path):
    frame = consumers(60).drop(columns="consumer")
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.popf"
    assert main(["fit", str(tmp_path / "t.csv"), "--target", "stolen", "-o", str(model)]) == 0
    scored = scores(tmp_path, tmp_path / "s.csv", "--chunk-rows", 25, model="m.popf", data="t.csv")
    assert scored["row"].tolist() == list(range(1, 61))


def test_standard_output_holds_the_table_and_nothing_else(place, tmp_path, capsys):
    first = scores(place, tmp_path / "a.csv")
    capsys.readouterr()
    assert main(["predict", str(place / "model.popf"), str(place / "new.csv")]) == 0
    assert capsys.readouterr().out == (tmp_path / "a.csv").read_text()
    assert len(first) == 90


def test_memory_does_not_grow_with_the_file(place, tmp_path):
    def peak(n):
        pd.concat([pd.read_csv(place / "new.csv", dtype=str)] * n).to_csv(
            tmp_path / "long.csv", index=False
        )
        words = ["predict", place / "model.popf", tmp_path / "long.csv", "-o", tmp_path / "o.csv"]
        command = [*map(str, words), "--chunk-rows", "50", "--n-jobs", "1"]
        assert main(command) == 0  # what is imported or compiled once does not count
        tracemalloc.start()
        assert main(command) == 0
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(pd.read_csv(tmp_path / "o.csv")) == 90 * n
        return found

    assert peak(30) < 1.2 * peak(4) + 2**18


# ---------------------------------------------------------------- the threshold


def test_a_threshold_moves_the_labels(place, tmp_path, capsys):
    scored = scores(place, tmp_path / "a.csv", "--threshold", 0.1)
    called = np.where(scored["probability_yes"] >= 0.1, "yes", "no")
    assert scored["predicted"].tolist() == called.tolist()
    assert (called == "yes").sum() > 20


def test_the_positive_class_may_be_the_first(place, tmp_path):
    words = ("--positive", "no", "--threshold", "0.95")
    assert fit(place / "train.csv", tmp_path / "m.popf", *words) == 0
    scored = scores(place, tmp_path / "a.csv", model=tmp_path / "m.popf")
    expected = np.where(scored["probability_no"] >= 0.95, "no", "yes")
    assert scored["predicted"].tolist() == expected.tolist()
    new = pd.read_csv(place / "new.csv")[["demand", "load", "region"]]
    assert popf.load(tmp_path / "m.popf").predict(new).tolist() == expected.tolist()


def test_costs_choose_a_threshold_on_rows_left_out(place, tmp_path, capsys):
    words = [
        *("fit", place / "train.csv", "--target", "stolen", "--id", "consumer"),
        *("--cost-fp", "1", "-o", tmp_path / "m.popf"),
    ]
    dear = facts(capsys, *words, "--cost-fn", "20")
    cheap = facts(capsys, *words, "--cost-fn", "0.2")
    assert dear["threshold"] < 0.35 < 0.5 < cheap["threshold"]
    for found in (dear, cheap):
        costs = found["cost_per_row"]
        assert costs["at_threshold"] <= min(costs.values()) + 1e-12
        assert "cross-validated" in found["threshold_from"]
    # Not what the training rows themselves would say: there the forest makes no error.
    assert dear["cost_per_row"]["at_threshold"] > 0.1


def test_a_threshold_and_costs_exclude_each_other(place, tmp_path, capsys):
    out = tmp_path / "m.popf"
    base = ["fit", place / "train.csv", "--target", "stolen", "--id", "consumer", "-o", out]
    assert "two ways" in refused(capsys, *base, "--threshold", 0.2, "--cost-fp", 1, "--cost-fn", 2)
    assert "belong together" in refused(capsys, *base, "--cost-fp", 1)
    assert "positive number" in refused(capsys, *base, "--cost-fp", 0, "--cost-fn", 1)
    assert "between 0 and 1" in refused(capsys, *base, "--threshold", 1.5)
    assert "use no or yes" in refused(capsys, *base, "--positive", "maybe")
    assert not out.exists()


# ---------------------------------------------------------------- columns


def test_unknown_categories_are_counted_and_scored(place, tmp_path, capsys):
    new = pd.read_csv(place / "new.csv", dtype={"consumer": str})
    new.loc[[3, 5], "region"] = "moon"
    new.to_csv(tmp_path / "moon.csv", index=False)
    words = ("predict", place / "model.popf", tmp_path / "moon.csv", "-o", tmp_path / "o.csv")
    assert facts(capsys, *words)["unknown_categories"] == {"region": 2}
    assert main(list(map(str, words))) == 0
    said = capsys.readouterr()
    assert "never seen in training, in 2 rows" in said.err
    assert pd.read_csv(tmp_path / "o.csv")["probability_yes"].between(0, 1).all()


@pytest.mark.parametrize("how", ["median", "mean", "most_frequent"])
def test_missing_values_are_imputed_as_told(tmp_path, capsys, how):
    frame = consumers(80)
    frame.loc[[2, 4], "demand"] = np.nan
    frame.loc[9, "region"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False, na_rep="NA")
    out = tmp_path / "m.popf"
    base = ["fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer", "-o", out]
    said = refused(capsys, *base)
    assert "'demand' (2), 'region' (1); the first in row 3" in said
    assert facts(capsys, *base, "--missing", how)["n_imputed"] == 3
    known = frame["demand"].dropna()
    value = {"median": known.median(), "mean": known.mean(), "most_frequent": known.mode()[0]}[how]
    filled = frame.fillna({"demand": value, "region": frame["region"].mode()[0]})
    features = ["demand", "load", "region"]
    model = popf.load(out)
    np.testing.assert_allclose(
        model.predict_proba(frame[features].astype({"region": object})),
        model.predict_proba(filled[features]),
        rtol=1e-9,
    )


def test_other_marks_for_missing_values(tmp_path, capsys):
    frame = consumers(80).astype({"load": object})
    frame.loc[5, "load"] = "n.d."
    frame.to_csv(tmp_path / "t.csv", index=False)
    base = ["fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer"]
    base += ["-o", tmp_path / "m.popf"]
    assert "'n.d.' in row 6" in refused(capsys, *base)
    assert "'load' (1)" in refused(capsys, *base, "--na", "n.d.")
    assert facts(capsys, *base, "--na", "n.d.", "--missing", "mean")["n_imputed"] == 1


def test_numbers_may_be_categories_and_columns_left_out(tmp_path, capsys):
    frame = consumers(80).assign(tariff=np.arange(80) % 3, note="x")
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer")
    words += ("--categorical", "tariff", "--drop", "note", "-o", tmp_path / "m.popf")
    found = facts(capsys, *words)
    assert found["categories"] == ["region", "tariff"]
    assert found["numbers"] == ["demand", "load"]
    assert open_model(tmp_path / "m.popf").layout.categories == ["region", "tariff"]


def test_a_column_of_names_is_no_category(place, tmp_path, capsys):
    out = tmp_path / "m.popf"
    assert main(["fit", str(place / "train.csv"), "--target", "stolen", "-o", str(out)]) == 0
    assert "'consumer' counts up from row to row" in capsys.readouterr().err
    frame = consumers(80).assign(owner=[f"owner {i}" for i in range(80)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    base = ("fit", tmp_path / "t.csv", "--target", "stolen", "--id", "consumer")
    said = refused(capsys, *base, "-o", out)
    assert "'owner' holds 80 different texts in 80 rows" in said
    assert "--id owner" in said


def test_weights_count_and_zero_leaves_out(tmp_path):
    frame = consumers(100).assign(weight=1.0)
    frame.loc[50:, "weight"] = 0.0
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame[:50].drop(columns="weight").to_csv(tmp_path / "half.csv", index=False)
    assert fit(tmp_path / "t.csv", tmp_path / "a.popf", "--sample-weight", "weight") == 0
    assert fit(tmp_path / "half.csv", tmp_path / "b.popf") == 0
    n = [popf.io.describe(tmp_path / name)["n_samples"] for name in ("a.popf", "b.popf")]
    assert n == [50, 50]


def test_one_row_per_consumer(tmp_path, capsys):
    months = pd.concat([consumers(40, seed=seed) for seed in range(3)], ignore_index=True)
    months["stolen"] = np.where(months["demand"] > 0, "yes", "no")
    months.to_csv(tmp_path / "t.csv", index=False)
    assert fit(tmp_path / "t.csv", tmp_path / "m.popf") == 0
    assert "--one-per consumer" in capsys.readouterr().err
    words = ("fit", tmp_path / "t.csv", "--target", "stolen", "--one-per", "consumer")
    found = facts(capsys, *words, "-o", tmp_path / "m.popf")
    assert (found["n_rows"], found["n_rows_read"]) == (40, 120)
    assert "consumer" not in found["categories"] + found["numbers"]
    other = facts(capsys, *words, "--seed", 1, "-o", tmp_path / "n.popf")
    assert other["classes"] != found["classes"] or (
        popf.io.describe(tmp_path / "m.popf")["sha256"]
        != popf.io.describe(tmp_path / "n.popf")["sha256"]
    )


def test_three_classes_take_the_largest_probability(tmp_path, capsys):
    frame = consumers(90).assign(kind=np.arange(90) % 3)
    frame["demand"] += 3000.0 * frame["kind"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "kind", "--id", "consumer", "--drop", "stolen")
    found = facts(capsys, *words, "-o", tmp_path / "m.popf")
    assert found["classes"] == {"0": 30, "1": 30, "2": 30}
    assert found["threshold"] is None
    scored = scores(tmp_path, tmp_path / "s.csv", model="m.popf", data="t.csv")
    table = scored[[f"probability_{k}" for k in range(3)]].to_numpy()
    assert scored["predicted"].tolist() == table.argmax(axis=1).tolist()
    measured = facts(capsys, "evaluate", tmp_path / "m.popf", tmp_path / "t.csv")
    assert np.array(measured["confusion"]).sum() == 90
    assert "recall" not in measured["measures"]
    assert "for two classes" in refused(
        capsys, "predict", tmp_path / "m.popf", tmp_path / "t.csv", "--threshold", 0.3
    )


def test_the_same_seed_gives_the_same_model(place, tmp_path):
    for name in ("a.popf", "b.popf"):
        assert fit(place / "train.csv", tmp_path / name, "--linear-map", "auto") == 0
    first, again = (popf.load(tmp_path / name) for name in ("a.popf", "b.popf"))
    new = pd.read_csv(place / "new.csv")[["demand", "load", "region"]]
    np.testing.assert_array_equal(first.predict_proba(new), again.predict_proba(new))


def test_a_model_saved_in_python_is_understood(place, tmp_path, capsys):
    frame = consumers(200)[["demand", "load", "stolen"]]
    model = make_pipeline(StandardScaler(), popf.POPFClassifier(threshold=0.2))
    model.fit(frame[["demand", "load"]], frame["stolen"])
    popf.save(model, tmp_path / "m.popf", X=frame[["demand", "load"]])
    scored = scores(place, tmp_path / "s.csv", model=tmp_path / "m.popf")
    new = pd.read_csv(place / "new.csv")[["demand", "load"]]
    assert scored["predicted"].tolist() == model.predict(new).tolist()
    words = ("evaluate", tmp_path / "m.popf", place / "test.csv")
    assert "give --target" in refused(capsys, *words)
    assert facts(capsys, *words, "--target", "stolen")["n_rows"] == 120
    why = facts(capsys, "explain", tmp_path / "m.popf", place / "new.csv", "--row", 3)
    assert why["path"][0]["values"].keys() == {"demand", "load"}


def test_a_model_of_labels_only_gives_labels_only(place, tmp_path, capsys):
    frame = consumers(200)
    model = popf.OPFClassifier().fit(frame[["demand", "load"]], frame["stolen"])
    popf.save(model, tmp_path / "m.popf")
    scored = scores(place, tmp_path / "s.csv", model=tmp_path / "m.popf")
    assert list(scored) == ["row", "predicted"]
    words = ("evaluate", tmp_path / "m.popf", place / "test.csv", "--target", "stolen")
    assert "labels only" in refused(capsys, *words)


def test_a_model_without_names_of_columns_is_refused(place, tmp_path, capsys):
    popf.save(popf.OPFClassifier().fit([[0.0], [1.0]], [0, 1]), tmp_path / "m.popf")
    said = refused(capsys, "predict", tmp_path / "m.popf", place / "new.csv")
    assert "without names of columns" in said


# ---------------------------------------------------------------- evaluate


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
        "opf_accuracy": opf_accuracy_score(y, called),
        "precision": precision_score(y, called),
        "recall": recall_score(y, called),
        "false_alarm_rate": called[~y].mean(),
    }
    measures = found["measures"]
    assert measures.keys() == expected.keys()
    for name, value in expected.items():
        assert measures[name]["value"] == pytest.approx(value, abs=1e-12), name
        assert measures[name]["low"] < measures[name]["high"]
        if name != "ece":  # resampling adds to this one
            assert measures[name]["low"] <= value <= measures[name]["high"]
    assert found["confusion"] == confusion_matrix(y, called).tolist()
    assert found["threshold"] == 0.4


def test_ties_count_half_in_the_area_and_many_classes_are_averaged():
    rng = np.random.default_rng(0)
    p = rng.integers(1, 6, size=(60, 3)).astype(float)
    p /= p.sum(axis=1, keepdims=True)
    y = rng.integers(3, size=60)
    found = evaluate(y, p, p.argmax(axis=1))["measures"]
    assert found["auc"]["value"] == pytest.approx(roc_auc_score(y, p, multi_class="ovr"))
    assert found["brier"]["value"] == pytest.approx(np.mean(((np.eye(3)[y] - p) ** 2).sum(axis=1)))


def test_one_class_alone_leaves_some_measures_undefined(place, tmp_path, capsys):
    test = pd.read_csv(place / "test.csv")
    test[test["stolen"] == "no"].to_csv(tmp_path / "no.csv", index=False)
    found = facts(capsys, "evaluate", place / "model.popf", tmp_path / "no.csv")["measures"]
    assert found["auc"] == {"value": None, "low": None, "high": None}
    assert found["recall"]["value"] is None
    assert found["accuracy"]["value"] > 0.5
    assert main(["evaluate", str(place / "model.popf"), str(tmp_path / "no.csv")]) == 0
    assert "undefined" in capsys.readouterr().out


def test_intervals_hold_the_truth_about_as_often_as_they_say(monkeypatch):
    monkeypatch.setattr(evaluation, "RESAMPLES", 100)
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(40):
        p = rng.random(150)
        y = (rng.random(150) < p).astype(int)
        found = evaluate(y, np.column_stack([1 - p, p]), (p >= 0.5).astype(int))["measures"]
        brier = found["brier"]
        inside.append(brier["low"] <= 1 / 6 <= brier["high"])  # the mean of p (1 - p)
    assert np.mean(inside) > 0.8


# ---------------------------------------------------------------- explain and info


def test_a_path_is_told_in_the_units_of_the_data(place, capsys):
    train = pd.read_csv(place / "train.csv")
    new = pd.read_csv(place / "new.csv")
    why = facts(capsys, "explain", place / "model.popf", place / "new.csv", "--row", 17)
    assert why["row"] == 17
    *stations, own = why["path"]
    for station in stations:
        row = train.iloc[station["training_row"] - 1]
        assert station["values"]["region"] == row["region"]
        for name in ("demand", "load"):
            assert station["values"][name] == pytest.approx(row[name], abs=1e-9)
        assert station["label"] == row["stolen"] == why["path_label"]
    assert own["values"]["demand"] == new["demand"][16]
    model = popf.load(place / "model.popf")
    forest, prepared = model[-1].opf_, model[:-1].transform(new[16:17])
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
    for station in why["path"][:-1]:
        values = station["values"]
        if values is not None:  # one-hot columns are redundant, so a map may lose one of them
            row = train.iloc[station["training_row"] - 1]
            assert values["demand"] == pytest.approx(row["demand"], rel=1e-6, abs=1e-6)
            assert values["region"] == row["region"]
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


# ---------------------------------------------------------------- help


def test_every_command_has_help_with_examples_and_json(capsys):
    from popf.cli.app import COMMANDS

    ours = ("fit", "predict", "evaluate", "explain", "info", "monitor", "convert")
    assert set(ours) <= set(COMMANDS)
    for name in ours:
        assert main([name, "--help"]) == 0
        said = capsys.readouterr().out
        assert "Examples:" in said
        assert f"  popf {name} " in said
        assert "--json" in said


def test_help_imports_nothing_heavy_beyond_the_package_itself():
    code = (
        "import sys, popf; before = set(sys.modules); from popf.cli import main; main(['--help']);"
        "new = set(sys.modules) - before;"
        "heavy = 'numpy sklearn pandas numba rich matplotlib popf.tables popf.engine'.split();"
        "print([name for name in heavy if name in new], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_completion_is_offered():
    import os

    environment = {**os.environ, "_POPF_COMPLETE": "source_bash", "_TYPER_COMPLETE_TEST": "1"}
    code = "import sys; from popf.cli import main; sys.exit(main([]))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "complete" in done.stdout
    assert "popf" in done.stdout
