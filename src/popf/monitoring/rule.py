"""Series of probabilities, and the rule by which one is rising.

At every time the *rise* of a consumer is the mean probability of the last `recent` periods, minus the median
of all periods before those. A rise that reaches a limit is an alarm. Consumers are compared with their own past
only, so one whose probability is always high (odd, or known already) does not come up again and again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from popf.formatting import check_integer

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

RECENT, HISTORY, LIMIT = 2, 1, 0.3


class Series(NamedTuple):
    """Probabilities over time, one row a consumer; NaN after the last observation."""

    units: IntArray  # the position of each consumer's first observation in the input
    times: FloatArray  # (n_units, n_periods), ascending
    probability: FloatArray
    rows: IntArray  # the position of each observation in the input, -1 for none


def make_series(unit: ArrayLike, time: ArrayLike, probability: ArrayLike) -> Series:
    """Sort observations into one series a consumer.

    Parameters
    ----------
    unit : array-like of shape (n_observations,)
        Who was observed: whole numbers.
    time : array-like of shape (n_observations,)
        When: numbers.
    probability : array-like of shape (n_observations,)

    Returns
    -------
    named tuple
        One row a consumer, in the order in which they first occur: ``times`` (ascending), ``probability`` and
        ``rows`` (positions in the input, -1 for none), all of shape (n_units, n_periods); ``units``, the
        position of each consumer's first observation. Periods without an observation are skipped.

    Examples
    --------
    >>> from popf.monitoring import make_series
    >>> series = make_series([7, 7, 9], [2, 1, 1], [0.5, 0.1, 0.3])
    >>> series.probability
    array([[0.1, 0.5],
           [0.3, nan]])
    """
    who = np.asarray(unit, dtype=np.int64)
    when = np.asarray(time, dtype=np.float64)
    value = np.asarray(probability, dtype=np.float64)
    if not who.shape == when.shape == value.shape or who.ndim != 1 or not len(who):
        raise ValueError(
            f"unit, time and probability must be lists of one length, not of shapes {who.shape}, "
            f"{when.shape} and {value.shape}."
        )
    _, first, codes = np.unique(who, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes]  # numbered as they first occur
    order = np.lexsort((when, codes))
    codes, when = codes[order], when[order]
    twice = np.flatnonzero((np.diff(codes) == 0) & (np.diff(when) == 0))
    if len(twice):
        one, other = sorted(order[twice[0] : twice[0] + 2].tolist())
        raise ValueError(
            f"rows {one + 1} and {other + 1} are of the same consumer at the same time: keep one."
        )
    sizes = np.bincount(codes)
    place = codes, np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    times, values = np.full((2, len(sizes), int(sizes.max())), np.nan)
    rows = np.full(times.shape, -1, dtype=np.int64)
    times[place], values[place], rows[place] = when, value[order], order
    return Series(np.sort(first), times, values, rows)


def rises(probability: ArrayLike, recent: int = RECENT, history: int = HISTORY) -> FloatArray:
    r"""Measure by how much each series has risen at each time.

    .. math:: r_t = \operatorname{mean}(p_{t-k+1}, \ldots, p_t) - \operatorname{median}(p_1, \ldots, p_{t-k})

    Parameters
    ----------
    probability : array-like of shape (n_units, n_periods)
        NaN after the end of a series.
    recent : int, default=2
        k, the number of periods that count as recent.
    history : int, default=1
        The least number of periods before those.

    Returns
    -------
    ndarray of shape (n_units, n_periods)
        NaN where there is too little history, or no observation.

    Examples
    --------
    >>> from popf.monitoring import rises
    >>> rises([[0.1, 0.2, 0.1, 0.7, 0.9]]).round(2)
    array([[ nan,  nan, 0.05, 0.25, 0.7 ]])
    """
    check_integer("recent", recent, 1)
    check_integer("history", history, 1)
    values = np.asarray(probability, dtype=np.float64)
    found = np.full(values.shape, np.nan)
    for at in range(recent + history - 1, values.shape[1]):
        now = values[:, at - recent + 1 : at + 1].mean(axis=1)
        found[:, at] = now - np.median(values[:, : at - recent + 1], axis=1)
    return found


def alarms(rise: ArrayLike, limit: float = LIMIT) -> IntArray:
    """Find the first time at which each series rises by the limit or more.

    Parameters
    ----------
    rise : array-like of shape (n_units, n_periods)
        The result of `rises`.
    limit : float, default=0.3

    Returns
    -------
    ndarray of shape (n_units,)
        Positions in time, -1 for never.

    Examples
    --------
    >>> from popf.monitoring import alarms, rises
    >>> alarms(rises([[0.1, 0.2, 0.1, 0.7, 0.9], [0.8, 0.8, 0.8, 0.8, 0.8]]), 0.2)
    array([ 3, -1])
    """
    reached = np.nan_to_num(np.asarray(rise, dtype=np.float64), nan=-np.inf) >= limit
    return np.where(reached.any(axis=1), reached.argmax(axis=1), -1).astype(np.int64)
