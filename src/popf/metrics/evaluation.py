"""Measures of labels and probabilities: one by one, and all at once with 95 % intervals."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

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

#: Bins in every calibration error and reliability curve of popf. With the 15 of Guo et al. (2017), who had
#: 10,000 samples and more, curves of a thousand samples are jagged and errors biased upwards by a quarter more.
N_BINS = 10
STRATEGIES = ("uniform", "quantile")
KINDS = ("confidence", "classwise", "binary")
CONFIDENCE = 0.95
#: Bootstrap samples; fewer where there are more than 20,000 rows, whose intervals are narrow anyway.
RESAMPLES, FEWEST_RESAMPLES, MOST_DRAWS = 500, 100, 10_000_000
#: The share of bootstrap samples in which a score must be defined for it to have an interval.
DEFINED = 0.9


def opf_accuracy_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Accuracy that is fair to small classes, as the literature on OPF measures it (see `OPFClassifier`).

    With N samples, N_i of them of class i, FN_i of those predicted as another class, and FP_i samples of
    other classes predicted as i:

    .. math:: 1 - \frac{1}{2c} \sum_{i=1}^{c}
              \left( \frac{FP_i}{N - N_i} + \frac{FN_i}{N_i} \right)

    For two classes it is the balanced accuracy. For more it is not: guessing scores 0.5 whatever c, where the
    balanced accuracy, the mean recall, falls to 1/c.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted labels: integers, strings or booleans.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, of which N, N_i, FP_i and FN_i are the sums. Zero leaves a sample out.

    Returns
    -------
    score : float
        From 0 to 1; higher is better.

    Notes
    -----
    The sum runs over classes that occur in `y_true`, as in LibOPF: a label that occurs in `y_pred` only counts
    as an error of the true class, and adds no class. Where `y_true` holds one class only, FP_i / (N - N_i)
    is 0 / 0 and left out of the mean: the score is the plain accuracy.

    Examples
    --------
    Eight of ten are right, and yet half of the small class is lost:

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
    """Sum the weights of the samples of each class, N_i, of those missed, FN_i, and of false alarms, FP_i."""
    wrong = np.where(true != predicted, weights, 0.0)
    sums = [(true, weights), (true, wrong), (predicted, wrong)]
    return [np.bincount(codes, mass, n_classes).astype(np.float64) for codes, mass in sums]


def accuracy_of_counts(sizes: FloatArray, missed: FloatArray, alarms: FloatArray) -> float:
    """Compute `opf_accuracy_score` from N_i, FN_i and FP_i."""
    # N - N_i as a sum of the others: a difference would lose a class of tiny weight.
    before = np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    after = np.concatenate([np.cumsum(sizes[::-1])[:-1][::-1], [0.0]])
    others = before + after
    occurs = sizes > 0
    has_others = occurs & (others > 0)
    shares = [missed[occurs] / sizes[occurs], alarms[has_others] / others[has_others]]
    every = np.concatenate(shares).tolist()
    # An exact sum: the order of the classes must not matter, not even in the last digit.
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
    r"""How far probabilities are from frequencies, on average over bins of similar probabilities.

    A sample has a probability p of some event and h = 1 if the event happened, else 0. Samples are put into
    bins by p, and mean probability and frequency are compared in each [1]_:

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
        Bins of equal width, or of equal mass, where equal probabilities are never parted: where many are
        equal, bins hold unequal shares and some are empty. Bins are open below and closed above.
    kind : {"confidence", "classwise", "binary"}, default="confidence"
        Which event is meant:

        - ``"confidence"``: that the most probable class (the first of several) is the true one [2]_;
        - ``"classwise"``: that the sample is of class k, for each k; the mean over all classes [3]_;
        - ``"binary"``: that the sample is of the positive class, as in [1]_; two classes only.
    pos_label : int, float, bool or str, default=None
        The positive class, to which a one-dimensional `y_prob` belongs; None for the second of two.
    labels : array-like of shape (n_classes,), default=None
        The classes in the order of the columns, as in ``classes_`` of a classifier; None for the sorted
        labels in `y_true`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights. Zero leaves a sample out.

    Returns
    -------
    error : float
        From 0 to 1; lower is better.

    See Also
    --------
    sklearn.calibration.calibration_curve : The two means in each bin.
    sklearn.metrics.log_loss, sklearn.metrics.brier_score_loss : Proper scores.

    Notes
    -----
    The error is not a proper score: predicting the class frequencies for everyone has an error near 0. It is
    biased upwards, the more so the fewer samples a bin holds: compare models on the same samples and bins.

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
    """Find the bin of every probability, from 0; bins are open below and closed above."""
    check_choice("strategy", strategy, STRATEGIES)
    check_integer("n_bins", n_bins, 1)
    if strategy == "uniform":
        inner = np.arange(1, n_bins) / n_bins
    else:
        order = np.argsort(probabilities, kind="stable")
        reached = np.cumsum(weights[order])
        # Both sides times n_bins: with whole weights the comparison is then exact.
        ends = np.searchsorted(reached * n_bins, np.arange(1, n_bins) * reached[-1])
        inner = probabilities[order[ends]]
    return np.searchsorted(inner, probabilities)


def mean_gap(
    bins: IntArray, happened: BoolArray, probabilities: FloatArray, weights: FloatArray
) -> float:
    """Mean over samples of the gap between frequency and mean probability in their bin."""
    gaps = np.bincount(bins, weights * (happened - probabilities))
    return float(np.abs(gaps).sum() / weights.sum())


class Score(NamedTuple):
    """A score with its 95 % interval.

    Attributes
    ----------
    value, lower, upper : float
        NaN where it is not defined.
    """

    value: float
    lower: float = np.nan
    upper: float = np.nan


class Evaluation(NamedTuple):
    """What `evaluate` finds.

    Attributes
    ----------
    scores : dict of str to Score
        ``log_loss``, ``brier``, ``ece``, ``auc``, ``accuracy``, ``balanced_accuracy``, ``opf_accuracy``, and
        for two classes ``precision``, ``recall`` and ``false_alarm_rate``.
    confusion : ndarray of shape (n_classes, n_classes)
        How many samples of the class of the row were given the label of the column.
    """

    scores: dict[str, Score]
    confusion: IntArray

    @property
    def precision_by_class(self) -> FloatArray:
        """Share of right labels among the samples that were given the label of each class; NaN for none."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=0))

    @property
    def recall_by_class(self) -> FloatArray:
        """Share of right labels among the samples of each class; NaN for none."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=1))


def evaluate(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    threshold: float = 0.5,
    groups: ArrayLike | None = None,
    intervals: bool = True,
    seed: int = 0,
) -> Evaluation:
    """Measure probabilities, and the labels they lead to, against the true labels.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label
        As for `expected_calibration_error`.
    threshold : float, default=0.5
        Of two classes, the probability from which on a sample is predicted positive. Of more, the most
        probable is predicted.
    groups : array-like of shape (n_samples,), default=None
        What samples belong to, such as the consumer of a month: intervals draw whole groups. If several samples
        tell about the same thing, intervals without groups are too narrow.
    intervals, seed : bool and int, default=True and 0
        Whether to compute intervals, and the seed of the bootstrap.

    Returns
    -------
    Evaluation

    Notes
    -----
    - Log loss, Brier score (not halved with three classes and more) and area under the ROC curve (with three
      classes and more the mean over each class against the rest) are scikit-learn's.
    - The calibration error is `expected_calibration_error` of the positive class, or with three classes and
      more of the most probable one.
    - Intervals hold 95 % of the scores over 500 bootstrap samples (100 to 500 with more than 20,000 rows).
      That of the calibration error is corrected for the upward bias of the resampling. One group alone has no
      interval.

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
        # From one column: nothing depends on the rounding of the other.
        table = both_columns(table[:, positive], positive)
        called = np.where(table[:, positive] >= threshold, positive, 1 - positive)
    else:
        called = table.argmax(axis=1)
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (codes, called), 1)

    rows = np.argsort(table[:, positive], kind="stable")  # sorted, sums by probability are faster
    scores_of = _scores(codes[rows], table[rows], called[rows], positive)
    values = scores_of(np.ones(len(codes)))
    together = np.arange(len(codes))
    if groups is not None:
        together = group_numbers(groups, len(codes))[1][rows]
    if not intervals or (groups is not None and together.max() == 0):
        return Evaluation({name: Score(value) for name, value in values.items()}, confusion)
    resampled = [scores_of(weights) for weights in bootstrap_weights(together, seed)]
    scores = {}
    for name, value in values.items():
        drawn = np.array([one[name] for one in resampled])
        biased = name == "ece"
        ends = upward_biased_interval(value, drawn) if biased else percentile_interval(drawn)
        scores[name] = Score(value, *ends)
    return Evaluation(scores, confusion)


def chance_calibration_error(
    probability: FloatArray, seed: int = 0, groups: IntArray | None = None
) -> float:
    """Calibration error that exact probabilities would stay below, 19 times in 20, on as many samples.

    `groups` are numbers from 0. One draw decides for all samples of a group: their labels go together.
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
    codes: IntArray, table: FloatArray, called: IntArray, positive: int
) -> Callable[[FloatArray], dict[str, float]]:
    """Return a function from weights of the samples to all scores, NaN where one is not defined."""
    n_samples, n_classes = table.shape
    binary = n_classes == 2
    of_truth = table[np.arange(n_samples), codes]
    losses = -np.log(np.maximum(of_truth, np.finfo(np.float64).eps))
    squares = (table**2).sum(axis=1) - 2.0 * of_truth + 1.0
    if binary:
        squares /= 2.0
    right = codes == called
    top = table[:, positive] if binary else table.max(axis=1)
    happened = codes == positive if binary else codes == table.argmax(axis=1)
    bins = bins_of(top, np.ones(n_samples), N_BINS, "uniform")
    areas = [
        roc_area(codes == column, table[:, column])
        for column in ([positive] if binary else range(n_classes))
    ]

    def scores(weights: FloatArray) -> dict[str, float]:
        def total(of: NDArray[Any]) -> float:
            # Not BLAS, whose last digits depend on its number of threads.
            return float((weights * of).sum())

        n = float(weights.sum())
        sizes, missed, alarms = class_counts(codes, called, weights, n_classes)
        recalls = _ratio(sizes - missed, sizes)
        found = {
            "log_loss": total(losses) / n,
            "brier": total(squares) / n,
            "ece": mean_gap(bins, happened, top, weights),
            "auc": _mean([area(weights) for area in areas]),
            "accuracy": total(right) / n,
            "balanced_accuracy": _mean(recalls),
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
    """Quotient; NaN if the whole is 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(part / whole)


def _mean(values: Any) -> float:
    """Mean of the values that are defined, NaN if none is."""
    values = np.asarray(values)
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if len(defined) else np.nan


def roc_area(truth: BoolArray, score: FloatArray) -> Callable[[FloatArray], float]:
    """Area under the ROC curve as a function of the weights: P(positive scores higher), ties half."""
    distinct, group = np.unique(score, return_inverse=True)

    def area(weights: FloatArray) -> float:
        up = np.bincount(group, weights * truth, minlength=len(distinct))
        down = np.bincount(group, weights * ~truth, minlength=len(distinct))
        below = np.cumsum(down) - down / 2.0
        return float(_ratio((up * below).sum(), up.sum() * down.sum()))

    return area


def n_resamples(n_samples: int) -> int:
    """Choose the number of bootstrap samples."""
    return int(np.clip(MOST_DRAWS // n_samples, FEWEST_RESAMPLES, RESAMPLES))


def bootstrap_weights(groups: IntArray, seed: int) -> Iterator[FloatArray]:
    """For each bootstrap sample, yield how often every row is drawn; `groups` are numbers from 0."""
    rng, n_groups = np.random.default_rng(seed), int(groups.max()) + 1
    for _ in range(n_resamples(len(groups))):
        drawn = rng.integers(n_groups, size=n_groups)
        yield np.bincount(drawn, minlength=n_groups).astype(np.float64)[groups]


def percentile_interval(drawn: FloatArray) -> tuple[float, float]:
    """Quantiles of the bootstrap scores; NaN if the score was often undefined."""
    defined = drawn[np.isfinite(drawn)]
    if len(defined) < DEFINED * len(drawn):
        return np.nan, np.nan
    lower, upper = np.quantile(defined, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0])
    return float(lower), float(upper)


def upward_biased_interval(value: float, drawn: FloatArray) -> tuple[float, float]:
    """Interval of a non-negative score that noise can only increase, such as the calibration error.

    Resampling adds noise to noise, so percentiles lie too high. The lower end is the basic bootstrap's; the
    upper one only loses the bias. In simulations this covered the true error in 90 to 98 % of the cases, plain
    percentiles in 18 to 93 %.
    """
    _, highest = percentile_interval(drawn)
    return max(2.0 * value - highest, 0.0), max(value + highest - float(drawn.mean()), value)


def wilson(share: Any, n: Any) -> tuple[Any, Any]:
    r"""Wilson's 95 % interval of a share h among n samples, for numbers or arrays.

    .. math:: \frac{h + \frac{z^2}{2n} \pm z \sqrt{\frac{h (1 - h)}{n} + \frac{z^2}{4 n^2}}}
              {1 + \frac{z^2}{n}}
    """
    z = float(ndtri(0.5 + CONFIDENCE / 2.0))
    middle = share + z**2 / (2.0 * n)
    half = z * np.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2)
    scale = 1.0 + z**2 / n
    # Rounding must not put the share itself outside.
    lower = np.clip((middle - half) / scale, 0.0, share)
    return lower, np.clip((middle + half) / scale, share, 1.0)
