"""OPFClassifier by other distances: scikit-learn's, LibOPF's, a user's own, and given ones."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import DistanceMetric, pairwise_distances
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags

from popf import OPFClassifier, PlattOPFClassifier, POPFClassifier
from popf.forest.metrics import METRIC_NAMES, SKLEARN_METRICS, choose_metric
from popf.forest.validation import check_precomputed
from strategies import ALGORITHMS, MOON, MOONS, assert_same_forest

# Compiled here, and in scikit-learn, too.
SHARED_NAMES = ("braycurtis", "canberra", "chebyshev", "cosine", "hamming", "manhattan")


def matrix(metric, X):
    row = metric.rows(X)(np.arange(len(X)))
    return np.array([row(i) for i in range(len(X))])


def test_precomputed_distances_give_the_forest_of_their_metric():
    # Integers: all distances are exact, so that ties are ties in both.
    rng = np.random.default_rng(5)
    samples, y = rng.integers(0, 4, size=(80, 3)), rng.integers(0, 3, size=80)
    new = rng.integers(0, 4, size=(50, 3))
    D = pairwise_distances(samples, metric="sqeuclidean").round()
    D_new = pairwise_distances(new, samples, metric="sqeuclidean").round()
    given = OPFClassifier("precomputed").fit(D, y)
    for algorithm in ALGORITHMS:
        forest = OPFClassifier("sqeuclidean", algorithm=algorithm).fit(samples, y)
        assert_same_forest(forest, given)
        assert_array_equal(forest.conquer(new).nodes, given.conquer(D_new).nodes)
        assert_array_equal(forest.decision_function(new), given.decision_function(D_new))


def test_precomputed_distances_under_cross_validation():
    D = pairwise_distances(MOONS)
    scores = cross_val_score(OPFClassifier("precomputed"), D, MOON, cv=5)
    assert_array_equal(scores, cross_val_score(OPFClassifier(), MOONS, MOON, cv=5))


# Metrics as the engine sees them


@pytest.mark.parametrize("name", [name for name in METRIC_NAMES if name != "precomputed"])
@pytest.mark.parametrize("values", ["continuous", "integer"])
def test_every_metric_is_symmetric_survives_pickling_and_is_scikit_learns_if_it_has_it(
    name, values
):
    rng = np.random.default_rng(1)
    shape = (30, 2 if name == "haversine" else 4)
    draw = rng.normal if name in SKLEARN_METRICS else rng.random
    X = draw(size=shape) if values == "continuous" else 1.0 * rng.integers(0, 3, shape)
    params = {"p": 3} if name in ("minkowski", "p") else {}
    metric = choose_metric(name, params).fitted(X)
    metric.check(X)
    D = matrix(metric, X)
    np.testing.assert_array_equal(D, D.T)
    assert (D[~np.eye(30, dtype=bool)] >= 0).all()
    np.testing.assert_array_equal(metric.blocks(X[:5], X)(1, 4), D[1:4])
    np.testing.assert_array_equal(matrix(pickle.loads(pickle.dumps(metric)), X), D)
    if name in ("seuclidean", "mahalanobis", *SHARED_NAMES):
        np.testing.assert_allclose(D, pairwise_distances(X, metric=name), rtol=1e-9, atol=1e-12)
    elif name in SKLEARN_METRICS:
        expected = DistanceMetric.get_metric(name, **params).pairwise(X)
        np.testing.assert_allclose(D, expected, rtol=1e-9, atol=1e-12)


def test_constant_features_have_no_influence_on_seuclidean():
    X = np.random.default_rng(1).normal(size=(30, 3))
    constant = X.copy()
    constant[:, 1] = 7.0
    found, expected = (
        choose_metric("seuclidean").fitted(each) for each in (constant, X[:, [0, 2]])
    )
    np.testing.assert_allclose(matrix(found, X), matrix(expected, X[:, [0, 2]]))


def test_aliases():
    for name, params in (("l2", None), ("minkowski", None), ("p", {"p": 2.0})):
        chosen = choose_metric(name, params)
        assert (chosen.name, chosen.euclidean) == ("euclidean", True)
    assert choose_metric("cityblock").name == "manhattan"
    assert choose_metric("minkowski", {"p": 2, "w": [1.0, 2.0]}).name == "minkowski"


@pytest.mark.parametrize("name", ["dice", "jaccard", "sokalsneath"])
def test_two_samples_without_any_feature_are_alike(name):
    samples = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    assert matrix(choose_metric(name, {}), samples)[0, 1] == 0.0
    assert OPFClassifier(name).fit(samples, [0, 0, 1, 1]).predict([[0.0, 0.0]]) == [0]


def test_callable_gets_its_parameters_and_the_lower_index_first():
    X = np.array([[0.0], [1.0], [3.0]])

    def lopsided(x, y, factor):
        return factor * abs(x[0] - y[0]) + (0.25 if x[0] > y[0] else 0.0)

    metric = choose_metric(lopsided, {"factor": 2})
    assert metric.name == "lopsided"
    np.testing.assert_array_equal(matrix(metric, X), [[0, 2, 6], [2, 0, 4], [6, 4, 0]])
    np.testing.assert_array_equal(metric.blocks(np.array([[2.0]]), X)(0, 1), [[4.0, 2.0, 2.25]])


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), True])
def test_callable_may_return_any_real_number(value):
    D = matrix(choose_metric(lambda x, y: value), np.zeros((2, 1)))
    np.testing.assert_array_equal(D, float(value))


def test_a_distance_to_itself_below_0_by_rounding_is_0():
    def cosine(x, y):
        return 1.0 - x @ y / (np.linalg.norm(x) * np.linalg.norm(y))

    X = np.random.default_rng(0).normal(size=(60, 3))
    X = np.vstack([X, 3 * X])  # parallel to another
    y = np.arange(120) % 2
    assert min(cosine(x, x) for x in X) < 0
    own, named = OPFClassifier(cosine).fit(X, y), OPFClassifier("cosine").fit(X, y)
    np.testing.assert_array_equal(own.predict(X[:60]), y[:60])
    np.testing.assert_allclose(own.costs_, named.costs_, atol=1e-15)
    with pytest.raises(ValueError, match="is -1e-11, but"):
        OPFClassifier(lambda x, y: -1e-11).fit(X, y)


def test_scikit_learn_is_told_where_features_must_not_be_negative():
    names = ["chi_square", "chi_squared", "squared_chord", "squared_chi_square", "precomputed"]
    for make in (OPFClassifier, POPFClassifier, PlattOPFClassifier):
        assert get_tags(make()).classifier_tags.multi_class
        assert all(get_tags(make(metric=name)).input_tags.positive_only for name in names)
        assert not get_tags(make(metric="canberra")).input_tags.positive_only
        assert not get_tags(make(metric=max)).input_tags.positive_only


# Matrices of distances


def test_an_exactly_symmetric_matrix_is_not_copied():
    D = np.array([[np.nan, 1.0], [1.0, -3.0]])  # the diagonal is ignored
    assert check_precomputed(D) is D


def test_rounding_is_forgiven_the_upper_triangle_counts_and_the_diagonal_does_not():
    D = np.array([[0.0, 1.0, 2.0], [1.0 + 1e-12, 0.0, 3.0], [2.0, 3.0 - 1e-12, 0.0]])
    original = D.copy()
    checked = check_precomputed(D)
    np.testing.assert_array_equal(checked, [[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    np.testing.assert_array_equal(D, original)
    forest = OPFClassifier("precomputed").fit(D + np.diag([5.0, 0.0, 0.0]), [0, 0, 1])
    np.testing.assert_array_equal(forest.costs_, [0.0, 1.0, 0.0])
