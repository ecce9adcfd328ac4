"""``popf reproduce`` and ``popf demo``, as a person at a terminal meets them."""

import json
import os
from csv import DictReader
from pathlib import Path

import numpy as np
import pytest

from popf.__main__ import main
from popf.cli import demo
from table_commands import refused

pytest.importorskip("typer", reason="the command line needs popf[cli]")
FAST = ["--methods", "opf,nm", "--runs", "2", "--n-jobs", "1", "--no-figures"]


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], 30)
    X = rng.normal(size=(60, 2)) + (y == "yes")[:, np.newaxis]
    path = tmp_path / "mine.csv"
    rows = [f"{a:.4f},{b:.4f},{label}" for (a, b), label in zip(X, y, strict=True)]
    path.write_text("\n".join(["height,width,label", *rows]) + "\n")
    return path


def reproduce(*words, out):
    return main(["reproduce", "--out", str(out), *FAST, *map(str, words)])


def test_ones_own_data(csv, tmp_path, capsys):
    out = tmp_path / "out"
    assert reproduce("--data", csv, "--target", "label", out=out) == 0
    shown = capsys.readouterr().out
    assert "Accuracy" in shown
    assert "\nmine " in shown
    assert str(out / "report.html") in shown
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {"journal.jsonl", "runs.csv", "report.html"} <= files
    assert {f"tables/accuracy.{kind}" for kind in ("md", "tex", "csv")} <= files


def test_json_has_the_numbers_and_the_files(csv, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--data", csv, "--target", "label", "--datasets", "liver", "--raw", "--json"]
    assert reproduce(*words, out=out) == 0
    found = json.loads(capsys.readouterr().out)  # nothing else is there
    files = [found["journal"], found["report"], *found["tables"].values(), *found["figures"]]
    assert all(Path(name).is_file() for name in files)
    assert found["figures"] == []
    assert found["methods"] == ["OPF", "P-OPF-NM"]
    assert (found["runs"], found["train_size"], found["seed"]) == (2, 0.25, 0)
    assert found["datasets"]["mine"] == {
        "n_samples": 60,
        "n_features": 2,
        "n_classes": 2,
        "stand_in": False,
        "source": "the user's",
    }
    assert found["failures"] == []
    places = [(row["measure"], row["dataset"], row["method"]) for row in found["summaries"]]
    assert len(set(places)) == len(places)
    assert ("log_loss", "mine", "P-OPF-NM") in places
    assert ("log_loss", "mine", "OPF") not in places  # it has no probabilities
    for measure, name in found["tables"].items():
        rows = list(DictReader(Path(name).read_text().splitlines()))
        same = [row for row in found["summaries"] if row["measure"] == measure]
        for row, fact in zip(rows, same, strict=True):
            assert (row["dataset"], row["method"]) == (fact["dataset"], fact["method"])
            assert float(row["mean"]) == fact["mean"]
            assert float(row["deviation"]) == fact["deviation"]
    of_liver = next(row for row in found["summaries"] if row["dataset"] == "liver")
    assert (of_liver["measure"], of_liver["paper_mean"]) == ("accuracy", 61.0)
    assert of_liver["paper_differs"] in (True, False)


def test_named_data_beside_ones_own(csv, tmp_path, capsys):
    words = ["--data", csv, "--target", "label", "--datasets", "liver,synthetic3", "--raw"]
    assert reproduce(*words, out=tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert [name for name in ("liver", "synthetic3", "mine") if f"\n{name} " in shown] == [
        "liver", "synthetic3", "mine",
    ]  # fmt: skip
    assert "61.0±2.4" in shown  # the paper's OPF on liver
    assert "the paper's own are not public: synthetic3." in " ".join(shown.split())


def test_the_same_command_goes_on_and_another_is_refused(csv, tmp_path, capsys):
    words = ["--data", csv, "--target", "label"]
    reproduce(*words, out=tmp_path / "out")
    before = (tmp_path / "out" / "report.html").read_bytes()
    capsys.readouterr()
    assert reproduce(*words, out=tmp_path / "out") == 0
    assert "2 of 2 runs are in" in capsys.readouterr().err
    assert (tmp_path / "out" / "report.html").read_bytes() == before
    words += ["--seed", 3, "--train-size", 0.5]
    said = refused(capsys, "reproduce", "--out", tmp_path / "out", *FAST, *words)
    assert "--seed was 0, now 3; --train-size was 0.25, now 0.5" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--datasets", "hart"], "did you mean heart"),
        (["--methods", "newtn", "--datasets", "liver"], "did you mean newton"),
        (["--runs", "0", "--datasets", "liver"], "--runs is 0; it must be"),
        (["--runs", "many"], "--runs"),
        (["--train-size", "1.5", "--datasets", "liver"], "--train-size is 1.5; it must be"),
        (["--train-size", "0.001", "--datasets", "liver"], "liver: 345 samples of 2 classes"),
        (["--train-size", "0.001", "--datasets", "liver"], "with --train-size 0.001: every class"),
        (["--n-jobs", "0", "--datasets", "liver"], "--n-jobs must be at least 1, or -1"),
        (["--seed", "-1", "--datasets", "liver"], "--seed"),
        (["--target", "label"], "--data, which is missing"),
        (["--drop", "id"], "--data, which is missing"),
        (["--data", "mine.xlsx"], "the suffix of mine.xlsx tells no format"),
        (["--data", "."], "is a folder"),
        (["--data", "no-such-file.csv"], "no-such-file.csv"),
        (["--dance"], "--dance"),
    ],
)
def test_bad_words_are_answered_in_one_line(tmp_path, capsys, words, message):
    assert message in refused(capsys, "reproduce", "--out", tmp_path / "out", *words)
    assert not (tmp_path / "out" / "journal.jsonl").exists()


def test_a_csv_without_the_target_or_with_words_is_refused(csv, tmp_path, capsys):
    said = refused(capsys, "reproduce", "--out", tmp_path, *FAST, "--data", csv, "--target", "labl")
    assert "labl" in said
    assert "label" in said.replace("labl'", "")
    said = refused(
        capsys, "reproduce", "--out", tmp_path, *FAST, "--data", csv, "--target", "width"
    )
    assert "label" in said  # not a number
    assert "--encode onehot" in said
    words = ["--data", csv, "--target", "label", "--encode", "dance"]
    said = refused(capsys, "reproduce", "--out", tmp_path, *FAST, *words)
    assert "--encode must be 'onehot', 'ordinal' or None, not 'dance'" in said


def test_gaps_and_columns_to_leave_out(csv, tmp_path, capsys):
    lines = csv.read_text().splitlines()
    named = [lines[0] + ";who", *(f"{line};C{n}" for n, line in enumerate(lines[1:]))]
    other = tmp_path / "other.csv"
    other.write_text("\n".join(named).replace(",", ";").replace(".", ","))
    words = ["--data", other, "--target", "label", "--delimiter", ";", "--decimal", ","]
    said = refused(capsys, "reproduce", "--out", tmp_path, *FAST, *words)
    assert "not numbers: who" in said
    assert reproduce(*words, "--drop", "who", out=tmp_path / "out") == 0
    assert reproduce("--data", csv, "--target", "label", out=tmp_path / "plain") == 0
    tables = [tmp_path / name / "tables" / "accuracy.csv" for name in ("out", "plain")]
    assert tables[0].read_text() == tables[1].read_text().replace("mine,", "other,")
    csv.write_text("\n".join([lines[0], ",1.0,no", *lines[1:]]))
    words = ["--data", csv, "--target", "label"]
    said = refused(capsys, "reproduce", "--out", tmp_path, *FAST, *words)
    assert "in 1 of 61 rows, the first is row 1: fill them in" in said


def test_a_class_left_without_samples_is_an_error(tmp_path, capsys):
    path = tmp_path / "rare.csv"
    path.write_text("x,label\n" + "".join(f"{k},a\n" for k in range(30)) + "99,b\n")
    words = ["--data", path, "--target", "label"]
    said = refused(capsys, "reproduce", "--out", tmp_path / "out", *FAST, *words)
    assert "only 1 of class b" in said


def test_a_folder_that_cannot_be_written_to_is_found_first(csv, tmp_path, capsys):
    blocked = csv / "out"  # below a file
    said = refused(capsys, "reproduce", "--out", blocked, "--data", tmp_path / "never-read.csv")
    assert "cannot write to the output folder" in said
    assert str(blocked) in said
    assert "(it is a file)" in refused(capsys, "demo", "--out", csv)
    assert "(it is a file)" in refused(capsys, "sample", csv)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="root may write anywhere: run the tests as another user",
)
def test_a_folder_without_permission_is_found_first(tmp_path, capsys):
    tmp_path.chmod(0o500)
    try:
        assert "cannot write" in refused(capsys, "reproduce", "--out", tmp_path / "out")
    finally:
        tmp_path.chmod(0o700)


def test_ctrl_c_ends_with_130(tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("popf.experiment.report.run", interrupted)
    assert main(["reproduce", "--out", str(tmp_path)]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_an_unforeseen_error_ends_with_1(tmp_path, capsys, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("something\nbroke")

    monkeypatch.setattr("popf.experiment.report.run", broken)
    assert main(["reproduce", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "popf: something broke\n"


# The demo


def test_the_demo_fits_evaluates_explains_reports_and_compares(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "DATASETS", ("liver",))
    monkeypatch.setattr(demo, "RUNS", 1)
    monkeypatch.setattr("popf.experiment.report.find_spec", lambda name: None)  # no figures
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert 'No figures: they need matplotlib, pip install "popf[plot]"' in said.err
    for step in demo.STEPS:
        assert f"$ popf {step.format(out=out)}\n" in said.out
    for words in (
        "log loss",
        "Fitted",
        "path",
        "bat algorithm",
        "Nelder-Mead",
        "times the log loss",
    ):
        assert words in said.out
    for page in (out / "report.html", out / "paper" / "report.html"):
        assert page.is_file()
        assert page.as_uri() in said.out
    monkeypatch.setattr(demo, "STEPS", {next(iter(demo.STEPS)): "sample"})
    assert main(["demo", "--out", str(out)]) == 0
    assert "The tables are there already." in capsys.readouterr().out


def test_the_demo_data_come_with_popf():
    from popf.datasets import load

    assert all(len(load(name, download=False).target) for name in demo.DATASETS)
