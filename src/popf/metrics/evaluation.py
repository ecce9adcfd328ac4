"""Metrics of labels and probabilities: one by one, and all at once with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from popf.formatting import check_choice, check_integer
from popf.metrics.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    as_forecast,
    as_labels,
    as_weights,
    both_columns,
    check_same_kind,
    check_same_length,
    group_numbers,
)
from popf.metrics.intervals import (
    CONFIDENCE,
    bootstrap_weights,
    n_resamples,
    percentile_interval,
    upward_biased_interval,
)

#: Number of bins in all calibration errors and reliability curves. With the 15 of Guo et al. (2017), who had at
#: least 10,000 samples, curves of a thousand samples are jagged, and the upward bias of the error is a quarter
#: larger.
N_BINS = 10
STRATEGIES = ("uniform", "quantile")
KINDS = ("confidence", "classwise", "binary")


def opf_accuracy_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Compute the accuracy of the OPF literature (see `OPFClassifier`), in which all classes count equally.

    With N samples, N_i of them of class i, FN_i of those predicted as another class, and FP_i samples of
    other classes predicted as i:

    .. math:: 1 - \frac{1}{2c} \sum_{i=1}^{c}
              \left( \frac{FP_i}{N - N_i} + \frac{FN_i}{N_i} \right)

    For two classes it is the balanced accuracy. For more it is not: random guessing scores 0.5 for any c, while
    its balanced accuracy (mean recall) falls to 1/c.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted labels: integers, strings or booleans.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights; N, N_i, FP_i and FN_i are sums of them. Samples with weight 0 are left out.

    Returns
    -------
    score : float
        From 0 to 1; higher is better.

    Notes
    -----
    The sum runs over the classes in `y_true`, as in LibOPF: a label that occurs only in `y_pred` counts as an
    error of the true class, but not as a class. If `y_true` holds one class only, FP_i / (N - N_i) is 0 / 0 and
    is left out of the mean: the score is the plain accuracy.

    Examples
    --------
    Eight of ten labels are correct, but half of the small class is missed:

    >>> from popf.metrics import opf_accuracy_score
    >>> opf_accuracy_score(["no"] * 8 + ["yes"] * 2, ["no"] * 7 + ["yes"] * 2 + ["no"])
    0.6875
    """
    true, predicted = as_labels(y_true, "y_true"), as_labels(y_pred, "y_pred")
    check_same_length(true, predicted, "y_pred")
    weights = as_weights(sample_weight, true)
    check_same_kind(true, predicted, "y_true", "y_pred")
    classes, codes = np.unique(np.concatenate([true, predicted]), return_inverse=True)
    n = len(true)
    return accuracy_of_counts(*class_counts(codes[:n], codes[n:], weights, len(classes)))


def class_counts(
    true: IntArray, predicted: IntArray, weights: FloatArray, n_classes: int
) -> list[FloatArray]:
    """Sum the weights of all samples (N_i), missed samples (FN_i) and false alarms (FP_i) of each class."""
    wrong = np.where(true != predicted, weights, 0.0)
    sums = [(true, weights), (true, wrong), (predicted, wrong)]
    return [np.bincount(codes, mass, n_classes).astype(np.float64) for codes, mass in sums]


def accuracy_of_counts(sizes: FloatArray, missed: FloatArray, alarms: FloatArray) -> float:
    """Compute `opf_accuracy_score` from N_i, FN_i and FP_i."""
    # N - N_i as a sum over the other classes: a difference would lose classes with a tiny weight.
    before = np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    after = np.concatenate([np.cumsum(sizes[::-1])[:-1][::-1], [0.0]])
    others = before + after
    occurs = sizes > 0
    has_others = occurs & (others > 0)
    shares = [missed[occurs] / sizes[occurs], alarms[has_others] / others[has_others]]
    every = np.concatenate(shares).tolist()
    # An exact sum, so that the order of the classes does not affect even the last digit.
    return max(0.0, 1.0 - math.fsum(every) / len(every))


def expected_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = N_BINS,
    strategy: Literal["uniform", "quantile"] = "uniform",
    kind: Literal["confidence", "classwise", "binary"] = "confidence",
    pos_label: Any = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Compute the expected calibration error (ECE): how far probabilities are from frequencies, on average.

    Each sample has a predicted probability p of an event, and h = 1 if the event happened, else 0. Samples are
    binned by p, and the mean probability in each bin is compared with the frequency of the event [1]_:

    .. math:: \mathrm{ECE} = \sum_{b=1}^{B} \frac{N_b}{N}
              \left| \overline{h}_b - \overline{p}_b \right|
              = \frac{1}{N} \sum_{b=1}^{B} \left| \sum_{i \in b} (h_i - p_i) \right|

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: integers, strings or booleans.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        The probability of the positive class, or one column for each class.
    n_bins : int, default=10
        The number of bins B.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal weight. Equal probabilities are always in the same bin, so if many are
        equal, quantile bins have unequal weights and some are empty. Bins are open below and closed above.
    kind : {"confidence", "classwise", "binary"}, default="confidence"
        The event:

        - ``"confidence"``: that the most probable class (the first if several tie) is the true one [2]_;
        - ``"classwise"``: that the sample is of class k, averaged over all k [3]_;
        - ``"binary"``: that the sample is of the positive class, as in [1]_; two classes only.
    pos_label : int, float, bool or str, default=None
        The positive class, which a one-dimensional `y_prob` refers to; None for the second of two.
    labels : array-like of shape (n_classes,), default=None
        The classes in the order of the columns, as in ``classes_`` of a classifier; None for the sorted
        labels in `y_true`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights. Samples with weight 0 are left out.

    Returns
    -------
    error : float
        From 0 to 1; lower is better.

    See Also
    --------
    sklearn.calibration.calibration_curve : Mean probability and frequency in each bin.
    sklearn.metrics.log_loss, sklearn.metrics.brier_score_loss : Proper scores.

    Notes
    -----
    The error is not a proper score: predicting the class frequencies for every sample has an error near 0.
    It is biased upwards, more so with fewer samples per bin: compare models on the same samples and bins.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities using
       Bayesian binning", AAAI Conference on Artificial Intelligence, 2015.
    .. [2] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks",
       International Conference on Machine Learning, 2017.
    .. [3] M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond temperature
       scaling: obtaining well-calibrated multiclass probabilities with Dirichlet calibration", Advances in
       Neural Information Processing Systems 32, 2019.

    Examples
    --------
    Of four samples with a probability of 0.9, three are positive:

    >>> from popf.metrics import expected_calibration_error
    >>> error = expected_calibration_error([1, 1, 1, 0, 0], [0.9, 0.9, 0.9, 0.9, 0.0])
    >>> round(error, 3)
    0.12
    """
    check_choice("kind", kind, KINDS)
    codes, table, classes, positive = as_forecast(y_true, y_prob, labels, pos_label)
    weights = as_weights(sample_weight, codes)

    def error(probabilities: FloatArray, happened: BoolArray) -> float:
        bins = bins_of(probabilities, weights, n_bins, strategy)
        return mean_gap(bins, happened, probabilities, weights)

    if kind == "binary":
        if len(classes) > 2:
            raise ValueError(
                f'kind="binary" is for two classes, and there are {len(classes)}; '
                'use kind="classwise" or kind="confidence".'
            )
        return error(table[:, positive], codes == positive)
    if kind == "classwise":
        return float(np.mean([error(table[:, k], codes == k) for k in range(len(classes))]))
    return error(table.max(axis=1), codes == table.argmax(axis=1))


def bins_of(probabilities: FloatArray, weights: FloatArray, n_bins: int, strategy: str) -> IntArray:
    """Return the bin of every probability, numbered from 0; bins are open below and closed above."""
    check_choice("strategy", strategy, STRATEGIES)
    check_integer("n_bins", n_bins, 1)
    if strategy == "uniform":
        inner = np.arange(1, n_bins) / n_bins
    else:
        order = np.argsort(probabilities, kind="stable")
        reached = np.cumsum(weights[order])
        # Both sides are multiplied by n_bins: with integer weights the comparison is then exact.
        ends = np.searchsorted(reached * n_bins, np.arange(1, n_bins) * reached[-1])
        inner = probabilities[order[ends]]
    return np.searchsorted(inner, probabilities)


def mean_gap(
    bins: IntArray, happened: BoolArray, probabilities: FloatArray, weights: FloatArray
) -> float:
    """Compute the mean over samples of the gap between frequency and mean probability in their bin."""
    gaps = np.bincount(bins, weights * (happened - probabilities))
    return float(np.abs(gaps).sum() / weights.sum())


class Score(NamedTuple):
    """A score with its 95 % interval.

    Attributes
    ----------
    value, lower, upper : float
        NaN where undefined.
    """

    value: float
    lower: float = np.nan
    upper: float = np.nan


class Evaluation(NamedTuple):
    """The result of `evaluate`.

    Attributes
    ----------
    scores : dict of str to Score
        ``log_loss``, ``brier``, ``ece``, ``auc``, ``accuracy``, ``balanced_accuracy``, ``opf_accuracy``, and
        for two classes ``precision``, ``recall`` and ``false_alarm_rate``.
    confusion : ndarray of shape (n_classes, n_classes)
        Number of samples by true class (row) and predicted class (column).
    promised : ndarray of shape (n_classes,)
        Sum of the probabilities of each class: the number of its samples to expect.
    by_period : dict of Evaluation
        The same for the samples of each period, in order; empty without `periods`.
    """

    scores: dict[str, Score]
    confusion: IntArray
    promised: FloatArray
    by_period: dict[Any, Evaluation]

    @property
    def precision_by_class(self) -> FloatArray:
        """Precision of each class; NaN if it is never predicted."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=0))

    @property
    def recall_by_class(self) -> FloatArray:
        """Recall of each class; NaN if it has no samples."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=1))


def evaluate(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    threshold: float = 0.5,
    groups: ArrayLike | None = None,
    periods: ArrayLike | None = None,
    intervals: bool = True,
    seed: int = 0,
) -> Evaluation:
    """Evaluate probabilities, and the labels predicted from them, against the true labels.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label
        As for `expected_calibration_error`.
    threshold : float, default=0.5
        With two classes, samples with at least this probability are predicted positive. With more classes, the
        most probable one is predicted.
    groups : array-like of shape (n_samples,), default=None
        The group of each sample, such as the patient if samples are visits: intervals resample whole groups.
        If samples of a group depend on each other, intervals without groups are too narrow.
    periods : array-like of shape (n_samples,), default=None
        The period of each sample, such as its month, to evaluate each period by itself, too.
    intervals, seed : bool and int, default=True and 0
        Whether to compute intervals, and the seed of the bootstrap.

    Returns
    -------
    Evaluation
        A `Score` for every metric, and the confusion matrix.

    Notes
    -----
    - Log loss, Brier score (not halved for three or more classes) and area under the ROC curve (for three or
      more classes, the mean of each class against the rest) are those of scikit-learn.
    - The calibration error is `expected_calibration_error` of the positive class or, for three or more classes,
      of the most probable class.
    - Intervals contain 95 % of the scores of 500 bootstrap samples (100 to 500 for more than 20,000 rows).
      That of the calibration error is corrected for the upward bias of resampling. With a single group there
      are no intervals.

    Examples
    --------
    >>> from popf.metrics import evaluate
    >>> found = evaluate([0, 0, 1, 1], [0.1, 0.6, 0.7, 0.9])
    >>> found.confusion
    array([[1, 1],
           [0, 2]])
    >>> round(found.scores["brier"].value, 4), found.scores["accuracy"].value
    (0.1175, 0.75)
    """
    codes, table, classes, positive = as_forecast(y_true, y_prob, labels, pos_label)
    if len(classes) == 2:
        # From the positive column only, so that rounding of the other has no effect.
        table = both_columns(table[:, positive], positive)
        predicted = np.where(table[:, positive] >= threshold, positive, 1 - positive)
    else:
        predicted = table.argmax(axis=1)
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (codes, predicted), 1)

    promised, by_period = table.sum(axis=0), {}
    if periods is not None:
        names, numbers = group_numbers(periods, len(codes), "periods")
        for number, name in enumerate(names.tolist()):
            rows = numbers == number
            by_period[name] = evaluate(
                codes[rows],
                table[rows],
                labels=range(len(classes)),
                pos_label=positive if len(classes) == 2 else None,
                threshold=threshold,
                groups=None if groups is None else np.asarray(groups)[rows],
                intervals=intervals,
                seed=seed,
            )
    rows = np.argsort(table[:, positive], kind="stable")  # sorted, for faster sums by probability
    scores_of = _scores(codes[rows], table[rows], predicted[rows], positive)
    values = scores_of(np.ones(len(codes)))
    group_of = np.arange(len(codes))
    if groups is not None:
        group_of = group_numbers(groups, len(codes))[1][rows]
    if not intervals or (groups is not None and group_of.max() == 0):
        plain = {name: Score(value) for name, value in values.items()}
        return Evaluation(plain, confusion, promised, by_period)
    resampled = [scores_of(weights) for weights in bootstrap_weights(group_of, seed)]
    scores = {}
    for name, value in values.items():
        drawn = np.array([one[name] for one in resampled])
        biased = name == "ece"
        ends = upward_biased_interval(value, drawn) if biased else percentile_interval(drawn)
        scores[name] = Score(value, *ends)
    return Evaluation(scores, confusion, promised, by_period)


def chance_calibration_error(
    probability: FloatArray, seed: int = 0, groups: IntArray | None = None
) -> float:
    """Compute the 95 % quantile of the calibration error that exact probabilities have by chance.

    `groups` are numbers from 0. One random number is drawn per group: its labels depend on each other.
    """
    rng, n = np.random.default_rng(seed), len(probability)
    ones, groups = np.ones(n), np.arange(n) if groups is None else groups
    bins = bins_of(probability, ones, N_BINS, "uniform")
    errors = [
        mean_gap(bins, rng.random(groups.max() + 1)[groups] < probability, probability, ones)
        for _ in range(n_resamples(n))
    ]
    return float(np.quantile(errors, CONFIDENCE))


def _scores(
    codes: IntArray, table: FloatArray, predicted: IntArray, positive: int
) -> Callable[[FloatArray], dict[str, float]]:
    """Return a function that computes all scores from sample weights; undefined scores are NaN."""
    n_samples, n_classes = table.shape
    binary = n_classes == 2
    true_probability = table[np.arange(n_samples), codes]
    losses = -np.log(np.maximum(true_probability, np.finfo(np.float64).eps))
    squares = (table**2).sum(axis=1) - 2.0 * true_probability + 1.0
    if binary:
        squares /= 2.0
    correct = codes == predicted
    top = table[:, positive] if binary else table.max(axis=1)
    happened = codes == positive if binary else codes == table.argmax(axis=1)
    bins = bins_of(top, np.ones(n_samples), N_BINS, "uniform")
    areas = [
        roc_area(codes == column, table[:, column])
        for column in ([positive] if binary else range(n_classes))
    ]

    def scores(weights: FloatArray) -> dict[str, float]:
        def total(of: NDArray[Any]) -> float:
            # Not by BLAS, where the last digits depend on the number of threads.
            return float((weights * of).sum())

        n = float(weights.sum())
        sizes, missed, alarms = class_counts(codes, predicted, weights, n_classes)
        recalls = _ratio(sizes - missed, sizes)
        found = {
            "log_loss": total(losses) / n,
            "brier": total(squares) / n,
            "ece": mean_gap(bins, happened, top, weights),
            "auc": mean_of_finite([area(weights) for area in areas]),
            "accuracy": total(correct) / n,
            "balanced_accuracy": mean_of_finite(recalls),
            "opf_accuracy": accuracy_of_counts(sizes, missed, alarms),
        }
        if binary:
            hits, false_alarms = sizes[positive] - missed[positive], alarms[positive]
            found["precision"] = float(_ratio(hits, hits + false_alarms))
            found["recall"] = float(recalls[positive])
            found["false_alarm_rate"] = float(_ratio(false_alarms, sizes[1 - positive]))
        return found

    return scores


def _ratio(part: Any, whole: Any) -> FloatArray:
    """Divide; NaN for 0 / 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(part / whole)


def mean_of_finite(values: Any) -> float:
    """Compute the mean of the finite values; NaN if there are none."""
    values = np.asarray(values)
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if len(defined) else np.nan


def roc_area(truth: BoolArray, score: FloatArray) -> Callable[[FloatArray], float]:
    """Return a function that computes the area under the ROC curve from sample weights.

    The area is the probability that a positive sample scores higher than a negative one; ties count half.
    """
    distinct, group = np.unique(score, return_inverse=True)

    def area(weights: FloatArray) -> float:
        up = np.bincount(group, weights * truth, minlength=len(distinct))
        down = np.bincount(group, weights * ~truth, minlength=len(distinct))
        below = np.cumsum(down) - down / 2.0
        return float(_ratio((up * below).sum(), up.sum() * down.sum()))

    return area
