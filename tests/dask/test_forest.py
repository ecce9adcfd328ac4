"""Forests and probabilities on a cluster are those of one machine."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from dask_problems import SEED, as_dask, samples
from gpus import DEVICES
from popf import OPFClassifier, POPFClassifier
from popf.dask import DaskOPFClassifier, DaskPOPFClassifier
from strategies import assert_same_forest


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
@pytest.mark.parametrize("kind", ["normal", "grid"])
def test_the_cluster_gives_the_plain_forest_and_predictions(client, kind, device):
    rng = np.random.default_rng(SEED)
    X, y = samples(kind, 400, rng)
    new, _ = samples(kind, 90, rng)
    plain = OPFClassifier().fit(X, y)
    algorithm = "auto" if device == "cpu" else "brute"
    model = DaskOPFClassifier(client, algorithm=algorithm, device=device).fit(*as_dask(X, y))
    assert_same_forest(model, plain)
    assert model.n_blocks_ == 8
    assert model.to_local().device_ == device
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
    parts = [key for key in tasks if str(key).startswith("Part")]
    assert len(parts) == model.n_blocks_ >= 6
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))
    np.testing.assert_array_equal(model.decision_function(new), plain.decision_function(new))


def test_parameters_are_those_of_the_plain_estimators(client):
    ours = {"client", "block_size", "scratch"}
    for dask_class, plain_class in (
        (DaskOPFClassifier, OPFClassifier),
        (DaskPOPFClassifier, POPFClassifier),
    ):
        mine, plain = dask_class().get_params(), plain_class().get_params()
        assert {name: value for name, value in mine.items() if name not in ours} == plain
        copy = clone(dask_class(client, block_size=7, metric="manhattan"))
        assert (copy.client, copy.block_size, copy.metric) == (client, 7, "manhattan")
