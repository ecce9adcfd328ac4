"""The soft method: a forest's training nodes as competitors, and the fit of its probabilities."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.conquest.by_scan import BLOCK_BYTES, BlockOfDistances, rows_per_block
from popf.engine.conquest.euclidean import FAR
from popf.engine.distances import kernel_blocks
from popf.engine.points import scaled_copy
from popf.engine.soft import by_space_tree as soft_space
from popf.engine.soft import by_tiles as soft_products
from popf.engine.soft import scores as soft
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.probability import calibration as fitting

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Up to this many features distances are computed one by one, beyond from matrix products.
MOST_FEATURES = 16


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
    forest : OptimumPathForest
    samples : ndarray of shape (n_samples, n_features)
        What it was fitted on.
    weights : ndarray of shape (n_samples,)
        How many samples each stands for.
    """

    def __init__(
        self,
        forest: OptimumPathForest,
        samples: FloatArray,
        weights: FloatArray,
    ) -> None:
        codes, n_classes = forest.codes, len(forest.classes)
        self._metric, self._forest = forest.metric, forest
        self._codes, self._weights = codes, weights
        self.masses = np.bincount(codes, weights=weights, minlength=n_classes).astype(np.float64)
        # Plain Euclidean costs and bandwidths stay scaled by a power of two, as the samples are.
        plain = self._metric.name == "euclidean"
        self.exponent = forest.exponent if plain else 0
        costs = np.ldexp(forest.costs, -self.exponent)
        scaled = samples
        if self._metric.euclidean:
            scaled = scaled_copy(samples, forest.exponent)
        self._training: FloatArray | None = None
        self._nodes: soft.Competitors | soft_space.CompetingSpace | soft_products.CompetingPoints
        on_device = forest.backend is not None
        if plain and samples.shape[1] <= MOST_FEATURES and not on_device:
            self._nodes = soft_space.lay_out(scaled, codes, costs, weights)
            self._place = self._nodes.place
        elif plain:
            self._nodes = soft_products.line_up(scaled, codes, costs, weights)
            self._place = self._nodes.place
        else:
            self._order = order = np.argsort(codes, kind="stable")  # class after class
            self._place = np.empty_like(order)
            self._place[order] = np.arange(len(order))
            starts = np.searchsorted(codes[order], np.arange(n_classes + 1))
            self._nodes = soft.Competitors(
                costs[order], weights[order], starts, self.masses, squared=False
            )
            if not self._metric.precomputed:
                self._training = scaled[order]

    def scores(self, new: FloatArray, tau: float, n_threads: int, n_bytes: int) -> FloatArray:
        """Score new samples: (n_samples, n_classes), a low score is a likely class.

        Parameters
        ----------
        new : ndarray of shape (n_samples, n_features)
        tau : float
            The bandwidth.
        n_threads, n_bytes : int
        """
        return self.scores_for(new, np.array([[tau]]), n_threads, n_bytes)[:, :, 0]

    def scores_for(
        self, new: FloatArray, taus: FloatArray, n_threads: int, n_bytes: int
    ) -> FloatArray:
        """Score new samples for several bandwidths: (n_samples, n_classes, n_bandwidths).

        Parameters
        ----------
        new : ndarray of shape (n_samples, n_features)
        taus : ndarray of shape (n_chains, 1 or 9)
            In a row each is half of the one before.
        n_threads, n_bytes
            As for `scores`.
        """
        own = np.full(len(new), -1)
        return self._scores(new, own, taus, n_threads, n_bytes)

    def grid(self, samples: FloatArray, rows: IntArray, n_threads: int, n_bytes: int) -> FloatArray:
        """Make the bandwidths to choose from, by what some left-out training samples cost.

        Parameters
        ----------
        samples : ndarray of shape (n_samples, n_features)
            All training samples.
        rows : ndarray
            Those that may be left out.
        n_threads, n_bytes : int

        Returns
        -------
        ndarray of shape (n_chains, n_halvings)
        """
        some = rows[:: -(-len(rows) // fitting.N_FOR_UNIT)]  # a unit needs no more
        new, own = np.ascontiguousarray(samples[some]), self._place[some]
        lowest = self._compete(new, own, np.empty((0, 1)), n_threads, n_bytes).lowest
        weights = self._weights[some]
        unit = fitting.unit_of_cost(lowest.min(axis=1), weights)
        if unit == 0.0:  # all samples have company of both classes where they are
            unit = self._mean_positive_cost(new, some, n_bytes) or 1.0
        return np.ldexp(fitting.bandwidth_grid(unit), self.exponent)

    def leave_out(
        self,
        samples: FloatArray,
        rows: IntArray,
        taus: FloatArray,
        n_threads: int,
        n_bytes: int,
    ) -> LeftOut:
        """Score some training samples, each left out, for several bandwidths.

        Parameters
        ----------
        samples : ndarray of shape (n_samples, n_features)
            All training samples.
        rows : ndarray
            Those to be left out, one at a time.
        taus : ndarray of shape (n_chains, 1 or 9)
            In a row each is half of the one before.
        n_threads, n_bytes
            As for `scores`.

        Returns
        -------
        LeftOut
            Without samples that are alone in their class: they say nothing of how others of it score.
        """
        new, own = np.ascontiguousarray(samples[rows]), self._place[rows]
        scores = self._scores(new, own, taus, n_threads, n_bytes)
        usable = np.isfinite(scores).all(axis=(1, 2))
        return LeftOut(scores[usable], self._codes[rows[usable]], self._weights[rows[usable]])

    def _scores(
        self, new: FloatArray, own: IntArray, taus: FloatArray, n_threads: int, n_bytes: int
    ) -> FloatArray:
        """Score samples, some of which may be nodes: (n_samples, n_classes, n_bandwidths)."""
        scaled = np.ldexp(taus, -self.exponent)
        scores = self._compete(new, own, scaled, n_threads, n_bytes).scores
        return scores.reshape(*scores.shape[:2], -1)

    def _compete(
        self, new: FloatArray, own: IntArray, taus: FloatArray, n_threads: int, n_bytes: int
    ) -> soft.Scores:
        """Let the nodes compete for samples, in whatever way suits their number of features."""
        nodes = self._nodes
        if isinstance(nodes, soft_space.CompetingSpace):
            return soft_space.space_scores(nodes, self._scaled(new), own, taus, n_threads)
        backend = self._forest.backend
        if isinstance(nodes, soft_products.CompetingPoints) and backend is not None:
            return backend.soft_scores(nodes, self._scaled(new), own, taus)
        if isinstance(nodes, soft_products.CompetingPoints):
            return soft_products.product_scores(nodes, self._scaled(new), own, taus, n_threads)
        rows = rows_per_block(len(self._codes), min(BLOCK_BYTES, n_bytes // n_threads))
        blocks = self._blocks(new)
        return soft.class_scores(blocks, own, nodes, taus, rows, n_threads)

    def _scaled(self, new: FloatArray) -> FloatArray:
        """Scale new samples as the training samples are."""
        # From farther away all training samples look alike, so that far is far enough.
        return np.clip(scaled_copy(new, self._exponent_of_samples()), -(2.0**FAR), 2.0**FAR)

    def _exponent_of_samples(self) -> int:
        return int(self._forest.exponent)

    def _blocks(self, new: FloatArray) -> BlockOfDistances:
        """Make blocks of distances to the training samples, for any metric but the plain one."""
        metric, training = self._metric, self._training
        if metric.precomputed:
            return lambda start, stop: new[start:stop].take(self._order, axis=1)
        if not metric.euclidean or training is None:
            return metric.blocks(new, training)
        exponent = self._exponent_of_samples()
        squared = kernel_blocks("sqeuclidean", self._scaled(new), training)
        return lambda start, stop: metric.transform(squared(start, stop), exponent)

    def _mean_positive_cost(self, new: FloatArray, rows: IntArray, n_bytes: int) -> float:
        """Give the mean of all path costs that are not zero, 0 if there are none."""
        nodes, n = self._nodes, len(self._codes)
        own, block_rows = self._place[rows], rows_per_block(n, min(BLOCK_BYTES, n_bytes))
        weights = self._weights[rows]
        if isinstance(nodes, soft.Competitors):
            blocks = self._blocks(new)
            return soft.mean_positive_cost(blocks, own, weights, nodes, block_rows)
        queries = self._scaled(new)
        if isinstance(nodes, soft_space.CompetingSpace):
            points = np.swapaxes(nodes.blocks, 1, 2).reshape(len(nodes.costs), -1)[self._place]
        else:
            points, queries = nodes.points[self._place], queries - nodes.center
        blocks = kernel_blocks("sqeuclidean", queries, np.ascontiguousarray(points))
        costs, starts = nodes.costs[self._place], np.array([0, n])
        every = soft.Competitors(costs, self._weights, starts, self.masses, squared=True)
        return soft.mean_positive_cost(blocks, rows, weights, every, block_rows)


def fit_all(
    left_out: LeftOut, masses: FloatArray, smoothing: float = 1.0
) -> tuple[list[fitting.Scaling], FloatArray]:
    """Fit a scaling for every bandwidth, and give the left-out log loss of each."""
    scores, codes, weights = left_out
    n_bandwidths = scores.shape[2]
    if len(codes) == 0:
        return [fitting.prior(masses)] * n_bandwidths, np.full(n_bandwidths, np.inf)
    scalings, losses = [], []
    for j in range(n_bandwidths):
        scaling = fitting.fit_scaling(scores[:, :, j], codes, weights, masses, smoothing=smoothing)
        scalings.append(scaling)
        losses.append(fitting.log_loss(scaling, scores[:, :, j], codes, weights))
    return scalings, np.array(losses)


class Multinomial:
    """A multinomial logistic regression on the scores of all classes.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
    codes : ndarray of shape (n_rows,)
        Every class must occur.
    weights : ndarray of shape (n_rows,)
    """

    def __init__(self, scores: FloatArray, codes: IntArray, weights: FloatArray) -> None:
        from sklearn.linear_model import LogisticRegression

        offsets = scores - scores.mean(axis=1, keepdims=True)
        self._spread = float(np.sqrt(np.average(offsets**2, weights=weights, axis=0).mean()))
        self._regression: Any = LogisticRegression(max_iter=1000)
        self._regression.fit(-scores / self._spread, codes, sample_weight=weights)

    @property
    def gain(self) -> float:
        """How much exponents change with scores, at most."""
        return float(np.abs(self._regression.coef_).sum(axis=1).max() / self._spread)

    def logits(self, scores: FloatArray) -> FloatArray:
        """Give exponents whose softmax are the probabilities."""
        exponents: FloatArray = self._regression.decision_function(-scores / self._spread)
        return exponents
