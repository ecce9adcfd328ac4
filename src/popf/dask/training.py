"""Training samples in chunks, as the fit of probabilities needs them; see `popf.probability.training`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from dask import delayed
from numpy.typing import NDArray

from popf.dask.blocks import Block, checked_rows, common_classes, labels_of_chunk, make_blocks
from popf.dask.cluster import Settings, Tasks
from popf.dask.growing import ForestInBlocks, grow_forest
from popf.dask.prediction import Part, add_sums
from popf.dask.sources import Rows, Source
from popf.engine.structures import FloatArray, IntArray
from popf.probability.features import Candidate, Preparation
from popf.probability.training import (
    N_FOR_DISTANCE,
    GrownForest,
    SamplesInMemory,
    TrainingSamples,
    mean_positive_distance,
    median_cost,
    order_samples,
)


@dataclass(frozen=True)
class SamplesInChunks(TrainingSamples):
    """Training samples in chunks that are never in one place; `ordered` counts among `rows`."""

    tasks: Tasks
    source: Source
    rows: IntArray  # those of positive weight
    classes: NDArray[Any]
    settings: Settings

    def features(self, places: IntArray) -> FloatArray:
        """Fetch the samples at some places of the order."""
        return fetch_rows(self.tasks, self.source, self.rows[self.ordered.rows[places]])

    def take(self, places: IntArray) -> SamplesInMemory:
        """Fetch the samples at some places into memory."""
        ordered = self.ordered.take(places)
        return SamplesInMemory(
            ordered._replace(rows=np.arange(len(places))),
            self.n_classes,
            self.metric,
            self.algorithm,
            self.resources._replace(backend=None),
            self.features(places),
            ordered.codes,
        )

    def grow(self, places: IntArray | None, candidate: Candidate) -> GrownForest:
        """Grow a forest in blocks; on distinct samples, or with `places` None on all samples."""
        everyone = np.arange(len(self.ordered.rows)) if places is None else places
        preparation = self.fit_features(everyone, candidate)
        weights = np.full(sum(self.source.sizes), -1.0)  # as they are
        if places is not None:
            chosen = self.ordered.take(places)
            weights[:] = 0.0
            np.add.at(weights, self.rows[chosen.rows], chosen.weights)
        starts = np.cumsum([0, *self.source.sizes]).tolist()
        chunks = [
            delayed(_prepare_rows)(chunk, preparation, weights[start:stop])
            for chunk, start, stop in zip(self.source.chunks, starts[:-1], starts[1:], strict=True)
        ]
        samples = make_blocks(self.tasks, self.source._replace(chunks=chunks), self.settings)
        model = grow_forest(self.tasks, samples, self.settings)
        unit = _median_cost(self, everyone, preparation, model)
        scores = partial(_scores, self, preparation, model)
        return GrownForest(preparation, model, None, unit, scores)


def _scores(
    training: SamplesInChunks,
    preparation: Preparation,
    model: ForestInBlocks,
    places: IntArray,
    taus: FloatArray,
) -> FloatArray:
    """Score samples by nodes that stay in blocks; minus infinity for classes that have no nodes."""
    tasks = training.tasks
    new = preparation.apply(training.features(places))
    queries = tasks.client.scatter(new, broadcast=False)
    offers = [
        tasks.submit("sum-paths", _sums, model.settings, model.costs, block, queries, taus)
        for block in model.samples.blocks
    ]
    scores = np.full((len(new), training.n_classes, taus.size), -np.inf)
    present = np.searchsorted(training.classes, model.samples.classes)
    scores[:, present] = add_sums(*tasks.gather(offers)) - log_masses(model)[:, None]
    return scores


def fetch_rows(tasks: Tasks, source: Source, rows: IntArray) -> FloatArray:
    """Fetch some rows of the samples."""
    wanted, back = np.unique(rows, return_inverse=True)
    ends = np.cumsum([0, *source.sizes])
    cuts = np.searchsorted(wanted, ends)
    calls = [
        (chunk, wanted[first:last] - start)
        for chunk, start, first, last in zip(
            source.chunks, ends[:-1], cuts[:-1], cuts[1:], strict=True
        )
        if last > first
    ]
    found = tasks.gather(tasks.submit_lazy("take-rows", _take, calls))
    fetched: FloatArray = np.concatenate(found)[back]
    return fetched


def open_samples(tasks: Tasks, source: Source, settings: Settings) -> SamplesInChunks:
    """Order all samples by class and values; features are fetched one at a time, while samples are alike."""
    starts = np.cumsum([0, *source.sizes]).tolist()
    calls = list(zip(source.chunks, starts, strict=False))
    found = tasks.gather(tasks.submit_lazy("look-at-labels", _labels_and_weights, calls))
    weights = np.concatenate([weights for _, weights in found])
    rows = np.flatnonzero(weights)
    classes = common_classes([labels_of_chunk(y[w > 0.0]) for y, w in found])
    codes = np.searchsorted(classes, np.concatenate([y for y, _ in found])[rows])

    def columns() -> Iterator[FloatArray]:
        for feature in range(source.columns.shape[1]):
            calls = [(chunk, (slice(None), feature)) for chunk in source.chunks]
            found = tasks.gather(tasks.submit_lazy("take-feature", _take, calls))
            yield np.concatenate(found)[rows]

    ordered = order_samples(columns(), codes.astype(np.int64), weights[rows])
    return SamplesInChunks(
        ordered,
        len(classes),
        settings.metric,
        settings.algorithm,
        settings.resources,
        tasks,
        source,
        rows,
        classes,
        settings,
    )


def log_masses(model: ForestInBlocks) -> FloatArray:
    """Logarithms of the weight of each class."""
    logs: FloatArray = np.log(np.bincount(model.samples.codes, weights=model.samples.weights))
    return logs


def _median_cost(
    training: SamplesInChunks, places: IntArray, preparation: Preparation, model: ForestInBlocks
) -> float:
    """Find the median cost by which nodes are conquered when they are left out, as in memory."""
    rows = np.searchsorted(model.samples.rows, training.rows[training.ordered.rows[places]])
    unit = median_cost(model.to_forest(), rows, training.ordered.weights[places])
    if unit > 0.0:
        return unit
    new = preparation.apply(training.features(places[:N_FOR_DISTANCE]))
    return mean_positive_distance(training.metric, new) or 1.0


def _labels_and_weights(rows: Rows, start: int) -> tuple[NDArray[Any], FloatArray]:
    _, y, weights = checked_rows(rows, start)
    return y, weights


def _take(rows: Rows, which: Any) -> FloatArray:
    return np.ascontiguousarray(checked_rows(rows)[0][which])


def _prepare_rows(rows: Rows, preparation: Preparation, weights: FloatArray) -> Rows:
    """Prepare a chunk; a weight below 0 stands for the one that the sample has."""
    X, y, own = checked_rows(rows)
    return Rows(preparation.apply(X), y, np.where(weights < 0.0, own, weights))


def _sums(
    settings: Settings, costs: FloatArray, block: Block, X: FloatArray, taus: FloatArray
) -> FloatArray:
    return Part(settings, costs, block).sums(X, taus)
