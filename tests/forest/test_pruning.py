"""A smaller forest: what is kept, when it stops, and what cannot be pruned."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import naive
from popf import OPFClassifier, POPFClassifier, SemiSupervisedOPFClassifier, prune
from popf.metrics import opf_accuracy_score
from refusals import refused
from saved_models import again, assert_same_model
from strategies import ALGORITHMS, assert_same_forest, bounded, gaussian, problems, small_integers


def naive_pruning(X, y, X_val, y_val, max_loss):
    """The rows that are left, by the definition, on data without ties."""
    rows, best, least = np.arange(len(y)), np.arange(len(y)), -np.inf
    while True:
        D, labels = naive.squared_distances(X[rows], X[rows]), y[rows]
        costs, roots = naive.competition(D, naive.prototypes(D, labels))
        nodes, _ = naive.conquer(costs, naive.squared_distances(X_val, X[rows]), labels)
        accuracy = opf_accuracy_score(y_val, labels[nodes])
        if accuracy < least:
            return best
        if len(rows) == len(y):
            least = accuracy - max_loss
        best = rows
        edges = [(lower, higher) for _, lower, higher in naive.kruskal(D)]
        used = set()
        for node in set(nodes.tolist()):
            used |= set(naive.tree_path(edges, int(roots[node]), node))
        if len(used) == len(rows):
            return best
        rows = rows[sorted(used)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("max_loss", [0.0, 0.05])
def test_pruning_keeps_what_the_definition_keeps(algorithm, max_loss):
    for seed in range(4):
        X, y, _ = gaussian(seed, 120, 3)
        model = OPFClassifier(algorithm=algorithm).fit(X[:70], y[:70])
        before = pickle.dumps(model)
        small = prune(model, X[70:], y[70:], max_loss)
        assert pickle.dumps(model) == before
        kept = naive_pruning(X[:70], y[:70], X[70:], y[70:], max_loss)
        assert_array_equal(small.sample_indices_, kept)
        assert_same_forest(small, OPFClassifier(algorithm=algorithm).fit(X[kept], y[kept]))


@bounded(30)
@given(problems(small_integers), st.randoms(use_true_random=False))
def test_ties_do_not_fall_to_the_order_of_the_rows(problem, random):
    X, y, X_val = problem
    y_val = np.array([random.randrange(int(y.max()) + 1) for _ in X_val])
    shuffled = np.array(random.sample(range(len(y)), len(y)))
    small = prune(OPFClassifier().fit(X, y), X_val, y_val, 0.2)
    twin = prune(OPFClassifier().fit(X[shuffled], y[shuffled]), X_val, y_val, 0.2)
    kept, twins = small.sample_indices_, shuffled[twin.sample_indices_]
    rows = [sorted([*X[i], y[i]] for i in some) for some in (kept, twins)]
    assert rows[0] == rows[1]
    assert_array_equal(small.predict(X_val), twin.predict(X_val))


def test_every_class_keeps_a_sample_names_and_rows_are_kept(model_path):
    X = pd.DataFrame({"a": [9.0, 0.0, 1.0, 2.0, 5.0, 8.0, 8.5], "b": 0.0})
    y = ["x", "x", "x", "x", "y", "z", "z"]
    model = OPFClassifier("seuclidean", metric_params={"V": [1.0, 1.0]})
    model.fit(X, y, sample_weight=[0, 1, 1, 1, 1, 1, 1])
    small = prune(model, X.iloc[[3, 3]], ["x", "x"])
    assert small.classes_.tolist() == ["x", "y", "z"]
    assert_array_equal(small.sample_indices_, [3, 4, 5])
    assert_array_equal(small.feature_names_in_, ["a", "b"])
    assert_same_model(small, again(small, model_path), X)


@pytest.mark.parametrize("metric", ["manhattan", "mahalanobis", lambda x, y: np.abs(x - y).max()])
def test_any_metric_but_precomputed(metric):
    X, y = make_moons(150, noise=0.15, random_state=0)
    small = prune(OPFClassifier(metric).fit(X[:100], y[:100]), X[100:], y[100:], 0.05)
    assert len(small.sample_indices_) < 100


def test_what_cannot_be_pruned_is_refused():
    X, y = make_moons(40, random_state=0)
    model, D = OPFClassifier().fit(X, y), np.abs(X[:, :1] - X[:, 0])
    given = OPFClassifier("precomputed").fit(D, y)
    for other, said in {
        POPFClassifier(): "depend on all samples",
        make_pipeline(StandardScaler(), OPFClassifier()): "prune(model[-1]",
        SemiSupervisedOPFClassifier(): "not a SemiSupervisedOPFClassifier: fit one",
    }.items():
        refused(lambda one=other: prune(one, X, y), said, kind=TypeError)
    for max_loss in (-0.1, 2, "a", None):
        refused(lambda loss=max_loss: prune(model, X, y, loss), "finite number from 0 to 1")
    refused(lambda: prune(given, D, y), "'precomputed' does not hold")
    refused(lambda: prune(model, X, y[:-1]), "inconsistent")
    refused(lambda: prune(model, X[:, :1], y), "expecting 2 features")
    refused(lambda: prune(OPFClassifier(), X, y), "not fitted")
