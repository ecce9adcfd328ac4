"""How surely and how early rises find what began, at a given rate of false alarms."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from popf.metrics.intervals import wilson
from popf.monitoring.rule import alarms

FloatArray = NDArray[np.float64]
#: Rates of false alarms for which the table tells.
RATES = (0.01, 0.05, 0.1)


class Detection(NamedTuple):
    """One row of the table.

    Attributes
    ----------
    aimed : float
        The share of regular consumers that may be alarmed at some time, by which the limit was set.
    limit : float
        The rise from which on there is an alarm, set on other consumers.
    n_regular, n_turned : int
        Consumers that it was measured on: those who never steal, and those who begin to.
    false_alarm_rate : float
        Share of the regular ones that were alarmed at some time.
    found : float
        Share of those who began to steal that were alarmed then or later.
    found_lower, found_upper : float
        95 % interval of that share (Wilson's).
    too_early : float
        Share of them that were alarmed before they began, which is counted as not found.
    median_delay : float or None
        Periods from the first theft to the alarm, of those found: 0 is the first period of theft.
    found_soon : float
        Share that was found with a delay of at most `SOON` periods.
    """

    aimed: float
    limit: float
    n_regular: int
    n_turned: int
    false_alarm_rate: float
    found: float
    found_lower: float
    found_upper: float
    too_early: float
    median_delay: float | None
    found_soon: float


SOON = 2


def detection_table(
    rise: ArrayLike,
    onset: ArrayLike,
    *,
    calibration: ArrayLike,
    rates: Sequence[float] = RATES,
) -> list[Detection]:
    """Tell how many are found, and how late, at given rates of false alarms.

    The limit is set on some consumers, so that no more than the given share of the regular ones would ever be
    alarmed, and everything is measured on the others. None of them should have been seen in training.

    Parameters
    ----------
    rise : array-like of shape (n_units, n_periods)
        Of `rises`.
    onset : array-like of shape (n_units,)
        The position in time of the first theft, -1 for never.
    calibration : array-like of bool of shape (n_units,)
        On whom the limits are set.
    rates : sequence of float, default=(0.01, 0.05, 0.1)

    Returns
    -------
    list of Detection

    Examples
    --------
    >>> import numpy as np
    >>> from popf.monitoring import detection_table
    >>> rise = np.array([[0.0, 0.1], [0.0, 0.2], [0.0, 0.1], [0.0, 0.9]])
    >>> (row,) = detection_table(rise, [-1, -1, -1, 1], calibration=[True, True, False, False], rates=[0.5])
    >>> round(row.limit, 2), row.found, row.false_alarm_rate
    (0.15, 1.0, 0.0)
    """
    values = np.asarray(rise, dtype=np.float64)
    began = np.asarray(onset, dtype=np.int64)
    sets = np.asarray(calibration, dtype=bool)
    regular = began < 0
    if not (sets & regular).any() or not (~sets & regular).any() or not (~sets & ~regular).any():
        raise ValueError(
            "the table needs regular consumers on both sides of the split and some who begin to steal on "
            "the side that is measured: give more consumers."
        )
    peaks = np.nan_to_num(values, nan=-np.inf).max(axis=1)
    peaks = np.maximum(peaks, -1.0)  # a series too short to rise
    ordered = np.sort(peaks[sets & regular])
    table = []
    for rate in rates:
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"a rate of false alarms lies from 0 to below 1, not at {rate!r}.")
        limit = _limit(ordered, rate)
        first = alarms(values, limit)
        table.append(_measured(rate, limit, first[~sets], began[~sets]))
    return table


def _limit(ordered: FloatArray, rate: float) -> float:
    """Choose the smallest limit that no more than a share of the sorted peaks reaches."""
    n_allowed = int(rate * len(ordered))
    highest_kept_out = float(ordered[len(ordered) - n_allowed - 1])
    if n_allowed == 0 or ordered[len(ordered) - n_allowed] == highest_kept_out:
        return float(np.nextafter(highest_kept_out, np.inf))
    return (highest_kept_out + float(ordered[len(ordered) - n_allowed])) / 2.0


def _measured(rate: float, limit: float, first: Any, began: Any) -> Detection:
    regular = began < 0
    turned = ~regular
    alarmed = first >= 0
    found = alarmed & turned & (first >= began)
    delays = (first - began)[found]
    n_turned = int(turned.sum())
    lower, upper = wilson(found.sum() / n_turned, n_turned)
    return Detection(
        float(rate),
        limit,
        int(regular.sum()),
        n_turned,
        float(alarmed[regular].mean()),
        float(found.sum() / n_turned),
        float(lower),
        float(upper),
        float((alarmed & turned & (first < began)).sum() / n_turned),
        float(np.median(delays)) if len(delays) else None,
        float((delays <= SOON).sum() / n_turned),
    )
