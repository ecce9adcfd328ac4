"""Compute and format the numbers of the report; the page's script formats numbers in the same way."""

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.display.curves import ReliabilityCurve, prepare_reliability
from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.formatting import shortened, visible
from popf.metrics import Evaluation, Score, average_precision_at, evaluate, lift_curve, precision_at
from popf.metrics.evaluation import chance_calibration_error
from popf.metrics.intervals import wilson
from popf.metrics.thresholds import ThresholdCounts, best_threshold, count_at_thresholds

CLASS_BINS = 40
#: Numbers of highest probabilities in the table of gains, and number of points of the gains curve.
FIRST, CURVE_POINTS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000), 201
#: Above this calibration error by chance, or below this number of samples in a class, results are called rough.
COARSE, FEW = 0.05, 20
MAX_LENGTH, PERCENT = 120, "\N{NO-BREAK SPACE}%"


class Quality(NamedTuple):
    """How good the probabilities of the positive class are."""

    scores: dict[str, Score]  # of `popf.metrics.evaluate`, at the threshold the page opens with
    prior: float  # share of positive samples
    prior_log_loss: float  # score of predicting `prior` for every sample
    prior_brier: float
    chance_error: float  # 95 % quantile of the calibration error of exact probabilities
    curve: ReliabilityCurve
    n_samples: int


class Overall(NamedTuple):
    """How good the probabilities of all classes are, if there are more than two."""

    evaluation: Evaluation
    prior_log_loss: float  # score of predicting the class frequencies for every sample
    prior_brier: float
    most_frequent: float  # share of the most frequent class
    chance_error: float  # 95 % quantile of the calibration error of exact probabilities


class Decisions(NamedTuple):
    """Counts at every threshold, and the threshold of lowest cost."""

    counts: ThresholdCounts  # at every thousandth, ascending
    ratio: float  # cost of a miss, in false alarms
    recommended: int  # index of the threshold of lowest cost
    positive_shares: FloatArray  # histogram of the positive samples, 40 bins of [0, 1]
    negative_shares: FloatArray  # the same for the others

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
        """Top of the cost axis: at most 1.5 times the lower of the costs of flagging all and none."""
        counts = self.counts
        trivial = min(counts.n_negative, counts.n_positive * self.ratio) / self.n_samples
        return float(min(1.5 * trivial, self.mean_cost.max()))

    def nearest(self, threshold: float) -> int:
        """Return the index of the threshold nearest to a value; of two, the lower."""
        return int(np.abs(self.counts.thresholds - threshold).argmin())


class First(NamedTuple):
    """Positive samples among the n highest probabilities."""

    n: int
    found: float  # number of positive samples
    precision: Score
    average_precision: float
    lift: float


class Gains(NamedTuple):
    """Gains curve, and a table for the highest probabilities."""

    fractions: FloatArray  # share of samples inspected, evenly spaced
    gains: FloatArray  # share of positive samples found
    first: list[First]


def gains(happened: BoolArray, probability: FloatArray) -> Gains:
    """Compute the gains of inspecting the samples with the highest probabilities first."""
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
    happened: BoolArray,
    probability: FloatArray,
    *,
    threshold: float = 0.5,
    seed: int = 0,
    groups: IntArray | None = None,
) -> Quality:
    """Evaluate the probabilities of the positive class; both classes must occur."""
    prior = float(happened.mean())
    return Quality(
        scores=evaluate(
            happened, probability, threshold=threshold, groups=groups, seed=seed
        ).scores,
        prior=prior,
        prior_log_loss=float(-prior * np.log(prior) - (1.0 - prior) * np.log1p(-prior)),
        prior_brier=prior * (1.0 - prior),
        chance_error=chance_calibration_error(probability, seed, groups),
        curve=prepare_reliability(happened, probability, pos_label=True),
        n_samples=len(happened),
    )


def overall(
    labels: NDArray[Any],
    probability: FloatArray,
    classes: NDArray[Any],
    *,
    seed: int = 0,
    groups: IntArray | None = None,
) -> Overall:
    """Evaluate the probabilities of all classes."""
    _, counts = np.unique(labels, return_counts=True)
    shares = counts / len(labels)
    return Overall(
        evaluation=evaluate(labels, probability, labels=classes, groups=groups, seed=seed),
        prior_log_loss=float(-(shares * np.log(shares)).sum()),
        prior_brier=float(1.0 - (shares**2).sum()),
        most_frequent=float(shares.max()),
        chance_error=chance_calibration_error(probability.max(axis=1), seed, groups),
    )


def decisions(
    happened: BoolArray, probability: FloatArray, *, ratio: float, also: Sequence[float] = ()
) -> Decisions:
    """Count true and false positives at every thousandth and at `also`; find the threshold of lowest cost."""
    thresholds = np.union1d(np.arange(1, 1000) / 1000, [value for value in also if 0 < value < 1])
    counts = count_at_thresholds(happened, probability, thresholds)
    edges = np.linspace(0.0, 1.0, CLASS_BINS + 1)
    shares = [
        np.histogram(probability[which], edges)[0] / which.sum() for which in (happened, ~happened)
    ]
    recommended = best_threshold(thresholds, -counts.mean_cost(1.0, ratio))
    return Decisions(counts, ratio, recommended, shares[0], shares[1])


def verdict(found: Quality) -> list[str]:
    """Describe how good the probabilities are, in sentences."""
    sentences = [_calibration(found), _against_base_rate(found)]
    rare = round(min(found.prior, 1.0 - found.prior) * found.n_samples)
    if rare < FEW:
        kind = "positive" if found.prior <= 0.5 else "negative"
        sentences.append(f"Only {rare} of the samples are {kind}: all numbers here are rough.")
    return sentences


def _calibration(found: Quality) -> str:
    error, chance = found.scores["ece"].value, found.chance_error
    samples = f"{count(found.n_samples)} samples"
    exact = f"even perfectly calibrated ones could be off by up to {points(chance)}"
    if error > chance:
        gaps, weights = found.curve.frequency - found.curve.probability, found.curve.weights
        gap = float(np.average(gaps, weights=weights))
        mostly = f", mostly {'too low' if gap > 0 else 'too high'}" if abs(gap) > error / 2 else ""
        return (
            f"The probabilities are off by {points(error)} on average{mostly}; chance alone explains up to "
            f"{points(chance)} on {samples}."
        )
    if chance > COARSE:
        return (
            f"No miscalibration is visible, but {samples} are too few to be sure: the probabilities are off by "
            f"{points(error)} on average, and {exact}."
        )
    return (
        f"The probabilities are well calibrated: they are off by {points(error)} on average, and {exact} on "
        f"{samples}."
    )


def _against_base_rate(found: Quality) -> str:
    loss = found.scores["log_loss"]
    base = f"predicting the base rate of {percent(found.prior)} for every sample"
    if loss.upper < found.prior_log_loss:
        gain = 1.0 - found.scores["brier"].value / found.prior_brier
        much = "much better" if gain > 0.5 else "better"
        return f"They are {much} than {base}: the Brier score is {percent(gain, 0)} lower."
    if loss.lower > found.prior_log_loss:
        return (
            f"They are worse than {base} (log loss {fixed(loss.value, 3)} against "
            f"{fixed(found.prior_log_loss, 3)}): do not use them."
        )
    return f"On these samples they are not clearly better than {base}."


def outcome(found: Decisions, at: int, event: str) -> str:
    """Describe the outcome at a threshold; the page's script writes the same sentences."""
    counts = found.counts
    hits, alarms = counts.hits[at], counts.alarms[at]
    return (
        f"{count(hits + alarms)} of {count(found.n_samples)} samples are flagged as “{event}”: {count(hits)} "
        f"correctly, {count(alarms)} as false alarms. Missed: {count(counts.n_positive - hits)} of "
        f"{count(counts.n_positive)}."
    )


def plain(value: Any) -> str:
    """Return text of at most 120 characters, with unprintable characters replaced."""
    return shortened(visible(str(value)), MAX_LENGTH)


def fixed(value: float, digits: int) -> str:
    """Format a number with fixed decimals, rounding halves away from zero like JavaScript's ``toFixed``."""
    if not np.isfinite(value):
        return "–"
    number = Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{number:f}"


def percent(value: float, digits: int = 1) -> str:
    """Format a share in per cent."""
    return "–" if not np.isfinite(value) else f"{fixed(100.0 * value, digits)}{PERCENT}"


def chance(value: float) -> str:
    """Format a probability in per cent; only exactly 0 and 1 are shown as 0 % and 100 %."""
    if 0.0 < value < 0.001:
        return f"< 0.1{PERCENT}"
    return f"> 99.9{PERCENT}" if 0.999 < value < 1.0 else percent(value)


def log10(value: float) -> str:
    """Format the decimal logarithm of a number."""
    return fixed(float(np.log10(value)), 2)


def points(value: float) -> str:
    """Format a difference of two shares in percentage points."""
    return f"{fixed(100.0 * value, 1)} percentage points"


def count(number: float) -> str:
    """Format a whole number with thousands separators."""
    return f"{int(number):,}"


def threshold_text(value: float) -> str:
    """Format a threshold with three decimals or, if these are not exact, six significant digits."""
    short = f"{value:.3f}"
    return short if float(short) == value else f"{value:.6g}"


def figure(value: Any) -> str:
    """Format a cell of the user's table: numbers to four digits, text unchanged."""
    if value is None:
        return "missing"
    if isinstance(value, bool | np.bool_ | str):
        return plain(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return plain(value).removesuffix(" 00:00:00")  # of a date
    if np.isnan(number):
        return "missing"
    if number == 0.0 or not 1e-4 <= abs(number) < 1e9:
        return f"{number:.4g}"
    digits = max(3 - int(np.floor(np.log10(abs(number)))), 0)
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def line_path(x: Iterable[float], y: Iterable[float]) -> str:
    """Return an SVG path through points of the unit square, in thousandths from the top left; NaN is a gap."""
    parts, pen_down = [], False
    for across, up in zip(x, y, strict=True):
        if not np.isnan(up):
            place = f"{fixed(1000.0 * across, 1)} {fixed(1000.0 * (1.0 - up), 1)}"
            parts.append(("L" if pen_down else "M") + place)
        pen_down = not np.isnan(up)
    return "".join(parts)
