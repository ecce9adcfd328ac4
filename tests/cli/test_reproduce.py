"""``popf reproduce``, ``demo`` and ``sample``, as a person at a terminal meets them."""

from csv import DictReader
from pathlib import Path

import numpy as np
import pytest

from popf.__main__ import main
from popf.cli import demo
from table_commands import QUICK, facts, printed, refused, run

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


def reproduce(out, *words):
    """The words of a quick command."""
    return ["reproduce", "--out", out, *FAST, *words]


def test_ones_own_data_beside_named_ones(csv, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--data", csv, "--target", "label", "--datasets", "liver,synthetic3", "--raw"]
    shown = printed(capsys, *reproduce(out, *words)).out
    assert "Accuracy" in shown
    assert all(f"\n{name} " in shown for name in ("liver", "synthetic3", "mine"))
    assert "61.0±2.4" in shown  # the paper's OPF on liver
    assert "the paper's data are not public: synthetic3." in " ".join(shown.split())
    assert str(out / "report.html") in shown
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {"journal.jsonl", "runs.csv", "report.html"} <= files
    assert {f"tables/accuracy.{kind}" for kind in ("md", "tex", "csv")} <= files


def test_json_has_the_numbers_and_the_files(csv, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--data", csv, "--target", "label", "--datasets", "liver", "--raw"]
    found = facts(capsys, *reproduce(out, *words))
    files = [found["journal"], found["report"], *found["tables"].values(), *found["figures"]]
    assert all(Path(name).is_file() for name in files)
    assert found["figures"] == []
    assert found["methods"] == ["OPF", "P-OPF-NM"]
    assert (found["runs"], found["train_size"], found["seed"]) == (2, 0.25, 0)
    mine = found["datasets"]["mine"]
    assert (mine["n_samples"], mine["stand_in"], mine["source"]) == (60, False, "given by the user")
    assert found["failures"] == []
    places = [(row["measure"], row["dataset"], row["method"]) for row in found["summaries"]]
    assert len(set(places)) == len(places)
    assert ("log_loss", "mine", "P-OPF-NM") in places
    assert ("log_loss", "mine", "OPF") not in places  # it has no probabilities
    for measure, name in found["tables"].items():
        rows = list(DictReader(Path(name).read_text().splitlines()))
        same = [row for row in found["summaries"] if row["measure"] == measure]
        for row, fact in zip(rows, same, strict=True):
            keys = ("dataset", "method", "mean", "deviation")
            assert [row[key] for key in keys] == [str(fact[key]) for key in keys]
    of_liver = next(row for row in found["summaries"] if row["dataset"] == "liver")
    assert (of_liver["measure"], of_liver["paper_mean"]) == ("accuracy", 61.0)
    assert of_liver["paper_differs"] in (True, False)


def test_the_same_command_goes_on_and_another_is_refused(csv, tmp_path, capsys):
    words = reproduce(tmp_path / "out", "--data", csv, "--target", "label")
    run(*words)
    before = (tmp_path / "out" / "report.html").read_bytes()
    assert "2 of 2 runs are already in" in printed(capsys, *words).err
    assert (tmp_path / "out" / "report.html").read_bytes() == before
    said = refused(capsys, *words, "--seed", 3, "--train-size", 0.5)
    assert "--seed was 0, now 3; --train-size was 0.25, now 0.5" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--datasets", "hart"], "did you mean heart"),
        (["--methods", "newtn", "--datasets", "liver"], "did you mean newton"),
        (["--runs", "0", "--datasets", "liver"], "--runs is 0; it must be"),
        (
            ["--train-size", "1.5", "--datasets", "liver"],
            "--train-size must be above 0 and below 1, not 1.5",
        ),
        (["--train-size", "0.001", "--datasets", "liver"], "with --train-size 0.001: every class"),
        (["--n-jobs", "0", "--datasets", "liver"], "--n-jobs must be at least 1, or -1"),
        (["--seed", "-1", "--datasets", "liver"], "--seed"),
        (["--target", "label"], "--data, which is missing"),
        (["--data", "mine.xlsx"], "the suffix of mine.xlsx is unknown"),
        (["--data", "."], "is a folder"),
        (["--data", "no-such-file.csv"], "no-such-file.csv"),
    ],
)
def test_bad_words_are_answered_in_one_line(tmp_path, capsys, words, message):
    assert message in refused(capsys, "reproduce", "--out", tmp_path / "out", *words)
    assert not (tmp_path / "out" / "journal.jsonl").exists()


def test_columns_to_leave_out_and_decimal_commas(csv, tmp_path, capsys):
    lines = csv.read_text().splitlines()
    named = [lines[0] + ";who", *(f"{line};C{n}" for n, line in enumerate(lines[1:]))]
    other = tmp_path / "other.csv"
    other.write_text("\n".join(named).replace(",", ";").replace(".", ","))
    words = reproduce(tmp_path / "out", "--data", other, "--delimiter", ";", "--decimal", ",")
    words += ["--target", "label"]
    assert "not numeric: who" in refused(capsys, *words)
    run(*words, "--drop", "who")
    run(*reproduce(tmp_path / "plain", "--data", csv, "--target", "label"))
    tables = [tmp_path / name / "tables" / "accuracy.csv" for name in ("out", "plain")]
    assert tables[0].read_text() == tables[1].read_text().replace("mine,", "other,")


def test_a_folder_that_cannot_be_written_to_is_found_first(csv, tmp_path, capsys):
    blocked = csv / "out"  # below a file
    said = refused(capsys, "reproduce", "--out", blocked, "--data", tmp_path / "never-read.csv")
    assert "cannot write to the output folder" in said
    assert str(blocked) in said
    assert "(it is a file)" in refused(capsys, "demo", "--out", csv)
    assert "(it is a file)" in refused(capsys, "sample", csv)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [(KeyboardInterrupt(), 130, "interrupted."), (RuntimeError("it\nbroke"), 1, "it broke")],
)
def test_an_interruption_ends_with_130_and_an_unforeseen_error_with_1(
    tmp_path, capsys, monkeypatch, error, status, said
):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("popf.experiment.report.run", fail)
    assert main(["reproduce", "--out", str(tmp_path)]) == status
    assert capsys.readouterr().err == f"popf: {said}\n"


def test_the_demo_fits_evaluates_explains_reports_and_compares(tmp_path, capsys, monkeypatch):
    quick = {"fit": " ".join(["", *QUICK])}  # the tutorial's page runs the default
    steps = {step + quick.get(step.split()[0], ""): why for step, why in demo.STEPS.items()}
    monkeypatch.setattr(demo, "STEPS", steps)
    monkeypatch.setattr(demo, "DATASETS", ("liver",))
    monkeypatch.setattr(demo, "RUNS", 1)
    monkeypatch.setattr("popf.experiment.report.find_spec", lambda name: None)  # no figures
    out = tmp_path / "demo"
    said = printed(capsys, "demo", "--out", out)
    assert 'No figures: they need matplotlib, pip install "popf[plot]"' in said.err
    for step in demo.STEPS:
        assert f"$ popf {step.format(out=out)}\n" in said.out
    for words in ("Fitted", "log loss", "path", "bat algorithm", "the log loss of"):
        assert words in said.out
    for page in (out / "report.html", out / "paper" / "report.html"):
        assert page.is_file()
        assert page.as_uri() in said.out
    monkeypatch.setattr(demo, "STEPS", {next(iter(demo.STEPS)): "sample"})
    assert "The tables already exist." in printed(capsys, "demo", "--out", out).out


def test_sample_replaces_nothing(tmp_path, capsys):
    (tmp_path / "new.csv").write_text("mine")
    assert "already exists" in refused(capsys, "sample", tmp_path)
    assert (tmp_path / "new.csv").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
