"""How good the head of a ranking is: what an inspector finds who can visit only so many."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from popf.formatting import check_real
from popf.metrics.checks import FloatArray, as_weights, check_same_length, event


def precision_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: float,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of positive samples among the k with the highest scores.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        True labels, and scores, higher for what is more likely positive.
    k : int or float
        How many samples are looked at; with weights, their total weight.
    pos_label : int, float, bool or str, default=None
        The positive class; None for the second of two.
    sample_weight : array-like of shape (n_samples,), default=None
        A sample of weight 2 counts as two samples.

    Returns
    -------
    precision : float
        From 0 to 1. Where k cuts through samples of equal scores, they count in proportion.

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
    r"""Mean precision at the ranks of the positive samples among the k with the highest scores.

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
        From 0 to 1. Samples of equal scores share the last of their ranks, as in scikit-learn; where k cuts
        through them, they count in proportion.

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
    """What is found when samples are looked at in the order of their scores.

    Attributes
    ----------
    fractions, gains, lift : ndarray of shape (n_points,)
        The share of samples looked at (0, and the ends of groups of equal scores, to 1), the share of the
        positive samples found by then, and ``gains / fractions``, at 0 that of the first group.
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
    """Share of the positive samples found, and the lift, over the share of samples looked at.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight
        As for `precision_at`; some samples must be positive.

    Returns
    -------
    curve : LiftCurve
        Straight lines between its points are the mean over all orders of samples of equal scores.

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
        raise ValueError("no sample is positive, so there is nothing to find; pass some that are.")
    fractions, gains = reached / reached[-1], hits / hits[-1]
    lift = gains[1:] / fractions[1:]
    return LiftCurve(fractions, gains, np.concatenate([lift[:1], lift]))


def _reached(
    y_true: ArrayLike, y_score: ArrayLike, pos_label: Any, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Count samples, and positive ones, from the highest score on: 0, and after each distinct score."""
    happened, _ = event(y_true, pos_label)
    score = np.asarray(y_score, dtype=np.float64)
    if score.ndim != 1 or not np.isfinite(score).all():
        raise ValueError(
            f"y_score has the shape {score.shape}; pass finite scores of one class, without NaN, as by "
            "predict_proba(X)[:, 1]."
        )
    check_same_length(happened, score, "y_score")
    weights = as_weights(sample_weight, len(happened))
    counted = weights > 0
    distinct, group = np.unique(-score[counted], return_inverse=True)
    n = len(distinct)
    sizes = np.bincount(group, weights[counted], n)
    positive = np.bincount(group, (weights * happened)[counted], n)
    return np.append(0.0, np.cumsum(sizes)), np.append(0.0, np.cumsum(positive))
