"""The minimum spanning tree for any metric, by Prim's algorithm, and the prototypes on the way.

Distances are computed a row at a time, as a sample joins the tree, and only to the samples still
outside: n²/2 of them in all, and O(n) memory.

**Prototypes that do not depend on the order of the rows.** Let S be the samples in the tree so far.
An arc between u in S and v outside lies in some minimum spanning tree exactly if, at some step, its
weight is the smallest of all arcs that leave S. (If: every path from u to v leaves S by an arc at
least as long. Only if: otherwise all samples since the last step with an arc at least as long,
among them u and v, are joined by shorter ones.) So at each step both ends of *every* arc of the
smallest weight that joins two classes are prototypes. Without ties that is the edge Prim takes.

With ties, a sample outside remembers the one *rival*, a sample of another class in S as near as
its nearest, for which this has not been settled yet. Where there are several rivals, the distances
since the first of them are computed once more, each pair at most once; data without ties pay
nothing.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.distances import WeightsAmong, refuse_weight
from popf.engine.runtime.jit import jit
from popf.engine.structures import BoolArray, FloatArray, IntArray, SpanningTree

NONE = -1
SEVERAL = -2
# A sample that has joined the tree keeps its place until the arrays are packed anew.
JOINED = -1.0


class Frontier(NamedTuple):
    """The samples outside the tree, and how each is connected to it."""

    samples: IntArray  # their indices
    keys: FloatArray  # weight of the smallest arc to the tree; JOINED if the sample has joined
    parents: IntArray  # the other end of that arc, the one of lowest index
    rivals: IntArray  # one of another class at distance `keys`, not settled yet; NONE; SEVERAL
    since: IntArray  # the step at which the first such rival joined


@jit
def _update(joined, step, row, frontier, labels):
    """Offer the arcs of the sample that has just joined, and find the smallest arc of all.

    Returns the position of the sample to join next, or ``-1 - position`` of an invalid weight, and how many
    samples are as near to the tree as that one, itself included.
    """
    best, n_ties, lowest = -1, 0, np.inf
    label = labels[joined]
    for k in range(row.size):
        key, weight = frontier.keys[k], row[k]
        # Nearly always nothing changes, so this is tested first.
        if lowest < key < weight < np.inf or key == JOINED:
            continue
        if not 0.0 <= weight < np.inf:
            return -1 - k, 0
        sample = frontier.samples[k]
        if weight < key:
            key = weight
            frontier.keys[k] = weight
            frontier.parents[k] = joined
            frontier.rivals[k] = joined if labels[sample] != label else NONE
            frontier.since[k] = step
        elif weight == key:
            # Among arcs to one sample the smallest is the one whose other end has the lowest index.
            frontier.parents[k] = min(joined, frontier.parents[k])
            if labels[sample] != label:
                if frontier.rivals[k] == NONE:
                    frontier.rivals[k] = joined
                    frontier.since[k] = step
                else:
                    frontier.rivals[k] = SEVERAL
        if key < lowest:
            best, n_ties, lowest = k, 1, key
        elif key == lowest:
            n_ties += 1
            parent = frontier.parents[k]
            held, held_parent = frontier.samples[best], frontier.parents[best]
            lower, held_lower = min(sample, parent), min(held, held_parent)
            if lower < held_lower or (
                lower == held_lower and max(sample, parent) < max(held, held_parent)
            ):
                best = k
    return best, n_ties


@jit
def _settle(lowest, frontier, is_prototype, unsettled):
    """Mark the ends of arcs of weight `lowest` between classes; returns how many samples stay `unsettled`."""
    n_unsettled = 0
    for k in range(frontier.keys.size):
        if frontier.keys[k] != lowest or frontier.rivals[k] == NONE:
            continue
        if frontier.rivals[k] == SEVERAL:
            unsettled[n_unsettled] = k
            n_unsettled += 1
        else:
            is_prototype[frontier.samples[k]] = True
            is_prototype[frontier.rivals[k]] = True
        frontier.rivals[k] = NONE
    return n_unsettled


def _settle_several(
    lowest: float,
    outside: IntArray,
    inside: IntArray,
    weights_among: WeightsAmong,
    labels: IntArray,
    is_prototype: BoolArray,
) -> None:
    """Mark the ends of every arc of weight `lowest` between classes, from `inside` to `outside`."""
    few, many = (inside, outside) if len(inside) <= len(outside) else (outside, inside)
    row = weights_among(many)
    for sample in few:
        ends = many[(row(int(sample)) == lowest) & (labels[many] != labels[sample])]
        is_prototype[ends] = True
        is_prototype[sample] |= len(ends) > 0


def spanning_tree(
    weights_among: WeightsAmong, n_samples: int, labels: IntArray
) -> tuple[SpanningTree, BoolArray]:
    """Grow the minimum spanning tree of the complete graph, its edges in order, and find the prototypes.

    ``weights_among(others)`` gives a function ``row(i)`` of the weights from sample `i` to each of `others`, an
    array of float64. Weights must be symmetric; where they differ in the last bit, the tree is still a spanning
    tree, but ties may be overlooked. A ValueError is raised for one that is negative or not finite.
    """
    n_edges = max(0, n_samples - 1)
    ends = np.empty((n_edges, 2), dtype=np.int64)
    weights = np.empty(n_edges)
    is_prototype = np.zeros(n_samples, dtype=np.bool_)
    order = np.zeros(n_samples, dtype=np.int64)
    unsettled = np.empty(n_edges, dtype=np.int64)
    frontier = Frontier(
        samples=np.arange(1, n_samples, dtype=np.int64),
        keys=np.full(n_edges, np.inf),
        parents=np.zeros(n_edges, dtype=np.int64),
        rivals=np.full(n_edges, NONE, dtype=np.int64),
        since=np.zeros(n_edges, dtype=np.int64),
    )
    row = weights_among(frontier.samples)

    for step in range(n_edges):
        joined = int(order[step])
        distances = row(joined)
        best, n_ties = _update(joined, step, distances, frontier, labels)
        if best < 0:
            refuse_weight(
                distances[-1 - best], f"samples {joined} and {frontier.samples[-1 - best]}"
            )
        lowest = frontier.keys[best]
        if n_ties > 1 or frontier.rivals[best] != NONE:
            positions = unsettled[: _settle(lowest, frontier, is_prototype, unsettled)]
            for first in np.unique(frontier.since[positions]):
                outside = frontier.samples[positions[frontier.since[positions] == first]]
                inside = order[first : step + 1]
                _settle_several(lowest, outside, inside, weights_among, labels, is_prototype)
        ends[step] = frontier.parents[best], frontier.samples[best]
        weights[step] = lowest
        order[step + 1] = frontier.samples[best]
        frontier.keys[best] = JOINED
        # One in eight has joined: computing their distances would cost more than packing anew.
        if 8 * (n_edges - 1 - step) <= 7 * len(frontier.keys):
            frontier = Frontier(*(array[frontier.keys != JOINED] for array in frontier))
            row = weights_among(frontier.samples)

    return SpanningTree(ends[:, 0], ends[:, 1], weights).in_order(), is_prototype
