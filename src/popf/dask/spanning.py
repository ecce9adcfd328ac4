"""Minimum spanning trees of one or two blocks, the tree of all samples, and arcs that tie with it.

An arc of the tree of all samples lies in the tree of every subset that contains both of its ends. So the whole
tree lies in the union of the trees of all pairs of blocks, where Kruskal's algorithm finds it.

Prototypes are the ends of every arc between classes that lies in *some* minimum spanning tree. If such an arc
is in the tree of its two blocks, `reduce_arcs` keeps it as long as it is in the merged tree or ties with it. If
it only ties with an edge of the tree of its two blocks, its ends are reported, and `confirm_ties` decides once
the whole tree is known. Data without ties need no extra work.

In any spanning tree of all samples, let r(u) be the longest edge on the path from u to a fixed sample, the
head. An arc (u, v) of the minimum spanning tree is no longer than the longest edge on the path between its ends
in any spanning tree, so no longer than max(r(u), r(v)). Samples that are farther than that from the bounding
box of the other block, or from its samples, need not be compared. Equality counts as near, so that no tie is
lost.
"""

from typing import Any, NamedTuple

import numpy as np

from popf.dask.blocks import Block, box_of, concatenate
from popf.dask.cluster import Settings
from popf.engine.distances import WeightsAmong, kernel_rows
from popf.engine.points import DistinctPoints, collapse_duplicates
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import Team
from popf.engine.space_tree import build_space_tree, push_children
from popf.engine.structures import BoolArray, FloatArray, IntArray, SpanningTree, order_of_arcs
from popf.engine.training import attach_duplicates, find_neighbours, point_classes
from popf.engine.trees import prim
from popf.engine.trees.boruvka import GrowingTree, find_root, offer_arcs
from popf.engine.trees.neighbours import nearest_in_space

# Number of samples from which a short arc to another block is searched.
STARTS = 8
# Labels that `_kruskal` gives to arcs.
IN_TREE, TIED = 1, 2


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
    """Spanning tree of one block, or the arcs between two blocks in the tree of both."""

    arcs: Arcs = NO_ARCS
    # Samples that coincide with one of another class, and so are prototypes in any case.
    sure: IntArray = NO_SAMPLES
    # Samples with an arc between classes that ties with an edge of the tree, and its greatest possible length.
    tied: IntArray = NO_SAMPLES
    reach: FloatArray = np.empty(0)


def tree_of_block(
    block: Block,
    settings: Settings,
    side: BoolArray | None = None,
    trees: tuple[BlockTree, ...] = (),
) -> BlockTree:
    """Grow the minimum spanning tree of a block.

    If the block consists of two, `side` marks the samples of the second, `trees` are those of the two, and only
    arcs between the two are returned.
    """
    sure = NO_SAMPLES
    if not settings.metric.euclidean:
        rows = settings.metric.rows(block.points, settings.n_threads)
        tree, reach = _span_by_prim(rows, block.codes)
    else:
        distinct = collapse_duplicates(block.points, 0)
        classes = point_classes(distinct, block.codes)
        sides, known = None, None
        if side is not None and settings.algorithm == "brute":
            of_points = side[distinct.first]
            if (of_points[distinct.point_of] == side).all():  # no point lies on both sides
                sides, known = of_points, _arcs_of_points(block, distinct, trees)
        tree, reach = _span(distinct.points, classes, settings, sides, known)
        if len(distinct.first) < len(block.samples):
            tree, reach = _add_duplicates(tree, reach, distinct, classes)
            sure = block.samples[classes[distinct.point_of] < 0]
    lower, higher = np.minimum(tree.lower, tree.higher), np.maximum(tree.lower, tree.higher)
    cross, in_tree = block.codes[lower] != block.codes[higher], np.ones(len(lower), np.bool_)
    arcs = Arcs(block.samples[lower], block.samples[higher], tree.weights, cross, in_tree)
    if side is not None:
        arcs = arcs.take(side[lower] != side[higher])
    tied = np.flatnonzero(reach >= 0.0)
    return BlockTree(arcs, sure, block.samples[tied], reach[tied])


def tree_of_two(
    first: Block,
    second: Block,
    settings: Settings,
    trees: tuple[BlockTree, ...],
    links: "Links | None" = None,
) -> BlockTree:
    """Find the arcs between two blocks that lie in the minimum spanning tree of both.

    The trees of the two blocks contain all arcs within the blocks that can matter. So if distances are computed
    by matrix products, only those between the blocks are needed, and all pairs together cost as much as on one
    machine. `links`, some spanning tree of all samples, serves to leave out samples too far from the other
    block.
    """
    if links is not None:
        # Bounds are tight only near the head, so each block provides one: its sample with the most below it.
        heads = [int(b.samples[np.argmax(links.size[b.samples])]) for b in (first, second)]
        for head in heads:
            first, second = near_each_other(first, second, links, head)
    if len(first.samples) == 0 or len(second.samples) == 0:
        return BlockTree()
    both = concatenate(first, second)
    side = np.isin(both.samples, second.samples, assume_unique=True)
    return tree_of_block(both, settings, side, trees)


def _add_duplicates(
    tree: SpanningTree, reach: FloatArray, distinct: DistinctPoints, classes: IntArray
) -> tuple[SpanningTree, FloatArray]:
    """Extend a tree of distinct points, and the lengths of tied arcs, to all samples at these points."""
    shared = np.bincount(distinct.point_of) > 1
    # An edge between classes to a point with several samples ties with the arcs to the other samples there.
    tying = classes[tree.lower] != classes[tree.higher]
    tying &= shared[tree.lower] | shared[tree.higher]
    for ends in (tree.lower[tying], tree.higher[tying]):
        np.maximum.at(reach, ends, tree.weights[tying])
    return attach_duplicates(tree, distinct)[0], reach[distinct.point_of]


def _arcs_of_points(
    block: Block, distinct: DistinctPoints, trees: tuple[BlockTree, ...]
) -> SpanningTree:
    """Convert the arcs of trees of samples to arcs between points."""
    arcs = join_arcs([tree.arcs for tree in trees])
    lower = distinct.point_of[np.searchsorted(block.samples, arcs.lower)]
    higher = distinct.point_of[np.searchsorted(block.samples, arcs.higher)]
    apart = lower != higher
    return SpanningTree(lower[apart], higher[apart], arcs.weights[apart])


def _span(
    points: FloatArray,
    classes: IntArray,
    settings: Settings,
    sides: BoolArray | None,
    known: SpanningTree | None,
) -> tuple[SpanningTree, FloatArray]:
    """Grow the minimum spanning tree of distinct points.

    Also returns, for each point, the greatest length of its arcs that tie with an edge, -1 for none. If points
    have `sides`, `known` are the only arcs within the sides that can matter.
    """
    algorithm, n_threads = settings.algorithm, settings.n_threads
    if algorithm == "prim" or len(points) == 1:
        return _span_by_prim(kernel_rows("sqeuclidean", points, n_threads), classes)
    lists, search, order, _ = find_neighbours(points, algorithm, settings.resources, sides)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    if known is not None:
        known = SpanningTree(position[known.lower], position[known.higher], known.weights)
    reach = np.full(len(points), -1.0)
    with Team(n_threads) as team:
        growing = GrowingTree(lists, order, classes[order], team)
        while growing.n_components > 1:
            best, looked = growing.shortest_listed_arcs()
            if known is not None:
                lower, higher, weights = known
                offer_arcs(best, growing.components, lower, higher, weights)
                offer_arcs(best, growing.components, higher, lower, weights)
            tied = np.zeros(len(points), dtype=np.bool_)
            certain = growing.certify(best, looked, search, tied)
            if growing.mark_ties(best, certain, tied):
                longest = best["squared"][certain & (best["tied"] != 0)].max()
                reach[tied] = np.maximum(reach[tied], longest)
            growing.join(best, certain, tied)
    lower, higher, weights = growing.tree
    return SpanningTree(order[lower], order[higher], weights), reach[position]


def _span_by_prim(rows: WeightsAmong, classes: IntArray) -> tuple[SpanningTree, FloatArray]:
    """Grow the tree by Prim's algorithm, which does not report ties, so that all its prototypes may be tied."""
    tree, prototypes = prim.spanning_tree(rows, len(classes), classes)
    return tree, np.where(prototypes, tree.weights.max(initial=0.0), -1.0)


def join_arcs(parts: list[Arcs]) -> Arcs:
    """Concatenate lists of arcs."""
    return Arcs(*map(np.concatenate, zip(*parts, strict=True)))


def reduce_arcs(candidates: list[Arcs], n_samples: int) -> Arcs:
    """Sort candidates, and keep the minimum spanning tree and the arcs between classes that tie with it."""
    arcs = join_arcs(candidates)
    arcs = arcs.take(order_of_arcs(arcs.lower, arcs.higher, arcs.weights))
    state = np.zeros(len(arcs.weights), dtype=np.int8)
    _kruskal(arcs.lower, arcs.higher, arcs.weights, np.arange(n_samples), state)
    in_tree = state == IN_TREE
    return arcs._replace(in_tree=in_tree).take(in_tree | ((state == TIED) & arcs.cross))


@jit
def _kruskal(lower, higher, weights, parent, state):
    """Label each arc: in the tree, in another minimum tree, or in none."""
    n = len(weights)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and weights[stop] == weights[start]:
            stop += 1
        if stop - start > 1:  # of equal arcs, all that join two components lie in some tree
            for e in range(start, stop):
                if find_root(parent, lower[e]) != find_root(parent, higher[e]):
                    state[e] = TIED
        for e in range(start, stop):
            if e > start and lower[e] == lower[e - 1] and higher[e] == higher[e - 1]:
                state[e] = 0  # a duplicate, found by two pairs of blocks
                continue
            a, b = find_root(parent, lower[e]), find_root(parent, higher[e])
            if a != b:
                parent[max(a, b)] = min(a, b)
                state[e] = IN_TREE
        start = stop


class Links(NamedTuple):
    """A spanning tree as the merge history of a union-find by size, which is a shallow tree."""

    parent: IntArray  # the sample that each was joined to, itself at the root
    weight: FloatArray  # the edge that joined the two, infinite at the root
    rank: IntArray  # position of that edge in the order of edges
    size: IntArray  # number of samples below, itself included


def link(arcs: Arcs, n_samples: int) -> Links:
    """Build the links of a tree, by which the longest edge on a path is found in log(n) steps."""
    tree = arcs.take(arcs.in_tree)
    links = Links(
        np.arange(n_samples),
        np.full(n_samples, np.inf),
        np.full(n_samples, len(tree.weights)),
        np.ones(n_samples, dtype=np.int64),
    )
    _link(tree.lower, tree.higher, tree.weights, links, np.arange(n_samples))
    return links


@jit
def _link(lower, higher, weights, links, shortcut):
    size = links.size
    for e in range(len(weights)):
        a, b = find_root(shortcut, lower[e]), find_root(shortcut, higher[e])
        if size[a] < size[b]:
            a, b = b, a
        shortcut[b] = links.parent[b] = a
        links.weight[b] = weights[e]
        links.rank[b] = e
        size[a] += size[b]


@jit
def longest_edges_to(head, samples, links):
    """Find the longest edge on the path from each of some samples to the head, 0 for the head itself."""
    longest = np.empty(len(samples))
    for i in range(len(samples)):
        longest[i] = longest_edge_between(links, samples[i], head)
    return longest


@jit
def longest_edge_between(links, u, v):
    """Find the longest edge between two samples: the one that was joined earlier climbs, until both meet."""
    longest = 0.0
    while u != v:
        if links.rank[u] > links.rank[v]:
            u, v = v, u
        longest = links.weight[u]
        u = links.parent[u]
    return longest


def confirm_ties(
    tree: BlockTree, undecided: BoolArray, links: Links, settings: Settings, *members: Block
) -> IntArray:
    """Find the samples with an arc between classes that lies in some minimum spanning tree.

    `tree` is that of the `members`, one block or two. `undecided` marks those of its tied samples that are not
    yet known to be prototypes. `links` is the minimum spanning tree of all samples.
    """
    block = concatenate(
        *(b.take(np.isin(b.samples, tree.tied, assume_unique=True)) for b in members)
    )
    if not settings.metric.euclidean:
        return _confirm_by_rows(block, undecided, links, settings)
    distinct = collapse_duplicates(block.points, 0)
    space = build_space_tree(distinct.points)
    n_points, order = len(distinct.first), space.order
    farthest, undecided_points = np.full(n_points, -1.0), np.zeros(n_points, dtype=np.bool_)
    np.maximum.at(farthest, distinct.point_of, tree.reach)
    undecided_points[distinct.point_of[undecided]] = True
    classes = point_classes(distinct, block.codes)
    samples = block.samples[distinct.first]
    found = np.empty(n_points, dtype=np.bool_)
    found[order] = _confirm(
        space, samples[order], classes[order], farthest[order], undecided_points[order], links
    )
    return block.samples[found[distinct.point_of]]


def _confirm_by_rows(
    block: Block, undecided: BoolArray, links: Links, settings: Settings
) -> IntArray:
    """Confirm ties by all distances from undecided samples; boxes bound only Euclidean distances."""
    found = np.zeros(len(block.samples), dtype=np.bool_)
    row = settings.metric.rows(block.points, settings.n_threads)(np.arange(len(block.samples)))
    for i in np.flatnonzero(undecided).tolist():
        tied = row(i) == longest_edges_to(int(block.samples[i]), block.samples, links)
        tied &= block.codes != block.codes[i]
        found |= tied
        found[i] |= tied.any()
    return block.samples[found]


@jit
def _confirm(space, samples, classes, reach, undecided, links):
    """Mark ends of arcs that are as long as the longest edge between them, for all undecided points."""
    points, nodes, lows, highs = space.points, space.nodes, space.lows, space.highs
    n = points.shape[0]
    marks = np.zeros(n, dtype=np.bool_)
    stack = np.empty(128, dtype=np.int64)
    for u in range(n):
        if not undecided[u] or marks[u]:
            continue
        stack[0] = 0
        top = 1
        while top > 0 and not marks[u]:
            top -= 1
            node = stack[top]
            if box_distance(points, u, lows, highs, node) > reach[u]:
                continue
            if nodes[node]["right"] >= 0:
                top = push_children(nodes, node, points, u, stack, top)
                continue
            start = np.int64(nodes[node]["block"]) * LANES
            for v in range(start, min(start + LANES, n)):
                if classes[v] == classes[u]:
                    continue
                # An arc lies in some minimum spanning tree if no path between its ends has only shorter edges.
                squared = box_distance(points, u, points, points, v)
                if squared == longest_edge_between(links, samples[u], samples[v]):
                    marks[u] = True
                    marks[v] = True
                    break
    return marks


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


def boxes_reached(block: Block, links: Links, lows: FloatArray, highs: FloatArray) -> BoolArray:
    """Find which boxes lie within r(u) of some sample u of a block; the head is the root of the links."""
    bounds = longest_edges_to(int(np.argmax(links.weight)), block.samples, links)
    boxes = zip(lows, highs, strict=True)
    return np.array([(box_distances(block.points, *box) <= bounds).any() for box in boxes])


def near_each_other(first: Block, second: Block, links: Links, head: int) -> tuple[Block, Block]:
    """Keep the samples u of two blocks for which d(u, v) <= max(r(u), r(v)) is possible for some v."""
    if len(first.samples) == 0 or len(second.samples) == 0:
        return first, second
    both = (first, second)
    bounds = [longest_edges_to(head, block.samples, links) for block in both]
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
