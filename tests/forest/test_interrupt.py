"""Ctrl-C stops a long fit soon; ``pytest -rP`` shows how soon."""

import itertools
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from popf import OPFClassifier
from popf.engine.trees import neighbours
from popf.engine.trees import tile_outsiders as product_outsiders

# A fit that takes many seconds, after a small one, so that nothing is left to compile.
CHILD = """
import sys
import numpy as np
from popf import OPFClassifier

n_samples, n_features = int(sys.argv[1]), int(sys.argv[2])
metric = (lambda x, y: abs(x[0] - y[0])) if sys.argv[3] == "callable" else "euclidean"
algorithm = "prim" if sys.argv[3] == "callable" else sys.argv[3]
X = np.random.default_rng(0).normal(size=(n_samples, n_features))
y = np.arange(n_samples) % 2
forest = OPFClassifier(metric, algorithm=algorithm, n_jobs=int(sys.argv[4]))
forest.fit(X[:200], y[:200])
print("fitting", flush=True)
try:
    forest.fit(X, y)
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def processor_time(pid):
    """Seconds of processor time that a process has used, all its threads together."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / 100.0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processor time in /proc")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("algorithm", "n_samples", "n_features"),
    [("kd_tree", 400_000, 8), ("brute", 40_000, 100), ("callable", 20_000, 2)],
)
def test_a_long_fit_can_be_interrupted(algorithm, n_samples, n_features, n_jobs):
    arguments = [str(n_samples), str(n_features), algorithm, str(n_jobs)]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with child:
        try:
            assert child.stdout.readline() == "fitting\n", child.stderr.read()
            begun = processor_time(child.pid)
            while child.poll() is None and processor_time(child.pid) < begun + 0.5:
                time.sleep(0.01)  # the child works, so this ends
            sent = time.perf_counter()
            child.send_signal(signal.SIGINT)
            shown, errors = child.communicate(timeout=120)
        finally:
            child.kill()
    print(f"stopped {time.perf_counter() - sent:.2f} s after Ctrl-C")
    assert shown == "interrupted\n", errors
    assert child.returncode == 0


@pytest.mark.parametrize(
    ("algorithm", "module", "kernel"),
    [("kd_tree", neighbours, "_outsiders"), ("brute", product_outsiders, "_search_block")],
)
def test_threads_begin_no_new_block_after_an_interruption(algorithm, module, kernel, monkeypatch):
    # The search for outsiders is the long part of a fit on separated clusters. Were each thread
    # given its share of it in one piece, Ctrl-C would wait for the end of the shares.
    monkeypatch.setattr(neighbours, "CHUNK_BLOCKS", 1)
    calls, number = [], itertools.count()
    both_search, stopping = threading.Barrier(2, timeout=60), threading.Event()

    def search(*arguments):
        call = next(number)
        calls.append(call)
        if call < 2:
            both_search.wait()
        if call == 0:
            raise KeyboardInterrupt
        assert stopping.wait(timeout=60)

    def shutdown(pool, wait=True, *, cancel_futures=False):
        stop_pool(pool, wait=False, cancel_futures=cancel_futures)
        if calls:  # not a pool of an earlier stage
            stopping.set()
        stop_pool(pool, wait=wait)

    stop_pool = ThreadPoolExecutor.shutdown
    X, y = make_blobs(4000, centers=20, n_features=5, center_box=(-1e4, 1e4), random_state=0)
    forest = OPFClassifier(algorithm=algorithm, n_jobs=2, working_memory=0.01).fit(X, y)
    monkeypatch.setattr(module, kernel, search)
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shutdown)
    with pytest.raises(KeyboardInterrupt):
        forest.fit(X, y)
    assert len(calls) <= 4, "both threads may finish what they are at, no more"


def test_an_interrupted_fit_leaves_no_half_forest(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    X = np.random.default_rng(0).normal(size=(50, 2))
    y = np.arange(50) % 2
    forest = OPFClassifier(algorithm="kd_tree").fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(neighbours, "_nearest", interrupted)
        with pytest.raises(KeyboardInterrupt):
            forest.fit(X[:40], np.array(["a", "b"])[y[:40]])
    # Either all of the first forest or nothing, but no labels of the second on nodes of the first.
    try:
        labels = forest.predict(X)
    except ValueError as error:
        assert "not fitted" in str(error)  # noqa: PT017
    else:
        assert (labels == y).all()
