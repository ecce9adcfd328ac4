"""The tasks that grow the spanning tree of all samples from pairs of blocks, and the forest on it.

The trees of single blocks, joined by one arc between neighbouring blocks, form some spanning tree of all
samples. It shows which pairs of blocks, and which of their samples, are too far apart to matter; see
`popf.dask.spanning`.
"""

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from dask import delayed

from popf.dask import spanning
from popf.dask.blocks import Block, SamplesInBlocks, StoredCosts, concatenate
from popf.dask.cluster import Settings, Tasks, backend_here, load
from popf.dask.prediction import Part
from popf.dask.spanning import Arcs, BlockTree
from popf.engine.competition import compete
from popf.engine.structures import (
    BoolArray,
    FloatArray,
    IntArray,
    Resources,
    SpanningTree,
    TrainingResult,
)
from popf.engine.training import choose_algorithm, euclidean_tree
from popf.forest.optimum_path_forest import OptimumPathForest

# Number of lists of candidate arcs that one task merges.
MERGED_AT_ONCE = 4


class ForestInBlocks(NamedTuple):
    """A forest whose samples stay in blocks."""

    settings: Settings
    samples: SamplesInBlocks
    trained: TrainingResult
    costs: Any  # of all samples, in the engine's unit: a future, or StoredCosts
    n_pairs: int  # number of pairs of blocks that were compared

    def parts(self) -> list[Any]:
        """Return delayed parts of the model: one if it is small, else one for each block."""
        blocks, n_features = self.samples.blocks, self.samples.lows.shape[1]
        if 8 * len(self.samples.rows) * n_features <= self.settings.n_bytes // 4:
            return [delayed(Part)(self.settings, self.costs, *blocks)]
        return [delayed(Part)(self.settings, self.costs, block) for block in blocks]

    def gather_samples(self) -> FloatArray:
        """Fetch all samples into this process."""
        blocks = self.samples.blocks
        if not isinstance(self.costs, StoredCosts):
            blocks = self.costs.client.gather(blocks)
        return np.ldexp(concatenate(*map(load, blocks)).points, self.settings.exponent)

    def to_forest(self, samples: FloatArray | None = None) -> OptimumPathForest:
        """Make the plain forest; without samples it cannot conquer new ones."""
        settings = self.settings
        return OptimumPathForest(
            settings.metric,
            self.samples.codes,
            self.trained,
            settings.algorithm,
            exponent=settings.exponent,
            samples=samples,
            backend=None if samples is None else backend_here(settings.device),
            classes=self.samples.classes,
        )


def grow_forest(tasks: Tasks, samples: SamplesInBlocks, settings: Settings) -> ForestInBlocks:
    """Grow the forest on the samples of all blocks."""
    algorithm = "prim"
    if settings.metric.euclidean:

        def choose(block: Block) -> str:
            return choose_algorithm(block.points, settings.algorithm, settings.resources)

        algorithm = tasks.gather(tasks.submit("choose-algorithm", choose, samples.blocks[0]))
    settings = settings._replace(
        algorithm=algorithm, exponent=samples.exponent, n_classes=len(samples.classes)
    )
    forest, n_pairs = _grow_on_all(tasks, samples, settings)
    trained = tasks.gather(forest)
    if samples.folder is None:
        costs = tasks.submit("get-costs", attrgetter("forest.costs"), forest)
    else:
        costs = StoredCosts(f"{samples.folder}/costs.npy")
        np.save(costs.path, trained.forest.costs)
    return ForestInBlocks(settings, samples, trained, costs, n_pairs)


def _grow_on_all(tasks: Tasks, samples: SamplesInBlocks, settings: Settings) -> tuple[Any, int]:
    """Grow the forest; return a future of `TrainingResult`, and the number of pairs of blocks compared."""
    parts, n_blocks, n = samples.blocks, len(samples.blocks), len(samples.rows)
    euclidean = settings.metric.euclidean
    trees: dict[tuple[int, int], Any] = {
        (a, a): tasks.submit("tree-of-block", spanning.tree_of_block, parts[a], settings)
        for a in range(n_blocks)
    }
    pairs = [(a, b) for a in range(n_blocks) for b in range(a + 1, n_blocks)]
    links = None
    if euclidean and n_blocks > 1:  # bounding boxes work only for Euclidean distances
        # Blocks are joined along the spanning tree of their centres.
        centres = samples.lows / 2.0 + samples.highs / 2.0
        centre_tree, _ = euclidean_tree(centres, "prim", Resources())
        bridges = [
            tasks.submit("find-bridge", spanning.bridge, parts[a], parts[b])
            for a, b in zip(centre_tree.lower.tolist(), centre_tree.higher.tolist(), strict=True)
        ]
        some_tree = _merge_all(tasks, n, [*trees.values(), *bridges])
        links = tasks.submit("link-tree", lambda tree: spanning.link(tree, n)[0], some_tree)
        # As futures, because with many features the boxes are large, and every task needs all of them.
        boxes = [tasks.submit("get-box", spanning.box_of_block, part) for part in parts]
        reached = tasks.map("find-near-blocks", spanning.boxes_reached, parts, links, boxes)
        pairs = [(a, b) for a, b in pairs if reached[a][b] or reached[b][a]]
    if settings.algorithm == "brute":
        links = None  # matrix products do not gain from leaving samples out
    for a, b in pairs:
        trees[a, b] = tasks.submit(
            "tree-of-two-blocks", spanning.tree_of_two, parts[a], parts[b], settings, links
        )
    # Sorted, pairs are merged with blocks that they join, so that many arcs are dropped early.
    merged = _merge_all(tasks, n, [trees[pair] for pair in sorted(trees)])
    tied = dict(zip(trees, tasks.map("get-ties", attrgetter("tied"), trees.values()), strict=True))
    more = _confirm_ties(tasks, samples, tied, merged, settings)
    return tasks.submit("grow-forest", forest_on_tree, merged, n, more, euclidean), len(pairs)


def _confirm_ties(
    tasks: Tasks,
    samples: SamplesInBlocks,
    tied: dict[tuple[int, int], IntArray],
    merged: Any,
    settings: Settings,
) -> list[IntArray]:
    """Find the prototypes among the ends of arcs that tie within one or two blocks, if there are any."""
    if not any(map(len, tied.values())):
        return []
    n = len(samples.rows)
    known = tasks.gather(tasks.submit("mark-prototypes", mark_prototypes, merged, n, []))
    links = tasks.submit("link-tree", lambda tree: spanning.link(tree, n)[0], merged)
    futures = []
    for pair, ends in tied.items():
        unknown = ~known[ends]
        if unknown.any():
            members = [samples.blocks[b] for b in sorted(set(pair))]
            future = tasks.submit(
                "confirm-ties", spanning.confirm_ties, ends, unknown, links, settings, *members
            )
            futures.append(future)
    return list(tasks.gather(futures))


def _merge_all(tasks: Tasks, n: int, level: list[Any]) -> Any:
    """Merge lists of candidate arcs by a tree of tasks."""

    def merge(*parts: BlockTree | Arcs) -> Arcs:
        lists = [part.arcs if isinstance(part, BlockTree) else part for part in parts]
        return spanning.reduce_arcs(lists, n)

    while True:
        starts = range(0, len(level), MERGED_AT_ONCE)
        several = [level[start : start + MERGED_AT_ONCE] for start in starts]
        level = [tasks.submit("merge-trees", merge, *parts) for parts in several]
        if len(level) == 1:
            return level[0]


def mark_prototypes(merged: Arcs, n_samples: int, more: list[IntArray]) -> BoolArray:
    """Mark the ends of arcs between classes, and `more` samples known to be prototypes."""
    prototypes = np.zeros(n_samples, dtype=np.bool_)
    for samples in (merged.lower[merged.cross], merged.higher[merged.cross], *more):
        prototypes[samples] = True
    return prototypes


def forest_on_tree(
    merged: Arcs, n_samples: int, more: list[IntArray], euclidean: bool
) -> TrainingResult:
    """Let the prototypes compete on the tree of all samples.

    With Euclidean distances, samples at distance zero are one point, as on one machine, so either all of them
    are prototypes or none.
    """
    tree, prototypes = merged.take(merged.in_tree), mark_prototypes(merged, n_samples, more)
    if euclidean:
        same = tree.take(tree.weights == 0.0)
        marked = np.zeros(0, dtype=np.bool_)
        while not np.array_equal(marked, prototypes):
            marked = prototypes.copy()
            either = marked[same.lower] | marked[same.higher]
            prototypes[same.lower[either]] = prototypes[same.higher[either]] = True
    edges = SpanningTree(*tree[:3])
    return TrainingResult(edges, prototypes, compete(edges, prototypes, np.arange(n_samples)))
