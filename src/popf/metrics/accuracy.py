"""Accuracy that is fair to small classes."""

import numpy as np
from numpy.typing import ArrayLike

from popf.metrics.checks import (
    FloatArray,
    IntArray,
    as_labels,
    as_weights,
    check_same_kind,
    check_same_length,
)


def opf_accuracy_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Accuracy that is fair to small classes, as the literature on OPF measures it.

    With N samples, N_i of them of class i, FN_i of those predicted as another class, and FP_i samples of
    other classes predicted as i [1]_:

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

    References
    ----------
    .. [1] J. P. Papa, A. X. Falcão, C. T. N. Suzuki, "Supervised pattern classification based on
       optimum-path forest", International Journal of Imaging Systems and Technology 19(2), 2009.

    Examples
    --------
    Eight of ten are right, and yet half of the small class is lost. `sklearn.metrics.make_scorer` makes it a
    scorer.

    >>> from popf.metrics import opf_accuracy_score
    >>> opf_accuracy_score(["no"] * 8 + ["yes"] * 2, ["no"] * 7 + ["yes"] * 2 + ["no"])
    0.6875
    """
    true, predicted = as_labels(y_true, "y_true"), as_labels(y_pred, "y_pred")
    check_same_length(true, predicted, "y_pred")
    weights = as_weights(sample_weight, len(true))
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
