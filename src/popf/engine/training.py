"""Train a forest: minimum spanning tree, prototypes, competition, and the choice of an algorithm."""

from functools import partial
from typing import NamedTuple

import numpy as np

from popf.engine.competition import compete
from popf.engine.conquest import EuclideanConquest
from popf.engine.distances import WeightsAmong, kernel_rows
from popf.engine.mst import boruvka, neighbours, neighbours_by_tiles, prim
from popf.engine.mst.boruvka import Search
from popf.engine.points import DistinctPoints, distinct_points, order_points
from popf.engine.prototypes import find_prototypes, point_classes
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import Team
from popf.engine.space_tree import SpaceTree, build_space_tree
from popf.engine.structures import (
    LOW_DIMENSION,
    BoolArray,
    FloatArray,
    IntArray,
    NeighbourLists,
    Resources,
    SpanningTree,
    TrainingResult,
)
from popf.engine.tiles import SMALLEST_BLOCK, block_size

# Minimum number of blocks per thread for matrix products.
BLOCKS_PER_THREAD = 4
# Up to these numbers of samples and features, a space tree is faster than an estimate of its work, and matrix
# products, whose kernels take long to compile, would hardly be faster.
SMALL_SAMPLES, SMALL_FEATURES = 1000, 32
# `choose_algorithm` estimates the work of a space tree from samples of these sizes, searching some blocks.
SAMPLE_SIZES = (2048, 8192)
MAX_SEARCHES = 32


class Neighbourhood(NamedTuple):
    """Neighbour lists in the order of an algorithm, and the search for arcs that are not listed."""

    lists: NeighbourLists
    search: Search
    order: IntArray  # the point at each position
    space: SpaceTree | None = None  # the space tree, if the algorithm builds one, for prediction


def train(weights_among: WeightsAmong, codes: IntArray) -> TrainingResult:
    """Train with any metric, by Prim's algorithm; see `prim.spanning_tree` for `weights_among`."""
    tree, tied = prim.spanning_tree(weights_among, len(codes), codes)
    prototypes = find_prototypes(tree, codes, tied)
    return TrainingResult(tree, prototypes, compete(tree, prototypes, np.arange(len(codes))))


def train_euclidean(
    X: FloatArray, codes: IntArray, algorithm: str, resources: Resources
) -> tuple[TrainingResult, EuclideanConquest]:
    """Train with Euclidean distances, by "kd_tree", "brute" or "prim", and index the samples for conquest.

    Weights and costs are squared and multiplied by ``4**-exponent``, with the exponent of the conquest.
    """
    with Team(resources.n_threads):
        return _train(X, codes, algorithm, resources)


def _train(
    X: FloatArray, codes: IntArray, algorithm: str, resources: Resources
) -> tuple[TrainingResult, EuclideanConquest]:
    n_threads = resources.n_threads
    distinct = distinct_points(X, n_threads)
    classes = point_classes(distinct, codes)
    tree, tied, order, space = _tree_of_points(distinct.points, classes, algorithm, resources)
    prototypes = find_prototypes(tree, classes[order], tied)
    of_points = np.empty_like(prototypes)
    of_points[order] = prototypes
    of_samples = of_points[distinct.point_of]
    whole, others, targets = attach_duplicates(
        _positions_to_points(tree, order, n_threads), distinct
    )
    if len(others) == 0:  # points that are close together are also close in this order
        forest = compete(tree, prototypes, order, n_threads)
    else:
        of_samples[others] = of_samples[targets]
        forest = compete(whole, of_samples, np.arange(len(codes)), n_threads)
    costs = forest.costs[distinct.first]
    conquest = EuclideanConquest(distinct, codes, costs, algorithm, resources, space)
    return TrainingResult(whole, of_samples, forest), conquest


def euclidean_tree(X: FloatArray, algorithm: str, resources: Resources) -> tuple[SpanningTree, int]:
    """Compute only the spanning tree, and its exponent; parameters as for `train_euclidean`."""
    with Team(resources.n_threads):
        distinct = distinct_points(X, resources.n_threads)
        one_class = np.zeros(len(X), dtype=np.int64)
        return tree_of_samples(distinct, one_class, algorithm, resources)[0], distinct.exponent


def tree_of_samples(
    distinct: DistinctPoints, codes: IntArray, algorithm: str, resources: Resources
) -> tuple[SpanningTree, BoolArray]:
    """Compute the spanning tree, and mark the ends of arcs between classes that tie with an edge."""
    classes = point_classes(distinct, codes)
    tree, tied, order, _ = _tree_of_points(distinct.points, classes, algorithm, resources)
    # An edge to a point of several classes ties with the arcs to its other samples.
    mixed = classes[order] < 0
    at_mixed = mixed[tree.lower] | mixed[tree.higher]
    tied[mixed] = tied[tree.lower[at_mixed]] = tied[tree.higher[at_mixed]] = True
    of_points = np.empty_like(tied)
    of_points[order] = tied
    tree = _positions_to_points(tree, order, resources.n_threads)
    return attach_duplicates(tree, distinct)[0], of_points[distinct.point_of]


def _tree_of_points(
    points: FloatArray, classes: IntArray, algorithm: str, resources: Resources
) -> tuple[SpanningTree, BoolArray, IntArray, SpaceTree | None]:
    """Return the tree and tied ends of reordered distinct points, their order, and the space tree."""
    if algorithm == "prim" or len(points) == 1:
        rows = kernel_rows("sqeuclidean", points, resources.n_threads)
        tree, tied = prim.spanning_tree(rows, len(points), classes)
        return tree, tied, np.arange(len(points)), None
    lists, search, order, space = _find_neighbours(points, algorithm, resources)
    tree, tied = boruvka.spanning_tree(lists, order, classes[order], search, resources.n_threads)
    return tree, tied, order, space


def _find_neighbours(points: FloatArray, algorithm: str, resources: Resources) -> Neighbourhood:
    """List the nearest neighbours of distinct points; parameters as for `train_euclidean`."""
    n_threads, backend = resources.n_threads, resources.backend
    if backend is not None:
        placed = backend.place(points)
        lists = backend.nearest_neighbours(placed)
        search = partial(backend.nearest_outsiders, placed)
        return Neighbourhood(lists, search, np.arange(len(points)))
    if algorithm == "kd_tree":
        space = build_space_tree(points, n_threads)
        n_neighbours = neighbours.neighbours_to_list(points.shape[1])
        lists = neighbours.nearest_neighbours(space, n_neighbours, n_threads)
        search = partial(neighbours.nearest_outsiders, space, n_threads)
        return Neighbourhood(lists, search, space.order, space)
    # Matrix products on the CPU.
    block = block_size(points.shape[1], resources.n_bytes // n_threads)
    if n_threads > 1:  # enough blocks to keep all threads busy
        share = len(points) // (BLOCKS_PER_THREAD * n_threads * LANES) * LANES
        block = min(block, max(SMALLEST_BLOCK, share))
    ordered = order_points(points, block, n_threads)
    lists = neighbours_by_tiles.nearest_neighbours(ordered, n_threads)
    search = partial(neighbours_by_tiles.nearest_outsiders, ordered, n_threads)
    return Neighbourhood(lists, search, ordered.order)


def _positions_to_points(tree: SpanningTree, order: IntArray, n_threads: int) -> SpanningTree:
    """Replace positions in `order` by the points at these positions."""
    lower, higher = np.empty_like(tree.lower), np.empty_like(tree.higher)

    def rename(ends: IntArray, names: IntArray, start: int, stop: int) -> None:
        np.take(order, ends[start:stop], out=names[start:stop], mode="clip")

    with Team(n_threads) as team:
        for ends, names in ((tree.lower, lower), (tree.higher, higher)):
            team.map_rows(partial(rename, ends, names), len(ends))
    return SpanningTree(lower, higher, tree.weights)


def attach_duplicates(
    tree: SpanningTree, distinct: DistinctPoints
) -> tuple[SpanningTree, IntArray, IntArray]:
    """Extend a tree of points to all samples; also return the duplicates, and the sample each is joined to.

    An arc of length 0 joins a duplicate to the first sample at its point, which conquers it unless
    both are prototypes.
    """
    first, point_of = distinct.first, distinct.point_of
    if len(first) == len(point_of):
        return tree, first[:0], first[:0]
    lower, higher = first[tree.lower], first[tree.higher]
    target = np.arange(len(point_of))
    # Distinct points are at distance 0 if its square underflows: then join to the lowest one.
    level = np.flatnonzero(tree.weights == 0.0)
    ends = lower[level], higher[level]
    np.minimum.at(target, np.maximum(*ends), np.minimum(*ends))
    others = np.flatnonzero(first[point_of] != np.arange(len(point_of)))
    targets = target[first[point_of[others]]]
    whole = SpanningTree(
        np.concatenate([lower, targets]),
        np.concatenate([higher, others]),
        np.concatenate([tree.weights, np.zeros(len(others))]),
    )
    return whole, others, targets


def choose_algorithm(X: FloatArray, algorithm: str, resources: Resources) -> str:
    """Replace "auto" by "kd_tree" or "brute" for Euclidean distances; a GPU always uses "brute".

    How well a space tree prunes depends on the intrinsic dimension of the data: a line in a hundred dimensions
    is still a line. So a few searches are run in the space tree of a sample, and the vector operations needed
    are extrapolated to all samples. No time is measured, so the choice is deterministic.
    """
    if resources.backend is not None:
        return "brute"
    if algorithm != "auto":
        return algorithm
    n_samples, n_features = X.shape
    is_small = n_samples <= SMALL_SAMPLES and n_features <= SMALL_FEATURES
    if is_small or n_features <= LOW_DIMENSION:
        return "kd_tree"
    sizes = sorted({min(size, n_samples) for size in SAMPLE_SIZES})
    samples = [X[:: n_samples // size][:size] for size in sizes]
    work = [neighbours.work_of_search(sample, MAX_SEARCHES) for sample in samples]
    growth = 0.0
    if len(sizes) > 1:
        growth = float(np.clip(np.log(work[1] / work[0]) / np.log(sizes[1] / sizes[0]), 0.0, 1.0))
    expected = work[-1] * (n_samples / sizes[-1]) ** growth
    # Nanoseconds for all samples, from timings of 5,000 to 60,000 samples with 8 to 50 features.
    by_tree = n_samples / LANES * expected * (20.0 + 1.7 * n_features)
    by_products = n_samples**2 / 2.0 * (1.8 + 0.037 * n_features)
    return "kd_tree" if by_tree < by_products else "brute"
