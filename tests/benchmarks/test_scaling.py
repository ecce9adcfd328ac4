"""The suites on scaling, end to end on tiny sizes, and the cost model on costs that are known."""

import json
import math
import re

import numpy as np
import pytest

from benchmark_records import bench, fit_record, record_of
from benchmarks import cost_model, gpu_parts
from benchmarks.__main__ import main
from benchmarks.blocks import PAIRS, TREES, blocks_for, lazily
from benchmarks.cluster_model import Job, Run, fit_cluster, held_out
from benchmarks.contestants import FROM_FILE, GPU, GPU_PROCESS, POPF, UNDER_FIRE
from benchmarks.curves import Polynomial, Power, curves, fit_curve, fits_of, not_negative
from benchmarks.results import Results
from benchmarks.suites import tasks_of
from benchmarks.summary import forests_that_differ
from benchmarks.tasks import cores
from popf.engine.gpu import candidates
from popf.engine.gpu.host import HostKernels


@pytest.fixture(scope="module")
def scaling_run(tmp_path_factory):
    """The suites on scaling at tiny size, eight or four features; the answer and the file."""
    out = tmp_path_factory.mktemp("scaling") / "tiny.json"
    answers = [
        bench(
            "--scale",
            "tiny",
            "--suite",
            *suites,
            "--match",
            match,
            "--repeat",
            1,
            "--out",
            out,
            *more,
        )
        for suites, match, more in (
            (("scaling", "dask"), "× 8", ()),
            (("out-of-core",), "× 4", ("--resume",)),
        )
    ]
    return answers, out


def values_of(out):
    records = json.loads(out.read_text(encoding="utf-8"))["records"]
    return [
        value for record in records for value in record["values"] if value["operation"] == "fit"
    ]


def test_a_fit_tells_its_time_its_memory_and_its_forest(scaling_run):
    answers, out = scaling_run
    assert [answer.returncode for answer in answers] == [0, 0], [a.stderr for a in answers]
    found = {value["contestant"]: value for value in values_of(out)}
    assert {"popf", "popf on 2 processes", "popf from a file"} <= set(found)
    for value in found.values():
        assert value["value"] > 0
        assert value["memory"] >= 0
        assert value["data"] in (120 * 8 * 8, 120 * 4 * 8)
    cluster = found["popf on 2 processes"]
    assert cluster["workers"] == 2
    assert cluster["n_blocks"] > 1
    assert cluster["worker_memory"] >= 0
    # Two processes cannot grow one tree without sending each other anything.
    assert cluster["moved"] > 0
    # Of one fit, not of the warm-up, and by the names that the cost model looks for.
    assert cluster["tasks"][TREES][0] == cluster["n_blocks"]
    assert cluster["tasks"][PAIRS][0] == cluster["n_pairs"]
    assert cluster["tasks"][PAIRS][1] > 0.0


def test_forests_of_the_suites_on_scaling_are_the_same(scaling_run):
    _, out = scaling_run
    digests = {(value["data"], value["digest"]) for value in values_of(out)}
    assert len(digests) == 2  # one of eight features, one of four


def test_without_a_gpu_it_is_missing_and_nothing_has_failed(scaling_run):
    _, out = scaling_run
    records = json.loads(out.read_text(encoding="utf-8"))["records"]
    assert all(not record["failed"] for record in records)
    gpu = next(record for record in records if record["task"]["contestants"] == ["popf on a GPU"])
    assert gpu["missing"] or all(
        "device_memory" in v for v in gpu["values"] if v["operation"] == "fit"
    )


def test_the_cost_model_prints_what_was_measured(scaling_run, capsys):
    _, out = scaling_run
    assert cost_model.main([str(out)]) == 0
    text = capsys.readouterr().out
    row = next(line for line in text.splitlines() if line.startswith("| 120 × 4 |"))
    assert row.endswith("| yes |")


def test_forests_that_differ_are_told_and_stop_the_cost_model(tmp_path, capsys):
    records = [
        fit_record("dask", "popf", 100, 8, 1.0, digest="a"),
        fit_record("scaling", "popf", 100, 4, 1.0, digest="b"),
    ]
    assert forests_that_differ(records) == []
    records.append(fit_record("dask", "popf on 2 processes", 100, 8, 1.0, digest="b"))
    (line,) = forests_that_differ(records)
    assert "a by popf (dask" in line
    assert "b by popf on 2 processes" in line
    results = Results.begin(tmp_path / "different.json", "tiny")
    for record in records:
        results.add(record)
    assert cost_model.main([str(results.path)]) == 1
    assert "forests differ" in capsys.readouterr().err


def test_a_run_with_different_forests_fails(tmp_path, capsys):
    # All tasks of the run are there already, so that nothing is left to measure.
    tasks = tasks_of(["scaling"], "tiny", thread_list=[1], repeat=1)
    done = [task for task in tasks if task.data.n_features == 8]
    arguments = ["--scale", "tiny", "--suite", "scaling", "--match", "× 8", "--threads", "1"]
    arguments += ["--repeat", "1", "--resume", "--out"]
    for digests in ("aa", "ab"):
        results = Results.begin(tmp_path / f"{digests}.json", "tiny")
        for task in done:
            (who,) = task.contestants
            record = record_of(task, {(who, "fit"): [1.0]})
            record["values"][0]["digest"] = digests[who == GPU]
            results.add(record)
        assert main([*arguments, str(results.path)]) == (0 if digests == "aa" else 1)
        assert ("forests differ" in capsys.readouterr().err) == (digests == "ab")


def test_curves_are_found_again():
    power = fit_curve({n: 3e-7 * n**1.25 for n in (1_000, 2_000, 4_000)}, products=False)
    assert power == pytest.approx(Power(3e-7, 1.25))
    truth = Polynomial(0.2, 3e-6, 4e-10)
    found = fit_curve({n: truth(n) for n in (10_000, 20_000, 40_000, 80_000)}, products=True)
    assert found == pytest.approx(truth)


def test_no_coefficient_is_negative():
    # Time that falls with n: the best straight line has a negative slope.
    found = not_negative([[1.0, n] for n in (1.0, 2.0, 3.0)], [3.0, 2.0, 1.0])
    assert found[1] == 0.0
    assert found[0] > 0.0


def test_a_curve_is_checked_by_a_size_that_it_has_not_seen():
    def time(n):
        return 1e-6 * n * (5.0 if n in (1_000, 16_000) else 1.0)  # the first and the last are off

    records = [fit_record("scaling", "popf", 1_000 * 2**i, 8, time(1_000 * 2**i)) for i in range(5)]
    checked = curves(fits_of(records))["1 core", 8]
    assert checked.held_out == 16_000
    assert checked.curve == pytest.approx(Power(1e-6, 1.0))
    row = next(r for r in cost_model.curve_table(curves(fits_of(records))).rows if r[1] == "16,000")
    assert row[-1] == "**held out** -80%"


def test_the_best_time_counts_and_the_facts_are_kept():
    first = fit_record("scaling", "popf", 100, 8, 2.0, digest="a")
    first["values"].append({**first["values"][0], "value": 1.0, "round": 1})
    del first["values"][1]["digest"]
    (fit,) = fits_of([first])
    assert fit.seconds == 1.0
    assert fit.facts["digest"] == "a"


# By features, and whether on a GPU: the seconds of a plain fit, and what trees and pairs are of it.
W = {
    (8, False): Power(2e-7, 1.2),
    (128, False): Polynomial(0.0, 1e-6, 2e-9),
    (128, True): Polynomial(0.1, 3e-6, 3e-12),
}
WORK = {(8, False): (0.9, 0.3), (128, False): (1.0, 0.6), (128, True): (0.8, 0.7)}


def curve_of(job):
    return W[job.d, job.gpu]


def made_up_run(n, d, workers, blocks, gpu=False):
    """A fit on a cluster whose costs are known."""
    pairs = blocks * (blocks - 1) // 2
    m = n / blocks
    moved = 1.5 * pairs * m * d * 8 + 0.8 * n * d * 8 + 24.0 * n * workers + 100.0 * n
    tasks = 5.0 * blocks + blocks**2 + 2.0 * pairs
    tree, pair = WORK[d, gpu][0] * W[d, gpu](m), WORK[d, gpu][1] * W[d, gpu](2 * m)
    seconds = math.ceil(blocks / workers) * tree + math.ceil(pairs / workers) * pair
    seconds += 3e-9 * moved / workers + 0.5 + 0.004 * tasks + 1e-7 * n * d / workers + 2e-6 * n
    return Run(
        Job(n, d, workers, blocks, pairs, gpu),
        seconds,
        trees=blocks * tree,
        pairs=pairs * pair,
        others=1e-6 * n,
        fetching=3e-9 * moved,
        moved=moved,
        tasks=tasks,
        memory=1e8 + 4.0 * m * d * 8 + 150.0 * n,
    )


def made_up_cluster():
    runs = []
    for d, sizes in ((8, (125_000, 250_000, 500_000, 1_000_000, 2_000_000)),
                     (128, (12_500, 25_000, 50_000, 100_000))):  # fmt: skip
        for workers in (4, 16):
            runs += [made_up_run(n, d, workers, blocks_for(workers, d)) for n in sizes]
    return runs + [made_up_run(n, 128, 1, 4, gpu=True) for n in (250_000, 500_000, 1_000_000)]


def test_the_costs_of_a_cluster_are_found_again_and_hold_for_what_was_held_out():
    runs = made_up_cluster()
    unseen = held_out(runs)
    sizes = {(job.n, job.d, job.gpu) for job in unseen}
    assert sizes == {(2_000_000, 8, False), (100_000, 128, False), (1_000_000, 128, True)}
    assert len(unseen) == 5
    model = fit_cluster([run for run in runs if run.job not in unseen], curve_of)
    found = (model.byte, model.fixed, model.task, model.value, model.sample)
    assert found == pytest.approx((3e-9, 0.5, 0.004, 1e-7, 2e-6), rel=1e-4)
    for place, work in WORK.items():
        assert model.work[place] == pytest.approx(work, rel=1e-4)
    for run in runs:
        assert model.seconds(run.job, curve_of(run.job)) == pytest.approx(run.seconds, rel=1e-4)
        assert model.bytes_moved(run.job) == pytest.approx(run.moved, rel=1e-4)
        assert model.bytes_held(run.job) == pytest.approx(run.memory, rel=1e-4)
    # A job unlike all that was fitted, too.
    large = made_up_run(100_000_000, 128, 64, 64)
    assert model.seconds(large.job, W[128, False]) == pytest.approx(large.seconds, rel=1e-3)


def test_a_cluster_without_fits_teaches_nothing():
    with pytest.raises(ValueError, match="--suite dask"):
        fit_cluster([], curve_of)


def test_the_cost_model_predicts_64_machines_and_says_that_it_predicts():
    records = [
        fit_record("scaling", "popf", n, d, W[d, False](n) / k, threads=k)
        for d, first in ((8, 62_500), (128, 3_125))
        for k in (1, 16)
        for n in (first * 2**i for i in range(6))
    ]
    records += [
        fit_record("scaling", GPU, n, 128, W[128, True](n), threads=16)
        for n in (62_500 * 2**i for i in range(6))
    ]
    for run in made_up_cluster():
        job = run.job
        facts = {"workers": job.workers, "n_blocks": job.blocks, "n_pairs": job.pairs}
        facts |= {"moved": run.moved, "worker_memory": run.memory}
        facts["tasks"] = {
            TREES: (job.blocks, run.trees, 0.0),
            PAIRS: (job.pairs, run.pairs, run.fetching),
            "merge-trees": (run.tasks - job.blocks - job.pairs, run.others, 0.0),
        }
        who = f"popf on {job.workers} processes"
        if job.gpu:
            who, facts["device_memory"] = GPU_PROCESS, 1e9
        records.append(fit_record("dask", who, job.n, job.d, run.seconds, threads=16, **facts))
    text = cost_model.markdown(records)
    assert text.count("**held out** +0%") + text.count("**held out** -0%") == 5 + 5
    assert "**A prediction, not a measurement**" in text
    for where, seconds in (
        ("16 cores", 0.6 * 32 * W[128, False](3_125_000) / 16),
        ("a GPU", 0.7 * 32 * W[128, True](3_125_000)),
    ):
        start = f"| d = 128, {where} a machine"
        row = next(line for line in text.splitlines() if line.startswith(start))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1] == "2,016"
        assert cells[3] == cost_model.duration(seconds)
    table = next(part for part in text.split("### ") if part.startswith("Memory of a fit, d = 8"))
    assert "16 processes, client" in table
    assert "16 processes, largest worker" in table


def test_durations_are_written_in_the_unit_that_suits_them():
    shown = [cost_model.duration(value) for value in (0.05, 90.0, 300.0, 10_000.0, 400_000.0)]
    assert shown == ["50.0 ms", "90.0 s", "5.0 minutes", "2.8 hours", "4.6 days"]


@pytest.mark.parametrize(("workers", "features", "blocks"), [(4, 8, 4), (16, 8, 16), (16, 128, 8)])
def test_there_are_as_many_blocks_as_keep_the_processes_busy(workers, features, blocks):
    assert blocks_for(workers, features) == blocks
    pairs = blocks * (blocks - 1) // 2
    assert blocks + pairs >= workers


def test_rows_of_a_file_are_read_by_who_needs_them(tmp_path):
    pytest.importorskip("dask.array")
    X = np.arange(70.0).reshape(10, 7)
    for array in (X, X[:, 0].copy()):
        np.save(tmp_path / "X.npy", array)
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        for whole in (mapped, array):
            lazy = lazily(whole, 4)
            assert lazy.chunks[0] == (4, 4, 2)
            np.testing.assert_array_equal(lazy.compute(scheduler="sync"), array)


def test_the_suites_on_scaling_measure_the_same_data():
    tasks = tasks_of(["scaling", "dask"], "full")
    plain = {
        task.data for task in tasks if task.contestants == ("popf",) and task.threads == cores()
    }
    wide = [task.data for task in tasks if task.suite == "dask" and task.data.n_features == 128]
    assert wide
    assert set(wide) <= plain


def test_the_parts_of_a_fit_on_a_gpu_run_where_there_is_none(capsys, monkeypatch):
    monkeypatch.setattr(candidates, "FIRST", 33)
    arguments = ["--device", "host", "--samples", "300", "--features", "5", "--repeat", "1"]
    assert gpu_parts.main(arguments) == 0
    told = capsys.readouterr().out
    assert re.search(r"neighbours of 300 × 5: whole tiles [\d.]+ s, filtered [\d.]+ s", told)
    assert "selection of a tile of 64 × 128" in told


def test_neighbours_that_differ_are_no_measurement(monkeypatch):
    monkeypatch.setattr(candidates, "FIRST", 33)
    kernels = HostKernels()
    monkeypatch.setattr(kernels, "filter", lambda *_: None)
    with pytest.raises(ValueError, match="found different neighbours of 300 × 5"):
        gpu_parts.neighbours(kernels, 300, 5, 1)


def test_the_same_forest_is_asked_of_everyone_with_ties_and_under_fire():
    tasks = tasks_of(["same-forest"])
    assert {task.data.shape for task in tasks} == {"blobs", "integer grid"}
    for task in tasks:
        if task.threads > 1:
            assert {POPF, FROM_FILE, GPU, UNDER_FIRE} < set(task.contestants)
    # Of one data set all are compared, whatever the number of threads.
    assert len({task.data for task in tasks}) == len(tasks) / (2 if cores() > 1 else 1)
