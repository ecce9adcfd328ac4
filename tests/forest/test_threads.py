"""OPFClassifier in threads and processes: they change nothing, leave all as it was, and stop at Ctrl-C."""

import itertools
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.pool import ThreadPool

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_info, threadpool_limits

from popf import OPFClassifier
from popf.engine.mst import neighbours, neighbours_by_tiles
from popf.engine.runtime.threads import one_blas_thread
from strategies import ALGORITHMS, BLOB, BLOBS, assert_same_forest


def test_forests_may_be_grown_and_one_forest_asked_in_several_threads_at_a_time():
    one = OPFClassifier().fit(BLOBS, BLOB)
    expected = OPFClassifier().fit(BLOBS, BLOB).decision_function(BLOBS + 0.1)

    def grow(algorithm):
        forest = OPFClassifier(algorithm=algorithm, n_jobs=2, working_memory=0.01)
        forest.fit(BLOBS, BLOB)
        return forest, forest.decision_function(BLOBS + 0.1), one.decision_function(BLOBS + 0.1)

    with ThreadPool(6) as pool:
        for forest, *decisions in pool.map(grow, ALGORITHMS * 4):
            assert_same_forest(forest, one)
            assert_array_equal(decisions, [expected, expected])


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_cross_validation_in_parallel(backend):
    model = OPFClassifier(algorithm="brute", n_jobs=2)
    with joblib.parallel_config(backend=backend):
        scores = cross_val_score(model, BLOBS, BLOB, cv=4, n_jobs=2)
    assert_array_equal(scores, cross_val_score(model, BLOBS, BLOB, cv=4))


def test_fits_that_overlap_leave_blas_its_threads():
    def n_threads():
        return {about["num_threads"] for about in threadpool_info() if about["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        with ExitStack() as first, ExitStack() as second:
            first.enter_context(one_blas_thread())
            second.enter_context(one_blas_thread())
            assert n_threads() == {1}
            first.close()
            assert n_threads() == {1}  # the second is not done
            second.close()
        assert n_threads() == {2}


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="sends a signal to a thread")
@pytest.mark.parametrize("wakes", [True, False], ids=["wakes", "sleeps on"])
@pytest.mark.parametrize(
    ("algorithm", "module", "kernel"),
    [("kd_tree", neighbours, "_outsiders"), ("brute", neighbours_by_tiles, "_search_block")],
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
