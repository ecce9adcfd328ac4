"""An order of the samples by class and values, and what is taken by it: distinct samples, folds, subsamples.

Nothing here is random, and nothing depends on the order in which the rows were given. A sample of weight 2 is
the same as two equal samples.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.points import distinct_distances, sort_by_values

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

N_FOLDS = 5
#: A subsample has so many samples of every class, or all there are.
FEWEST_OF_A_CLASS = 20
#: Where samples take fewer distinct values than this, copies are dealt to folds one by one.
FEW_VALUES = 20


class OrderedSamples(NamedTuple):
    """Samples sorted by their class, then by their values; equal ones of a class are merged."""

    rows: IntArray  # places among the samples that were given; one may come up to five times, see `_deal`
    codes: IntArray
    weights: FloatArray  # how many samples each stands for
    groups: IntArray  # numbers that do not fall; samples of the same number must stay together

    def take(self, some: IntArray) -> "OrderedSamples":
        """Keep some of the samples, in their order."""
        if len(some) == len(self.rows):
            return self
        groups = np.cumsum(np.diff(self.groups[some], prepend=-1) > 0) - 1
        return OrderedSamples(self.rows[some], self.codes[some], self.weights[some], groups)


def order_samples(
    columns: Iterable[FloatArray], codes: IntArray, weights: FloatArray
) -> OrderedSamples:
    """Sort samples by class, then by the first feature, the second and so on, and merge equal ones.

    `columns` gives one feature after another; those that decide nothing are not asked for.
    """
    order, values = sort_by_values(columns, len(codes))
    by_class = np.lexsort((codes[order], values))
    order, values = order[by_class], values[by_class]
    new = (np.diff(values, prepend=-1) > 0) | (np.diff(codes[order], prepend=-1) != 0)
    first = np.flatnonzero(new)
    rows = np.minimum.reduceat(order, first)
    return _deal(rows, codes[rows], np.add.reduceat(weights[order], first), values[first])


def order_by_distances(
    distances: FloatArray, codes: IntArray, weights: FloatArray
) -> OrderedSamples:
    """Sort samples that are known by their distances: by class, then by their distinct distances to all.

    Copies of a sample cannot be told from others that merely look alike, so they are not merged, but they stay
    in one group.
    """
    order, values = sort_by_values(distinct_distances(distances).T, len(codes))
    return _deal(order, codes[order], weights[order], values)


def deal_folds(ordered: OrderedSamples) -> IntArray:
    """Deal groups to folds in turn; -1, for no fold, where a class has a single group."""
    folds = ordered.groups % N_FOLDS
    first = np.flatnonzero(np.diff(ordered.groups, prepend=-1))
    n_groups = np.bincount(ordered.codes[first], minlength=int(ordered.codes.max()) + 1)
    folds[n_groups[ordered.codes] == 1] = -1
    return folds


def take_evenly(codes: IntArray, size: int, largest_part: float = 1.0) -> IntArray:
    """Choose about `size` of ordered samples at even steps, in every class; all if there are no more.

    Of no class more than `largest_part` is taken.
    """
    if len(codes) <= size:
        return np.arange(len(codes))
    chosen = []
    for code in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == code)
        share = max(FEWEST_OF_A_CLASS, round(size * len(members) / len(codes)))
        n = min(int(largest_part * len(members)), share)
        chosen.append(members[(np.arange(n) * len(members)) // max(n, 1)])
    return np.concatenate(chosen)


def _deal(rows: IntArray, codes: IntArray, weights: FloatArray, values: IntArray) -> OrderedSamples:
    """Sort samples by class and the number of their value, and number the groups that folds are made of.

    Equal samples share a fold, so that nothing has seen a copy of what it scores. Where that would hide what
    the data say, copies are dealt one by one: where equal samples have different classes, where a class has a
    single value, and where there are few values in all. A row then comes once for every fold that it is in,
    with its part of the weight.
    """
    order = np.lexsort((values, codes))
    rows, codes, weights, values = rows[order], codes[order], weights[order], values[order]
    new = (np.diff(codes, prepend=-1) > 0) | (np.diff(values, prepend=-1) != 0)
    n_classes_at = np.bincount(values[new])
    n_values_of = np.bincount(codes[new])
    apart = (n_classes_at[values] > 1) | (n_values_of[codes] == 1)
    if len(n_classes_at) < FEW_VALUES:
        apart[:] = True
    copies = np.where(apart, np.maximum(np.floor(weights), 1.0), 1.0)
    n_parts = np.minimum(copies, N_FOLDS).astype(np.int64)
    # As many numbers as copies, but for whole rounds, which change nothing.
    numbers = n_parts + np.where(copies > N_FOLDS, copies % N_FOLDS, 0.0).astype(np.int64)
    start = np.cumsum(np.where(apart | new, numbers, 0)) - numbers
    which = np.repeat(np.arange(len(rows)), n_parts)
    part = np.arange(len(which)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    n_copies = copies[which] // n_parts[which] + (part < copies[which] % n_parts[which])
    shares = weights[which] * (n_copies / copies[which])
    return OrderedSamples(rows[which], codes[which], shares, start[which] + part)
