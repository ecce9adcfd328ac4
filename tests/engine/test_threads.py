"""Many threads and forked processes: always the same forest, and no more threads than asked for."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from popf import OPFClassifier
from popf.engine.mst import neighbours_by_tiles
from popf.engine.runtime.threads import SWITCH_SECONDS, Team, map_chunks, map_items, run_both
from strategies import assert_same_conquest, assert_same_forest, fit, gaussian, grid

ALGORITHMS = ("kd_tree", "brute")


class TestTeam:
    @pytest.mark.parametrize("n_threads", [1, 2, 5])
    def test_results_come_in_the_order_of_the_chunks(self, n_threads):
        assert map_items(str.upper, ["a", "b", "c"], n_threads) == ["A", "B", "C"]
        expected = [(start, min(start + 3, 100)) for start in range(0, 100, 3)]
        assert map_chunks(lambda *chunk: chunk, 100, 3, n_threads) == expected
        with Team(n_threads) as team:
            assert team.map_chunks(lambda *chunk: chunk, 100, 3) == expected
            assert team.map_chunks(lambda *chunk: chunk, 0, 3) == []
            shares = team.map_shares(lambda *share: share, 100)
            assert len(shares) == n_threads
            assert [i for start, stop in shares for i in range(start, stop)] == list(range(100))

    def test_threads_share_the_chunks(self):
        met = threading.Barrier(3, timeout=60)
        with Team(3) as team:
            team.map_chunks(lambda *_: met.wait(), 9, 1)  # breaks unless three are at work

    def test_a_team_inside_another_shares_its_threads(self):
        def workers(team):
            met = threading.Barrier(team.n_threads, timeout=60)
            seen = team.map_chunks(lambda *_: (met.wait(), threading.get_ident())[1], 6, 1)
            return set(seen)

        def of_a_new_team(*_):
            with Team(2) as team:
                return workers(team)

        with Team(3) as outer:
            everyone = workers(outer)
            with Team(3) as team:
                assert workers(team) == everyone
            assert of_a_new_team() < everyone
            with Team(6) as larger:
                assert len(workers(larger)) == 6
            # Threads that are at work themselves are not waited for by their own work.
            mine, others = outer.map_chunks(of_a_new_team, 2, 1)
            assert not (mine | others) & everyone
            assert workers(outer) == everyone

    def test_after_an_error_nothing_new_is_begun(self):
        begun, both = [], threading.Barrier(2, timeout=60)

        def fail(start, _):
            begun.append(start)
            if start < 2:
                both.wait()
            if start == 0:
                raise ValueError("of chunk 0")
            np.zeros(100_000).sum()  # without Python's lock, so that the other thread can go on

        with Team(2) as team:
            with pytest.raises(ValueError, match="of chunk 0"):
                team.map_chunks(fail, 10_000, 1)
            assert len(begun) < 10_000
            assert team.map_chunks(lambda start, _: start, 4, 1) == [0, 1, 2, 3]


class TestRunBoth:
    def test_runs_the_first_on_this_thread_and_the_second_beside_it(self):
        met = threading.Barrier(2, timeout=60)

        def thread():
            met.wait()  # breaks unless both are at work
            return threading.current_thread()

        first, second = run_both(thread, thread, n_threads=2)
        assert first is threading.current_thread() is not second

    def test_one_thread_runs_one_after_the_other(self):
        done = []
        run_both(lambda: done.append(1), lambda: done.append(2), n_threads=1)
        assert done == [1, 2]

    @pytest.mark.parametrize("failing", [0, 1])
    @pytest.mark.parametrize("n_threads", [1, 2])
    def test_an_error_of_either_is_raised(self, failing, n_threads):
        functions = [int, int]
        functions[failing] = lambda: int("x")
        with pytest.raises(ValueError, match="invalid literal"):
            run_both(*functions, n_threads)


class TestSameForest:
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    @pytest.mark.usefixtures("small_chunks")
    def test_whoever_comes_first(self, algorithm):
        # Threads that lower each other's bounds do so in another order each time.
        problem = grid(1, 600, 3, 30, 3)
        expected = fit(problem, algorithm)
        interval = sys.getswitchinterval()
        try:
            sys.setswitchinterval(1e-6)
            for _ in range(10):
                forest = fit(problem, algorithm, n_jobs=4, working_memory=0.2)
                assert_same_forest(forest, expected)
                assert_same_conquest(forest, expected, problem.queries)
        finally:
            sys.setswitchinterval(interval)

    @pytest.mark.parametrize("n_jobs", [1, 3])
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    @pytest.mark.usefixtures("small_chunks")
    def test_where_each_component_picks_the_next(self, algorithm, n_jobs):
        # Gaps that shrink along a line: the first round makes one chain of picks of all points.
        X = np.cumsum(np.linspace(2.0, 1.0, 2000))[:, np.newaxis]
        y = np.arange(2000) // 500
        forest = OPFClassifier(algorithm=algorithm, n_jobs=n_jobs).fit(X, y)
        lower, higher = forest.spanning_tree_.lower, forest.spanning_tree_.higher
        np.testing.assert_array_equal(higher, lower + 1)
        np.testing.assert_array_equal(np.sort(lower), np.arange(1999))
        np.testing.assert_array_equal(forest.prototypes_, [499, 500, 999, 1000, 1499, 1500])


def test_products_are_made_by_the_threads_of_n_jobs(monkeypatch):
    enter, seen, blas_threads = neighbours_by_tiles._update_neighbour_lists, set(), set()

    def watched(*arguments):
        seen.add(threading.get_ident())
        blas_threads.update(
            info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"
        )
        return enter(*arguments)

    monkeypatch.setattr(neighbours_by_tiles, "_update_neighbour_lists", watched)
    fit(gaussian(0, 1500, 3), "brute", n_jobs=3, working_memory=0.2)
    # Those of other tests may come and go meanwhile, so only who took part is counted.
    assert 1 <= len(seen) <= 3
    assert threading.get_ident() not in seen
    assert blas_threads <= {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_gives_the_same_forests():
    # In a process of its own, because Python warns of forks beside the test runner's threads.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["child", "0", "parent"]


FORKING = """
import os, threading
import numpy as np
from popf import OPFClassifier
from popf.engine.runtime import threads

rng = np.random.default_rng(0)
X, y = rng.normal(size=(1000, 5)), rng.integers(0, 2, 1000)

def fit():
    forests = [OPFClassifier(algorithm=a, n_jobs=2).fit(X, y) for a in ("kd_tree", "brute")]
    return [forest.costs_[forest.conquer(X[:100] + 0.1).nodes] for forest in forests]

def n_blas_threads():
    return [library.num_threads for library in threads._controller().lib_controllers]

expected = fit()
before = n_blas_threads()
inside, leave = threading.Event(), threading.Event()

def stay():  # a fit under way in another thread while the process is forked
    with threads.one_blas_thread():
        inside.set()
        leave.wait()

busy = threading.Thread(target=stay)
busy.start()
inside.wait()
child = os.fork()
if child == 0:
    same = all((a == b).all() for a, b in zip(fit(), expected, strict=True))
    print("child", flush=True)
    os._exit(0 if same and threads._inside == 0 and n_blas_threads() == before else 1)
print(os.waitpid(child, 0)[1])
leave.set()
busy.join()
assert all((a == b).all() for a, b in zip(fit(), expected, strict=True))
assert n_blas_threads() == before
print("parent")
"""


def test_the_switch_interval_is_restored():
    before = sys.getswitchinterval()

    def inner():
        return run_both(sys.getswitchinterval, sys.getswitchinterval, 2)

    assert run_both(inner, inner, 2) == ((pytest.approx(SWITCH_SECONDS),) * 2,) * 2
    assert sys.getswitchinterval() == before
    with pytest.raises(ZeroDivisionError):
        run_both(lambda: 1 / 0, inner, 2)
    assert sys.getswitchinterval() == before
    with Team(2), Team(3):
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
    assert sys.getswitchinterval() == before
