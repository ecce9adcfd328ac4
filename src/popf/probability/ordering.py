"""An order of the samples by class and values, and what is taken by it: distinct samples, folds, subsamples.

Nothing here is random, and nothing depends on the order in which the rows were given.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: A subsample has so many samples of every class, or all there are.
FEWEST_OF_A_CLASS = 20


class OrderedSamples(NamedTuple):
    """Samples sorted by their class, then by their values; equal ones of a class are merged.

    Attributes
    ----------
    rows : ndarray of shape (n_distinct,)
        Where each stands among the samples that were given.
    codes : ndarray of shape (n_distinct,)
        The class of each.
    weights : ndarray of shape (n_distinct,)
        How many samples each stands for.
    groups : ndarray of shape (n_distinct,)
        Samples that must stay together, numbered in their order.
    """

    rows: IntArray
    codes: IntArray
    weights: FloatArray
    groups: IntArray

    def take(self, some: IntArray) -> "OrderedSamples":
        """Keep some of the samples."""
        return OrderedSamples(
            self.rows[some], self.codes[some], self.weights[some], self.groups[some]
        )


def order_samples(
    columns: Iterable[FloatArray], codes: IntArray, weights: FloatArray
) -> OrderedSamples:
    """Sort samples by class, then by the first feature, the second and so on, and merge equal ones.

    `columns` gives one feature after another; those that decide nothing are not asked for.
    """
    order, repeats = _sort_by_values(columns, codes)
    first = np.flatnonzero(~repeats)
    rows = np.minimum.reduceat(order, first)
    totals = np.add.reduceat(weights[order], first)
    return OrderedSamples(rows, codes[rows], totals, np.arange(len(rows)))


def order_by_distances(
    distances: FloatArray, codes: IntArray, weights: FloatArray
) -> OrderedSamples:
    """Sort samples that are known by their distances: by class, then by their sorted distances to all.

    Copies of a sample cannot be told from others that merely look alike, so they are not merged, but they stay
    in one group.
    """
    order, repeats = _sort_by_values(np.sort(distances, axis=1).T, codes)
    return OrderedSamples(order, codes[order], weights[order], np.cumsum(~repeats) - 1)


def deal_folds(ordered: OrderedSamples, n_folds: int) -> IntArray:
    """Deal groups to folds in turn; -1, for no fold, where a class has a single group."""
    folds = ordered.groups % n_folds
    first = np.flatnonzero(np.diff(ordered.groups, prepend=-1))
    n_groups = np.bincount(ordered.codes[first], minlength=int(ordered.codes.max()) + 1)
    folds[n_groups[ordered.codes] == 1] = -1
    return folds


def take_evenly(codes: IntArray, size: int) -> IntArray:
    """Choose about `size` of ordered samples at even steps, in every class; all if there are no more."""
    if len(codes) <= size:
        return np.arange(len(codes))
    chosen = []
    for code in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == code)
        share = max(FEWEST_OF_A_CLASS, round(size * len(members) / len(codes)))
        n = min(len(members), share)
        chosen.append(members[(np.arange(n) * len(members)) // max(n, 1)])
    return np.concatenate(chosen)


def _sort_by_values(columns: Iterable[FloatArray], codes: IntArray) -> tuple[IntArray, BoolArray]:
    """Sort rows by class and values; also tell which rows equal the one before them."""
    order = np.argsort(codes, kind="stable")
    repeats = np.append(False, codes[order][1:] == codes[order][:-1])
    for column in columns if repeats.any() else ():
        # Only runs of rows that are alike so far need another look.
        run = np.cumsum(~repeats)
        tied = np.flatnonzero(repeats | np.append(repeats[1:], False))
        order[tied] = order[tied][np.lexsort((column[order[tied]], run[tied]))]
        ordered = column[order]
        repeats[1:] &= ordered[1:] == ordered[:-1]
        if not repeats.any():
            break
    return order, repeats
