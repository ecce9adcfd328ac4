"""The metrics: formulas, exact symmetry, domains, and how the user's choice is resolved."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import DistanceMetric, pairwise_distances

import naive
from popf.engine import distances
from popf.engine.distances import KERNELS, kernel_blocks, kernel_rows, transform_squared
from popf.forest.metrics import METRIC_NAMES, SKLEARN_METRICS, choose_metric
from popf.forest.precomputed import check_precomputed


def quotient(numerator, denominator):
    """0/0 = 0."""
    return np.divide(
        numerator, denominator, out=np.zeros_like(numerator), where=np.asarray(denominator) != 0
    )


FORMULAS = {
    "sqeuclidean": lambda x, y: np.sum((x - y) ** 2),
    "manhattan": lambda x, y: np.sum(np.abs(x - y)),
    "canberra": lambda x, y: np.sum(quotient(np.abs(x - y), np.abs(x) + np.abs(y))),
    "squared_chord": lambda x, y: np.sum((np.sqrt(x) - np.sqrt(y)) ** 2),
    "squared_chi_square": lambda x, y: np.sum(quotient((x - y) ** 2, x + y)),
    "chi_square": lambda x, y: np.sqrt(np.sum(quotient((x / x.sum() - y / y.sum()) ** 2, x + y))),
    "chebyshev": lambda x, y: np.max(np.abs(x - y)),
    "hamming": lambda x, y: np.mean(x != y),
    "bray_curtis": lambda x, y: quotient(
        np.sum(np.abs(x - y)), np.sum(np.abs(x)) + np.sum(np.abs(y))
    ),
}


def samples(name, n_samples=40, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n_samples, n_features)) * rng.choice([1.0, 0.1], (n_samples, 1))
    X[:, 0] += 0.5 * (name == "chi_square")
    return X if KERNELS[name].non_negative else X - 1.0


def matrix(metric, X):
    row = metric.rows(X)(np.arange(len(X)))
    return np.array([row(i) for i in range(len(X))])


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_its_formula(name):
    X = samples(name)
    expected = [[FORMULAS[name](x, y) for y in X] for x in X]
    np.testing.assert_allclose(kernel_blocks(name, X, X)(0, len(X)), expected, rtol=1e-13)


@pytest.mark.parametrize("name", KERNELS)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_kernel_is_symmetric_to_the_bit_and_zero_for_equal_samples(name, data):
    low = 0.0 if KERNELS[name].non_negative else -1e6
    X = data.draw(arrays(np.float64, (6, 3), elements=st.floats(low, 1e6, width=32)))
    X[:, 0] += 1e-3 * KERNELS[name].positive_mass
    D = kernel_blocks(name, X, X)(0, 6)
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_array_equal(np.diag(D), 0.0)


def test_squared_euclidean_is_summed_over_the_features_in_order():
    X = np.random.default_rng(0).normal(size=(70, 11)) * 10.0 ** np.arange(11)
    np.testing.assert_array_equal(
        kernel_blocks("sqeuclidean", X, X)(0, len(X)), naive.squared_distances(X, X)
    )


@pytest.mark.parametrize("name", KERNELS)
def test_weights_depend_neither_on_the_cut_nor_on_threads(name, monkeypatch):
    X = samples(name, n_samples=3 * distances.TILE + 5, n_features=3)
    whole = kernel_blocks(name, X[:4], X)(0, 4)
    monkeypatch.setattr(distances, "GRAIN", 1)
    everyone = np.arange(len(X))
    for among in (kernel_rows(name, X), kernel_rows(name, X, n_threads=3)):
        for others in (everyone, everyone[::-1], everyone[7:600]):
            row = among(others)
            np.testing.assert_array_equal([row(i) for i in range(4)], whole[:, others])
    np.testing.assert_array_equal(kernel_blocks(name, X, X[:4])(100, 300), whole.T[100:300])


@pytest.mark.parametrize("name", ["braycurtis", "canberra", "chebyshev", "hamming", "manhattan"])
def test_names_shared_with_scikit_learn_mean_the_same(name):
    X = samples("manhattan")
    expected = DistanceMetric.get_metric(name).pairwise(X)
    np.testing.assert_allclose(matrix(choose_metric(name), X), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("sqeuclidean", lambda s: s),
        ("euclidean", np.sqrt),
        ("log_euclidean", lambda s: 1e5 * np.log(1 + s)),
        ("gaussian", lambda s: 1 - np.exp(-0.5 * np.sqrt(s))),
    ],
)
def test_functions_of_the_euclidean_distance(name, formula):
    squared = np.linspace(0.0, 30.0, 50)
    transformed = transform_squared(name, squared, gamma=0.5)
    np.testing.assert_allclose(transformed, formula(squared), rtol=1e-12)
    assert (np.diff(transformed) > 0).all()
    assert choose_metric(name).euclidean


def test_other_names_are_no_function_of_the_euclidean_distance():
    with pytest.raises(ValueError, match="'manhattan' is no function of the Euclidean distance"):
        transform_squared("manhattan", np.zeros(1))


@pytest.mark.parametrize("name", [name for name in KERNELS if KERNELS[name].non_negative])
def test_negative_features_are_refused_where_the_metric_has_none(name):
    with pytest.raises(ValueError, match=rf"{name}.*X\[1, 0\] is -2.0.*MinMaxScaler"):
        choose_metric(name).check(np.array([[1.0, 2.0], [-2.0, 3.0]]))


def test_chi_square_refuses_a_sample_without_mass():
    with pytest.raises(ValueError, match=r"features of X\[1\] are 0"):
        choose_metric("chi_square").check(np.array([[1.0, 2.0], [0.0, 0.0]]))


@pytest.mark.parametrize("name", SKLEARN_METRICS)
@pytest.mark.parametrize("values", ["continuous", "integer"])
def test_scikit_learn_metric_is_scikit_learns_and_symmetric(name, values):
    rng = np.random.default_rng(1)
    shape = (30, 2 if name == "haversine" else 4)
    X = rng.normal(size=shape) if values == "continuous" else 1.0 * rng.integers(0, 3, shape)
    params = {"p": 3} if name == "minkowski" else {}
    metric = choose_metric(name, params).fitted(X)
    metric.check(X)
    D = matrix(metric, X)
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_array_equal(metric.blocks(X[:5], X)(1, 4), D[1:4])
    if name in ("seuclidean", "mahalanobis"):
        expected = pairwise_distances(X, metric=name)
    else:
        expected = DistanceMetric.get_metric(name, **params).pairwise(X)
    np.testing.assert_allclose(D, expected, rtol=1e-9, atol=1e-12)


def test_haversine_is_for_two_features():
    choose_metric("haversine").check(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="X has 3"):
        choose_metric("haversine").check(np.zeros((3, 3)))


def test_parameters_from_training_data_must_exist():
    X = np.c_[np.arange(5.0), np.ones(5)]
    with pytest.raises(ValueError, match="feature 1 is constant"):
        choose_metric("seuclidean").fitted(X)
    with pytest.raises(ValueError, match="singular for these 5 samples of 2 features"):
        choose_metric("mahalanobis").fitted(X)
    with pytest.raises(ValueError, match=r"call fitted\(X\) first"):
        choose_metric("mahalanobis").rows(X)


@pytest.mark.parametrize("name", [n for n in METRIC_NAMES if n != "precomputed"])
def test_every_name_is_resolved_and_survives_pickling(name):
    X = np.random.default_rng(2).random((8, 2))
    metric = choose_metric(name, {"p": 3} if name in ("minkowski", "p") else None).fitted(X)
    metric.check(X)
    D = matrix(metric, X)
    assert (D[~np.eye(8, dtype=bool)] >= 0).all()
    np.testing.assert_array_equal(matrix(pickle.loads(pickle.dumps(metric)), X), D)
    np.testing.assert_array_equal(metric.blocks(X, X)(0, 8), D)


@pytest.mark.parametrize(
    ("metric", "params", "name"),
    [
        ("l2", None, "euclidean"),
        ("minkowski", None, "euclidean"),
        ("minkowski", {"p": 2}, "euclidean"),
        ("p", {"p": 2.0}, "euclidean"),
        ("cityblock", None, "manhattan"),
        ("braycurtis", None, "bray_curtis"),
    ],
)
def test_aliases(metric, params, name):
    chosen = choose_metric(metric, params)
    assert chosen.name == name
    assert chosen.euclidean == (name == "euclidean")
    assert type(choose_metric("minkowski", {"p": 2, "w": [1.0, 2.0]})).__name__ == "SklearnMetric"


@pytest.mark.parametrize(
    ("metric", "params", "error", "message"),
    [
        ("euclidian", None, ValueError, "unknown metric 'euclidian'. Did you mean 'euclidean'?"),
        ("chi-square", None, ValueError, "Did you mean 'chi_square'?"),
        ("cosine", None, ValueError, "unit length"),
        ("zzz", None, ValueError, "Choose one of .*manhattan"),
        (3, None, TypeError, "not 3, a int"),
        (None, None, TypeError, "not None"),
        ("euclidean", [2], TypeError, r"metric_params must be a dict or None, not \[2\]"),
        ("euclidean", {"p": 2}, ValueError, "'euclidean' does not take 'p'"),
        ("canberra", {"p": 2}, ValueError, "'canberra' does not take 'p'"),
        ("minkowski", {"p": -1}, ValueError, "'minkowski' does not take .*p must be greater"),
        ("minkowski", {"q": 3}, ValueError, "does not take 'q'"),
        ("jaccard", {"q": 3}, ValueError, "'jaccard' does not take .*'q'"),
        ("gaussian", {"gamma": 0.0}, ValueError, "gamma must be a positive number, not 0.0"),
        ("gaussian", {"gamma": "a"}, ValueError, "gamma must be a positive number, not 'a'"),
        ("gaussian", {"sigma": 1.0}, ValueError, "does not take 'sigma'"),
    ],
)
def test_nonsense_is_refused_with_the_value_and_a_remedy(metric, params, error, message):
    with pytest.raises(error, match=message.replace("?", r"\?")):
        choose_metric(metric, params)


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


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, TypeError),
        ("1", TypeError),
        (1j, TypeError),
        (np.array([1.0]), TypeError),
        (np.zeros((2, 2)), TypeError),
        (np.nan, ValueError),
        (-1.0, ValueError),
        (np.inf, ValueError),
    ],
)
def test_callable_that_returns_nonsense_is_refused(value, error):
    metric = choose_metric(lambda x, y: value)
    with pytest.raises(error, match="training samples 0 and 1"):
        metric.rows(np.zeros((2, 1)))(np.array([1]))(0)
    with pytest.raises(error, match="training sample 0 and new sample 3"):
        metric.blocks(np.zeros((4, 1)), np.zeros((2, 1)))(3, 4)


class TestPrecomputed:
    def test_an_exactly_symmetric_matrix_is_not_copied(self):
        D = np.array([[np.nan, 1.0], [1.0, -3.0]])  # the diagonal is ignored
        assert check_precomputed(D) is D

    def test_rounding_is_forgiven_and_the_upper_triangle_counts(self):
        D = np.array([[0.0, 1.0, 2.0], [1.0 + 1e-12, 0.0, 3.0], [2.0, 3.0 - 1e-12, 0.0]])
        original = D.copy()
        checked = check_precomputed(D)
        np.testing.assert_array_equal(checked, [[0, 1, 2], [1, 0, 3], [2, 3, 0]])
        np.testing.assert_array_equal(D, original)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({(2, 1): -1.0}, r"X\[2, 1\] of the precomputed matrix is -1.0"),
            ({(1, 2): np.nan}, r"X\[1, 2\] of the precomputed matrix is nan"),
            ({(2, 1): np.inf, (1, 2): np.inf}, r"X\[1, 2\] of the precomputed matrix is inf"),
            ({(2, 1): 5.0}, r"X\[1, 2\] is 1.0 and X\[2, 1\] is 5.0.*\(X \+ X.T\) / 2"),
        ],
    )
    @pytest.mark.parametrize("at_a_time", [2**20, 1])
    def test_what_is_no_distance_is_named(self, changes, message, at_a_time, monkeypatch):
        monkeypatch.setattr("popf.forest.precomputed.CHECKED_AT_A_TIME", at_a_time)
        D = np.ones((4, 4))
        for place, value in changes.items():
            D[place] = value
        if at_a_time == 1 and (2, 1) in changes and len(changes) == 1:
            message = r"X\[[12], [12]\]"  # found as a difference while looking at row 1
        with pytest.raises(ValueError, match=message):
            check_precomputed(D)

    @pytest.mark.parametrize("shape", [(3, 2), (3,), (2, 2, 2)])
    def test_shape(self, shape):
        with pytest.raises(ValueError, match="square matrix"):
            check_precomputed(np.ones(shape))

    def test_rows_and_blocks(self):
        metric = choose_metric("precomputed")
        D = check_precomputed([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
        np.testing.assert_array_equal(metric.rows(D)(np.array([2, 0]))(1), [3.0, 1.0])
        np.testing.assert_array_equal(metric.blocks(D, D)(1, 3), D[1:3])
