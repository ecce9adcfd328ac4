"""The minimum spanning tree by itself, and single linkage, beside the definitions and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from scipy.sparse.csgraph import minimum_spanning_tree as scipy_tree
from scipy.spatial.distance import pdist

import naive
from gpus import DEVICES
from popf import OPFClassifier, minimum_spanning_tree, single_linkage
from refusals import refused
from strategies import ALGORITHMS, BLOBS, bounded, furthest_feature, problems, small_integers


def edges_of(X, *metric, **settings):
    edges, lengths = minimum_spanning_tree(X, *metric, **settings)
    return list(zip(lengths.tolist(), *edges.T.tolist(), strict=True))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(problem=problems(small_integers))
@bounded(25)
def test_with_ties_and_duplicates_it_is_the_tree_of_the_definition(algorithm, problem):
    expected = naive.kruskal(naive.squared_distances(problem.X, problem.X))
    found = edges_of(problem.X, "sqeuclidean", algorithm=algorithm)
    assert found == expected


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "mahalanobis", furthest_feature])
def test_it_is_the_tree_of_the_classifier(metric):
    X = BLOBS[:200]
    tree = OPFClassifier(metric).fit(X, np.arange(200) % 2).spanning_tree_
    edges, lengths = minimum_spanning_tree(X, metric)
    assert_array_equal(edges, np.column_stack([tree.lower, tree.higher]))
    assert_array_equal(lengths, tree.weights)


def test_edges_are_sorted_by_the_lengths_that_are_returned():
    # Tenths are rounded: some squares differ in the last bit though their roots are equal.
    X = np.random.default_rng(0).integers(0, 30, (200, 2)) / 10.0
    edges, lengths = minimum_spanning_tree(X)
    order = np.lexsort((edges[:, 1], edges[:, 0], lengths))
    assert_array_equal(order, np.arange(len(edges)))
    assert (edges[:, 0] < edges[:, 1]).all()


def test_threads_memory_and_precomputed_distances_change_nothing():
    expected = edges_of(BLOBS, algorithm="kd_tree")
    for settings in ({"n_jobs": 3}, {"algorithm": "brute", "working_memory": 0.1}, {"n_jobs": -1}):
        assert edges_of(BLOBS, **settings) == expected
    D = np.sqrt(naive.squared_distances(BLOBS, BLOBS))
    assert edges_of(D, "precomputed") == expected
    total = scipy_tree(D).sum()
    assert sum(length for length, *_ in expected) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_a_gpu_gives_the_same_tree(device):
    assert edges_of(BLOBS, device=device) == edges_of(BLOBS)


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev"])
def test_single_linkage_is_that_of_scipy(metric):
    found, expected = single_linkage(BLOBS, metric), linkage(pdist(BLOBS, metric), "single")
    assert is_valid_linkage(found)
    np.testing.assert_allclose(found[:, 2:], expected[:, 2:], rtol=1e-12)
    assert_array_equal(found[:, :2], expected[:, :2])


@given(problem=problems(small_integers))
@bounded(25)
def test_single_linkage_with_ties_cuts_into_the_components_of_short_arcs(problem):
    found = single_linkage(problem.X)
    assert is_valid_linkage(found)
    bottleneck = naive.minimax(np.sqrt(naive.squared_distances(problem.X, problem.X)))
    for height in (0.0, 1.0, 1.5):
        labels = fcluster(found, height, "distance")
        assert_array_equal(labels[:, None] == labels[None, :], bottleneck <= height)


def test_one_sample_has_a_tree_but_no_linkage():
    edges, lengths = minimum_spanning_tree([[1.0, 2.0]])
    assert edges.shape == (0, 2)
    assert lengths.shape == (0,)
    refused(lambda: single_linkage([[1.0]]), "minimum of 2 is required")


def test_bad_input_is_refused_by_name():
    X = BLOBS[:10]
    refused(lambda: minimum_spanning_tree([[1.0], [np.nan]]), "NaN")
    refused(lambda: minimum_spanning_tree(X, algorithm="kruskal"), "`algorithm` must be one of")
    refused(lambda: single_linkage(X, n_jobs=0), "`n_jobs`")
    refused(lambda: single_linkage(X, "precomputed"), "square matrix")
