"""Training samples as the fit needs them: in an order of their own, with forests grown on some of them."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from popf.engine.backends import Resources
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest, grow_forest
from popf.probability.features import Candidate, Preparation, fit_preparation
from popf.probability.ordering import (
    OrderedSamples,
    order_by_distances,
    order_samples,
    take_evenly,
)
from popf.probability.soft_competition import (
    SoftCompetition,
    competition_of,
    mean_positive_distance,
    median_cost,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: From how many samples scalings, maps and the additive parts are fitted at most.
N_FOR_FEATURES = 50_000


class GrownForest(Protocol):
    """A forest on prepared samples, whose nodes all compete."""

    @property
    def preparation(self) -> Preparation:
        """What happened to the samples before."""

    @property
    def forest(self) -> Any:
        """The forest itself."""

    @property
    def competition(self) -> SoftCompetition | None:
        """The nodes, where they are all in one place."""

    @property
    def unit(self) -> float:
        """The median winning cost, which bandwidths are measured by."""

    def scores(self, places: IntArray, taus: FloatArray) -> FloatArray:
        """Score the samples at some places of the order: (n_places, n_classes, n_bandwidths)."""


class TrainingSamples(Protocol):
    """Training samples, wherever they are."""

    @property
    def ordered(self) -> OrderedSamples:
        """Distinct samples in their order."""

    @property
    def n_classes(self) -> int:
        """The number of classes."""

    @property
    def n_threads(self) -> int:
        """How many threads may be used."""

    @property
    def metric(self) -> Metric:
        """The distance."""

    def features(self, places: IntArray) -> FloatArray:
        """Return the samples at some places of the order, as they were given."""

    def take(self, places: IntArray) -> "TrainingSamples":
        """Return the samples at some places of the order, few enough for one processor."""

    def grow(self, places: IntArray | None, candidate: Candidate) -> GrownForest:
        """Prepare the samples at some places of the order, None for all, and grow a forest on them."""


def masses_of(training: TrainingSamples) -> FloatArray:
    """Sum the weights of each class."""
    codes, weights = training.ordered.codes, training.ordered.weights
    return np.bincount(codes, weights=weights, minlength=training.n_classes).astype(np.float64)


def fit_features(training: TrainingSamples, places: IntArray, candidate: Candidate) -> Preparation:
    """Fit scaling and map to the samples at some places, no more than are needed."""
    if training.metric.precomputed:
        return Preparation()
    codes, weights = training.ordered.codes, training.ordered.weights
    some = places[take_evenly(codes[places], N_FOR_FEATURES)]
    return fit_preparation(candidate, training.features(some), codes[some], weights[some])


class SamplesInMemory(NamedTuple):
    """`TrainingSamples` in memory; `samples` may be the square matrix of their distances."""

    samples: FloatArray
    codes: IntArray
    ordered: OrderedSamples
    n_classes: int
    metric: Metric
    algorithm: str
    resources: Resources

    @property
    def n_threads(self) -> int:
        """How many threads may be used."""
        return self.resources.n_threads

    def features(self, places: IntArray) -> FloatArray:
        """Return samples as they were given."""
        return self.samples[self.ordered.rows[places]]

    def take(self, places: IntArray) -> "SamplesInMemory":
        """Keep the samples at some places, and leave a GPU out."""
        return self._replace(
            ordered=self.ordered.take(places), resources=self.resources._replace(backend=None)
        )

    def grow(self, places: IntArray | None, candidate: Candidate) -> "ForestInMemory":
        """Grow a forest on distinct samples; with `places` None on all samples, as they were given."""
        everyone = np.arange(len(self.ordered.rows))
        preparation = fit_features(self, everyone if places is None else places, candidate)
        ordered = self.ordered if places is None else self.ordered.take(places)
        samples, codes, nodes = self.samples, self.codes, ordered.rows
        if places is not None:
            precomputed = self.metric.precomputed
            samples = samples[np.ix_(nodes, nodes)] if precomputed else samples[nodes]
            codes, nodes = ordered.codes, np.arange(len(nodes))
        present, codes = np.unique(codes, return_inverse=True)
        samples = preparation.apply(samples)
        forest = grow_forest(samples, codes, self.metric, self.resources, self.algorithm)
        competition = competition_of(forest, samples[nodes], ordered.weights, nodes)
        unit = median_cost(forest, nodes, ordered.weights)
        if unit == 0.0:  # all nodes have company where they are
            unit = mean_positive_distance(self.metric, samples[nodes], samples[nodes]) or 1.0
        return ForestInMemory(self, ordered.rows, preparation, forest, competition, unit, present)


class ForestInMemory(NamedTuple):
    """`GrownForest` in memory."""

    training: SamplesInMemory
    rows: IntArray  # where the samples that it was grown on stand among all
    preparation: Preparation
    forest: OptimumPathForest
    competition: SoftCompetition
    unit: float
    present: IntArray  # the classes that it knows

    def scores(self, places: IntArray, taus: FloatArray) -> FloatArray:
        """Score samples; minus infinity for classes that the forest does not know."""
        training = self.training
        if training.metric.precomputed:
            queries = training.samples[np.ix_(training.ordered.rows[places], self.rows)]
        else:
            queries = self.preparation.apply(training.features(places))
        scores = np.full((len(places), training.n_classes, taus.size), -np.inf)
        scores[:, self.present] = self.competition.scores(queries, taus, training.resources)
        return scores


def order_in_memory(
    samples: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    n_classes: int,
    metric: Metric,
    algorithm: str,
    resources: Resources,
) -> SamplesInMemory:
    """Put samples into an order that does not depend on how they were given."""
    if metric.precomputed:
        ordered = order_by_distances(samples, codes, weights)
    else:
        ordered = order_samples(samples.T, codes, weights)
    return SamplesInMemory(samples, codes, ordered, n_classes, metric, algorithm, resources)
