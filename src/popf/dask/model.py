"""A forest whose samples stay in blocks, and its parts as competitors for new samples.

A model may be larger than a worker's memory, so it comes in parts. Each part offers the best of its own nodes;
`first_of`, `cheapest` and `add_sums` combine the offers into what all nodes together would have offered.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from popf.dask.blocks import Block, Nodes, StoredNodes, concatenate, load
from popf.dask.cluster import Settings, Tasks, backend_here
from popf.dask.growing import grow_forest_of_blocks
from popf.dask.partitioning import Blocks
from popf.dask.untyped import delayed
from popf.engine.conquest.euclidean import EuclideanConquest
from popf.engine.points import collapse_duplicates
from popf.engine.structures import FloatArray, IntArray
from popf.engine.training import Trained
from popf.forest.indexing import ScannedNodes, index_points
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.probability.soft_competition import Nodes as CompetingNodes
from popf.probability.soft_competition import SoftCompetition


class ForestInBlocks(NamedTuple):
    """A forest whose nodes stay in blocks; everything else is in memory here."""

    settings: Settings
    classes: NDArray[Any]
    nodes: list[Any]  # futures of Nodes, or StoredNodes
    trained: Trained
    codes: IntArray
    weights: FloatArray
    rows: IntArray  # of X, those that were used
    n_features: int
    n_pairs: int  # of blocks, those that were compared

    def parts(self) -> list[Any]:
        """Delayed parts of the model: one if it is small, else one for each block."""
        if 8 * len(self.codes) * self.n_features <= self.settings.n_bytes // 4:
            return [delayed(make_part)(self.settings, *self.nodes)]
        return [delayed(make_part)(self.settings, nodes) for nodes in self.nodes]

    def gather_samples(self, client: Any) -> FloatArray:
        """Fetch all samples."""
        if not isinstance(self.nodes[0], StoredNodes):
            client = self.nodes[0].client
        nodes = [load(each) for each in (client.gather(self.nodes) if client else self.nodes)]
        points = concatenate([block for block, _ in nodes]).points
        return np.ldexp(points, self.settings.exponent)

    def to_forest(self, samples: FloatArray | None = None) -> OptimumPathForest:
        """Make the plain forest, which cannot conquer without samples."""
        settings = self.settings
        return OptimumPathForest(
            *(settings.metric, self.codes, self.trained, settings.algorithm),
            exponent=settings.exponent,
            samples=samples,
            backend=None if samples is None else backend_here(settings.device),
            classes=self.classes,
        )


def fit_forest(
    tasks: Tasks, blocks: Blocks, settings: Settings, folder: str | None
) -> ForestInBlocks:
    """Grow the forest of all blocks; `folder` is where the blocks are, None for memory."""
    grown = grow_forest_of_blocks(tasks, blocks, settings)
    trained = tasks.gather(grown.trained)
    if folder is None:
        name, costs = "put-costs-on-block", grown.trained
        nodes = [tasks.submit(name, _with_costs, block, costs) for block in blocks.blocks]
    else:
        path = str(Path(folder) / "costs.npy")
        np.save(path, trained.forest.costs)
        nodes = [StoredNodes(block, path) for block in blocks.blocks]
    told = tasks.gather([tasks.submit("tell-classes", _without_points, b) for b in blocks.blocks])
    _, _, codes, weights = concatenate(told)
    settings = settings._replace(
        algorithm=grown.algorithm, exponent=blocks.exponent, n_classes=len(blocks.classes)
    )
    found = (settings, blocks.classes, nodes, trained, codes, weights, blocks.kept)
    return ForestInBlocks(*found, blocks.lows.shape[1], grown.n_pairs)


def _with_costs(block: Block, trained: Trained) -> Nodes:
    return Nodes(block, trained.forest.costs[block.samples])


def _without_points(block: Block) -> Block:
    return block._replace(points=block.points[:, :0])


def make_part(settings: Settings, *nodes: Nodes | StoredNodes) -> "Part":
    """Make a part of the model from some blocks."""
    loaded = list(map(load, nodes))
    samples = np.concatenate([block.samples for block, _ in loaded])
    costs = np.concatenate([costs for _, costs in loaded])[np.argsort(samples, kind="stable")]
    return Part(settings, concatenate([block for block, _ in loaded]), costs)


class Part:
    """Some of the training nodes; path costs are in the engine's unit."""

    def __init__(self, settings: Settings, block: Block, costs: FloatArray) -> None:
        self.settings = settings
        self.metric: Metric = settings.metric
        self.block = block
        self.costs = costs
        # Classes that have nobody here are left out, and the others numbered anew.
        self.present, self.codes = np.unique(block.codes, return_inverse=True)

    def conquer(self, X: FloatArray) -> FloatArray:
        """Offer each sample the best path: columns cost, distance, class, node, exponent."""
        found, exponents = self._index.conquer(X, self.settings.n_threads)
        codes, samples = self.block.codes[found.nodes], self.block.samples[found.nodes]
        offers = [found.costs, found.distances, codes, samples, exponents]
        return np.column_stack(offers).astype(np.float64)

    def costs_by_class(self, X: FloatArray) -> FloatArray:
        """Offer each sample the cheapest path of each class; the last column is the exponent."""
        offers = np.full((len(X), self.settings.n_classes + 1), np.inf)
        costs, exponents = self._index.costs_by_class(X, self.settings.n_threads)
        offers[:, self.present], offers[:, -1:] = costs, exponents
        return offers

    def sums(self, X: FloatArray, taus: FloatArray) -> FloatArray:
        """Sum exponentials of path costs, as logarithms: (n_samples, n_classes, n_bandwidths)."""
        masses = np.bincount(self.codes, weights=self.block.weights)
        logs = np.full((len(X), self.settings.n_classes, taus.size), -np.inf)
        scores = self._competition.scores(X, taus, self.settings.resources)
        logs[:, self.present] = scores + np.log(masses)[:, None]
        return logs

    @cached_property
    def _index(self) -> EuclideanConquest | ScannedNodes:
        settings, points = self.settings, self.block.points
        if not self.metric.euclidean:
            n_bytes = settings.n_bytes
            return ScannedNodes(self.metric, points, self.codes, self.costs, n_bytes)
        # All parts are scaled by one power of two, so that their offers can be compared.
        distinct = collapse_duplicates(points, settings.exponent)
        return index_points(
            distinct, self.codes, self.costs, settings.algorithm, settings.resources
        )

    @cached_property
    def _competition(self) -> SoftCompetition:
        exponent, backend = self.settings.exponent, self.settings.resources.backend
        nodes = CompetingNodes(
            np.ldexp(self.block.points, exponent),
            self.codes,
            self.metric.transform(self.costs, exponent),
            self.block.weights,
            np.arange(len(self.costs)),
            len(self.present),
        )
        return SoftCompetition(nodes, self.metric, exponent, backend)


def first_of(*offers: FloatArray) -> FloatArray:
    """Choose among offers of `Part.conquer`: the first by (cost, distance, class, node)."""
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
    """Choose among offers of `Part.costs_by_class`; exponents are the same everywhere."""
    least: FloatArray = np.minimum.reduce(offers)
    return least


def add_sums(*logs: FloatArray) -> FloatArray:
    """Add up offers of `Part.sums`."""
    if len(logs) == 1:
        return logs[0]
    with np.errstate(divide="ignore"):
        total: FloatArray = logsumexp(np.stack(logs), axis=0)
    return total
