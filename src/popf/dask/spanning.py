"""The spanning tree of samples that lie in several blocks, from trees of two blocks at a time.

An arc of the minimum spanning tree of all samples lies in that of every subset that holds both of its
ends, so the whole tree lies in the union of the trees of all pairs of blocks; Kruskal's algorithm on these
candidates, in the order (weight, lower index, higher index), finds it. What is known of it beforehand spares
work: an arc longer than the longest edge on any path between its ends cannot belong to it. Where distances come
from products, the trees of the two blocks are given, which hold all arcs within them that can matter, and
only distances from one block to the other are computed: all pairs together cost what one machine would pay.

Prototypes are the ends of every arc between classes that lies in *some* minimum spanning tree. Such an arc
lies in some minimum spanning tree of its two blocks, too. Either it lies in the very tree that the pair hands
over; then `merging.reduce_arcs` keeps it beside the tree for as long as it ties. Or it tied with an edge
there; then the pair tells of its ends, and `tie_search.confirm_ties` asks again when the whole tree is known.
Data without ties pay nothing.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from popf.dask.kruskal import NO_ARCS, Arcs, Links
from popf.dask.nearby import Block, concatenate, near_each_other
from popf.engine import space_tree as kdtree
from popf.engine import tiles
from popf.engine.choice import choose_algorithm
from popf.engine.distances import WeightsAmong, kernel_rows
from popf.engine.points import DistinctPoints, _number, scaled_copy
from popf.engine.structures import BoolArray, FloatArray, IntArray, NeighbourLists, SpanningTree
from popf.engine.training import Spanned, point_classes
from popf.engine.trees import boruvka, neighbours, prim
from popf.engine.trees import tile_neighbours as products
from popf.engine.trees import tile_outsiders as product_outsiders


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
    device : str
        Where neighbours are looked for; see `device.kernels_for`.
    """

    algorithm: str
    n_threads: int
    n_bytes: int
    rows: Any = None
    device: str = "cpu"


def choose_means(block: Block, means: Means) -> Means:
    """Choose the algorithm, if that is left open, by what suits one block.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.dask.spanning import Means, choose_means
    >>> from popf.dask.nearby import Block
    >>> line = Block(np.arange(3), np.eye(3, 1), np.zeros(3, int), np.ones(3))
    >>> choose_means(line, Means("auto", 1, 2**20)).algorithm
    'kd_tree'
    """
    algorithm = means.algorithm
    if means.rows is not None:
        algorithm = "prim"
    elif means.device != "cpu":
        algorithm = "brute"
    elif algorithm == "auto":
        algorithm = choose_algorithm(block.points)
    return means._replace(algorithm=algorithm)


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
    first: Block,
    second: Block,
    means: Means,
    trees: tuple[Grown, Grown] | None = None,
    links: Links | None = None,
    prune: bool = True,
) -> Grown:
    """Find the arcs between two blocks that lie in the minimum spanning tree of both.

    Parameters
    ----------
    first, second : Block
    means : Means
    trees : pair of Grown, optional
        Those of the two blocks.
    links : Links, optional
        A spanning tree of all samples, not necessarily the shortest: arcs longer than the longest edge
        on its path between their ends are not looked for. Products do not gain by that.
    prune : bool
        Whether distances are Euclidean, so that boxes bound them.

    Returns
    -------
    Grown
        With arcs that lead from one block to the other only.
    """
    means = choose_means(first, means)
    if prune and links is not None and means.algorithm != "brute":
        # Heads in both blocks, because one bounds well what lies near it only.
        for head in (_head(links, first), _head(links, second)):
            first, second = near_each_other(first, second, links, head)
    if len(first.samples) == 0 or len(second.samples) == 0:
        nobody = np.empty(0, dtype=np.int64)
        return Grown(NO_ARCS, nobody, nobody, np.empty(0), means.algorithm)
    both = concatenate([first, second])
    side = np.isin(both.samples, second.samples, assume_unique=True)
    return _grow(both, side, means, trees)


def _head(links: Links, block: Block) -> int:
    """Choose the sample of a block that most others were joined to."""
    if len(block.samples) == 0:
        return 0
    return int(block.samples[np.argmax(links.size[block.samples])])


def _grow(
    block: Block, side: BoolArray, means: Means, trees: tuple[Grown, Grown] | None = None
) -> Grown:
    """Grow the tree of a block whose samples are on two sides; keep arcs between them, if both exist."""
    distinct, algorithm = None, "prim"
    if means.rows is None:
        distinct = distinct_at(block.points, 0)
        classes = point_classes(distinct, block.codes)
        algorithm = choose_means(block, means).algorithm
        known = None
        if trees is not None and algorithm == "brute":
            known = _known_arcs(block, side, distinct, trees)
        spanned, ties = _span(distinct.points, classes, means, algorithm, known)
    else:
        classes = block.codes
        spanned, ties = _span_by_rows(means.rows(block.points, means.n_threads), classes)
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


class Known(NamedTuple):
    """What is known of points on two sides before they are joined.

    Attributes
    ----------
    side : ndarray of shape (n_points,)
    arcs : SpanningTree
        Arcs within the sides. Those within them that are not among these belong to no tree that matters.
    """

    side: BoolArray
    arcs: SpanningTree


def _known_arcs(
    block: Block, side: BoolArray, distinct: DistinctPoints, trees: tuple[Grown, Grown]
) -> Known | None:
    """Give the arcs of two trees as points, unless some point lies on both sides."""
    point_of = distinct.point_of
    side_of = side[distinct.first]
    if (side_of[point_of] != side).any():
        return None
    arcs = Arcs(*map(np.concatenate, zip(*(tree.arcs for tree in trees), strict=True)))
    ends = []
    here = np.ones(len(arcs.weights), dtype=np.bool_)
    for samples in (arcs.lower, arcs.higher):  # some may have been too far away
        at = np.minimum(np.searchsorted(block.samples, samples), len(block.samples) - 1)
        here &= block.samples[at] == samples
        ends.append(point_of[at])
    here &= ends[0] != ends[1]
    return Known(side_of, SpanningTree(ends[0][here], ends[1][here], arcs.weights[here]))


def _span(
    points: FloatArray, classes: IntArray, means: Means, algorithm: str, known: Known | None
) -> tuple[Spanned, FloatArray]:
    """Span distinct points; gives also how long arcs that tie are at most, by position, or -1."""
    n_threads = means.n_threads
    reach = np.full(len(points), -1.0)
    if len(points) == 1:
        nothing = np.empty(0, dtype=np.int64)
        tree = SpanningTree(nothing, nothing, np.empty(0))
        spanned = Spanned(tree, np.zeros(1, dtype=np.bool_), np.zeros(1, dtype=np.int64), None)
        return spanned, reach
    search: boruvka.Search
    if algorithm == "kd_tree":
        space = kdtree.build(points, n_threads)
        n_neighbours = neighbours.neighbours_to_list(points.shape[1])
        lists = neighbours.nearest_neighbours(space, n_neighbours, n_threads)
        search, order = partial(neighbours.nearest_outsiders, space, n_threads), space.order
    elif algorithm == "brute":
        look = _look_by_products if means.device == "cpu" else _look_by_device
        lists, search, order = look(points, means, known)
    else:
        return _span_by_rows(kernel_rows("sqeuclidean", points, n_threads), classes)
    given = None
    if known is not None:
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        lower, higher, weights = known.arcs
        given = SpanningTree(position[lower], position[higher], weights)
    tree, prototypes = boruvka.spanning_tree(
        lists, order, classes[order], search, n_threads, given, reach
    )
    return Spanned(tree, prototypes, order, None), reach


Look = tuple[NeighbourLists, boruvka.Search, IntArray]


def _look_by_products(points: FloatArray, means: Means, known: Known | None) -> Look:
    """List neighbours by products, on the other side if there are two."""
    size = tiles.block_size(points.shape[1], means.n_bytes // means.n_threads)
    sides = None
    if known is None:
        ordered = tiles.order_points(points, size)
    else:
        parts = [np.flatnonzero(known.side == side) for side in (False, True)]
        halves = [tiles.order_points(points[part], size) for part in parts]
        ordered = tiles.side_by_side(halves, parts)
        sides = np.repeat([False, True], [len(half.radii) for half in halves])
    lists = products.nearest_neighbours(ordered, means.n_threads, sides)
    search = partial(product_outsiders.nearest_outsiders, ordered, means.n_threads, sides=sides)
    return lists, search, ordered.order


def _look_by_device(points: FloatArray, means: Means, known: Known | None) -> Look:
    """List neighbours on a device, on the other side if there are two."""
    from popf.engine.gpu import kernels_for
    from popf.engine.gpu import points as device_points
    from popf.engine.gpu import tree as device_tree

    order, split = np.arange(len(points)), None
    if known is not None:
        order = np.argsort(known.side, kind="stable")
        split = int(len(points) - known.side.sum())
    laid = device_points.DevicePoints(points[order], kernels_for(means.device))
    lists = device_tree.nearest_neighbours(laid, split=split)
    search = partial(device_tree.nearest_outsiders, laid, device_points.ROWS, split=split)
    return lists, search, order


def _span_by_rows(rows: WeightsAmong, classes: IntArray) -> tuple[Spanned, FloatArray]:
    """Span by Prim's algorithm, which does not tell who tied: so all its prototypes may have."""
    tree, prototypes = prim.spanning_tree(rows, len(classes), classes)
    reach = np.where(prototypes, tree.weights.max(initial=0.0), -1.0)
    return Spanned(tree, prototypes, np.arange(len(classes)), None), reach
