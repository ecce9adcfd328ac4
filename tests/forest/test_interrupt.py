"""Ctrl-C stops a long fit soon."""

import itertools
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from popf import OPFClassifier
from popf.engine.trees import neighbours, tile_neighbours


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="sends a signal to a thread")
@pytest.mark.parametrize("wakes", [True, False], ids=["wakes", "sleeps on"])
@pytest.mark.parametrize(
    ("algorithm", "module", "kernel"),
    [("kd_tree", neighbours, "_outsiders"), ("brute", tile_neighbours, "_search_block")],
)
def test_threads_begin_no_new_block_after_ctrl_c(algorithm, module, kernel, wakes, monkeypatch):
    # The search for outsiders is the long part of a fit on separated clusters. Were each thread
    # given its share of it in one piece, Ctrl-C would wait for the end of the shares.
    monkeypatch.setattr(neighbours, "CHUNK_BLOCKS", 1)
    calls, late, number = [], [], itertools.count()
    both_search, stopping = threading.Barrier(2, timeout=60), threading.Event()

    def search(*arguments):
        call = next(number)
        calls.append(call)
        if call < 2:
            both_search.wait()
        if call == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if not stopping.wait(timeout=20):
            late.append(call)
            raise TimeoutError

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
    signal.siginterrupt(
        signal.SIGINT, wakes
    )  # other libraries let system calls go on after a signal
    try:
        with pytest.raises(KeyboardInterrupt):
            forest.fit(X, y)
    finally:
        signal.siginterrupt(signal.SIGINT, True)
    assert not late, "the search waited in vain for the end of the team"
    assert len(calls) <= 4, "both threads may finish what they are at, no more"


def test_ctrl_c_in_the_function_of_a_user_stops_the_fit():
    calls = itertools.count()

    def distance(x, y):
        if next(calls) == 100:
            signal.raise_signal(signal.SIGINT)
        return abs(x[0] - y[0])

    with pytest.raises(KeyboardInterrupt):
        OPFClassifier(distance).fit(np.arange(60.0)[:, None], np.arange(60) % 2)
    assert next(calls) == 101
