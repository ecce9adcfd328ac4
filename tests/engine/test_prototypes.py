"""Prototypes are both ends of the arcs between classes that lie in some minimum spanning tree."""

import numpy as np
import pytest

import naive
from popf.engine.mst.prim import spanning_tree
from popf.engine.points import distinct_points
from popf.engine.prototypes import find_prototypes, point_classes
from popf.engine.structures import Resources
from popf.engine.training import tree_of_samples
from strategies import KINDS, random_points, size


def test_without_ties_the_tree_alone_shows_them():
    rng = np.random.default_rng(0)
    D = naive.squared_distances(*[rng.normal(size=(40, 2))] * 2)
    classes = rng.integers(0, 3, 40)
    tree, _ = spanning_tree(lambda others: lambda i: D[i, others], 40, classes)
    found = find_prototypes(tree, classes, np.zeros(40, dtype=bool))
    np.testing.assert_array_equal(found, naive.single_tree_prototypes(D, classes))


def test_a_point_of_several_classes_is_of_a_class_of_its_own():
    distinct = distinct_points(np.array([[1.0], [2.0], [1.0], [2.0], [3.0]]))
    np.testing.assert_array_equal(point_classes(distinct, np.array([0, 1, 1, 1, 0])), [-1, 1, 0])


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute", "prim"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_of_samples_and_its_ties_hold_all_of_them(kind, algorithm):
    for seed in range(5):
        X = random_points(seed, size(60), 2, kind)
        X = X[np.random.default_rng(seed).integers(0, len(X), len(X))]  # with copies
        codes = np.random.default_rng(seed).integers(0, 2, len(X))
        distinct = distinct_points(X)
        tree, tied = tree_of_samples(distinct, codes, algorithm, Resources())
        found = find_prototypes(tree, codes, tied)
        # Copies of a prototype are prototypes.
        of_points = np.bincount(distinct.point_of, weights=found) > 0
        expected = naive.prototypes(naive.squared_distances(X, X), codes)
        np.testing.assert_array_equal(of_points[distinct.point_of], expected)
