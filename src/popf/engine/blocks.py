"""The spanning tree of samples that lie in several blocks, from trees of two blocks at a time.

An arc of the minimum spanning tree of all samples lies in that of every subset that holds both of its
ends, so the whole tree lies in the union of the trees of all pairs of blocks; Kruskal's algorithm on these
candidates, in the order (weight, lower index, higher index), finds it. What is known of it beforehand spares
work: an arc longer than the longest edge on any path between its ends cannot belong to it.

Prototypes are the ends of every arc between classes that lies in *some* minimum spanning tree. Such an arc
lies in some minimum spanning tree of its two blocks, too. Either it lies in the very tree that the pair hands
over; then `merging.reduce_arcs` keeps it beside the tree for as long as it ties. Or it tied with an edge
there; then the pair tells of its ends, and `tie_search.confirm_ties` asks again when the whole tree is known.
Data without ties pay nothing.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from . import boruvka, kdtree, neighbours, prim, products, tiles
from .choice import choose_algorithm
from .distances import WeightsAmong, kernel_rows
from .lanes import padded_range
from .merging import NO_ARCS, Arcs, Links
from .nearby import Block, concatenate, near_each_other
from .points import DistinctPoints, _number, scaled_copy
from .structures import (
    ARC,
    BoolArray,
    Components,
    FloatArray,
    IntArray,
    NeighbourLists,
    SpanningTree,
)
from .training import Spanned, point_classes


class Grown(NamedTuple):
    """What a tree of one block or two tells of the whole.

    Attributes
    ----------
    arcs : Arcs
        Those that may belong to the tree of all samples.
    sure : ndarray of int64
        Samples that share their place with one of another class: prototypes, whatever else there is.
    tied : ndarray of int64
        Samples with an arc between classes that is as short as an edge of this tree, but not in it.
    reach : ndarray of float64
        How long such an arc is at most.
    algorithm : str
        What found them.
    """

    arcs: Arcs
    sure: IntArray
    tied: IntArray
    reach: FloatArray
    algorithm: str


class Means(NamedTuple):
    """How trees of blocks are computed.

    Attributes
    ----------
    algorithm : {"auto", "kd_tree", "brute", "prim"}
    n_threads : int
    n_bytes : int
        What blocks of matrix products may take.
    rows : callable or None
        ``rows(points, n_threads)`` gives the weights of a metric that is not Euclidean.
    """

    algorithm: str
    n_threads: int
    n_bytes: int
    rows: Any = None


def distinct_at(points: FloatArray, exponent: int) -> DistinctPoints:
    """Collapse samples that coincide, as `distinct_points` does, but keep their scale."""
    scaled = scaled_copy(points, 0)
    with np.errstate(over="ignore"):  # hashes wrap around
        point_of, first = _number(scaled.view(np.uint64))
    return DistinctPoints(scaled[first], exponent, first, point_of)


def tree_of_block(block: Block, means: Means) -> Grown:
    """Grow the minimum spanning tree of one block."""
    return _grow(block, np.zeros(len(block.samples), dtype=np.bool_), means)


def tree_of_two(
    first: Block, second: Block, means: Means, links: Links | None = None, prune: bool = True
) -> Grown:
    """Find the arcs between two blocks that lie in the minimum spanning tree of both.

    Parameters
    ----------
    first, second : Block
    means : Means
    links : Links, optional
        A spanning tree of all samples, not necessarily the shortest: arcs longer than the longest edge
        on its path between their ends are not looked for.
    prune : bool
        Whether distances are Euclidean, so that boxes bound them.

    Returns
    -------
    Grown
        With arcs that lead from one block to the other only.
    """
    if prune and links is not None:
        # Heads in both blocks, because one bounds well what lies near it only.
        for head in (_head(links, first), _head(links, second)):
            first, second = near_each_other(first, second, links, head)
    if len(first.samples) == 0 or len(second.samples) == 0:
        nobody = np.empty(0, dtype=np.int64)
        return Grown(NO_ARCS, nobody, nobody, np.empty(0), means.algorithm)
    both = concatenate([first, second])
    return _grow(both, np.isin(both.samples, second.samples, assume_unique=True), means)


def _head(links: Links, block: Block) -> int:
    """Choose the sample of a block that most others were joined to."""
    if len(block.samples) == 0:
        return 0
    return int(block.samples[np.argmax(links.size[block.samples])])


def _grow(block: Block, side: BoolArray, means: Means) -> Grown:
    """Grow the tree of a block whose samples are on two sides; keep arcs between them, if both exist."""
    distinct = None
    if means.rows is None:
        distinct = distinct_at(block.points, 0)
        classes = point_classes(distinct, block.codes)
        spanned, ties, algorithm = _span(distinct.points, classes, means)
    else:
        classes = block.codes
        spanned, ties = _span_by_rows(means.rows(block.points, means.n_threads), classes)
        algorithm = "prim"
    tree, reach = spanned.tree, np.full(len(classes), -1.0)
    reach[spanned.order] = ties
    lower, higher = spanned.order[tree.lower], spanned.order[tree.higher]
    sure = tied = np.empty(0, dtype=np.int64)
    lengths = np.empty(0)
    if distinct is not None and len(distinct.first) < len(block.samples):
        point_of = distinct.point_of
        many = np.bincount(point_of) > 1
        # An edge between classes to a place of several samples ties with those to the others there.
        tying = (classes[lower] != classes[higher]) & (many[lower] | many[higher])
        for ends in (lower[tying], higher[tying]):
            np.maximum.at(reach, ends, tree.weights[tying])
        sure = block.samples[classes[point_of] < 0]
        again = np.flatnonzero(distinct.first[point_of] != np.arange(len(point_of)))
        lower = np.concatenate([distinct.first[lower], distinct.first[point_of[again]]])
        higher = np.concatenate([distinct.first[higher], again])
        weights = np.concatenate([tree.weights, np.zeros(len(again))])
        reach = reach[point_of]
    else:
        weights = tree.weights
    if side.any():
        between = side[lower] != side[higher]
        lower, higher, weights = lower[between], higher[between], weights[between]
    if reach.max(initial=-1.0) >= 0.0:
        local = np.flatnonzero(reach >= 0.0)
        tied, lengths = block.samples[local], reach[local]
    lower, higher = np.minimum(lower, higher), np.maximum(lower, higher)
    cross = block.codes[lower] != block.codes[higher]
    arcs = Arcs(block.samples[lower], block.samples[higher], weights, cross)
    return Grown(arcs, sure, tied, lengths, algorithm)


def _span(points: FloatArray, classes: IntArray, means: Means) -> tuple[Spanned, FloatArray, str]:
    """Span distinct points; gives also how long arcs that tie are at most, by position, or -1."""
    n_threads = means.n_threads
    algorithm = choose_algorithm(points) if means.algorithm == "auto" else means.algorithm
    nothing = np.empty(0, dtype=np.int64)
    if len(points) == 1:
        tree = SpanningTree(nothing, nothing, np.empty(0))
        spanned = Spanned(tree, np.zeros(1, dtype=np.bool_), np.zeros(1, dtype=np.int64), None)
        return spanned, np.full(1, -1.0), algorithm
    search: boruvka.Search
    if algorithm == "kd_tree":
        space = kdtree.build(points, n_threads)
        n_neighbours = neighbours.neighbours_to_list(points.shape[1])
        lists = neighbours.nearest_neighbours(space, n_neighbours, n_threads)
        search, order = partial(neighbours.nearest_outsiders, space, n_threads), space.order
    elif algorithm == "brute":
        size = tiles.block_size(points.shape[1], means.n_bytes // n_threads)
        ordered = tiles.order_points(points, size)
        lists = products.nearest_neighbours(ordered, n_threads)
        search, order = partial(products.nearest_outsiders, ordered, n_threads), ordered.order
    else:
        spanned, reach = _span_by_rows(kernel_rows("sqeuclidean", points, n_threads), classes)
        return spanned, reach, algorithm
    tree, reach = _boruvka(lists, order, classes[order], search)
    return Spanned(tree, reach >= 0.0, order, None), reach, algorithm


def _span_by_rows(rows: WeightsAmong, classes: IntArray) -> tuple[Spanned, FloatArray]:
    """Span by Prim's algorithm, which does not tell who tied: so all its prototypes may have."""
    tree, prototypes = prim.spanning_tree(rows, len(classes), classes)
    reach = np.where(prototypes, tree.weights.max(initial=0.0), -1.0)
    return Spanned(tree, prototypes, np.arange(len(classes)), None), reach


def _boruvka(
    lists: NeighbourLists, index: IntArray, classes: IntArray, search: boruvka.Search
) -> tuple[SpanningTree, FloatArray]:
    """As `boruvka.spanning_tree`, but tell the ends of arcs that tie from those of edges."""
    n_points = len(index)
    components = Components(padded_range(n_points), index, classes)
    cursor = np.zeros(n_points, dtype=np.int32)
    picked = np.zeros(n_points, dtype=np.bool_)
    reach = np.full(n_points, -1.0)
    edges = np.empty((n_points - 1, 2), dtype=np.int64)
    weights = np.empty(n_points - 1)
    n_components, n_edges = n_points, 0
    while n_components > 1:
        best = np.empty(n_components, dtype=ARC)
        horizon = np.empty(n_components)
        boruvka._scan_lists(lists, cursor, components, best, horizon)
        certain = best["squared"] < horizon
        marked = np.zeros(n_points, dtype=np.bool_)
        if 4 * int(certain.sum()) < n_components:
            search(components, lists, best, certain, marked)
            certain[:] = True
        tied = certain & (best["tied"] != 0)
        if tied.any():
            boruvka._mark_tied(lists, cursor, components, best, certain, marked)
            longest = best["squared"][tied].max()
            reach[marked] = np.maximum(reach[marked], longest)
        n_edges, n_components = boruvka._merge(
            components, best, certain, picked, edges, weights, n_edges
        )
    return SpanningTree(edges[:, 0], edges[:, 1], weights), reach
