"""A forest whose samples stay in blocks, and its parts as competitors for new samples.

A model may be larger than a worker's memory, so it comes in parts. Each part offers the best of its own nodes;
`first_of` and `cheapest` combine the offers into what all nodes together would have offered.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


class ForestInBlocks(NamedTuple):
    """A forest whose nodes stay in blocks; everything else is in memory here.

    Attributes
    ----------
    settings : Settings
    classes : ndarray of shape (n_classes,)
    exponent : int
        The power of two that was taken out of all samples.
    nodes : list
        Futures of `Nodes`, or `StoredNodes`.
    trained : Trained
    codes, weights, block_of : ndarray of shape (n_samples,)
        The class, the weight and the block of every sample.
    rows : ndarray of shape (n_samples,)
        The rows of X that were used.
    n_pairs : int
        How many pairs of blocks were compared.
    """

    settings: Settings
    classes: NDArray[Any]
    exponent: int
    nodes: list[Any]
    trained: Trained
    codes: IntArray
    weights: FloatArray
    block_of: IntArray
    rows: IntArray
    n_pairs: int

    def parts(self, n_features: int) -> list[Any]:
        """Delayed parts of the model: one if it is small, else one for each block."""
        settings = (self.settings, self.exponent, len(self.classes))
        if 8 * len(self.codes) * n_features <= self.settings.n_bytes // 4:
            return [delayed(make_part)(*settings, *self.nodes)]
        return [delayed(make_part)(*settings, nodes) for nodes in self.nodes]

    def gather_samples(self, client: Any) -> FloatArray:
        """Fetch all samples."""
        if not isinstance(self.nodes[0], StoredNodes):
            client = self.nodes[0].client
        nodes = [load(each) for each in (client.gather(self.nodes) if client else self.nodes)]
        return np.ldexp(concatenate([block for block, _ in nodes]).points, self.exponent)

    def to_forest(self, samples: FloatArray | None = None) -> OptimumPathForest:
        """Make the plain forest, which cannot conquer without samples."""
        return OptimumPathForest(
            *(self.settings.metric, self.codes, self.trained, self.settings.algorithm),
            exponent=self.exponent,
            samples=samples,
            backend=None if samples is None else backend_here(self.settings.device),
            classes=self.classes,
        )


def fit_forest(
    tasks: Tasks, blocks: Blocks, settings: Settings, folder: str | None
) -> ForestInBlocks:
    """Grow the forest of all blocks; `folder` is where the blocks are, None for memory."""
    grown = grow_forest_of_blocks(tasks, blocks, settings)
    trained = tasks.gather(grown.trained)
    if folder is None:
        nodes = [
            tasks.submit("put-costs-on-block", _with_costs, block, grown.trained)
            for block in blocks.blocks
        ]
    else:
        path = str(Path(folder) / "costs.npy")
        np.save(path, trained.forest.costs)
        nodes = [StoredNodes(block, path) for block in blocks.blocks]
    told = tasks.gather([tasks.submit("tell-classes", _without_points, b) for b in blocks.blocks])
    whole = concatenate(told)
    block_of = np.empty(len(whole.samples), dtype=np.int64)
    for number, block in enumerate(told):
        block_of[block.samples] = number
    return ForestInBlocks(
        settings._replace(algorithm=grown.algorithm),
        blocks.classes,
        blocks.exponent,
        nodes,
        trained,
        whole.codes,
        whole.weights,
        block_of,
        blocks.kept,
        grown.n_pairs,
    )


def _with_costs(block: Block, trained: Trained) -> Nodes:
    return Nodes(block, trained.forest.costs[block.samples])


def _without_points(block: Block) -> Block:
    return block._replace(points=block.points[:, :0])


def make_part(
    settings: Settings, exponent: int, n_classes: int, *nodes: Nodes | StoredNodes
) -> "Part":
    """Make a part of the model from some blocks."""
    loaded = list(map(load, nodes))
    samples = np.concatenate([block.samples for block, _ in loaded])
    costs = np.concatenate([costs for _, costs in loaded])[np.argsort(samples, kind="stable")]
    whole = Nodes(concatenate([block for block, _ in loaded]), costs)
    return Part(settings, exponent, n_classes, whole)


class Part:
    """Some of the training nodes.

    Parameters
    ----------
    settings : Settings
    exponent : int
        The power of two that was taken out of all samples.
    n_classes : int
        Of the whole forest.
    nodes : Nodes
    """

    def __init__(self, settings: Settings, exponent: int, n_classes: int, nodes: Nodes) -> None:
        self.metric: Metric = settings.metric
        self.settings = settings
        self.exponent = exponent
        self.n_classes = n_classes
        self.block, self.costs = nodes
        # Classes that have nobody here are left out, and the others numbered anew.
        self.present, self.codes = np.unique(self.block.codes, return_inverse=True)

    def conquer(self, X: FloatArray) -> FloatArray:
        """Offer each sample the best path: columns cost, distance, class, node, exponent."""
        found, exponents = self._index.conquer(X, self.settings.n_threads)
        codes, samples = self.block.codes[found.nodes], self.block.samples[found.nodes]
        offers = [found.costs, found.distances, codes, samples, exponents]
        return np.column_stack(offers).astype(np.float64)

    def costs_by_class(self, X: FloatArray) -> FloatArray:
        """Offer each sample the cheapest path of each class; the last column is the exponent."""
        offers = np.full((len(X), self.n_classes + 1), np.inf)
        costs, exponents = self._index.costs_by_class(X, self.settings.n_threads)
        offers[:, self.present], offers[:, -1:] = costs, exponents
        return offers

    @cached_property
    def _index(self) -> EuclideanConquest | ScannedNodes:
        settings, points = self.settings, self.block.points
        if not self.metric.euclidean:
            n_bytes = settings.n_bytes
            return ScannedNodes(self.metric, points, self.codes, self.costs, n_bytes)
        # All parts are scaled by one power of two, so that their offers can be compared.
        distinct = collapse_duplicates(points, self.exponent)
        return index_points(
            distinct, self.codes, self.costs, settings.algorithm, settings.resources
        )


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
