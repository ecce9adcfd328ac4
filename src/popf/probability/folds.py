"""The canonical order of training samples, and their folds.

Samples, columns and classes are brought into an order that depends only on the values: not on the order of rows
and columns, the units of the features, or the names of the classes. Everything that is chosen or fitted
afterwards starts from this order, so nothing else has to care about it. Nothing is random: keys are sums of
hashed ranks, modulo 2^64, which are the same in any order of summation. Folds deal the samples of a class in
the order of these keys, as if at random.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.points import collapse_duplicates, distinct_distances, hash64, scaled_copy
from popf.engine.structures import BoolArray, FloatArray, IntArray

Keys = NDArray[np.uint64]

#: Number of folds, of which there are half as many from `MANY` samples on. Five folds with few samples took two
#: thirds of the time, and raised the log loss by 0.6 % on tables that nobody designed on; ten, by 0.8 %.
N_FOLDS, MANY = 8, 1_000
#: This many samples are enough for choices. From there on, a single part of about `N_HELD_OUT` samples is held
#: out instead of all folds, and forests and products of pairs are tried on no more.
ENOUGH, N_HELD_OUT = 8_000, 5_000
#: Maximum number of samples for all choices and for components on features. Half as many raised the log loss of
#: 120,000 × 100 by 3 to 5 %.
MAX_SAMPLES = 50_000
#: Minimum number of samples per class in a subsample, unless the class has fewer.
MIN_PER_CLASS = 20
#: Values that are hashed at a time.
BLOCK_VALUES = 1 << 15
#: Copies are dealt to folds one by one if there are fewer distinct samples than this, or if the classes of two
#: copies differ at least this often, as a fraction of how often those of any two samples do; 0.5 costs 0.3 %.
FEW_DISTINCT, DISAGREEMENT = 20, 0.1


class TrainingSet(NamedTuple):
    """Training samples by class, rare classes first, and by key; equal samples are merged.

    With precomputed distances, `samples` are the distances between them.
    """

    samples: FloatArray
    codes: IntArray  # canonical numbers of the classes
    weights: FloatArray  # how many samples each stands for
    rows: IntArray  # their rows in the given data
    folds: IntArray  # -1 for samples that are never held out
    inner_folds: (
        IntArray  # divide the held-out samples, to score choices that were made on the others
    )
    cross_folds: IntArray  # for the cross-fitting of encodings
    n_classes: int
    precomputed: bool = False

    @property
    def class_weights(self) -> FloatArray:
        """The weight of each class."""
        found = np.bincount(self.codes, weights=self.weights, minlength=self.n_classes)
        return found.astype(np.float64)

    @property
    def labelled(self) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
        """Samples, classes, weights and folds, to fit an encoding to."""
        return self.samples, self.codes, self.weights, self.cross_folds

    def splits(self) -> list[tuple[IntArray, IntArray]]:
        """List the positions of fitted and of held-out samples, for every fold or for a single part."""
        n_splits = 1 if len(self.codes) >= ENOUGH else int(self.folds.max()) + 1
        found = [
            (np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold))
            for fold in range(n_splits)
        ]
        return [(fitted, held_out) for fitted, held_out in found if len(fitted) and len(held_out)]

    def queries(self, held_out: IntArray, fitted: IntArray) -> FloatArray:
        """Return the held-out samples, or their distances to the fitted ones."""
        columns = (fitted,) if self.precomputed else ()
        found: FloatArray = self.samples[np.ix_(held_out, *columns)]
        return found


class Nodes(NamedTuple):
    """The distinct samples among all rows, as nodes of the forest."""

    rows: IntArray
    codes: IntArray  # canonical numbers of the classes
    weights: FloatArray  # how many samples each stands for


class CanonicalSamples(NamedTuple):
    """The training set, all distinct samples, and the order of columns and classes."""

    training: TrainingSet
    nodes: Nodes
    columns: IntArray  # canonical column j is the given column columns[j]
    classes: IntArray  # canonical class k is the given class classes[k]
    cross_folds: IntArray  # of all rows; -1 for those that are not in the training set
    kinds: NDArray[np.str_] | None = (
        None  # of the columns, if samples must be encoded; see `columns`
    )


def canonical_samples(
    samples: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    groups: IntArray | None = None,
    precomputed: bool = False,
) -> CanonicalSamples:
    """Merge, order and subsample training samples, and assign them to folds.

    Samples of the same group, if `groups` are given, share a fold.
    """
    points, values = (_points_of_distances if precomputed else _points_of_samples)(samples)
    rows, weights, merged = merge_samples(points, codes, weights, groups)
    codes, points = codes[rows], points[rows]
    keys, columns = find_keys(values, points, codes, weights)
    codes, classes = _order_classes(codes, keys)
    order = np.lexsort((keys, codes))
    nodes = Nodes(rows[order], codes[order], weights[order])
    some = stratified_subsample(nodes.codes, MAX_SAMPLES)
    rows, codes, weights = nodes.rows[some], nodes.codes[some], nodes.weights[some]
    points, keys = points[order[some]], keys[order[some]]
    if groups is not None:
        numbers = _order_groups(groups[rows], codes, keys)
    elif copies_are_independent(points, codes, weights):
        which, weights, numbers = _deal_copies(codes, keys, weights)
        rows, codes = rows[which], codes[which]
    else:
        numbers = _order_groups(points, codes, keys)
    n_folds = N_FOLDS
    if len(rows) >= MANY:
        n_folds = max(N_FOLDS // 2, round(len(rows) / N_HELD_OUT))
    inner_folds = numbers % n_folds
    if len(rows) >= ENOUGH:
        inner_folds = numbers // n_folds % (N_FOLDS // 2)
    folds = np.where(_can_be_held_out(codes, numbers), numbers % n_folds, -1)
    cross_folds = numbers % N_FOLDS
    of_rows = np.full(len(merged), -1)
    of_rows[rows] = cross_folds
    of_rows = of_rows[merged]
    training = TrainingSet(
        samples[np.ix_(rows, rows)] if precomputed else samples[rows],
        codes,
        weights,
        rows,
        folds,
        inner_folds,
        cross_folds,
        len(classes),
        precomputed,
    )
    return CanonicalSamples(training, nodes, columns, classes, of_rows)


def find_keys(
    values: Keys, points: IntArray, codes: IntArray, weights: FloatArray
) -> tuple[Keys, IntArray]:
    """Return the keys of samples, and the canonical order of the columns.

    `values` are integers for each distinct point; each sample is at one of the `points`. The key of a point is
    the sum of the hashes of its values, classes and weights. Each value is combined with a key of its column,
    which is the sum of the hashes of its values and rows, and so on: two rounds tell apart columns that have
    the same values in other rows, and points that differ in the order of their values only.
    """
    own = hash64(
        weights.astype(np.float32).view(np.uint32)
    )  # without the last digits, which may be rounded
    of_class = np.zeros(int(codes.max()) + 1, np.uint64)
    np.add.at(of_class, codes, own)
    start = np.zeros(len(values), np.uint64)
    np.add.at(start, points, hash64(own ^ hash64(of_class)[codes]))
    keys = start
    for _ in range(2):
        columns = np.zeros(values.shape[1], np.uint64)
        for rows, block in _blocks(values):
            columns += hash64(block ^ keys[rows]).sum(axis=1, dtype=np.uint64)
        keys = start + _sum_of_hashes(values, columns)
    return keys[points], np.argsort(columns)


def keys_of_values(samples: FloatArray) -> Keys:
    """Return keys of samples that do not depend on other samples, but on units and the order of the columns."""
    values: Keys = scaled_copy(samples, 0).view(np.uint64)
    return _sum_of_hashes(values, hash64(np.arange(values.shape[1])))


def _points_of_samples(samples: FloatArray) -> tuple[IntArray, Keys]:
    """Return the number of each sample's point, and the ranks of the points' values in their columns.

    Ranks do not depend on units. Beyond `MAX_SAMPLES`, where keys only choose a subsample and deal it to folds,
    values take their place, because sorting all columns would take longer than the forest.
    """
    distinct = collapse_duplicates(scaled_copy(samples, 0), 0)
    values: Keys = distinct.points.view(np.uint64)
    if len(values) <= MAX_SAMPLES:
        values = np.stack([_ranks(column) for column in distinct.points.T], axis=1)
    return distinct.point_of, values


def _points_of_distances(distances: FloatArray) -> tuple[IntArray, Keys]:
    """Return a point for each sample, whose value is the sum of the hashes of its distinct distances.

    Samples with the same distances need not be equal.
    """
    values = distinct_distances(distances)
    hashes = np.where(values < np.inf, hash64(values.view(np.uint64)), np.uint64(0))
    return np.arange(len(distances)), hashes.sum(axis=1, dtype=np.uint64)[:, None]


def _ranks(column: FloatArray) -> Keys:
    """Return the rank of each value among the distinct values."""
    return np.unique(column, return_inverse=True)[1].astype(np.uint64)


def _sum_of_hashes(values: Keys, columns: Keys) -> Keys:
    """Sum the hashes of the values in each row, each combined with the key of its column."""
    keys = np.zeros(len(values), dtype=np.uint64)
    for rows, block in _blocks(values):
        keys[rows] = hash64(block ^ columns[:, None]).sum(axis=0, dtype=np.uint64)
    return keys


def _blocks(values: Keys) -> Iterator[tuple[slice, Keys]]:
    """Yield rows, in blocks that stay in the cache, and their values by column."""
    size = max(1, BLOCK_VALUES // values.shape[1])
    for start in range(0, len(values), size):
        rows = slice(start, start + size)
        yield rows, np.ascontiguousarray(values[rows].T)


def merge_samples(
    points: NDArray[Any], codes: IntArray, weights: FloatArray, groups: IntArray | None
) -> tuple[IntArray, FloatArray, IntArray]:
    """Merge equal samples of a class and group.

    Return one row of each, by point, the sum of their weights, and for every row the one that stands for it.
    Weights are multiplied so that their mean is at least 1.
    """
    weights = weights * max(1.0, len(weights) / weights.sum())
    kinds = (points, codes) if groups is None else (points, codes, groups)
    # Sorted by weight, so that the sums do not depend on the order of the rows.
    order = np.lexsort((weights, *reversed(kinds)))
    new = np.zeros(len(order), dtype=np.bool_)
    new[0] = True
    for kind in kinds:
        new[1:] |= kind[order][1:] != kind[order][:-1]
    first = np.flatnonzero(new)
    merged = np.empty_like(order)
    merged[order] = order[first][np.cumsum(new) - 1]
    return order[first], np.add.reduceat(weights[order], first), merged


def _order_classes(codes: IntArray, keys: Keys) -> tuple[IntArray, IntArray]:
    """Renumber the classes, those with few samples first; return also the old number of each new one."""
    members = [keys[codes == code] for code in range(int(codes.max()) + 1)]
    sums = np.array([own.sum(dtype=np.uint64) for own in members])
    classes = np.lexsort((sums, np.array([len(own) for own in members])))
    return np.argsort(classes)[codes], classes


def stratified_subsample(codes: IntArray, size: int) -> IntArray:
    """Choose about `size` samples, the first ones of every class; all if there are no more."""
    if len(codes) <= size:
        return np.arange(len(codes))
    chosen = []
    for code in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == code)
        chosen.append(members[: max(MIN_PER_CLASS, round(size * len(members) / len(codes)))])
    return np.sort(np.concatenate(chosen))


def copies_are_independent(points: IntArray, codes: IntArray, weights: FloatArray) -> bool:
    """Decide whether equal samples are independent observations, rather than copies of one observation.

    Copies of one observation have the same class. They must share a fold, or models would be scored on what
    they have seen. If equal samples often have different classes, or if there are few distinct samples in all,
    they are independent: then new samples will equal training samples, too.
    """
    if len(np.unique(points)) < FEW_DISTINCT:
        return True

    def n_pairs(numbers: IntArray) -> float:
        totals = np.bincount(numbers, weights=weights)
        return float(np.maximum(totals * (totals - 1.0), 0.0).sum())

    n_classes = int(codes.max()) + 1
    of_copies = n_pairs(points)
    if of_copies == 0.0:
        return False
    differ = 1.0 - n_pairs(points * n_classes + codes) / of_copies
    shares = np.bincount(codes, weights=weights) / weights.sum()
    return bool(differ >= DISAGREEMENT * (1.0 - shares @ shares))


def _order_groups(groups: IntArray, codes: IntArray, keys: Keys) -> IntArray:
    """Return numbers of groups, ordered by their rarest class, then by the sum of their samples' keys."""
    _, which = np.unique(groups, return_inverse=True)
    sums, rarest = np.zeros(which.max() + 1, np.uint64), np.full(which.max() + 1, codes.max())
    np.add.at(sums, which, keys)
    np.minimum.at(rarest, which, codes)
    return np.argsort(np.lexsort((sums, rarest)))[which]


def _deal_copies(
    codes: IntArray, keys: Keys, weights: FloatArray
) -> tuple[IntArray, FloatArray, IntArray]:
    """Deal copies one by one; return samples, repeated for several folds, with their weights and numbers."""
    # There are so many pairs of folds and inner folds, so copies beyond are dealt in as many equal parts.
    n_numbers = N_FOLDS * (N_FOLDS // 2)
    copies = np.clip(np.floor(weights), 1, n_numbers).astype(np.int64)
    which = np.repeat(np.arange(len(codes)), copies)
    copy = np.arange(len(which)) - np.repeat(np.cumsum(copies) - copies, copies)
    own = hash64(keys[which] ^ hash64(copy) ^ hash64(codes[which] + n_numbers))
    numbers = np.argsort(np.lexsort((own, codes[which])))
    # Copies with the same fold are merged again.
    merged, back = np.unique(which * n_numbers + numbers % n_numbers, return_inverse=True)
    shares = np.bincount(back, weights=(weights / copies)[which]).astype(np.float64)
    return merged // n_numbers, shares, merged % n_numbers


def _can_be_held_out(codes: IntArray, numbers: IntArray) -> BoolArray:
    """Return whether the class of each sample has more than one group."""
    n_codes = int(codes.max()) + 1
    n_groups = np.bincount(np.unique(numbers * n_codes + codes) % n_codes, minlength=n_codes)
    return np.asarray(n_groups[codes] > 1)
