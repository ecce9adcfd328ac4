"""Sums over chunks from their moments differ from sums over their nodes by no more than is stated."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from popf.engine.moments import DISTANCES, ERRORS, TYPICAL, WAYS, WEIGHTS, Moments, expand
from strategies import bounded


def make_chunks(seed, d, extent, costs):
    """Make points, weights and costs of eight chunks, some with nodes of weight 0, and where each starts."""
    rng = np.random.default_rng(seed)
    starts = np.append(0, np.cumsum(rng.integers(1, 40, 8)))
    n = starts[-1]
    X = np.repeat(3.0 * rng.normal(size=(8, d)), np.diff(starts), axis=0)
    X += extent * rng.standard_t(3, size=(n, d)) * rng.random(d)
    weights = rng.integers(0, 3, n) * rng.random(n)
    weights[starts[:-1]] = 1.0
    return X, weights, costs * rng.random(n), starts


def expanded(X, weights, costs, starts, query, tau):
    """Expand all chunks for a query; lower bounds are those of the boxes."""
    there = weights > 0.0
    boxes = [X[a:b][there[a:b]] for a, b in pairwise(starts)]
    gaps = [
        np.sqrt((np.maximum(np.maximum(x.min(0) - query, query - x.max(0)), 0.0) ** 2).sum())
        for x in boxes
    ]
    lowest = np.minimum.reduceat(np.where(there, costs, np.inf), starts[:-1])
    moments = Moments.build(X, weights, costs, starts[:-1])
    work = np.zeros((WAYS + X.shape[1], 8))
    with np.errstate(divide="ignore", invalid="ignore"):
        expand(moments, 0, 8, query[None], 0, np.maximum(gaps, lowest), 0.0, tau, work)
    return work, moments.masses


@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 6),
    extent=st.floats(-4, 1).map(lambda x: 10.0**x),
    tau=st.floats(-1, 2).map(lambda x: 10.0**x),
    costs=st.sampled_from([0.0, 0.01, 3.0]),
    inside=st.booleans(),
)
@bounded(300)
def test_errors_are_at_most_what_is_stated(seed, d, extent, tau, costs, inside):
    X, weights, floors, starts = make_chunks(seed, d, extent, costs)
    rng = np.random.default_rng(seed)
    query = X[0].copy() if inside else 4.0 * rng.normal(size=d)
    work, masses = expanded(X, weights, floors, starts, query, tau)
    paths = np.maximum(floors, np.sqrt(((X - query) ** 2).sum(axis=1)))
    exact = np.add.reduceat(weights * np.exp(-paths / tau), starts[:-1])
    found = work[WEIGHTS] * np.exp(-work[DISTANCES] / tau)
    stated = 2.0 ** -work[ERRORS]
    assert (np.abs(found - exact) <= stated + 1e-13 * exact).all()
    assert (masses * np.exp(-work[TYPICAL] / tau) <= exact * (1.0 + 1e-13)).all()


def test_far_from_small_chunks_errors_are_small_and_stated_to_be_so():
    X, weights, floors, starts = make_chunks(3, 3, 0.02, 0.001)
    query = np.full(3, 9.0)
    work, masses = expanded(X, weights, floors, starts, query, 1.0)
    assert (work[WEIGHTS] > 0.0).all()
    assert (2.0 ** -work[ERRORS] < 1e-5 * masses * np.exp(-work[DISTANCES])).all()


def test_with_many_features_chunks_are_left_out():
    work, masses = expanded(*make_chunks(3, 6, 0.02, 0.0), np.full(6, 9.0), 1.0)
    assert (work[WEIGHTS] == 0.0).all()
    assert (2.0 ** -work[ERRORS] <= 1.07 * masses).all()
