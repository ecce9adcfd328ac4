"""Every figure of the report, computed: nothing here knows HTML."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    brier_score_loss,
    confusion_matrix,
    log_loss,
    roc_auc_score,
)

from popf.display.reliability import ReliabilityCurve, prepare_reliability
from popf.metrics import expected_calibration_error, opf_accuracy_score
from popf.metrics.calibration import bins_of
from popf.metrics.thresholds import TIE_TOLERANCE

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

CONFIDENCE = 0.95
N_RESAMPLES = 500
MOST_DRAWN = 10_000_000
N_BINS = 10
CLASS_BINS = 40
#: What a false alarm and what a miss costs, for every stop of the page's second slider.
COSTS: tuple[tuple[float, float], ...] = (
    *((float(alarm), 1.0) for alarm in (100, 50, 20, 10, 7, 5, 3, 2)),
    (1.0, 1.0),
    *((1.0, float(miss)) for miss in (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000)),
)


class Score(NamedTuple):
    """A score with its interval.

    Attributes
    ----------
    value, lower, upper : float
    """

    value: float
    lower: float
    upper: float


class Quality(NamedTuple):
    """How good the probabilities of one event are.

    Attributes
    ----------
    log_loss, brier, error, auc : Score
        Logarithmic loss, Brier score, expected calibration error, area under the ROC curve.
    prior : float
        How often the event happened.
    prior_log_loss, prior_brier : float
        The scores of always answering `prior`.
    chance_error : float
        The calibration error that perfect probabilities would stay below on as many samples, with
        95 % confidence.
    curve : ReliabilityCurve
    n_samples : int
    """

    log_loss: Score
    brier: Score
    error: Score
    auc: Score
    prior: float
    prior_log_loss: float
    prior_brier: float
    chance_error: float
    curve: ReliabilityCurve
    n_samples: int


class Decisions(NamedTuple):
    """What every threshold brings, and which to use at what cost.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        Θ, ascending.
    hits, alarms : ndarray of shape (n_thresholds,)
        How many samples with P ≥ Θ are positive, and how many are not.
    n_positive, n_negative : int
    costs : list of pairs
        What a false alarm and what a miss costs, by the price of a miss.
    recommended : ndarray of shape (n_costs,)
        For each pair, which threshold costs least; of several, that nearest to 0.5, then the lower.
    positive_shares, negative_shares : ndarray of shape (40,)
        The share of the positive samples, and of the others, in each fortieth of [0, 1].
    """

    thresholds: FloatArray
    hits: IntArray
    alarms: IntArray
    n_positive: int
    n_negative: int
    costs: list[tuple[float, float]]
    recommended: IntArray
    positive_shares: FloatArray
    negative_shares: FloatArray

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return self.n_positive + self.n_negative

    def mean_cost(self, pair: int) -> FloatArray:
        """Give the cost of a sample at every threshold, a false alarm costing 1.

        Parameters
        ----------
        pair : int
            Which of `costs`.
        """
        alarm, miss = self.costs[pair]
        misses = self.n_positive - self.hits
        return (self.alarms + misses * (miss / alarm)) / self.n_samples

    def cost_top(self, pair: int) -> float:
        """Give the cost up to which a chart should reach: half above the better of all and none.

        Who calls nobody, or everybody, needs no model; what costs more still is of no interest.
        """
        alarm, miss = self.costs[pair]
        trivial = min(self.n_negative, self.n_positive * (miss / alarm)) / self.n_samples
        return float(min(1.5 * trivial, self.mean_cost(pair).max()))

    def scores(self) -> dict[str, FloatArray]:
        """Give accuracy (Papa's), precision (NaN where nothing is called positive) and recall."""
        recall = self.hits / self.n_positive
        with np.errstate(invalid="ignore"):
            precision = self.hits / (self.hits + self.alarms)
        accuracy = (recall + (1.0 - self.alarms / self.n_negative)) / 2.0
        return {"accuracy": accuracy, "precision": precision, "recall": recall}

    def nearest(self, threshold: float) -> int:
        """Find the threshold next to a number, the lower of two."""
        return int(np.abs(self.thresholds - threshold).argmin())


class ManyClasses(NamedTuple):
    """How good the probabilities of all classes are together.

    Attributes
    ----------
    log_loss, brier, error, accuracy : float
        Over all classes: the Brier score is summed over them, the calibration error is their mean.
    matrix : ndarray of shape (n_classes, n_classes)
        True classes in rows, the most probable class in columns.
    """

    log_loss: float
    brier: float
    error: float
    accuracy: float
    matrix: IntArray


def quality(happened: BoolArray, probability: FloatArray, *, seed: int = 0) -> Quality:
    """Measure the probabilities of an event, with intervals from the bootstrap.

    Samples are drawn anew 500 times, or 200 times where they are many. The interval holds 95 % of what
    comes out, moved so that its mean is the score itself: drawing anew makes the calibration error larger,
    and that is no property of the model.

    Parameters
    ----------
    happened : ndarray of bool, shape (n_samples,)
        Both values must occur.
    probability : ndarray of shape (n_samples,)
    seed : int, default=0

    Returns
    -------
    Quality

    Examples
    --------
    >>> import numpy as np
    >>> from popf.report.numbers import quality
    >>> found = quality(np.array([False, False, True, True]), np.array([0.1, 0.4, 0.3, 0.9]))
    >>> round(found.brier.value, 4), round(found.auc.value, 2), found.prior
    (0.1675, 0.75, 0.5)
    """
    prior = float(happened.mean())
    constant = np.full(len(happened), prior)
    curve = prepare_reliability(happened, probability, pos_label=True, n_bins=N_BINS)
    values = {
        "log_loss": float(log_loss(happened, probability, labels=[False, True])),
        "brier": float(brier_score_loss(happened, probability)),
        "error": curve.error,
        "auc": float(roc_auc_score(happened, probability)),
    }
    rng = np.random.default_rng(seed)
    drawn = _resampled(happened, probability, rng)
    scores = {name: _interval(value, drawn[name]) for name, value in values.items()}
    scores["auc"] = scores["auc"]._replace(upper=min(scores["auc"].upper, 1.0))
    return Quality(
        **scores,
        prior=prior,
        prior_log_loss=float(log_loss(happened, constant, labels=[False, True])),
        prior_brier=float(brier_score_loss(happened, constant)),
        chance_error=_chance_error(probability, rng),
        curve=curve,
        n_samples=len(happened),
    )


def decisions(
    happened: BoolArray,
    probability: FloatArray,
    *,
    ratio: float = 1.0,
    also: Sequence[float] = (),
) -> Decisions:
    """Count hits and false alarms at every thousandth, and find the best threshold at every cost.

    Parameters
    ----------
    happened : ndarray of bool, shape (n_samples,)
        Both values must occur.
    probability : ndarray of shape (n_samples,)
    ratio : float, default=1
        What a miss costs, in false alarms; put among the usual costs.
    also : sequence of float
        Thresholds to have besides the thousandths.

    Returns
    -------
    Decisions

    Examples
    --------
    >>> import numpy as np
    >>> from popf.report.numbers import decisions
    >>> found = decisions(np.array([False, False, True, True]), np.array([0.1, 0.6, 0.4, 0.9]))
    >>> at = found.nearest(0.5)
    >>> float(found.thresholds[at]), int(found.hits[at]), int(found.alarms[at])
    (0.5, 1, 1)
    >>> [float(found.thresholds[found.recommended[found.costs.index(pair)]])
    ...  for pair in ((1.0, 4.0), (4.0, 1.0)) if pair in found.costs]
    [0.4]
    """
    thresholds = np.union1d(np.arange(1, 1000) / 1000, [value for value in also if 0 < value < 1])
    hits = _count_from(probability[happened], thresholds)
    alarms = _count_from(probability[~happened], thresholds)
    pairs = [pair for pair in COSTS if not np.isclose(pair[1] / pair[0], ratio, rtol=1e-9)]
    own = next((pair for pair in COSTS if pair not in pairs), (1.0, float(ratio)))
    pairs = sorted([*pairs, own], key=lambda pair: pair[1] / pair[0])
    edges = np.linspace(0.0, 1.0, CLASS_BINS + 1)
    shares = [
        np.histogram(probability[which], edges)[0] / which.sum() for which in (happened, ~happened)
    ]
    found = Decisions(
        thresholds=thresholds,
        hits=hits,
        alarms=alarms,
        n_positive=int(happened.sum()),
        n_negative=int((~happened).sum()),
        costs=pairs,
        recommended=np.zeros(len(pairs), dtype=np.int64),
        positive_shares=shares[0],
        negative_shares=shares[1],
    )
    best = [_cheapest(thresholds, found.mean_cost(pair)) for pair in range(len(pairs))]
    return found._replace(recommended=np.array(best, dtype=np.int64))


def many_classes(labels: NDArray[Any], table: FloatArray, classes: NDArray[Any]) -> ManyClasses:
    """Measure the probabilities of three classes and more together.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
    table : ndarray of shape (n_samples, n_classes)
        Probabilities, columns as `classes`.
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    ManyClasses
    """
    chosen = classes[table.argmax(axis=1)]
    is_class = labels[:, None] == classes[None, :]
    return ManyClasses(
        log_loss=float(log_loss(labels, table, labels=classes)),
        brier=float(((table - is_class) ** 2).sum(axis=1).mean()),
        error=expected_calibration_error(
            labels, table, n_bins=N_BINS, kind="classwise", labels=classes
        ),
        accuracy=float(opf_accuracy_score(labels, chosen)),
        matrix=confusion_matrix(labels, chosen, labels=classes),
    )


def _resampled(
    happened: BoolArray, probability: FloatArray, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Score samples that are drawn anew, by counting how often each was drawn."""
    order = np.argsort(probability, kind="stable")
    happened, probability, n = happened[order], probability[order], len(order)
    least = np.finfo(np.float64).eps  # as scikit-learn's
    of_truth = np.where(happened, probability, 1.0 - probability)
    losses = -np.log(np.clip(of_truth, least, 1.0 - least))
    gaps = happened - probability
    squares = gaps**2
    # In the order of the probabilities, bins and equal values are runs of neighbours.
    bins = np.flatnonzero(np.diff(bins_of(probability, np.ones(n), N_BINS, "uniform"), prepend=-1))
    runs = np.flatnonzero(np.diff(probability, prepend=-1.0))
    names = ("log_loss", "brier", "error", "auc")
    drawn = {name: np.full(_n_resamples(n), np.nan) for name in names}
    for turn in range(_n_resamples(n)):
        times = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        # Sums rather than products of BLAS, which depend on its number of threads in the last digits.
        drawn["log_loss"][turn] = (times * losses).sum() / n
        drawn["brier"][turn] = (times * squares).sum() / n
        drawn["error"][turn] = np.abs(np.add.reduceat(times * gaps, bins)).sum() / n
        positive = np.add.reduceat(times * happened, runs)
        negative = np.add.reduceat(times, runs) - positive
        pairs = positive.sum() * negative.sum()
        if pairs > 0:
            below = np.cumsum(negative) - negative / 2.0
            drawn["auc"][turn] = (positive * below).sum() / pairs
    return drawn


def _n_resamples(n_samples: int) -> int:
    """Of many samples fewer draws will do, and take as long."""
    return int(np.clip(MOST_DRAWN // n_samples, 200, N_RESAMPLES))


def _interval(value: float, drawn: FloatArray) -> Score:
    known = drawn[np.isfinite(drawn)]
    if len(known) == 0:
        return Score(value, np.nan, np.nan)
    tail = (1.0 - CONFIDENCE) / 2.0
    lower, upper = np.quantile(known, [tail, 1.0 - tail]) - known.mean() + value
    return Score(value, float(max(lower, 0.0)), float(upper))


def _chance_error(probability: FloatArray, rng: np.random.Generator) -> float:
    """Find the calibration error that chance alone gives, for probabilities that are right."""
    ordered, n = np.sort(probability), len(probability)
    bins = np.flatnonzero(np.diff(bins_of(ordered, np.ones(n), N_BINS, "uniform"), prepend=-1))
    errors = np.empty(_n_resamples(n))
    for turn in range(len(errors)):
        gaps = (rng.random(n) < ordered) - ordered
        errors[turn] = np.abs(np.add.reduceat(gaps, bins)).sum() / n
    return float(np.quantile(errors, CONFIDENCE))


def _count_from(probability: FloatArray, thresholds: FloatArray) -> IntArray:
    counts: IntArray = len(probability) - np.searchsorted(np.sort(probability), thresholds)
    return counts


def _cheapest(thresholds: FloatArray, cost: FloatArray) -> int:
    """Find the threshold of the lowest cost by the rule of `popf.metrics.threshold_curve`."""
    lowest = cost.min()
    tied = np.flatnonzero(cost <= lowest + TIE_TOLERANCE * abs(lowest))
    distance = np.abs(thresholds[tied] - 0.5).round(12)
    return int(tied[np.lexsort([thresholds[tied], distance])[0]])
