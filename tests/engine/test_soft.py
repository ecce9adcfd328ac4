"""The soft competition's engine: every way to sum the paths of a class, against the definition."""

import os
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import naive
import naive_soft
from popf.engine.soft import by_space_tree as soft_space
from popf.engine.soft import by_tiles as soft_products
from popf.engine.soft import scores as soft
from popf.engine.soft.simd import CHAIN
from strategies import bounded, size


class Nodes(NamedTuple):
    """Training nodes of some classes, and queries, some of which are nodes."""

    samples: np.ndarray
    codes: np.ndarray
    costs: np.ndarray
    weights: np.ndarray
    queries: np.ndarray
    own: np.ndarray


SHAPES = ["blob", "clusters", "grid", "one place", "line", "outliers"]
COSTS = ["none", "small", "mixed", "large", "far apart"]
WEIGHTS = ["ones", "counts", "tiny", "wild"]


def make_nodes(seed, n, d, n_classes=2, shape="blob", costs="mixed", weights="ones", n_queries=24):
    """Make nodes of a shape, of about unit extent, queries among them, beside them and far off."""
    rng = np.random.default_rng(seed)
    n = max(n, n_classes)
    X = rng.normal(size=(n, d))
    if shape == "clusters":
        X = rng.normal(size=(4, d))[rng.integers(0, 4, n)] + 0.01 * X
    elif shape == "grid":
        X = rng.integers(0, 4, (n, d)) / 4.0
    elif shape == "one place":
        X = np.full((n, d), 0.3)
    elif shape == "line":
        X = rng.random((n, 1)) * rng.normal(size=d)
    elif shape == "outliers":
        X[: n // 10] *= 1e6
    # One class may have a single member.
    codes = np.concatenate([np.arange(n_classes), rng.integers(0, max(n_classes - 1, 1), n)])[:n]
    scale = {"none": 0.0, "small": 0.01, "mixed": 0.5, "large": 3.0, "far apart": 1.0}[costs]
    C = scale * rng.random(n)
    if costs == "far apart":
        C = 10.0 ** rng.uniform(-6, 6, n)
    w = {
        "ones": np.ones(n),
        "counts": rng.integers(1, 5, n).astype(float),
        "tiny": 1e-3 * rng.random(n) + 1e-9,
        "wild": 10.0 ** rng.uniform(-6, 4, n),
    }[weights]
    own = rng.integers(0, n, n_queries)
    new = X[rng.integers(0, n, (2, n_queries))].mean(axis=0) + 0.1 * rng.normal(size=(n_queries, d))
    far = 10.0 ** rng.uniform(0, 14, (6, 1)) * rng.normal(size=(6, d))
    queries = np.concatenate([X[own], new, X[own[:4]], far])
    return Nodes(
        X, codes, C, w, queries, np.concatenate([own, np.full(len(queries) - len(own), -1)])
    )


def expected_scores(nodes, taus):
    """What the definition gives: (n_queries, n_classes, n_bandwidths), infinite without any other."""
    D = np.sqrt(naive.squared_distances(nodes.queries, nodes.samples))
    n_classes = nodes.codes.max() + 1
    found = np.full((len(D), n_classes, len(taus)), np.inf)
    for q, distances in enumerate(D):
        w, offers = nodes.weights.copy(), np.maximum(nodes.costs, distances)
        if nodes.own[q] >= 0:
            w[nodes.own[q]] = max(w[nodes.own[q]] - 1.0, 0.0)
        for k in range(n_classes):
            mine = nodes.codes == k
            for j, tau in enumerate(taus):
                score = naive_soft.score(offers[mine], w[mine], tau)
                found[q, k, j] = np.inf if np.isnan(score) else score
    return found


def assert_within(found, expected, error):
    """Check that sums are wrong by no more than `error`, relative to them, but for rounding."""
    assert_array_equal(np.isinf(found), np.isinf(expected))
    finite = np.isfinite(expected)
    allowed = -np.log1p(-error) + 0.1 * error + 1e-12 + 1e-14 * np.abs(expected[finite])
    wrong = np.abs(found[finite] - expected[finite])
    assert (wrong <= allowed).all(), (wrong / allowed).max()


def places(place, own):
    return np.where(own >= 0, place[own], -1)


def by_space(nodes, taus, n_threads=1):
    space = soft_space.lay_out(nodes.samples, nodes.codes, nodes.costs, nodes.weights)
    own = places(space.place, nodes.own)
    return soft_space.space_scores(space, nodes.queries, own, taus, n_threads)


def by_products(nodes, taus, n_threads=1):
    line = soft_products.line_up(nodes.samples, nodes.codes, nodes.costs, nodes.weights)
    own = places(line.place, nodes.own)
    return soft_products.product_scores(line, nodes.queries, own, taus, n_threads)


def by_blocks(nodes, taus, squared, n_threads=1, block_rows=7):
    order = np.argsort(nodes.codes, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    n_classes = nodes.codes.max() + 1
    starts = np.searchsorted(nodes.codes[order], np.arange(n_classes + 1))
    masses = np.bincount(nodes.codes, weights=nodes.weights)
    competitors = soft.Competitors(
        nodes.costs[order], nodes.weights[order], starts, masses, squared
    )
    D = naive.squared_distances(nodes.queries, nodes.samples[order])
    D = D if squared else np.sqrt(D)
    own = places(place, nodes.own)
    return soft.class_scores(lambda a, b: D[a:b], own, competitors, taus, block_rows, n_threads)


# Paths computed one by one ------------------------------------------------------------------------

TAUS = np.array([[0.7]])
CHAINS = np.array([2.0, 1.4])[:, None] * 0.5 ** np.arange(CHAIN)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("taus", [TAUS, CHAINS], ids=["one", "chains"])
def test_blocks_of_distances_give_the_definition(squared, taus):
    nodes = make_nodes(0, size(300), 3, 3, weights="counts")
    found = by_blocks(nodes, taus, squared)
    expected = expected_scores(nodes, taus.ravel())
    assert_within(found.scores.reshape(expected.shape), expected, 1e-15)


@pytest.mark.parametrize("d", [1, 2, 8])
@pytest.mark.parametrize("taus", [TAUS, CHAINS], ids=["one", "chains"])
def test_space_gives_the_definition(d, taus):
    nodes = make_nodes(1, size(900), d, 3, weights="counts")
    expected = expected_scores(nodes, taus.ravel())
    assert_within(by_space(nodes, taus).scores.reshape(expected.shape), expected, soft.ERROR)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 400),
    d=st.integers(1, 3),
    n_classes=st.integers(1, 5),
    shape=st.sampled_from(SHAPES),
    costs=st.sampled_from(COSTS),
    weights=st.sampled_from(WEIGHTS),
    tau=st.floats(-7, 7).map(lambda x: 10.0**x),
)
@bounded(100 if not numba.config.DISABLE_JIT else 5)
def test_space_holds_the_error(seed, n, d, n_classes, shape, costs, weights, tau):
    nodes = make_nodes(seed, size(n), d, n_classes, shape, costs, weights)
    found = by_space(nodes, np.array([[tau]])).scores[:, :, :, 0]
    assert_within(found, expected_scores(nodes, [tau]), soft.ERROR)


def test_far_chunks_are_passed_by():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4 * soft.CHUNK, 2))
    X[2 * soft.CHUNK :] += 1000.0
    space = soft_space.lay_out(X, np.zeros(len(X), dtype=int), np.zeros(len(X)), np.ones(len(X)))
    space.weights[space.place[2 * soft.CHUNK :]] = np.nan
    found = soft_space.space_scores(space, X[:9], np.full(9, -1), np.array([[0.5]]))
    assert np.isfinite(found.scores).all()


@pytest.mark.parametrize("d", [2, 20, 60])
@pytest.mark.parametrize("taus", [TAUS, CHAINS], ids=["one", "chains"])
def test_products_hold_the_error(d, taus):
    nodes = make_nodes(3, size(600), d, 3, weights="counts")
    nodes = nodes._replace(queries=nodes.queries[:-6], own=nodes.own[:-6])
    expected = expected_scores(nodes, taus.ravel())
    found = by_products(nodes, taus)
    assert_within(found.scores.reshape(expected.shape), expected, soft.ERROR)


@pytest.mark.parametrize("way", [by_space, by_products])
def test_the_cheapest_paths_are_found_without_bandwidths(way):
    nodes = make_nodes(4, size(700), 2, 3)
    found = way(nodes, np.empty((0, 1))).lowest
    # A score at a bandwidth of almost nothing is the cheapest path.
    lowest = expected_scores(nodes, [1e-9])[:, :, 0] * 1e-9
    finite = np.isfinite(lowest)
    assert_array_equal(np.isfinite(found), finite)
    assert_allclose(found[finite], lowest[finite], rtol=1e-7, atol=1e-7)


def test_a_chain_has_one_or_nine_bandwidths():
    with pytest.raises(ValueError, match="1 or 9 bandwidths, not 3"):
        by_space(make_nodes(0, 10, 2), np.ones((1, 3)))


def test_answers_do_not_depend_on_the_number_of_threads():
    nodes = make_nodes(8, size(1500), 2, 3, n_queries=100)
    taus = np.array([[0.1]])
    for way in (by_space, by_products):
        one, three = (way(nodes, taus, n).scores for n in (1, 3))
        assert_array_equal(one, three)
    assert_array_equal(by_blocks(nodes, taus, True).scores, by_blocks(nodes, taus, True, 3).scores)


@pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="runs itself without JIT, and there is none already"
)
def test_the_kernels_run_without_jit():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    chosen = "definition or products_hold or cheapest or space_holds"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        [*command, "-k", chosen], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
