"""Times in a study are of the work, without what a process does once: compiling, loading."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from popf.experiment import run
from small_studies import blobs

USUAL, ONCE = 1.0, 30.0


class Compiling(ClassifierMixin, BaseEstimator):
    """Takes its usual time by the clock of `world`, and more when it first works on some splits."""

    world = SimpleNamespace()

    def fit(self, X, y):
        split = X[0].tolist()
        if split not in self.world.seen:
            self.world.now += ONCE if len(self.world.seen) in self.world.slow else 0.0
            self.world.seen.append(split)
        self.world.now += USUAL
        self.world.fits += 1
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        self.world.now += USUAL
        return np.resize(self.classes_, len(X))


@pytest.mark.parametrize("slow", [(0,), (1,), (0, 1), (2, 4)])
def test_a_split_that_is_the_first_to_compile_shows_in_no_time(monkeypatch, slow):
    world = SimpleNamespace(now=0.0, seen=[], slow=slow, fits=0)
    monkeypatch.setattr(Compiling, "world", world)
    measuring = import_module("popf.experiment.methods")
    monkeypatch.setattr(measuring, "time", SimpleNamespace(perf_counter=lambda: world.now))
    monkeypatch.setattr(measuring, "_fastest", {})
    results = run({"one": blobs()}, {"compiling": Compiling()}, runs=5, scale=False)
    assert world.now > ONCE * len(slow)  # so it has happened
    np.testing.assert_allclose(results.values("train_seconds", "one", "compiling"), USUAL)
    np.testing.assert_allclose(results.values("test_seconds", "one", "compiling"), USUAL)
    # Besides those, only the first run is done again: it has nothing to be compared with.
    assert world.fits == 5 + len({0, *slow})
