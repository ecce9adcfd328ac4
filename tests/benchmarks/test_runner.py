"""The benchmark runner, end to end on tiny sizes, and what it makes of its measurements."""

import importlib.util
import json
import math
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmark_records import ROOT, bench, record_of
from benchmarks.data import SHAPES, DataSpec, make
from benchmarks.page import file_by_suite, page
from benchmarks.processes import TimeLimitError, WorkerDiedError, Workers
from benchmarks.results import Results, plain
from benchmarks.suites import SUITES, tasks_of
from benchmarks.summary import comparisons, exponent, growth, summarise
from benchmarks.tables import as_text, tables
from benchmarks.tasks import Target, Task


def fit_task(**settings):
    settings = {"targets": (Target("fit", "1-NN", 0.5),), **settings}
    return Task("table", "fit 10 × 2", DataSpec(10, 2), ("popf", "1-NN"), **settings)


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    """One run of the prediction rows at tiny size; its answer and its file."""
    out = tmp_path_factory.mktemp("results") / "tiny.json"
    arguments = ("--scale", "tiny", "--suite", "table", "--match", "× 8", "--repeat", 2)
    return bench(*arguments, "--out", out), out, arguments


def test_a_run_measures_popf_and_every_installed_peer(tiny_run):
    answer, out, _ = tiny_run
    assert answer.returncode == 0, answer.stderr
    content = json.loads(out.read_text(encoding="utf-8"))
    found = {
        (value["contestant"], value["operation"])
        for record in content["records"]
        for value in record["values"]
    }
    wanted = {("popf", "fit"), ("popf", "predict"), ("1-NN", "predict"), ("5-NN", "predict")}
    wanted |= {
        (peer, "fit") for peer in ("quitefastmst", "opfython") if importlib.util.find_spec(peer)
    }
    assert found == wanted
    assert all(value["value"] > 0 for r in content["records"] for value in r["values"])


def test_a_run_prints_ratios_and_keeps_every_timing(tiny_run):
    answer, out, _ = tiny_run
    assert "predict 120 from 120 × 8" in answer.stdout
    summary = json.loads(out.read_text(encoding="utf-8"))["summary"]
    row = next(row for row in summary["comparisons"] if row["peer"] == "1-NN")
    assert row["ratio"] == pytest.approx(row["popf_seconds"] / row["peer_seconds"])
    assert row["verdict"] == "not judged"


def test_a_results_file_names_neither_host_nor_path(tiny_run):
    _, out, _ = tiny_run
    text = out.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert str(Path.home()) + os.sep not in text
    assert platform.node() not in json.loads(text)["machine"].values()


def test_resume_measures_nothing_twice(tiny_run):
    _, out, arguments = tiny_run
    before = json.loads(out.read_text(encoding="utf-8"))["records"]
    answer = bench(*arguments, "--out", out, "--resume")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(out.read_text(encoding="utf-8"))["records"] == before


def test_a_finished_file_is_not_overwritten(tiny_run):
    _, out, arguments = tiny_run
    answer = bench(*arguments, "--out", out)
    assert answer.returncode == 2
    assert "--resume" in answer.stderr


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    out = tmp_path / "stopped.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--suite", "growth", "--out", out]
    process = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # The first task is written once its line is printed.
    assert process.stderr.readline()
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate()
    assert process.returncode == 130
    assert "--resume" in stdout
    assert 1 <= len(json.loads(out.read_text(encoding="utf-8"))["records"]) < 8


def test_the_page_shows_the_results_and_where_they_come_from(tiny_run):
    _, out, _ = tiny_run
    text = page(out.parent)
    assert "## Beside the peers" in text
    assert "predict 120 from 120 × 8" in text
    assert out.name in text
    assert "not those of the targets" in text


def test_the_page_prefers_full_scale_then_whole_suites_then_the_newest(tmp_path):
    def saved(name, scale, date, count):
        results = Results.begin(tmp_path / f"{name}.json", scale)
        seconds = {("popf", "fit"): [1.0], ("1-NN", "fit"): [1.0]}
        tasks = [fit_task(threads=k) for k in range(1, count + 1)]
        records = [record_of(task, seconds) for task in tasks]
        results.content.update(date=date, records=records, summary=summarise(records, scale))
        results.save()

    saved("old", "full", "2026-01-01", 2)
    saved("whole", "full", "2026-01-02", 2)
    saved("partial", "full", "2026-01-03", 1)
    saved("small", "quick", "2026-01-04", 3)
    assert file_by_suite(tmp_path)["table"].path.stem == "whole"


def test_the_page_without_results_says_how_to_make_them(tmp_path):
    text = page(tmp_path)
    assert "There are no results yet" in text
    assert "make bench" in text


def test_the_page_includes_the_analysis_when_there_is_one(tmp_path):
    assert "```{include} benchmarks_analysis.md" in page(tmp_path, analysis=True)
    assert "{include}" not in page(tmp_path)


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_has_tasks_that_survive_json(suite):
    tasks = tasks_of([suite], "tiny")
    assert tasks
    for task in tasks:
        assert task.suite == suite
        assert json.loads(json.dumps(plain(task))) == plain(task)


def test_threads_run_every_task_on_each_count():
    single = tasks_of(["table"], "tiny")
    double = tasks_of(["table"], "tiny", thread_list=[1, 2])
    assert [task.threads for task in double] == [1] * len(set(single)) + [2] * len(set(single))


@pytest.mark.parametrize("shape", SHAPES)
def test_data_is_seeded_and_has_both_classes(shape):
    spec = DataSpec(40, 8, 10, shape)
    first, again = make(spec), make(spec)
    assert first.X.shape == (40, 8)
    assert first.queries.shape == (10, 8)
    assert set(first.y) == {0, 1}
    np.testing.assert_array_equal(first.X, again.X)


def test_blobs_lie_two_apart_whatever_the_dimension():
    for d in (2, 50):
        data = make(DataSpec(20_000, d))
        means = [data.X[data.y == label].mean(axis=0) for label in (0, 1)]
        assert math.dist(*means) == pytest.approx(2.0, abs=0.1)


def test_the_verdict_falls_on_the_best_times():
    seconds = {("popf", "fit"): [9.0, 1.0, 1.2], ("1-NN", "fit"): [2.5, 4.0, 3.0]}
    (row,) = comparisons(record_of(fit_task(), seconds))
    assert row["ratio"] == pytest.approx(1.0 / 2.5)
    assert row["ratio_of_medians"] == pytest.approx(1.2 / 3.0)
    assert row["verdict"] == "met"
    seconds["popf", "fit"] = [1.3]
    (row,) = comparisons(record_of(fit_task(), seconds))
    assert row["verdict"] == "not met"


def test_a_missing_peer_gives_no_verdict_but_a_note():
    record = record_of(fit_task(), {("popf", "fit"): [1.0]}, missing={"1-NN": "not installed"})
    (row,) = comparisons(record)
    assert row["ratio"] is None
    assert row["verdict"] is None
    assert "1-NN: not installed" in row["note"]


def test_a_stopped_peer_bounds_the_ratio():
    record = record_of(fit_task(), {("popf", "fit"): [1.0]}, timed_out={"1-NN": 100.0})
    (row,) = comparisons(record)
    assert row["ratio"] == pytest.approx(0.01)
    assert row["verdict"] == "met"
    (table,) = tables(summarise([record], "full"))
    assert "< 0.01" in as_text(table)


def test_a_stopped_popf_has_not_met_its_target():
    record = record_of(fit_task(), {("1-NN", "fit"): [1.0]}, timed_out={"popf": 100.0})
    (row,) = comparisons(record)
    assert row["verdict"] == "not met"


def test_a_recorded_figure_is_marked_as_such():
    task = fit_task(
        targets=(Target("total", "LibOPF", 0.1),),
        recorded=(("LibOPF", "fit", 5.0), ("LibOPF", "predict", 4.0)),
    )
    record = record_of(task, {("popf", "fit"): [0.5], ("popf", "predict"): [0.1]})
    (row,) = comparisons(record)
    assert row["ratio"] == pytest.approx(0.6 / 9.0)
    assert row["note"] == "against a recorded figure"


def test_growth_recovers_the_exponent_and_judges_the_steeper_end():
    assert exponent([10, 100, 1000], [2.0, 2.0 * 10**1.25, 2.0 * 10**2.5]) == pytest.approx(1.25)
    records = []
    for n in (1, 2, 4, 8, 16, 32, 64, 128):
        # Flat to begin with, quadratic in the end: over all n the slope is still below 1.3.
        task = Task("growth", str(n), DataSpec(n, 2), ("popf",))
        records.append(record_of(task, {("popf", "fit"): [max(1.0, (n / 16) ** 2)]}))
    (row,) = growth(records)
    assert row["exponent"] < 1.3 < row["tail_exponent"]
    assert row["verdict"] == "not met"


def test_nothing_is_judged_below_full_scale():
    record = record_of(fit_task(), {("popf", "fit"): [1.0], ("1-NN", "fit"): [1.0]})
    assert summarise([record], "full")["comparisons"][0]["verdict"] == "not met"
    assert summarise([record], "quick")["comparisons"][0]["verdict"] == "not judged"


def test_results_of_another_machine_are_not_continued(tmp_path):
    results = Results.begin(tmp_path / "r.json", "tiny")
    results.content["machine"] = {**results.content["machine"], "processor": "an abacus"}
    results.save()
    with pytest.raises(ValueError, match="an abacus"):
        Results.resume(results.path, "tiny")


def test_a_file_that_is_no_result_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"other\.json is not a results file"):
        Results.load(path)


ORDER = {
    "kind": "time",
    "data": {"n_samples": 100, "n_features": 2, "n_queries": 10},
    "contestants": ["1-NN"],
    "operations": ["predict"],
    "repeat": 2,
    "once": [],
    "threads": 1,
}


def test_a_worker_alternates_between_contestants():
    with Workers(limit=120) as workers:
        events = list(workers.ask({**ORDER, "contestants": ["1-NN", "5-NN"]}, {}))
    order = [event["contestant"] for event in events if event["event"] == "value"]
    assert order == ["1-NN", "5-NN", "1-NN", "5-NN"]


def test_a_silent_worker_is_stopped():
    with Workers(limit=0.001) as workers, pytest.raises(TimeLimitError, match="1-NN"):
        list(workers.ask(ORDER, {}))


def test_a_dead_worker_is_noticed():
    with Workers(limit=120) as workers, pytest.raises(WorkerDiedError, match="KeyError"):
        list(workers.ask({**ORDER, "kind": "no such kind"}, {}))
