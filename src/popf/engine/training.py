"""From samples and classes to the forest: the stages in a row."""

from functools import partial
from typing import NamedTuple

import numpy as np

from popf.engine import space_tree as kdtree
from popf.engine import tiles
from popf.engine.backends import Backend
from popf.engine.conquest.euclidean import EuclideanConquest
from popf.engine.distances import WeightsAmong, kernel_rows
from popf.engine.points import DistinctPoints, distinct_points
from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import Team
from popf.engine.space_tree import SpaceTree
from popf.engine.structures import (
    BoolArray,
    FloatArray,
    Forest,
    IntArray,
    NeighbourLists,
    SpanningTree,
)
from popf.engine.trees import boruvka, neighbours, prim
from popf.engine.trees import tile_neighbours as products
from popf.engine.trees import tile_outsiders as product_outsiders
from popf.engine.trees.competition import compete

# Blocks of points for each thread at least, where products are taken.
BLOCKS_PER_THREAD = 4


class Trained(NamedTuple):
    """What training gives, for every sample.

    Attributes
    ----------
    tree : SpanningTree
        Edges in no particular order.
    prototypes : ndarray of shape (n_samples,)
        Whether each sample is one.
    forest : Forest
    """

    tree: SpanningTree
    prototypes: BoolArray
    forest: Forest


class Spanned(NamedTuple):
    """A spanning tree over points that an algorithm has put in an order of its own.

    Attributes
    ----------
    tree : SpanningTree
        In positions of that order, with squared weights.
    prototypes : ndarray of shape (n_points,)
        By position.
    order : ndarray of shape (n_points,)
        The point at each position.
    space : SpaceTree or None
        The space tree, where there is one, for prediction.
    """

    tree: SpanningTree
    prototypes: BoolArray
    order: IntArray
    space: SpaceTree | None


def train(weights_among: WeightsAmong, codes: IntArray) -> Trained:
    """Train on any metric, by Prim's algorithm.

    Parameters
    ----------
    weights_among : callable
        See `prim.spanning_tree`.
    codes : ndarray of shape (n_samples,)
        The class of every sample, numbered from 0.

    Returns
    -------
    Trained
    """
    tree, prototypes = prim.spanning_tree(weights_among, len(codes), codes)
    return Trained(tree, prototypes, compete(tree, prototypes, np.arange(len(codes))))


def train_euclidean(
    X: FloatArray,
    codes: IntArray,
    algorithm: str,
    n_threads: int,
    block: int,
    backend: Backend | None = None,
) -> tuple[Trained, EuclideanConquest]:
    """Train on Euclidean distances.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        The class of every sample, numbered from 0.
    algorithm : {"kd_tree", "brute", "prim"}
    n_threads : int
    block : int
        How many points make a block of a matrix product.
    backend : Backend, optional
        The device that finds neighbours and conquers, by products, instead of the processor.

    Returns
    -------
    trained : Trained
        Weights and costs are squared, and scaled by ``4**-exponent``.
    conquest : EuclideanConquest
        Ready to conquer new samples.
    """
    distinct = distinct_points(X, n_threads)
    classes = point_classes(distinct, codes)
    spanned = span(distinct.points, classes, algorithm, n_threads, block, backend)
    order = spanned.order
    if len(classes) < len(codes):
        # Points with samples of several classes are prototypes: those samples are at distance zero.
        spanned.prototypes[classes[order] < 0] = True
    forest = compete(spanned.tree, spanned.prototypes, order, n_threads)
    trained = copy_to_samples(spanned, forest, distinct, n_threads)
    conquest = EuclideanConquest(algorithm, distinct, codes, block, backend)
    conquest.lay_out(distinct.points, spanned.space, order, forest.costs, n_threads)
    return trained, conquest


def point_classes(distinct: DistinctPoints, codes: IntArray) -> IntArray:
    """Give the class of every point; one with several classes gets a negative number of its own."""
    classes = codes[distinct.first]
    if len(distinct.first) < len(codes):
        mixed = distinct.point_of[codes != classes[distinct.point_of]]
        classes[mixed] = -1 - mixed
    return classes


class Neighbourhood(NamedTuple):
    """Neighbour lists in the order of an algorithm, and the search for what they do not hold.

    Attributes
    ----------
    lists : NeighbourLists
    search : boruvka.Search
    order : ndarray of shape (n_points,)
        The point at each position.
    space : SpaceTree or None
        The space tree, where there is one, for prediction.
    """

    lists: NeighbourLists
    search: boruvka.Search
    order: IntArray
    space: SpaceTree | None = None


def span(
    points: FloatArray,
    classes: IntArray,
    algorithm: str,
    n_threads: int,
    block: int,
    backend: Backend | None = None,
) -> Spanned:
    """Grow the minimum spanning tree of distinct points; parameters as for `train_euclidean`."""
    if algorithm == "prim" or len(points) == 1:
        rows = kernel_rows("sqeuclidean", points, n_threads)
        tree, prototypes = prim.spanning_tree(rows, len(points), classes)
        return Spanned(tree, prototypes, np.arange(len(points)), None)
    lists, search, order, space = find_neighbours(points, algorithm, n_threads, block, backend)
    tree, prototypes = boruvka.spanning_tree(lists, order, classes[order], search, n_threads)
    return Spanned(tree, prototypes, order, space)


def find_neighbours(
    points: FloatArray,
    algorithm: str,
    n_threads: int,
    block: int,
    backend: Backend | None = None,
    side: BoolArray | None = None,
) -> Neighbourhood:
    """List the nearest neighbours of distinct points; parameters as for `train_euclidean`.

    `side` tells on which of two sides every point lies: then products are taken between the sides only, and
    neighbours are those on the other side. A space tree lists them all.
    """
    if backend is not None:
        return _neighbours_by_backend(points, backend, side)
    if algorithm == "kd_tree":
        space = kdtree.build(points, n_threads)
        n_neighbours = neighbours.neighbours_to_list(points.shape[1])
        lists = neighbours.nearest_neighbours(space, n_neighbours, n_threads)
        search = partial(neighbours.nearest_outsiders, space, n_threads)
        return Neighbourhood(lists, search, space.order, space)
    return _neighbours_by_products(points, n_threads, block, side)


def _neighbours_by_products(
    points: FloatArray, n_threads: int, block: int, side: BoolArray | None
) -> Neighbourhood:
    if n_threads > 1:  # enough blocks that threads need not wait for one
        share = len(points) // (BLOCKS_PER_THREAD * n_threads * LANES) * LANES
        block = min(block, max(tiles.SMALLEST_BLOCK, share))
    sides = None  # of the blocks
    if side is None:
        ordered = tiles.order_points(points, block, n_threads)
    else:
        parts = [np.flatnonzero(side == which) for which in (False, True)]
        halves = [tiles.order_points(points[part], block, n_threads) for part in parts]
        ordered = tiles.side_by_side(halves, parts)
        sides = np.repeat([False, True], [len(half.radii) for half in halves])
    lists = products.nearest_neighbours(ordered, n_threads, sides)
    search = partial(product_outsiders.nearest_outsiders, ordered, n_threads, sides=sides)
    return Neighbourhood(lists, search, ordered.order)


def _neighbours_by_backend(
    points: FloatArray, backend: Backend, side: BoolArray | None
) -> Neighbourhood:
    order, split = np.arange(len(points)), None
    if side is not None:
        order = np.argsort(side, kind="stable")
        split = int(len(points) - side.sum())
        points = points[order]
    placed = backend.place(points)
    lists = backend.nearest_neighbours(placed, split)
    search = partial(backend.nearest_outsiders, placed, split=split)
    return Neighbourhood(lists, search, order)


def copy_to_samples(
    spanned: Spanned, forest: Forest, distinct: DistinctPoints, n_threads: int = 1
) -> Trained:
    """Copy results from distinct points back to the samples."""
    n_samples = len(distinct.point_of)
    # The first sample at each position of the order that the algorithm has chosen.
    sample = np.empty(len(distinct.first), dtype=np.int64)
    whole = Forest(
        np.empty(n_samples),
        np.empty(n_samples, dtype=np.int64),
        np.empty(n_samples),
        np.empty(n_samples, dtype=np.int64),
    )
    prototypes = np.empty(n_samples, dtype=np.bool_)
    edges = spanned.tree
    tree = SpanningTree(np.empty_like(sample[1:]), np.empty_like(sample[1:]), edges.weights)
    with Team(n_threads) as team:
        team.map_rows(partial(_take, distinct.first, spanned.order, sample), len(sample))
        found = forest, spanned.prototypes, sample, whole, prototypes
        team.map_rows(lambda start, stop: _scatter(*found, start, stop), len(sample))
        for ends, names in ((edges.lower, tree.lower), (edges.higher, tree.higher)):
            team.map_rows(partial(_take, sample, ends, names), len(ends))
    if len(distinct.first) < n_samples:
        tree = _hang_duplicates(tree, prototypes, whole, distinct)
    return Trained(tree, prototypes, whole)


def _hang_duplicates(
    tree: SpanningTree, prototypes: BoolArray, whole: Forest, distinct: DistinctPoints
) -> SpanningTree:
    """Hang a sample on another's place on the first one there, unless it is a prototype itself."""
    n_samples = len(distinct.point_of)
    first = distinct.first[distinct.point_of]
    again = np.flatnonzero(first != np.arange(n_samples))
    # Different points may be at no distance, if its square vanishes: then the lowest one counts.
    hook = np.arange(n_samples)
    level = np.flatnonzero(tree.weights == 0.0)
    ends = tree.lower[level], tree.higher[level]
    np.minimum.at(hook, np.maximum(*ends), np.minimum(*ends))
    first = hook[first[again]]
    prototypes[again] = prototypes[first]
    whole.costs[again] = whole.costs[first]
    whole.lengths[again] = 0.0
    whole.predecessors[again] = np.where(prototypes[first], -1, first)
    whole.roots[again] = np.where(prototypes[first], again, whole.roots[first])
    return SpanningTree(
        np.concatenate([tree.lower, first]),
        np.concatenate([tree.higher, again]),
        np.concatenate([tree.weights, np.zeros(len(again))]),
    )


def _take(values: IntArray, at: IntArray, out: IntArray, start: int, stop: int) -> None:
    np.take(values, at[start:stop], out=out[start:stop], mode="clip")


@jit
def _scatter(forest, is_prototype, sample, whole, prototypes, start, stop):
    """Write what is known by position to the first sample of each."""
    # Locals, because reading an array out of the tuple costs an atomic reference count each time.
    costs, lengths = whole.costs, whole.lengths
    predecessors, roots = whole.predecessors, whole.roots
    costs_at, lengths_at = forest.costs, forest.lengths
    predecessor_at, root_at = forest.predecessors, forest.roots
    for position in range(start, stop):
        i = sample[position]
        before = predecessor_at[position]
        prototypes[i] = is_prototype[position]
        costs[i] = costs_at[position]
        lengths[i] = lengths_at[position]
        predecessors[i] = -1 if before < 0 else sample[before]
        roots[i] = sample[root_at[position]]
