"""From samples and classes to the forest: the stages in a row, and the last of them, the competition.

For f_max the best path in the complete graph costs what the path in the minimum spanning tree costs, so the
competition needs no queue: one sweep from the leaves to the root of the tree and one back settle all costs.
A sample that is no prototype has only neighbours of its own class in the tree, so every path ends at a
prototype of the right class: training makes no error, ties or not.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from popf.engine.conquest import EuclideanConquest
from popf.engine.distances import WeightsAmong, kernel_rows
from popf.engine.points import (
    DistinctPoints,
    SpaceTree,
    build_space_tree,
    distinct_points,
    order_points,
)
from popf.engine.runtime.jit import jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import Team
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

# Blocks of points for each thread at least, where products are taken.
BLOCKS_PER_THREAD = 4
# How `choose_algorithm` samples the work of a space tree: sizes of the samples, and blocks searched for.
SAMPLE_SIZES = (2048, 8192)
SAMPLE_SEARCHES = 32


class Trained(NamedTuple):
    """What training gives, for every sample."""

    tree: SpanningTree  # edges in no particular order
    prototypes: BoolArray  # whether each sample is one
    forest: Forest


class Neighbourhood(NamedTuple):
    """Neighbour lists in the order of an algorithm, and the search for what they do not hold."""

    lists: NeighbourLists
    search: Search
    order: IntArray  # the point at each position
    space: SpaceTree | None = None  # the space tree, where there is one, for prediction


def train(weights_among: WeightsAmong, codes: IntArray) -> Trained:
    """Train on any metric, by Prim's algorithm; see `prim.spanning_tree` for `weights_among`."""
    tree, prototypes = prim.spanning_tree(weights_among, len(codes), codes)
    return Trained(tree, prototypes, compete(tree, prototypes, np.arange(len(codes))))


def train_euclidean(
    X: FloatArray, codes: IntArray, algorithm: str, resources: Resources
) -> tuple[Trained, EuclideanConquest]:
    """Train on Euclidean distances, by "kd_tree", "brute" or "prim", and index the samples for conquest.

    Weights and costs are squared, and scaled by ``4**-exponent`` of the conquest.
    """
    n_threads = resources.n_threads
    distinct = distinct_points(X, n_threads)
    classes = point_classes(distinct, codes)
    tree, prototypes, order, space = _tree_of_points(distinct.points, classes, algorithm, resources)
    if len(classes) < len(codes):
        # Points with samples of several classes are prototypes: those samples are at distance zero.
        prototypes[classes[order] < 0] = True
    forest = compete(tree, prototypes, order, n_threads)
    of_points = np.empty_like(prototypes)
    of_points[order] = prototypes
    found = Trained(_by_point(tree, order, n_threads), of_points, forest)
    conquest = EuclideanConquest(distinct, codes, forest.costs, algorithm, resources, space)
    return copy_to_samples(found, distinct), conquest


def euclidean_tree(X: FloatArray, algorithm: str, resources: Resources) -> tuple[SpanningTree, int]:
    """Find the spanning tree alone, and its exponent; parameters as for `train_euclidean`."""
    distinct = distinct_points(X, resources.n_threads)
    one_class = np.zeros(len(distinct.points), dtype=np.int64)
    tree, _, order, _ = _tree_of_points(distinct.points, one_class, algorithm, resources)
    tree = _by_point(tree, order, resources.n_threads)
    return attach_duplicates(tree, distinct)[0], distinct.exponent


def _tree_of_points(
    points: FloatArray, classes: IntArray, algorithm: str, resources: Resources
) -> tuple[SpanningTree, BoolArray, IntArray, SpaceTree | None]:
    """Return the tree and prototypes of distinct points in some order, that order, and the space tree."""
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
    """Return the class of every point; one with several classes gets a negative number of its own."""
    classes = codes[distinct.first]
    if len(distinct.first) < len(codes):
        mixed = distinct.point_of[codes != classes[distinct.point_of]]
        classes[mixed] = -1 - mixed
    return classes


def find_neighbours(
    points: FloatArray, algorithm: str, resources: Resources, side: BoolArray | None = None
) -> Neighbourhood:
    """List the nearest neighbours of distinct points; parameters as for `train_euclidean`.

    `side` tells on which of two sides every point lies: then products are taken between the sides only, and
    neighbours are those on the other side. A space tree lists them all.
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
    # By matrix products on the processor.
    block = tiles.block_size(points.shape[1], resources.n_bytes // n_threads)
    if n_threads > 1:  # enough blocks that threads need not wait for one
        share = len(points) // (BLOCKS_PER_THREAD * n_threads * LANES) * LANES
        block = min(block, max(tiles.SMALLEST_BLOCK, share))
    ordered = order_points(points, block, n_threads, side)
    sides = None if side is None else side[ordered.order[ordered.starts[:-1]]]  # of the blocks
    lists = tiles.nearest_neighbours(ordered, n_threads, sides)
    search = partial(tiles.nearest_outsiders, ordered, n_threads, sides=sides)
    return Neighbourhood(lists, search, ordered.order)


def _by_point(tree: SpanningTree, order: IntArray, n_threads: int) -> SpanningTree:
    """Replace positions in an order by the points there."""
    lower, higher = np.empty_like(tree.lower), np.empty_like(tree.higher)

    def rename(ends: IntArray, names: IntArray, start: int, stop: int) -> None:
        np.take(order, ends[start:stop], out=names[start:stop], mode="clip")

    with Team(n_threads) as team:
        for ends, names in ((tree.lower, lower), (tree.higher, higher)):
            team.map_rows(partial(rename, ends, names), len(ends))
    return SpanningTree(lower, higher, tree.weights)


def copy_to_samples(found: Trained, distinct: DistinctPoints) -> Trained:
    """Copy results to the samples; each is conquered by the first at its point, unless both are prototypes."""
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
    """Make a tree of samples from one of points; also return the duplicates, and what each is joined to."""
    first, point_of = distinct.first, distinct.point_of
    lower, higher = first[tree.lower], first[tree.higher]
    target = np.arange(len(point_of))
    # Different points may be at no distance, if its square vanishes: then the lowest one counts.
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
    """Replace "auto" by "kd_tree" or "brute" for Euclidean distances; a GPU always takes "brute".

    How far a space tree prunes is a matter of the data's own dimension: a line in a hundred dimensions is still
    a line. So a few searches are made in the space tree of a sample, and the vector operations they take are
    extrapolated to all samples. No clock is read: the choice is the same every time.
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
    work = [neighbours.work_of_search(sample, SAMPLE_SEARCHES) for sample in samples]
    growth = 0.0
    if len(sizes) > 1:
        growth = float(np.clip(np.log(work[1] / work[0]) / np.log(sizes[1] / sizes[0]), 0.0, 1.0))
    expected = work[-1] * (n_samples / sizes[-1]) ** growth
    # Nanoseconds for all samples, measured over 5,000 to 60,000 samples of 8 to 50 features.
    by_tree = n_samples / LANES * expected * (20.0 + 1.7 * n_features)
    by_products = n_samples**2 / 2.0 * (1.8 + 0.037 * n_features)
    return "kd_tree" if by_tree < by_products else "brute"


# The competition ----------------------------------------------------------------------------------------------

#: What is known of a sample, in one cache line. Of the edges not yet taken off the tree: how many there are
#: at the sample, and the exclusive or of their other ends and of the bits of their weights. So where one
#: is left these are its other end, the sample's parent in the end, and its weight.
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
    """Let the prototypes, of which there is at least one, compete for all samples.

    The edges of the tree may come in any order. Sample i is called ``index[i]`` in the forest. These names
    break ties between predecessors, and the one called 0 is the root of the sweeps, so that the forest does
    not depend on the order of the samples here. The sweeps themselves take one thread.
    """
    n = len(prototypes)
    states = np.empty(n, dtype=STATE)
    order = np.empty(n, dtype=np.int32)
    forest = Forest(
        np.empty(n), np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64)
    )
    with Team(n_threads) as team:
        # Each thread has some of the samples, and looks for their edges among all.
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
    """Attach their edges to the samples from `low` to `high`."""
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
    """Take leaves off the tree until the root is left, offering paths inwards, and then outwards.

    The `lengths` are the weights in `states`, read as the numbers whose bits they are. Paths reach
    a node through its children or its parent: the first sweep offers the best of the former, the second that of
    the latter.
    """
    # Inwards. Invariant: the cost of a node is that of the best path through the leaves taken off below it.
    taken = 0
    for start in range(len(states)):
        v = start
        # A parent that has become a leaf by this is taken off next.
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
                # Of children with equal offers, the one of the lowest index is the predecessor.
                if offered < inner["cost"] or (
                    offered == inner["cost"]
                    and inner["predecessor"] >= 0
                    and index[v] < index[inner["predecessor"]]
                ):
                    inner["cost"], inner["predecessor"] = offered, v
                    inner["root"] = leaf["root"]
            v = u
    states[root]["parent"] = -1
    # Outwards, parents before children: the path through the parent, if it is better. Where that came through
    # this very child, it costs no less.
    for i in range(taken - 1, -1, -1):
        v = order[i]
        leaf, inner = states[v], states[states[v]["parent"]]
        offered = max(inner["cost"], lengths[v])
        if offered < leaf["cost"]:  # so it is no prototype
            leaf["cost"], leaf["predecessor"] = offered, leaf["parent"]
            leaf["root"] = inner["root"]


@jit
def _write_forest(states, lengths, index, forest, start, stop):
    """Write the forest of some samples from their states."""
    # Locals, because reading an array out of the tuple costs an atomic reference count each time.
    costs, predecessors, roots = forest.costs, forest.predecessors, forest.roots
    before_lengths = forest.lengths
    for v in range(start, stop):
        state, name, before = states[v], index[v], states[v]["predecessor"]
        costs[name], roots[name] = state["cost"], index[state["root"]]
        if before < 0:
            predecessors[name], before_lengths[name] = -1, 0.0
        else:  # the edge to its parent, or that of its child
            other = v if before == state["parent"] else before
            predecessors[name], before_lengths[name] = index[before], lengths[other]
