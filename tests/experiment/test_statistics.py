"""The signed-rank test, and what is bold by it."""

import itertools

import numpy as np
import pytest
from scipy.stats import wilcoxon

from popf.experiment.results import best_and_equals, signed_rank_test


def naive_signed_rank(difference):
    """Count all signs."""
    size = np.abs(difference)
    ranks = np.array([(size < s).sum() + (1 + (size == s).sum()) / 2 for s in size])
    observed = ranks[difference > 0].sum()
    sums = [
        ranks[list(signs)].sum() for signs in itertools.product([False, True], repeat=len(ranks))
    ]
    low, high = np.mean(np.array(sums) <= observed), np.mean(np.array(sums) >= observed)
    return min(1.0, 2 * min(low, high))


@pytest.mark.parametrize("seed", range(5))
def test_the_test_is_scipys_where_nothing_ties(seed):
    one, other = np.random.default_rng(seed).normal(size=(2, 20))
    other += 0.3
    expected = wilcoxon(one, other, method="exact").pvalue
    assert signed_rank_test(one, other) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_test_counts_all_signs_where_there_are_ties(seed):
    one, other = np.random.default_rng(seed).integers(0, 5, size=(2, 9)) / 32
    difference = (one - other)[one != other]
    assert signed_rank_test(one, other) == pytest.approx(naive_signed_rank(difference), rel=1e-9)


def test_the_test_of_many_pairs_is_the_approximation():
    one, other = np.random.default_rng(0).normal(size=(2, 500))
    expected = wilcoxon(one - other, method="asymptotic").pvalue
    assert signed_rank_test(one, other) == expected


def test_rounding_makes_no_difference():
    one = np.array([0.1, 0.2, 0.3]) + 0.6
    assert signed_rank_test(one, np.array([0.7, 0.8, 0.9])) == 1.0


def test_the_best_and_its_equals_are_bold():
    rng = np.random.default_rng(0)
    base = rng.normal(0.8, 0.01, 20)
    values = {"best": base + 0.05, "equal": base + 0.05 + rng.normal(0, 0.002, 20), "worse": base}
    assert best_and_equals(values) == {"best", "equal"}
    assert best_and_equals(values, larger_is_better=False) == {"worse"}
    assert best_and_equals({"a": np.full(3, np.nan), "b": np.ones(3)}) == {"b"}
    assert best_and_equals({"a": np.full(3, np.nan)}) == set()


def test_with_five_runs_nothing_can_be_told_apart():
    assert best_and_equals({"a": np.ones(5), "b": np.zeros(5)}) == {"a", "b"}
    assert best_and_equals({"a": np.ones(6), "b": np.zeros(6)}) == {"a"}
