"""The minimum spanning tree for any metric, by Prim's algorithm, and the arcs that tie.

When a sample joins the tree, its distances to the samples still outside are computed, one row at a time: n²/2
distances in all, and O(n) memory.

**Prototypes that do not depend on the order of the rows.** Let S be the samples in the tree so far. An arc
between u in S and v outside belongs to some minimum spanning tree exactly if, at some step, its weight is the
smallest of all arcs that leave S. (If: every path from u to v leaves S by an arc at least as long. Only if:
otherwise all samples since the last step with an arc at least as long, among them u and v, are joined by
shorter ones.) So at each step both ends of *every* arc of the smallest weight that joins two classes are
prototypes. Without ties, this is the edge that Prim's algorithm adds.

With ties, each sample outside stores one *rival*: a sample of another class in S, as near as its nearest
sample in S, for which this condition has not been checked yet. Where there are several rivals, the distances to
all samples since the first of them are computed again, each pair at most once; data without ties have no extra
cost.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.distances import WeightsAmong, refuse_weight
from popf.engine.runtime.jit import jit
from popf.engine.structures import BoolArray, FloatArray, IntArray, SpanningTree

NONE = -1
SEVERAL = -2
# The key of a sample that has joined the tree, until the arrays are compacted.
JOINED = -1.0


class Frontier(NamedTuple):
    """The samples outside the tree, and how each is connected to it."""

    samples: IntArray  # their indices
    keys: FloatArray  # weight of the smallest arc to the tree, or JOINED
    parents: IntArray  # the other end of that arc; the lowest index on ties
    rivals: IntArray  # unsettled sample of another class at distance `keys`; or NONE, SEVERAL
    since: IntArray  # the step at which the first rival joined


@jit
def _update(joined, step, row, frontier, labels):
    """Offer the arcs of the sample that has just joined, and find the smallest arc out of the tree.

    Returns the position of the sample to join next, or ``-1 - position`` of an invalid weight, and the number
    of samples that are as near to the tree as that one, including itself.
    """
    best, n_ties, lowest = -1, 0, np.inf
    label = labels[joined]
    for k in range(row.size):
        key, weight = frontier.keys[k], row[k]
        # Usually nothing changes, so this is tested first.
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
            # Among tied arcs to one sample, the one whose other end has the lowest index is first.
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
def _mark_tied_prototypes(lowest, frontier, is_prototype, unsettled):
    """Mark the ends of arcs of weight `lowest` between classes; return how many samples remain `unsettled`."""
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


def _mark_ties_of_several(
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
    """Compute the minimum spanning tree of the complete graph, with sorted edges, and its prototypes.

    ``weights_among(others)`` returns a function ``row(i)`` that computes the weights from sample `i` to each of
    `others`, as a float64 array. Weights must be symmetric; if they differ in the last bit, the result is still
    a spanning tree, but ties may be missed. Raises ValueError for a negative or non-finite weight.
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
            n_unsettled = _mark_tied_prototypes(lowest, frontier, is_prototype, unsettled)
            positions = unsettled[:n_unsettled]
            for first in np.unique(frontier.since[positions]):
                outside = frontier.samples[positions[frontier.since[positions] == first]]
                inside = order[first : step + 1]
                _mark_ties_of_several(lowest, outside, inside, weights_among, labels, is_prototype)
        ends[step] = frontier.parents[best], frontier.samples[best]
        weights[step] = lowest
        order[step + 1] = frontier.samples[best]
        frontier.keys[best] = JOINED
        # When one in eight has joined, compacting costs less than computing their distances.
        if 8 * (n_edges - 1 - step) <= 7 * len(frontier.keys):
            frontier = Frontier(*(array[frontier.keys != JOINED] for array in frontier))
            row = weights_among(frontier.samples)

    return SpanningTree(ends[:, 0], ends[:, 1], weights).in_order(), is_prototype
