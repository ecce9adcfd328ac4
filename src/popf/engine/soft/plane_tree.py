r"""The nodes of a class in the plane as a tree with moments, for one bandwidth.

The tree is that of `kdtree`: the blocks of a class lie in its order, and its shape follows from their
number. In units of the bandwidth, a node with the centre c has the moments
:math:`\sum_v w_v (v - c)^\alpha / \alpha!`, of all degrees up to `ORDER`: those of a leaf from its points,
those of others from their children. At last they are turned into the polar ones of `plane_series`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.runtime.blas import one_blas_thread
from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES
from popf.engine.runtime.threads import map_chunks
from popf.engine.soft.plane_series import ORDER, polar_from_powers
from popf.engine.structures import FloatArray

N_TERMS = (ORDER + 1) * (ORDER + 2) // 2
# A node wider than this can be expanded at no distance.
WIDEST = 0.75 * (ORDER + 1)
# The columns of a node: its centre; the largest distance of a point from that, and the mean of power
# ORDER + 1 of all (infinite without moments); the lowest and the highest cost; the sum of its points at their
# costs, relative to the lowest; the weight of all points, and of the heaviest, up to 1; the mean point; the
# mean squared distance from that plus the mean squared cost; its blocks; exp of minus its radius; by how
# much its expansion is wrong from afar; the weight of a point of the lowest cost. Centre and mean are
# places, all lengths are in bandwidths.
X, Y, RADIUS, REACH, LOWEST, HIGHEST, FLAT, WEIGHT, HEAVIEST, MEAN_X, MEAN_Y, SPREAD = range(12)
FIRST, LAST, SHRINKS, CLEAR, CHEAPEST, N_FACTS = range(12, 18)


class PlaneTree(NamedTuple):
    """The nodes of one class as a tree with moments, for one bandwidth.

    Attributes
    ----------
    facts : ndarray of shape (n_nodes, 17)
        See the columns above.
    right : ndarray of shape (n_nodes,)
        The right child, -1 for a leaf; the left one follows its parent.
    first, last : ndarray of shape (n_nodes,)
        A node is ``blocks[first : last]``.
    row : ndarray of shape (n_nodes,)
        Its row of moments, -1 for one that is too wide.
    moments : ndarray of shape (n_rows, n_terms)
    """

    facts: FloatArray
    right: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    row: NDArray[np.int32]
    moments: FloatArray


def plant(
    blocks: FloatArray,
    costs: FloatArray,
    weights: FloatArray,
    span: tuple[int, int],
    tau: float,
    n_threads: int = 1,
) -> PlaneTree:
    """Take the moments of a class.

    Parameters
    ----------
    blocks : ndarray of shape (n_blocks, 2, 16)
        In the order of a space tree for every class; what is missing is at infinity.
    costs, weights : ndarray of shape (16 * n_blocks,)
        Infinite and 0 where there is no point.
    span : tuple of int
        The class is ``blocks[span[0] : span[1]]``.
    tau : float
        The bandwidth.
    n_threads : int

    Returns
    -------
    PlaneTree
    """
    n_nodes = 2 * (span[1] - span[0]) - 1
    right, first, last, row = (np.empty(n_nodes, dtype=np.int32) for _ in range(4))
    _shape(span[0], span[1], right, first, last)
    facts, boxes = np.empty((n_nodes, N_FACTS)), np.empty((n_nodes, 4))
    _survey(blocks, costs, weights, tau, first, last, right, facts, boxes)

    def measure(start: int, stop: int) -> None:
        _measure(blocks, weights, tau, first, last, start, stop, facts)

    map_chunks(measure, n_nodes, 4096, n_threads)
    there = facts[:, RADIUS] < WIDEST
    row[:] = np.where(there, np.cumsum(there) - 1, -1)
    moments = np.empty((int(there.sum()), N_TERMS))
    tree = PlaneTree(facts, right, first, last, row, moments)
    _take_moments(tree, blocks, weights, tau)
    with one_blas_thread():
        return tree._replace(moments=moments @ polar_from_powers(ORDER))


@jit
def _shape(start, stop, right, first, last):
    """Cut the blocks in two, again and again, as the space tree does."""
    stack = np.empty((128, 3), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, start, stop
    top = 1
    while top > 0:
        top -= 1
        node, a, b = stack[top, 0], stack[top, 1], stack[top, 2]
        first[node], last[node], right[node] = a, b, -1
        if b - a == 1:
            continue
        middle = (a + b) // 2
        right[node] = node + 2 * (middle - a)
        stack[top, 0], stack[top, 1], stack[top, 2] = right[node], middle, b
        stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = node + 1, a, middle
        top += 2


@jit
def _survey(blocks, costs, weights, tau, firsts, lasts, right, facts, boxes):
    """Take the facts of leaves from their points, and those of other nodes from their children."""
    for node in range(len(facts) - 1, -1, -1):
        fact, box = facts[node], boxes[node]
        fact[FIRST], fact[LAST] = firsts[node], lasts[node]
        if right[node] < 0:
            _survey_leaf(blocks, costs, weights, tau, firsts[node], fact, box)
        else:
            _join(facts[node + 1], facts[right[node]], tau, fact)
            for i in range(2):
                box[i] = min(boxes[node + 1, i], boxes[right[node], i])
                box[2 + i] = max(boxes[node + 1, 2 + i], boxes[right[node], 2 + i])
        fact[X], fact[Y] = 0.5 * (box[0] + box[2]), 0.5 * (box[1] + box[3])


@helper
def _survey_leaf(blocks, costs, weights, tau, block, fact, box):
    mass = mean_x = mean_y = heaviest = flat = spread = 0.0
    lowest, highest = np.inf, -np.inf
    box[0] = box[1] = np.inf
    box[2] = box[3] = -np.inf
    for lane in range(LANES):
        x, y, v = blocks[block, 0, lane], blocks[block, 1, lane], block * LANES + lane
        if x == np.inf:
            continue
        w = weights[v]
        mass, mean_x, mean_y = mass + w, mean_x + w * x, mean_y + w * y
        heaviest = max(heaviest, w)
        if costs[v] < lowest:
            lowest, fact[CHEAPEST] = costs[v], w
        highest = max(highest, costs[v])
        box[0], box[2] = min(box[0], x), max(box[2], x)
        box[1], box[3] = min(box[1], y), max(box[3], y)
    mean_x, mean_y = mean_x / mass, mean_y / mass
    for lane in range(LANES):
        x, y, v = blocks[block, 0, lane], blocks[block, 1, lane], block * LANES + lane
        if x == np.inf:
            continue
        flat += weights[v] * np.exp((lowest - costs[v]) / tau)
        dx, dy, cost = (x - mean_x) / tau, (y - mean_y) / tau, costs[v] / tau
        spread += weights[v] * (dx * dx + dy * dy + cost * cost)
    fact[LOWEST], fact[HIGHEST], fact[FLAT] = lowest / tau, highest / tau, flat
    fact[WEIGHT], fact[HEAVIEST] = mass, min(heaviest, 1.0)
    fact[MEAN_X], fact[MEAN_Y], fact[SPREAD] = mean_x, mean_y, spread / mass


@helper
def _join(one, other, tau, fact):
    lowest, mass = min(one[LOWEST], other[LOWEST]), one[WEIGHT] + other[WEIGHT]
    fact[LOWEST], fact[HIGHEST] = lowest, max(one[HIGHEST], other[HIGHEST])
    fact[FLAT] = one[FLAT] * np.exp(lowest - one[LOWEST])
    fact[FLAT] += other[FLAT] * np.exp(lowest - other[LOWEST])
    fact[WEIGHT], fact[HEAVIEST] = mass, max(one[HEAVIEST], other[HEAVIEST])
    fact[CHEAPEST] = one[CHEAPEST] if one[LOWEST] <= other[LOWEST] else other[CHEAPEST]
    share = other[WEIGHT] / mass
    dx, dy = other[MEAN_X] - one[MEAN_X], other[MEAN_Y] - one[MEAN_Y]
    fact[MEAN_X], fact[MEAN_Y] = one[MEAN_X] + share * dx, one[MEAN_Y] + share * dy
    dx, dy = dx / tau, dy / tau
    fact[SPREAD] = (1.0 - share) * one[SPREAD] + share * other[SPREAD]
    fact[SPREAD] += share * (1.0 - share) * (dx * dx + dy * dy)


@jit
def _measure(blocks, weights, tau, firsts, lasts, start, stop, facts):
    """Measure how far the points of some nodes reach from their centres."""
    for node in range(start, stop):
        fact, widest = facts[node], 0.0
        x, y = fact[X], fact[Y]
        for block in range(firsts[node], lasts[node]):
            for lane in range(LANES):
                dx, dy = blocks[block, 0, lane] - x, blocks[block, 1, lane] - y
                squared = dx * dx + dy * dy
                widest = max(widest, squared if squared < np.inf else 0.0)
        scale, total = 1.0 / widest if widest > 0.0 else 0.0, 0.0
        if np.sqrt(widest) < WIDEST * tau:
            for block in range(firsts[node], lasts[node]):
                for lane in range(LANES):
                    dx, dy = blocks[block, 0, lane] - x, blocks[block, 1, lane] - y
                    dx = dx if dx < np.inf else 0.0  # missing, and of no weight
                    dy = dy if dy < np.inf else 0.0
                    squared = (dx * dx + dy * dy) * scale
                    power = np.sqrt(squared) if ORDER % 2 == 0 else 1.0
                    for _ in range((ORDER + 1) // 2):
                        power *= squared
                    total += weights[block * LANES + lane] * power
        # Rounding must not make a bound too low.
        radius, mean = np.sqrt(widest) / tau * (1.0 + 1e-9), total / fact[WEIGHT]
        fact[RADIUS], fact[SHRINKS] = radius, np.exp(-radius)
        fact[REACH] = fact[CLEAR] = np.inf
        if radius < WIDEST:
            fact[REACH] = radius * mean ** (1.0 / (ORDER + 1)) * (1.0 + 1e-9)
            ratio = fact[REACH] / (ORDER + 1)
            fact[CLEAR] = np.exp(ORDER + 1.0) * ratio ** (ORDER + 1)
            fact[CLEAR] /= 1.0 - radius / (ORDER + 1)


@jit
def _take_moments(tree, blocks, weights, tau):
    facts, moments = tree.facts, tree.moments
    for node in range(len(facts) - 1, -1, -1):
        if tree.row[node] < 0:
            continue
        mine = moments[tree.row[node]]
        mine[:] = 0.0
        x, y = facts[node, X], facts[node, Y]
        if tree.right[node] < 0:
            _add_points(blocks, tree.first[node], weights, x, y, tau, mine)
            continue
        for child in (node + 1, np.int64(tree.right[node])):
            dx, dy = (facts[child, X] - x) / tau, (facts[child, Y] - y) / tau
            _add_moments(moments[tree.row[child]], dx, dy, mine)


@helper
def _add_points(blocks, block, weights, x, y, tau, mine):
    """Add the moments of the points of a leaf: powers over factorials."""
    for lane in range(LANES):
        if blocks[block, 0, lane] == np.inf:
            continue
        dx, dy = (blocks[block, 0, lane] - x) / tau, (blocks[block, 1, lane] - y) / tau
        row, t = weights[block * LANES + lane], 0
        for b in range(ORDER + 1):
            term = row
            for a in range(ORDER + 1 - b):
                mine[t] += term
                term *= dx / (a + 1.0)
                t += 1
            row *= dy / (b + 1.0)


@helper
def _add_moments(child, dx, dy, mine):
    """Add the moments of a child to those of its parent, whose centre is elsewhere."""
    across = np.empty(N_TERMS)
    factors = np.empty((2, ORDER + 1))
    factors[:, 0] = 1.0
    for k in range(1, ORDER + 1):
        factors[0, k], factors[1, k] = factors[0, k - 1] * dx / k, factors[1, k - 1] * dy / k
    start = 0
    for b in range(ORDER + 1):
        for a in range(ORDER + 1 - b):
            total = 0.0
            for i in range(a + 1):
                total += child[start + i] * factors[0, a - i]
            across[start + a] = total
        start += ORDER + 1 - b
    start = 0
    for b in range(ORDER + 1):
        other = 0
        for j in range(b + 1):
            factor = factors[1, b - j]
            for a in range(ORDER + 1 - b):
                mine[start + a] += factor * across[other + a]
            other += ORDER + 1 - j
        start += ORDER + 1 - b
