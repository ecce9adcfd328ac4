"""Workers of other versions, interrupts, lost workers and a lost scheduler."""

import os
import signal
import threading

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from dask_problems import SEED, as_dask, quiet_cluster, two_classes
from gpus import has_gpu
from popf import OPFClassifier
from popf.dask import DaskOPFClassifier, cluster
from strategies import assert_same_forest


def test_workers_with_other_versions_are_refused(client, few_samples, monkeypatch):
    told = client.get_versions(packages=list(cluster.PACKAGES))
    packages = next(iter(told["workers"].values()))["packages"]
    monkeypatch.setattr(client, "get_versions", lambda packages: told)
    for there, message in (("0.0.1", "has popf 0.0.1, but"), (None, "has no popf, but")):
        packages["popf"] = there
        with pytest.raises(RuntimeError, match=message):
            DaskOPFClassifier(client).fit(*as_dask(*few_samples))


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_workers_without_a_gpu_are_named_before_work_starts(client):
    X, y = da.ones((20, 2), chunks=(5, 2)), da.zeros(20, chunks=5)
    with pytest.raises(
        RuntimeError, match=r"worker .* cannot use `device='cuda'`: .*`device=None`"
    ):
        DaskOPFClassifier(client, device="cuda").fit(X, y)


def when_waiting(monkeypatch, number, act):
    """Do something when results are waited for the n-th time; return all that was waited for."""
    asked = []

    def gather(self, futures):
        asked.append(futures)
        if len(asked) == number:
            act(self.client)
        return self.client.gather(futures)

    monkeypatch.setattr(cluster.Tasks, "gather", gather)
    return asked


def test_an_interrupt_cancels_what_is_under_way(client, few_samples, monkeypatch):
    def interrupt(client):
        raise KeyboardInterrupt

    asked = when_waiting(monkeypatch, 5, interrupt)  # in the midst of the trees
    model = DaskOPFClassifier(client)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*as_dask(*few_samples))
    assert asked[-1]
    assert all(future.cancelled() for future in asked[-1])
    assert not hasattr(model, "costs_")
    assert not model.__sklearn_is_fitted__()


def test_a_killed_worker_costs_time_but_changes_nothing(monkeypatch):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(800, 2, rng)
    X = np.round(X, 2)
    plain = OPFClassifier().fit(X, y)

    def kill_the_fullest(client):
        held, pids = client.has_what(), client.run(os.getpid)
        os.kill(pids[max(held, key=lambda address: len(held[address]))], signal.SIGKILL)

    with (
        quiet_cluster(2, processes=True) as processes,
        Client(processes, set_as_default=False) as workers,
    ):
        asked = when_waiting(monkeypatch, 5, kill_the_fullest)  # workers have blocks and trees
        model = DaskOPFClassifier(workers).fit(*as_dask(X, y, 200))
        assert len(asked) > 5
        assert_same_forest(model, plain)
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
        workers.wait_for_workers(
            2, timeout=120
        )  # another could be started in the middle of the fit


def test_a_lost_scheduler_gives_an_error_and_no_model(few_samples, monkeypatch):
    lost = quiet_cluster(1, processes=False)
    when_waiting(monkeypatch, 3, lambda client: threading.Thread(target=lost.close).start())
    with Client(lost, set_as_default=False) as connected:
        model = DaskOPFClassifier(connected)
        with pytest.raises(RuntimeError, match="connection to Dask's scheduler was lost"):
            model.fit(*as_dask(*few_samples))
        assert not model.__sklearn_is_fitted__()
        assert not hasattr(model, "costs_")
