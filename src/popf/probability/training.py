"""Training samples as a fit needs them: in an order of their own, dealt to folds, with forests on some of them.

Nothing here is random, and nothing depends on the order in which the rows were given. A sample of weight 2 is
the same as two equal samples.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from popf.engine.points import distinct_distances, scrambled, sort_by_values
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
#: From how many samples on a GPU is quicker where a part of them chooses.
N_FOR_GPU = 20_000
#: How many samples a thread is worth where folds are compared.
SAMPLES_PER_THREAD = 1000
#: A subsample has so many samples of every class, or all there are.
FEWEST_OF_A_CLASS = 20
#: Where samples take fewer distinct values than this, copies are dealt to folds one by one.
FEW_VALUES = 20
#: From so many copies on, those of a value that several classes share are scattered over the folds.
MANY_COPIES = 50
#: Of one value no more copies are scattered; the others are dealt evenly.
MOST_SCATTERED = 10_000
#: From how many samples scalings, maps, regressions and trees are fitted at most.
N_FOR_FEATURES = 50_000
#: From how many of the left-out samples the median winning cost is taken at most.
N_FOR_UNIT = 1000
#: From how many samples distances are averaged where all of those costs are 0.
N_FOR_DISTANCE = 100


class OrderedSamples(NamedTuple):
    """Samples sorted by class, rare ones first, then by their values; equal ones of a class are merged."""

    rows: IntArray  # places among the samples that were given; one may come up to five times, see `_deal`
    codes: IntArray
    weights: FloatArray  # how many samples each stands for
    groups: IntArray  # numbers from 0 on; samples of the same number must stay together

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
    """Sort samples by class, rare ones first, then by one feature after another, and merge equal ones.

    `columns` gives one feature after another; those that decide nothing are not asked for. Samples of one of
    the `groups`, if there are any, stay together.
    """
    order, values = sort_by_values(columns, len(codes))
    keys = (codes, groups) if groups is not None else (codes,)
    by_key = np.lexsort((*(key[order] for key in reversed(keys)), values))
    order, values = order[by_key], values[by_key]
    new = _differ(values)
    for key in keys:
        new |= _differ(key[order])
    first = np.flatnonzero(new)
    rows = np.minimum.reduceat(order, first)
    masses = np.add.reduceat(weights[order], first)
    if groups is not None:
        return _deal_groups(rows, codes[rows], masses, values[first], groups[rows])
    return _deal(rows, codes[rows], masses, values[first])


def order_by_distances(
    distances: FloatArray, codes: IntArray, weights: FloatArray, groups: IntArray | None = None
) -> OrderedSamples:
    """Sort samples that are known by their distances: by class, then by their distinct distances to all.

    Copies of a sample cannot be told from others that merely look alike, so they are not merged, but they stay
    in one group.
    """
    order, values = sort_by_values(distinct_distances(distances).T, len(codes))
    if groups is not None:
        return _deal_groups(order, codes[order], weights[order], values, groups[order])
    return _deal(order, codes[order], weights[order], values)


def deal_folds(ordered: OrderedSamples) -> IntArray:
    """Deal groups to folds in turn; -1, for no fold, where a class has a single group."""
    codes, groups = ordered.codes, ordered.groups
    folds = groups % N_FOLDS
    n_codes = int(codes.max()) + 1
    n_groups = np.bincount(np.unique(groups * n_codes + codes) % n_codes, minlength=n_codes)
    folds[n_groups[codes] == 1] = -1
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
    return np.sort(np.concatenate(chosen))


def _sort(codes: IntArray, values: IntArray, groups: IntArray) -> IntArray:
    """Sort samples by class, the number of their value, and group.

    Classes with few distinct samples come first, then those with small values, whatever they are called.
    """
    order = np.lexsort((groups, values, codes))
    codes, values, groups = codes[order], values[order], groups[order]
    new = _differ(codes) | _differ(values) | _differ(groups)
    sums = np.bincount(codes[new], weights=values[new])
    ranks = np.argsort(np.lexsort((sums, np.bincount(codes[new]))))
    return order[np.argsort(ranks[codes], kind="stable")]


def _differ(numbers: IntArray) -> NDArray[np.bool_]:
    """Tell of each of the numbers, from 0 on, whether it differs from the one before."""
    return np.asarray(np.diff(numbers, prepend=-1) != 0)


def _deal(rows: IntArray, codes: IntArray, weights: FloatArray, values: IntArray) -> OrderedSamples:
    """Sort samples by class and the number of their value, and number the groups that folds are made of.

    Equal samples share a fold, so that nothing has seen a copy of what it scores. Where that would hide what
    the data say, copies are dealt one by one: where equal samples have different classes, where a class has a
    single value, and where there are few values in all. A row then comes once for every fold that it is in,
    with its part of the weight. Dealt in turn, copies of a value would have the same class frequencies in all
    folds, and a fold could not tell chance from evidence; so if there are many, they are scattered.
    """
    order = _sort(codes, values, np.zeros_like(values))
    rows, codes, weights, values = rows[order], codes[order], weights[order], values[order]
    new = _differ(codes) | _differ(values)
    n_classes_at = np.bincount(values[new])
    n_values_of = np.bincount(codes[new])
    apart = (n_classes_at[values] > 1) | (n_values_of[codes] == 1)
    if len(n_classes_at) < FEW_VALUES:
        apart[:] = True
    copies = np.where(apart, np.maximum(np.floor(weights), 1.0), 1.0)
    scattered = n_classes_at[values] > 1
    scattered &= np.bincount(codes, weights=scattered * copies)[codes] >= MANY_COPIES
    n_parts = np.where(scattered, N_FOLDS, np.minimum(copies, N_FOLDS)).astype(np.int64)
    # As many numbers as copies, but for whole rounds, which change nothing.
    numbers = n_parts + np.where(scattered | (copies <= N_FOLDS), 0.0, copies % N_FOLDS).astype(int)
    start = np.cumsum(np.where(apart | new, numbers, 0)) - numbers
    which = np.repeat(np.arange(len(rows)), n_parts)
    part = np.arange(len(which)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    n_copies = copies[which] // n_parts[which] + (part < copies[which] % n_parts[which])
    n_copies[scattered[which]] = _scatter(copies[scattered]).ravel()
    shares = weights[which] * (n_copies / copies[which])
    there = n_copies > 0.0
    which, part = which[there], part[there]
    return OrderedSamples(rows[which], codes[which], shares[there], start[which] + part)


def _deal_groups(
    rows: IntArray, codes: IntArray, weights: FloatArray, values: IntArray, groups: IntArray
) -> OrderedSamples:
    """Sort samples by class and the number of their value, and number the groups that were given anew.

    Groups that have samples of the rarest class come first, in the order of these samples, then those of the
    next: dealt in turn, every fold gets its part of every class.
    """
    order = _sort(codes, values, groups)
    rows, codes, weights, groups = rows[order], codes[order], weights[order], groups[order]
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    return OrderedSamples(rows, codes, weights, np.argsort(np.argsort(first))[which])


def _scatter(copies: FloatArray) -> FloatArray:
    """Scatter copies over the folds as if at random, by a hash of their numbers: (n_values, n_folds)."""
    one_by_one = np.minimum(copies, MOST_SCATTERED)
    owners = np.repeat(np.arange(len(copies)), one_by_one.astype(np.int64))
    folds = scrambled(np.arange(len(owners))) % np.uint64(N_FOLDS)
    places = owners * N_FOLDS + folds.astype(np.int64)
    found = np.bincount(places, minlength=len(copies) * N_FOLDS).reshape(-1, N_FOLDS)
    return found + ((copies - one_by_one) / N_FOLDS)[:, None]


class ScaledSamples(NamedTuple):
    """Samples for the parts on features."""

    scaling: Scaling
    samples: FloatArray
    codes: IntArray
    weights: FloatArray


@dataclass(frozen=True)
class TrainingSamples(ABC):
    """Training samples, wherever they are."""

    ordered: OrderedSamples
    n_classes: int
    metric: Metric
    algorithm: str
    resources: Resources

    @abstractmethod
    def features(self, places: IntArray) -> FloatArray:
        """Return the samples at some places of the order, as they were given."""

    @abstractmethod
    def take(self, places: IntArray) -> "TrainingSamples":
        """Return the samples at some places of the order, few enough for one processor."""

    @abstractmethod
    def grow(self, places: IntArray | None, candidate: Candidate) -> "GrownForest":
        """Prepare distinct samples and grow a forest on them; with `places` None on all, as they were given."""

    def on_threads(self, n_threads: int) -> Self:
        """Return the same samples, for work on so many threads."""
        return replace(self, resources=self.resources._replace(n_threads=n_threads))

    @property
    def masses(self) -> FloatArray:
        """The weight of each class."""
        codes, weights = self.ordered.codes, self.ordered.weights
        return np.bincount(codes, weights=weights, minlength=self.n_classes).astype(np.float64)

    def fit_features(self, places: IntArray, candidate: Candidate) -> Preparation:
        """Fit scaling and map to the samples at some places, no more than are needed."""
        if self.metric.precomputed:
            return Preparation()
        return fit_preparation(candidate, *self._enough(places))

    def scaled(
        self, places: IntArray, squashed: bool, scaling: Scaling | None = None
    ) -> ScaledSamples:
        """Scale the samples at some places, no more than are needed; by their own scaling if none is given."""
        samples, codes, weights = self._enough(places)
        scaling = scaling or fit_scaling(samples, weights, squashed)
        return ScaledSamples(scaling, scaling.apply(samples), codes, weights)

    def _enough(self, places: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
        codes, weights = self.ordered.codes, self.ordered.weights
        some = places[take_evenly(codes[places], N_FOR_FEATURES)]
        return self.features(some), codes[some], weights[some]


@dataclass(frozen=True)
class GrownForest:
    """A forest on prepared samples, whose nodes all compete."""

    preparation: Preparation  # what happened to the samples before
    forest: Any
    competition: SoftCompetition | None  # the nodes, where they are all in one place
    unit: float  # the median winning cost, which bandwidths are measured by
    #: Scores samples at some places of the order, by bandwidths: (n_places, n_classes, n_bandwidths); minus
    #: infinity for classes that the forest does not know.
    scores: Callable[[IntArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class SamplesInMemory(TrainingSamples):
    """Training samples in memory; `samples` may be the square matrix of their distances."""

    samples: FloatArray
    codes: IntArray

    def features(self, places: IntArray) -> FloatArray:
        """Return samples as they were given."""
        return self.samples[self.ordered.rows[places]]

    def take(self, places: IntArray) -> "SamplesInMemory":
        """Keep the samples at some places; few without GPU and without threads that would gain nothing."""
        n_threads = min(self.resources.n_threads, max(1, len(places) // SAMPLES_PER_THREAD))
        backend = self.resources.backend if len(places) >= N_FOR_GPU else None
        resources = self.resources._replace(backend=backend, n_threads=n_threads)
        return replace(self, ordered=self.ordered.take(places), resources=resources)

    def grow(self, places: IntArray | None, candidate: Candidate) -> GrownForest:
        """Grow a forest on distinct samples; with `places` None on all samples, as they were given."""
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
        if unit == 0.0:  # all nodes have company where they are
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
    """Put samples into an order that does not depend on how they were given."""
    samples, codes, weights, metric = data.samples, data.codes, data.weights, data.metric
    if metric.precomputed:
        ordered = order_by_distances(samples, codes, weights, groups)
    else:
        ordered = order_samples(samples.T, codes, weights, groups)
    return SamplesInMemory(
        ordered, len(data.classes), metric, algorithm, data.resources, samples, codes
    )


def median_cost(forest: OptimumPathForest, rows: IntArray, weights: FloatArray) -> float:
    """Find the median cost by which nodes of a forest are conquered when they are left out.

    Where that is 0, the mean of the positive costs is taken; 0 if there are none. Some of the rows may come
    several times, with parts of their weight.
    """
    # Where a row stands for several samples, one of them is left out.
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
    """Take the mean of the distances from a few samples to all that are not 0; 0 if all are."""
    few = samples[:N_FOR_DISTANCE]
    distances = metric.transform(metric.blocks(few, samples)(0, len(few)))
    usable = (distances > 0.0) & (distances < np.inf)
    return float(distances[usable].mean()) if usable.any() else 0.0
