"""The benchmark of speed: small runs end to end, and the tables of made-up records."""

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.data import DataSpec
from benchmarks.page import PAGES, filled
from benchmarks.results import ROOT, plain
from benchmarks.suites import Task
from benchmarks.tables import forests_that_differ, tables


def bench(*arguments):
    return main(["--quick", "--repeat", "1", *map(str, arguments)])


def record_of(task, times, **facts):
    """A record in which contestant and operation took the seconds given."""
    values = [
        {"contestant": who, "operation": operation, "round": number, "value": value, **facts}
        for (who, operation), found in times.items()
        for number, value in enumerate(found)
    ]
    return {"task": plain(task), "values": values, "missing": {}, "failed": {}, "timed_out": {}}


def test_a_run_measures_everyone_and_is_not_repeated(tmp_path, capsys):
    out = tmp_path / "results.json"
    options = ("--suite", "predict", "out-of-core", "--match", "2,000 ×", "--out", out)
    assert bench(*options) == 0
    assert "popf predict 1,000 from 2,000 × 100" in capsys.readouterr().out
    text = out.read_text(encoding="utf-8")
    in_turn, alone = json.loads(text)["records"]
    assert {value["contestant"] for value in in_turn["values"]} == {"popf", "1-NN", "5-NN"}
    plain, from_file = alone["values"]
    assert from_file["digest"] == plain["digest"]
    assert from_file["n_blocks"] > 1
    assert not alone["failed"]
    # It names neither a path nor a person.
    assert str(ROOT) not in text
    assert str(Path.home()) + "/" not in text
    assert bench(*options, "--resume") == 0
    assert out.read_text(encoding="utf-8") == text


def test_ratios_are_of_the_best_times():
    task = Task("table", "fit 10 × 2", DataSpec(10, 2), ("popf", "a", "b", "c"))
    record = record_of(task, {("popf", "fit"): [2.0, 1.0], ("a", "fit"): [8.0, 4.0, 9.0]})
    record["timed_out"] = {"b": 600.0}
    record["missing"] = {"c": "not available"}
    (table,) = tables([record])
    assert [row[1:] for row in table.rows] == [
        ("0.25", "1.00 s", "4.00 s", "a"),
        ("0.0017", "1.00 s", "> 600.0 s", "b"),
        ("", "1.00 s", "not available", "c"),
    ]
    assert table.as_markdown().startswith("|  | ratio | time |")


def test_growth_and_speed_up_are_found():
    growth = [
        record_of(Task("growth", f"{n}", DataSpec(n, 8)), {("popf", "fit"): [1e-6 * n**1.5]})
        for n in (1_000, 2_000, 4_000)
    ]
    threads = [
        record_of(Task("threads", "x", DataSpec(9, 8), threads=k), {("popf", "fit"): [6.0 / k]})
        for k in (1, 2, 3)
    ]
    first, second = tables(growth + threads)
    assert first.rows[0][1] == "1.50"
    assert second.rows == [("popf fit x", "6.00 s", "3.00 s", "2.00 s", "3.00")]


def test_forests_that_differ_are_named():
    task = Task("same-forest", "10 × 2", DataSpec(10, 2), ("popf", "a"), kind="alone")
    same = [record_of(task, {(who, "fit"): [1.0]}, digest="x", data=1, memory=1) for who in "ab"]
    assert forests_that_differ(same) == []
    same[1]["values"][0]["digest"] = "y"
    assert forests_that_differ(same) == ["10 × 2"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_of_the_documentation_are_those_of_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text, "run python -m benchmarks.page"
