r"""Soft competition on the line and in the plane: whole nodes of a tree are taken at once, to a stated error.

With a wide bandwidth nearly every path counts, so nothing can be left out. But seen from afar the paths of
the points of a tree node add up to a short expansion (see `plane_series`). Each class has a tree; a query
walks down from its root, takes a node at once where that is good enough, and computes every path of a
leaf that it reaches. Eight queries that lie together walk at a time, each judging for itself, so that answers
do not depend on what else is asked.

**The error.** In units of the bandwidth let s be the distance between the query and the centre of a node. As a
function of a complex multiple of a point's offset from the centre, the distance is analytic up to s, and where
the offset has length R it stays within R of s (it is a geometric mean of two numbers in that disc, whose
logarithms form a convex set). By Cauchy's estimate the terms of degree above p sum to at most

.. math:: e^{R - s} (r / R)^{p+1} / (1 - r / R)

for a point at r; from afar R = p + 1 is near the best. Nearer by R = s is, and there more is known: the largest
value that the term of degree n takes in any direction is at most

.. math:: \min(0.27 s, 0.2 + 0.107 s)\, (r / s)^n / n

for all n > p = 10 and s up to 16 (this was computed; a test repeats it). For a node, take the mean of
:math:`r^{p+1}` over its points. It is taken if that error, times its weight, is at most half of the error
allowed times

- what the node itself weighs, at least; or
- what the class weighs, at least, times the node's weight over that of the class;

and left out if it weighs no more than the second. All such errors sum to the error allowed at most.

Where the costs of a node exceed all its distances, its sum does not depend on the query. Where costs and
distances mix, the node is opened, and so is every node that holds the query itself.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import helper, jit
from popf.engine.runtime.simd import LANES, empty_blocks, lowest_bit
from popf.engine.runtime.threads import map_chunks
from popf.engine.soft.by_space_tree import CompetingSpace, space_scores
from popf.engine.soft.plane_lanes import (
    AT_X,
    AT_Y,
    BEST,
    DECAY,
    FARTHEST,
    LEAST,
    LIMIT,
    N_SEEN,
    N_STATE,
    OWN,
    REFERENCE,
    SHARE,
    SUM,
    add_level,
    expand,
    fetch,
    judge,
    weigh,
)
from popf.engine.soft.plane_near import least_near, sum_near
from popf.engine.soft.plane_tree import (
    FIRST,
    HEAVIEST,
    HIGHEST,
    LAST,
    LOWEST,
    RADIUS,
    WEIGHT,
    PlaneTree,
    X,
    Y,
    plant,
)
from popf.engine.soft.scores import Bandwidths, mass_without
from popf.engine.soft.simd import WIDTH
from popf.engine.space_tree import build
from popf.engine.structures import FloatArray, IntArray

# Groups of eight queries in one call: short enough for Ctrl-C, long enough to forget the call.
CALL_GROUPS = 512
# Expansions wait until there are so many: in a row they do not wait for each other.
QUEUE = 64
# e^300 times any weight is still a number.
STEEP = 300.0
FARTHEST_PLACE = 1e40
# A cost of so many bandwidths is rounded by more than a hundredth of the error allowed, if that is 1.
BLURRED = 1e13
EVERY = (1 << WIDTH) - 1


class CompetingPlane(NamedTuple):
    """Training nodes in the plane, ready for one bandwidth.

    Attributes
    ----------
    space : CompetingSpace
        The nodes.
    blocks : ndarray of shape (n_blocks, 2, 16)
        The same nodes, also if they lie on a line.
    trees : list of PlaneTree
        Of every class.
    tau : float
        The bandwidth.
    """

    space: CompetingSpace
    blocks: FloatArray
    trees: list[PlaneTree]
    tau: float


def spread_out(space: CompetingSpace, tau: float, n_threads: int = 1) -> CompetingPlane:
    """Make nodes in the plane, or on a line, ready for one bandwidth.

    Parameters
    ----------
    space : CompetingSpace
    tau : float
        The bandwidth.
    n_threads : int

    Returns
    -------
    CompetingPlane

    Examples
    --------
    >>> import numpy as np
    >>> from popf.engine.soft.plane import plane_scores, spread_out
    >>> from popf.engine.soft.by_space_tree import lay_out
    >>> samples, codes = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([0, 1])
    >>> space = lay_out(samples, codes, np.zeros(2), np.ones(2))
    >>> plane = spread_out(space, tau=0.5)
    >>> plane_scores(plane, np.array([[0.0, 0.0]]), np.array([-1]), error=1e-6)
    array([[ 0., 10.]])
    """
    blocks = space.blocks
    if blocks.shape[1] == 1:
        blocks = empty_blocks(len(space.blocks), 2)
        blocks[:, 0], blocks[:, 1] = space.blocks[:, 0], 0.0
    edges = space.chunks[space.classes].tolist()
    trees = [
        plant(blocks, space.costs, space.weights, span, tau, n_threads) for span in pairwise(edges)
    ]
    return CompetingPlane(space, blocks, trees, tau)


def plane_scores(
    plane: CompetingPlane, queries: FloatArray, own: IntArray, error: float, n_threads: int = 1
) -> FloatArray:
    """Compute the soft minimum of the paths that each class offers to each query.

    Parameters
    ----------
    plane : CompetingPlane
    queries : ndarray of shape (n_queries, 1 or 2)
    own : ndarray of shape (n_queries,)
        The place of the node that a query is itself, whose weight then counts one less; -1 for
        new samples.
    error : float
        How wrong a sum may be, relative to it; positive.
    n_threads : int

    Returns
    -------
    ndarray of shape (n_queries, n_classes)
        Infinite for a class without any other member.

    Notes
    -----
    Where the cheapest path of some class costs so many bandwidths that rounding would matter, the query is
    answered by `space_scores`, for all classes.
    """
    space, tau = plane.space, plane.tau
    places = np.zeros((len(queries), 2))
    # From farther away squares in bandwidths might overflow; such queries are not answered here.
    places[:, : queries.shape[1]] = np.clip(queries, -FARTHEST_PLACE, FARTHEST_PLACE)
    order = _near_each_other(places, n_threads)
    places, mine = places[order], own[order]
    scores = np.empty((len(queries), len(space.masses)))
    data = (plane.blocks, space.costs, space.weights)

    def answer(start: int, stop: int) -> None:
        here = slice(start * WIDTH, stop * WIDTH)
        for k, tree in enumerate(plane.trees):
            settings = (tau, error, float(space.masses[k]))
            _answer(data, tree, settings, places[here], mine[here], scores[here, k])

    map_chunks(answer, -(-len(queries) // WIDTH), CALL_GROUPS, n_threads)
    found = np.empty_like(scores)
    found[order] = scores
    blurred = np.flatnonzero(np.isnan(found).any(axis=1))
    if len(blurred) > 0:
        bandwidths = Bandwidths(np.array([[tau]]), error)
        direct = space_scores(space, queries[blurred], own[blurred], bandwidths, n_threads)
        found[blurred] = direct.scores[:, :, 0, 0]
    return found


def _near_each_other(queries: FloatArray, n_threads: int) -> IntArray:
    """Order queries so that the eight of a group lie close together."""
    tree = build(queries, n_threads)
    points = np.swapaxes(tree.blocks, 1, 2)  # the sixteen of a block are in no order
    whole = len(queries) // LANES
    wider = np.ptp(points[:whole], axis=1).argmax(axis=1)
    along = np.take_along_axis(points[:whole], wider[:, None, None], axis=2)[:, :, 0]
    within = np.argsort(along, axis=1) + LANES * np.arange(whole)[:, None]
    rest = np.arange(whole * LANES, len(queries))
    order: IntArray = tree.order[np.concatenate([within.ravel(), rest])]
    return order


@helper
def _sum_own(data, own, x, y, low, tau):
    """Let a query meet its own block, itself left out; returns the cheapest path and the sum."""
    blocks, costs, weights = data
    block = own // LANES
    least, total = np.inf, 0.0
    for lane in range(LANES):
        v = block * LANES + lane
        weight = weights[v] - 1.0 if v == own else weights[v]
        if weight <= 0.0:
            continue
        dx, dy = blocks[block, 0, lane] - x, blocks[block, 1, lane] - y
        cost = max(costs[v], np.sqrt(dx * dx + dy * dy))
        least = min(least, cost)
        if low < np.inf:
            total += weight * np.exp((low - cost) / tau)
    return least, total


@helper
def _descend(tree, state, rate, nodes):
    """Let every query go down to a leaf near it, and bound its cheapest path by the nodes on the way.

    All go in step, so that they do not wait for each other.
    """
    facts, left = tree.facts, WIDTH
    nodes[:] = 0
    state[BEST] = np.inf
    while left > 0:
        left = 0
        for lane in range(WIDTH):
            node = nodes[lane]
            if node < 0:
                continue
            fact, x, y, own = facts[node], state[AT_X, lane], state[AT_Y, lane], state[OWN, lane]
            s = np.sqrt((x - fact[X]) ** 2 + (y - fact[Y]) ** 2) * rate
            inside = fact[FIRST] <= own < fact[LAST]
            if not inside or fact[WEIGHT] > fact[HEAVIEST]:
                cost = fact[HIGHEST] if inside else fact[LOWEST]
                state[BEST, lane] = min(state[BEST, lane], max(cost, s + fact[RADIUS]))
            child = tree.right[node]
            if child >= 0:
                one = (x - facts[node + 1, X]) ** 2 + (y - facts[node + 1, Y]) ** 2
                other = (x - facts[child, X]) ** 2 + (y - facts[child, Y]) ** 2
                child = node + 1 if one <= other else child
                left += 1
            nodes[lane] = child


@helper
def _prepare(tree, state, stack, masks, mask, rate, error):
    """Find what the class weighs at least for each query, and from that what is allowed."""
    facts, right = tree.facts, tree.right
    stack[0], masks[0] = 0, weigh(facts, 0, state, mask, rate)
    top = 1 if masks[0] != 0 else 0
    while top > 0:
        top -= 1
        node, opened = stack[top], masks[top]
        left = weigh(facts, node + 1, state, opened, rate)
        other = weigh(facts, right[node], state, opened, rate)
        if other != 0:
            stack[top], masks[top] = right[node], other
            top += 1
        if left != 0:
            stack[top], masks[top] = node + 1, left
            top += 1
    for lane in range(WIDTH):
        best, least = state[BEST, lane], state[LEAST, lane] * (1.0 - 1e-9)
        share = 0.5 * error * least / facts[0, WEIGHT]
        state[REFERENCE, lane], state[DECAY, lane] = best, np.exp(-best)
        state[SHARE, lane], state[LIMIT, lane] = share, share * np.exp(-best)
        state[FARTHEST, lane] = best - np.log(share) if share > 0.0 else np.inf
        state[SUM, lane] = 0.0


@jit
def _answer(data, tree, settings, queries, own, scores):
    blocks, costs, weights = data
    tau, error, mass = settings
    facts, right, moments = tree.facts, tree.right, tree.moments
    rate, half, n_blocks = 1.0 / tau, 0.5 * error, tree.last[0] - tree.first[0]
    start, end = tree.first[0] * LANES, tree.last[0] * LANES
    state, floors = np.empty((N_STATE, WIDTH)), np.empty(WIDTH)
    seen = np.empty((QUEUE, N_SEEN, WIDTH))
    rows, takers = np.empty(QUEUE, dtype=np.int64), np.empty(QUEUE, dtype=np.int64)
    nodes = np.empty(WIDTH, dtype=np.int64)
    stack, masks = np.empty(128, dtype=np.int64), np.empty(128, dtype=np.int64)
    near, counts = np.empty((WIDTH, n_blocks), dtype=np.int32), np.empty(WIDTH, dtype=np.int64)
    for first in range(0, len(queries), WIDTH):
        n_here = min(WIDTH, len(queries) - first)
        for lane in range(WIDTH):
            q = first + min(lane, n_here - 1)
            state[AT_X, lane], state[AT_Y, lane] = queries[q, 0], queries[q, 1]
            inside = start <= own[q] < end
            state[OWN, lane] = own[q] // LANES if inside else -1.0
            state[LEAST, lane] = 0.0
            counts[lane], floors[lane] = 0, np.inf
        mask = EVERY >> (WIDTH - n_here)
        _descend(tree, state, rate, nodes)
        _prepare(tree, state, stack, masks, mask, rate, error)
        stack[0], masks[0] = 0, mask
        top, waiting = 1, 0
        while top > 0:
            top -= 1
            node = stack[top]
            found = judge(facts, node, state, masks[top], rate, half, seen, waiting)
            opened, taken, level = found & EVERY, found >> WIDTH & EVERY, found >> 2 * WIDTH
            if taken != 0:
                rows[waiting], takers[waiting] = tree.row[node], taken
                fetch(moments, rows[waiting])
                waiting += 1
                if waiting == QUEUE:
                    for entry in range(QUEUE):
                        expand(moments, rows[entry], state, takers[entry], seen, entry)
                    waiting = 0
            if level != 0:
                add_level(facts, node, state, level)
            if opened == 0:
                continue
            if right[node] >= 0:
                stack[top], stack[top + 1] = right[node], node + 1
                masks[top] = masks[top + 1] = opened
                top += 2
                continue
            block = tree.first[node]
            while opened != 0:
                lane = lowest_bit(opened)
                opened &= opened - 1
                floors[lane] = min(floors[lane], facts[node, LOWEST])
                if block != state[OWN, lane]:
                    near[lane, counts[lane]] = block
                    counts[lane] += 1
        for entry in range(waiting):
            expand(moments, rows[entry], state, takers[entry], seen, entry)
        for lane in range(n_here):
            q, x, y = first + lane, state[AT_X, lane], state[AT_Y, lane]
            reference, inside = state[REFERENCE, lane], state[OWN, lane] >= 0.0
            if BLURRED * error < reference < np.inf:
                scores[q] = np.nan
                continue
            left = mass_without(weights, start, end, own[q], mass) if inside else mass
            low, listed = reference * tau, near[lane, : counts[lane]]
            if not reference - floors[lane] <= STEEP:
                low = min(low, least_near(blocks, costs, listed, len(listed), x, y))
                if inside:
                    low = min(low, _sum_own(data, own[q], x, y, np.inf, tau)[0])
            if low == np.inf:
                scores[q] = np.inf
                continue
            total = sum_near(blocks, costs, weights, listed, len(listed), x, y, low, rate)
            if inside:
                total += _sum_own(data, own[q], x, y, low, tau)[1]
            if state[SUM, lane] > 0.0:
                total += state[SUM, lane] * np.exp(low / tau - reference)
            scores[q] = low / tau - np.log(total / left)
