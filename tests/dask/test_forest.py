"""Forests and probabilities on a cluster are those of one machine."""

from itertools import product

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from dask_problems import SEED, as_dask, assert_same_forest, samples, two_classes
from popf import OPFClassifier, POPFClassifier
from popf.dask import DaskOPFClassifier, DaskPOPFClassifier


@pytest.mark.parametrize("kind", ["normal", "grid"])
def test_the_cluster_gives_the_plain_forest_and_predictions(client, kind):
    rng = np.random.default_rng(SEED)
    X, y = samples(kind, 400, rng)
    new, _ = samples(kind, 90, rng)
    plain = OPFClassifier().fit(X, y)
    model = DaskOPFClassifier(client).fit(*as_dask(X, y))
    assert_same_forest(model, plain)
    assert model.n_blocks_ == 8
    lazy = da.from_array(new, chunks=(40, new.shape[1]))
    for method in ("predict", "decision_function"):
        expected = getattr(plain, method)(new)
        got = getattr(model, method)(lazy)
        assert isinstance(got, da.Array)
        assert got.chunks[0] == lazy.chunks[0]
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got.compute(scheduler=client), expected)
        np.testing.assert_array_equal(getattr(model, method)(new), expected)
        np.testing.assert_array_equal(getattr(model.to_local(), method)(new), expected)
    assert model.to_local().explain(new[:3])[0].cost == plain.explain(new[:3])[0].cost


@pytest.mark.parametrize("kind", ["normal", "coarse"])
def test_a_large_model_meets_partitions_block_by_block(client, kind):
    rng = np.random.default_rng(SEED)
    X, y = samples(kind, 300, rng)
    new = np.concatenate([samples(kind, 60, rng)[0], np.full((1, 3), 1e200)])
    plain = OPFClassifier().fit(X, y)
    small = 300 * 3 * 8 / 2**20  # MiB: a quarter of it is less than the model
    model = DaskOPFClassifier(client, working_memory=small).fit(*as_dask(X, y))
    tasks = model.predict(da.from_array(new, chunks=(61, 3))).__dask_graph__()
    parts = [key for key in tasks if str(key).startswith("make_part")]
    assert len(parts) == model.n_blocks_ >= 6
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))
    np.testing.assert_array_equal(model.decision_function(new), plain.decision_function(new))


SOFT = [
    {},
    {"n_left_out": 60},
    {"metric": "manhattan"},
    {"metric": "log_euclidean"},
    {"n_left_out": None},
]
PAPER = {"method": "paper", "box": ((-100.0, 100.0), (-100.0, 100.0))}


@pytest.mark.parametrize(("n_classes", "params"), [*product([2, 3], SOFT), (2, PAPER)], ids=str)
def test_probabilities_are_those_of_one_machine(client, params, n_classes):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(360, 3, rng)
    if n_classes == 3:
        y = y + (X[:, 1] > 0.5)
    new = rng.normal(size=(70, 3))
    weight = rng.integers(0, 4, size=360).astype(float)
    plain = POPFClassifier(random_state=3, **params).fit(X, y, weight)
    model = DaskPOPFClassifier(client, random_state=3, **params)
    model.fit(*as_dask(X, y, 90), da.from_array(weight, chunks=100))
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        expected = getattr(plain, method)(new)
        for got in (getattr(model, method)(new), getattr(model.to_local(), method)(new)):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))
    for name in ("A_", "B_", "slope_", "bandwidth_", "prior_weight_"):
        assert hasattr(model, name) == hasattr(plain, name)
        if hasattr(plain, name):
            assert getattr(model, name) == pytest.approx(getattr(plain, name), rel=1e-9, abs=1e-12)


def test_left_out_samples_with_company_everywhere(client):
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.arange(40) % 2
    plain = POPFClassifier().fit(X, y)
    model = DaskPOPFClassifier(client).fit(*as_dask(X, y, 8))
    np.testing.assert_allclose(model.bandwidths_, plain.bandwidths_, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-9)


def test_parameters_are_those_of_the_plain_estimators(client):
    ours = {"client", "block_size", "scratch"}
    for dask_class, plain_class in (
        (DaskOPFClassifier, OPFClassifier),
        (DaskPOPFClassifier, POPFClassifier),
    ):
        mine, plain = dask_class().get_params(), plain_class().get_params()
        plain.pop("linear_map", None)  # maps are fitted to all samples at once
        assert {name: value for name, value in mine.items() if name not in ours} == plain
        copy = clone(dask_class(client, block_size=7, metric="manhattan"))
        assert (copy.client, copy.block_size, copy.metric) == (client, 7, "manhattan")
