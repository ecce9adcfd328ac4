"""Prepare samples for the engine: copy, scale and de-duplicate them, and group them in space.

In low dimension points are sorted into a *space tree*, in high dimension into blocks. The space tree is a
k-d tree: it splits points at the median of the widest side, or where categories change, down to blocks of
sixteen. Nodes are stored in preorder, so the left child of node i is i + 1. All blocks but the last are full,
so no memory is wasted on padding. Bounding boxes are tight: they enclose the points, not the cells.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import ONE_THREAD, Team
from popf.engine.structures import BoolArray, FloatArray, IntArray

# Values per chunk: few enough to stay in the cache during several passes.
CHUNK_VALUES = 1 << 17
# Up to this exponent, a power of two and its inverse are both normal numbers.
LARGEST_EXPONENT = 1000
# Subtrees of at most SUBTREE_POINTS are built in one call, short enough for Ctrl-C. Several threads build
# smaller ones, so that each gets some, but not below SMALLEST_SUBTREE, where scheduling would take longer.
SUBTREE_POINTS = 1 << 18
SMALLEST_SUBTREE = 1 << 12
# Blocks start at a multiple of this many bytes, a cache line.
ALIGNMENT = 64
# A node is split at the side that is the widest among SAMPLED_POINTS of it. If MIN_EQUAL of them or more have
# the median value, the split may leave the middle; but not below MAX_UNEQUAL_SPLITS nodes, because the stacks
# of searches are short.
SAMPLED_POINTS, MIN_EQUAL, MAX_UNEQUAL_SPLITS = 64, 4, 64


class DistinctPoints(NamedTuple):
    """The distinct points among the samples."""

    points: FloatArray  # in order of first occurrence, multiplied by 2**-exponent
    exponent: int  # of the power of two that was divided out
    first: IntArray  # the lowest sample at each point
    point_of: IntArray  # the point of each sample


def scaled_copy(X: FloatArray, exponent: int | IntArray, team: Team = ONE_THREAD) -> FloatArray:
    """Copy `X` multiplied by ``2**-exponent``, C-contiguous and without negative zeros.

    Multiplying by a power of two does not round, so distances and their ties are unchanged, while squares of
    values near 1e150 or 1e-150 no longer overflow or underflow.
    """
    copy: FloatArray = np.empty(X.shape)

    def scale(start: int, stop: int) -> None:
        here = copy[start:stop]
        if isinstance(exponent, int) and abs(exponent) <= LARGEST_EXPONENT:
            np.multiply(X[start:stop], 2.0**-exponent, out=here)
        else:
            whole = np.broadcast_to(exponent, (len(X), 1))
            np.ldexp(X[start:stop], -whole[start:stop], out=here)
        here += 0.0

    team.map_chunks(scale, len(X), _rows_in_cache(X))
    return copy


def scale_exponent(X: FloatArray, team: Team = ONE_THREAD) -> int:
    """Return the exponent e such that the largest magnitude in ``X * 2**-e`` is in [0.5, 1)."""

    def magnitude(start: int, stop: int) -> float:
        return max(abs(float(X[start:stop].max())), abs(float(X[start:stop].min())))

    largest = max(team.map_chunks(magnitude, len(X), _rows_in_cache(X)), default=0.0)
    return int(np.frexp(largest)[1]) if largest > 0.0 else 0


def _rows_in_cache(X: FloatArray) -> int:
    return max(1, CHUNK_VALUES // max(1, int(X.shape[1])))


def distinct_points(X: FloatArray, n_threads: int = 1) -> DistinctPoints:
    """Scale the samples and merge duplicates.

    All arcs between duplicates have length zero, so in the order (weight, lower index, higher index) the
    spanning tree joins each duplicate to the first sample at its point, and all other edges join first samples.
    """
    with Team(n_threads) as team:
        exponent = scale_exponent(X, team)
        return collapse_duplicates(scaled_copy(X, exponent, team), exponent, team)


def collapse_duplicates(
    scaled: FloatArray, exponent: int, team: Team = ONE_THREAD
) -> DistinctPoints:
    """Merge samples with equal features; `scaled` comes from `scaled_copy`."""
    bits = scaled.view(np.uint64)
    keys = _row_hashes(bits, team)
    if not _any_equal(keys, team):  # the usual case
        every = np.arange(len(scaled))
        return DistinctPoints(scaled, exponent, every, every)
    point_of, first = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
    # At most half of the table will be full.
    table = np.zeros(1 << max(4, int(2 * len(keys) - 1).bit_length()), dtype=np.int64)
    first = first[: _number_points(bits, keys, table, point_of, first)].copy()
    return DistinctPoints(scaled[first], exponent, first, point_of)


def _row_hashes(bits: NDArray[np.uint64], team: Team) -> NDArray[np.uint64]:
    """Hash every row."""
    keys = np.full(len(bits), 14695981039346656037, dtype=np.uint64)

    def hash_rows(start: int, stop: int) -> None:
        here = keys[start:stop]
        for column in bits[start:stop].T:
            here ^= column
            here *= np.uint64(0x9E3779B97F4A7C15)
            here ^= here >> np.uint64(32)

    team.map_chunks(hash_rows, len(bits), 1 << 12)  # rows that fit in the L1 cache
    return keys


def _any_equal(keys: NDArray[np.uint64], team: Team) -> bool:
    """Return whether any two keys are equal; each thread sorts the keys in a range of first bytes."""
    bytes_ = keys >> np.uint64(56)

    def has_equal(low: int, high: int) -> bool:
        mine = keys if high - low == 256 else keys[(low <= bytes_) & (bytes_ < high)]
        mine = np.sort(mine)
        return bool((mine[1:] == mine[:-1]).any())

    return any(team.map_shares(has_equal, 256))


@jit
def _number_points(bits, keys, table, point_of, first):
    """Assign numbers to the distinct rows in order of first occurrence, by open addressing.

    A slot of the table holds 31 bits of the row's hash above 32 bits of the point's number plus one, so that
    rows with other hashes are skipped without comparing them; 0 is an empty slot.
    """
    n, d = bits.shape
    mask = len(table) - 1
    n_points = 0
    for i in range(n):
        slot = np.int64(keys[i]) & mask
        tag = np.int64(keys[i] >> np.uint64(33))
        while True:
            entry = table[slot]
            if entry == 0:
                first[n_points] = i
                point_of[i] = n_points
                n_points += 1
                table[slot] = (tag << 32) | n_points
                break
            if entry >> 32 == tag:
                point = (entry & 0xFFFFFFFF) - 1
                same = True
                for f in range(d):
                    same &= bits[i, f] == bits[first[point], f]
                if same:
                    point_of[i] = point
                    break
            slot = (slot + 1) & mask
    return n_points


def sort_by_values(columns: Iterable[FloatArray], n_rows: int) -> tuple[IntArray, IntArray]:
    """Return the order that sorts rows by their columns, and for each sorted row the number of its value."""
    order = np.arange(n_rows)
    repeats = np.arange(n_rows) > 0
    for column in columns if repeats.any() else ():
        # Only rows that are equal in all columns so far are sorted again.
        run = np.cumsum(~repeats)
        tied = np.flatnonzero(repeats | np.append(repeats[1:], False))
        order[tied] = order[tied][np.lexsort((column[order[tied]], run[tied]))]
        ordered = column[order]
        repeats[1:] &= ordered[1:] == ordered[:-1]
        if not repeats.any():
            break
    return order, np.cumsum(~repeats) - 1


def scrambled(numbers: IntArray) -> NDArray[np.uint64]:
    """Hash integers with SplitMix64's mixing function (Steele, Lea, Flood, 2014)."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    found: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return found


def distinct_distances(distances: FloatArray) -> FloatArray:
    """Sort each sample's distinct distances, padded with infinity, to compare samples without features."""
    ranked = np.sort(distances, axis=1)
    ranked[:, 1:][ranked[:, 1:] == ranked[:, :-1]] = np.inf
    ranked.sort(axis=1)
    return ranked


# The space tree -----------------------------------------------------------------------------------------------

#: A node: its first block, its right child (-1 for a leaf; the left child of node i is i + 1), its
#: parent (-1 for the root), and the feature and value at which it is split. One record, so one cache line.
NODE = np.dtype(
    [
        ("block", np.int32),
        ("right", np.int32),
        ("parent", np.int32),
        ("feature", np.int32),
        ("value", np.float64),
    ]
)


class SpaceTree(NamedTuple):
    """A k-d tree with tight bounding boxes, balanced where values are not tied."""

    points: FloatArray  # in the order of the blocks
    order: IntArray  # points[i] was row order[i] of the input
    blocks: FloatArray  # (n_blocks, n_features, LANES): the same points, feature by feature
    nodes: NDArray[np.void]  # NODE records
    leaf: NDArray[np.int32]  # the node of each block
    lows: FloatArray  # (n_nodes, n_features): the bounding box of each node
    highs: FloatArray


def build_space_tree(points: FloatArray, n_threads: int = 1) -> SpaceTree:
    """Build the space tree of points; the tree holds a reordered copy, and the input is not changed."""
    n_points, n_features = points.shape
    n_blocks = -(-n_points // LANES)
    n_nodes = 2 * n_blocks - 1
    tree = SpaceTree(
        points=np.empty_like(points, order="C"),
        order=np.empty(n_points, dtype=np.int64),
        blocks=_empty_blocks(n_blocks, n_features),
        nodes=np.empty(n_nodes, dtype=NODE),
        leaf=np.empty(n_blocks, dtype=np.int32),
        lows=np.empty((n_nodes, n_features)),
        highs=np.empty((n_nodes, n_features)),
    )
    with Team(n_threads) as team:
        _fill_tree(tree, points, team)
    return tree


def _empty_blocks(n_blocks: int, n_features: int) -> FloatArray:
    """Allocate blocks on cache-line boundaries; the caller pads the last one with infinity."""
    size = n_blocks * n_features * LANES
    raw = np.empty(size + ALIGNMENT // 8, dtype=np.float64)
    skip = (-raw.ctypes.data % ALIGNMENT) // 8
    return raw[skip : skip + size].reshape(n_blocks, n_features, LANES)


def _fill_tree(tree: SpaceTree, points: FloatArray, team: Team) -> None:
    """Fill a space tree level by level, until subtrees are small enough to be built in one call."""

    def copy(start: int, stop: int) -> None:
        tree.points[start:stop] = points[start:stop]
        tree.order[start:stop] = np.arange(start, stop)

    team.map_rows(copy, len(points))
    share = max(SMALLEST_SUBTREE, len(points) // (4 * team.n_threads))
    largest = SUBTREE_POINTS if team.n_threads == 1 else min(SUBTREE_POINTS, share)
    # A task is (node, first block, end of its blocks, parent).
    level, split_nodes = [(0, 0, len(tree.blocks), -1)], []
    while level:

        def grow(at: int, _: int, tasks: list[tuple[int, int, int, int]] = level) -> None:
            node, first, last, parent = tasks[at]
            _grow_subtree(tree, node, first, last, parent, (last - first) * LANES <= largest)

        team.map_chunks(grow, len(level), 1)
        split = [task for task in level if (task[2] - task[1]) * LANES > largest]
        split_nodes += [task[0] for task in split]
        level = []
        for node, first, last, _ in split:
            right = int(tree.nodes["right"][node])
            middle = first + (right - node) // 2  # there are two nodes per block on the left
            level += [(node + 1, first, middle, node), (right, middle, last, node)]
    for node in sorted(split_nodes, reverse=True):
        _join_boxes(tree, node)


@helper
def _quickselect(points, order, start, stop, middle, feature):
    """Reorder rows so that those before `middle` are no larger in `feature` than those after (quickselect)."""
    sample = np.empty(63)
    low, high = start, stop - 1
    # Invariant: rows before `low` are no larger than those from there on, rows after `high` no smaller.
    while low < high:
        # The pivot is the value at the wanted rank of an evenly spaced sample, sorted by insertion.
        n = high + 1 - low
        size = min(len(sample), max(3, n // 16))
        for i in range(size):
            value = points[low + (2 * i + 1) * n // (2 * size), feature]
            j = i
            while j > 0 and sample[j - 1] > value:
                sample[j] = sample[j - 1]
                j -= 1
            sample[j] = value
        pivot = sample[min(size - 1, (middle - low) * size // n)]
        # Hoare's partition: rows before i are at most the pivot, rows after j are at least the pivot.
        i, j = low, high
        while i <= j:
            while points[i, feature] < pivot:
                i += 1
            while points[j, feature] > pivot:
                j -= 1
            if i <= j:
                if i < j:
                    for f in range(points.shape[1]):
                        points[i, f], points[j, f] = points[j, f], points[i, f]
                    order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:  # the rows between the two parts equal the pivot
            return


@helper
def _divide(points, order, first, last, feature, may_be_unequal):
    """Split blocks at the median of a feature; return the first block on the right.

    If many points have the median itself, as in columns of zeros and ones, the split moves to the nearer end of
    their run, or to the only end where values change: so boxes separate categories. One block may be mixed.
    """
    start, stop = first * LANES, min(last * LANES, len(points))
    middle = (first + last) // 2
    _quickselect(points, order, start, stop, middle * LANES, feature)
    median = points[middle * LANES, feature]
    n_equal = 0
    for i in range(start, stop, max(1, (stop - start) // SAMPLED_POINTS)):
        n_equal += points[i, feature] == median
    if n_equal < MIN_EQUAL or not may_be_unequal:
        return middle
    n_below = n_above = 0
    for i in range(start, stop):
        n_below += points[i, feature] < median
        n_above += points[i, feature] > median
    if n_below == 0 and n_above == 0:
        return middle
    # The block where values change goes to the side of the other values.
    lower_end, higher_start = -(-(start + n_below) // LANES), (stop - n_above) // LANES
    if n_above == 0 or (n_below > 0 and middle - lower_end <= higher_start - middle):
        middle = lower_end
    else:
        middle = higher_start
    middle = max(first + 1, min(middle, last - 1))
    _quickselect(points, order, start, stop, middle * LANES, feature)
    return middle


@helper
def _split_node(tree, node, first, last, parent):
    """Write the record of a node and split it; return the first block of its right half."""
    points = tree.points
    start, stop = first * LANES, min(last * LANES, len(points))
    middle = (first + last) // 2
    record = tree.nodes[node]
    record["block"], record["parent"] = first, parent
    record["right"], record["feature"], record["value"] = -1, 0, 0.0
    if last - first > 1:
        # Split the side that is the widest among some of the points.
        step = max(1, (stop - start) // SAMPLED_POINTS)
        # Not a literal 0, for which Numba would compile `_quickselect` again.
        widest, spread = first - first, -1.0
        for f in range(points.shape[1]):
            low = high = points[start, f]
            for i in range(start + step, stop, step):
                low = min(low, points[i, f])
                high = max(high, points[i, f])
            if high - low > spread:
                widest, spread = f, high - low
        depth, above = 0, parent
        while above >= 0:
            depth, above = depth + 1, tree.nodes[above]["parent"]
        middle = _divide(points, tree.order, first, last, widest, depth < MAX_UNEQUAL_SPLITS)
        record["feature"], record["value"] = widest, points[middle * LANES, widest]
        record["right"] = node + 2 * (middle - first)
    return middle


@jit
def _grow_subtree(tree, root, first, last, parent, whole):
    """Build the `whole` subtree below a node, with boxes, or only split the node."""
    stack = np.empty((128, 4), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = root, first, last, parent
    top = 1
    while top > 0:
        top -= 1
        node, a, b, up = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        middle = _split_node(tree, node, a, b, up)
        if not whole:
            return
        if b - a == 1:
            tree.leaf[a] = node
            _fill_block(tree, node, a)
            continue
        stack[top, 0], stack[top, 1], stack[top, 2] = tree.nodes[node]["right"], middle, b
        stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = node + 1, a, middle
        stack[top, 3] = stack[top + 1, 3] = node
        top += 2
    for node in range(root + 2 * (last - first) - 2, root - 1, -1):
        if tree.nodes[node]["right"] >= 0:
            _join_boxes(tree, node)


@helper
def _fill_block(tree, node, block):
    """Copy the points of a leaf, feature by feature, and compute their box."""
    points, blocks = tree.points, tree.blocks
    start = block * LANES
    stop = min(start + LANES, len(points))
    for f in range(points.shape[1]):
        low = high = points[start, f]
        for i in range(start, stop):
            x = points[i, f]
            blocks[block, f, i - start] = x
            low = min(low, x)
            high = max(high, x)
        for lane in range(stop - start, LANES):
            blocks[block, f, lane] = np.inf
        tree.lows[node, f] = low
        tree.highs[node, f] = high


@helper
def _join_boxes(tree, node):
    """Compute the box of a node from those of its children."""
    lows, highs = tree.lows, tree.highs
    left, right = node + 1, tree.nodes[node]["right"]
    for f in range(lows.shape[1]):
        lows[node, f] = min(lows[left, f], lows[right, f])
        highs[node, f] = max(highs[left, f], highs[right, f])


@helper
def push_children(nodes, node, points, row, stack, top):
    """Push the children of an inner node, the one nearer to a point last; return the new top of the stack."""
    right = nodes[node]["right"]
    is_left = points[row, nodes[node]["feature"]] < nodes[node]["value"]
    stack[top] = right if is_left else node + 1
    stack[top + 1] = node + 1 if is_left else right
    return top + 2


@helper
def climb(nodes, lows, highs, home, node):
    """Return the parent of a node (-1 for the root), its sibling, and the gap between sibling and `home`.

    The gap is a lower bound on the squared distances between the boxes of the leaf `home` and of the sibling,
    along the feature at which the parent is split; that is enough to skip most siblings.
    """
    parent = nodes[node]["parent"]
    if parent < 0:
        return parent, parent, 0.0
    sibling = nodes[parent]["right"] if node == parent + 1 else parent + 1
    f = nodes[parent]["feature"]
    gap = max(lows[sibling, f] - highs[home, f], lows[home, f] - highs[sibling, f], 0.0)
    return parent, sibling, gap * gap


@jit
def lowest_in_nodes(nodes, values):
    """Return the smallest value among the points of each node; `values` are float64."""
    lowest = np.empty(len(nodes))
    for node in range(len(nodes) - 1, -1, -1):
        right = nodes[node]["right"]
        if right >= 0:
            lowest[node] = min(lowest[node + 1], lowest[right])
        else:
            start = nodes[node]["block"] * LANES
            lowest[node] = values[start]
            for i in range(start + 1, min(start + LANES, len(values))):
                lowest[node] = min(lowest[node], values[i])
    return lowest


# Blocks of points ---------------------------------------------------------------------------------------------


class OrderedPoints(NamedTuple):
    """Points ordered so that neighbours in space are mostly neighbours in memory."""

    points: FloatArray
    order: IntArray  # points[i] was row order[i] of the input
    starts: IntArray  # block b is range(starts[b], starts[b + 1])
    centers: FloatArray  # (n_blocks, n_features)
    radii: FloatArray  # upper bounds on the distances of the block's points from its centre


def order_points(
    points: FloatArray, block: int, n_threads: int = 1, side: BoolArray | None = None
) -> OrderedPoints:
    """Split the points, each `side` separately, at the median of the widest feature until blocks are small."""
    pieces, n_before = [np.arange(len(points))], 0
    if side is not None:
        pieces = [np.flatnonzero(~side), np.flatnonzero(side)]

    def split(level: list[IntArray], at: int, _: int) -> list[IntArray]:
        piece = level[at]
        if len(piece) <= block:
            return [piece]
        sample = points[piece[:: max(1, len(piece) // 64)]]
        column = points[piece, int(np.argmax(sample.max(axis=0) - sample.min(axis=0)))]
        # Whole blocks on the left, so that only the last one is short.
        n_left = block * ((-(-len(piece) // block)) // 2)
        parted = np.argpartition(column, n_left)
        return [piece[parted[:n_left]], piece[parted[n_left:]]]

    with Team(n_threads) as team:
        while len(pieces) > n_before:  # level by level, until no piece is split
            n_before = len(pieces)
            halves = team.map_chunks(partial(split, pieces), n_before, 1)
            pieces = [piece for pair in halves for piece in pair]
        order = np.concatenate(pieces)
        starts = np.cumsum([0] + [len(piece) for piece in pieces])
        n_blocks, n_features = len(pieces), points.shape[1]
        ordered = OrderedPoints(
            np.empty((len(points), n_features)),
            order,
            starts,
            np.empty((n_blocks, n_features)),
            np.empty(n_blocks),
        )
        team.map_chunks(lambda start, stop: _fill_blocks(ordered, points, start, stop), n_blocks, 1)
    return ordered


@jit
def _fill_blocks(ordered, points, start, stop):
    """Copy the points of some blocks, and compute their centres and radii."""
    copies, order, starts = ordered.points, ordered.order, ordered.starts
    centers, n_features = ordered.centers, points.shape[1]
    for block in range(start, stop):
        a, b = starts[block], starts[block + 1]
        for f in range(n_features):
            centers[block, f] = 0.0
        for i in range(a, b):
            row = order[i]
            for f in range(n_features):
                copies[i, f] = points[row, f]
                centers[block, f] += points[row, f]
        for f in range(n_features):
            centers[block, f] /= b - a
        largest = 0.0
        for i in range(a, b):
            largest = max(largest, squared_distance(copies, i, centers, block))
        # Rounded up: radii serve as upper bounds.
        ordered.radii[block] = np.sqrt(largest) * (1.0 + 1e-9)


@jit
def gaps_from(ordered, block, others):
    """Return lower bounds on the squared distances between a block and others."""
    gaps = np.empty(len(others))
    for i in range(len(others)):
        gaps[i] = gap_between(ordered, block, others[i])
    return gaps


@helper
def gap_between(ordered, block, other):
    """Return a lower bound on the squared distances between two blocks."""
    radii = ordered.radii
    between = np.sqrt(squared_distance(ordered.centers, block, ordered.centers, other))
    clear = max(between * (1.0 - 1e-9) - radii[block] - radii[other], 0.0)
    # The radii are rounded up and the distance down; the remaining rounding error is far below 1e-9.
    return clear * clear * (1.0 - 1e-9)


@helper
def squared_distance(x, i, y, j):
    """Compute the squared distance of two rows, summing the features in order."""
    total = 0.0
    for f in range(x.shape[1]):
        difference = x[i, f] - y[j, f]
        total += difference * difference
    return total
