"""Probabilities are predicted in blocks of rows: with bounded memory, and the same bits whatever the blocks."""

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

from popf import POPFClassifier
from popf.probability import pool


def curved(n, n_features):
    """Two classes that all components learn something about."""
    X = np.random.default_rng(0).normal(size=(n, n_features))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] > 0.0).astype(int)


@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("method", ["pooled", "forest"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        pytest.param(*curved(300, 3), id="pairs"),
        pytest.param(*load_iris(return_X_y=True), id="three classes"),
        pytest.param(*make_moons(120, noise=0.2, random_state=0), id="moons"),
    ],
)
def test_blocks_change_no_bit(monkeypatch, X, y, method, rows):
    model = POPFClassifier(method).fit(X[::2], y[::2])
    whole = model.predict_log_proba(X)
    monkeypatch.setattr(pool, "BLOCK_VALUES", 0)
    monkeypatch.setattr(pool, "MIN_ROWS", rows)
    np.testing.assert_array_equal(model.predict_log_proba(X), whole)
    alone = np.concatenate([model.predict_log_proba(row[None]) for row in X[:20]])
    np.testing.assert_array_equal(alone, whole[:20])


def test_memory_does_not_grow_with_the_number_of_rows():
    model = POPFClassifier().fit(*curved(300, 10))
    X, _ = curved(200_000, 10)
    tracemalloc.start()
    try:
        probabilities = model.predict_proba(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # In addition to the output, logits and what the softmax makes of them, less than what blocks may take.
    assert peak < 8 * probabilities.nbytes + 100e6


def test_a_forest_without_weight_is_not_evaluated(monkeypatch):
    X, y = curved(300, 3)
    model = POPFClassifier().fit(X, y)
    weights = np.append(0.0, model.pool_.weights[1:])
    fitted = model.pool_._replace(weights=weights)
    assert model.pool_.uses_forest
    assert fitted.competition(model.opf_.forest_) is None
    with_scores = fitted.combine(X, np.zeros((len(X), 2)))
    monkeypatch.setattr(model.competition_, "scores", None)  # calling it would fail
    without = fitted.logits(X, model.competition_, None)
    np.testing.assert_array_equal(without, with_scores)
