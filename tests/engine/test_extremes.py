"""Scales near the ends of floating point, tight clusters, many features, and new samples far away."""

import numpy as np
import pytest

import naive
from popf import OPFClassifier
from strategies import (
    ALGORITHMS,
    TINY_MEMORY,
    Problem,
    assert_is_the_forest,
    assert_paths_are_valid,
    clusters,
    edges_of,
    expected_forest,
    fit,
    gaussian,
    grid,
    size,
)

each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
free_or_tied = pytest.mark.parametrize(
    "make", [gaussian, lambda *args: grid(*args, 6)], ids=["free", "ties"]
)


def far_from_the_origin(d):
    X, y, queries = gaussian(0, size(150), d)
    return Problem(X + 1e8, y, queries + 1e8)


def with_constant_features(problem):
    def pad(X):
        return np.column_stack([np.full(len(X), 7.3), X, np.zeros(len(X))])

    return Problem(pad(problem.X), problem.y, pad(problem.queries))


def tight_cluster_in_the_centre(radius):
    # The cluster is so small that its squares are hardly more than nothing in float32.
    rng = np.random.default_rng(2)
    corners = np.array([[a, b] for a in (-0.5, 0.5) for b in (-0.5, 0.5)] * 3)
    corners *= np.repeat([1.0, 0.5, 0.25], 4)[:, np.newaxis]
    inner = radius * rng.normal(size=(20, 2))
    X = np.concatenate([corners, inner, -inner])
    queries = np.concatenate([inner * 0.5, X, corners * 1.1])
    return Problem(X, rng.integers(0, 2, len(X)), queries)


def values_that_vanish_beside_others():
    # The squares of their differences are zero, so they tie with duplicates.
    X = np.array([[5e-324], [0.0], [0.0], [0.75], [1e-170], [0.75]])
    return Problem(X, np.array([0, 0, 0, 1, 0, 1]), np.array([[0.0], [1e-170], [0.7]]))


DIFFICULT = {
    **{f"far from the origin, {d} features": far_from_the_origin(d) for d in (2, 30)},
    **{
        f"clusters of radius {radius}, {d} features": clusters(7, size(200), d, radius)
        for radius in (1e-6, 1e-9, 1e-12, 1e-15)
        for d in (2, 30)
    },
    **{
        f"a cluster of radius {radius} in the centre": tight_cluster_in_the_centre(radius)
        for radius in (1e-15, 1e-20, 1.8e-23, 3.2e-23, 1e-40, 1e-150)
    },
    "vanishing squares": values_that_vanish_beside_others(),
    "five thousand features": gaussian(5, 60, size(5000), n_classes=3),
    "more features than the memory holds": grid(6, size(150), size(1000), 3),
    "constant features": with_constant_features(grid(4, size(120), 2, 7, n_classes=3)),
}


@pytest.mark.parametrize("name", DIFFICULT)
def test_difficult_data_have_the_forest_of_the_definition(name):
    problem = DIFFICULT[name]
    expected = expected_forest(problem)
    for algorithm in ALGORITHMS:
        forest = fit(problem, algorithm, working_memory=TINY_MEMORY)
        assert_is_the_forest(forest, problem, expected)


class TestScales:
    @pytest.mark.parametrize("factor", [1e-150, 1e150, 1e-300, 1e300])
    @free_or_tied
    def test_tiny_and_huge_values(self, make, factor):
        problem = make(1, size(120), 3)
        X, queries = problem.X * factor, problem.queries * factor
        # The same values as far as a power of two: there squares neither vanish nor overflow.
        exponent = int(np.round(np.log2(factor)))
        moderate = Problem(np.ldexp(X, -exponent), problem.y, np.ldexp(queries, -exponent))
        expected = expected_forest(moderate)
        for algorithm in ALGORITHMS:
            forest = fit(Problem(X, problem.y, queries), algorithm)
            assert_is_the_forest(forest, moderate, expected, exponent)

    @pytest.mark.parametrize("exponent", [-1074, -900, -500, 500, 900, 1020])
    def test_powers_of_two_down_to_denormal_and_up_to_the_largest_values(self, exponent):
        problem = grid(3, size(100), 2, 6)
        problem = Problem(problem.X, problem.y, np.floor(problem.queries))
        scaled = Problem(np.ldexp(problem.X, exponent), problem.y, problem.queries)
        expected = expected_forest(problem)
        for algorithm in ALGORITHMS:
            assert_is_the_forest(fit(scaled, algorithm), problem, expected, exponent)


class TestQueriesFarAway:
    DIRECTIONS = np.random.default_rng(0).normal(size=(20, 3))

    @pytest.mark.parametrize("factor", [1e3, 1e8, 1e15, 1e20, 1e50, 1e100])
    def test_are_conquered_as_defined(self, factor):
        X, y, _ = gaussian(0, size(100), 3)
        problem = Problem(X, y, self.DIRECTIONS * factor)
        expected = expected_forest(problem)
        for algorithm in ALGORITHMS:
            assert_is_the_forest(fit(problem, algorithm), problem, expected)

    @pytest.mark.parametrize("factor", [1e200, 1e300, 3e307])
    @each_algorithm
    def test_have_finite_costs_where_squares_overflow(self, algorithm, factor):
        X, y, _ = gaussian(1, size(100), 3)
        queries = self.DIRECTIONS / 4.0 * factor
        forest = fit(Problem(X, y, queries), algorithm)
        # Seen from there all training samples are in one place, and no cost matters.
        squared = naive.squared_distances(np.ldexp(queries, -700), np.ldexp(X, -700))
        nodes, costs = naive.conquer(np.zeros(len(X)), squared, y)
        conquest = forest.conquer(queries)
        np.testing.assert_array_equal(conquest.nodes, nodes)
        np.testing.assert_array_equal(conquest.costs, np.ldexp(np.sqrt(costs), 700))
        assert np.isfinite(forest.path_costs_by_class(queries)).all()

    @pytest.mark.parametrize("factor", [1e25, 1e200, 1e300])
    @each_algorithm
    def test_do_not_blur_those_nearby(self, algorithm, factor):
        X, y, nearby = gaussian(2, size(100), 3)
        far = self.DIRECTIONS / 4.0 * factor
        forest = fit(Problem(X, y, nearby), algorithm)
        together = np.concatenate([far[:10], nearby, far[10:]])
        alone = np.concatenate(
            [np.array(forest.conquer(part)) for part in (far[:10], nearby, far[10:])], axis=1
        )
        np.testing.assert_array_equal(np.array(forest.conquer(together)), alone)
        np.testing.assert_array_equal(
            forest.path_costs_by_class(together)[10:-10], forest.path_costs_by_class(nearby)
        )

    @each_algorithm
    def test_of_training_samples_near_the_origin(self, algorithm):
        X, y, queries = gaussian(3, size(60), 2)
        forest = fit(Problem(X * 1e-300, y, queries), algorithm)
        distance = np.sqrt(naive.squared_distances(queries, np.zeros((1, 2)))[:, 0])
        np.testing.assert_allclose(forest.conquer(queries).costs, distance, rtol=1e-15)
        forest = OPFClassifier(algorithm=algorithm).fit(np.zeros((4, 2)), [1, 0, 1, 0])
        conquest = forest.conquer([[0.0, 0.0], [3e200, 4e200], [3.0, 4.0]])
        np.testing.assert_array_equal(conquest.nodes, 1)
        np.testing.assert_allclose(conquest.costs, [0.0, 5e200, 5.0], rtol=1e-15)


TRANSFORMS = {
    "sqeuclidean": lambda s: s,
    "log_euclidean": lambda s: 1e5 * np.log1p(s),
    "gaussian": lambda s: -np.expm1(-0.5 * np.sqrt(s)),
}


@pytest.mark.parametrize("metric", TRANSFORMS)
@free_or_tied
@each_algorithm
def test_metrics_that_grow_with_the_euclidean_have_its_forest_at_other_costs(
    algorithm, make, metric
):
    problem = make(0, size(120), 2, 3)
    transform, expected = TRANSFORMS[metric], expected_forest(problem)
    params = {"gamma": 0.5} if metric == "gaussian" else None
    forest = fit(problem, algorithm, metric=metric, metric_params=params)
    conquest = forest.conquer(problem.queries)
    weights, *ends = zip(*edges_of(forest), strict=True)
    expected_weights, *expected_ends = zip(*expected.edges, strict=True)
    assert set(zip(*ends, strict=True)) == set(zip(*expected_ends, strict=True))
    np.testing.assert_array_equal(forest.prototypes_, expected.prototypes)
    np.testing.assert_array_equal(conquest.nodes, expected.nodes)
    assert_paths_are_valid(forest, problem.y)
    for ours, squared in (
        (forest.costs_, expected.costs),
        (np.array(weights), np.array(expected_weights)),
        (conquest.costs, expected.path_costs),
        (forest.path_costs_by_class(problem.queries), expected.by_class),
    ):
        np.testing.assert_array_max_ulp(ours, transform(squared), maxulp=1)
