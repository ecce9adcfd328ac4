"""Training samples for a fit: in a fixed order, divided into folds, with forests on subsets.

Nothing here is random, and nothing depends on the order of the given rows. A sample of weight 2 is the same as
two equal samples.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from popf.engine.points import distinct_distances, hash64, sort_by_values
from popf.engine.structures import FloatArray, IntArray, Resources
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest, grow_forest
from popf.forest.validation import TrainingData
from popf.probability.features import (
    Candidate,
    Preparation,
    Scaling,
    fit_preparation,
    fit_scaling,
    weighted_quantile,
)
from popf.probability.soft_competition import SoftCompetition, competition_of

N_FOLDS = 5
#: Minimum size of a subset for which a GPU is faster.
N_FOR_GPU = 20_000
#: Minimum number of samples of a subset per thread.
SAMPLES_PER_THREAD = 1000
#: Minimum number of samples per class in a subsample, unless the class has fewer.
MIN_PER_CLASS = 20
#: If there are fewer distinct samples than this, copies are assigned to folds one by one.
FEW_VALUES = 20
#: From this number of copies in a class on, copies that equal samples of other classes are assigned by a hash.
MANY_COPIES = 50
#: Maximum number of copies of a sample that are assigned by the hash; the rest is divided evenly.
MAX_HASHED = 10_000
#: Maximum number of samples for fitting scalings, maps, regressions and trees. Half as many shortened fits
#: of 120,000 × 100 on a GPU from 7.5 to 5.4 s, but raised their log loss by 3 to 5 %.
N_FOR_FEATURES = 50_000
#: Maximum number of left-out samples for the median winning cost.
N_FOR_UNIT = 1000
#: Maximum number of samples whose distances are averaged if all of those costs are 0.
N_FOR_DISTANCE = 100


class OrderedSamples(NamedTuple):
    """Samples sorted by class, rare classes first, then by values; equal samples of a class are merged."""

    rows: IntArray  # indices of the given samples, repeated for copies in different folds
    codes: IntArray
    weights: FloatArray  # how many samples each stands for
    groups: IntArray  # numbers from 0 on; samples with the same number share a fold

    def take(self, some: IntArray) -> "OrderedSamples":
        """Keep some of the samples, in their order."""
        if len(some) == len(self.rows):
            return self
        groups = np.unique(self.groups[some], return_inverse=True)[1]
        return OrderedSamples(self.rows[some], self.codes[some], self.weights[some], groups)


def order_samples(
    columns: Iterable[FloatArray],
    codes: IntArray,
    weights: FloatArray,
    groups: IntArray | None = None,
) -> OrderedSamples:
    """Sort samples by class, rare classes first, then by one feature after another, and merge equal samples.

    `columns` yields the features; once all samples differ, no more of them are read. Samples of the same group,
    if `groups` are given, share a fold.
    """
    order, values = sort_by_values(columns, len(codes))
    keys = (codes, groups) if groups is not None else (codes,)
    by_key = np.lexsort((*(key[order] for key in reversed(keys)), values))
    order, values = order[by_key], values[by_key]
    new = _changes(values)
    for key in keys:
        new |= _changes(key[order])
    first = np.flatnonzero(new)
    rows = np.minimum.reduceat(order, first)
    masses = np.add.reduceat(weights[order], first)
    if groups is not None:
        return _renumber_groups(rows, codes[rows], masses, values[first], groups[rows])
    return _make_groups(rows, codes[rows], masses, values[first])


def order_by_distances(
    distances: FloatArray, codes: IntArray, weights: FloatArray, groups: IntArray | None = None
) -> OrderedSamples:
    """Sort samples given by their distances: by class, then by their distinct distances to all samples.

    Samples with the same distinct distances need not be copies, so they are not merged, but share a group.
    """
    order, values = sort_by_values(distinct_distances(distances).T, len(codes))
    if groups is not None:
        return _renumber_groups(order, codes[order], weights[order], values, groups[order])
    return _make_groups(order, codes[order], weights[order], values)


def deal_folds(ordered: OrderedSamples) -> IntArray:
    """Assign groups to folds in turn; samples of a class with a single group get -1, for no fold."""
    codes, groups = ordered.codes, ordered.groups
    folds = groups % N_FOLDS
    n_codes = int(codes.max()) + 1
    n_groups = np.bincount(np.unique(groups * n_codes + codes) % n_codes, minlength=n_codes)
    folds[n_groups[codes] == 1] = -1
    return folds


def take_evenly(codes: IntArray, size: int, largest_part: float = 1.0) -> IntArray:
    """Choose about `size` of the ordered samples, evenly spaced in every class; all if there are no more.

    At most the fraction `largest_part` of a class is chosen.
    """
    if len(codes) <= size:
        return np.arange(len(codes))
    chosen = []
    for code in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == code)
        share = max(MIN_PER_CLASS, round(size * len(members) / len(codes)))
        n = min(int(largest_part * len(members)), share)
        chosen.append(members[(np.arange(n) * len(members)) // max(n, 1)])
    return np.sort(np.concatenate(chosen))


def _sort(codes: IntArray, values: IntArray, groups: IntArray) -> IntArray:
    """Return the order that sorts samples by class, number of their value, and group.

    Classes with few distinct samples come first; ties go to smaller values. Class labels do not matter.
    """
    order = np.lexsort((groups, values, codes))
    codes, values, groups = codes[order], values[order], groups[order]
    new = _changes(codes) | _changes(values) | _changes(groups)
    sums = np.bincount(codes[new], weights=values[new])
    ranks = np.argsort(np.lexsort((sums, np.bincount(codes[new]))))
    return order[np.argsort(ranks[codes], kind="stable")]


def _changes(numbers: IntArray) -> NDArray[np.bool_]:
    """Return whether each number differs from the one before; numbers are not negative."""
    return np.asarray(np.diff(numbers, prepend=-1) != 0)


def _make_groups(
    rows: IntArray, codes: IntArray, weights: FloatArray, values: IntArray
) -> OrderedSamples:
    """Sort samples by class and number of their value, and number the groups that are assigned to folds.

    Equal samples share a fold, so that no sample is scored by a model that was fitted to a copy of it. In three
    cases this would distort the evaluation, and copies are assigned one by one: if equal samples have different
    classes, if a class has a single value, and if there are few values in all. A row then occurs once for every
    fold that it is in, with its share of the weight. Assigned in turn, copies of a value would have the same
    class frequencies in all folds, and chance would look like evidence; if there are many copies, a hash
    assigns them instead.
    """
    order = _sort(codes, values, np.zeros_like(values))
    rows, codes, weights, values = rows[order], codes[order], weights[order], values[order]
    new = _changes(codes) | _changes(values)
    n_classes_at = np.bincount(values[new])
    n_values_of = np.bincount(codes[new])
    apart = (n_classes_at[values] > 1) | (n_values_of[codes] == 1)
    if len(n_classes_at) < FEW_VALUES:
        apart[:] = True
    copies = np.where(apart, np.maximum(np.floor(weights), 1.0), 1.0)
    hashed = n_classes_at[values] > 1
    hashed &= np.bincount(codes, weights=hashed * copies)[codes] >= MANY_COPIES
    n_parts = np.where(hashed, N_FOLDS, np.minimum(copies, N_FOLDS)).astype(np.int64)
    # One number per copy, except for whole rounds over the folds, which change nothing.
    numbers = n_parts + np.where(hashed | (copies <= N_FOLDS), 0.0, copies % N_FOLDS).astype(int)
    start = np.cumsum(np.where(apart | new, numbers, 0)) - numbers
    which = np.repeat(np.arange(len(rows)), n_parts)
    part = np.arange(len(which)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    n_copies = copies[which] // n_parts[which] + (part < copies[which] % n_parts[which])
    n_copies[hashed[which]] = _assign_by_hash(copies[hashed]).ravel()
    shares = weights[which] * (n_copies / copies[which])
    there = n_copies > 0.0
    which, part = which[there], part[there]
    return OrderedSamples(rows[which], codes[which], shares[there], start[which] + part)


def _renumber_groups(
    rows: IntArray, codes: IntArray, weights: FloatArray, values: IntArray, groups: IntArray
) -> OrderedSamples:
    """Sort samples by class and number of their value, and renumber the given groups.

    Groups with samples of the rarest class come first, in the order of these samples, then those of the next
    class. Assigned to folds in turn, they give every fold its share of every class.
    """
    order = _sort(codes, values, groups)
    rows, codes, weights, groups = rows[order], codes[order], weights[order], groups[order]
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    return OrderedSamples(rows, codes, weights, np.argsort(np.argsort(first))[which])


def _assign_by_hash(copies: FloatArray) -> FloatArray:
    """Assign copies to folds by a hash, as if at random, and count them: (n_values, n_folds)."""
    one_by_one = np.minimum(copies, MAX_HASHED)
    owners = np.repeat(np.arange(len(copies)), one_by_one.astype(np.int64))
    folds = hash64(np.arange(len(owners))) % np.uint64(N_FOLDS)
    places = owners * N_FOLDS + folds.astype(np.int64)
    found = np.bincount(places, minlength=len(copies) * N_FOLDS).reshape(-1, N_FOLDS)
    return found + ((copies - one_by_one) / N_FOLDS)[:, None]


class ScaledSamples(NamedTuple):
    """Scaled samples for regressions and trees."""

    scaling: Scaling
    samples: FloatArray
    codes: IntArray
    weights: FloatArray


@dataclass(frozen=True)
class TrainingSamples(ABC):
    """Training samples, in memory or elsewhere."""

    ordered: OrderedSamples
    n_classes: int
    metric: Metric
    algorithm: str
    resources: Resources

    @abstractmethod
    def features(self, places: IntArray) -> FloatArray:
        """Return the samples at some positions of the order, as given."""

    @abstractmethod
    def take(self, places: IntArray) -> "TrainingSamples":
        """Return the samples at some positions of the order, few enough for one machine."""

    @abstractmethod
    def grow(self, places: IntArray | None, candidate: Candidate) -> "GrownForest":
        """Prepare samples and grow a forest on them; `places` are distinct samples, None for all given ones."""

    def on_threads(self, n_threads: int) -> Self:
        """Return the same samples, with another number of threads."""
        return replace(self, resources=self.resources._replace(n_threads=n_threads))

    @property
    def masses(self) -> FloatArray:
        """The weight of each class."""
        codes, weights = self.ordered.codes, self.ordered.weights
        return np.bincount(codes, weights=weights, minlength=self.n_classes).astype(np.float64)

    def fit_features(self, places: IntArray, candidate: Candidate) -> Preparation:
        """Fit scaling and map to the samples at some positions, or to a subsample if there are many."""
        if self.metric.precomputed:
            return Preparation()
        return fit_preparation(candidate, *self._subsample(places))

    def scaled(
        self, places: IntArray, squashed: bool, scaling: Scaling | None = None
    ) -> ScaledSamples:
        """Scale the samples at some positions, or a subsample of many; fit the scaling unless it is given."""
        samples, codes, weights = self._subsample(places)
        scaling = scaling or fit_scaling(samples, weights, squashed)
        return ScaledSamples(scaling, scaling.apply(samples), codes, weights)

    def _subsample(self, places: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
        codes, weights = self.ordered.codes, self.ordered.weights
        some = places[take_evenly(codes[places], N_FOR_FEATURES)]
        return self.features(some), codes[some], weights[some]


@dataclass(frozen=True)
class GrownForest:
    """A forest on prepared samples, and its soft competition."""

    preparation: Preparation  # scaling and map of the samples
    forest: Any
    competition: SoftCompetition | None  # None if the nodes are distributed over several machines
    unit: float  # the median winning cost, which is the unit of bandwidths
    #: Computes scores at some positions of the order and some bandwidths, (n_places, n_classes, n_bandwidths);
    #: minus infinity for classes that have no samples in the forest.
    scores: Callable[[IntArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class SamplesInMemory(TrainingSamples):
    """Training samples in memory; `samples` may be the square matrix of their distances."""

    samples: FloatArray
    codes: IntArray

    def features(self, places: IntArray) -> FloatArray:
        """Return the samples at some positions of the order, as given."""
        return self.samples[self.ordered.rows[places]]

    def take(self, places: IntArray) -> "SamplesInMemory":
        """Return the samples at some positions of the order; small subsets use no GPU and fewer threads."""
        n_threads = min(self.resources.n_threads, max(1, len(places) // SAMPLES_PER_THREAD))
        backend = self.resources.backend if len(places) >= N_FOR_GPU else None
        resources = self.resources._replace(backend=backend, n_threads=n_threads)
        return replace(self, ordered=self.ordered.take(places), resources=resources)

    def grow(self, places: IntArray | None, candidate: Candidate) -> GrownForest:
        """Prepare samples and grow a forest on them; `places` are distinct samples, None for all given ones."""
        everyone = np.arange(len(self.ordered.rows))
        preparation = self.fit_features(everyone if places is None else places, candidate)
        ordered = self.ordered if places is None else self.ordered.take(places)
        samples, codes, nodes = self.samples, self.codes, ordered.rows
        precomputed = self.metric.precomputed
        if places is not None:
            samples = samples[np.ix_(nodes, nodes)] if precomputed else samples[nodes]
            codes, nodes = ordered.codes, np.arange(len(nodes))
        present, codes = np.unique(codes, return_inverse=True)
        samples = preparation.apply(samples)
        forest = grow_forest(samples, codes, self.metric, self.resources, self.algorithm)
        competition = competition_of(forest, nodes, ordered.weights)
        unit = median_cost(forest, nodes, ordered.weights)
        if unit == 0.0:  # every node coincides with another
            unit = mean_positive_distance(self.metric, samples[nodes]) or 1.0

        def scores(new: IntArray, taus: FloatArray) -> FloatArray:
            if precomputed:
                queries = self.samples[np.ix_(self.ordered.rows[new], ordered.rows)]
            else:
                queries = preparation.apply(self.features(new))
            found = np.full((len(new), self.n_classes, taus.size), -np.inf)
            found[:, present] = competition.scores(queries, taus, self.resources)
            return found

        return GrownForest(preparation, forest, competition, unit, scores)


def order_in_memory(data: TrainingData, algorithm: str, groups: IntArray | None) -> SamplesInMemory:
    """Put samples into an order that does not depend on the order of the given rows."""
    samples, codes, weights, metric = data.samples, data.codes, data.weights, data.metric
    if metric.precomputed:
        ordered = order_by_distances(samples, codes, weights, groups)
    else:
        ordered = order_samples(samples.T, codes, weights, groups)
    return SamplesInMemory(
        ordered, len(data.classes), metric, algorithm, data.resources, samples, codes
    )


def median_cost(forest: OptimumPathForest, rows: IntArray, weights: FloatArray) -> float:
    """Compute the median cost at which nodes of a forest are conquered when they are left out.

    If it is 0, return the mean of the positive costs, or 0 if there are none. A row may occur several times,
    with parts of its weight.
    """
    # If a row stands for several samples, only one of them is left out, and a copy conquers it.
    several = np.bincount(rows, weights=weights)[rows] > 1.0
    costs = np.where(several, forest.costs[rows], forest.costs_left_out()[rows])
    some = slice(None, None, -(-len(rows) // N_FOR_UNIT))
    costs, weights = costs[some], weights[some]
    positive = costs > 0.0
    if not positive.any():
        return 0.0
    median = float(weighted_quantile(costs[:, None], weights, 0.5)[0])
    return median or float(np.average(costs[positive], weights=weights[positive]))


def mean_positive_distance(metric: Metric, samples: FloatArray) -> float:
    """Compute the mean positive distance from a few samples to all; 0 if there is none."""
    few = samples[:N_FOR_DISTANCE]
    distances = metric.transform(metric.blocks(few, samples)(0, len(few)))
    usable = (distances > 0.0) & (distances < np.inf)
    return float(distances[usable].mean()) if usable.any() else 0.0
