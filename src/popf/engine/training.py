"""Train a forest: run the stages in order, from samples and classes to the competition of prototypes.

For f_max, an optimum path in the complete graph costs as much as the path in the minimum spanning tree. So the
competition needs no priority queue: one sweep from the leaves to the root of the tree and one back give all
costs. A sample that is not a prototype has only neighbours of its own class in the tree, so its optimum path
starts at a prototype of its class: the training error is 0, with or without ties.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from popf.engine.conquest import EuclideanConquest
from popf.engine.distances import WeightsAmong, kernel_rows
from popf.engine.points import DistinctPoints, distinct_points, order_points
from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import Team
from popf.engine.space_tree import SpaceTree, build_space_tree
from popf.engine.structures import (
    LOW_DIMENSION,
    BoolArray,
    FloatArray,
    Forest,
    IntArray,
    NeighbourLists,
    Resources,
    SpanningTree,
)
from popf.engine.trees import boruvka, neighbours, prim, tiles
from popf.engine.trees.boruvka import Search

# Minimum number of blocks per thread for matrix products.
BLOCKS_PER_THREAD = 4
# `choose_algorithm` estimates the work of a space tree from samples of these sizes, searching some blocks.
SAMPLE_SIZES = (2048, 8192)
MAX_SEARCHES = 32


class Trained(NamedTuple):
    """The result of training, for every sample."""

    tree: SpanningTree  # edges in no particular order
    prototypes: BoolArray  # whether each sample is one
    forest: Forest


class Neighbourhood(NamedTuple):
    """Neighbour lists in the order of an algorithm, and the search for arcs that are not listed."""

    lists: NeighbourLists
    search: Search
    order: IntArray  # the point at each position
    space: SpaceTree | None = None  # the space tree, if the algorithm builds one, for prediction


def train(weights_among: WeightsAmong, codes: IntArray) -> Trained:
    """Train with any metric, by Prim's algorithm; see `prim.spanning_tree` for `weights_among`."""
    tree, prototypes = prim.spanning_tree(weights_among, len(codes), codes)
    return Trained(tree, prototypes, compete(tree, prototypes, np.arange(len(codes))))


def train_euclidean(
    X: FloatArray, codes: IntArray, algorithm: str, resources: Resources
) -> tuple[Trained, EuclideanConquest]:
    """Train with Euclidean distances, by "kd_tree", "brute" or "prim", and index the samples for conquest.

    Weights and costs are squared and multiplied by ``4**-exponent``, with the exponent of the conquest.
    """
    n_threads = resources.n_threads
    distinct = distinct_points(X, n_threads)
    classes = point_classes(distinct, codes)
    tree, prototypes, order, space = _tree_of_points(distinct.points, classes, algorithm, resources)
    if len(classes) < len(codes):
        # Points with samples of several classes are prototypes, as these samples are at distance zero.
        prototypes[classes[order] < 0] = True
    forest = compete(tree, prototypes, order, n_threads)
    of_points = np.empty_like(prototypes)
    of_points[order] = prototypes
    found = Trained(_positions_to_points(tree, order, n_threads), of_points, forest)
    conquest = EuclideanConquest(distinct, codes, forest.costs, algorithm, resources, space)
    return copy_to_samples(found, distinct), conquest


def euclidean_tree(X: FloatArray, algorithm: str, resources: Resources) -> tuple[SpanningTree, int]:
    """Compute only the spanning tree, and its exponent; parameters as for `train_euclidean`."""
    distinct = distinct_points(X, resources.n_threads)
    one_class = np.zeros(len(distinct.points), dtype=np.int64)
    tree, _, order, _ = _tree_of_points(distinct.points, one_class, algorithm, resources)
    tree = _positions_to_points(tree, order, resources.n_threads)
    return attach_duplicates(tree, distinct)[0], distinct.exponent


def _tree_of_points(
    points: FloatArray, classes: IntArray, algorithm: str, resources: Resources
) -> tuple[SpanningTree, BoolArray, IntArray, SpaceTree | None]:
    """Return the tree and prototypes of reordered distinct points, their order, and the space tree."""
    if algorithm == "prim" or len(points) == 1:
        rows = kernel_rows("sqeuclidean", points, resources.n_threads)
        tree, prototypes = prim.spanning_tree(rows, len(points), classes)
        return tree, prototypes, np.arange(len(points)), None
    lists, search, order, space = find_neighbours(points, algorithm, resources)
    tree, prototypes = boruvka.spanning_tree(
        lists, order, classes[order], search, resources.n_threads
    )
    return tree, prototypes, order, space


def point_classes(distinct: DistinctPoints, codes: IntArray) -> IntArray:
    """Return the class of each point; a point with several classes gets a unique negative number."""
    classes = codes[distinct.first]
    if len(distinct.first) < len(codes):
        mixed = distinct.point_of[codes != classes[distinct.point_of]]
        classes[mixed] = -1 - mixed
    return classes


def find_neighbours(
    points: FloatArray, algorithm: str, resources: Resources, side: BoolArray | None = None
) -> Neighbourhood:
    """List the nearest neighbours of distinct points; parameters as for `train_euclidean`.

    `side` assigns each point to one of two sides. Matrix products are then computed between the sides only, and
    neighbours are points of the other side; a space tree still lists all neighbours.
    """
    n_threads, backend, split = resources.n_threads, resources.backend, None
    if backend is not None:
        order = np.arange(len(points))
        if side is not None:  # one side after the other
            order, split = np.argsort(side, kind="stable"), int(len(points) - side.sum())
            points = points[order]
        placed = backend.place(points)
        lists = backend.nearest_neighbours(placed, split)
        return Neighbourhood(lists, partial(backend.nearest_outsiders, placed, split=split), order)
    if algorithm == "kd_tree":
        space = build_space_tree(points, n_threads)
        n_neighbours = neighbours.neighbours_to_list(points.shape[1])
        lists = neighbours.nearest_neighbours(space, n_neighbours, n_threads)
        search = partial(neighbours.nearest_outsiders, space, n_threads)
        return Neighbourhood(lists, search, space.order, space)
    # Matrix products on the CPU.
    block = tiles.block_size(points.shape[1], resources.n_bytes // n_threads)
    if n_threads > 1:  # enough blocks to keep all threads busy
        share = len(points) // (BLOCKS_PER_THREAD * n_threads * LANES) * LANES
        block = min(block, max(tiles.SMALLEST_BLOCK, share))
    ordered = order_points(points, block, n_threads, side)
    sides = None if side is None else side[ordered.order[ordered.starts[:-1]]]  # of the blocks
    lists = tiles.nearest_neighbours(ordered, n_threads, sides)
    search = partial(tiles.nearest_outsiders, ordered, n_threads, sides=sides)
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


def copy_to_samples(found: Trained, distinct: DistinctPoints) -> Trained:
    """Copy results from distinct points back to the samples.

    A duplicate is conquered by the first sample at its point, unless both are prototypes.
    """
    first, point_of = distinct.first, distinct.point_of
    if len(first) == len(point_of):
        return found
    forest = found.forest
    tree, others, targets = attach_duplicates(found.tree, distinct)
    before = np.where(forest.predecessors < 0, -1, first[forest.predecessors])
    whole = Forest(
        forest.costs[point_of],
        before[point_of],
        forest.lengths[point_of],
        first[forest.roots][point_of],
    )
    prototypes = found.prototypes[point_of]
    prototypes[others] = prototypes[targets]
    whole.costs[others], whole.lengths[others] = whole.costs[targets], 0.0
    whole.predecessors[others] = np.where(prototypes[targets], -1, targets)
    whole.roots[others] = np.where(prototypes[targets], others, whole.roots[targets])
    return Trained(tree, prototypes, whole)


def attach_duplicates(
    tree: SpanningTree, distinct: DistinctPoints
) -> tuple[SpanningTree, IntArray, IntArray]:
    """Extend a tree of points to all samples; also return the duplicates, and the sample each is joined to."""
    first, point_of = distinct.first, distinct.point_of
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
    if n_features <= LOW_DIMENSION:
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


# The competition ----------------------------------------------------------------------------------------------

#: The state of a sample, in one cache line. `degree` counts the edges at the sample that are still in the tree,
#: `parent` is the exclusive or of their other ends, and `weight` that of the bits of their weights. When one
#: edge is left, these are its other end, which is the sample's parent, and its weight.
STATE = np.dtype(
    [
        ("parent", np.int32),
        ("degree", np.int32),
        ("weight", np.int64),
        ("cost", np.float64),
        ("predecessor", np.int32),
        ("root", np.int32),
    ]
)


def compete(
    tree: SpanningTree, prototypes: BoolArray, index: IntArray, n_threads: int = 1
) -> Forest:
    """Let the prototypes compete for all samples; there must be at least one prototype.

    The edges of the tree may be in any order. Sample i has the index ``index[i]`` in the forest. These indices
    break ties between predecessors, and the sample with index 0 is the root of the sweeps, so that the forest
    does not depend on the order of the samples here. The sweeps themselves run on one thread.
    """
    n = len(prototypes)
    states = np.empty(n, dtype=STATE)
    order = np.empty(n, dtype=np.int32)
    forest = Forest(
        np.empty(n), np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64)
    )
    with Team(n_threads) as team:
        # Each thread scans all edges for those of its own samples.
        edges = tree.lower, tree.higher, tree.weights.view(np.int64)
        team.map_shares(lambda low, high: _attach_edges(*edges, prototypes, states, low, high), n)
        lengths = states["weight"].view(np.float64)
        _sweep(states, lengths, order, prototypes, index, np.argmin(index))
        team.map_rows(
            lambda start, stop: _write_forest(states, lengths, index, forest, start, stop), n
        )
    return forest


@jit
def _attach_edges(lower, higher, bits, prototypes, states, low, high):
    """Initialise the states of the samples from `low` to `high` with their edges."""
    for v in range(low, high):
        state = states[v]
        state["parent"], state["degree"], state["weight"] = 0, 0, 0
        state["cost"] = 0.0 if prototypes[v] else np.inf
        state["predecessor"], state["root"] = -1, v
    for e in range(len(lower)):
        u, v = lower[e], higher[e]
        if low <= u < high:
            state = states[u]
            state["parent"] ^= v
            state["degree"] += 1
            state["weight"] ^= bits[e]
        if low <= v < high:
            state = states[v]
            state["parent"] ^= u
            state["degree"] += 1
            state["weight"] ^= bits[e]


@jit
def _sweep(states, lengths, order, prototypes, index, root):
    """Remove leaves until only the root is left, offering paths inwards; then offer paths outwards.

    `lengths` is a view of the weights in `states` as floats. A path reaches a node through a child or through
    its parent: the first sweep offers the best path through the children, the second that through the parent.
    """
    # Inwards. Invariant: the cost of a node is that of the best path through the leaves removed below it.
    taken = 0
    for start in range(len(states)):
        v = start
        # A parent that becomes a leaf is removed next.
        while states[v]["degree"] == 1 and v != root:
            leaf = states[v]
            u = leaf["parent"]
            inner = states[u]
            leaf["degree"] = 0
            inner["parent"] ^= v
            inner["degree"] -= 1
            inner["weight"] ^= leaf["weight"]
            order[taken] = v
            taken += 1
            if not prototypes[u]:
                offered = max(leaf["cost"], lengths[v])
                # Among children with equal offers, the one with the lowest index is the predecessor.
                if offered < inner["cost"] or (
                    offered == inner["cost"]
                    and inner["predecessor"] >= 0
                    and index[v] < index[inner["predecessor"]]
                ):
                    inner["cost"], inner["predecessor"] = offered, v
                    inner["root"] = leaf["root"]
            v = u
    states[root]["parent"] = -1
    # Outwards, parents before children: take the path through the parent if it is better. If the parent's own
    # path comes through this child, it costs no less.
    for i in range(taken - 1, -1, -1):
        v = order[i]
        leaf, inner = states[v], states[states[v]["parent"]]
        offered = max(inner["cost"], lengths[v])
        if offered < leaf["cost"]:  # so the leaf is not a prototype
            leaf["cost"], leaf["predecessor"] = offered, leaf["parent"]
            leaf["root"] = inner["root"]


@jit
def _write_forest(states, lengths, index, forest, start, stop):
    """Write the forest of the samples from `start` to `stop` from their states."""
    # Local variables, because each access to an array in the tuple updates an atomic reference count.
    costs, predecessors, roots = forest.costs, forest.predecessors, forest.roots
    before_lengths = forest.lengths
    for v in range(start, stop):
        state, name, before = states[v], index[v], states[v]["predecessor"]
        costs[name], roots[name] = state["cost"], index[state["root"]]
        if before < 0:
            predecessors[name], before_lengths[name] = -1, 0.0
        else:  # the edge to the parent, or that of the child
            other = v if before == state["parent"] else before
            predecessors[name], before_lengths[name] = index[before], lengths[other]
