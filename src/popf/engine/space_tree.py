"""The space tree, in which points are searched if they have few features, or vary in few directions.

It is a k-d tree: it splits points at a gap or at the median of the widest side, down to blocks of sixteen.
Nodes are stored in preorder, so the left child of node i is i + 1. All blocks but the last are full, so no
memory is wasted on padding. Bounding boxes are tight: they enclose the points, not the cells.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import Team
from popf.engine.structures import FloatArray, IntArray, ceil_div

# Subtrees of at most SUBTREE_POINTS are built in one call, short enough for Ctrl-C. Several threads build
# smaller ones, so that each gets some, but not below SMALLEST_SUBTREE, where scheduling would take longer.
SUBTREE_POINTS = 1 << 18
SMALLEST_SUBTREE = 1 << 12
# Blocks start at a multiple of this many bytes, a cache line.
ALIGNMENT = 64
# A node is split at its widest side, judged by at most about this many of its points, evenly spaced.
SAMPLED_POINTS = 64
# A side with a gap, as between categories, counts as wider by this many times the gap: a split there keeps the
# boxes apart, where other splits let them touch.
GAP_FACTOR = 3.0
# Gaps are ignored if they are less than a fraction of the side, and up to a larger fraction also if less than a
# share of the points is beyond them: splitting off the few points in the tail of a continuous feature makes the
# tree worse.
MIN_GAP, WIDE_GAP, MIN_SHARE = 0.15, 0.5, 0.08
# Small nodes are split at the median, because a few points have gaps by chance.
MIN_BLOCKS_FOR_GAP = 4
# To find gaps, values are sorted into bins; sides too narrow for that have none.
N_BINS, SMALLEST_WIDTH = 32, 1e-300
# Splits at a gap may be unequal, but not at this depth or below, because the stacks of searches are short.
MAX_UNEQUAL_SPLITS = 64

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
    """A k-d tree with tight bounding boxes, balanced where points have no gaps."""

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
    n_blocks = ceil_div(n_points, LANES)
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


def subtrees(tree: SpaceTree, n_blocks: int) -> list[int]:
    """Return the first blocks of the largest subtrees of at most `n_blocks` blocks, in order."""
    nodes, ends, found = np.zeros(1, np.int64), np.array([len(tree.blocks)]), []
    while len(nodes):
        first = tree.nodes["block"][nodes]
        small = ends - first <= n_blocks
        found.append(first[small])
        nodes, ends = nodes[~small], ends[~small]
        right = tree.nodes["right"][nodes].astype(np.int64)
        middle = tree.nodes["block"][right]
        nodes, ends = np.append(nodes + 1, right), np.append(middle, ends)
    firsts: list[int] = np.sort(np.concatenate(found)).tolist()
    return firsts


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
def _widest_gap(points, start, stop, step, feature, low, width):
    """Find the widest gap between the values of a feature; return its width (0: ignored) and its middle.

    Values are sorted into bins, and the gap is a run of empty ones. Only every `step`-th point is looked at.
    """
    scale, filled = N_BINS / width, 0
    for i in range(start, stop, step):
        filled |= 1 << min(N_BINS - 1, int((points[i, feature] - low) * scale))
    longest = end = run = 0
    for place in range(N_BINS):
        run = 0 if filled >> place & 1 else run + 1
        if run > longest:
            longest, end = run, place + 1
    if longest < MIN_GAP * N_BINS:
        return 0.0, 0.0
    middle = low + (end - longest / 2.0) / scale
    if longest < WIDE_GAP * N_BINS:
        n_above = 0
        for i in range(start, stop, step):
            n_above += points[i, feature] > middle
        n_points = (stop - start - 1) // step + 1
        if min(n_above, n_points - n_above) < MIN_SHARE * n_points:
            return 0.0, 0.0
    return longest / scale, middle


@helper
def _choose_split(points, first, last, may_be_unequal):
    """Choose the feature to split some blocks at, and the first block on the right.

    Points are split at the widest gap of a feature, if it has one, otherwise at its median. The block that
    contains points from both sides of the gap goes to the smaller side.
    """
    start, stop = first * LANES, min(last * LANES, len(points))
    step = max(1, (stop - start) // SAMPLED_POINTS)
    # Not a literal 0, for which Numba would compile `_quickselect` again.
    best, most, cut = first - first, -1.0, np.inf
    for feature in range(points.shape[1]):
        low = high = points[start, feature]
        for i in range(start + step, stop, step):
            low = min(low, points[i, feature])
            high = max(high, points[i, feature])
        width, gap, middle = high - low, 0.0, 0.0
        if may_be_unequal and width > SMALLEST_WIDTH and (1.0 + GAP_FACTOR) * width > most:
            gap, middle = _widest_gap(points, start, stop, step, feature, low, width)
        if width + GAP_FACTOR * gap > most:
            best, most, cut = feature, width + GAP_FACTOR * gap, middle if gap > 0.0 else np.inf
    if cut == np.inf:
        return best, (first + last) // 2
    n_left = 0
    for i in range(start, stop):
        n_left += points[i, best] < cut
    is_smaller = 2 * n_left < stop - start
    block = first + (n_left + (LANES - 1 if is_smaller else 0)) // LANES
    return best, max(first + 1, min(block, last - 1))


@helper
def _split_node(tree, node, first, last, parent):
    """Write the record of a node and split it; return the first block of its right half."""
    points, middle = tree.points, first
    record = tree.nodes[node]
    record["block"], record["parent"] = first, parent
    record["right"], record["feature"], record["value"] = -1, 0, 0.0
    if last - first > 1:
        depth, above = 0, parent
        while last - first >= MIN_BLOCKS_FOR_GAP and above >= 0:
            depth, above = depth + 1, tree.nodes[above]["parent"]
        may_be_unequal = last - first >= MIN_BLOCKS_FOR_GAP and depth < MAX_UNEQUAL_SPLITS
        feature, middle = _choose_split(points, first, last, may_be_unequal)
        stop = min(last * LANES, len(points))
        _quickselect(points, tree.order, first * LANES, stop, middle * LANES, feature)
        record["feature"], record["value"] = feature, points[middle * LANES, feature]
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
