"""``popf predict`` on a person's own table: scores, columns, files, the threshold."""

import bz2
import gzip
import tracemalloc

import numpy as np
import pytest

import popf
from table_commands import QUICK, consumers, facts, fit, fitting, pd, printed, run, scores

FEATURES = ["demand", "load", "region"]


def test_scores_are_those_of_the_model_in_python(place, tmp_path):
    columns, frame = ["demand", "load", "region"], consumers(200)
    model = popf.POPFClassifier().fit(frame[columns], frame["stolen"])
    new = pd.read_csv(place / "new.csv")[columns]
    scored = scores(place, tmp_path / "scored.csv")
    assert list(scored) == ["consumer", "probability_no", "probability_yes", "predicted"]
    probabilities = scored[["probability_no", "probability_yes"]]
    np.testing.assert_allclose(probabilities, model.predict_proba(new), atol=1e-6)
    assert scored["predicted"].tolist() == model.predict(new).tolist()


def test_ids_are_carried_through_as_they_stand_and_are_no_features(place, tmp_path):
    assert scores(place, tmp_path / "scored.csv")["consumer"].tolist()[:2] == ["5000", "5001"]
    assert scores(place, tmp_path / "scored.csv", data="train.csv")["consumer"][7] == "0007"
    renamed = consumers(200).assign(consumer=[f"other {i}" for i in range(200)])
    renamed.to_csv(tmp_path / "renamed.csv", index=False)
    same = pd.read_csv(place / "new.csv")[FEATURES]
    first, again = tmp_path / "first.popf", tmp_path / "again.popf"
    for data, path in ((place / "train.csv", first), (tmp_path / "renamed.csv", again)):
        fit(data, path, *QUICK)
    first, again = map(popf.load, (first, again))
    assert list(again.feature_names_in_) == FEATURES
    np.testing.assert_array_equal(again.predict_proba(same), first.predict_proba(same))


def test_other_orders_delimiters_decimal_marks_and_encodings_give_the_same(place, tmp_path):
    new = pd.read_csv(place / "new.csv", dtype={"consumer": str})
    first = scores(place, tmp_path / "a.csv")
    shuffled = new[["region", "load", "consumer", "demand"]].assign(more=1)
    shuffled.to_csv(tmp_path / "own.csv", sep=";", decimal=",", index=False, encoding="utf-16")
    words = ("--delimiter", ";", "--decimal", ",", "--encoding", "utf-16")
    again = scores(place, tmp_path / "b.csv", *words, data=tmp_path / "own.csv")
    pd.testing.assert_frame_equal(first, again)


@pytest.mark.parametrize("rows", [1, 40, 1000])
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
    words = ["predict", place / "model.popf", place / "new.csv", "--chunk-rows", 40, "-o"]
    run(*words, tmp_path / "out.parquet")
    kept = pd.read_parquet(tmp_path / "out.parquet")
    np.testing.assert_allclose(kept["probability_yes"], first["probability_yes"], atol=2e-6)
    for suffix, unpack in ((".gz", gzip.decompress), (".bz2", bz2.decompress)):
        run(*words, tmp_path / f"out.csv{suffix}")
        packed = (tmp_path / f"out.csv{suffix}").read_bytes()
        assert unpack(packed) == (tmp_path / "a.csv").read_bytes()


def test_without_ids_rows_are_numbered(tmp_path):
    consumers(60).drop(columns="consumer").to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "--target", "stolen", *QUICK, "-o", tmp_path / "m.popf")
    scored = scores(tmp_path, tmp_path / "s.csv", "--chunk-rows", 25, model="m.popf", data="t.csv")
    assert scored["row"].tolist() == list(range(1, 61))


def test_standard_output_holds_the_table_and_nothing_else(place, tmp_path, capsys, monkeypatch):
    scores(place, tmp_path / "a.csv")
    words = ["predict", place / "model.popf", place / "new.csv"]
    assert printed(capsys, *words).out == (tmp_path / "a.csv").read_text()
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    said = printed(capsys, *words, "--progress", "--chunk-rows", 40)
    assert said.out == (tmp_path / "a.csv").read_text()
    assert "90 rows" in said.err


def test_memory_does_not_grow_with_the_file(place, tmp_path):
    def peak(n):
        long = pd.concat([pd.read_csv(place / "new.csv", dtype=str)] * n)
        long.to_csv(tmp_path / "long.csv", index=False)
        words = ["predict", place / "model.popf", tmp_path / "long.csv", "-o", tmp_path / "o.csv"]
        words += ["--chunk-rows", 50, "--n-jobs", 1]
        run(*words)  # what is imported or compiled once does not count
        tracemalloc.start()
        run(*words)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(pd.read_csv(tmp_path / "o.csv")) == 90 * n
        return found

    assert peak(16) < 1.2 * peak(4) + 2**18


def test_unknown_categories_are_counted_and_scored(place, tmp_path, capsys):
    new = pd.read_csv(place / "new.csv", dtype={"consumer": str})
    new.loc[[3, 5], "region"] = "moon"
    new.to_csv(tmp_path / "moon.csv", index=False)
    words = ("predict", place / "model.popf", tmp_path / "moon.csv", "-o", tmp_path / "o.csv")
    assert facts(capsys, *words)["unknown_categories"] == {"region": 2}
    assert "not seen in training, in 2 rows" in printed(capsys, *words).err
    assert pd.read_csv(tmp_path / "o.csv")["probability_yes"].between(0, 1).all()


@pytest.mark.parametrize(("positive", "threshold"), [("yes", 0.1), ("no", 0.95)])
def test_a_threshold_moves_the_labels(place, tmp_path, positive, threshold):
    words = ("--positive", positive, "--threshold", threshold)
    fit(place / "train.csv", tmp_path / "m.popf", *QUICK, *words)
    scored = scores(place, tmp_path / "a.csv", model=tmp_path / "m.popf")
    other = {"yes": "no", "no": "yes"}[positive]
    called = np.where(scored[f"probability_{positive}"] >= threshold, positive, other).tolist()
    assert scored["predicted"].tolist() == called
    assert called.count("yes") > 20
    new = pd.read_csv(place / "new.csv")[FEATURES]
    assert popf.load(tmp_path / "m.popf").predict(new).tolist() == called
    if positive == "yes":  # as it is in the other model, which has another threshold
        own = scores(place, tmp_path / "a.csv", "--threshold", threshold)
        called = np.where(own["probability_yes"] >= threshold, "yes", "no").tolist()
        assert own["predicted"].tolist() == called


def test_costs_choose_a_threshold_on_rows_left_out(place, tmp_path, capsys):
    words = fitting(place / "train.csv", tmp_path / "m.popf", *QUICK, "--cost-fp", 1)
    dear, cheap = (facts(capsys, *words, "--cost-fn", cost) for cost in (20, 0.2))
    assert dear["threshold"] < 0.35 < 0.5 < cheap["threshold"]
    for found in (dear, cheap):
        costs = found["cost_per_row"]
        assert costs["at_threshold"] <= min(costs.values()) + 1e-12
        assert "cross-validation" in found["threshold_from"]
    # Not what the training rows themselves would say: there the forest makes no error.
    assert dear["cost_per_row"]["at_threshold"] > 0.1


def test_probabilities_sort_as_text_and_are_never_0_or_1(place, tmp_path):
    far = consumers(30).assign(demand=np.linspace(-1e5, 1e5, 30))
    far.to_csv(tmp_path / "far.csv", index=False)
    scores(place, tmp_path / "s.csv", data=tmp_path / "far.csv")
    cells = pd.read_csv(tmp_path / "s.csv", dtype=str)["probability_yes"].tolist()
    assert all(len(cell) == 8 for cell in cells)
    assert sorted(cells) == sorted(cells, key=float)
    assert not {"0.000000", "1.000000"} & set(cells)
