"""Which method is best, and which are no worse: Wilcoxon's signed-rank test, exact."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, wilcoxon

SIGNIFICANCE = 0.05
EXACT_UP_TO = 200
# Scores that are equal in exact arithmetic may differ by rounding.
SAME = 1e-12


def signed_rank_test(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test of paired values (1945); 1 if no pair differs.

    Pairs without a difference are left out, as by Wilcoxon. The distribution of the rank sum is exact, over all
    2^n signs, ties included: tables and normal approximations are wrong for the many ties of accuracies on a
    small test set. Above 200 differing pairs it is SciPy's approximation.
    """
    difference = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    scale = max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0))
    difference = difference[np.abs(difference) > SAME * scale]
    if len(difference) == 0:
        return 1.0
    if len(difference) > EXACT_UP_TO:
        return float(wilcoxon(difference, method="asymptotic").pvalue)
    # Rounded, so that differences that are equal but for rounding share a rank.
    sizes = np.abs(difference) / np.abs(difference).max()
    ranks = np.rint(2.0 * rankdata(sizes.round(10))).astype(np.int64)  # midranks are halves
    total = int(ranks.sum())
    positive = int(ranks[difference > 0.0].sum())
    ways = np.zeros(total + 1)
    ways[0] = 1.0
    for rank in ranks:  # as probabilities, which do not overflow
        ways[rank:] += ways[: total + 1 - rank].copy()
        ways /= 2.0
    tail = float(ways[: min(positive, total - positive) + 1].sum())
    return min(1.0, 2.0 * tail)


def best_and_equals(
    values: Mapping[str, NDArray[np.float64]], larger_is_better: bool = True
) -> set[str]:
    """Find the method with the best mean, and those that a test at 0.05 does not call worse.

    `values` are scores run by run, on the same splits; NaN where a run is missing.
    """
    present = {name: runs for name, runs in values.items() if np.isfinite(runs).any()}
    if not present:
        return set()
    sign = 1.0 if larger_is_better else -1.0
    best = max(present, key=lambda name: sign * float(np.nanmean(present[name])))
    equals = {best}
    for name, runs in present.items():
        both = np.isfinite(runs) & np.isfinite(present[best])
        if signed_rank_test(runs[both], present[best][both]) >= SIGNIFICANCE:
            equals.add(name)
    return equals
