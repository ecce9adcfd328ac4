"""Killed, shared or sent to a cluster: a study ends with the same tables."""

import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from joblib import parallel_config

from popf.experiment import run
from popf.experiment.render import as_csv
from popf.experiment.report import reproduce

# What a study is, for this process and for those that are killed.
STUDY = """
from sklearn.datasets import make_classification

def study(runs):
    sets = {
        name: make_classification(120, 5, flip_y=0.1, random_state=seed)
        for seed, name in enumerate(["one", "two"])
    }
    return {"datasets": sets, "methods": ["opf", "pso", "newton"], "runs": runs}
"""
RUNS = 20
REPRODUCE = f"""{STUDY}
import sys
from popf.experiment.report import reproduce
reproduce(sys.argv[1], figures=False, say=lambda line: print(line, file=sys.stderr), **study({RUNS}))
"""
TIMES = {"seconds", "train_seconds", "test_seconds", "runs"}


def study(runs=RUNS):
    namespace = {}
    exec(STUDY, namespace)
    return namespace["study"](runs)


def start(folder):
    command = [sys.executable, "-c", REPRODUCE, str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def n_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def tables(folder):
    """All tables but those of times, which no two runs have alike."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.name == "tables" and path.stem not in TIMES
    }


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    reproduce(folder, figures=False, **study())
    return folder


def test_killed_five_times_and_resumed_it_ends_with_the_same_tables(tmp_path, uninterrupted):
    journal, chance = tmp_path / "journal.jsonl", random.Random(0)
    n_killed = 0
    for _ in range(5):
        # Anything between the first line that this process writes and a few runs later.
        enough = n_lines(journal) + chance.randint(1, 6)
        process = start(tmp_path)
        while process.poll() is None and n_lines(journal) < enough:
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.02))
        process.kill()
        process.communicate()
        n_killed += process.returncode == -signal.SIGKILL
    assert n_killed == 5
    assert 0 < n_lines(journal) < n_lines(uninterrupted / "journal.jsonl")
    kept = journal.read_bytes().rpartition(b"\n")[0]
    process = start(tmp_path)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "runs are in" in said
    assert journal.read_bytes().startswith(kept)  # nothing that was finished was done again
    assert tables(tmp_path) == tables(uninterrupted)
    assert len(tables(tmp_path)) == 16


def test_everything_made_anew_from_one_journal_is_the_same_to_the_byte(tmp_path, uninterrupted):
    (tmp_path / "journal.jsonl").write_bytes((uninterrupted / "journal.jsonl").read_bytes())
    reproduce(tmp_path, figures=False, **study())
    for path in uninterrupted.rglob("*"):
        if path.is_file() and path.suffix != ".lock":
            assert (tmp_path / path.relative_to(uninterrupted)).read_bytes() == path.read_bytes()


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    journal = tmp_path / "journal.jsonl"
    process = start(tmp_path)
    while process.poll() is None and n_lines(journal) < 4:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    lines = journal.read_text().splitlines()
    assert len(lines) >= 4
    assert all(json.loads(line) for line in lines)


def test_two_processes_share_a_journal_and_the_work(tmp_path, uninterrupted):
    journal = tmp_path / "journal.jsonl"
    one = start(tmp_path)
    while one.poll() is None and n_lines(journal) < 2:
        time.sleep(0.001)
    other = start(tmp_path)
    said = [process.communicate(timeout=300)[1] for process in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), said
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    keys = [
        (entry["dataset"], entry["form"], entry["run"], entry["method"])
        for entry in records
        if "method" in entry
    ]
    assert len(keys) == len(set(keys)) == 2 * 3 * RUNS
    assert tables(tmp_path) == tables(uninterrupted)


def test_a_cluster_gives_the_same_numbers(tmp_path):
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    alone = run(**study(3))
    settings = {"n_workers": 1, "threads_per_worker": 2, "processes": False}
    with (
        distributed.LocalCluster(**settings, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config("dask"),
    ):
        spread = run(**study(3), journal=tmp_path / "journal.jsonl")
    for measure in ("accuracy", "log_loss", "brier", "ece"):
        assert as_csv(spread, measure) == as_csv(alone, measure)
    assert n_lines(tmp_path / "journal.jsonl") == 1 + 2 * 3 * 3
    assert np.isfinite(spread.values("seconds", "one", "OPF")).all()
