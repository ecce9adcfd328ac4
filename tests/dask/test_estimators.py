"""Forests on a cluster are those of one machine, to the bit; probabilities but for rounding."""

import contextlib

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from dask_problems import SEED, Here, as_dask, samples, two_classes
from gpus import DEVICES
from popf import OPFClassifier, POPFClassifier
from popf.dask import DaskOPFClassifier, DaskPOPFClassifier
from popf.dask import forest as dask_forest
from popf.probability import folds
from strategies import assert_same_forest

FITTED = ("bandwidth_", "prior_weight_", "pool_weights_", "linear_map_losses_", "held_out_losses_")


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
@pytest.mark.parametrize("kind", ["normal", "grid"])
def test_the_cluster_gives_the_plain_forest_and_predictions(client, kind, device):
    rng = np.random.default_rng(SEED)
    X, y = samples(kind, 400, rng)
    new, _ = samples(kind, 90, rng)
    plain = OPFClassifier().fit(X, y)
    algorithm = "auto" if device == "cpu" else "brute"
    model = DaskOPFClassifier(client, algorithm=algorithm, device=device).fit(*as_dask(X, y, 100))
    assert_same_forest(model, plain)
    assert model.n_blocks_ == 4
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
        plain.pop("categorical_features", None)  # features are numbers
        assert {name: value for name, value in mine.items() if name not in ours} == plain
        copy = clone(dask_class(client, block_size=7, metric="manhattan"))
        assert (copy.client, copy.block_size, copy.metric) == (client, 7, "manhattan")


def assert_same_probabilities(model, plain, new, tolerance=1e-9):
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        expected = getattr(plain, method)(new)
        for found in (getattr(model, method)(new), getattr(model.to_local(), method)(new)):
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))
    assert model.linear_map_ == plain.linear_map_
    np.testing.assert_array_equal(model.interactions_, plain.interactions_)
    np.testing.assert_array_equal(model.opf_.costs_, plain.opf_.costs_)
    for name in FITTED:
        expected = pytest.approx(getattr(plain, name), rel=tolerance, abs=1e-12)
        assert getattr(model, name) == expected


@pytest.mark.parametrize(
    ("n_classes", "params"),
    [
        (2, {}),
        (3, {}),
        (3, {"method": "forest", "linear_map": "discriminant"}),
        (2, {"method": "forest", "squash": False}),
        (3, {"metric": "manhattan"}),
        (2, {"method": "forest", "metric": "log_euclidean"}),
    ],
    ids=str,
)
def test_probabilities_are_those_of_one_machine(client, params, n_classes):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(240, 3, rng)
    if n_classes == 3:
        y = y + (X[:, 1] > 0.5)
    new = rng.normal(size=(70, 3))
    weight = rng.integers(0, 4, size=240).astype(float)
    plain = POPFClassifier(**params).fit(X, y, weight)
    model = DaskPOPFClassifier(client, **params)
    model.fit(*as_dask(X, y, 90), da.from_array(weight, chunks=70))
    assert_same_probabilities(model, plain, new)


def test_one_part_is_held_out_as_on_one_machine(client, monkeypatch):
    monkeypatch.setattr(folds, "ENOUGH", 200)
    rng = np.random.default_rng(SEED)
    X, y = two_classes(250, 3, rng)
    X[:, 0] = np.round(X[:, 0], 1)
    plain = POPFClassifier().fit(X, y)
    model = DaskPOPFClassifier(client).fit(*as_dask(X, y, 90))
    assert_same_probabilities(model, plain, rng.normal(size=(70, 3)))


def many(n, rng, signal=1.5):
    """Samples of three classes of different frequency, some of them twice, of which few are fetched."""
    X = np.round(rng.normal(size=(n, 2)), 2)
    X[: n // 10] = X[-(n // 10) :]
    y = np.digitize(signal * X[:, 0] + rng.logistic(size=n), [-2.5, 2.0])
    return X, np.array(["rare", "usual", "some"])[y]


@pytest.mark.parametrize("signal", [0.0, 1.5])
def test_choices_on_a_subsample_of_many_are_honest(client, monkeypatch, signal):
    monkeypatch.setattr(folds, "MAX_SAMPLES", 1000)
    rng = np.random.default_rng(SEED)
    X, y = many(3000, rng, signal)
    new, truth = many(4000, rng, signal)
    model = DaskPOPFClassifier(client, method="forest").fit(*as_dask(X, y, 700))
    loss = log_loss(truth, model.predict_proba(new))
    assert loss == pytest.approx(model.held_out_losses_["pool"], abs=0.05)
    frequencies = np.unique(y, return_counts=True)[1] / len(y)
    ignorant = log_loss(truth, np.tile(frequencies, (len(new), 1)))
    assert loss < ignorant + (0.005 if signal == 0.0 else -0.1)
    # The forest is that of all samples.
    local = model.to_local()
    assert len(model.pool_.forest.nodes) == len(pd.DataFrame(X).assign(y=y).drop_duplicates())
    expected = OPFClassifier().fit(local.prepare(X), y).costs_
    np.testing.assert_array_equal(model.opf_.costs_, expected)
    np.testing.assert_allclose(local.predict_proba(new), model.predict_proba(new), atol=1e-9)
    # Neither partitions nor the order of the rows matter.
    order = rng.permutation(len(X))
    again = DaskPOPFClassifier(client, method="forest").fit(*as_dask(X[order], y[order], 300))
    np.testing.assert_allclose(again.predict_proba(new), model.predict_proba(new), atol=1e-9)


def test_no_more_samples_are_fetched_than_choices_need(monkeypatch):
    monkeypatch.setattr(folds, "MAX_SAMPLES", 200)
    tasks = Here()
    monkeypatch.setattr(dask_forest, "tasks_on", lambda client: contextlib.nullcontext(tasks))
    X, y = many(1000, np.random.default_rng(SEED))
    DaskPOPFClassifier(method="forest").fit(*as_dask(X, y, 250))
    fetched = [len(given[1]) for name, given in tasks.done if name == "fetch-rows"]
    assert len(fetched) == 4
    assert 190 <= sum(fetched) <= 200 + 3 * folds.MIN_PER_CLASS


def test_groups_are_held_out_as_on_one_machine(client, tmp_path):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(240, 3, rng)
    new, meters = rng.normal(size=(70, 3)), np.array([f"meter {i % 40}" for i in range(240)])
    plain = POPFClassifier().fit(X, y, groups=meters)
    assert (
        abs(POPFClassifier().fit(X, y).predict_proba(new) - plain.predict_proba(new)).max() > 1e-3
    )
    model = DaskPOPFClassifier(client)
    model.fit(*as_dask(X, y, 90), groups=da.from_array(meters, chunks=70))
    assert_same_probabilities(model, plain, new)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(stolen=y, meter=meters)
    frame.to_parquet(tmp_path / "months.parquet", row_group_size=80)
    model.fit(str(tmp_path), "stolen", groups="meter")
    P = model.predict_proba(frame[["a", "b", "c"]])
    np.testing.assert_allclose(P, plain.predict_proba(X), rtol=0, atol=1e-9)
    with pytest.raises(TypeError, match="`groups` must be the name of a column, not ndarray"):
        model.fit(str(tmp_path), "stolen", groups=meters)
    with pytest.raises(ValueError, match="groups must have one entry for each of the 240 rows"):
        model.fit(X, y, groups=meters[1:])


def test_samples_may_all_have_company(client):
    rng = np.random.default_rng(SEED)
    points = rng.normal(size=(120, 2))  # more than distances are averaged from
    X, y = np.repeat(points, 4, axis=0), np.arange(480) % 2
    y[::4] = X[::4, 0] > 0
    plain = POPFClassifier(method="forest").fit(X, y)
    model = DaskPOPFClassifier(client, method="forest").fit(*as_dask(X, y, 160))
    assert model.bandwidth_ == pytest.approx(plain.bandwidth_, rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(points), plain.predict_proba(points), rtol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_probabilities_of_blocks_on_a_device_are_the_plain_ones(client, device):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(300, 6, rng)
    new = rng.normal(size=(60, 6))
    model = DaskPOPFClassifier(client, method="forest", device=device).fit(*as_dask(X, y, 110))
    expected = POPFClassifier("forest").fit(X, y).predict_proba(new)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-5)
