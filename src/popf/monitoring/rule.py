"""Series of probabilities, and the rule by which one is rising.

At every time the *rise* of a consumer is the mean probability of the last `recent` periods, minus the median
of all periods before those. It is an alarm when the rise reaches a limit. A consumer is compared with its own
past only, so one whose probability is always high (odd, or already known) does not come up again and again.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

RECENT = 2
HISTORY = 1
LIMIT = 0.3


class Series(NamedTuple):
    """Probabilities over time, one row a consumer.

    Attributes
    ----------
    units : ndarray of shape (n_units,)
        Who: positions of their first observation in what `make_series` was given.
    times : ndarray of shape (n_units, n_periods)
        When, ascending; NaN after the last observation of a consumer.
    probability : ndarray of shape (n_units, n_periods)
        NaN where there is no observation any more.
    rows : ndarray of shape (n_units, n_periods)
        Where each observation stood in what `make_series` was given, -1 for none.
    """

    units: IntArray
    times: FloatArray
    probability: FloatArray
    rows: IntArray


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
    Series
        Rows in the order in which consumers first occur. Periods without an observation are passed over.

    Raises
    ------
    ValueError
        If a consumer is observed twice at one time.

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
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    codes = place[codes]
    order = np.lexsort((when, codes))
    codes, sorted_times = codes[order], when[order]
    twice = np.flatnonzero((np.diff(codes) == 0) & (np.diff(sorted_times) == 0))
    if len(twice):
        rows = sorted(order[twice[0] : twice[0] + 2].tolist())
        raise ValueError(
            f"rows {rows[0] + 1} and {rows[1] + 1} tell of the same consumer at the same time: keep one."
        )
    sizes = np.bincount(codes)
    column = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shape = (len(sizes), int(sizes.max()))
    times, values = np.full(shape, np.nan), np.full(shape, np.nan)
    found = np.full(shape, -1, dtype=np.int64)
    times[codes, column] = sorted_times
    values[codes, column] = value[order]
    found[codes, column] = order
    return Series(np.sort(first), times, values, found)


def rises(probability: ArrayLike, recent: int = RECENT, history: int = HISTORY) -> FloatArray:
    r"""Measure by how much each series has risen at each time.

    .. math:: r_t = \operatorname{mean}(p_{t-k+1}, \ldots, p_t) - \operatorname{median}(p_1, \ldots, p_{t-k})

    Parameters
    ----------
    probability : array-like of shape (n_units, n_periods)
        NaN after the end of a series.
    recent : int, default=2
        k, how many periods count as recent.
    history : int, default=1
        How many periods there must be before those.

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
    for name, number in (("recent", recent), ("history", history)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(f"{name} must be a whole number from 1 on, not {number!r}.")
    values = np.asarray(probability, dtype=np.float64)
    found = np.full(values.shape, np.nan)
    for at in range(recent + history - 1, values.shape[1]):
        now = values[:, at - recent + 1 : at + 1].mean(axis=1)
        before = np.median(values[:, : at - recent + 1], axis=1)
        found[:, at] = now - before
    return found


def alarms(rise: ArrayLike, limit: float = LIMIT) -> IntArray:
    """Find the first time at which each series rises by the limit or more.

    Parameters
    ----------
    rise : array-like of shape (n_units, n_periods)
        Of `rises`.
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
    first: Any = np.where(reached.any(axis=1), reached.argmax(axis=1), -1)
    found: IntArray = first
    return found
