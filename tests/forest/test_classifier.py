"""OPFClassifier as users meet it: their labels, features, frames and weights."""

import numpy as np
import pandas
import polars
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import pairwise_distances

from popf import OPFClassifier
from strategies import ALGORITHMS, X_NEW, X_TRAIN, Y_TRAIN, assert_same_forest

# Labels ------------------------------------------------------------------------------------------


NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.mark.parametrize(
    "names",
    [
        NAMES,
        NAMES.astype(object),
        np.array([-7, -1, 3]),
        np.array([0.0, 1.0, 7.0]),
        np.array([10**18, 10**18 + 1, 10**18 + 5]),
        np.array([0, 2**63, 2**64 - 1], dtype=np.uint64),
        np.array([2**64 - 3, 2**64 - 2, 2**64 - 1], dtype=np.uint64),
        np.array([True, False, True]),
    ],
    ids=lambda names: str(names.dtype),
)
def test_labels_of_any_type_come_back_as_they_were(names):
    y = names[Y_TRAIN]
    forest = OPFClassifier().fit(X_TRAIN, y)
    assert_array_equal(forest.classes_, np.unique(names))
    assert_array_equal(forest.predict(X_TRAIN), y)  # training makes no errors
    assert_array_equal(forest.forest_.labels, y)
    assert forest.classes_.dtype == forest.predict(X_TRAIN).dtype == names.dtype


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_labels_may_span_the_range_of_their_type(dtype):
    # 127 - (-128) does not fit into the type of the labels.
    names = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, dtype=dtype)
    y, samples = np.tile(names, 2), np.random.default_rng(0).normal(size=(512, 3))
    forest = OPFClassifier().fit(samples, y)
    assert_array_equal(forest.classes_, names)
    assert_array_equal(forest.predict(samples), y)


@pytest.mark.parametrize(
    "wrap",
    [list, tuple, pandas.Series, pandas.Categorical, lambda y: polars.Series(list(y))],
    ids=["list", "tuple", "pandas", "categorical", "polars"],
)
def test_labels_may_come_in_any_container(wrap):
    forest = OPFClassifier().fit(X_TRAIN, wrap(NAMES[Y_TRAIN]))
    assert_array_equal(forest.classes_.astype(str), NAMES)
    assert_array_equal(forest.predict(X_TRAIN).astype(str), NAMES[Y_TRAIN])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%")
def test_every_sample_may_be_a_class_of_its_own(algorithm):
    samples = np.random.default_rng(1).normal(size=(300, 4))
    y = np.random.default_rng(2).permutation(300)
    forest = OPFClassifier(algorithm=algorithm).fit(samples, y)
    assert_array_equal(forest.predict(samples), y)
    assert_array_equal(forest.prototypes_, np.arange(300))
    assert forest.decision_function(samples[:5]).shape == (5, 300)


# Features ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.uint8, np.bool_])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_numbers_of_any_type_are_taken_exactly(algorithm, dtype):
    samples = np.random.default_rng(0).exponential(2.0, (60, 3))
    samples = (samples if dtype == np.float32 else np.floor(samples)).astype(dtype)
    y = np.arange(60) % 3
    forest = OPFClassifier(algorithm=algorithm).fit(samples, y)
    assert_same_forest(forest, OPFClassifier(algorithm=algorithm).fit(samples.astype(float), y))
    assert forest.costs_.dtype == np.float64


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_frames_keep_the_names_of_their_columns(frame):
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    train = frame(dict(zip(names, X_TRAIN.T, strict=True)))
    new = frame(dict(zip(names, X_NEW.T, strict=True)))
    plain = OPFClassifier().fit(X_TRAIN, Y_TRAIN)
    forest = OPFClassifier().fit(train, Y_TRAIN)
    assert_same_forest(forest, plain)
    assert_array_equal(forest.feature_names_in_, names)
    assert_array_equal(forest.predict(new), plain.predict(X_NEW))
    with pytest.raises(ValueError, match="same order"):
        forest.predict(new[names[::-1]])
    with pytest.warns(UserWarning, match="valid feature names"):
        forest.predict(X_NEW)


# Weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [*({"algorithm": name} for name in ALGORITHMS), {"metric": "manhattan"}],
    ids=str,
)
def test_a_weight_of_zero_equals_absence_and_others_have_no_effect(settings):
    rng = np.random.default_rng(3)
    samples = rng.integers(0, 6, size=(90, 2)).astype(float)  # with ties and duplicates
    y, weight = rng.integers(0, 3, size=90), rng.choice([0.0, 0.5, 3.0], size=90)
    y[weight == 0] = 7  # a class that nobody shall hear of
    kept = weight > 0
    weighted = OPFClassifier(**settings).fit(samples, y, sample_weight=weight)
    without = OPFClassifier(**settings).fit(samples[kept], y[kept])
    assert_same_forest(weighted, without)
    assert_same_forest(OPFClassifier(**settings).fit(samples[kept], y[kept], 2.5), without)
    assert_array_equal(weighted.sample_indices_, np.flatnonzero(kept))
    assert_array_equal(without.sample_indices_, np.arange(kept.sum()))
    new = rng.normal(3, 2, size=(40, 2))
    assert_array_equal(weighted.conquer(new).nodes, without.conquer(new).nodes)
    assert_array_equal(weighted.path_costs_by_class(new), without.path_costs_by_class(new))


def test_weights_with_precomputed_distances_leave_out_rows_and_columns():
    weight = np.arange(75) % 4
    kept = np.flatnonzero(weight)
    D, D_new = pairwise_distances(X_TRAIN), pairwise_distances(X_NEW, X_TRAIN)
    weighted = OPFClassifier("precomputed").fit(D, Y_TRAIN, sample_weight=weight)
    without = OPFClassifier("precomputed").fit(D[np.ix_(kept, kept)], Y_TRAIN[kept])
    assert_same_forest(weighted, without)
    # Columns are those of fit, as elsewhere in scikit-learn.
    assert_array_equal(weighted.predict(D_new), without.predict(D_new[:, kept]))
    assert_array_equal(weighted.decision_function(D_new), without.decision_function(D_new[:, kept]))
