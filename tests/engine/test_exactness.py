"""One forest, that of the definitions, whatever the algorithm, the threads, the blocks and the rows' order."""

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
    assert_is_the_forest,
    assert_paths_are_valid,
    assert_same_conquest,
    assert_same_forest,
    bounded,
    clusters,
    expected_forest,
    fit,
    gaussian,
    grid,
    many_scales,
    moderate_floats,
    one_hot,
    one_or_zero,
    problems,
    size,
    small_integers,
    with_queries,
)

each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


def all_in_one_place(n):
    X = np.full((size(n), 3), 0.1)
    return with_queries(np.random.default_rng(n), X, np.arange(len(X)) % 2)


def evenly_spaced_on_a_line():
    # All arcs of the tree tie, so every pair of neighbours of two classes are prototypes.
    X = np.arange(size(90), dtype=np.float64)[:, np.newaxis]
    return with_queries(np.random.default_rng(0), X, np.arange(len(X)) // 7 % 3)


def duplicates_with_conflicting_labels():
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(25, 2)), 4, axis=0)[rng.permutation(100)]
    return with_queries(rng, X, rng.integers(0, 3, 100))


def some_queries(n):
    X, y, queries = grid(0, 60, 2, 6)
    return Problem(X, y, queries[:n])


class TestAgainstTheDefinition:
    @pytest.mark.parametrize(
        "drawn",
        [
            problems(small_integers),
            problems(one_or_zero, max_size=24, max_features=6),
            problems(many_scales),
            problems(moderate_floats),
        ],
        ids=["small grids", "binary features", "many scales at once", "arbitrary floats"],
    )
    @given(data=st.data())
    @bounded(30)
    def test_on_small_problems(self, drawn, data):
        problem = data.draw(drawn)
        expected = expected_forest(problem)
        for algorithm in ALGORITHMS:
            forest = fit(problem, algorithm)
            assert_is_the_forest(forest, problem, expected)
            assert_same_forest(fit(problem, algorithm, n_jobs=3), forest)

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
        "problem",
        [
            *(all_in_one_place(n) for n in (2, 15, 16, 17, 64, 65, 100)),
            *(some_queries(n) for n in (1, 2, 15, 16, 17, 33)),
            Problem(np.array([[0.0], [3.0]]), np.array([1, 0]), np.array([[1.5], [1.0]])),
            evenly_spaced_on_a_line(),
            duplicates_with_conflicting_labels(),
        ],
        ids=lambda problem: f"{problem.X.shape}, {len(problem.queries)} queries",
    )
    @each_algorithm
    def test_on_special_cases(self, algorithm, problem):
        assert_is_the_forest(fit(problem, algorithm), problem)


@given(problems(small_integers))
@bounded(40)
def test_left_out_costs_are_the_cheapest_paths_of_the_others(problem):
    forest = fit(problem)
    offers = np.maximum(forest.costs_, np.sqrt(naive.squared_distances(problem.X, problem.X)))
    np.fill_diagonal(offers, np.inf)
    np.testing.assert_array_equal(forest.forest_.costs_left_out(), offers.min(axis=1))


LARGE = {
    "grid in the plane": lambda: grid(0, size(1500), 2, 40, n_classes=3),
    "grid in space": lambda: grid(1, size(1500), 3, 10, n_classes=2),
    "binary features": lambda: grid(2, size(1000), 30, 2, n_classes=4),
    "continuous": lambda: gaussian(3, size(1000), 5, n_classes=3),
    "clusters": lambda: clusters(4, size(1000), 10, 1e-9),
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
            ("kd_tree", 3, None),
            ("kd_tree", 16, None),
            ("brute", 1, None),
            ("brute", 2, TINY_MEMORY),
            ("brute", 3, 1.0),
            ("brute", 16, 0.2),
            ("prim", 3, TINY_MEMORY),
            ("auto", 2, None),
        ],
    )
    @pytest.mark.usefixtures("small_chunks")
    def test_whatever_the_algorithm_the_threads_and_the_blocks(
        self, large, algorithm, n_jobs, working_memory
    ):
        problem, reference = large
        forest = fit(problem, algorithm, n_jobs=n_jobs, working_memory=working_memory)
        assert_same_forest(forest, reference)
        queries = np.concatenate([problem.queries, problem.X[:200], problem.X[:200] + 0.25])
        assert_same_conquest(forest, reference, queries)

    def test_paths_of_many_samples_are_valid(self, large):
        problem, reference = large
        assert_paths_are_valid(reference, problem.y)


def assert_rows_may_come_in_any_order(problem, order, algorithm):
    X, y, queries = problem
    one, other = fit(problem, algorithm), fit(Problem(X[order], y[order], queries), algorithm)
    is_prototype = np.isin(np.arange(len(y)), one.prototypes_)
    for found, expected in (
        (other.prototypes_, np.flatnonzero(is_prototype[order])),
        (other.costs_, one.costs_[order]),
        (other.spanning_tree_.weights, one.spanning_tree_.weights),
        (other.predict(queries), one.predict(queries)),
        (other.conquer(queries).costs, one.conquer(queries).costs),
        (other.path_costs_by_class(queries), one.path_costs_by_class(queries)),
    ):
        np.testing.assert_array_equal(found, expected)


class TestTheOrderOfTheRows:
    @given(problems(small_integers), st.randoms(use_true_random=False))
    @bounded(20)
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


def as_memory_map(X, folder):
    X.tofile(folder / "X")
    return np.memmap(folder / "X", dtype=np.float64, mode="r", shape=X.shape)


LAYOUTS = {
    "fortran": lambda X, _: np.asfortranarray(X),
    "memory map": as_memory_map,
    "every other": lambda X, _: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, 1::3],
    "backwards": lambda X, _: X[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@each_algorithm
def test_the_layout_in_memory_does_not_matter(algorithm, layout, tmp_path):
    X, y, _ = gaussian(0, size(150), 6, n_classes=3)
    other = LAYOUTS[layout](X, tmp_path)
    forest, reference = (OPFClassifier(algorithm=algorithm).fit(data, y) for data in (other, X))
    assert_same_forest(forest, reference)
    np.testing.assert_array_equal(forest.conquer(other), reference.conquer(X))
    np.testing.assert_array_equal(other, X)


@each_algorithm
def test_the_users_arrays_are_left_alone(algorithm):
    X, y, queries = gaussian(0, size(150), 6, n_classes=3)
    for part in (X, y, queries):
        part.setflags(write=False)
    forest = OPFClassifier(algorithm=algorithm).fit(X, y)
    before = np.array(forest.conquer(queries))
    X.setflags(write=True)
    X[:] = 0.0  # what happens to them after the fit is no concern of the forest
    np.testing.assert_array_equal(before, np.array(forest.conquer(queries)))
