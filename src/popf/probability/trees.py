"""Boosted trees ("trees"), which learn rules: thresholds, and interactions of several features.

Every round adds a small tree to the logits of each class, or one tree to the log odds of two classes. Splits
and leaves are chosen by Newton steps on the log loss with a ridge penalty (Friedman, 2001; Chen and Guestrin,
2016). The trees of a round use half of the features, or fewer of many, with binned values; with many samples
they are deeper, and bins smaller. Nothing is random: a hash selects the features.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.points import hash64
from popf.engine.runtime.jit import helper, jit
from popf.engine.structures import FloatArray, IntArray
from popf.probability.components import Fold
from popf.probability.logits import Coefficient, from_log_odds
from popf.probability.scaler import ROUNDING
from popf.state import Integer, Sizes, StateError

ComplexArray = NDArray[np.complex128]

#: Numbers of rounds to try, for two classes; more classes need a tree each, and get twice the rate for half as
#: many rounds. Without the last, the loss rises by 0.4 % with 1,500 samples, and by 5 % on wide tables.
N_ROUNDS = (5, 10, 20, 40, 80, 160, 320, 640)
#: Maximum number of trees beyond the fewest rounds; it binds from nine classes on.
MAX_TREES = 2_560
#: Factor of the values of leaves; half of it costs 0.5 %, twice 0.3 %.
RATE = 0.1
#: Rounds per call of the compiled code; Ctrl-C takes effect between calls.
ROUNDS_PER_CALL = 10
#: Ridge penalty on the values of leaves; 0.2 costs 0.2 %, and 5 costs 0.5 %.
RIDGE = 1.0
#: Depth of a tree with few samples; from 12,800 on, twice the samples add 1. Trees of depth 4 lost 4 % on
#: 38,000 diamonds, and deeper ones up to 1 % on 10,000 samples.
MIN_DEPTH, SAMPLES_PER_LEAF = 4, 400
#: Maximum number of features that a tree may use, which bounds time and memory. 20 cost 0.3 % on average, and
#: up to 7 % on wide tables and on many levels.
MAX_FEATURES = 100
#: Maximum number of bins per feature, with few samples and with many; in between, one for so many samples. 32
#: for few samples cost 0.3 %, 16 as much again; one for twice as many samples is as good.
BINS, SAMPLES_PER_BIN = (64, 255), 80
#: Minimum sum of p (1 - p) on either side of a split. With 3.0, trees lost 10 to 35 % on tables of rules.
MIN_CHILD_CURVATURE = 0.2


class BoostedTrees(NamedTuple):
    """Trees that sum to the log odds of two classes, or to the logits of more.

    With more than two classes, tree t belongs to class t % n_classes. The root of a tree is node 0. From node
    q, samples up to the cut go to node 2q + 1, others to 2q + 2. The value of a node is the weighted mean of
    its children's values, so that features contribute 0 on average.
    """

    #: Feature that splits a node, -1 for no split.
    features: Annotated[
        NDArray[np.int32], Integer("n_trees", "n_inner", low=-1, of="n_encoded", dtype=np.int32)
    ]
    cuts: Annotated[FloatArray, Coefficient("n_trees", "n_inner")]
    #: 0 at the roots.
    values: Annotated[FloatArray, Coefficient("n_trees", "n_tree_nodes")]
    intercepts: Annotated[FloatArray, Coefficient("n_classes")]

    def check_state(self, sizes: Sizes) -> None:
        """Check the numbers of trees and nodes, and the roots; see `popf.state`."""
        if len(self.features) % self._n_outputs:
            raise StateError(f"a multiple of {self._n_outputs} trees", "features")
        n_nodes = 2 * sizes["n_inner"] + 1
        if self.values.shape[1] != n_nodes or self.values[:, 0].any():
            raise StateError(f"values of {n_nodes} nodes, 0 at the roots", "values")

    def logits(self, samples: FloatArray) -> FloatArray:
        """Compute the logits of scaled samples: (n_samples, n_classes)."""
        found = np.zeros((len(samples), self._n_outputs))
        _add_values(np.ascontiguousarray(samples), *self._trees(), found)
        return from_log_odds(found) + self.intercepts

    def contributions(self, samples: FloatArray) -> FloatArray:
        """Split logits minus intercepts by feature: (n_samples, n_features, n_classes).

        On the path to a leaf, each change in value is attributed to the feature that the node splits on.
        """
        found = np.zeros((*samples.shape, self._n_outputs))
        _add_shares(np.ascontiguousarray(samples), *self._trees(), found)
        return from_log_odds(found)

    @property
    def _n_outputs(self) -> int:
        n_classes = len(self.intercepts)
        return 1 if n_classes == 2 else n_classes

    def _trees(self) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        """Return features, cuts and values; cuts are infinite where a node does not split."""
        return self.features, np.where(self.features < 0, np.inf, self.cuts), self.values


class Trees:
    """The component of boosted trees; its complexity is the number of rounds."""

    paths: Sequence[Sequence[Any]] = (N_ROUNDS,)

    def fit(self, fold: Fold, complexity: Any) -> BoostedTrees:
        """Boost for a number of rounds."""
        return _Boosting(fold).boost_to(complexity)

    def score_path(
        self, fold: Fold, queries: FloatArray, path: Sequence[Any]
    ) -> Iterator[FloatArray]:
        """Boost for more and more rounds, as far as the number of classes allows."""
        boosting, logits = _Boosting(fold), np.zeros((len(queries), fold.n_classes))
        for n_rounds in path:
            if boosting.n_trees(n_rounds) > MAX_TREES and n_rounds > path[0]:
                return
            logits = logits + boosting.boost_to(n_rounds).logits(queries)
            yield logits


class _Boosting:
    """Boosting on the samples of a fold, for an increasing number of rounds.

    Depth and bins of a tree depend on the number of all samples: so they are the same in a fold and in the
    final fit.
    """

    def __init__(self, fold: Fold) -> None:
        self._codes, self._weights, n_classes = fold.codes, fold.weights, fold.n_classes
        self._depth = max(MIN_DEPTH, int(np.log2(fold.n_samples / SAMPLES_PER_LEAF)))
        max_bins = int(np.clip(fold.n_samples // SAMPLES_PER_BIN, *BINS))
        bins = [_bins(column, fold.weights, max_bins) for column in fold.samples.T]
        self._bins = np.array([own for own, _ in bins], dtype=np.uint8).T.copy()
        self._n_bins = np.array([len(edges) + 1 for _, edges in bins], dtype=np.int64)
        self._edges = np.zeros((len(bins), max_bins))
        for row, (_, edges) in zip(self._edges, bins, strict=True):
            row[: len(edges)] = edges
        self._n_outputs = 1 if n_classes == 2 else n_classes
        self._n_tried = min((len(bins) + 1) // 2, MAX_FEATURES)
        # Half a sample is added to each class, because a class may have none.
        logs = np.log(np.bincount(fold.codes, weights=fold.weights, minlength=n_classes) + 0.5)
        self._start = logs[1:] - logs[:1] if n_classes == 2 else logs - logs.mean()
        self._outputs = np.tile(self._start, (len(fold.codes), 1))
        self._n_rounds = 0

    def n_trees(self, n_rounds: int) -> int:
        """Return the number of trees in so many rounds, half as many with more than two classes."""
        return n_rounds if self._n_outputs == 1 else n_rounds // 2 * self._n_outputs

    def boost_to(self, n_rounds: int) -> BoostedTrees:
        """Boost up to so many rounds, half as many with more than two classes; return the new trees."""
        last = self.n_trees(n_rounds) // self._n_outputs
        start = self._start if self._n_rounds == 0 else np.zeros_like(self._start)
        parts = []
        while self._n_rounds < last:
            parts.append(self._add_trees(min(ROUNDS_PER_CALL, last - self._n_rounds)))
        features, cuts, values, roots = (np.concatenate(each) for each in zip(*parts, strict=True))
        intercepts = start + roots.reshape(-1, self._n_outputs).sum(axis=0)
        return BoostedTrees(features, cuts, values, from_log_odds(intercepts))

    def _add_trees(
        self, n_rounds: int
    ) -> tuple[NDArray[np.int32], FloatArray, FloatArray, FloatArray]:
        """Grow the trees of some rounds; return features, cuts, values, and the values of the roots."""
        n_features = self._bins.shape[1]
        numbers = hash64(self._n_rounds * n_features + np.arange(n_rounds * n_features))
        ranked = np.argsort(numbers.reshape(n_rounds, n_features), axis=1)
        chosen = np.sort(ranked[:, : self._n_tried], axis=1)
        tried = np.repeat(chosen, self._n_outputs, axis=0).astype(np.uint32)
        trees, roots = _empty_trees(len(tried), self._depth), np.empty(len(tried))
        _boost(
            self._bins,
            self._n_bins,
            self._edges,
            tried,
            self._codes,
            self._weights,
            self._outputs,
            *trees,
            roots,
        )
        self._n_rounds += n_rounds
        return *trees, roots


def _empty_trees(n_trees: int, depth: int) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
    """Return features, cuts and values of trees that do not split."""
    n_inner = 2**depth - 1
    features = np.full((n_trees, n_inner), -1, dtype=np.int32)
    return features, np.zeros((n_trees, n_inner)), np.zeros((n_trees, 2 * n_inner + 1))


def _bins(values: FloatArray, weights: FloatArray, max_bins: int) -> tuple[IntArray, FloatArray]:
    """Sort values into bins of about equal weight; return the bin of each value, and the edges between bins."""
    distinct, which = np.unique(values, return_inverse=True)
    own = np.bincount(which, weights=weights)
    bins = np.arange(len(distinct))
    if len(distinct) > max_bins:
        middle = (np.cumsum(own) - own / 2.0) / own.sum()
        _, bins = np.unique(np.floor(max_bins * (middle + ROUNDING)), return_inverse=True)
    last = np.flatnonzero(np.diff(bins))
    low, high = distinct[last], distinct[last + 1]
    edges = low + (high - low) / 2.0
    return bins[which], np.where(edges < high, edges, low)


@helper
def _differentiate(
    codes: IntArray, weights: FloatArray, outputs: FloatArray, derivatives: ComplexArray
) -> None:
    """Compute derivatives of the log likelihood: first ones as real, minus second ones as imaginary parts."""
    n, n_outputs = outputs.shape
    for i in range(n):
        total = 0.0
        if n_outputs == 1:
            derivatives[0, i], total = 1.0, 1.0 + np.exp(-outputs[i, 0])
        else:
            highest = outputs[i, 0]
            for k in range(1, n_outputs):
                highest = max(highest, outputs[i, k])
            for k in range(n_outputs):
                derivatives[k, i] = np.exp(outputs[i, k] - highest)
                total += derivatives[k, i].real
        for k in range(n_outputs):
            probability = derivatives[k, i].real / total
            own = codes[i] == (1 if n_outputs == 1 else k)
            residual = (1.0 if own else 0.0) - probability
            curvature = probability * (1.0 - probability)
            derivatives[k, i] = complex(weights[i] * residual, weights[i] * curvature)


@helper
def _sum_by_bin(
    bins: NDArray[np.uint8],
    members: NDArray[np.uint32],
    tried: NDArray[np.uint32],
    derivatives: ComplexArray,
    sums: ComplexArray,
) -> None:
    """Sum the derivatives of some samples by feature and bin."""
    sums[:] = 0.0
    for i in members:
        own = derivatives[i]
        for number in range(len(tried)):
            sums[number, bins[i, tried[number]]] += own


@helper
def _best_split(
    sums: ComplexArray, n_bins: IntArray, tried: NDArray[np.uint32], total: complex
) -> tuple[int, int, complex]:
    """Find the best split of a node: index of its feature, -1 for none, its cut, and the sum on the left."""
    found = -1, 0, total
    before = total.real**2 / (total.imag + RIDGE)
    # A split must beat the best one so far by more than rounding errors, relative and absolute.
    to_beat = before + ROUNDING
    for number in range(len(tried)):
        left = 0.0j
        for cut in range(n_bins[tried[number]] - 1):
            left += sums[number, cut]
            right = total - left
            if left.imag < MIN_CHILD_CURVATURE:
                continue
            if right.imag < MIN_CHILD_CURVATURE:
                break
            # The sum over both sides of residual^2 / (curvature + ridge), as a fraction: divisions are slow.
            ours, other = left.imag + RIDGE, right.imag + RIDGE
            gain = left.real**2 * other + right.real**2 * ours
            if gain > to_beat * ours * other:
                found = number, cut, left
                gain = gain / (ours * other) - before
                to_beat = before + gain * (1.0 + ROUNDING) + ROUNDING
    return found


@helper
def _partition(
    bins: NDArray[np.uint8],
    feature: int,
    cut: int,
    members: NDArray[np.uint32],
    spare: NDArray[np.uint32],
) -> int:
    """Move samples above the cut behind the others, both in their order; return how many are not above it."""
    n_left, n_right = 0, 0
    for i in members:
        members[n_left], spare[n_right] = i, i  # without a branch, which would be mispredicted
        above = bins[i, feature] > cut
        n_left, n_right = n_left + (not above), n_right + above
    # A loop, because Numba takes seconds to compile the assignment of a slice.
    for position in range(n_right):
        members[n_left + position] = spare[position]
    return n_left


@jit
def _boost(
    bins: NDArray[np.uint8],
    n_bins: IntArray,
    edges: FloatArray,
    tried: NDArray[np.uint32],
    codes: IntArray,
    weights: FloatArray,
    outputs: FloatArray,
    features: NDArray[np.int32],
    cuts: FloatArray,
    values: FloatArray,
    roots: FloatArray,
) -> None:
    """Grow a tree on the features in each row of `tried`, and add its values to the outputs."""
    (n, n_outputs), (n_trees, n_tried) = outputs.shape, tried.shape
    n_inner, n_nodes, max_bins = features.shape[1], values.shape[1], 0
    for own_bins in n_bins:  # a loop, because Numba takes half a second to compile `n_bins.max()`
        max_bins = max(max_bins, own_bins)
    derivatives = np.empty((n_outputs, n), np.complex128)
    # The samples, those of a node together, and where those of each node start and end.
    order, spare = np.empty(n, np.uint32), np.empty(n, np.uint32)
    starts, ends = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    # Sums of derivatives by node, and by node, feature and bin.
    totals = np.empty(n_nodes, np.complex128)
    sums = np.empty((n_inner, n_tried, max_bins), np.complex128)
    is_open, masses = np.empty(n_nodes, np.bool_), np.empty(n_nodes)
    rate = RATE if n_outputs == 1 else 2.0 * RATE * (n_outputs - 1.0) / n_outputs
    for tree in range(n_trees):
        output = tree % n_outputs
        if output == 0:
            _differentiate(codes, weights, outputs, derivatives)
        own = derivatives[output]
        totals[0] = 0.0
        for i in range(n):
            order[i] = i
            totals[0] += own[i]
        ends[0] = n
        is_open[0] = totals[0].imag >= 2.0 * MIN_CHILD_CURVATURE
        if is_open[0]:
            _sum_by_bin(bins, order, tried[tree], own, sums[0])
        for node in range(n_inner):
            left, right = 2 * node + 1, 2 * node + 2
            start, end, middle = starts[node], ends[node], ends[node]
            number, cut, totals[left] = -1, 0, totals[node]
            if is_open[node]:
                number, cut, totals[left] = _best_split(
                    sums[node], n_bins, tried[tree], totals[node]
                )
            totals[right] = totals[node] - totals[left]
            if number >= 0:
                feature = tried[tree, number]
                features[tree, node], cuts[tree, node] = feature, edges[feature, cut]
                middle = start + _partition(bins, feature, cut, order[start:end], spare)
            starts[left], ends[left], starts[right], ends[right] = start, middle, middle, end
            for child in (left, right):
                enough = totals[child].imag >= 2.0 * MIN_CHILD_CURVATURE
                is_open[child] = enough and number >= 0 and child < n_inner
            fewer, more = (left, right) if middle - start <= end - middle else (right, left)
            if is_open[left] or is_open[right]:
                members = order[starts[fewer] : ends[fewer]]
                _sum_by_bin(bins, members, tried[tree], own, sums[fewer])
            if is_open[more]:
                for number in range(n_tried):
                    for k in range(max_bins):
                        sums[more, number, k] = sums[node, number, k] - sums[fewer, number, k]
        masses[:] = 0.0
        for node in range(n_inner, n_nodes):
            values[tree, node] = rate * totals[node].real / (totals[node].imag + RIDGE)
            for i in order[starts[node] : ends[node]]:
                outputs[i, output] += values[tree, node]
                masses[node] += weights[i]
        for node in range(n_inner - 1, -1, -1):
            below, other = 2 * node + 1, 2 * node + 2
            masses[node] = masses[below] + masses[other]
            share = masses[other] / masses[node] if masses[other] > 0.0 else 0.0
            values[tree, node] = (1.0 - share) * values[tree, below] + share * values[tree, other]
        roots[tree] = values[tree, 0]
        for node in range(n_nodes):
            values[tree, node] -= roots[tree]


@helper
def _next_node(
    samples: FloatArray, i: int, features: NDArray[np.int32], cuts: FloatArray, tree: int, node: int
) -> int:
    """Find the next node of a sample, without a branch; the left child if the node does not split."""
    # Without a split the feature is -1, the last one, and the cut is infinite.
    right = samples[i, features[tree, node]] > cuts[tree, node]
    return 2 * node + 1 + int(right)


@jit
def _add_values(
    samples: FloatArray,
    features: NDArray[np.int32],
    cuts: FloatArray,
    values: FloatArray,
    found: FloatArray,
) -> None:
    """Add the values of the leaves to `found`: (n_samples, n_outputs)."""
    n_outputs, n_inner = found.shape[1], features.shape[1]
    for tree in range(len(features)):
        for i in range(len(samples)):
            node = 0
            while node < n_inner:
                node = _next_node(samples, i, features, cuts, tree, node)
            found[i, tree % n_outputs] += values[tree, node]


@jit
def _add_shares(
    samples: FloatArray,
    features: NDArray[np.int32],
    cuts: FloatArray,
    values: FloatArray,
    found: FloatArray,
) -> None:
    """Add the changes in value due to each feature to `found`: (n_samples, n_features, n_outputs)."""
    n_outputs, n_inner = found.shape[2], features.shape[1]
    for tree in range(len(features)):
        for i in range(len(samples)):
            node = 0
            while node < n_inner:
                feature, below = (
                    features[tree, node],
                    _next_node(samples, i, features, cuts, tree, node),
                )
                if feature >= 0:
                    found[i, feature, tree % n_outputs] += values[tree, below] - values[tree, node]
                node = below
