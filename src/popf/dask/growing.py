"""The tree of all samples from pairs of blocks, and the forest on it.

First every block grows its own tree, and neighbouring blocks are joined by one arc each: some spanning tree of
all samples. It bounds the length of the arcs of the shortest one, so that pairs of blocks whose boxes are
farther apart are skipped, and samples too far from the other block left out. The candidates of all other pairs
are then merged, a few lists at a time.
"""

from typing import Any, NamedTuple

import numpy as np

from popf.dask.blocks import Block, concatenate
from popf.dask.cluster import Settings, Tasks
from popf.dask.kruskal import NO_ARCS, Arcs, Links, forest_on_tree, link, reduce_arcs
from popf.dask.nearby import boxes_reached, bridge
from popf.dask.partitioning import Blocks
from popf.dask.spanning import (
    BlockTree,
    settle_algorithm,
    tree_of_block,
    tree_of_two,
)
from popf.dask.tie_search import confirm_ties
from popf.engine.structures import BoolArray, IntArray
from popf.engine.training import Trained

# How many lists of candidates are merged at a time.
MERGED_AT_ONCE = 4

#: The tree, and the other arcs between classes that tie with its edges.
Merged = tuple[Arcs, Arcs]


class ForestOfBlocks(NamedTuple):
    """The forest as a future of `Trained`, the algorithm, and how many pairs of blocks were compared."""

    trained: Any
    algorithm: str
    n_pairs: int


def grow_forest_of_blocks(tasks: Tasks, blocks: Blocks, settings: Settings) -> ForestOfBlocks:
    """Grow the forest of all samples."""
    parts, n_blocks, n = blocks.blocks, len(blocks.blocks), len(blocks.kept)
    settings = tasks.gather(tasks.submit("choose-algorithm", settle_algorithm, parts[0], settings))
    euclidean = settings.metric.euclidean
    trees: dict[tuple[int, int], Any] = {
        (a, a): tasks.submit("tree-of-block", tree_of_block, parts[a], settings)
        for a in range(n_blocks)
    }
    pairs = [(a, b) for a in range(n_blocks) for b in range(a + 1, n_blocks)]
    links = None
    if euclidean and n_blocks > 1:  # boxes bound Euclidean distances
        bridges = [
            tasks.submit("find-bridge", bridge, parts[a], parts[b]) for a, b in _chain(blocks)
        ]
        some_tree = _merge_all(tasks, n, [*trees.values(), *bridges])
        links = tasks.submit("join-sets", _link, some_tree, n)
        boxes = (blocks.lows, blocks.highs)
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
    told = tasks.gather([tasks.submit("tell-ties", _without_arcs, tree) for tree in trees.values()])
    more = [tree.sure for tree in told]
    more += _settle_ties(tasks, blocks, dict(zip(trees, told, strict=True)), merged, settings)
    trained = tasks.submit("grow-forest", _compete, merged, more, n, euclidean)
    return ForestOfBlocks(trained, settings.algorithm, len(pairs))


def _settle_ties(
    tasks: Tasks,
    blocks: Blocks,
    told: dict[tuple[int, int], BlockTree],
    merged: Any,
    settings: Settings,
) -> list[IntArray]:
    """Find the prototypes among the ends of arcs that tied in two blocks, if there are any."""
    if not any(len(tree.tied) for tree in told.values()):
        return []
    n = len(blocks.kept)
    sure = [tree.sure for tree in told.values()]
    known = tasks.gather(tasks.submit("mark-prototypes", _prototypes, merged, n, sure))
    links = tasks.submit("join-sets", _link, merged, n)
    asked = []
    for pair, tree in told.items():
        unknown = ~known[tree.tied]
        if unknown.any():
            members = [blocks.blocks[b] for b in sorted(set(pair))]
            state = (tree, unknown, links, settings)
            asked.append(tasks.submit("settle-ties", _confirm_ties, *state, *members))
    found: list[IntArray] = tasks.gather(asked)
    return found


def _merge_all(tasks: Tasks, n: int, level: list[Any]) -> Any:
    """Merge candidates as a tree of tasks."""
    while True:
        level = [
            tasks.submit("merge-trees", _merge, n, *level[i : i + MERGED_AT_ONCE])
            for i in range(0, len(level), MERGED_AT_ONCE)
        ]
        if len(level) == 1:
            return level[0]


def _chain(blocks: Blocks) -> list[tuple[int, int]]:
    """Choose pairs that join all blocks: each to the nearest of those before it, by their centres."""
    centres = blocks.lows / 2.0 + blocks.highs / 2.0
    joined = []
    inside, outside = [0], list(range(1, len(centres)))
    while outside:
        squared = [((centres[inside] - centres[b]) ** 2).sum(axis=1) for b in outside]
        k = int(np.argmin([distances.min() for distances in squared]))
        a, b = inside[int(np.argmin(squared[k]))], outside.pop(k)
        joined.append((min(a, b), max(a, b)))
        inside.append(b)
    return joined


def _confirm_ties(
    tree: BlockTree, unknown: BoolArray, links: Links, settings: Settings, *members: Block
) -> IntArray:
    tied = [b.take(np.isin(b.samples, tree.tied, assume_unique=True)) for b in members]
    return confirm_ties(concatenate(tied), tree.reach, unknown, links, settings)


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


def _link(merged: Merged, n_samples: int) -> Links:
    return link(merged[0], n_samples)


def _prototypes(merged: Merged, n_samples: int, more: list[IntArray]) -> BoolArray:
    """Mark the ends of arcs between classes, and the samples that are known otherwise."""
    prototypes = np.zeros(n_samples, dtype=np.bool_)
    for arcs in merged:
        prototypes[arcs.lower[arcs.cross]] = True
        prototypes[arcs.higher[arcs.cross]] = True
    for samples in more:
        prototypes[samples] = True
    return prototypes


def _compete(merged: Merged, more: list[IntArray], n_samples: int, euclidean: bool) -> Trained:
    return forest_on_tree(merged[0], _prototypes(merged, n_samples, more), euclidean)
