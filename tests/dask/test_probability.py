"""Probabilities on a cluster are those of one machine, but for rounding."""

import dask.array as da
import numpy as np
import pytest

from dask_problems import SEED, as_dask, two_classes
from gpus import DEVICES
from popf import POPFClassifier
from popf.dask import DaskPOPFClassifier
from popf.probability import fitting

PAPER = {"method": "paper", "box": ((-100.0, 100.0), (-100.0, 100.0))}
FITTED = ("A_", "B_", "bandwidths_", "slopes_", "biases_", "prior_weight_", "pool_weights_")


def assert_same_probabilities(model, plain, new):
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        expected = getattr(plain, method)(new)
        for found in (getattr(model, method)(new), getattr(model.to_local(), method)(new)):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))
    for name in FITTED:
        assert hasattr(model, name) == hasattr(plain, name)
        if hasattr(plain, name):
            expected = pytest.approx(getattr(plain, name), rel=1e-9, abs=1e-12)
            assert getattr(model, name) == expected


@pytest.mark.parametrize(
    ("n_classes", "params"),
    [
        (2, {}),
        (3, {}),
        (2, {"method": "forest", "squash": False, "linear_map": None}),
        (3, {"method": "forest", "metric": "manhattan"}),
        (2, {"metric": "log_euclidean", "class_bandwidths": False, "background": False}),
        (2, PAPER),
    ],
    ids=str,
)
def test_probabilities_are_those_of_one_machine(client, params, n_classes):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(360, 3, rng)
    if n_classes == 3:
        y = y + (X[:, 1] > 0.5)
    new = rng.normal(size=(70, 3))
    weight = rng.integers(0, 4, size=360).astype(float)
    plain = POPFClassifier(**params).fit(X, y, weight)
    model = DaskPOPFClassifier(client, **params)
    model.fit(*as_dask(X, y, 90), da.from_array(weight, chunks=100))
    assert_same_probabilities(model, plain, new)


def test_bandwidths_are_fitted_to_all_samples_where_the_rest_is_chosen_by_some(client, monkeypatch):
    monkeypatch.setattr(fitting, "N_TO_CHOOSE", 120)
    rng = np.random.default_rng(SEED)
    X, y = two_classes(500, 3, rng)
    X[:, 0] = np.round(X[:, 0], 1)  # samples are ordered by further features, too
    plain = POPFClassifier().fit(X, y)
    model = DaskPOPFClassifier(client).fit(*as_dask(X, y, 90))
    assert_same_probabilities(model, plain, rng.normal(size=(70, 3)))


def test_samples_may_all_have_company(client):
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.arange(40) % 2
    plain = POPFClassifier().fit(X, y)
    model = DaskPOPFClassifier(client).fit(*as_dask(X, y, 8))
    np.testing.assert_allclose(model.bandwidths_, plain.bandwidths_, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_probabilities_of_blocks_on_a_device_are_the_plain_ones(client, device):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(300, 6, rng)
    new = rng.normal(size=(60, 6))
    model = DaskPOPFClassifier(client, device=device).fit(*as_dask(X, y, 80))
    expected = POPFClassifier().fit(X, y).predict_proba(new)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-5)
