"""The accuracy of labels, and how far probabilities are from frequencies."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from popf.formatting import check_integer
from popf.metrics.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    as_forecast,
    as_labels,
    as_weights,
    check_choice,
    check_same_kind,
    check_same_length,
)

#: Bins in every calibration error and reliability curve of popf. With the 15 of Guo et al. (2017), who had
#: 10,000 samples and more, curves of a thousand samples are jagged and errors biased upwards by a quarter more.
N_BINS = 10
STRATEGIES = ("uniform", "quantile")
KINDS = ("confidence", "classwise", "binary")


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
    return max(0.0, 1.0 - float(np.mean(np.concatenate(shares))))


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
    check_choice(kind, "kind", KINDS)
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
    check_choice(strategy, "strategy", STRATEGIES)
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
