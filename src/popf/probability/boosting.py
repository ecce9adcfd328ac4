"""Boosted trees: evidence of thresholds, and of several features together.

Every round adds a small tree to the exponents of each class, or to the log odds of two, that lowers the log
loss most, by Newton's steps with a ridge (Friedman, 2001; Chen and Guestrin, 2016). The trees of a round look
at half of the features, 10 at most, whose values are sorted into a few bins. Nothing is random: a hash chooses.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.points import scrambled
from popf.engine.runtime.jit import helper, jit
from popf.engine.structures import FloatArray, IntArray

#: Rounds between which Ctrl-C is heard.
ROUNDS_AT_ONCE = 10
#: What is taken of a step: of more than two classes, whose trees are many, twice as much in half of the rounds.
RATE, RATE_OF_MORE = 0.1, 0.2
#: The ridge that shortens a step, and how often a tree splits on the way to a leaf.
RIDGE, DEPTH = 1.0, 4
N_INNER, N_NODES = 2**DEPTH - 1, 2 ** (DEPTH + 1) - 1
#: Features that a tree looks at, and bins of a feature.
MOST_TRIED, MOST_BINS = 10, 32
#: The sum of p (1 - p) on either side of a split at least.
LEAST_CURVATURE = 3.0
#: What a sample's curvature is at least, so that no step is without bounds.
SMALLEST_CURVATURE = 1e-6
#: By how much, relative to the other, a split must be better to be preferred: more than rounding.
CLEARLY_BETTER = 1e-9


class BoostedTrees(NamedTuple):
    """Trees whose sums are log odds of two classes, or exponents of more; their classes come in turn.

    The root of a tree is its node 0; node q leads to 2q + 1, up to its cut, or else to 2q + 2. The value of a
    node is the mean of those below it, so that no feature adds anything on average.
    """

    features: NDArray[np.int32]  # (n_trees, n_inner): by which a node splits, -1 if it does not
    cuts: FloatArray  # (n_trees, n_inner)
    values: FloatArray  # (n_trees, n_nodes): 0 at the roots
    intercepts: FloatArray  # (n_classes,)

    def exponents(self, samples: FloatArray) -> FloatArray:
        """Exponents of the classes: (n_samples, n_classes)."""
        found = np.zeros((len(samples), self._n_outputs))
        _add_values(np.ascontiguousarray(samples), *self._trees(), found)
        return _by_class(found) + self.intercepts

    def exponents_of_columns(self, columns: FloatArray) -> FloatArray:
        """Exponents of the classes from columns, which are the samples themselves."""
        return self.exponents(columns)

    def without_intercepts(self) -> tuple["BoostedTrees", FloatArray]:
        """Split into a function of mean 0 among the training samples, and the intercepts."""
        return self._replace(intercepts=np.zeros_like(self.intercepts)), self.intercepts

    def shares(self, samples: FloatArray) -> FloatArray:
        """Split the exponents, intercepts apart, by features: (n_samples, n_features, n_classes).

        On the way to its leaf, a sample owes each change of the value to the feature that the node splits by.
        """
        found = np.zeros((*samples.shape, self._n_outputs))
        _add_shares(np.ascontiguousarray(samples), *self._trees(), found)
        return _by_class(found)

    @property
    def _n_outputs(self) -> int:
        n_classes = len(self.intercepts)
        return 1 if n_classes == 2 else n_classes

    def _trees(self) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        """Features, cuts and values; no sample is above the cut of a node that does not split."""
        return self.features, np.where(self.features < 0, np.inf, self.cuts), self.values


def _by_class(found: FloatArray) -> FloatArray:
    """Make exponents of two classes from log odds."""
    return found * np.array([-0.5, 0.5]) if found.shape[-1] == 1 else found


class Boosting:
    """Boosts trees on samples, for more and more rounds; some of the classes may be missing."""

    def __init__(
        self, samples: FloatArray, codes: IntArray, weights: FloatArray, n_classes: int
    ) -> None:
        #: Numbers of rounds to try.
        self.strengths = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
        if n_classes > 2:
            self.strengths = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
        # The mean sample is one at least.
        weights = weights * max(1.0, len(weights) / weights.sum())
        bins = [_bins(column, weights) for column in samples.T]
        self._bins = np.array([own for own, _ in bins], dtype=np.uint8)
        self._n_bins = np.array([len(edges) + 1 for _, edges in bins], dtype=np.int64)
        self._edges = np.zeros((len(bins), MOST_BINS))
        for row, (_, edges) in zip(self._edges, bins, strict=True):
            row[: len(edges)] = edges
        self._codes, self._weights = codes, weights
        self._n_outputs = 1 if n_classes == 2 else n_classes
        # A class that is not there is as rare as one half of a sample.
        logs = np.log(np.bincount(codes, weights=weights, minlength=n_classes) + 0.5)
        self._start = logs[1:] - logs[:1] if n_classes == 2 else logs - logs.mean()
        self._outputs = np.tile(self._start, (len(codes), 1))
        self._trees = [_no_trees(0)]
        self._roots = [np.empty(0)]
        self._n_rounds = 0

    def centered_columns(self, samples: FloatArray) -> FloatArray:
        """Return new samples as they are, for `BoostedTrees.exponents_of_columns`."""
        return samples

    def fit(self, n_rounds: float) -> BoostedTrees:
        """Boost for so many rounds, beginning where the last fit ended; no fewer than then."""
        while self._n_rounds < n_rounds:
            self._add_trees(min(ROUNDS_AT_ONCE, int(n_rounds) - self._n_rounds))
        features, cuts, values = (np.concatenate(each) for each in zip(*self._trees, strict=True))
        roots = np.concatenate(self._roots).reshape(-1, self._n_outputs).sum(axis=0)
        intercepts = _by_class((self._start + roots)[None])[0]
        return BoostedTrees(features, cuts, values, intercepts)

    def _add_trees(self, n_rounds: int) -> None:
        n_features = len(self._bins)
        numbers = scrambled(self._n_rounds * n_features + np.arange(n_rounds * n_features))
        ranked = np.argsort(numbers.reshape(n_rounds, n_features), axis=1)
        tried = np.sort(ranked[:, : min((n_features + 1) // 2, MOST_TRIED)], axis=1)
        tried = np.repeat(tried, self._n_outputs, axis=0)
        trees, roots = _no_trees(len(tried)), np.empty(len(tried))
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
        self._trees.append(trees)
        self._roots.append(roots)
        self._n_rounds += n_rounds


def _no_trees(number: int) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
    features = np.full((number, N_INNER), -1, dtype=np.int32)
    return features, np.zeros((number, N_INNER)), np.zeros((number, N_NODES))


def _bins(values: FloatArray, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Sort values into bins of about the same weight: the bin of each, and the edges between them."""
    distinct, which = np.unique(values, return_inverse=True)
    own = np.bincount(which, weights=weights)
    bins = np.arange(len(distinct))
    if len(distinct) > MOST_BINS:
        middle = (np.cumsum(own) - own / 2.0) / own.sum()
        _, bins = np.unique(np.floor(MOST_BINS * middle + 1e-9), return_inverse=True)
    last = np.flatnonzero(np.diff(bins))
    low, high = distinct[last], distinct[last + 1]
    edges = low + (high - low) / 2.0
    return bins[which], np.where(edges < high, edges, low)


@helper
def _differentiate(
    codes: IntArray,
    weights: FloatArray,
    outputs: FloatArray,
    residuals: FloatArray,
    curvatures: FloatArray,
) -> None:
    """Differentiate the log likelihood by the outputs; curvatures are minus its second derivatives."""
    n, n_outputs = outputs.shape
    for i in range(n):
        total = 0.0
        if n_outputs == 1:
            residuals[0, i], total = 1.0, 1.0 + np.exp(-outputs[i, 0])
        else:
            highest = outputs[i, 0]
            for k in range(1, n_outputs):
                highest = max(highest, outputs[i, k])
            for k in range(n_outputs):
                residuals[k, i] = np.exp(outputs[i, k] - highest)
                total += residuals[k, i]
        for k in range(n_outputs):
            probability = residuals[k, i] / total
            own = codes[i] == (1 if n_outputs == 1 else k)
            residuals[k, i] = weights[i] * ((1.0 if own else 0.0) - probability)
            curvature = max(probability * (1.0 - probability), SMALLEST_CURVATURE)
            curvatures[k, i] = weights[i] * curvature


@jit
def _boost(
    bins: NDArray[np.uint8],
    n_bins: IntArray,
    edges: FloatArray,
    tried: IntArray,
    codes: IntArray,
    weights: FloatArray,
    outputs: FloatArray,
    features: NDArray[np.int32],
    cuts: FloatArray,
    values: FloatArray,
    roots: FloatArray,
) -> None:
    """Grow a tree for each row of `tried`, the features that it looks at, and add it to the outputs."""
    n, n_outputs = outputs.shape
    residuals, curvatures = np.empty((n_outputs, n)), np.empty((n_outputs, n))
    nodes = np.empty(n, np.int64)
    # Sums over the samples of a node, and over those of a node and bin: residuals and curvatures.
    residual_in, curvature_in = np.empty(N_NODES), np.empty(N_NODES)
    sums = np.empty((N_INNER, MOST_BINS, 2))
    gains, best, masses = np.empty(N_INNER), np.empty(N_INNER, np.int64), np.empty(N_NODES)
    rate = RATE if n_outputs == 1 else RATE_OF_MORE * (n_outputs - 1.0) / n_outputs
    for tree in range(len(tried)):
        output = tree % n_outputs
        if output == 0:
            _differentiate(codes, weights, outputs, residuals, curvatures)
        residual_in[0], curvature_in[0] = 0.0, 0.0
        for i in range(n):
            nodes[i] = 0
            residual_in[0] += residuals[output, i]
            curvature_in[0] += curvatures[output, i]
        for level in range(DEPTH):
            first, end = 2**level - 1, 2 ** (level + 1) - 1
            n_open = 0  # nodes that may split
            for node in range(first, end):
                gains[node], best[node] = 0.0, MOST_BINS  # all go left
                residual_in[2 * node + 1], residual_in[2 * node + 2] = residual_in[node], 0.0
                curvature_in[2 * node + 1], curvature_in[2 * node + 2] = curvature_in[node], 0.0
                n_open += curvature_in[node] >= 2.0 * LEAST_CURVATURE
            n_tried = len(tried[tree]) if n_open else 0
            for feature in tried[tree, :n_tried]:
                sums[first:end] = 0.0
                for i in range(n):
                    here = sums[nodes[i], bins[feature, i]]
                    here[0] += residuals[output, i]
                    here[1] += curvatures[output, i]
                for node in range(first, end):
                    if curvature_in[node] < 2.0 * LEAST_CURVATURE:
                        continue
                    before = residual_in[node] ** 2 / (curvature_in[node] + RIDGE)
                    left, left_curvature = 0.0, 0.0
                    for cut in range(n_bins[feature] - 1):
                        left += sums[node, cut, 0]
                        left_curvature += sums[node, cut, 1]
                        right_curvature = curvature_in[node] - left_curvature
                        if min(left_curvature, right_curvature) < LEAST_CURVATURE:
                            continue
                        right = residual_in[node] - left
                        gain = left**2 / (left_curvature + RIDGE) - before
                        gain += right**2 / (right_curvature + RIDGE)
                        if gain > gains[node] * (1.0 + CLEARLY_BETTER) + CLEARLY_BETTER:
                            gains[node], best[node] = gain, cut
                            features[tree, node], cuts[tree, node] = feature, edges[feature, cut]
                            residual_in[2 * node + 1], residual_in[2 * node + 2] = left, right
                            curvature_in[2 * node + 1] = left_curvature
                            curvature_in[2 * node + 2] = right_curvature
            for i in range(n):
                node = nodes[i]
                # Of a node without a feature the last one's bins are asked: none is above the best.
                nodes[i] = 2 * node + 1 + (bins[features[tree, node], i] > best[node])
        for node in range(N_INNER, N_NODES):
            values[tree, node] = rate * residual_in[node] / (curvature_in[node] + RIDGE)
            masses[node] = 0.0
        for i in range(n):
            outputs[i, output] += values[tree, nodes[i]]
            masses[nodes[i]] += weights[i]
        for node in range(N_INNER - 1, -1, -1):
            below, other = 2 * node + 1, 2 * node + 2
            masses[node] = masses[below] + masses[other]
            share = masses[other] / masses[node] if masses[other] > 0.0 else 0.0
            values[tree, node] = (1.0 - share) * values[tree, below] + share * values[tree, other]
        roots[tree] = values[tree, 0]
        for node in range(N_NODES):
            values[tree, node] -= roots[tree]


@helper
def _below(
    samples: FloatArray, i: int, features: NDArray[np.int32], cuts: FloatArray, tree: int, node: int
) -> int:
    """Find the node that a sample goes to next, without a branch; left where a node does not split."""
    # There the feature is -1, which is the last one, and the cut is infinite.
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
    """Add up the values of the leaves: (n_samples, n_outputs)."""
    n_outputs = found.shape[1]
    for tree in range(len(features)):
        for i in range(len(samples)):
            node = 0
            while node < N_INNER:
                node = _below(samples, i, features, cuts, tree, node)
            found[i, tree % n_outputs] += values[tree, node]


@jit
def _add_shares(
    samples: FloatArray,
    features: NDArray[np.int32],
    cuts: FloatArray,
    values: FloatArray,
    found: FloatArray,
) -> None:
    """Add up what the values change by each feature: (n_samples, n_features, n_outputs)."""
    n_outputs = found.shape[2]
    for tree in range(len(features)):
        for i in range(len(samples)):
            node = 0
            while node < N_INNER:
                feature, below = (
                    features[tree, node],
                    _below(samples, i, features, cuts, tree, node),
                )
                if feature >= 0:
                    found[i, feature, tree % n_outputs] += values[tree, below] - values[tree, node]
                node = below
