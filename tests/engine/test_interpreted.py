"""The kernels as plain Python: what is compiled is what is written."""

import sys

import numba
import numpy as np
import pytest

import naive
from popf import OPFClassifier, OPFClustering, single_linkage
from popf.engine.runtime.simd import LANES
from popf.engine.soft_scores import CompetingNodes, CompetingSpace
from strategies import ALGORITHMS, TINY_MEMORY, assert_same_conquest, assert_same_forest, grid

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def interpret(monkeypatch):
    """Take all kernels for the Python that they are written in."""

    def take_python():
        n_kernels = 0
        for name, module in list(sys.modules.items()):
            if name.startswith(("popf.engine.", "popf.density.")):
                for attribute, value in list(vars(module).items()):
                    if hasattr(value, "py_func"):
                        monkeypatch.setattr(module, attribute, value.py_func)
                        n_kernels += 1
        return n_kernels

    return take_python


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_forests(algorithm, interpret):
    X, y, queries = grid(0, 70, 2, 7, n_classes=3)  # with duplicates, and ties everywhere
    forest = OPFClassifier(algorithm=algorithm, working_memory=TINY_MEMORY).fit(X, y)
    assert_same_conquest(forest, forest, queries)
    assert interpret() > 20
    again = OPFClassifier(algorithm=algorithm, working_memory=TINY_MEMORY, n_jobs=2).fit(X, y)
    assert_same_forest(forest, again)
    assert_same_conquest(forest, again, queries)


def test_sums(interpret):
    rng = np.random.default_rng(0)
    n = 3 * LANES
    X, codes = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    costs, weights, queries = rng.random(n), rng.integers(1, 4, n) * 1.0, rng.normal(size=(6, 3))
    taus = 2.0 * 0.5 ** np.arange(9)
    space = CompetingSpace.build(X, codes, costs, weights)
    nodes = CompetingNodes.build(codes, costs, weights)
    D = np.sqrt(naive.squared_distances(queries, X[nodes.order]))

    def scores():
        blocks = (lambda start, stop: D[start:stop]), len(D), taus, 4, 1
        return space.scores(queries, taus), nodes.scores(*blocks)

    compiled = scores()
    interpret()
    for mine, theirs in zip(scores(), compiled, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_clusters_and_linkage(metric, interpret):
    X, _, queries = grid(1, 60, 2, 9)

    def found():
        model = OPFClustering(4, min_area=3, metric=metric).fit(X)
        linkage = single_linkage(X, metric)
        return model.labels_, model.roots_, model.predict(queries), linkage, model.density_

    compiled = found()
    interpret()
    for mine, theirs in zip(found(), compiled, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
