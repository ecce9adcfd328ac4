"""What calibrated probabilities promise, before labels are known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import rankdata

from popf.formatting import check_share
from popf.metrics.checks import as_probabilities, group_numbers
from popf.metrics.evaluation import Score, mean_of_finite
from popf.metrics.intervals import CONFIDENCE

#: Number of labels to draw in all, if they are many.
MOST_LABELS = 20_000_000
EXPECTED = ("positives", "hits", "precision", "recall", "auc")


def expected_scores(
    y_prob: ArrayLike,
    *,
    threshold: float = 0.5,
    groups: ArrayLike | None = None,
    spread: float = 0.0,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> dict[str, Score]:
    """Compute the scores to expect if probabilities are calibrated, without labels.

    Labels are drawn from the probabilities many times.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples,)
        Probabilities of the positive class.
    threshold : float, default=0.5
        Samples with at least this probability are predicted positive.
    groups : array-like of shape (n_samples,), default=None
        The group of each sample, such as its consumer. One random number is drawn per group: its labels
        depend on each other.
    spread : float, default=0
        Standard deviation of a shift of all log odds together since training, see `spread_of_periods`. It
        widens the intervals.
    confidence : float, default=0.95
        That an interval contains the score.
    seed : int, default=0

    Returns
    -------
    dict of str to Score
        Mean and interval of ``positives`` (their number), ``hits`` (those predicted positive),
        ``precision``, ``recall`` and ``auc``. NaN where undefined.

    Notes
    -----
    The intervals hold if probabilities are calibrated for these samples, up to a shift of the size of `spread`.

    Examples
    --------
    >>> from popf.metrics import expected_scores
    >>> expected = expected_scores([0.9, 0.8, 0.1, 0.1] * 100)
    >>> round(expected["hits"].value), round(expected["precision"].value, 2)
    (170, 0.85)
    """
    check_share("threshold", threshold)
    probability = as_probabilities(y_prob)
    if probability.ndim > 1:
        raise ValueError("y_prob must be one-dimensional: the probability of the positive class.")
    n = len(probability)
    group_of = np.arange(n) if groups is None else group_numbers(groups, n)[1]
    called, ranks, rng = (
        probability >= threshold,
        rankdata(probability),
        np.random.default_rng(seed),
    )
    with np.errstate(divide="ignore"):
        logits = logit(probability)
    drawn = []
    for _ in range(int(np.clip(MOST_LABELS // n, 200, 1000))):
        chances = expit(logits + spread * rng.standard_normal())
        drawn.append(
            label_scores(rng.random(group_of.max() + 1)[group_of] < chances, called, ranks)
        )
    table = np.array(drawn)
    hits, positives = probability[called].sum(), probability.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [
            positives,
            hits,
            hits / called.sum(),
            hits / positives,
            mean_of_finite(table[:, 4]),
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # always undefined
        ends = np.nanquantile(table, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0], axis=0)
    return {
        name: Score(float(mean), float(lower), float(upper))
        for name, mean, lower, upper in zip(EXPECTED, means, *ends, strict=True)
    }


def spread_of_periods(happened: ArrayLike, periods: ArrayLike | None = None) -> float:
    """Estimate how much the log odds of a positive sample differ between the training samples and a new period.

    Parameters
    ----------
    happened : array-like of bool of shape (n_samples,)
        Which training samples are positive.
    periods : array-like of shape (n_samples,), default=None
        The period of each; None if unknown.

    Returns
    -------
    float
        Standard deviation: of sampling error and, with periods, between these (by the method of moments of
        DerSimonian and Laird).

    Examples
    --------
    >>> import numpy as np
    >>> from popf.metrics import spread_of_periods
    >>> happened = np.repeat([1, 0, 1, 0], [100, 900, 50, 950])
    >>> [round(spread_of_periods(happened, each), 2) for each in (None, np.repeat([1, 2], 1000))]
    [0.08, 0.63]
    """
    positive = np.asarray(happened, dtype=bool)
    numbers = np.zeros(len(positive), dtype=np.int64)
    if periods is not None:
        numbers = group_numbers(periods, len(positive))[1]
    # Half a sample more of each class, so that no period has none.
    counts = np.array(
        [
            np.bincount(numbers[positive == sign], minlength=numbers.max() + 1)
            for sign in (True, False)
        ]
    )
    odds = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
    weights = 1.0 / (1.0 / (counts + 0.5)).sum(axis=0)
    total, between = weights.sum(), 0.0
    if len(odds) > 1:
        excess = (weights * (odds - (weights * odds).sum() / total) ** 2).sum() - (len(odds) - 1)
        between = max(0.0, excess / (total - (weights**2).sum() / total))
    # The mean of the training periods is uncertain, too.
    sampling = (1.0 / (counts.sum(axis=1) + 0.5)).sum()
    return float(np.sqrt(sampling + between * (1.0 + 1.0 / len(odds))))


def label_scores(happened: Any, called: Any, ranks: Any) -> list[float]:
    """Compute positives, hits, precision, recall and AUC; `ranks` are those of the probabilities."""
    n, hits = int(happened.sum()), int((happened & called).sum())
    pairs = n * (len(happened) - n)
    area = (ranks[happened].sum() - n * (n + 1) / 2.0) / pairs if pairs else np.nan
    shares = [hits / total if total else np.nan for total in (int(called.sum()), n)]
    return [n, hits, *shares, float(area)]
