"""What a forest shows of itself: decisions, costs, paths, tables and graphs."""

import sys

import networkx
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from popf import OPFClassifier
from strategies import ALGORITHMS, MOON, MOONS, X_NEW, X_TRAIN, Y_TRAIN, furthest_feature

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
    names = np.array(["setosa", "versicolor", "virginica"])
    forest = OPFClassifier(metric, algorithm=algorithm).fit(X_TRAIN, names[Y_TRAIN])
    conquest, labels = forest.conquer(X_NEW), forest.predict(X_NEW)
    paths = forest.explain(X_NEW)
    assert len(paths) == len(X_NEW)
    for path, node, cost, label in zip(paths, *conquest, labels, strict=True):
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
