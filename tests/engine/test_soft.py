"""The soft competition's engine: every way to sum the paths of a class, against the definition."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import naive
import naive_soft
from popf import OPFClassifier
from popf.engine.soft import by_space_tree as soft_space
from popf.engine.soft import by_tiles as soft_products
from popf.engine.soft import plane as soft_plane
from popf.engine.soft import scores as soft
from popf.engine.soft.plane_series import ORDER, polar_from_powers, series
from popf.engine.soft.simd import CHAIN
from popf.probability import soft_competition
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


def in_space(nodes):
    return soft_space.lay_out(nodes.samples, nodes.codes, nodes.costs, nodes.weights)


def places(place, own):
    return np.where(own >= 0, place[own], -1)


def by_space(nodes, taus, error, n_threads=1):
    space = in_space(nodes)
    bandwidths = soft.Bandwidths(taus, error)
    own = places(space.place, nodes.own)
    return soft_space.space_scores(space, nodes.queries, own, bandwidths, n_threads)


def by_products(nodes, taus, error, n_threads=1):
    line = soft_products.line_up(nodes.samples, nodes.codes, nodes.costs, nodes.weights)
    bandwidths = soft.Bandwidths(taus, error)
    own = places(line.place, nodes.own)
    return soft_products.product_scores(line, nodes.queries, own, bandwidths, n_threads)


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


def by_plane(nodes, tau, error, n_threads=1, rows=slice(None)):
    plane = soft_plane.spread_out(in_space(nodes), tau, n_threads)
    own = places(plane.space.place, nodes.own)[rows]
    return soft_plane.plane_scores(plane, nodes.queries[rows], own, error, n_threads)


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
def test_space_without_error_gives_the_definition(d, taus):
    nodes = make_nodes(1, size(900), d, 3, weights="counts")
    expected = expected_scores(nodes, taus.ravel())
    found = by_space(nodes, taus, 0.0)
    assert_within(found.scores.reshape(expected.shape), expected, 1e-15)


@pytest.mark.parametrize("error", [1e-3, 1e-8])
def test_space_holds_the_error(error):
    nodes = make_nodes(2, size(3000), 2, 2)
    taus = np.array([[0.03]])
    expected = expected_scores(nodes, taus.ravel())
    found = by_space(nodes, taus, error).scores.reshape(expected.shape)
    assert_within(found, expected, error)
    if error > 1e-8 and not numba.config.DISABLE_JIT:
        assert (found != by_space(nodes, taus, 0.0).scores.reshape(expected.shape)).any()


@pytest.mark.parametrize("d", [2, 20, 60])
@pytest.mark.parametrize("taus", [TAUS, CHAINS], ids=["one", "chains"])
def test_products_hold_the_error(d, taus):
    nodes = make_nodes(3, size(600), d, 3, weights="counts")
    nodes = nodes._replace(queries=nodes.queries[:-6], own=nodes.own[:-6])
    expected = expected_scores(nodes, taus.ravel())
    found = by_products(nodes, taus, 1e-6)
    assert_within(found.scores.reshape(expected.shape), expected, 1e-6)


@pytest.mark.parametrize("way", [by_space, by_products])
def test_the_cheapest_paths_are_found_without_bandwidths(way):
    nodes = make_nodes(4, size(700), 2, 3)
    found = way(nodes, np.empty((0, 1)), 1e-12).lowest
    # A score at a bandwidth of almost nothing is the cheapest path.
    lowest = expected_scores(nodes, [1e-9])[:, :, 0] * 1e-9
    finite = np.isfinite(lowest)
    assert_array_equal(np.isfinite(found), finite)
    assert_allclose(found[finite], lowest[finite], rtol=1e-7, atol=1e-7)


def test_a_chain_has_one_or_nine_bandwidths():
    with pytest.raises(ValueError, match="1 or 9 bandwidths, not 3"):
        by_space(make_nodes(0, 10, 2), np.ones((1, 3)), 0.0)


# In the plane -------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 200),
    d=st.integers(1, 2),
    n_classes=st.integers(1, 5),
    shape=st.sampled_from(SHAPES),
    costs=st.sampled_from(COSTS),
    weights=st.sampled_from(WEIGHTS),
    tau=st.floats(-7, 7).map(lambda x: 10.0**x),
    error=st.sampled_from([1e-2, 1e-6, 1e-9]),
)
@bounded(150 if not numba.config.DISABLE_JIT else 5)
def test_the_plane_holds_the_error(seed, n, d, n_classes, shape, costs, weights, tau, error):
    nodes = make_nodes(seed, size(n), d, n_classes, shape, costs, weights)
    assert_within(by_plane(nodes, tau, error), expected_scores(nodes, [tau])[:, :, 0], error)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("costs", COSTS)
def test_the_plane_holds_the_error_with_many_nodes(shape, costs):
    nodes = make_nodes(5, size(4000), 2, 2, shape, costs, "counts", n_queries=8)
    for tau in (0.02, 0.3, 4.0):
        expected = expected_scores(nodes, [tau])[:, :, 0]
        for error in (1e-3, 1e-7):
            assert_within(by_plane(nodes, tau, error), expected, error)


def test_the_plane_takes_nodes_at_once():
    nodes = make_nodes(6, size(4000), 2, 2, costs="small")
    rough, fine = by_plane(nodes, 0.5, 1e-2), by_plane(nodes, 0.5, 1e-9)
    new = nodes.own < 0
    assert (rough[new] != fine[new]).any()
    exact = by_space(nodes, np.array([[0.5]]), 0.0).scores[:, :, 0, 0]
    assert np.abs(rough - exact)[new].max() > 10.0 * np.abs(fine - exact)[new].max()


@pytest.mark.parametrize("tau", [0.005, 0.3])
def test_an_answer_does_not_depend_on_what_else_is_asked(tau):
    nodes = make_nodes(7, size(3000), 2, 3, weights="counts", n_queries=40)
    whole = by_plane(nodes, tau, 1e-6)
    single = [by_plane(nodes, tau, 1e-6, rows=slice(q, q + 1)) for q in range(len(whole))]
    assert_array_equal(np.concatenate(single), whole)
    mixed = np.random.default_rng(0).permutation(len(whole))
    assert_array_equal(by_plane(nodes, tau, 1e-6, rows=mixed), whole[mixed])
    assert_array_equal(by_plane(nodes, tau, 1e-6, n_threads=3), whole)


def test_answers_do_not_depend_on_the_number_of_threads():
    nodes = make_nodes(8, size(1500), 2, 3, n_queries=100)
    taus = np.array([[0.1]])
    for way in (by_space, by_products):
        one, three = (way(nodes, taus, 1e-7, n).scores for n in (1, 3))
        assert_array_equal(one, three)
    assert_array_equal(by_blocks(nodes, taus, True).scores, by_blocks(nodes, taus, True, 3).scores)


def test_far_queries_see_what_the_direct_way_sees():
    nodes = make_nodes(9, size(500), 2, 2)
    far = np.array([[1e9, 0.0], [-1e60, 1e60], [0.0, 2.0**400], [3e15, 1.0]])
    nodes = nodes._replace(queries=far, own=np.full(4, -1))
    direct = by_space(nodes, np.array([[0.01]]), 1e-6).scores[:, :, 0, 0]
    assert_array_equal(by_plane(nodes, 0.01, 1e-6), direct)


def test_terms_of_the_expansion_are_bounded_as_stated():
    # e^-w with w the distance, as a function of a complex offset z in some direction, on a circle of
    # 0.97 s: its Fourier coefficients are the terms.
    points, radius, degrees = 2048, 0.97, np.arange(ORDER + 1, 60)
    z = radius * np.exp(2j * np.pi * np.arange(points) / points)
    turn = np.exp(1j * np.linspace(0.0, np.pi, 181))[:, None]
    w = np.sqrt(1.0 - z / turn) * np.sqrt(1.0 - z * turn)
    for s in np.concatenate([np.geomspace(1e-4, 1.0, 10), np.linspace(1.0, 16.0, 61)]):
        terms = np.abs(np.fft.fft(np.exp(-s * w), axis=1)[:, degrees]) / points
        largest = (terms * degrees / radius**degrees).max()
        assert largest <= min(0.27 * s, 0.2 + 0.107 * s)


def test_the_series_is_that_of_the_exponential_of_a_distance():
    rng = np.random.default_rng(0)
    s, rho, phi = rng.uniform(1.0, 9.0, 50), rng.uniform(0.0, 0.1, 50), rng.uniform(0.0, 6.3, 50)
    total = np.zeros(50)
    for m, polynomials in enumerate(series(ORDER)):
        for j, powers in enumerate(polynomials):
            total += np.polyval(powers[::-1], 1.0 / s) * rho ** (m + 2 * j) * np.cos(m * phi)
    distance = np.sqrt(s * s - 2.0 * s * rho * np.cos(phi) + rho * rho)
    assert_allclose(np.exp(-s) * total, np.exp(-distance), rtol=1e-11)


def test_polar_moments_are_those_of_complex_powers():
    x, y = np.random.default_rng(0).normal(size=(2, 5))
    factorials = np.cumprod([1.0, *range(1, ORDER + 1)])
    powers = [
        x**a * y**b / (factorials[a] * factorials[b])
        for b in range(ORDER + 1)
        for a in range(ORDER + 1 - b)
    ]
    polar = np.array(powers).T @ polar_from_powers(ORDER)
    column = 0
    for m, polynomials in enumerate(series(ORDER)):
        for j in range(len(polynomials)):
            z = (x + 1j * y) ** m * (x * x + y * y) ** j
            for part in (z.real, z.imag)[: 2 if m > 0 else 1]:
                assert_allclose(polar[:, column], part, rtol=1e-10, atol=1e-12)
                column += 1
    assert column == polar.shape[1]


# As the estimator uses it -------------------------------------------------------------------------


def competition(n, d, exact=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * 37.0
    y = (X[:, 0] + rng.normal(size=n) * 20.0 > 0.0).astype(int)
    forest = OPFClassifier().fit(X, y)
    return X, soft_competition.SoftCompetition(forest, X, np.ones(n), exact)


MEANS = (1, 2**28)
MANY = soft_competition.LEAST_SAMPLES
slow_without_jit = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="as many samples take minutes without JIT"
)


@slow_without_jit
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("tau", [0.05, 4.0, 300.0])
def test_the_plane_is_used_and_agrees_with_the_exact_way(d, tau):
    X, quick = competition(MANY, d)
    _, slow = competition(MANY, d, exact=True)
    new, rows, taus = X[:50] + 0.5, np.arange(0, MANY, 37), np.array([[tau]])
    assert_allclose(quick.scores(new, tau, *MEANS, 1e-6), slow.scores(new, tau, *MEANS), rtol=2e-6)
    mine, exact = (c.leave_out(X, rows, taus, *MEANS) for c in (quick, slow))
    assert_allclose(mine.scores, exact.scores, rtol=1e-7)
    assert quick._plane is not None
    assert quick._plane.tau == np.ldexp(tau, -quick.exponent)
    assert slow._plane is None


@slow_without_jit
def test_the_plane_is_not_used_where_it_cannot_be():
    X, few = competition(MANY - 1, 2)
    few.scores(X[:3], 1.0, *MEANS, 1e-6)
    assert few._plane is None
    X, deep = competition(MANY, 3)
    deep.scores(X[:3], 1.0, *MEANS, 1e-6)
    assert deep._plane is None
    X, flat = competition(MANY, 2)
    flat.scores(X[:3], 1.0, *MEANS, 0.0)
    flat.scores_for(X[:3], np.array([[1.0], [2.0]]), *MEANS, 1e-6)
    assert flat._plane is None


@slow_without_jit
def test_the_last_bandwidth_is_kept_and_not_pickled():
    X, soft_one = competition(MANY, 2)
    first = soft_one.scores(X[:20], 5.0, *MEANS, 1e-6)
    plane = soft_one._plane
    soft_one.scores(X[:20], 5.0, *MEANS, 1e-7)
    assert soft_one._plane is plane
    soft_one.scores(X[:20], 6.0, *MEANS, 1e-6)
    assert soft_one._plane is not plane
    again = pickle.loads(pickle.dumps(soft_one))
    assert again._plane is None
    assert_array_equal(again.scores(X[:20], 5.0, *MEANS, 1e-6), first)


@slow_without_jit
def test_several_threads_may_ask_at_a_time_for_different_bandwidths():
    X, shared = competition(MANY, 2)
    taus = [1.0, 5.0, 25.0] * 4
    alone = [shared.scores(X[:100], tau, *MEANS, 1e-6) for tau in taus]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda tau: shared.scores(X[:100], tau, *MEANS, 1e-6), taus))
    assert_array_equal(together, alone)


@pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="runs itself without JIT, and there is none already"
)
def test_the_kernels_run_without_jit():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    chosen = "many_nodes or what_else or definition or products_hold or cheapest or space_holds"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        [*command, "-k", chosen], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
