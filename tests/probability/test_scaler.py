"""Scaling of the features, against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import naive_probability
from popf.probability.scaler import fit_scaler, weighted_quantile
from strategies import bounded, whole_weights


@bounded(60)
@given(
    x=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    weights=whole_weights,
    share=st.sampled_from([0.02, 0.25, 0.5, 0.75]),
)
def test_weighted_quantiles_are_those_of_repeated_samples(x, weights, share):
    x, w = np.array(x), np.maximum(weights[: len(x)], 1)
    found = weighted_quantile(np.column_stack([x, -x]), w.astype(float), share, 0.5)
    assert_allclose(found[0, 0], naive_probability.quantile(x, w, share), rtol=1e-12, atol=1e-9)
    assert_allclose(found[1, 1], naive_probability.quantile(-x, w, 0.5), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_scaling_is_its_formula_and_moves_samples_into_the_training_range(spread):
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [
            rng.normal(size=41),
            np.exp(3.0 * rng.normal(size=41)),
            (rng.random(41) < 0.1).astype(float),
            rng.poisson(2.0, 41).astype(float),
            np.where(rng.random(41) < 0.9, 0.0, rng.normal(size=41)),
        ]
    )
    columns = np.array([3, 0, 4, 1, 2])
    w, new = rng.integers(1, 4, 41), rng.normal(size=(60, 5)) * spread
    scaler = fit_scaler(X, w.astype(float), columns)
    expected = naive_probability.squash(X, w, new)[:, columns]
    assert_allclose(scaler.apply(new), expected, atol=1e-12)
    inside = scaler.apply(X)
    assert_allclose(np.average(inside, axis=0, weights=w), 0.0, atol=1e-12)
    assert_allclose(np.average(inside**2, axis=0, weights=w), 1.0)
    for far in (scaler.apply(new), scaler.apply(1e300 * new)):
        assert (far >= inside.min(axis=0)).all()
        assert (far <= inside.max(axis=0)).all()


def test_samples_far_away_keep_their_direction():
    X = np.random.default_rng(2).uniform(-1.0, 1.0, size=(100, 3))
    X[0] = 1.0
    scaler = fit_scaler(np.concatenate([X, -X]), np.ones(200), np.arange(3))

    def linear(new):  # before squashing, in units of the borders
        return np.sinh(scaler.apply(new) / scaler.factor + scaler.mean) / scaler.high

    assert_allclose(linear(1e6 * np.array([[1.0, 0.5, 0.25]])), [[1.0, 0.5, 0.25]], atol=0.02)
    alone = linear(np.array([[1e6, 0.5, 0.25]]))
    assert_allclose(alone, linear(np.array([[1.0, 0.5, 0.25]])), atol=1e-9)
    # There is no jump at the border.
    near = linear(np.array([[1e6, 1.0 - 1e-9, 0.0], [1e6, 1.0 + 1e-9, 0.0]]))
    assert_allclose(near[0], near[1], atol=1e-6)


def test_features_that_do_not_vary_are_0_and_all_is_finite():
    X = np.column_stack(
        [
            np.full(9, 7.3),
            7.3 * (1.0 + np.spacing(1.0) * (np.arange(9) % 2)),
            np.full(9, 1.7e308),
            np.append(np.zeros(8), 1e20),
            1e308 * np.linspace(-1.0, 1.0, 9),
            np.linspace(0.0, 1e-300, 9),
        ]
    )
    scaler = fit_scaler(X, np.ones(9), np.arange(6))
    for samples in (X, np.full((1, 6), 1e308), np.full((1, 6), -1e308)):
        scaled = scaler.apply(samples)
        assert np.isfinite(scaled).all()
        assert_array_equal(scaled[:, :3], 0.0)
    assert_allclose(scaler.apply(X)[:, 4:].std(axis=0), 1.0)
