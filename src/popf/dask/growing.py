"""The tree of all samples from pairs of blocks, and the forest on it.

First every block grows its own tree, and neighbouring blocks are joined by one arc each: some spanning tree of
all samples. It bounds the length of the arcs of the shortest one, so that pairs of blocks whose boxes are
farther apart are skipped, and samples too far from the other block left out. The candidates of all other pairs
are then merged, a few lists at a time.
"""

from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dask import delayed

from popf.dask.blocks import Block, SamplesInBlocks, StoredCosts, concatenate
from popf.dask.cluster import Settings, Tasks, backend_here, load
from popf.dask.kruskal import (
    NO_ARCS,
    Arcs,
    Merged,
    forest_on_tree,
    link,
    mark_prototypes,
    reduce_arcs,
)
from popf.dask.prediction import Part
from popf.dask.spanning import (
    BlockTree,
    boxes_reached,
    bridge,
    confirm_ties,
    tree_of_block,
    tree_of_two,
)
from popf.engine.structures import FloatArray, IntArray, Resources
from popf.engine.training import Trained, euclidean_tree
from popf.forest.optimum_path_forest import OptimumPathForest, settle_algorithm

# How many lists of candidates are merged at a time.
MERGED_AT_ONCE = 4


class ForestInBlocks(NamedTuple):
    """A forest whose samples stay in blocks."""

    settings: Settings
    samples: SamplesInBlocks
    trained: Trained
    costs: Any  # of all samples, in the engine's unit: a future, or StoredCosts
    n_pairs: int  # of blocks, those that were compared

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.samples.lows.shape[1])

    def parts(self) -> list[Any]:
        """Delayed parts of the model: one if it is small, else one for each block."""
        blocks = self.samples.blocks
        if 8 * len(self.samples.rows) * self.n_features <= self.settings.n_bytes // 4:
            return [delayed(Part)(self.settings, self.costs, *blocks)]
        return [delayed(Part)(self.settings, self.costs, block) for block in blocks]

    def gather_samples(self) -> FloatArray:
        """Fetch all samples."""
        blocks = self.samples.blocks
        if not isinstance(self.costs, StoredCosts):
            blocks = self.costs.client.gather(blocks)
        return np.ldexp(concatenate(*map(load, blocks)).points, self.settings.exponent)

    def to_forest(self, samples: FloatArray | None = None) -> OptimumPathForest:
        """Make the plain forest, which cannot conquer without samples."""
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
    """Grow the forest of all blocks."""
    choice = tasks.submit("choose-algorithm", _choose_algorithm, samples.blocks[0], settings)
    settings = settings._replace(algorithm=tasks.gather(choice))
    forest, n_pairs = _grow_on_all(tasks, samples, settings)
    trained = tasks.gather(forest)
    if samples.folder is None:
        costs = tasks.submit("get-costs", attrgetter("forest.costs"), forest)
    else:
        costs = StoredCosts(str(Path(samples.folder) / "costs.npy"))
        np.save(costs.path, trained.forest.costs)
    settings = settings._replace(exponent=samples.exponent, n_classes=len(samples.classes))
    return ForestInBlocks(settings, samples, trained, costs, n_pairs)


def _choose_algorithm(block: Block, settings: Settings) -> str:
    """Choose the algorithm that suits one block."""
    if not settings.metric.euclidean:
        return "prim"
    return settle_algorithm(block.points, settings.resources, settings.algorithm)


def _grow_on_all(tasks: Tasks, samples: SamplesInBlocks, settings: Settings) -> tuple[Any, int]:
    """Grow the forest of all samples: a future of `Trained`, and how many pairs of blocks were compared."""
    parts, n_blocks, n = samples.blocks, len(samples.blocks), len(samples.rows)
    euclidean = settings.metric.euclidean
    trees: dict[tuple[int, int], Any] = {
        (a, a): tasks.submit("tree-of-block", tree_of_block, parts[a], settings)
        for a in range(n_blocks)
    }
    pairs = [(a, b) for a in range(n_blocks) for b in range(a + 1, n_blocks)]
    links = None
    if euclidean and n_blocks > 1:  # boxes bound Euclidean distances
        # Blocks are joined as the spanning tree of their centres joins these.
        centres = samples.lows / 2.0 + samples.highs / 2.0
        chain, _ = euclidean_tree(centres, "prim", Resources())
        bridges = [
            tasks.submit("find-bridge", bridge, parts[a], parts[b])
            for a, b in zip(chain.lower.tolist(), chain.higher.tolist(), strict=True)
        ]
        some_tree = _merge_all(tasks, n, [*trees.values(), *bridges])
        links = tasks.submit("join-sets", link, some_tree, n)
        boxes = (samples.lows, samples.highs)
        reached = tasks.gather(
            [tasks.submit("reach-boxes", boxes_reached, part, links, *boxes) for part in parts]
        )
        pairs = [(a, b) for a, b in pairs if reached[a][b] or reached[b][a]]
    if settings.algorithm == "brute":
        links = None  # products do not gain by leaving samples out
    for a, b in pairs:
        known = (trees[a, a], trees[b, b])
        trees[a, b] = tasks.submit(
            "tree-of-two-blocks", tree_of_two, parts[a], parts[b], settings, known, links
        )
    # Pairs stand beside the blocks that they join, so that merging soon drops arcs.
    merged = _merge_all(tasks, n, [trees[pair] for pair in sorted(trees)])
    described = tasks.gather(
        [tasks.submit("get-ties", _without_arcs, tree) for tree in trees.values()]
    )
    more = [tree.sure for tree in described]
    more += _settle_ties(tasks, samples, dict(zip(trees, described, strict=True)), merged, settings)
    return tasks.submit("grow-forest", forest_on_tree, merged, n, more, euclidean), len(pairs)


def _settle_ties(
    tasks: Tasks,
    samples: SamplesInBlocks,
    described: dict[tuple[int, int], BlockTree],
    merged: Any,
    settings: Settings,
) -> list[IntArray]:
    """Find the prototypes among the ends of arcs that tied in two blocks, if there are any."""
    if not any(len(tree.tied) for tree in described.values()):
        return []
    n = len(samples.rows)
    sure = [tree.sure for tree in described.values()]
    known = tasks.gather(tasks.submit("mark-prototypes", mark_prototypes, merged, n, sure))
    links = tasks.submit("join-sets", link, merged, n)
    asked = []
    for pair, tree in described.items():
        unknown = ~known[tree.tied]
        if unknown.any():
            members = [samples.blocks[b] for b in sorted(set(pair))]
            found = tasks.submit(
                "settle-ties", confirm_ties, tree, unknown, links, settings, *members
            )
            asked.append(found)
    prototypes: list[IntArray] = tasks.gather(asked)
    return prototypes


def _merge_all(tasks: Tasks, n: int, level: list[Any]) -> Any:
    """Merge candidates as a tree of tasks."""
    while True:
        level = [
            tasks.submit("merge-trees", _merge, n, *level[i : i + MERGED_AT_ONCE])
            for i in range(0, len(level), MERGED_AT_ONCE)
        ]
        if len(level) == 1:
            return level[0]


def _without_arcs(tree: BlockTree) -> BlockTree:
    return tree._replace(arcs=NO_ARCS)


def _merge(n_samples: int, *parts: BlockTree | Arcs | Merged) -> Merged:
    lists: list[Arcs] = []
    for part in parts:
        if isinstance(part, BlockTree):
            lists.append(part.arcs)
        else:
            lists += [part] if isinstance(part, Arcs) else part
    return reduce_arcs(lists, n_samples)
