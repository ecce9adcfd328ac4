"""Killed or sent to a cluster: a study ends with the same tables."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification

from popf.experiment import reproduce, run, table

RUNS = 8
TIMES = {"seconds", "train_seconds", "test_seconds"}
# A process that is killed in the middle of its nth line.
CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_resume import study
from popf.experiment import reproduce

folder, n_lines = sys.argv[2], int(sys.argv[3])
write, written = os.write, []

def write_half_and_die(descriptor, text):
    written.append(text)
    if len(written) < n_lines:
        return write(descriptor, text)
    write(descriptor, text[: len(text) // 2])
    os.kill(os.getpid(), signal.SIGKILL)

os.write = write_half_and_die
reproduce(folder, figures=False, **study())
"""


# A study whose workers tell their process ids, and then work for ever.
ENDLESS = """
import sys
sys.path.insert(0, sys.argv[1])
from test_resume import Endless, study
from popf.experiment import run

run(study()["datasets"], {"endless": Endless(sys.argv[2])}, runs=1, n_jobs=2)
"""


class Endless(ClassifierMixin, BaseEstimator):
    """Writes the id of its process to a folder, and never gets done."""

    def __init__(self, folder=None):
        self.folder = folder

    def fit(self, X, y):
        Path(self.folder, str(os.getpid())).touch()
        threading.Event().wait()

    def predict(self, X):
        return X


def study(runs=RUNS):
    sets = {
        name: make_classification(120, 5, flip_y=0.1, random_state=seed)
        for seed, name in enumerate(["one", "two"])
    }
    return {"datasets": sets, "methods": ["opf", "pso", "newton"], "runs": runs}


def tables(folder):
    """All tables except those of times, which differ from run to run."""
    files = sorted((folder / "tables").iterdir())
    return {path.name: path.read_bytes() for path in files if path.stem not in TIMES}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    reproduce(folder, figures=False, **study())
    return folder


def test_killed_twice_and_resumed_it_ends_with_the_same_tables(tmp_path, uninterrupted):
    journal = tmp_path / "journal.jsonl"
    for n_lines in (1, 5):
        command = [sys.executable, "-c", CHILD, os.path.dirname(__file__), tmp_path, str(n_lines)]
        assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL
        assert not journal.read_bytes().endswith(b"\n")
    kept = journal.read_bytes().rpartition(b"\n")[0]
    said = []
    reproduce(tmp_path, figures=False, say=said.append, **study())
    assert "cut off or damaged" in said[0]
    assert f"3 of {2 * RUNS} runs are already in" in said[1]
    assert journal.read_bytes().startswith(kept)  # nothing that was finished was done again
    assert tables(tmp_path) == tables(uninterrupted)
    assert len(tables(tmp_path)) == 12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process does not know that its parent ended")
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_a_study_that_is_killed(tmp_path, signal_number):
    command = [sys.executable, "-c", ENDLESS, os.path.dirname(__file__), tmp_path]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while len(workers := list(tmp_path.iterdir())) < 2:
            assert process.poll() is None
            threading.Event().wait(0.05)
        process.send_signal(signal_number)
    for _ in range(1200):  # a minute, where they need half a second
        left = [worker.name for worker in workers if os.path.exists(f"/proc/{worker.name}")]
        if not left:
            break
        threading.Event().wait(0.05)
    assert not left


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    journal, said = tmp_path / "journal.jsonl", []

    def interrupt(n_done, n_total, text):
        if n_done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, figures=False, progress=interrupt, say=said.append, **study())
    assert len(journal.read_text().splitlines()) == 1 + 3 * 3
    assert said == [f"Finished runs are saved in {journal}; the same command continues from there."]


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
        assert table(spread, measure).csv() == table(alone, measure).csv()
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 1 + 2 * 3 * 3
    assert np.isfinite(spread.values("seconds", "one", "OPF")).all()
