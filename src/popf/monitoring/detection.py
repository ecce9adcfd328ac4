"""How surely and how early alarms find theft, at a given rate of false alarms."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from popf.metrics.evaluation import wilson
from popf.monitoring.rule import alarms

#: Rates of false alarms in the table, and the periods within which theft is found soon.
RATES, SOON = (0.01, 0.05, 0.1), 2


class Detection(NamedTuple):
    """One row of the table; shares are of the consumers it was measured on."""

    aimed: float  # the share of regular consumers that may be alarmed, by which the limit was set
    limit: float  # the rise that is an alarm, set on other consumers
    n_regular: int  # those who never steal
    n_turned: int  # those who begin to
    false_alarm_rate: float  # of the regular ones that were alarmed at some time
    found: float  # of those who began to steal that were alarmed then or later
    found_lower: float  # 95 % interval of that share (Wilson's)
    found_upper: float
    too_early: float  # of them that were alarmed before they began, which counts as not found
    median_delay: float | None  # periods from the first theft to the alarm; 0 is the first
    found_soon: float  # with a delay of at most `SOON` periods


def detection_table(
    rise: ArrayLike, onset: ArrayLike, *, calibration: ArrayLike, rates: Sequence[float] = RATES
) -> list[Detection]:
    """Measure how many are found, and how late, at given rates of false alarms.

    The limit is set on some consumers, so that no more than the given share of the regular ones would ever be
    alarmed, and everything is measured on the others. None of them should have been seen in training.

    Parameters
    ----------
    rise : array-like of shape (n_units, n_periods)
        The result of `rises`.
    onset : array-like of shape (n_units,)
        The position in time of the first theft, -1 for never.
    calibration : array-like of bool of shape (n_units,)
        The consumers on whom the limits are set.
    rates : sequence of float, default=(0.01, 0.05, 0.1)

    Returns
    -------
    list of named tuple
        For each rate ``aimed`` at: the ``limit``, the ``false_alarm_rate`` measured, the share ``found`` with
        its 95 % interval (``found_lower``, ``found_upper``), the share alarmed ``too_early``, before they
        began, which counts as not found, the ``median_delay`` in periods, the share ``found_soon``, within two
        periods, and the numbers of consumers ``n_regular`` and ``n_turned``.

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
    peaks = np.nan_to_num(values[sets & regular], nan=-1.0).max(axis=1)  # -1: too short to rise
    table = []
    for rate in rates:
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"a rate of false alarms lies from 0 to below 1, not at {rate!r}.")
        limit = _limit(np.sort(peaks), rate)
        table.append(_measured(rate, limit, alarms(values, limit)[~sets], began[~sets]))
    return table


def _limit(peaks: NDArray[np.float64], rate: float) -> float:
    """Choose the lowest limit that no more than a share of the sorted peaks reaches."""
    n_allowed = int(rate * len(peaks))
    below = float(peaks[len(peaks) - n_allowed - 1])
    if n_allowed == 0 or peaks[len(peaks) - n_allowed] == below:
        return float(np.nextafter(below, np.inf))
    return (below + float(peaks[len(peaks) - n_allowed])) / 2.0


def _measured(
    rate: float, limit: float, first: NDArray[np.int64], began: NDArray[np.int64]
) -> Detection:
    turned = began >= 0
    alarmed = first >= 0
    delays = (first - began)[alarmed & turned]
    found, n_turned = float((delays >= 0).sum() / turned.sum()), int(turned.sum())
    lower, upper = wilson(found, n_turned)
    return Detection(
        aimed=float(rate),
        limit=limit,
        n_regular=int((~turned).sum()),
        n_turned=n_turned,
        false_alarm_rate=float(alarmed[~turned].mean()),
        found=found,
        found_lower=float(lower),
        found_upper=float(upper),
        too_early=float((delays < 0).sum() / n_turned),
        median_delay=float(np.median(delays[delays >= 0])) if found else None,
        found_soon=float(((delays >= 0) & (delays <= SOON)).sum() / n_turned),
    )
