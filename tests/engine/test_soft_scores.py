"""The soft competition's engine: every way to sum the paths of a class, against the definition."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import naive
from host_kernels import HostKernels
from popf.engine import large_sums
from popf.engine.gpu.backend import GpuBackend
from popf.engine.large_sums import LargeNodes
from popf.engine.runtime.simd_sums import CHAIN
from popf.engine.soft_scores import CHUNK, ERROR, CompetingNodes, CompetingSpace
from strategies import bounded, size


class Nodes(NamedTuple):
    """Training nodes of some classes, and queries."""

    samples: np.ndarray
    codes: np.ndarray
    costs: np.ndarray
    weights: np.ndarray
    queries: np.ndarray


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
    return Nodes(X, codes, C, w, np.concatenate([X[own], new, far]))


def expected_scores(nodes, taus):
    """What the definition gives: (n_queries, n_classes, n_bandwidths)."""
    D = np.sqrt(naive.squared_distances(nodes.queries, nodes.samples))
    offers = np.maximum(nodes.costs, D)
    found = np.empty((len(D), nodes.codes.max() + 1, len(taus)))
    for k in range(found.shape[1]):
        mine = nodes.codes == k
        for q, j in np.ndindex(len(D), len(taus)):
            found[q, k, j] = naive.soft_score(offers[q, mine], nodes.weights[mine], taus[j])
    return found


def assert_within(found, expected, error):
    """Check that sums are wrong by no more than `error`, relative to them, but for rounding."""
    allowed = -np.log1p(-error) + 0.1 * error + 1e-12 + 1e-14 * np.abs(expected)
    wrong = np.abs(found - expected)
    assert (wrong <= allowed).all(), (wrong / allowed).max()


def by_space(nodes, taus, n_threads=1):
    return CompetingSpace.build(*nodes[:4]).scores(nodes.queries, taus, n_threads)


def by_products(nodes, taus, n_threads=1):
    backend = GpuBackend(HostKernels())
    return backend.soft_scores(backend.competing_nodes(*nodes[:4]), nodes.queries, taus)


def by_blocks(nodes, taus, n_threads=1):
    competing = CompetingNodes.build(*nodes[1:4])
    D = np.sqrt(naive.squared_distances(nodes.queries, nodes.samples[competing.order]))
    return competing.scores(lambda start, stop: D[start:stop], len(D), taus, 7, n_threads)


# Paths computed one by one ------------------------------------------------------------------------

TAUS = np.array([0.7])
HALVED = 2.0 * 0.5 ** np.arange(CHAIN)
each_shape = pytest.mark.parametrize(
    "taus",
    [TAUS, HALVED, HALVED[:3]],
    ids=["one", "chain", "other"],
)


@each_shape
@pytest.mark.parametrize(
    ("way", "d", "error"),
    [
        (by_blocks, 3, 1e-15),
        *((by_space, d, ERROR) for d in (1, 2, 8, 20, 60)),
        *((by_products, d, ERROR) for d in (2, 20, 60)),
    ],
)
def test_all_ways_give_the_definition(way, d, error, taus):
    nodes = make_nodes(1, size(600), d, 3, weights="counts")
    if way is by_products:  # far off they are less exact
        nodes = nodes._replace(queries=nodes.queries[:-6])
    assert_within(way(nodes, taus), expected_scores(nodes, taus), error)


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
    assert_within(by_space(nodes, np.array([tau])), expected_scores(nodes, [tau]), ERROR)


def test_far_chunks_are_passed_by():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4 * CHUNK, 2))
    X[2 * CHUNK :] += 1000.0
    space = CompetingSpace.build(X, np.zeros(len(X), dtype=int), np.zeros(len(X)), np.ones(len(X)))
    far = space.blocks.min(axis=(1, 2)) > 500.0
    space.weights.reshape(len(far), -1)[far] = np.nan
    assert np.isfinite(space.scores(X[:9], np.array([0.5]))).all()


def test_a_far_sample_does_not_blur_the_others():
    nodes = make_nodes(4, size(400), 17, 2)
    nodes.samples[7, 3] = 1e20
    nodes = nodes._replace(queries=nodes.queries[:-6])
    assert_within(by_products(nodes, TAUS), expected_scores(nodes, TAUS), ERROR)


def test_answers_do_not_depend_on_the_number_of_threads():
    nodes = make_nodes(8, size(1500), 2, 3, n_queries=100)
    taus = np.array([0.1])
    for way in (by_space, by_blocks):
        assert_array_equal(way(nodes, taus, 1), way(nodes, taus, 3))


# Many nodes at one bandwidth, in single precision -------------------------------------------------


def sums_in_long_double(nodes, tau):
    """What the definition gives in extended precision: (n_queries, n_classes)."""
    X, C, w = (
        np.asarray(part, np.longdouble) for part in (nodes.samples, nodes.costs, nodes.weights)
    )
    found = np.empty((len(nodes.queries), nodes.codes.max() + 1))
    for q, query in enumerate(np.asarray(nodes.queries, np.longdouble)):
        offers = np.maximum(C, np.sqrt(((X - query) ** 2).sum(axis=1)))
        for k in range(found.shape[1]):
            mine = nodes.codes == k
            low = offers[mine].min()
            total = (w[mine] * np.exp((low - offers[mine]) / tau)).sum() / w[mine].sum()
            found[q, k] = low / tau - np.log(total)
    return found


def by_single(nodes, tau, n_threads=1):
    space = CompetingSpace.build(*nodes[:4])
    space = space._replace(large=LargeNodes.build(space))
    return space.scores(nodes.queries, np.array([tau]), n_threads)[:, :, 0]


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 3000),
    d=st.integers(1, 6),
    n_classes=st.integers(1, 4),
    shape=st.sampled_from(SHAPES),
    costs=st.sampled_from(COSTS),
    weights=st.sampled_from(WEIGHTS),
    tau=st.floats(-4, 3).map(lambda x: 10.0**x),
)
@bounded(60 if not numba.config.DISABLE_JIT else 3)
def test_single_precision_holds_the_documented_error(
    seed, n, d, n_classes, shape, costs, weights, tau
):
    nodes = make_nodes(seed, size(n), d, n_classes, shape, costs, weights)
    assert_within(by_single(nodes, tau), sums_in_long_double(nodes, tau), large_sums.ERROR)


@pytest.mark.parametrize("tau", [0.2, 2.0])
def test_single_precision_is_used_where_bandwidths_are_wide(tau):
    nodes = make_nodes(3, size(3000), 3, 2, costs="small")._replace(queries=np.zeros((3, 3)))
    space = CompetingSpace.build(*nodes[:4])
    scores = np.empty((3, 2))
    again = large_sums.scores_of_large(space, LargeNodes.build(space), nodes.queries, tau, scores)
    assert not again.any()
    expected = sums_in_long_double(nodes, tau)
    assert_within(scores, expected, large_sums.ERROR)
    assert (scores != by_space(nodes, np.array([tau]))[:, :, 0]).any()


def test_distant_nodes_are_not_added_in_single_precision():
    nodes = make_nodes(5, size(3000), 2, 2, "clusters", "small")
    space = CompetingSpace.build(*nodes[:4])
    large = LargeNodes.build(space)
    far = np.linalg.norm(0.5 * (space.lows + space.highs) - nodes.queries[0], axis=1) > 0.8
    for chunk in np.flatnonzero(far):
        large.single.weights[large.single.groups[chunk] : large.single.groups[chunk + 1]] = np.nan
    near = space._replace(large=large).scores(nodes.queries[:1], np.array([0.01]))
    assert far.any()
    assert np.isfinite(near).all()


def test_where_bandwidths_are_wide_distant_chunks_are_summed_by_their_moments():
    nodes = make_nodes(6, size(3000), 3, 2, costs="small")
    space = CompetingSpace.build(*nodes[:4])
    large = LargeNodes.build(space)
    skipped = large.moments._replace(fourths=np.full(len(large.moments.fourths), np.inf))
    found = space._replace(large=large).scores(nodes.queries, np.array([3.0]))
    space = space._replace(large=large._replace(moments=skipped))
    assert (space.scores(nodes.queries, np.array([3.0])) != found).any()


def test_single_precision_does_not_depend_on_other_queries_or_threads():
    nodes = make_nodes(8, size(3000), 3, 3, n_queries=100)
    every = by_single(nodes, 0.3)
    assert_array_equal(by_single(nodes, 0.3, 3), every)
    some = np.arange(0, len(every), 3)
    assert_array_equal(by_single(nodes._replace(queries=nodes.queries[some]), 0.3), every[some])


def test_large_forests_use_single_precision(monkeypatch):
    nodes = make_nodes(2, size(600), 3)
    assert CompetingSpace.build(*nodes[:4]).large is None
    monkeypatch.setattr("popf.engine.soft_scores.LARGE", size(600))
    assert CompetingSpace.build(*nodes[:4]).large is not None
    assert (
        CompetingSpace.build(
            *nodes._replace(weights=10.0 ** np.linspace(0, 9, size(600)))[:4]
        ).large
        is None
    )
