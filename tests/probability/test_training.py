"""The order of training samples, and their assignment to folds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from popf.probability.held_out import one_split
from popf.probability.training import deal_folds, order_by_distances, order_samples, take_evenly
from probability_problems import distances
from strategies import bounded, problems, small_integers, whole_weights


@bounded(60)
@given(problem=problems(small_integers), weights=whole_weights, seed=st.integers(0, 9))
def test_the_order_of_samples_is_that_of_classes_and_values(problem, weights, seed):
    X, y = problem.X, problem.y
    w = np.maximum(weights[: len(y)], 1).astype(float)
    ordered = order_samples(X.T, y, w)
    keys = [(code, *X[row]) for row, code in zip(ordered.rows, ordered.codes, strict=True)]
    n_values = np.array(
        [len({key for key in keys if key[0] == code}) for code in range(y.max() + 1)]
    )
    assert (np.diff(n_values[ordered.codes]) >= 0).all()
    assert np.count_nonzero(np.diff(ordered.codes)) == len(np.unique(y)) - 1
    for code in range(y.max() + 1):
        mine = [key for key in keys if key[0] == code]
        assert mine == sorted(mine)
    assert (np.diff(ordered.groups) >= 0).all()
    for key in set(keys):  # nothing is lost, and nothing counted twice
        mine = [own == key for own in keys]
        equal = (y == key[0]) & np.equal(X, key[1:]).all(axis=1)
        assert_allclose(ordered.weights[mine].sum(), w[equal].sum())
    shuffled = np.random.default_rng(seed).permutation(len(y))
    copies = np.repeat(np.arange(len(y)), w.astype(int))
    for rows, weights in ((shuffled, w[shuffled]), (copies, np.ones(len(copies)))):
        again = order_samples(X[rows].T, y[rows], weights)
        assert_array_equal(X[rows][again.rows], X[ordered.rows])
        for one, other in zip(again[1:], ordered[1:], strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_numbers_of_the_classes_do_not_matter(grouped):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(90, 2)), rng.permutation(np.repeat([0, 1, 2, 3], [20, 30, 20, 20]))
    groups = np.arange(90) % 30 if grouped else None
    ordered = order_samples(X.T, y, np.ones(90), groups)
    numbers = np.array([2, 0, 3, 1])
    again = order_samples(X.T, numbers[y], np.ones(90), groups)
    assert_array_equal(again.codes, numbers[ordered.codes])
    assert_array_equal(again.rows, ordered.rows)
    assert_array_equal(again.groups, ordered.groups)
    for size in (50, 80):
        assert_array_equal(take_evenly(again.codes, size), take_evenly(ordered.codes, size))


def mass_by_fold(ordered, X):
    """Sum the weights in every fold, by class and values."""
    mass = {}
    entries = zip(ordered.rows, ordered.codes, ordered.weights, deal_folds(ordered), strict=True)
    for row, code, weight, fold in entries:
        mass.setdefault((code, *X[row]), np.zeros(6))[fold] += weight
    return mass


@pytest.mark.parametrize("n_values", [8, 30])
def test_distances_deal_weights_as_they_deal_copies(n_values):
    rng = np.random.default_rng(n_values)
    X = rng.normal(size=(n_values, 2))[np.arange(40) % n_values]
    y, w = np.arange(40) % 3, rng.integers(1, 9, 40)
    weighted = order_by_distances(distances(X, X), y, w.astype(float))
    copies = rng.permutation(np.repeat(np.arange(40), w))
    D = distances(X[copies], X[copies])
    repeated = order_by_distances(D, y[copies], np.ones(len(copies)))
    one, other = mass_by_fold(weighted, X), mass_by_fold(repeated, X[copies])
    assert one.keys() == other.keys()
    for key in one:
        assert_allclose(one[key], other[key])


def test_folds():
    X = np.arange(60.0)[:, None]
    y = np.repeat([0, 1, 2], [41, 18, 1])
    folds = deal_folds(order_samples(X.T, y, np.ones(60)))
    assert_array_equal(np.bincount(folds[1:]), [11, 12, 12, 12, 12])
    assert folds[0] == -1  # the only sample of its class is never held out
    # Copies stay together ...
    ordered = order_samples(np.repeat(X, 3, axis=0).T, np.repeat(y, 3), np.ones(180))
    assert_array_equal(deal_folds(ordered)[3:], (folds[1:] + 2) % 5)
    assert_array_equal(ordered.weights[3:], 3.0)
    # ... except for a class with a single value, equal samples of two classes, and few values in all.
    assert_array_equal(deal_folds(ordered)[:3], [0, 1, 2])
    values = np.repeat(np.arange(10.0), 10)
    ordered = order_samples(values[None], (values > 4).astype(int), np.ones(100))
    mass = mass_by_fold(ordered, values[:, None])
    assert all((each[:5] > 0.0).all() for each in mass.values())


def test_copies_in_several_classes_are_scattered_as_if_at_random():
    values, y = np.arange(6000.0) % 60, np.arange(6000) // 60 % 2
    ordered = order_samples(values[None], y, np.ones(6000))
    counts = np.array([each[:5] for each in mass_by_fold(ordered, values[:, None]).values()])
    assert_array_equal(counts.sum(axis=1), 50.0)
    # A fold gets 10 of 50 copies, with a variance of 8, independently of the copies of the other class.
    assert 6.5 < counts.var() < 9.5
    assert abs(np.corrcoef(counts[:60].ravel(), counts[60:].ravel())[0, 1]) < 0.15


@pytest.mark.parametrize("precomputed", [False, True])
def test_samples_of_a_group_share_a_fold(precomputed):
    rng = np.random.default_rng(3)
    X, groups = rng.integers(0, 3, size=(300, 2)).astype(float), np.arange(300) % 60
    y = ((groups % 6 == 0) & (np.arange(300) > 150)).astype(int)  # some samples of 10 groups
    w = rng.integers(1, 4, 300).astype(float)

    def folds(rows, names):
        arguments = (y[rows], w[rows], names[rows])
        if precomputed:
            ordered = order_by_distances(distances(X[rows], X[rows]), *arguments)
        else:
            ordered = order_samples(X[rows].T, *arguments)
        assert_allclose(ordered.weights.sum(), w.sum())
        return dict(zip(groups[rows][ordered.rows], deal_folds(ordered), strict=True)), ordered

    found, ordered = folds(np.arange(300), groups)
    by_group = np.array([found[group] for group in range(60)])
    assert_array_equal(deal_folds(ordered), by_group[groups[ordered.rows]])
    assert_array_equal(np.bincount(by_group), 12)
    assert_array_equal(np.bincount(by_group[::6]), 2)  # every fold has its share of the rare class
    if not precomputed:  # equal samples of several groups are ordered by the names of the groups
        assert folds(rng.permutation(300), groups)[0] == found
    split = one_split(ordered, len(ordered.rows) // 3)
    names = groups[ordered.rows]
    assert not set(names[split.fitted]) & set(names[split.scored])
    assert len(np.unique(names[split.scored])) in (20, 25)  # at most half of the rare class
    # A class with one group is never held out.
    alone = order_samples(X.T, (groups == 7).astype(int), w, groups)
    assert (deal_folds(alone)[alone.codes == 1] == -1).all()


@pytest.mark.parametrize("n", [5001, 25_000, 50_000, 100_003])
def test_subsamples_are_dealt_to_five_folds_too(n):
    y = (np.arange(n) >= n - 50).astype(int)
    ordered = order_samples(np.arange(float(n))[None], y, np.ones(n))
    some = ordered.take(take_evenly(ordered.codes, 5000))
    assert 4950 <= len(some.rows) <= 5050
    assert (some.codes == 1).sum() >= 20
    assert np.ptp(np.bincount(deal_folds(some))) <= 1
    held_out = one_split(ordered, 5000).scored
    assert 2500 <= len(held_out) <= 5050
    assert (ordered.codes[held_out] == 1).sum() in (20, 25)
