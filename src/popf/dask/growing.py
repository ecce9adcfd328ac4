"""The tree of all samples from pairs of blocks, and the forest on it.

First every block grows its own tree, and neighbouring blocks are joined by one arc each, so that there is some
tree of all samples. It bounds how far apart the ends of an arc of the shortest one can be: pairs of blocks
whose boxes are farther apart need no look, nor do samples too far from the other block. The candidates of
all other pairs are then merged, a few lists at a time.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.dask.cluster import Tasks
from popf.dask.kruskal import NO_ARCS, Arcs, Links, forest_of, link, reduce_arcs
from popf.dask.nearby import boxes_reached, bridge, concatenate
from popf.dask.partitioning import Blocks
from popf.dask.spanning import (
    BlockTree,
    TreeSettings,
    settle_algorithm,
    tree_of_block,
    tree_of_two,
)
from popf.dask.tie_search import confirm_ties
from popf.engine.training import Trained

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How many lists of candidates are merged at a time.
MERGED_AT_ONCE = 4


def choose(block: Any, settings: TreeSettings) -> TreeSettings:
    """Choose the algorithm for all blocks by one of them."""
    return settle_algorithm(block.load(), settings)


def grow_one(block: Any, settings: TreeSettings) -> BlockTree:
    """Grow the tree of a block."""
    return tree_of_block(block.load(), settings)


def grow_two(
    first: Any,
    second: Any,
    settings: TreeSettings,
    trees: tuple[BlockTree, BlockTree],
    links: Links | None,
) -> BlockTree:
    """Find the arcs between two blocks."""
    return tree_of_two(first.load(), second.load(), settings, trees, links)


def without_arcs(tree: BlockTree) -> BlockTree:
    """Leave the arcs where they are."""
    return tree._replace(arcs=NO_ARCS)


def merge(n_samples: int, *parts: Any) -> tuple[Arcs, Arcs]:
    """Merge candidates, from trees or from other merges."""
    lists: list[Arcs] = []
    for part in parts:
        if isinstance(part, BlockTree):
            lists.append(part.arcs)
        else:
            lists += [part] if isinstance(part, Arcs) else part
    return reduce_arcs(lists, n_samples)


def join_sets(merged: tuple[Arcs, Arcs], n_samples: int) -> Links:
    """Make paths in a tree easy to find."""
    return link(merged[0], n_samples)


def find_bridge(first: Any, second: Any) -> Arcs:
    """Find some arc between two blocks."""
    lower, higher, weight, cross = bridge(first.load(), second.load())
    return Arcs(np.array([lower]), np.array([higher]), np.array([weight]), np.array([cross]))


def reach_boxes(block: Any, links: Links, lows: FloatArray, highs: FloatArray) -> Any:
    """Say which boxes are near enough to a block to be joined to it."""
    return boxes_reached(block.load(), links, lows, highs)


def settle_ties(
    first: Any,
    second: Any,
    told: BlockTree,
    asked: NDArray[np.bool_],
    links: Links,
    settings: TreeSettings,
) -> IntArray:
    """Find which samples that tied in two blocks are prototypes."""
    found = []
    for block in (first,) if second is None else (first, second):
        loaded = block.load()
        mine = np.isin(loaded.samples, told.tied, assume_unique=True)
        found.append(loaded.take(mine))
    return confirm_ties(concatenate(found), told.reach, asked, links, settings)


def marked(merged: tuple[Arcs, Arcs], n_samples: int, more: list[IntArray]) -> NDArray[np.bool_]:
    """Mark the ends of arcs between classes, and whoever else is known to be a prototype."""
    prototypes = np.zeros(n_samples, dtype=np.bool_)
    for arcs in merged:
        prototypes[arcs.lower[arcs.cross]] = True
        prototypes[arcs.higher[arcs.cross]] = True
    for samples in more:
        prototypes[samples] = True
    return prototypes


def compete_on(merged: tuple[Arcs, Arcs], more: list[IntArray], n: int, euclidean: bool) -> Trained:
    """Grow the forest on the tree."""
    return forest_of(merged[0], marked(merged, n, more), euclidean)


class Forested(NamedTuple):
    """What training gives.

    Attributes
    ----------
    trained : future of Trained
    algorithm : str
    n_pairs : int
        How many pairs of blocks had to be looked at.
    """

    trained: Any
    algorithm: str
    n_pairs: int


def grow(tasks: Tasks, blocks: Blocks, settings: TreeSettings) -> Forested:
    """Grow the forest of all samples.

    Parameters
    ----------
    tasks : Tasks
    blocks : Blocks
    settings : TreeSettings

    Returns
    -------
    Forested
    """
    parts, n_blocks, n = blocks.blocks, len(blocks.blocks), len(blocks.kept)
    settings = tasks.gather(tasks.submit("choose-algorithm", choose, parts[0], settings))
    euclidean = settings.rows is None  # so that boxes bound distances
    grown: dict[tuple[int, int], Any] = {
        (a, a): tasks.submit("tree-of-block", grow_one, parts[a], settings) for a in range(n_blocks)
    }
    pairs = [(a, b) for a in range(n_blocks) for b in range(a + 1, n_blocks)]
    links = None
    if euclidean and n_blocks > 1:
        bridges = [
            tasks.submit("find-bridge", find_bridge, parts[a], parts[b]) for a, b in _chain(blocks)
        ]
        some_tree = _merge_all(tasks, n, [*grown.values(), *bridges])
        links = tasks.submit("join-sets", join_sets, some_tree, n)
        boxes = (blocks.lows, blocks.highs)
        reached = np.stack(
            tasks.gather(
                [tasks.submit("reach-boxes", reach_boxes, part, links, *boxes) for part in parts]
            )
        )
        pairs = [(a, b) for a, b in pairs if reached[a, b] or reached[b, a]]
    if settings.algorithm == "brute":
        links = None  # it would only travel
    for a, b in pairs:
        grown[a, b] = tasks.submit(
            "tree-of-two-blocks",
            grow_two,
            *(parts[a], parts[b], settings, (grown[a, a], grown[b, b]), links),
        )
    merged = _merge_all(tasks, n, _interleaved(grown))
    told = tasks.gather([tasks.submit("tell-ties", without_arcs, tree) for tree in grown.values()])
    more = [t.sure for t in told if len(t.sure)]
    more += _settle(tasks, blocks, dict(zip(grown, told, strict=True)), merged, settings)
    trained = tasks.submit("grow-forest", compete_on, merged, more, n, euclidean)
    return Forested(trained, settings.algorithm, len(pairs))


def _settle(
    tasks: Tasks,
    blocks: Blocks,
    told: dict[tuple[int, int], BlockTree],
    merged: Any,
    settings: TreeSettings,
) -> list[IntArray]:
    """Ask again about the ends of arcs that tied in two blocks, if there are any."""
    if not any(len(t.tied) for t in told.values()):
        return []
    n = len(blocks.kept)
    sure = [t.sure for t in told.values()]
    known = tasks.gather(tasks.submit("mark-prototypes", marked, merged, n, sure))
    links = tasks.submit("join-sets", join_sets, merged, n)
    asked = []
    for (a, b), t in told.items():
        unknown = ~known[t.tied]
        if unknown.any():
            first, second = blocks.blocks[a], None if a == b else blocks.blocks[b]
            task = tasks.submit(
                "settle-ties", settle_ties, first, second, t, unknown, links, settings
            )
            asked.append(task)
    found: list[IntArray] = tasks.gather(asked)
    return found


def _interleaved(grown: dict[tuple[int, int], Any]) -> list[Any]:
    """Order trees so that pairs stand beside the blocks that they join: then merges leave fewest arcs."""
    return [grown[pair] for pair in sorted(grown)]


def _merge_all(tasks: Tasks, n: int, level: list[Any]) -> Any:
    """Merge candidates as a tree of tasks."""
    while True:
        level = [
            tasks.submit("merge-trees", merge, n, *level[i : i + MERGED_AT_ONCE])
            for i in range(0, len(level), MERGED_AT_ONCE)
        ]
        if len(level) == 1:
            return level[0]


def _chain(blocks: Blocks) -> list[tuple[int, int]]:
    """Choose pairs that join all blocks: each to the nearest of those before it, by their middles."""
    middles = blocks.lows / 2.0 + blocks.highs / 2.0
    joined = []
    inside, outside = [0], list(range(1, len(middles)))
    while outside:
        away = [((middles[inside] - middles[b]) ** 2).sum(axis=1) for b in outside]
        k = int(np.argmin([distances.min() for distances in away]))
        b = outside.pop(k)
        a = inside[int(np.argmin(away[k]))]
        joined.append((min(a, b), max(a, b)))
        inside.append(b)
    return joined
