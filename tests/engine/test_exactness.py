"""One forest, that of the definitions, whatever the algorithm, the threads and the blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from popf import OPFClassifier
from strategies import (
    ALGORITHMS,
    TINY_MEMORY,
    Problem,
    assert_paths_are_valid,
    assert_same_conquest,
    assert_same_forest,
    bounded,
    clusters,
    edges_of,
    expected_forest,
    gaussian,
    grid,
    many_scales,
    moderate_floats,
    one_hot,
    one_or_zero,
    problems,
    size,
    small_integers,
    with_labels,
    with_queries,
)

each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


def fit(problem, algorithm="auto", **parameters):
    return OPFClassifier(algorithm=algorithm, **parameters).fit(problem.X, problem.y)


def assert_is_the_forest(forest, problem, expected=None, exponent=0):
    """Compare with the naive forest, whose costs are squared, times ``2**exponent``."""
    expected = expected_forest(problem) if expected is None else expected

    def distance(squared):
        return np.ldexp(np.sqrt(squared), exponent)

    expected_edges = [(float(distance(w)), lower, higher) for w, lower, higher in expected.edges]
    assert edges_of(forest) == expected_edges
    np.testing.assert_array_equal(forest.prototypes_, expected.prototypes)
    np.testing.assert_array_equal(forest.costs_, distance(expected.costs))
    assert_paths_are_valid(forest, problem.y)
    queries = np.ldexp(problem.queries, exponent)
    conquest = forest.conquer(queries)
    np.testing.assert_array_equal(conquest.nodes, expected.nodes)
    np.testing.assert_array_equal(conquest.costs, distance(expected.path_costs))
    np.testing.assert_array_equal(forest.predict(queries), problem.y[expected.nodes])
    np.testing.assert_array_equal(forest.path_costs_by_class(queries), distance(expected.by_class))


def assert_all_are_the_forest(problem):
    expected = expected_forest(problem)
    for algorithm in ALGORITHMS:
        assert_is_the_forest(fit(problem, algorithm), problem, expected)


class TestAgainstTheDefinition:
    @given(problems(small_integers))
    @bounded(60)
    def test_on_small_grids(self, problem):
        assert_all_are_the_forest(problem)

    @given(problems(one_or_zero, max_size=24, max_features=6))
    @bounded(40)
    def test_on_binary_features(self, problem):
        assert_all_are_the_forest(problem)

    @given(problems(many_scales))
    @bounded(60)
    def test_on_many_scales_at_once(self, problem):
        assert_all_are_the_forest(problem)

    @given(problems(moderate_floats))
    @bounded(40)
    def test_on_arbitrary_floats(self, problem):
        assert_all_are_the_forest(problem)

    # More points than a leaf of the space tree (16) and than a block of products (64) hold.
    @pytest.mark.parametrize(
        "problem",
        [
            gaussian(0, size(200), 2),
            gaussian(1, size(200), 3, n_classes=4),
            gaussian(2, size(150), 40, n_classes=3),
            gaussian(3, size(170), 1),
            grid(4, size(200), 2, 8),
            grid(5, size(200), 3, 4, n_classes=3),
            grid(6, size(200), 1, 50),
            grid(7, size(150), 20, 2, n_classes=4),
            one_hot(8, size(200), 4, n_classes=3),
            clusters(9, size(200), 2, 1e-6),
            clusters(10, size(150), 20, 1e-12),
        ],
        ids=lambda problem: "x".join(map(str, problem.X.shape)),
    )
    def test_on_several_blocks(self, problem):
        expected = expected_forest(problem)
        for algorithm in ALGORITHMS:
            forest = fit(problem, algorithm, working_memory=TINY_MEMORY, n_jobs=2)
            assert_is_the_forest(forest, problem, expected)

    @pytest.mark.parametrize(
        "problem", [gaussian(0, size(550), 4), grid(1, size(600), 2, 20)], ids=["free", "ties"]
    )
    @each_algorithm
    def test_the_tree_and_the_costs_of_hundreds_of_samples(self, problem, algorithm):
        D = naive.squared_distances(problem.X, problem.X)
        forest = fit(problem, algorithm, working_memory=TINY_MEMORY)
        assert edges_of(forest) == [(np.sqrt(w), i, j) for w, i, j in naive.kruskal(D)]
        is_prototype = naive.prototypes(D, problem.y)
        np.testing.assert_array_equal(forest.prototypes_, np.flatnonzero(is_prototype))
        # The cost is the minimax distance to the nearest prototype.
        costs = naive.minimax(D)[:, is_prototype].min(axis=1)
        np.testing.assert_array_equal(forest.costs_, np.sqrt(costs))

    @pytest.mark.parametrize("n", [2, 15, 16, 17, 64, 65, 100])
    @each_algorithm
    def test_all_samples_in_one_place(self, algorithm, n):
        rng = np.random.default_rng(n)
        X = np.full((size(n), 3), 0.1)
        problem = with_queries(rng, X, np.arange(len(X)) % 2)
        assert_is_the_forest(fit(problem, algorithm), problem)
        assert len(fit(problem, algorithm).prototypes_) == len(X)

    @each_algorithm
    def test_two_samples(self, algorithm):
        problem = Problem(np.array([[0.0], [3.0]]), np.array([1, 0]), np.array([[1.5], [1.0]]))
        forest = fit(problem, algorithm)
        assert_is_the_forest(forest, problem)
        assert forest.predict([[1.5]]) == [0]  # halfway, the lower class

    @each_algorithm
    def test_evenly_spaced_on_a_line(self, algorithm):
        # All arcs of the tree tie, so every pair of neighbours of two classes are prototypes.
        X = np.arange(size(90), dtype=np.float64)[:, np.newaxis]
        y = np.arange(len(X)) // 7 % 3
        problem = with_queries(np.random.default_rng(0), X, y)
        assert_is_the_forest(fit(problem, algorithm), problem)

    @each_algorithm
    def test_duplicates_with_conflicting_labels(self, algorithm):
        rng = np.random.default_rng(3)
        X = np.repeat(rng.normal(size=(25, 2)), 4, axis=0)[rng.permutation(100)]
        problem = with_queries(rng, X, rng.integers(0, 3, 100))
        assert_is_the_forest(fit(problem, algorithm), problem)

    @pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33])
    @each_algorithm
    def test_any_number_of_queries(self, algorithm, n):
        X, y, queries = grid(0, 60, 2, 6)
        problem = Problem(X, y, queries[:n])
        assert_is_the_forest(fit(problem, algorithm), problem)


@given(problems(small_integers))
@bounded(60)
def test_training_makes_no_error_except_where_labels_conflict(problem):
    X, y = problem.X, problem.y
    conflict = ((naive.squared_distances(X, X) == 0.0) & (y[:, None] != y[None, :])).any(axis=1)
    for algorithm in ALGORITHMS:
        predicted = fit(problem, algorithm).predict(X)
        np.testing.assert_array_equal(predicted[~conflict], y[~conflict])


@given(problems(small_integers))
@bounded(60)
def test_left_out_costs_are_the_cheapest_paths_of_the_others(problem):
    forest = fit(problem)
    offers = np.maximum(forest.costs_, np.sqrt(naive.squared_distances(problem.X, problem.X)))
    np.fill_diagonal(offers, np.inf)
    np.testing.assert_array_equal(forest.forest_.costs_left_out(), offers.min(axis=1))


@given(problems(small_integers))
@bounded(30)
def test_explained_paths_cost_what_conquest_says(problem):
    for algorithm in ALGORITHMS:
        forest = fit(problem, algorithm)
        conquest = forest.conquer(problem.queries)
        for path, node, cost in zip(forest.explain(problem.queries), *conquest, strict=True):
            assert path.nodes[-1] == node
            assert path.nodes[0] == forest.roots_[node]
            assert path.cost == cost
            assert path.label == problem.y[node]


LARGE = {
    "grid in the plane": lambda: grid(0, size(3000), 2, 60, n_classes=3),
    "grid in space": lambda: grid(1, size(3000), 3, 12, n_classes=2),
    "binary features": lambda: grid(2, size(2500), 30, 2, n_classes=4),
    "continuous": lambda: gaussian(3, size(2500), 5, n_classes=3),
    "clusters": lambda: clusters(4, size(2000), 10, 1e-9),
}


@pytest.fixture(scope="module", params=list(LARGE))
def large(request):
    problem = LARGE[request.param]()
    return problem, fit(problem, "prim")


class TestOneForest:
    @pytest.mark.parametrize(
        ("algorithm", "n_jobs", "working_memory"),
        [
            ("kd_tree", 1, None),
            ("kd_tree", 2, None),
            ("kd_tree", 3, None),
            ("brute", 1, None),
            ("brute", 2, TINY_MEMORY),
            ("brute", 3, 1.0),
            ("prim", 3, TINY_MEMORY),
            ("auto", 2, None),
        ],
    )
    def test_whatever_the_algorithm_the_threads_and_the_blocks(
        self, large, algorithm, n_jobs, working_memory, monkeypatch
    ):
        # Small chunks, so that several threads have something to do.
        monkeypatch.setattr("popf.engine.trees.neighbours.CHUNK_BLOCKS", 7)
        monkeypatch.setattr("popf.engine.conquest.by_space_tree.CHUNK_BLOCKS", 2)
        problem, reference = large
        monkeypatch.setattr("popf.engine.distances.GRAIN", problem.X.size // 3)
        forest = fit(problem, algorithm, n_jobs=n_jobs, working_memory=working_memory)
        assert_same_forest(forest, reference)
        queries = np.concatenate([problem.queries, problem.X[:200], problem.X[:200] + 0.25])
        assert_same_conquest(forest, reference, queries)

    def test_paths_of_thousands_of_samples_are_valid(self, large):
        problem, reference = large
        assert_paths_are_valid(reference, problem.y)

    @given(problems(small_integers, max_size=40), st.integers(2, 3))
    @bounded(25)
    def test_threads_change_nothing_where_there_is_little_to_share(self, problem, n_jobs):
        for algorithm in ALGORITHMS:
            one, many = fit(problem, algorithm), fit(problem, algorithm, n_jobs=n_jobs)
            assert_same_forest(one, many)
            assert_same_conquest(one, many, problem.queries)


def assert_rows_may_come_in_any_order(problem, order, algorithm):
    one = fit(problem, algorithm)
    other = fit(Problem(problem.X[order], problem.y[order], problem.queries), algorithm)
    is_prototype = np.isin(np.arange(len(problem.y)), one.prototypes_)
    np.testing.assert_array_equal(other.prototypes_, np.flatnonzero(is_prototype[order]))
    np.testing.assert_array_equal(other.costs_, one.costs_[order])
    np.testing.assert_array_equal(other.spanning_tree_.weights, one.spanning_tree_.weights)
    np.testing.assert_array_equal(other.predict(problem.queries), one.predict(problem.queries))
    np.testing.assert_array_equal(
        other.conquer(problem.queries).costs, one.conquer(problem.queries).costs
    )
    np.testing.assert_array_equal(
        other.path_costs_by_class(problem.queries), one.path_costs_by_class(problem.queries)
    )


class TestTheOrderOfTheRows:
    @given(problems(small_integers), st.randoms(use_true_random=False))
    @bounded(40)
    def test_changes_nothing_on_small_grids(self, problem, random):
        order = list(range(len(problem.X)))
        random.shuffle(order)
        for algorithm in ALGORITHMS:
            assert_rows_may_come_in_any_order(problem, order, algorithm)

    @pytest.mark.parametrize(
        "problem",
        [
            grid(0, size(1500), 2, 25, n_classes=3),
            grid(1, size(1000), 12, 2, n_classes=2),
            gaussian(2, size(1000), 3, n_classes=4),
        ],
        ids=["grid", "binary", "continuous"],
    )
    @each_algorithm
    def test_changes_nothing_on_many_samples(self, problem, algorithm):
        order = np.random.default_rng(5).permutation(len(problem.X))
        assert_rows_may_come_in_any_order(problem, order, algorithm)

    @each_algorithm
    def test_of_new_samples_does_not_matter_either(self, algorithm):
        problem = grid(3, size(300), 2, 9)
        forest = fit(problem, algorithm)
        order = np.random.default_rng(0).permutation(len(problem.queries))
        np.testing.assert_array_equal(
            forest.conquer(problem.queries[order]),
            np.array(forest.conquer(problem.queries))[:, order],
        )


class TestExtremes:
    @pytest.mark.parametrize("d", [2, 30])
    @each_algorithm
    def test_far_from_the_origin(self, algorithm, d):
        problem = gaussian(0, size(150), d)
        problem = Problem(problem.X + 1e8, problem.y, problem.queries + 1e8)
        assert_is_the_forest(fit(problem, algorithm, working_memory=TINY_MEMORY), problem)

    @pytest.mark.parametrize("factor", [1e-150, 1e150, 1e-300, 1e300])
    @pytest.mark.parametrize("make", [gaussian, lambda *args: grid(*args, 5)], ids=["free", "ties"])
    @each_algorithm
    def test_tiny_and_huge_scales(self, algorithm, make, factor):
        problem = make(1, size(120), 3)
        X, queries = problem.X * factor, problem.queries * factor
        # The same values as far as a power of two: there squares neither vanish nor overflow.
        exponent = int(np.round(np.log2(factor)))
        moderate = Problem(np.ldexp(X, -exponent), problem.y, np.ldexp(queries, -exponent))
        forest = fit(Problem(X, problem.y, queries), algorithm)
        assert_is_the_forest(forest, moderate, exponent=exponent)

    @pytest.mark.parametrize("exponent", [-500, 500, -900, 900])
    @each_algorithm
    def test_costs_scale_exactly_by_powers_of_two(self, algorithm, exponent):
        X, y, queries = gaussian(2, size(150), 4)
        moderate = fit(Problem(X, y, queries), algorithm)
        scaled = fit(Problem(np.ldexp(X, exponent), y, queries), algorithm)
        np.testing.assert_array_equal(scaled.costs_, np.ldexp(moderate.costs_, exponent))
        np.testing.assert_array_equal(scaled.prototypes_, moderate.prototypes_)
        there = np.ldexp(queries, exponent)
        np.testing.assert_array_equal(
            scaled.path_costs_by_class(there),
            np.ldexp(moderate.path_costs_by_class(queries), exponent),
        )

    @each_algorithm
    def test_denormal_values(self, algorithm):
        problem = grid(3, size(100), 2, 6)
        problem = Problem(problem.X, problem.y, np.floor(problem.queries))
        denormal = Problem(np.ldexp(problem.X, -1074), problem.y, problem.queries)
        assert_is_the_forest(fit(denormal, algorithm), problem, exponent=-1074)

    @each_algorithm
    def test_nearly_the_largest_values(self, algorithm):
        X = np.array([0.0, 1.0, 2.0, 3.0, 3.0, 1.0])[:, np.newaxis]
        problem = Problem(X, np.array([0, 0, 1, 1, 0, 0]), np.array([[0.5], [1.5], [3.5], [2.0]]))
        huge = Problem(np.ldexp(X, 1022), problem.y, problem.queries)
        assert_is_the_forest(fit(huge, algorithm), problem, exponent=1022)

    @each_algorithm
    def test_values_that_vanish_beside_others(self, algorithm):
        # The squares of their differences are zero, so they tie with duplicates.
        X = np.array([[5e-324], [0.0], [0.0], [0.75], [1e-170], [0.75]])
        problem = Problem(X, np.array([0, 0, 0, 1, 0, 1]), np.array([[0.0], [1e-170], [0.7]]))
        assert_is_the_forest(fit(problem, algorithm), problem)

    @each_algorithm
    def test_constant_features_change_nothing(self, algorithm):
        problem = grid(4, size(120), 2, 7, n_classes=3)

        def pad(X):
            return np.column_stack([np.full(len(X), 7.3), X, np.zeros(len(X))])

        padded = Problem(pad(problem.X), problem.y, pad(problem.queries))
        forest = fit(padded, algorithm)
        assert_is_the_forest(forest, padded)
        assert_same_forest(forest, fit(problem, algorithm))

    @each_algorithm
    def test_five_thousand_features(self, algorithm):
        problem = gaussian(5, 60, size(5000), n_classes=3)
        assert_is_the_forest(fit(problem, algorithm), problem)

    @each_algorithm
    def test_more_features_than_a_tiny_memory_holds(self, algorithm):
        problem = grid(6, size(150), size(1000), 3)
        assert_is_the_forest(fit(problem, algorithm, working_memory=TINY_MEMORY), problem)

    @pytest.mark.parametrize("radius", [1e-6, 1e-9, 1e-12, 1e-15])
    @pytest.mark.parametrize("d", [2, 30])
    @each_algorithm
    def test_tight_clusters_far_apart(self, algorithm, d, radius):
        problem = clusters(7, size(200), d, radius)
        assert_is_the_forest(fit(problem, algorithm, working_memory=TINY_MEMORY), problem)

    @pytest.mark.parametrize("radius", [1e-15, 1e-20, 1.8e-23, 3.2e-23, 1e-40, 1e-150])
    @each_algorithm
    def test_a_tight_cluster_in_the_centre_of_all(self, algorithm, radius):
        # The cluster is so small that its squares are hardly more than nothing in float32.
        rng = np.random.default_rng(2)
        corners = np.array([[a, b] for a in (-0.5, 0.5) for b in (-0.5, 0.5)] * 3)
        corners *= np.repeat([1.0, 0.5, 0.25], 4)[:, np.newaxis]
        inner = radius * rng.normal(size=(20, 2))
        X = np.concatenate([corners, inner, -inner])
        y = rng.integers(0, 2, len(X))
        problem = Problem(X, y, np.concatenate([inner * 0.5, X, corners * 1.1]))
        assert_is_the_forest(fit(problem, algorithm), problem)


class TestQueriesFarAway:
    DIRECTIONS = np.random.default_rng(0).normal(size=(20, 3))

    @pytest.mark.parametrize("factor", [1e3, 1e8, 1e15, 1e20, 1e50, 1e100])
    @each_algorithm
    def test_are_conquered_as_defined(self, algorithm, factor):
        X, y, _ = gaussian(0, size(100), 3)
        problem = Problem(X, y, self.DIRECTIONS * factor)
        assert_is_the_forest(fit(problem, algorithm), problem)

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
    def test_of_tiny_training_samples(self, algorithm):
        X, y, queries = gaussian(3, size(60), 2)
        forest = fit(Problem(X * 1e-300, y, queries), algorithm)
        conquest = forest.conquer(queries)
        distance = np.sqrt(naive.squared_distances(queries, np.zeros((1, 2)))[:, 0])
        np.testing.assert_allclose(conquest.costs, distance, rtol=1e-15)

    @each_algorithm
    def test_of_training_samples_all_at_the_origin(self, algorithm):
        forest = OPFClassifier(algorithm=algorithm).fit(np.zeros((4, 2)), [1, 0, 1, 0])
        conquest = forest.conquer([[0.0, 0.0], [3e200, 4e200], [3.0, 4.0]])
        np.testing.assert_array_equal(conquest.nodes, 1)
        np.testing.assert_allclose(conquest.costs, [0.0, 5e200, 5.0], rtol=1e-15)


class TestTheFormOfTheData:
    @pytest.fixture
    def problem(self):
        X, y, queries = gaussian(0, size(150), 6, n_classes=3)
        return Problem(X.astype(np.float32), y, queries.astype(np.float32))

    @each_algorithm
    def test_float32_and_float64_of_the_same_values(self, problem, algorithm):
        double = Problem(problem.X.astype(np.float64), problem.y, problem.queries)
        single_forest, double_forest = fit(problem, algorithm), fit(double, algorithm)
        assert_same_forest(single_forest, double_forest)
        assert_is_the_forest(double_forest, double)
        np.testing.assert_array_equal(
            single_forest.conquer(problem.queries),
            double_forest.conquer(problem.queries.astype(np.float64)),
        )

    @pytest.mark.parametrize(
        "layout", ["fortran", "memory map", "every other", "backwards", "list"]
    )
    @each_algorithm
    def test_the_layout_in_memory(self, problem, algorithm, layout, tmp_path):
        X = problem.X.astype(np.float64)
        if layout == "fortran":
            laid_out = np.asfortranarray(X)
        elif layout == "memory map":
            X.tofile(tmp_path / "X")
            laid_out = np.memmap(tmp_path / "X", dtype=np.float64, mode="r", shape=X.shape)
        elif layout == "every other":
            laid_out = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, 1::3]
        elif layout == "backwards":
            laid_out = X[::-1, ::-1].copy()[::-1, ::-1]
        else:
            laid_out = X.tolist()
        copy = np.array(laid_out)
        forest = OPFClassifier(algorithm=algorithm).fit(laid_out, problem.y)
        reference = OPFClassifier(algorithm=algorithm).fit(X, problem.y)
        assert_same_forest(forest, reference)
        np.testing.assert_array_equal(forest.conquer(laid_out), reference.conquer(X))
        np.testing.assert_array_equal(laid_out, copy)

    @each_algorithm
    def test_the_users_arrays_are_left_alone(self, problem, algorithm):
        X, y, queries = (np.array(part, dtype=np.float64) for part in problem)
        for part in (X, y, queries):
            part.setflags(write=False)
        forest = OPFClassifier(algorithm=algorithm).fit(X, y)
        before = np.array(forest.conquer(queries))
        X.setflags(write=True)
        X[:] = 0.0  # what happens to them after the fit is no concern of the forest
        np.testing.assert_array_equal(before, np.array(forest.conquer(queries)))


class TestMetricsThatGrowWithTheEuclidean:
    TRANSFORMS = {  # noqa: RUF012
        "sqeuclidean": lambda s: s,
        "log_euclidean": lambda s: 1e5 * np.log1p(s),
        "gaussian": lambda s: -np.expm1(-np.sqrt(s)),
    }

    @pytest.mark.parametrize("metric", TRANSFORMS)
    @pytest.mark.parametrize("make", [gaussian, lambda *args: grid(*args, 6)], ids=["free", "ties"])
    @each_algorithm
    def test_have_the_same_forest_at_other_costs(self, algorithm, make, metric):
        problem = make(0, size(120), 2, 3)
        euclidean, other = fit(problem, algorithm), fit(problem, algorithm, metric=metric)
        transform, expected = self.TRANSFORMS[metric], expected_forest(problem)
        for name in ("lower", "higher"):
            np.testing.assert_array_equal(
                getattr(other.spanning_tree_, name), getattr(euclidean.spanning_tree_, name)
            )
        for name in ("prototypes_", "predecessors_", "roots_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(euclidean, name))
        queries = problem.queries
        np.testing.assert_array_equal(other.predict(queries), euclidean.predict(queries))
        np.testing.assert_array_equal(other.conquer(queries).nodes, expected.nodes)
        for ours, squared in (
            (other.costs_, expected.costs),
            (other.spanning_tree_.weights, np.array([w for w, _, _ in expected.edges])),
            (other.conquer(queries).costs, expected.path_costs),
            (other.path_costs_by_class(queries), expected.by_class),
        ):
            np.testing.assert_array_max_ulp(ours, transform(squared), maxulp=1)


def test_the_naive_problem_maker_keeps_every_class():
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 4):
        problem = with_labels(rng, np.zeros((5, 1)), n_classes)
        assert set(problem.y) == set(range(n_classes))
