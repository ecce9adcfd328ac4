"""Samples are prepared for the forest one by one: other rows do not change a bit."""

import numpy as np
import pytest

from popf.probability.forest_component import prepare
from popf.probability.scaler import fit_scaler


@pytest.mark.parametrize("n_features", [1, 2, 5, 13, 70])
def test_a_sample_is_prepared_in_the_same_way_beside_any_others(n_features):
    rng = np.random.default_rng(n_features)
    samples = rng.normal(size=(301, n_features))
    scaler = fit_scaler(samples, np.ones(301), rng.permutation(n_features))
    for n_directions in {1, 2, min(n_features, 13)}:
        matrix = rng.normal(size=(n_features, n_directions))
        whole = prepare(scaler, matrix, samples)
        for rows in (slice(0, 1), slice(7, 10), slice(100, 301), slice(300, 301), slice(0, 301, 2)):
            np.testing.assert_array_equal(prepare(scaler, matrix, samples[rows]), whole[rows])
        # Nor does the order in which arrays are in memory.
        other = prepare(scaler, np.asfortranarray(matrix), np.asfortranarray(samples))
        np.testing.assert_array_equal(other, whole)
