"""Lazy predictions, partition by partition, from parts of the model.

A model may be larger than a worker's memory, so it is split into parts. Each part offers paths from its own
nodes to new samples; `first_of`, `cheapest` and `add_sums` combine these offers into those of the whole model.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray
from scipy.special import logsumexp

from popf.dask.blocks import concatenate
from popf.dask.cluster import Settings, load
from popf.dask.sources import check_chunk
from popf.engine.conquest import EuclideanConquest
from popf.engine.points import collapse_duplicates
from popf.engine.scanned_nodes import ScannedNodes
from popf.engine.structures import FloatArray
from popf.forest.validation import to_host
from popf.probability.forest_component import SoftCompetition

# Rows per chunk of an array in memory.
CHUNK_ROWS = 65_536


class Part:
    """The nodes of some blocks; `costs` are the path costs of all samples, in the engine's unit."""

    def __init__(self, settings: Settings, costs: Any, *blocks: Any) -> None:
        self.settings = settings
        self.metric = settings.metric
        self.block = concatenate(*map(load, blocks))
        self.costs: FloatArray = load(costs)[self.block.samples]
        # Classes are renumbered without those that have no samples here.
        self.present, self.codes = np.unique(self.block.codes, return_inverse=True)

    def conquer(self, X: FloatArray) -> FloatArray:
        """Find the best path to each sample: columns cost, distance, class, node, exponent."""
        found, exponents = self._index.conquer(X, self.settings.n_threads)
        codes, samples = self.block.codes[found.nodes], self.block.samples[found.nodes]
        offers = [found.costs, found.distances, codes, samples, exponents]
        return np.column_stack(offers).astype(np.float64)

    def costs_by_class(self, X: FloatArray) -> FloatArray:
        """Find the cost of the cheapest path of each class to each sample; the last column is the exponent."""
        offers = np.full((len(X), self.settings.n_classes + 1), np.inf)
        costs, exponents = self._index.costs_by_class(X, self.settings.n_threads)
        offers[:, self.present], offers[:, -1:] = costs, exponents
        return offers

    def sums(self, X: FloatArray, taus: FloatArray) -> FloatArray:
        """Compute log sums of exponentials of path costs, of shape (n_samples, n_classes, n_bandwidths)."""
        masses = np.bincount(self.codes, weights=self.block.weights)
        logs = np.full((len(X), self.settings.n_classes, len(taus)), -np.inf)
        scores = self._competition.scores(X, taus, self.settings.resources)
        logs[:, self.present] = scores + np.log(masses)[:, None]
        return logs

    @cached_property
    def _index(self) -> EuclideanConquest | ScannedNodes:
        settings, points = self.settings, self.block.points
        if not self.metric.euclidean:
            n_bytes = settings.n_bytes
            return ScannedNodes(self.metric, points, self.codes, self.costs, n_bytes)
        # All parts are scaled by the same power of two, so that their offers can be compared.
        distinct = collapse_duplicates(points, settings.exponent)
        costs, algorithm = self.costs[distinct.first], settings.algorithm
        return EuclideanConquest(distinct, self.codes, costs, algorithm, settings.resources)

    @cached_property
    def _competition(self) -> SoftCompetition:
        exponent, backend = self.settings.exponent, self.settings.resources.backend
        samples = np.ldexp(self.block.points, exponent)
        costs, weights = self.metric.transform(self.costs, exponent), self.block.weights
        return SoftCompetition(samples, self.codes, costs, weights, self.metric, exponent, backend)


def first_of(*offers: FloatArray) -> FloatArray:
    """Combine the offers of `Part.conquer`: choose the smallest (cost, distance, class, node)."""
    best = offers[0]
    for other in offers[1:]:
        first = np.zeros(len(best), dtype=np.bool_)
        tied = np.ones(len(best), dtype=np.bool_)
        for column in range(4):
            first |= tied & (other[:, column] < best[:, column])
            tied &= other[:, column] == best[:, column]
        best = np.where(first[:, None], other, best)
    return best


def cheapest(*offers: FloatArray) -> FloatArray:
    """Combine the offers of `Part.costs_by_class`: take the minimum; all parts have the same exponents."""
    return np.asarray(np.minimum.reduce(offers))


def add_sums(*logs: FloatArray) -> FloatArray:
    """Combine the offers of `Part.sums`: add the sums, given as logarithms."""
    if len(logs) == 1:
        return logs[0]
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(np.stack(logs), axis=0))


class Query(NamedTuple):
    """A prediction in three steps."""

    offer: Callable[[Part, FloatArray], FloatArray]  # by one part of the model, for samples
    combine: Callable[..., FloatArray]  # combines the offers of all parts
    finish: Callable[..., NDArray[Any]]  # makes predictions from offers and samples
    columns: NDArray[Any] | None  # the classes that the columns of predictions stand for
    dtype: Any


def run_query(query: Query, parts: list[Any], X: Any, client: Any) -> Any:
    """Predict with the delayed parts of a model, lazily, in the partitions of X.

    For X in memory, predictions are computed at once, as NumPy or pandas objects like X.
    """
    if hasattr(X, "to_dask_array"):
        return _run_on_frame(query, parts, X)
    if isinstance(X, da.Array):
        return _run_on_array(query, parts, X)
    if hasattr(X, "iloc"):
        pieces = [X.iloc[i : i + CHUNK_ROWS] for i in range(0, max(len(X), 1), CHUNK_ROWS)]
        lazy = [_run_on_partition(query, parts, delayed(piece)) for piece in pieces]
        return pd.concat(dask.compute(*lazy, scheduler=client))
    whole = da.from_array(check_chunk(np.asarray(to_host(X))), chunks=(CHUNK_ROWS, -1))
    return _run_on_array(query, parts, whole).compute(scheduler=client)


def _run_on_array(query: Query, parts: list[Any], X: Any) -> Any:
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    meta = _predict(query, np.empty((0, 0)))  # an empty prediction with the right width and type
    predictions = [
        da.from_delayed(_run_on_partition(query, parts, rows), (size, *meta.shape[1:]), meta=meta)
        for rows, size in zip(X.to_delayed().ravel(), X.chunks[0], strict=True)
    ]
    return da.concatenate(predictions, allow_unknown_chunksizes=True)


def _run_on_frame(query: Query, parts: list[Any], X: Any) -> Any:
    from dask.dataframe import from_delayed
    from dask.dataframe.utils import make_meta

    meta = _predict(query, make_meta(X))
    predictions = [_run_on_partition(query, parts, rows) for rows in X.to_delayed()]
    return from_delayed(predictions, meta=meta, divisions=X.divisions, verify_meta=False)


def _run_on_partition(query: Query, parts: list[Any], X: Any) -> Any:
    offers = [delayed(_offer_of_part)(query, part, X) for part in parts]
    return delayed(_predict)(query, X, *offers)


def _offer_of_part(query: Query, part: Part, X: Any) -> FloatArray | None:
    """Compute the offers of one part of the model; None if there are no rows."""
    checked = check_chunk(X)
    part.metric.check(checked)
    return query.offer(part, checked) if len(checked) else None


def _predict(query: Query, X: Any, *offers: FloatArray | None) -> Any:
    """Combine the offers into the prediction for a partition, as a NumPy or pandas object like X."""
    if len(X) == 0:
        shape = (0,) if query.columns is None else (0, len(query.columns))
        values: NDArray[Any] = np.empty(shape, dtype=query.dtype)
    else:
        values = query.finish(query.combine(*offers), check_chunk(X))
    if not hasattr(X, "index"):
        return values
    if query.columns is None:
        return pd.Series(values, index=X.index, dtype=query.dtype)
    return pd.DataFrame(values, index=X.index, columns=query.columns)
