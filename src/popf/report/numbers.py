"""Every figure of the report; nothing here knows HTML."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from popf.display.curves import ReliabilityCurve, prepare_reliability
from popf.engine.structures import BoolArray, FloatArray
from popf.metrics import Score, average_precision_at, evaluate, lift_curve, precision_at
from popf.metrics.evaluation import chance_calibration_error, wilson
from popf.metrics.thresholds import ThresholdCounts, best_threshold, count_at_thresholds

CLASS_BINS = 40
#: How many of the highest probabilities are looked at, in the table of gains; and points of its curve.
FIRST, CURVE_POINTS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000), 201


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
    """What every threshold leads to, and which costs least."""

    counts: ThresholdCounts  # at every thousandth, ascending
    ratio: float  # the cost of a miss, in false alarms
    recommended: int  # the threshold of the lowest cost
    positive_shares: FloatArray  # of the positive samples in each fortieth of [0, 1]
    negative_shares: FloatArray  # of the others

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.counts.n_positive + self.counts.n_negative)

    @property
    def mean_cost(self) -> FloatArray:
        """Cost per sample at every threshold, in false alarms."""
        return self.counts.mean_cost(1.0, self.ratio)

    @property
    def cost_top(self) -> float:
        """Highest cost of the chart: 1.5 times that of predicting everyone or no one positive."""
        counts = self.counts
        trivial = min(counts.n_negative, counts.n_positive * self.ratio) / self.n_samples
        return float(min(1.5 * trivial, self.mean_cost.max()))

    def nearest(self, threshold: float) -> int:
        """Index of the threshold nearest to a number, the lower of two."""
        return int(np.abs(self.counts.thresholds - threshold).argmin())


class First(NamedTuple):
    """What is found among the first of the highest probabilities."""

    n: int  # how many are looked at
    found: float
    precision: Score
    average_precision: float
    lift: float


class Gains(NamedTuple):
    """What is found by looking at the highest probabilities first."""

    fractions: FloatArray  # of the samples, evenly spaced
    gains: FloatArray  # the share of the positive samples found by then
    first: list[First]


def gains(happened: BoolArray, probability: FloatArray) -> Gains:
    """Compute what is found by looking at the highest probabilities first."""
    curve = lift_curve(happened, probability)
    fractions = np.linspace(0.0, 1.0, CURVE_POINTS)
    first = []
    for n in FIRST:
        if n <= len(happened):
            share = precision_at(happened, probability, n)
            precision = Score(share, *map(float, wilson(share, n)))
            ordered = average_precision_at(happened, probability, n)
            first.append(First(n, n * share, precision, ordered, share / float(happened.mean())))
    return Gains(fractions, np.interp(fractions, curve.fractions, curve.gains), first)


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
    happened: BoolArray, probability: FloatArray, *, ratio: float, also: Sequence[float] = ()
) -> Decisions:
    """Count true and false positives at every thousandth and `also`; find the threshold of lowest cost."""
    thresholds = np.union1d(np.arange(1, 1000) / 1000, [value for value in also if 0 < value < 1])
    counts = count_at_thresholds(happened, probability, thresholds)
    edges = np.linspace(0.0, 1.0, CLASS_BINS + 1)
    shares = [
        np.histogram(probability[which], edges)[0] / which.sum() for which in (happened, ~happened)
    ]
    recommended = best_threshold(thresholds, -counts.mean_cost(1.0, ratio))
    return Decisions(counts, ratio, recommended, shares[0], shares[1])
