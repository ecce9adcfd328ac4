"""Problems to try the forest on, tie-free and tie-heavy, and how two forests are compared."""

from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numba.core import config
from sklearn.datasets import load_iris, make_blobs, make_classification, make_moons

import naive
from popf import OPFClassifier
from popf.engine.points import distinct_points

#: The algorithms of `OPFClassifier`; each must give the same forest.
ALGORITHMS = ("kd_tree", "brute", "prim", "auto")

IRIS, SPECIES = load_iris(return_X_y=True)
X_TRAIN, Y_TRAIN, X_NEW = IRIS[::2], SPECIES[::2], IRIS[1::2]
MOONS, MOON = make_moons(160, noise=0.2, random_state=0)
BLOBS, BLOB = make_blobs(900, centers=9, n_features=6, random_state=0)

#: So little memory, in MiB, that matrix products come in the smallest blocks, of 64 points.
TINY_MEMORY = 0.05


def bounded(max_examples):
    """Settings for a property test that takes the same, few examples every time."""
    return settings(max_examples=max_examples, deadline=None, derandomize=True, database=None)


def size(n):
    """`n` where kernels are compiled; few where ``NUMBA_DISABLE_JIT=1`` makes them slow."""
    return min(n, 40 + n % 10) if config.DISABLE_JIT else n


def furthest_feature(x, y):
    """Chebyshev's distance, as a user would write it."""
    return np.abs(x - y).max()


def blobs(n=80, seed=0, **more):
    """Samples and labels for a study that takes no time."""
    settings = {"n_features": 4, "flip_y": 0.1, "random_state": seed, **more}
    return make_classification(n, **settings)


class Problem(NamedTuple):
    """Training samples, their labels (0, 1, ..., none missing) and new samples."""

    X: np.ndarray
    y: np.ndarray
    queries: np.ndarray


class Expected(NamedTuple):
    """The forest of the definitions: squared weights, costs and offers."""

    edges: list
    prototypes: np.ndarray
    costs: np.ndarray
    nodes: np.ndarray
    path_costs: np.ndarray
    by_class: np.ndarray


def expected_forest(problem):
    """What `tests/naive.py` makes of a problem."""
    X, y, queries = problem
    D, to_queries = naive.squared_distances(X, X), naive.squared_distances(queries, X)
    is_prototype = naive.prototypes(D, y)
    costs, _ = naive.competition(D, is_prototype)
    nodes, path_costs = naive.conquer(costs, to_queries, y)
    by_class = naive.costs_by_class(costs, to_queries, y, y.max() + 1)
    return Expected(
        naive.kruskal(D), np.flatnonzero(is_prototype), costs, nodes, path_costs, by_class
    )


def edges_of(forest):
    """Edges (weight, lower, higher) of the spanning tree of a fitted forest, in its order."""
    tree = forest.spanning_tree_
    return list(zip(tree.weights.tolist(), tree.lower.tolist(), tree.higher.tolist(), strict=True))


def assert_same_forest(one, other):
    """Assert that two fitted forests are the same to the bit."""
    for name in ("lower", "higher", "weights"):
        np.testing.assert_array_equal(
            getattr(one.spanning_tree_, name), getattr(other.spanning_tree_, name), err_msg=name
        )
    for name in ("prototypes_", "costs_", "predecessors_", "roots_", "classes_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.forest_.lengths, other.forest_.lengths)


def assert_same_conquest(one, other, queries):
    """Assert that two fitted forests conquer new samples alike, to the bit."""
    np.testing.assert_array_equal(one.conquer(queries).nodes, other.conquer(queries).nodes)
    np.testing.assert_array_equal(one.conquer(queries).costs, other.conquer(queries).costs)
    np.testing.assert_array_equal(
        one.path_costs_by_class(queries), other.path_costs_by_class(queries)
    )


def assert_paths_are_valid(forest, y):
    """Assert that paths run along the tree, within a class, and cost their largest edge."""
    weight = {(lower, higher): w for w, lower, higher in edges_of(forest)}
    is_prototype = np.zeros(len(y), dtype=bool)
    is_prototype[forest.prototypes_] = True
    np.testing.assert_array_equal(forest.predecessors_ < 0, is_prototype)
    np.testing.assert_array_equal(y[forest.roots_], y)
    for sample in range(len(y)):
        node, largest, steps = sample, 0.0, 0
        while forest.predecessors_[node] >= 0:
            before = int(forest.predecessors_[node])
            edge = weight[min(node, before), max(node, before)]
            assert forest.forest_.lengths[node] == edge
            node, largest, steps = before, max(largest, edge), steps + 1
            assert steps < len(y), "the path runs in a circle"
        assert forest.roots_[sample] == node
        assert forest.costs_[sample] == largest


def fit(problem, algorithm="auto", **parameters):
    """Fit a forest to the training samples of a problem."""
    return OPFClassifier(algorithm=algorithm, **parameters).fit(problem.X, problem.y)


def assert_is_the_forest(forest, problem, expected=None, exponent=0):
    """Compare with the naive forest, whose costs are squared, times ``2**exponent``."""
    expected = expected_forest(problem) if expected is None else expected

    def distance(squared):
        return np.ldexp(np.sqrt(squared), exponent)

    # Squares that differ may have one root: edges come in the order of lengths.
    edges = sorted((float(distance(w)), lower, higher) for w, lower, higher in expected.edges)
    assert edges_of(forest) == edges
    np.testing.assert_array_equal(forest.prototypes_, expected.prototypes)
    np.testing.assert_array_equal(forest.costs_, distance(expected.costs))
    assert_paths_are_valid(forest, problem.y)
    queries = np.ldexp(problem.queries, exponent)
    conquest = forest.conquer(queries)
    np.testing.assert_array_equal(conquest.nodes, expected.nodes)
    np.testing.assert_array_equal(conquest.costs, distance(expected.path_costs))
    np.testing.assert_array_equal(forest.predict(queries), problem.y[expected.nodes])
    np.testing.assert_array_equal(forest.path_costs_by_class(queries), distance(expected.by_class))


def with_queries(rng, X, y, n_queries=12):
    """Make a problem whose new samples are training samples, midpoints of them, and others."""
    chosen = rng.integers(0, len(X), (3, n_queries))
    own, between = X[chosen[0]], (X[chosen[1]] + X[chosen[2]]) / 2.0
    spread = np.ptp(X, axis=0) + (np.ptp(X) == 0.0)
    other = X.min(axis=0) + spread * rng.uniform(-0.5, 1.5, (n_queries, X.shape[1]))
    return Problem(X, y, np.concatenate([own, between, other]))


def with_labels(rng, X, n_classes=2, n_queries=12):
    """Make a problem of samples; labels follow the samples in part only, so that paths are long."""
    n = len(X)
    y = (np.argsort(np.argsort(X[:, 0], kind="stable")) * n_classes) // n
    mixed = rng.random(n) < 0.15
    y[mixed] = rng.integers(0, n_classes, mixed.sum())
    y[rng.permutation(n)[:n_classes]] = np.arange(n_classes)
    return with_queries(rng, X, y, n_queries)


def gaussian(seed, n, d, n_classes=2):
    """Continuous samples: no ties."""
    rng = np.random.default_rng(seed)
    return with_labels(rng, rng.normal(size=(n, d)), n_classes)


def grid(seed, n, d, n_values, n_classes=2):
    """Samples on a grid of integers: ties everywhere, and duplicates with other labels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, (n, d)).astype(np.float64)
    return with_labels(rng, X, n_classes)


def one_hot(seed, n, n_variables, n_values=3, n_classes=2):
    """Categorical samples, each variable coded by as many features as it has values."""
    rng = np.random.default_rng(seed)
    X = np.eye(n_values)[rng.integers(0, n_values, (n, n_variables))].reshape(n, -1)
    return with_labels(rng, X, n_classes)


def clusters(seed, n, d, radius, n_clusters=6):
    """Tight clusters far apart."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_clusters, d))[rng.integers(0, n_clusters, n)]
    return with_labels(rng, X + radius * rng.normal(size=(n, d)))


#: Kinds of `random_points`.
KINDS = ("continuous", "grid", "offset", "clusters")


def random_points(seed, n, d, kind):
    """Distinct points, scaled, as the engine's trees and tiles get them."""
    rng = np.random.default_rng(seed)
    if kind == "grid":
        X = rng.integers(0, 5, (n, d)).astype(np.float64)
    elif kind == "clusters":
        X = rng.random((4, d))[rng.integers(0, 4, n)] + 1e-7 * rng.normal(size=(n, d))
    else:
        X = rng.normal(size=(n, d)) + (1e8 if kind == "offset" else 0.0)
    return distinct_points(X).points


@st.composite
def problems(draw, values, max_size=18, max_features=3):
    """Small problems whose features take some values, with two to four classes."""
    d = draw(st.integers(1, max_features))
    n_classes = draw(st.integers(2, 4))
    row = st.lists(values, min_size=d, max_size=d)
    X = draw(st.lists(row, min_size=n_classes, max_size=max_size))
    labels = st.integers(0, n_classes - 1)
    rest = len(X) - n_classes
    y = [*range(n_classes), *draw(st.lists(labels, min_size=rest, max_size=rest))]
    y = draw(st.permutations(y))
    queries = X[:4] + draw(st.lists(row, min_size=1, max_size=6))
    return Problem(np.array(X, dtype=np.float64), np.array(y), np.array(queries, dtype=np.float64))


seeds = st.integers(0, 2**32 - 1)
#: Few values: ties, duplicates with conflicting labels, often all samples in one place.
small_integers = st.integers(0, 3)
one_or_zero = st.integers(0, 1)
#: Values whose differences and squares span many orders of magnitude, signs and zeros included.
many_scales = st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 1.0 + 2.0**-52, 1e-6, -1e-6, 1e-12, 1e-23, -1e-23, 2e-23, 0.1, 0.3]
)
moderate_floats = st.floats(-1e3, 1e3, allow_subnormal=False).filter(lambda x: abs(x) > 1e-100)
#: Weights that are numbers of repetitions, some of them none; a problem takes as many as it has samples.
whole_weights = st.lists(st.integers(0, 3), min_size=40, max_size=40)
