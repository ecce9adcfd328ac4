"""OPFClassifier as users meet it: labels, features, frames, weights; decisions, paths, tables and graphs."""

import sys

import networkx
import numpy as np
import pandas
import polars
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import pairwise_distances

from popf import OPFClassifier
from strategies import (
    ALGORITHMS,
    MOON,
    MOONS,
    X_NEW,
    X_TRAIN,
    Y_TRAIN,
    assert_same_forest,
    furthest_feature,
)

# Labels ------------------------------------------------------------------------------------------


NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.mark.parametrize(
    "names",
    [
        NAMES,
        NAMES.astype(object),
        np.array([-7, -1, 3]),
        np.array([0.0, 1.0, 7.0]),
        np.array([0, 2**63, 2**64 - 1], dtype=np.uint64),
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


# Decisions and costs -----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("X", "y", "new"), [(MOONS[::2], MOON[::2], MOONS), (X_TRAIN, Y_TRAIN, X_NEW)], ids=["2", "3"]
)
def test_a_decision_is_by_how_much_a_class_is_cheaper_than_the_next(algorithm, X, y, new):
    forest = OPFClassifier(algorithm=algorithm).fit(X, np.array(["a", "b", "c"])[y])
    decision, costs = forest.decision_function(new), forest.path_costs_by_class(new)
    others = [np.delete(costs, k, axis=1).min(axis=1) for k in range(costs.shape[1])]
    margins = np.column_stack(others) - costs
    assert_array_equal(decision, margins if y.max() == 2 else margins[:, 1])
    chosen = np.searchsorted(forest.classes_, forest.predict(new))
    assert_array_equal(margins[np.arange(len(new)), chosen], margins.max(axis=1))
    assert (margins.max(axis=1) > 0).mean() > 0.9


def test_equal_costs_give_equal_decisions():
    X = [[0.0], [1.0], [4.0], [5.0], [-4.0], [-3.0]]
    forest = OPFClassifier().fit(X, [0, 0, 1, 1, 2, 2])
    new = [[2.5], [-1.5], [0.2], [1e4]]
    decision, costs = forest.decision_function(new), forest.path_costs_by_class(new)
    assert_array_equal(decision[0], [0.0, 0.0, -4.0])
    assert_array_equal(decision.argmax(axis=1), (-costs).argmax(axis=1))
    far = OPFClassifier("sqeuclidean").fit(X, [0, 0, 1, 1, 2, 2]).decision_function([[1e200]])
    assert_array_equal(far, [[0.0, 0.0, 0.0]])  # all costs are infinite


# Explanations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "algorithm"),
    [
        *(("euclidean", algorithm) for algorithm in ALGORITHMS),
        *((name, "auto") for name in ("manhattan", "mahalanobis", "gaussian", furthest_feature)),
    ],
)
def test_paths_lead_from_a_prototype_to_the_sample(metric, algorithm):
    forest = OPFClassifier(metric, algorithm=algorithm).fit(X_TRAIN, NAMES[Y_TRAIN])
    conquest, labels = forest.conquer(X_NEW), forest.predict(X_NEW)
    paths = forest.explain(X_NEW)
    assert len(paths) == len(X_NEW)
    for path, node, cost, distance, label in zip(paths, *conquest, labels, strict=True):
        assert path.weights[-1] == distance
        assert path.nodes[0] in forest.prototypes_
        assert path.nodes[-1] == node
        assert path.nodes[0] == forest.roots_[node]
        assert_array_equal(forest.predecessors_[path.nodes[1:]], path.nodes[:-1])
        assert len(path.weights) == len(path.nodes)
        assert path.weights.max() == path.weights[path.bottleneck] == path.cost == cost
        assert max([0.0, *path.weights[:-1]]) == forest.costs_[node]
        assert path.label == label


# The forest, to look at --------------------------------------------------------------------------


def test_the_table_and_the_graph_show_the_fitted_arrays():
    forest = OPFClassifier().fit(X_TRAIN, Y_TRAIN)
    expected = {
        "label": Y_TRAIN,
        "prototype": np.isin(np.arange(75), forest.prototypes_),
        "cost": forest.costs_,
        "predecessor": forest.predecessors_,
        "length": forest.forest_.lengths,
        "root": forest.roots_,
    }
    table, graph = forest.forest_.to_pandas(), forest.forest_.to_networkx()
    assert list(table) == list(expected)
    for name, values in expected.items():
        assert_array_equal(table[name], values, err_msg=name)
    assert networkx.is_branching(graph)
    for node, about in graph.nodes(data=True):
        assert about == {
            name: expected[name][node] for name in ("label", "cost", "root", "prototype")
        }
    edges = {
        (table["predecessor"][n], n, table["length"][n]) for n in table.index[~table["prototype"]]
    }
    assert set(graph.edges(data="weight")) == edges


@pytest.mark.parametrize("package", ["pandas", "networkx"])
def test_looking_without_the_package_says_what_to_install(package, monkeypatch):
    forest = OPFClassifier().fit(X_TRAIN, Y_TRAIN).forest_
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs {package}.*pip install .popf\[{package}\]"):
        getattr(forest, f"to_{package}")()
