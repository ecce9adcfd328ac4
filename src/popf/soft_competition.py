"""The soft method: a forest's training nodes as competitors, and the fit of its probabilities."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf import bandwidth as fitting
from popf.engine.conquest import FAR
from popf.engine.conquest_scan import BLOCK_BYTES, BlockOfDistances, rows_per_block
from popf.engine.distances import kernel_blocks
from popf.engine.points import scaled_copy
from popf.engine.soft import Competitors, class_scores, lowest_costs, mean_positive_cost
from popf.forest import OPFClassifier

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class LeftOut(NamedTuple):
    """Scores of training samples that were left out.

    Attributes
    ----------
    scores : ndarray of shape (n_rows, n_classes, n_bandwidths)
    codes : ndarray of shape (n_rows,)
        The class of each.
    weights : ndarray of shape (n_rows,)
    """

    scores: FloatArray
    codes: IntArray
    weights: FloatArray


class SoftCompetition:
    """All training nodes of a forest, competing softly for samples.

    Parameters
    ----------
    opf : OPFClassifier
        A fitted forest.
    samples : ndarray of shape (n_samples, n_features)
        What it was fitted on.
    weights : ndarray of shape (n_samples,)
        How many samples each stands for.
    """

    def __init__(self, opf: OPFClassifier, samples: FloatArray, weights: FloatArray) -> None:
        codes, n_classes = opf._codes, len(opf.classes_)
        self._metric, self._conquest = opf._metric, opf._conquest
        self._order = order = np.argsort(codes, kind="stable")  # class after class
        self._codes, self._weights = codes, weights
        self.masses = np.bincount(codes, weights=weights, minlength=n_classes).astype(np.float64)
        # Plain Euclidean costs and bandwidths stay scaled by a power of two, as the samples are.
        plain = self._metric.name == "euclidean"
        self.exponent = self._conquest.exponent if plain and self._conquest is not None else 0
        self._nodes = Competitors(
            np.ldexp(opf.costs_[order], -self.exponent),
            weights[order],
            np.searchsorted(codes[order], np.arange(n_classes + 1)),
            self.masses,
            plain,
        )
        self._training: FloatArray | None = None
        if self._conquest is not None:
            self._training = scaled_copy(samples[order], self._conquest.exponent)
        elif not self._metric.precomputed:
            self._training = samples[order]

    def scores(self, new: FloatArray, tau: float, n_threads: int, n_bytes: int) -> FloatArray:
        """Score new samples: (n_samples, n_classes), a low score is a likely class."""
        taus = np.ldexp(np.array([[tau]]), -self.exponent)
        own = np.full(len(new), -1)
        rows = self._block_rows(n_threads, n_bytes)
        return class_scores(self._blocks(new), own, self._nodes, taus, rows, n_threads)[:, :, 0]

    def leave_out(
        self, samples: FloatArray, rows: IntArray, n_threads: int, n_bytes: int
    ) -> tuple[LeftOut, FloatArray]:
        """Score some training samples, each left out, for a grid of bandwidths.

        Parameters
        ----------
        samples : ndarray of shape (n_samples, n_features)
            All training samples.
        rows : ndarray
            Those to be left out, one at a time.
        n_threads, n_bytes : int

        Returns
        -------
        left_out : LeftOut
            Without samples that are alone in their class: they say nothing of how others of it score.
        bandwidths : ndarray of shape (n_bandwidths,)
        """
        place = np.empty_like(self._order)
        place[self._order] = np.arange(len(self._order))
        n_rows = self._block_rows(n_threads, n_bytes)
        some = rows[:: -(-len(rows) // fitting.N_FOR_UNIT)]  # a unit needs no more
        blocks = self._blocks(np.ascontiguousarray(samples[some]))
        lowest = lowest_costs(blocks, place[some], self._nodes, n_rows, n_threads)
        weights = self._weights[some]
        unit = fitting.unit_of_cost(lowest.min(axis=1), weights)
        if unit == 0.0:  # all samples have company of both classes where they are
            unit = mean_positive_cost(blocks, place[some], weights, self._nodes, n_rows) or 1.0
        taus = fitting.bandwidth_grid(unit)
        blocks = self._blocks(np.ascontiguousarray(samples[rows]))
        scores = class_scores(blocks, place[rows], self._nodes, taus, n_rows, n_threads)
        usable = np.isfinite(scores[:, :, 0]).all(axis=1)
        left_out = LeftOut(scores[usable], self._codes[rows[usable]], self._weights[rows[usable]])
        return left_out, np.ldexp(taus.ravel(), self.exponent)

    def _block_rows(self, n_threads: int, n_bytes: int) -> int:
        return rows_per_block(len(self._order), min(BLOCK_BYTES, n_bytes // n_threads))

    def _blocks(self, new: FloatArray) -> BlockOfDistances:
        """Make blocks of distances to the training samples, squared and scaled if Euclidean."""
        metric, training = self._metric, self._training
        if metric.precomputed:
            return lambda start, stop: new[start:stop].take(self._order, axis=1)
        if self._conquest is None or training is None:
            return metric.blocks(new, training)
        exponent = self._conquest.exponent
        # From farther away all training samples look alike, so that far is far enough.
        queries = np.clip(scaled_copy(new, exponent), -(2.0**FAR), 2.0**FAR)
        squared = kernel_blocks("sqeuclidean", queries, training)
        if self._nodes.squared:
            return squared
        return lambda start, stop: metric.transform(squared(start, stop), exponent)


def fit_all(left_out: LeftOut, masses: FloatArray) -> tuple[list[fitting.Scaling], FloatArray]:
    """Fit a scaling for every bandwidth, and give the left-out log loss of each."""
    scores, codes, weights = left_out
    n_bandwidths = scores.shape[2]
    if len(codes) == 0:
        return [fitting.prior(masses)] * n_bandwidths, np.full(n_bandwidths, np.inf)
    scalings, losses = [], []
    for j in range(n_bandwidths):
        scaling = fitting.fit_scaling(scores[:, :, j], codes, weights, masses)
        scalings.append(scaling)
        losses.append(fitting.log_loss(scaling, scores[:, :, j], codes, weights))
    return scalings, np.array(losses)


class Multinomial:
    """A multinomial logistic regression on the scores of all classes.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
    codes : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
    """

    def __init__(self, scores: FloatArray, codes: IntArray, weights: FloatArray) -> None:
        from sklearn.linear_model import LogisticRegression

        offsets = scores - scores.mean(axis=1, keepdims=True)
        self._spread = float(np.sqrt(np.average(offsets**2, weights=weights, axis=0).mean()))
        self._regression: Any = LogisticRegression(max_iter=1000)
        self._regression.fit(-scores / self._spread, codes, sample_weight=weights)

    def logits(self, scores: FloatArray) -> FloatArray:
        """Give exponents whose softmax are the probabilities."""
        exponents: FloatArray = self._regression.decision_function(-scores / self._spread)
        return exponents
