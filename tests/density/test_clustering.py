"""Clustering by densities, beside the definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score, pairwise_distances

import naive_density
import strategies
from naive_density import distances, in_order
from popf import OPFClustering

BLOBS, BLOB = make_blobs(300, centers=3, cluster_std=0.7, random_state=1)
IRIS = load_iris().data


def assert_as_defined(X, new, k, **removal):
    D, D_new = distances(X, X), distances(new, X)
    k = min(k, len(X) - 1)
    V, roots = naive_density.paths(D, k, **removal)
    raw, _ = naive_density.densities(D, k)
    rho = naive_density.scaled(raw, raw)
    expected = naive_density.labels(rho, roots)
    model = OPFClustering(k, **removal).fit(X)
    assert_allclose(model.density_, rho, rtol=1e-9)
    assert_array_equal(model.labels_, expected)
    nodes, density = naive_density.claim(D, D_new, k, V)
    assert_allclose(model.score_samples(new), density, rtol=1e-8, atol=1e-6)
    assert_array_equal(model.predict(new), expected[nodes])


@given(
    problem=strategies.problems(strategies.small_integers),
    k=st.integers(1, 6),
    height=st.sampled_from([1.0, 50.0, 400.0]),
)
@strategies.bounded(60)
def test_with_ties_and_duplicates_clusters_are_those_of_the_definition(problem, k, height):
    assert_as_defined(in_order(problem.X), problem.queries, k, min_height=height)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [2, 5, 12])
def test_without_ties_clusters_are_those_of_the_definition(seed, k):
    X, _, new = strategies.gaussian(seed, 60, 2)
    assert_as_defined(in_order(X), new, k)


@given(
    problem=strategies.problems(strategies.small_integers, max_features=2),
    k=st.integers(1, 4),
    area=st.sampled_from([1, 2, 4, 9]),
    volume=st.sampled_from([0.0, 123.4, 2345.6]),
)
@strategies.bounded(60)
def test_small_maxima_are_removed_by_area_and_volume(problem, k, area, volume):
    X = in_order(problem.X)
    assert_as_defined(X, problem.queries, k, min_area=area, min_volume=volume)


def test_auto_takes_the_smallest_normalised_cut():
    X = in_order(IRIS[::3])
    D = distances(X, X)
    cuts = []
    for k in range(1, 13):
        _, roots = naive_density.paths(D, k)
        raw, _ = naive_density.densities(D, k)
        cuts.append(naive_density.normalized_cut(D, k, naive_density.labels(raw, roots)))
    model = OPFClustering(max_neighbors=12).fit(X)
    assert_allclose(model.cuts_, cuts, rtol=1e-9)
    assert model.n_neighbors_ == int(np.argmin(cuts)) + 1
    # Nothing leaks from one k into the next: a fit with that k alone is the same.
    alone = OPFClustering(model.n_neighbors_).fit(X)
    assert_array_equal(alone.labels_, model.labels_)
    assert_array_equal(alone.density_, model.density_)
    assert alone.cuts_ is None


def test_it_finds_well_separated_clusters():
    model = OPFClustering(max_neighbors=100).fit(BLOBS)
    assert adjusted_rand_score(BLOB, model.labels_) > 0.97
    assert adjusted_rand_score(BLOB, model.predict(BLOBS)) > 0.97
    for cluster in range(model.n_clusters_):
        members = model.labels_ == cluster
        (root,) = np.unique(model.roots_[members])
        assert model.density_[root] == model.density_[members].max()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "canberra"])
def test_precomputed_distances_give_the_same_clusters(metric):
    D = pairwise_distances(BLOBS, metric=metric)
    one, two = OPFClustering(12, metric=metric), OPFClustering(12, metric="precomputed")
    assert_array_equal(one.fit_predict(BLOBS), two.fit_predict(D))
    assert_allclose(one.density_, two.density_, rtol=1e-9)


def test_equal_rows_share_everything():
    X = np.repeat(IRIS[::5], 4, axis=0)
    model = OPFClustering(6).fit(X)
    for values in (model.labels_, model.density_, model.roots_):
        assert (values.reshape(-1, 4) == values[::4, np.newaxis]).all()
    everywhere = OPFClustering().fit(np.ones((5, 2)))
    assert_array_equal(everywhere.labels_, np.zeros(5))
    assert_array_equal(everywhere.density_, np.full(5, 1000.0))
    assert_array_equal(everywhere.predict([[1.0, 1.0], [5.0, 5.0]]), [0, 0])


def test_scale_changes_nothing():
    model = OPFClustering(9).fit(BLOBS)
    for scale in (2.0**-600, 2.0**600):
        scaled = OPFClustering(9).fit(BLOBS * scale)
        assert_array_equal(scaled.labels_, model.labels_)
        assert_array_equal(scaled.density_, model.density_)
        assert_array_equal(scaled.predict(BLOBS * scale), model.predict(BLOBS))
    assert model.score_samples([[1e300, -1e300]]) < 1.0
