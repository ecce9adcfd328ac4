"""OPFClassifier by other distances: scikit-learn's, LibOPF's, a user's own, and given ones."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import cross_val_score

from estimator_problems import (
    ALGORITHMS,
    BLOB,
    BLOBS,
    MOON,
    MOONS,
    X_NEW,
    X_TRAIN,
    Y_NEW,
    Y_TRAIN,
    assert_same_forest,
    furthest_feature,
)
from popf import OPFClassifier


@pytest.mark.parametrize(
    ("metric", "params", "same"),
    [
        (furthest_feature, None, "chebyshev"),
        ("minkowski", {"p": 3}, "minkowski"),
        ("minkowski", {"p": 2}, "euclidean"),
        ("cityblock", None, "manhattan"),
        ("bray_curtis", None, "braycurtis"),
        ("canberra", None, "canberra"),
        ("hamming", None, "hamming"),
    ],
)
def test_metrics_equal_those_of_scikit_learn(metric, params, same):
    # Distances differ in their last digits, so only data without ties give one forest.
    samples, new, y = BLOBS[:150] ** 2, BLOBS[150:200] ** 2, BLOB[:150]
    if metric == "hamming":
        samples, new = samples.round() % 2, new.round() % 2
    forest = OPFClassifier(metric, metric_params=params).fit(samples, y)
    more = params if same == "minkowski" else {}
    D = pairwise_distances(samples, metric=same, **more)
    D_new = pairwise_distances(new, samples, metric=same, **more)
    given = OPFClassifier("precomputed").fit(D, y)
    np.testing.assert_allclose(forest.costs_, given.costs_, rtol=1e-9)
    np.testing.assert_allclose(
        forest.path_costs_by_class(new), given.path_costs_by_class(D_new), rtol=1e-9
    )


@pytest.mark.parametrize(
    "metric", ["log_euclidean", "chi_square", "squared_chord", "squared_chi_square", "gaussian"]
)
def test_the_metrics_of_libopf_classify(metric):
    assert OPFClassifier(metric).fit(X_TRAIN, Y_TRAIN).score(X_NEW, Y_NEW) > 0.9


def test_a_callable_gets_its_parameters():
    def power(x, y, exponent):
        return (np.abs(x - y) ** exponent).sum()

    forest = OPFClassifier(power, metric_params={"exponent": 2}).fit(X_TRAIN, Y_TRAIN)
    np.testing.assert_allclose(
        forest.costs_, OPFClassifier("sqeuclidean").fit(X_TRAIN, Y_TRAIN).costs_
    )


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
