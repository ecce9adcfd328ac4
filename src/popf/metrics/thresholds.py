"""Metrics as functions of a threshold and the best threshold, and metrics of the k highest scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from popf.formatting import check_real
from popf.metrics.checks import (
    BoolArray,
    FloatArray,
    as_forecast,
    as_labels,
    as_weights,
    check_same_length,
    event,
    shown,
)
from popf.metrics.evaluation import opf_accuracy_score

#: The default thresholds.
HUNDREDTHS = np.arange(1, 100) / 100
#: Scores whose relative difference is at most this count as equal.
TIE_TOLERANCE = 1e-12


class ThresholdCounts(NamedTuple):
    """True and false positives at every threshold, and the scores that follow from them."""

    thresholds: FloatArray
    hits: FloatArray  # number, or total weight, of the positive samples with P ≥ Θ
    alarms: FloatArray  # the same for negative samples
    n_positive: float
    n_negative: float

    def scores(self) -> dict[str, FloatArray]:
        """Compute accuracy, balanced accuracy, precision (NaN if nothing is predicted positive) and recall."""
        misses = self.n_positive - self.hits
        wrong = (misses + self.alarms) / (self.n_positive + self.n_negative)
        balanced = (misses / self.n_positive + self.alarms / self.n_negative) / 2.0
        with np.errstate(invalid="ignore"):
            precision = self.hits / (self.hits + self.alarms)
        return {
            "accuracy": 1.0 - wrong,
            "balanced_accuracy": 1.0 - balanced,
            "precision": precision,
            "recall": self.hits / self.n_positive,
        }

    def mean_cost(self, cost_fp: float, cost_fn: float) -> FloatArray:
        """Compute the mean cost of errors per sample."""
        total = cost_fp * self.alarms + cost_fn * (self.n_positive - self.hits)
        return total / (self.n_positive + self.n_negative)


def count_at_thresholds(
    happened: BoolArray,
    probability: FloatArray,
    thresholds: FloatArray,
    sample_weight: FloatArray | None = None,
) -> ThresholdCounts:
    """Count true and false positives when samples with P ≥ Θ are predicted positive."""
    weights = np.ones(len(happened)) if sample_weight is None else sample_weight

    def reached(which: BoolArray) -> FloatArray:
        order = np.argsort(probability[which])
        from_here = np.append(np.cumsum(weights[which][order][::-1])[::-1], 0.0)
        return from_here[np.searchsorted(probability[which][order], thresholds)]

    return ThresholdCounts(
        thresholds,
        reached(happened),
        reached(~happened),
        float(weights[happened].sum()),
        float(weights[~happened].sum()),
    )


def best_threshold(thresholds: FloatArray, scores: FloatArray) -> int:
    """Return the index of the highest finite score; ties go to the nearest to 0.5, then the lower."""
    finite = np.isfinite(scores)
    highest = scores[finite].max()
    tied = np.flatnonzero(finite & (scores >= highest - TIE_TOLERANCE * abs(highest)))
    # Rounded, because 0.49 and 0.51 are not equally far from 0.5 in floating point.
    distance = np.abs(thresholds[tied] - 0.5).round(12)
    return int(tied[np.lexsort([thresholds[tied], distance])[0]])


def check_costs(cost_fp: Any, cost_fn: Any, *, strictly: bool = False) -> None:
    """Raise ValueError unless both costs or neither are given; 0 is allowed unless `strictly`."""
    if cost_fp is None and cost_fn is None:
        return
    if cost_fp is None or cost_fn is None:
        raise ValueError("`cost_fp` and `cost_fn` belong together: give both, or neither.")
    check_real("`cost_fp`", cost_fp, 0.0, strictly=strictly)
    check_real("`cost_fn`", cost_fn, 0.0, strictly=strictly)


class ThresholdCurve(NamedTuple):
    """The score at every threshold, and the best threshold.

    Attributes
    ----------
    thresholds, scores : ndarray of shape (n_thresholds,)
        The thresholds Θ as given, else ascending, and the scores if samples with P ≥ Θ are predicted positive.
    best_threshold, best_score : float
        The threshold with the best score (if several tie, the nearest to 0.5, then the lower), and that score.
    """

    thresholds: FloatArray
    scores: FloatArray
    best_threshold: float
    best_score: float


def threshold_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    score: Callable[..., float] = opf_accuracy_score,
    thresholds: ArrayLike | Literal["all"] | None = None,
    pos_label: Any = None,
) -> ThresholdCurve:
    r"""Compute the score at every threshold on the probability of the positive class.

    The paper of `PlattOPFClassifier` predicts a sample positive if P ≥ Θ, uses Θ = 0.5, and suggests a linear
    search for the best Θ:

    .. math:: \Theta^* = \arg\max_{\Theta} \; \mathrm{score}(y, [P \ge \Theta])

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, of two classes: integers, strings or booleans.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        The probability of the positive class, or one column for each of the two sorted labels.
    score : callable, default=opf_accuracy_score
        ``score(y_true, y_pred)``, higher is better. It is called with all samples in their order, so that a
        weighted score can be passed as ``functools.partial(score, sample_weight=weights)``. Thresholds at
        which it is not finite are skipped.
    thresholds : array-like of shape (n_thresholds,) or "all", default=None
        The values of Θ, between 0 and 1, both excluded. None for 0.01, 0.02, ..., 0.99; ``"all"`` for 0.5
        and the midpoints between neighbours among 0, 1 and the distinct probabilities, which covers all
        predictions that a threshold can make.
    pos_label : int, float, bool or str, default=None
        The positive class, which a one-dimensional `y_prob` refers to; None for the second of the two.

    Returns
    -------
    curve : ThresholdCurve

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : Chooses a threshold by cross-validation.

    Notes
    -----
    Choose Θ on samples that the classifier was not fitted to, and evaluate it on yet other samples. The default
    score takes O((n + m) log n) for m thresholds; any other is called once for every distinct set of samples
    that are predicted positive.

    Examples
    --------
    >>> from popf.metrics import threshold_curve
    >>> curve = threshold_curve([0, 0, 0, 1, 1], [0.1, 0.2, 0.55, 0.6, 0.9])
    >>> curve.best_threshold, curve.best_score
    (0.56, 1.0)
    """
    if not callable(score):
        raise TypeError(
            f"score={score!r} is not a function of (y_true, y_pred); pass one where higher is better, such "
            "as sklearn.metrics.f1_score."
        )
    true = as_labels(y_true, "y_true")
    classes = np.unique(true)
    if len(classes) != 2:
        raise ValueError(
            f"a threshold separates two classes, and y_true holds {len(classes)}: {shown(classes)}; pass "
            "samples of two classes or, for a class k of several, y_true == k and the probability of k."
        )
    codes, table, _, column = as_forecast(true, y_prob, None, pos_label)
    positive, negative = classes[column], classes[1 - column]
    probabilities = table[:, column]
    values = _as_thresholds(thresholds, probabilities)

    if score is opf_accuracy_score:
        counts = count_at_thresholds(codes == column, probabilities, values)
        scores = counts.scores()["balanced_accuracy"]  # the same with two classes
    else:
        # Thresholds with the same samples below them predict the same labels, and are scored once.
        below = np.searchsorted(np.sort(probabilities), values)
        _, first, group = np.unique(below, return_index=True, return_inverse=True)
        labelled = (np.where(probabilities >= values[k], positive, negative) for k in first)
        scores = np.array([float(score(true, labels)) for labels in labelled])[group]

    if not np.isfinite(scores).any():
        raise ValueError(
            f"score gave no finite number at any of {len(values)} thresholds, {scores[0]} at "
            f"{values[0]}; pass a score that is defined for these labels."
        )
    best = best_threshold(values, scores)
    return ThresholdCurve(values, scores, float(values[best]), float(scores[best]))


def _as_thresholds(thresholds: ArrayLike | str | None, probabilities: FloatArray) -> FloatArray:
    """Convert the parameter `thresholds` to an array."""
    if thresholds is None:
        return HUNDREDTHS.copy()
    if isinstance(thresholds, str):
        if thresholds != "all":
            raise ValueError(f"thresholds is {thresholds!r}; pass a list of numbers, or 'all'.")
        return _all_thresholds(probabilities)
    values = np.array(thresholds, dtype=np.float64)  # a copy, which the result keeps
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"thresholds has the shape {values.shape}; pass a list of numbers between 0 and 1."
        )
    outside = values[~((values > 0) & (values < 1))]
    if len(outside):
        raise ValueError(
            f"thresholds holds {outside[0]}; a threshold lies between 0 and 1, both excluded: "
            "otherwise all samples would get the same label."
        )
    return values


def _all_thresholds(probabilities: FloatArray) -> FloatArray:
    """Return 0.5 and one threshold for every set of samples that can be predicted positive."""
    steps = np.union1d(probabilities, [0.0, 1.0])
    lower, upper = steps[:-1], steps[1:]
    middle = lower + (upper - lower) / 2
    # Adjacent floating-point numbers have no midpoint, but P >= upper separates them as well.
    middle = np.where(middle > lower, middle, upper)
    return np.union1d(middle[middle < 1], [0.5])


def precision_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: float,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the share of positive samples among the k with the highest scores.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        True labels, and scores, which are higher for samples that are more likely positive.
    k : int or float
        Number of samples to inspect; with weights, their total weight.
    pos_label : int, float, bool or str, default=None
        The positive class; None for the second of two.
    sample_weight : array-like of shape (n_samples,), default=None
        A sample of weight 2 counts as two samples.

    Returns
    -------
    precision : float
        From 0 to 1. If only some of the samples with equal scores are among the k, they count in proportion.

    Examples
    --------
    >>> from popf.metrics import precision_at
    >>> precision_at([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1], k=2)
    0.5
    """
    reached, hits = _reached(y_true, y_score, pos_label, sample_weight)
    check_real("k", k, 0.0, reached[-1], strictly=True)
    return float(np.interp(k, reached, hits) / k)


def average_precision_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: float,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Compute the mean precision at the ranks of the positive samples among the k highest scores.

    If r of the first k samples are positive, at the ranks :math:`k_1 < \ldots < k_r` [1]_:

    .. math:: \mathrm{AP@}k = \frac{1}{r} \sum_{i=1}^{r} \frac{i}{k_i}

    Papers on electricity theft report it as MAP@100 and MAP@200. With k = n it is scikit-learn's
    `average_precision_score`.

    Parameters
    ----------
    y_true, y_score, k, pos_label, sample_weight
        As for `precision_at`.

    Returns
    -------
    average_precision : float
        From 0 to 1. Samples with equal scores all get the last of their ranks, as in scikit-learn; if only some
        of them are among the k, they count in proportion.

    References
    ----------
    .. [1] Z. Zheng, Y. Yang, X. Niu, H.-N. Dai, Y. Zhou, "Wide and deep convolutional neural networks for
       electricity-theft detection to secure smart grids", IEEE Transactions on Industrial Informatics
       14(4), 2018.

    Examples
    --------
    >>> from popf.metrics import average_precision_at
    >>> round(average_precision_at([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1], k=3), 4)
    0.8333
    """
    reached, hits = _reached(y_true, y_score, pos_label, sample_weight)
    check_real("k", k, 0.0, reached[-1], strictly=True)
    ranks = np.append(reached[reached < k], k)
    found = np.interp(ranks, reached, hits)
    if found[-1] == 0.0:
        return 0.0
    return float((np.diff(found) * found[1:] / ranks[1:]).sum() / found[-1])


class LiftCurve(NamedTuple):
    """Gains and lift if samples are inspected in the order of their scores, highest first.

    Attributes
    ----------
    fractions, gains, lift : ndarray of shape (n_points,)
        The share of samples inspected (0, then after each group of equal scores, up to 1), the share of the
        positive samples found by then, and ``gains / fractions`` (at 0, that of the first group).
    """

    fractions: FloatArray
    gains: FloatArray
    lift: FloatArray


def lift_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> LiftCurve:
    """Compute the share of positive samples found, and the lift, for each share of samples inspected.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight
        As for `precision_at`; at least one sample must be positive.

    Returns
    -------
    curve : LiftCurve
        Linear interpolation between its points is the mean over all orders of samples with equal scores.

    Examples
    --------
    >>> from popf.metrics import lift_curve
    >>> curve = lift_curve([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    >>> curve.fractions.tolist(), curve.gains.tolist()
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    >>> curve.lift.round(2).tolist()
    [2.0, 2.0, 1.0, 1.33, 1.0]
    """
    reached, hits = _reached(y_true, y_score, pos_label, sample_weight)
    if hits[-1] == 0.0:
        raise ValueError(
            "no sample is positive, so the lift is undefined; pass at least one that is."
        )
    fractions, gains = reached / reached[-1], hits / hits[-1]
    lift = gains[1:] / fractions[1:]
    return LiftCurve(fractions, gains, np.concatenate([lift[:1], lift]))


def _reached(
    y_true: ArrayLike, y_score: ArrayLike, pos_label: Any, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Count all samples and positive samples from the highest score down: 0, then after each distinct score."""
    happened, _ = event(y_true, pos_label)
    score = np.asarray(y_score, dtype=np.float64)
    if score.ndim != 1 or not np.isfinite(score).all():
        raise ValueError(
            f"y_score has the shape {score.shape}; pass finite scores of one class, without NaN, such as "
            "predict_proba(X)[:, 1]."
        )
    check_same_length(happened, score, "y_score")
    weights = as_weights(sample_weight, happened)
    counted = weights > 0
    distinct, group = np.unique(-score[counted], return_inverse=True)
    n = len(distinct)
    sizes = np.bincount(group, weights[counted], n)
    positive = np.bincount(group, (weights * happened)[counted], n)
    return np.append(0.0, np.cumsum(sizes)), np.append(0.0, np.cumsum(positive))
