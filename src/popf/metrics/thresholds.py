"""The choice of a threshold on a probability."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from popf.labels import encode
from popf.metrics.accuracy import opf_accuracy_score
from popf.metrics.checks import (
    as_labels,
    as_probabilities,
    check_choice,
    check_same_length,
    column_classes,
    positive_column,
    shown,
)

FloatArray = NDArray[np.float64]

#: Scores that differ by less than this share are one score, rounded in two ways.
TIE_TOLERANCE = 1e-12


class ThresholdCurve(NamedTuple):
    """A score for every threshold, and the threshold to use.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        The thresholds Θ, in the order in which they were given, else ascending.
    scores : ndarray of shape (n_thresholds,)
        The score when a sample is called positive where P ≥ Θ.
    best_threshold : float
        The threshold of the best score; of several, the nearest to 0.5, then the lower.
    best_score : float
        The score there.
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
    r"""Score every threshold on the probability of the positive class: the paper's linear search.

    The paper [1]_ calls a sample positive where P ≥ Θ, takes Θ = 0.5, and leaves a better one to a search:

    .. math:: \Theta^* = \arg\max_{\Theta} \; \mathrm{score}(y, [P \ge \Theta])

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, of two classes: integers, strings or booleans.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        The probability of the positive class, or one column for each of the two sorted labels.
    score : callable, default=opf_accuracy_score
        ``score(y_true, y_pred)``, the larger the better, called with labels as they are in `y_true`. All
        samples are passed in their order, so a weighted score is
        ``functools.partial(score, sample_weight=weights)``. Thresholds at which it is not finite are passed
        over.
    thresholds : array-like of shape (n_thresholds,) or "all", default=None
        The values of Θ, between 0 and 1, both excluded. None for 0.01, 0.02, ..., 0.99; ``"all"`` for 0.5
        and the middle between every two neighbours among 0, 1 and the distinct probabilities, which is
        everything that can make a difference.
    pos_label : int, float, bool or str, default=None
        The positive class, which a one-dimensional `y_prob` belongs to; None for the second of the two.

    Returns
    -------
    curve : ThresholdCurve
        The arrays ``thresholds`` and ``scores``, and the numbers ``best_threshold`` and ``best_score``. Of
        thresholds that score the same the nearest to 0.5 is the best, then the lower.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : Chooses a threshold by cross-validation, and is a
        classifier that uses it.

    Notes
    -----
    Choose Θ on samples that the classifier was not fitted to, and judge it on others again. For the default
    score, n probabilities and m thresholds take O((n + m) log n); any other is called once for every
    distinct set of positive samples, at most min(m, n + 1) times.

    References
    ----------
    .. [1] S. E. N. Fernandes, D. R. Pereira, C. C. O. Ramos, A. N. Souza, J. P. Papa, "A probabilistic
       optimum-path forest classifier for binary classification problems", arXiv:1609.00878, 2016.

    Examples
    --------
    >>> from popf.metrics import threshold_curve
    >>> curve = threshold_curve([0, 0, 0, 1, 1], [0.1, 0.2, 0.55, 0.6, 0.9])
    >>> curve.best_threshold, curve.best_score
    (0.56, 1.0)
    >>> curve = threshold_curve([0, 0, 0, 1, 1], [0.1, 0.2, 0.55, 0.6, 0.9], thresholds=[0.15, 0.5])
    >>> curve.scores.round(3)
    array([0.667, 0.833])

    The same aim, by cross-validation, with a classifier as the result:

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.metrics import make_scorer
    >>> from sklearn.model_selection import TunedThresholdClassifierCV
    >>> from popf.metrics import opf_accuracy_score
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> tuned = TunedThresholdClassifierCV(
    ...     LogisticRegression(), scoring=make_scorer(opf_accuracy_score)
    ... ).fit(X, y)
    >>> bool(0 < tuned.best_threshold_ < 0.5)
    True
    """
    if not callable(score):
        raise TypeError(
            f"score={score!r} is no function of (y_true, y_pred); pass one that is the larger the "
            "better, such as sklearn.metrics.f1_score."
        )
    true, table = as_labels(y_true, "y_true"), as_probabilities(y_prob)
    check_same_length(true, table, "y_prob")
    classes, _ = encode(true)
    if len(classes) != 2:
        raise ValueError(
            f"a threshold parts two classes, and y_true holds {len(classes)}: {shown(classes)}; pass "
            "samples of two classes, or y_true == k and the probability of class k for one of many."
        )
    column_classes(true, None, table)
    column = positive_column(classes, pos_label)
    positive, negative = classes[column], classes[1 - column]
    probabilities = table if table.ndim == 1 else table[:, column]
    values = _as_thresholds(thresholds, probabilities)

    if score is opf_accuracy_score:
        in_class = true == positive
        misses = _share_below(probabilities[in_class], values)
        alarms = 1.0 - _share_below(probabilities[~in_class], values)
        scores = 1.0 - (misses + alarms) / 2.0
    else:
        # Thresholds with the same samples below them give the same labels, and are scored once.
        below = np.searchsorted(np.sort(probabilities), values)
        _, first, group = np.unique(below, return_index=True, return_inverse=True)
        labelled = (np.where(probabilities >= values[k], positive, negative) for k in first)
        scores = np.array([float(score(true, labels)) for labels in labelled])[group]

    finite = np.isfinite(scores)
    if not finite.any():
        raise ValueError(
            f"score gave no finite number at any of {len(values)} thresholds, {scores[0]} at "
            f"{values[0]}; pass a score that is defined for these labels."
        )
    highest = scores[finite].max()
    tied = np.flatnonzero(finite & (scores >= highest - TIE_TOLERANCE * abs(highest)))
    # Rounded, because 0.49 and 0.51 are not equally far from 0.5 in binary.
    distance = np.abs(values[tied] - 0.5).round(12)
    best = tied[np.lexsort([values[tied], distance])[0]]
    return ThresholdCurve(values, scores, float(values[best]), float(scores[best]))


def _share_below(probabilities: FloatArray, thresholds: FloatArray) -> FloatArray:
    """For each threshold, the share of the probabilities that lie below it."""
    return np.searchsorted(np.sort(probabilities), thresholds) / len(probabilities)


def _as_thresholds(thresholds: ArrayLike | str | None, probabilities: FloatArray) -> FloatArray:
    """Make the parameter `thresholds` an array."""
    if thresholds is None:
        return np.arange(1, 100) / 100
    if isinstance(thresholds, str):
        check_choice(thresholds, "thresholds", ("all",))
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
            "beyond them all samples are of one class."
        )
    return values


def _all_thresholds(probabilities: FloatArray) -> FloatArray:
    """One threshold for every set of positive samples that a threshold can make, and 0.5."""
    steps = np.union1d(probabilities, [0.0, 1.0])
    lower, upper = steps[:-1], steps[1:]
    middle = lower + (upper - lower) / 2
    # Between neighbours in floating point there is no middle, and P >= upper parts them, too.
    middle = np.where(middle > lower, middle, upper)
    return np.union1d(middle[middle < 1], [0.5])
