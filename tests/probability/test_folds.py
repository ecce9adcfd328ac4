"""The canonical order of training samples, and their folds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from popf.probability import folds
from popf.probability.folds import (
    N_FOLDS,
    canonical_samples,
    copies_are_independent,
    stratified_subsample,
)
from probability_problems import distances
from strategies import bounded, problems, small_integers, whole_weights


def found_for(X, y, w=None, groups=None, precomputed=False):
    w = np.ones(len(y)) if w is None else w
    return canonical_samples(np.asarray(X, dtype=float), y, w, groups, precomputed)


def described(found, X):
    """List samples, in canonical order of columns, with class, weight and folds, in canonical order."""
    training = found.training
    samples = np.asarray(X, dtype=float)[training.rows][:, found.columns]
    return np.column_stack([samples, training.codes, training.weights, training.folds])


def in_order(rows):
    return rows[np.lexsort(rows.T)]


def without_ties(seed, n=90, d=3, n_classes=3):
    """Make samples without symmetries: the classes differ in size, the columns in their values."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.poisson(2.0, n), rng.normal(size=(n, d - 2))])
    return X, rng.choice(n_classes, n, p=[0.5, 0.3, 0.2])


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_depends_on_the_order_of_rows_and_columns_or_the_names_of_classes(grouped, seed):
    X, y = without_ties(seed)
    rng = np.random.default_rng(100 + seed)
    groups, w = (np.arange(90) % 31 if grouped else None), rng.integers(1, 4, 90).astype(float)
    one = described(found_for(X, y, w, groups), X)
    rows, columns, names = rng.permutation(90), rng.permutation(3), rng.permutation(3)
    of_rows = None if groups is None else rng.permutation(31)[groups[rows]]
    shuffled = X[rows][:, columns]
    other = described(found_for(shuffled, names[y[rows]], w[rows], of_rows), shuffled)
    if grouped:  # equal keys within a class may be in any order
        one, other = in_order(one), in_order(other)
    assert_array_equal(one, other)


def test_units_do_not_matter():
    X, y = without_ties(7)
    one = found_for(X, y).training
    other = found_for(X * [3.7e-9, 11.0, 0.3] + [1.0, -5.0, 2.0], y).training
    assert_array_equal(one.rows, other.rows)
    assert_array_equal(one.folds, other.folds)


@bounded(60)
@given(problem=problems(small_integers), weights=whole_weights, seed=st.integers(0, 9))
def test_weights_are_repetition_and_nothing_is_lost(problem, weights, seed):
    X, y = problem.X, problem.y
    w = np.maximum(weights[: len(y)], 1).astype(float)
    copies = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(y)), w.astype(int)))
    weighted, repeated = found_for(X, y, w), found_for(X[copies], y[copies])
    assert_allclose(
        in_order(described(weighted, X)), in_order(described(repeated, X[copies])), atol=1e-12
    )
    for found in (weighted, repeated):
        assert_allclose(found.training.weights.sum(), w.sum())
        assert_allclose(found.nodes.weights.sum(), w.sum())
        assert (np.diff(found.training.codes) >= 0).all()
        nodes = X[copies if found is repeated else slice(None)][found.nodes.rows]
        distinct = {(*x, k) for x, k in zip(nodes.tolist(), found.nodes.codes, strict=True)}
        assert len(distinct) == len(nodes)


def test_columns_with_the_same_values_are_told_apart_by_their_rows():
    rng = np.random.default_rng(0)
    X = np.stack([rng.permutation(40) for _ in range(4)], axis=1).astype(float)
    y, columns = (X[:, 0] + X[:, 1] > 40).astype(int), rng.permutation(4)
    one, other = found_for(X, y), found_for(X[:, columns], y)
    assert_array_equal(one.columns, columns[other.columns])
    assert_array_equal(one.training.rows, other.training.rows)


def test_folds_have_their_share_of_every_class():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 2)), np.repeat([0, 1, 2], [230, 69, 1])
    training = found_for(X, y).training
    for code in range(3):
        mine = training.folds[training.codes == code]
        if code == 0:  # the only sample of its class is never held out
            assert_array_equal(mine, -1)
        else:
            assert np.ptp(np.bincount(mine, minlength=N_FOLDS)) <= 1
    assert_array_equal(training.folds, np.where(training.folds < 0, -1, training.inner_folds))


def test_copies_of_one_observation_share_a_fold():
    rng = np.random.default_rng(2)
    X, y = np.repeat(rng.normal(size=(60, 2)), 3, axis=0), np.repeat(np.arange(60) % 2, 3)
    training = found_for(X, y).training
    assert len(training.rows) == 60
    assert_array_equal(training.weights, 3.0)


def test_copies_of_different_classes_are_independent_observations():
    rng = np.random.default_rng(3)
    points = np.repeat(np.arange(100), 4)
    odds = rng.random(100)[points]
    y = (rng.random(400) < odds).astype(int)
    assert copies_are_independent(points, y, np.ones(400))
    assert not copies_are_independent(points, points % 2, np.ones(400))
    assert copies_are_independent(np.arange(400) % 10, np.arange(400) % 10 % 2, np.ones(400))
    assert not copies_are_independent(np.arange(400), y, np.full(400, 7.0))
    training = found_for(points[:, None], y).training
    per_point = [len(set(training.folds[points[training.rows] == p])) for p in range(100)]
    assert np.mean(per_point) > 2.5  # copies of a point are in several folds
    assert_allclose(training.weights.sum(), 400)


@pytest.mark.parametrize("precomputed", [False, True])
def test_samples_of_a_group_share_a_fold(precomputed):
    rng = np.random.default_rng(4)
    X, groups = rng.integers(0, 9, size=(300, 2)).astype(float), np.arange(300) % 60
    y = ((groups % 6 == 0) & (np.arange(300) > 150)).astype(int)  # some samples of 10 groups
    data = distances(X, X) if precomputed else X
    training = found_for(data, y, None, groups, precomputed).training
    fold_of = dict(zip(groups[training.rows], training.folds, strict=True))
    assert_array_equal(training.folds, [fold_of[group] for group in groups[training.rows]])
    by_group = np.array([fold_of[group] for group in range(60)])
    assert np.ptp(np.bincount(by_group, minlength=N_FOLDS)) <= 1
    assert (
        np.ptp(np.bincount(by_group[::6], minlength=N_FOLDS)) <= 1
    )  # each has its share of the rare class
    # A class with a single group is never held out.
    alone = found_for(data, (groups == 7).astype(int), None, groups, precomputed).training
    assert_array_equal(alone.folds[alone.rows % 60 == 7], -1)


def test_distances_are_ordered_by_their_values():
    X, y = without_ties(5)
    D = distances(X, X)
    rows = np.random.default_rng(0).permutation(90)
    one, other = (
        found_for(D[np.ix_(order, order)], y[order], precomputed=True).training
        for order in (np.arange(90), rows)
    )
    assert_array_equal(one.rows, rows[other.rows])
    assert_array_equal(one.folds, other.folds)
    fitted, held_out = one.splits()[0]
    assert_array_equal(
        one.queries(held_out, fitted), D[np.ix_(one.rows[held_out], one.rows[fitted])]
    )


@pytest.mark.parametrize(("n", "share"), [(300, None), (400, 0.25), (3000, 0.05)])
def test_of_many_samples_a_part_is_held_out(n, share, monkeypatch):
    for name, limit in {"ENOUGH": 400, "N_HELD_OUT": 150, "MANY": 200}.items():
        monkeypatch.setattr(folds, name, limit)
    rng = np.random.default_rng(n)
    training = found_for(rng.normal(size=(n, 2)), (rng.random(n) < 0.2).astype(int)).training
    splits = training.splits()
    if share is None:
        assert len(splits) == folds.N_FOLDS // 2
        return
    ((fitted, held_out),) = splits
    assert len(fitted) + len(held_out) == n
    assert len(held_out) == pytest.approx(share * n, abs=3)
    assert abs(training.codes[held_out].mean() - training.codes.mean()) < 0.02
    assert len(np.unique(training.inner_folds[held_out])) == folds.N_FOLDS // 2


def test_a_subsample_of_many_samples_is_stratified_and_the_nodes_are_all(monkeypatch):
    monkeypatch.setattr(folds, "MAX_SAMPLES", 500)
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(4000, 3)), (np.arange(4000) < 40).astype(int)
    found = found_for(X, y)
    assert len(found.training.rows) == pytest.approx(500, abs=20)
    assert (y[found.training.rows] == 1).sum() == folds.MIN_PER_CLASS
    assert_array_equal(np.sort(found.nodes.rows), np.arange(4000))
    rows, columns = rng.permutation(4000), rng.permutation(3)
    again = found_for(X[rows][:, columns], y[rows])
    assert_array_equal(rows[again.training.rows], found.training.rows)
    assert_array_equal(stratified_subsample(np.zeros(90, int), 30), np.arange(30))


def test_light_samples_count_as_one():
    X, y = without_ties(8)
    for one, other in zip(
        found_for(X, y).training, found_for(X, y, np.full(90, 1e-9)).training, strict=True
    ):
        assert_allclose(np.asarray(one), np.asarray(other))
