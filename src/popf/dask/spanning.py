"""Minimum spanning trees of one or two blocks, the tree of all samples, and arcs that tie with it.

An arc of the tree of all samples lies in the tree of every subset that contains both of its ends. So the whole
tree lies in the union of the trees of all pairs of blocks, where Kruskal's algorithm finds it.

Prototypes are the ends of every arc between classes that lies in *some* minimum spanning tree. If such an arc
is in the tree of its two blocks, `reduce_arcs` keeps it as long as it is in the merged tree or ties with it. If
it only ties with an edge of the tree of its two blocks, its ends are reported, and `confirm_ties` decides once
the whole tree is known. Data without ties need no extra work.

In any spanning tree of all samples, let r(u) be the longest edge on the path from u to a fixed sample, the
head. An arc (u, v) of a minimum spanning tree is no longer than the longest edge on the path between its ends
in any spanning tree, so no longer than max(r(u), r(v)). Samples that are farther than that from the bounding
box of the other block, or from its samples, need not be compared. Equality counts as near, so that no tie is
lost.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from popf.dask.blocks import Block, box_of, concatenate
from popf.dask.cluster import Settings
from popf.engine.distances import kernel_rows
from popf.engine.mst import prim
from popf.engine.mst.neighbours import nearest_in_space
from popf.engine.points import collapse_duplicates
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.space_tree import build_space_tree
from popf.engine.structures import BoolArray, FloatArray, IntArray, order_of_arcs
from popf.engine.training import tree_of_samples
from popf.engine.union_find import find_root

# Number of samples from which a short arc to another block is searched.
STARTS = 8


class Arcs(NamedTuple):
    """Arcs that may belong to the spanning tree of all samples."""

    lower: IntArray
    higher: IntArray
    weights: FloatArray
    cross: BoolArray  # whether their ends are of different classes
    in_tree: BoolArray  # in the tree of the samples merged so far, or only tied with it

    def take(self, which: Any) -> "Arcs":
        """Select some of the arcs."""
        return Arcs(*(array[which] for array in self))


NO_SAMPLES = np.empty(0, dtype=np.int64)
NO_ARCS = Arcs(NO_SAMPLES, NO_SAMPLES, np.empty(0), np.empty(0, np.bool_), np.empty(0, np.bool_))


class BlockTree(NamedTuple):
    """The spanning tree of one block, or the arcs between two blocks in the tree of both."""

    arcs: Arcs = NO_ARCS
    tied: IntArray = NO_SAMPLES  # samples with an arc between classes that may tie with an edge


def tree_of_block(block: Block, settings: Settings) -> BlockTree:
    """Grow the minimum spanning tree of a block."""
    codes, metric = block.codes, settings.metric
    if metric.euclidean:
        distinct, algorithm = collapse_duplicates(block.points, 0), settings.algorithm
        tree, tied = tree_of_samples(distinct, codes, algorithm, settings.resources)
    else:
        rows = metric.rows(block.points, settings.n_threads)
        tree, tied = prim.spanning_tree(rows, len(codes), codes)
    lower, higher = np.minimum(tree.lower, tree.higher), np.maximum(tree.lower, tree.higher)
    cross, in_tree = codes[lower] != codes[higher], np.ones(len(lower), np.bool_)
    arcs = Arcs(block.samples[lower], block.samples[higher], tree.weights, cross, in_tree)
    return BlockTree(arcs, block.samples[tied])


def tree_of_two(
    first: Block, second: Block, settings: Settings, links: "Links | None" = None
) -> BlockTree:
    """Find the arcs between two blocks that lie in the minimum spanning tree of both.

    `links`, some spanning tree of all samples, serves to leave out samples too far from the other block.
    """
    if links is not None:
        # Bounds are tight only near the head, so each block provides one: its sample with the most below it.
        for head in [_head(block, links) for block in (first, second)]:
            first, second = near_each_other(first, second, links, head)
    if len(first.samples) == 0 or len(second.samples) == 0:
        return BlockTree()
    tree = tree_of_block(concatenate(first, second), settings)
    sides = [np.isin(ends, second.samples) for ends in (tree.arcs.lower, tree.arcs.higher)]
    return tree._replace(arcs=tree.arcs.take(sides[0] != sides[1]))


def reduce_arcs(candidates: list[Arcs], n_samples: int) -> Arcs:
    """Sort candidates, and keep the minimum spanning tree and the arcs between classes that tie with it."""
    arcs = Arcs(*map(np.concatenate, zip(*candidates, strict=True)))
    arcs = arcs.take(order_of_arcs(arcs.lower, arcs.higher, arcs.weights))
    # The same arc may have been found in several pairs of blocks.
    again = (arcs.lower[1:] == arcs.lower[:-1]) & (arcs.higher[1:] == arcs.higher[:-1])
    arcs = arcs.take(np.append(~again, True)[: len(arcs.weights)])
    links, in_tree = link(arcs, n_samples)
    # An arc lies in some minimum spanning tree if no path between its ends has only shorter edges.
    kept, others = in_tree.copy(), np.flatnonzero(arcs.cross & ~in_tree)
    lower, higher, weights = arcs.lower[others], arcs.higher[others], arcs.weights[others]
    kept[others] = weights == longest_edges(lower, higher, links)
    return arcs._replace(in_tree=in_tree).take(kept)


class Links(NamedTuple):
    """A spanning tree as the merge history of a union-find by size, which is a shallow tree."""

    parent: IntArray  # the sample that each was joined to, itself at the root
    weight: FloatArray  # the edge that joined the two, infinite at the root
    rank: IntArray  # position of that edge in the order of edges
    size: IntArray  # number of samples below, itself included


def link(arcs: Arcs, n_samples: int) -> tuple[Links, BoolArray]:
    """Link samples by Kruskal's algorithm, so that the longest edge on a path is found in log(n) steps.

    The arcs are sorted, and connect all samples. Also returns which of them are in the tree.
    """
    links = Links(
        np.arange(n_samples),
        np.full(n_samples, np.inf),
        np.full(n_samples, len(arcs.weights)),
        np.ones(n_samples, dtype=np.int64),
    )
    in_tree = np.zeros(len(arcs.weights), dtype=np.bool_)
    _link(arcs.lower, arcs.higher, arcs.weights, links, np.arange(n_samples), in_tree)
    return links, in_tree


@jit
def _link(lower, higher, weights, links, shortcut, in_tree):
    size = links.size
    for e in range(len(weights)):
        a, b = find_root(shortcut, lower[e]), find_root(shortcut, higher[e])
        if a == b:
            continue
        if size[a] < size[b]:
            a, b = b, a
        shortcut[b] = links.parent[b] = a
        links.weight[b] = weights[e]
        links.rank[b] = e
        size[a] += size[b]
        in_tree[e] = True


@jit
def longest_edges(samples, others, links):
    """Find the longest edge on the path between each pair of samples, 0 from a sample to itself.

    The one that was joined earlier climbs, until both meet.
    """
    longest = np.zeros(len(samples))
    for i in range(len(samples)):
        u, v = samples[i], others[i]
        while u != v:
            if links.rank[u] > links.rank[v]:
                u, v = v, u
            longest[i] = links.weight[u]
            u = links.parent[u]
    return longest


def _head(block: Block, links: Links) -> int:
    """Return the sample of a block with the most samples below it."""
    return int(block.samples[np.argmax(links.size[block.samples])])


def _longest_edges_to(head: int, samples: IntArray, links: Links) -> FloatArray:
    """Find the longest edge on the path from each of some samples to the head."""
    longest: FloatArray = longest_edges(np.full_like(samples, head), samples, links)
    return longest


def confirm_ties(
    tied: IntArray, undecided: BoolArray, links: Links, settings: Settings, *members: Block
) -> IntArray:
    """Find the samples with an arc between classes that lies in some minimum spanning tree.

    `tied` are the samples reported for the `members`, one block or two; `undecided` marks those not yet known
    to be prototypes. `links` is the minimum spanning tree of all samples.
    """
    block = concatenate(*(b.take(np.isin(b.samples, tied, assume_unique=True)) for b in members))
    samples, found = block.samples, np.zeros(len(block.samples), dtype=np.bool_)
    metric, everyone = settings.metric, np.arange(len(samples))
    rows = metric.rows if not metric.euclidean else partial(kernel_rows, "sqeuclidean")
    row = rows(block.points, settings.n_threads)(everyone)
    bounds = _longest_edges_to(_head(block, links), samples, links)
    for i in np.flatnonzero(undecided).tolist():
        if found[i]:
            continue
        weights = row(i)
        # Few arcs are short enough to lie in a minimum spanning tree at all.
        near = (weights <= np.maximum(bounds, bounds[i])) & (block.codes != block.codes[i])
        ends = np.flatnonzero(near)
        ends = ends[weights[ends] == _longest_edges_to(int(samples[i]), samples[ends], links)]
        found[ends] = True
        found[i] = len(ends) > 0
    return samples[found]


@helper
def box_distance(points, i, lows, highs, box):
    """Compute the squared distance from a point to a box; no point in it is nearer, even after rounding."""
    total = 0.0
    for f in range(points.shape[1]):
        x = points[i, f]
        gap = max(max(lows[box, f] - x, x - highs[box, f]), 0.0)
        total += gap * gap
    return total


@jit
def box_distances(points, low, high):
    """Compute the squared distances from points to a box."""
    lows, highs, squared = low.reshape(1, -1), high.reshape(1, -1), np.empty(len(points))
    for i in range(len(points)):
        squared[i] = box_distance(points, i, lows, highs, 0)
    return squared


def box_of_block(block: Block) -> tuple[FloatArray, FloatArray]:
    """Return the bounding box of a block."""
    return box_of(block.points)


def boxes_reached(
    block: Block, links: Links, boxes: list[tuple[FloatArray, FloatArray]]
) -> BoolArray:
    """Find which boxes lie within r(u) of some sample u of a block; the head is the root of the links."""
    bounds = _longest_edges_to(int(np.argmax(links.weight)), block.samples, links)
    return np.array([(box_distances(block.points, *box) <= bounds).any() for box in boxes])


def near_each_other(first: Block, second: Block, links: Links, head: int) -> tuple[Block, Block]:
    """Keep the samples u of two blocks for which d(u, v) <= max(r(u), r(v)) is possible for some v."""
    if len(first.samples) == 0 or len(second.samples) == 0:
        return first, second
    both = (first, second)
    bounds = [_longest_edges_to(head, block.samples, links) for block in both]
    reaching = [
        box_distances(block.points, *box_of(other.points)) <= bound
        for block, other, bound in zip(both, both[::-1], bounds, strict=True)
    ]
    kept = []
    for i, block in enumerate(both):
        # Samples within reach of the other block, and those that a sample of the other block reaches.
        near, other = reaching[i].copy(), both[1 - i].points[reaching[1 - i]]
        far = np.flatnonzero(~near)
        if len(far) and len(other):
            radii = bounds[1 - i][reaching[1 - i]]
            around = box_distances(block.points[far], *box_of(other))
            far = far[around <= radii.max()]
            if len(far):
                space = build_space_tree(block.points[far])
                near[far[space.order]] = _mark_within(space, other, radii)
        kept.append(block if near.all() else block.take(near))
    return kept[0], kept[1]


@jit
def _mark_within(space, centers, radii):
    """Mark the points of a space tree that lie within the squared radius of some center."""
    points, nodes, lows, highs = space.points, space.nodes, space.lows, space.highs
    n = points.shape[0]
    marks = np.zeros(n, dtype=np.bool_)
    stack = np.empty(128, dtype=np.int64)
    done = np.zeros(len(nodes), dtype=np.bool_)  # all of the node's points are marked
    for i in range(len(centers)):
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if done[node] or box_distance(centers, i, lows, highs, node) > radii[i]:
                continue
            right = nodes[node]["right"]
            if right >= 0:
                if done[node + 1] and done[right]:
                    done[node] = True
                    continue
                stack[top] = right
                stack[top + 1] = node + 1
                top += 2
                continue
            start = np.int64(nodes[node]["block"]) * LANES
            done[node] = True
            for v in range(start, min(start + LANES, n)):
                if not marks[v]:
                    marks[v] = box_distance(centers, i, points, points, v) <= radii[i]
                    done[node] &= marks[v]
    return marks


def bridge(first: Block, second: Block) -> Arcs:
    """Find a short arc between two blocks, not necessarily the shortest."""
    away = box_distances(first.points, *box_of(second.points))
    # Take samples near the other block's box, their nearest samples there, and the nearest of these here.
    starts = np.argsort(away, kind="stable")[:STARTS]
    nearest = nearest_in_space(build_space_tree(second.points), first.points[starts], 1, 1)
    there = nearest.indices[:, 0]
    here = nearest_in_space(build_space_tree(first.points), second.points[there], 1, 1)
    best = int(np.argmin(here.weights[:, 0]))
    u, v = here.indices[best, 0], there[best]
    lower, higher = sorted((first.samples[u], second.samples[v]))
    cross = first.codes[u] != second.codes[v]
    return Arcs(*map(np.atleast_1d, (lower, higher, here.weights[best, 0], cross, True)))
