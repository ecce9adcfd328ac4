"""Every figure of the report; nothing here knows HTML."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.display.reliability import ReliabilityCurve, prepare_reliability
from popf.metrics import Score, evaluate
from popf.metrics.evaluation import chance_calibration_error
from popf.metrics.thresholds import ThresholdCounts, best_threshold, count_at_thresholds

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

CLASS_BINS = 40
#: Costs of a false alarm and of a miss at every stop of the page's cost slider.
COSTS: tuple[tuple[float, float], ...] = (
    *((float(alarm), 1.0) for alarm in (100, 50, 20, 10, 7, 5, 3, 2)),
    (1.0, 1.0),
    *((1.0, float(miss)) for miss in (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000)),
)


class Quality(NamedTuple):
    """How good the probabilities of the positive class are."""

    scores: dict[str, Score]  # of `popf.metrics.evaluate`, at the threshold the page opens with
    prior: float  # the share of positive samples
    prior_log_loss: float  # of predicting `prior` for everyone
    prior_brier: float
    chance_error: float  # the calibration error that exact probabilities would stay below, 95 %
    curve: ReliabilityCurve
    n_samples: int


class Decisions(NamedTuple):
    """What every threshold leads to, and which is best at what cost."""

    counts: ThresholdCounts  # at every thousandth, ascending
    costs: list[tuple[float, float]]  # of a false alarm and of a miss, ascending by their ratio
    recommended: list[int]  # for each pair of costs, the threshold of the lowest cost
    positive_shares: FloatArray  # of the positive samples in each fortieth of [0, 1]
    negative_shares: FloatArray  # of the others

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.counts.n_positive + self.counts.n_negative)

    def mean_cost(self, pair: int) -> FloatArray:
        """Cost per sample at every threshold, in false alarms."""
        alarm, miss = self.costs[pair]
        return self.counts.mean_cost(1.0, miss / alarm)

    def cost_top(self, pair: int) -> float:
        """Highest cost of the chart: 1.5 times that of predicting everyone or no one positive."""
        alarm, miss = self.costs[pair]
        counts = self.counts
        trivial = min(counts.n_negative, counts.n_positive * (miss / alarm)) / self.n_samples
        return float(min(1.5 * trivial, self.mean_cost(pair).max()))

    def nearest(self, threshold: float) -> int:
        """Index of the threshold nearest to a number, the lower of two."""
        return int(np.abs(self.counts.thresholds - threshold).argmin())


def quality(
    happened: BoolArray, probability: FloatArray, *, threshold: float = 0.5, seed: int = 0
) -> Quality:
    """Measure the probabilities of the positive class; both classes must occur."""
    prior = float(happened.mean())
    return Quality(
        scores=evaluate(happened, probability, threshold=threshold, seed=seed).scores,
        prior=prior,
        prior_log_loss=float(-prior * np.log(prior) - (1.0 - prior) * np.log1p(-prior)),
        prior_brier=prior * (1.0 - prior),
        chance_error=chance_calibration_error(probability, seed),
        curve=prepare_reliability(happened, probability, pos_label=True),
        n_samples=len(happened),
    )


def decisions(
    happened: BoolArray,
    probability: FloatArray,
    *,
    ratio: float = 1.0,
    also: Sequence[float] = (),
) -> Decisions:
    """Count true and false positives at every thousandth, and find the best threshold at every cost.

    Parameters
    ----------
    happened : ndarray of bool, shape (n_samples,)
        Both values must occur.
    probability : ndarray of shape (n_samples,)
    ratio : float, default=1
        Cost of a miss in false alarms, added to the usual costs.
    also : sequence of float
        Thresholds besides the thousandths.
    """
    thresholds = np.union1d(np.arange(1, 1000) / 1000, [value for value in also if 0 < value < 1])
    counts = count_at_thresholds(happened, probability, thresholds)
    known = any(np.isclose(miss / alarm, ratio, rtol=1e-9) for alarm, miss in COSTS)
    pairs = sorted([*COSTS, *([] if known else [(1.0, float(ratio))])], key=lambda p: p[1] / p[0])
    edges = np.linspace(0.0, 1.0, CLASS_BINS + 1)
    shares = [
        np.histogram(probability[which], edges)[0] / which.sum() for which in (happened, ~happened)
    ]
    costs = (counts.mean_cost(1.0, miss / alarm) for alarm, miss in pairs)
    recommended = [best_threshold(thresholds, -cost) for cost in costs]
    return Decisions(counts, pairs, recommended, shares[0], shares[1])
