"""The compiled metrics: formulas, exact symmetry, domains."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from popf.engine import distances
from popf.engine.distances import KERNELS, kernel_blocks, kernel_rows
from popf.forest.metrics import choose_metric


def quotient(numerator, denominator):
    """0/0 = 0."""
    return np.divide(
        numerator, denominator, out=np.zeros_like(numerator), where=np.asarray(denominator) != 0
    )


FORMULAS = {
    "sqeuclidean": lambda x, y: np.sum((x - y) ** 2),
    "manhattan": lambda x, y: np.sum(np.abs(x - y)),
    "canberra": lambda x, y: np.sum(quotient(np.abs(x - y), np.abs(x) + np.abs(y))),
    "squared_chord": lambda x, y: np.sum((np.sqrt(x) - np.sqrt(y)) ** 2),
    "squared_chi_square": lambda x, y: np.sum(quotient((x - y) ** 2, x + y)),
    "chi_square": lambda x, y: np.sqrt(np.sum(quotient((x / x.sum() - y / y.sum()) ** 2, x + y))),
    "cosine": lambda x, y: np.sum((x / np.linalg.norm(x) - y / np.linalg.norm(y)) ** 2) / 2,
    "chebyshev": lambda x, y: np.max(np.abs(x - y)),
    "hamming": lambda x, y: np.mean(x != y),
    "bray_curtis": lambda x, y: quotient(
        np.sum(np.abs(x - y)), np.sum(np.abs(x)) + np.sum(np.abs(y))
    ),
}


def samples(name, n_samples=40, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n_samples, n_features)) * rng.choice([1.0, 0.1], (n_samples, 1))
    X[:, 0] += 0.5 * KERNELS[name].positive_mass
    return X if KERNELS[name].non_negative else X - 1.0


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_its_formula(name):
    X = samples(name)
    expected = [[FORMULAS[name](x, y) for y in X] for x in X]
    np.testing.assert_allclose(kernel_blocks(name, X, X)(0, len(X)), expected, rtol=1e-13)


@pytest.mark.parametrize("name", KERNELS)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_kernel_is_symmetric_to_the_bit_and_zero_for_equal_samples(name, data):
    low = 0.0 if KERNELS[name].non_negative else -1e6
    X = data.draw(arrays(np.float64, (6, 3), elements=st.floats(low, 1e6, width=32)))
    X[:, 0] += 1e-3 * KERNELS[name].positive_mass
    D = kernel_blocks(name, X, X)(0, 6)
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_array_equal(np.diag(D), 0.0)


@pytest.mark.parametrize("name", KERNELS)
def test_weights_depend_neither_on_the_cut_nor_on_threads(name, monkeypatch):
    X = samples(name, n_samples=3 * distances.TILE + 5, n_features=3)
    whole = kernel_blocks(name, X[:4], X)(0, 4)
    monkeypatch.setattr(distances, "GRAIN", 1)
    everyone = np.arange(len(X))
    for among in (kernel_rows(name, X), kernel_rows(name, X, n_threads=3)):
        for others in (everyone, everyone[::-1], everyone[7:600]):
            row = among(others)
            np.testing.assert_array_equal([row(i) for i in range(4)], whole[:, others])
    np.testing.assert_array_equal(kernel_blocks(name, X, X[:4])(100, 300), whole.T[100:300])


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200])
def test_the_cosine_distance_does_not_depend_on_lengths(scale):
    X = samples("cosine")
    lengths = scale * np.random.default_rng(0).uniform(1, 2, (len(X), 1))
    D = kernel_blocks("cosine", X * lengths, X)(0, len(X))
    atol = 1e-3 if scale < 1e-300 else 1e-15  # subnormal numbers have few digits
    np.testing.assert_allclose(D, kernel_blocks("cosine", X, X)(0, len(X)), atol=atol)


def test_chi_square_refuses_a_sample_without_mass():
    with pytest.raises(ValueError, match=r"features of X\[1\] are 0"):
        choose_metric("chi_square").check(np.array([[1.0, 2.0], [0.0, 0.0]]))
