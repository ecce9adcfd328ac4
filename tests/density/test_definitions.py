"""Clusters, outliers and classes by densities, beside the definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, pairwise_distances, roc_auc_score

import naive_density
from naive_density import distances, in_order
from popf import KNNOPFClassifier, OPFClustering, OPFOutlierDetector
from strategies import IRIS, SPECIES, bounded, gaussian, problems, small_integers

BLOBS, BLOB = make_blobs(300, centers=3, cluster_std=0.7, random_state=1)
RNG = np.random.default_rng(0)
DENSE, SPARSE = RNG.normal(0.0, 0.3, (150, 2)), RNG.normal(8.0, 1.5, (80, 2))
ANGLE = np.arange(12) * np.pi / 6.0
FAR = 4.0 + 14.0 * np.column_stack([np.cos(ANGLE), np.sin(ANGLE)])
CROWD = np.concatenate([DENSE, SPARSE, FAR])

# Clusters


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
    problem=problems(small_integers),
    k=st.integers(1, 6),
    height=st.sampled_from([1.0, 50.0, 400.0]),
)
@bounded(60)
def test_with_ties_and_duplicates_clusters_are_those_of_the_definition(problem, k, height):
    assert_as_defined(in_order(problem.X), problem.queries, k, min_height=height)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [2, 5, 12])
def test_without_ties_clusters_are_those_of_the_definition(seed, k):
    X, _, new = gaussian(seed, 60, 2)
    assert_as_defined(in_order(X), new, k)


@given(
    problem=problems(small_integers, max_features=2),
    k=st.integers(1, 4),
    area=st.sampled_from([1, 2, 4, 9]),
    volume=st.sampled_from([0.0, 123.4, 2345.6]),
)
@bounded(60)
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


@pytest.mark.parametrize("size", [1e154, 1e200, 1e307])
def test_any_number_of_samples_may_be_far_away(size):
    model = OPFClustering(9).fit(BLOBS * 1e-3)
    far = size * np.random.default_rng(0).uniform(-1.0, 1.0, (40, BLOBS.shape[1]))
    assert_array_equal(
        model.score_samples(far), np.concatenate([model.score_samples(far[[i]]) for i in range(40)])
    )
    assert set(model.predict(far)) <= set(model.labels_)


# Outliers


def naive_scores(X, new, k):
    """Scores of training samples, each as if it were new to the others, and of new samples."""
    D, D_new = distances(X, X), distances(new, X)
    V, roots = naive_density.paths(D, k)
    raw, longest = naive_density.densities(D, k)
    rho = naive_density.scaled(raw, raw)
    label = naive_density.labels(rho, roots)

    def score(density, near):
        shown = float(naive_density.scaled(density, raw))
        claimed = label[max(near, key=lambda j: (min(V[j], shown), -near.index(j)))]
        members = raw[label == claimed]
        return density / np.median(members if len(members) > k else raw)

    training = [score(raw[i], near) for i, near in enumerate(naive_density.nearest(D, k))]
    of_new = []
    for row in D_new:
        near = sorted(range(len(row)), key=lambda j: (row[j], j))[:k]
        of_new.append(score(naive_density.raw_density(row[near], longest), near))
    return np.array(training), np.array(of_new)


@pytest.mark.parametrize("k", [3, 10])
def test_scores_are_those_of_the_definition(k):
    samples = in_order(CROWD[::3])
    new = RNG.uniform(-5.0, 12.0, (30, 2))
    training, of_new = naive_scores(samples, new, k)
    detector = OPFOutlierDetector(k).fit(samples)
    assert_allclose(detector.scores_, training, rtol=1e-9)
    assert_allclose(detector.score_samples(new), of_new, rtol=1e-9)
    # A sample in the place of a training sample has its score.
    assert_array_equal(detector.score_samples(samples), detector.scores_)


def test_a_sparse_cluster_is_not_made_of_outliers():
    detector = OPFOutlierDetector(contamination=0.05).fit(CROWD)
    outlying = np.arange(len(CROWD)) >= len(CROWD) - len(FAR)
    assert roc_auc_score(outlying, -detector.score_samples(CROWD)) > 0.98
    assert (detector.predict(SPARSE) == -1).mean() < 0.15
    assert_array_equal(detector.predict([[4.0, 4.0], [0.0, 0.0], [8.0, 8.0]]), [-1, 1, 1])


def test_contamination_is_the_share_of_outliers_in_training_and_beyond():
    rng = np.random.default_rng(1)
    training, new = rng.normal(size=(800, 2)), rng.normal(size=(4000, 2))
    detector = OPFOutlierDetector(contamination=0.1).fit(training)
    assert (detector.fit_predict(training) == -1).mean() == pytest.approx(0.1)
    assert (detector.predict(new) == -1).mean() == pytest.approx(0.1, abs=0.025)
    assert_array_equal(detector.decision_function(new) < 0.0, detector.predict(new) == -1)


# Classes


def by_class(X, y):
    """Samples sorted by class and values, which is how ties are settled."""
    order = np.lexsort((*X.T[::-1], y))
    return X[order] + 0.0, y[order]


def naive_labels(X, y, new, k):
    D = distances(X, X)
    V, _ = naive_density.paths(D, k, codes=y.tolist())
    nodes, _ = naive_density.claim(D, distances(new, X), k, V)
    return y[nodes]


@given(problem=problems(small_integers), k=st.integers(1, 5))
@bounded(50)
def test_with_ties_and_conflicting_labels_it_is_the_definition(problem, k):
    X, y = by_class(problem.X, problem.y)
    k = min(k, len(X) - 1)
    model = KNNOPFClassifier(k).fit(X, y)
    assert_array_equal(model.predict(problem.queries), naive_labels(X, y, problem.queries, k))
    _, roots = naive_density.paths(distances(X, X), k, codes=y.tolist())
    assert_array_equal(y[model.roots_], y)
    # Of equal samples of a class any may be named as the root.
    assert_array_equal(X[model.roots_], X[roots])


def test_neighbours_are_chosen_by_the_accuracy_of_the_model_on_samples_left_out():
    distinct = np.unique(IRIS, axis=0, return_index=True)[1]
    X, y = by_class(IRIS[distinct][::2], SPECIES[distinct][::2])
    fold = np.arange(len(X)) % 5
    expected = []
    for k in range(1, 9):
        right = 0
        for out in range(5):
            kept = fold != out
            found = naive_labels(X[kept], y[kept], X[~kept], k)
            right += (found == y[~kept]).sum()
        expected.append(right / len(X))
    model = KNNOPFClassifier(max_neighbors=8).fit(X, y)
    assert_allclose(model.accuracies_, expected)
    assert model.n_neighbors_ == int(np.argmax(expected)) + 1
    alone = KNNOPFClassifier(model.n_neighbors_).fit(X, y)
    assert_array_equal(alone.predict(IRIS), model.predict(IRIS))
    assert alone.accuracies_ is None


@pytest.mark.parametrize("n", [2, 3, 6])
def test_few_samples_are_enough(n):
    X, y = np.arange(float(n))[:, np.newaxis], np.arange(n) % 2
    model = KNNOPFClassifier().fit(X, y)
    assert set(model.predict(X)) <= {0, 1}
    same = KNNOPFClassifier().fit(np.ones((n, 1)), y)
    assert set(same.predict([[1.0], [2.0]])) <= {0, 1}
