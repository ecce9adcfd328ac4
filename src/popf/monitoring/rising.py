"""Find consumers whose probability rises, measure how well this detects theft, and plot it.

Consumers are compared only with their own past, so one whose probability is always high (unusual, or already
known) does not raise alarms again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from popf.display.canvas import as_text, blend, look_of, need_matplotlib
from popf.engine.structures import FloatArray, IntArray
from popf.formatting import check_integer
from popf.metrics.intervals import wilson

RECENT, HISTORY, LIMIT = 2, 1, 0.3
#: False-alarm rates in the table, and the delay, in periods, up to which theft counts as found soon.
RATES, SOON = (0.01, 0.05, 0.1), 2
#: Layout of the plot, and when the other consumers are its background: if they are enough, at few enough times.
COLUMNS, MAX_PANELS = 4, 12
FEWEST_OTHERS, MAX_TIMES = 20, 2000


class Series(NamedTuple):
    """Probabilities over time, one row per consumer, padded with NaN; see `make_series`."""

    units: IntArray
    times: FloatArray
    probability: FloatArray
    rows: IntArray


def make_series(unit: ArrayLike, time: ArrayLike, probability: ArrayLike) -> Series:
    """Sort observations into one series per consumer.

    Parameters
    ----------
    unit, time, probability : array-like of shape (n_observations,)
        The consumer (an integer), the time (a number) and the probability of each observation.

    Returns
    -------
    named tuple
        One row per consumer, in order of first occurrence: ``times`` (ascending), ``probability`` and ``rows``
        (positions in the input, -1 for none), all of shape (n_units, n_periods); ``units``, the position of
        each consumer's first observation.

    Examples
    --------
    >>> from popf.monitoring import make_series
    >>> series = make_series([7, 7, 9], [2, 1, 1], [0.5, 0.1, 0.3])
    >>> series.probability
    array([[0.1, 0.5],
           [0.3, nan]])
    """
    units = np.asarray(unit, dtype=np.int64)
    observed_times = np.asarray(time, dtype=np.float64)
    value = np.asarray(probability, dtype=np.float64)
    if not units.shape == observed_times.shape == value.shape or units.ndim != 1 or not len(units):
        raise ValueError(
            f"unit, time and probability must be lists of the same length, not of shapes {units.shape}, "
            f"{observed_times.shape} and {value.shape}."
        )
    _, first, codes = np.unique(units, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes]  # numbered by first occurrence
    order = np.lexsort((observed_times, codes))
    codes, observed_times = codes[order], observed_times[order]
    duplicates = np.flatnonzero((np.diff(codes) == 0) & (np.diff(observed_times) == 0))
    if len(duplicates):
        one, other = sorted(order[duplicates[0] : duplicates[0] + 2].tolist())
        raise ValueError(
            f"rows {one + 1} and {other + 1} have the same consumer and time: keep one of them."
        )
    sizes = np.bincount(codes)
    place = codes, np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    times, values = np.full((2, len(sizes), int(sizes.max())), np.nan)
    rows = np.full(times.shape, -1, dtype=np.int64)
    times[place], values[place], rows[place] = observed_times, value[order], order
    return Series(np.sort(first), times, values, rows)


def rises(probability: ArrayLike, recent: int = RECENT, history: int = HISTORY) -> FloatArray:
    r"""Compute the rise of each series at each time.

    .. math:: r_t = \operatorname{mean}(p_{t-k+1}, \ldots, p_t) - \operatorname{median}(p_1, \ldots, p_{t-k})

    Parameters
    ----------
    probability : array-like of shape (n_units, n_periods)
        NaN after the end of a series.
    recent, history : int, default=2 and 1
        k, the number of periods that count as recent, and the minimum number of periods before them.

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
    """Return the first time at which each series rises by the limit or more.

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


class Detection(NamedTuple):
    """One row of `detection_table`, evaluated on consumers not used to choose the limit."""

    allowed_rate: float  # the false-alarm rate for which the limit was chosen
    limit: float  # the rise that raises an alarm
    n_regular: int  # consumers who never steal
    n_turned: int  # consumers who begin to steal
    false_alarm_rate: float  # fraction of regular consumers with an alarm at any time
    found: float  # fraction of thieves with the first alarm at the first theft or later
    found_lower: float  # 95 % Wilson interval of `found`
    found_upper: float
    too_early: float  # fraction of thieves with an alarm before the first theft; not found
    median_delay: float | None  # periods from the first theft to the alarm, of those found
    found_soon: float  # fraction of thieves found with a delay of at most `SOON` periods


def detection_table(
    rise: ArrayLike, onset: ArrayLike, *, calibration: ArrayLike, rates: Sequence[float] = RATES
) -> list[Detection]:
    """Measure how many thieves are found, and with what delay, at given false-alarm rates.

    The limit is chosen on the calibration consumers, so that at most the given fraction of the regular ones
    ever raises an alarm. Everything is measured on the other consumers. None should be in the training data.

    Parameters
    ----------
    rise : array-like of shape (n_units, n_periods)
        The result of `rises`.
    onset : array-like of shape (n_units,)
        The position in time of the first theft, -1 for never.
    calibration : array-like of bool of shape (n_units,)
        The consumers on which the limits are chosen.
    rates : sequence of float, default=(0.01, 0.05, 0.1)

    Returns
    -------
    list of named tuple
        For each rate (``allowed_rate``) the chosen ``limit`` and the results: ``false_alarm_rate``; the
        fractions ``found`` (95 % interval ``found_lower``, ``found_upper``), ``found_soon`` (within two
        periods) and ``too_early`` (not found); ``median_delay`` in periods; the numbers ``n_regular`` and
        ``n_turned``.

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
    calibrate = np.asarray(calibration, dtype=bool)
    test, regular = ~calibrate, began < 0
    if not ((calibrate & regular).any() and (test & regular).any() and (test & ~regular).any()):
        raise ValueError(
            "the table needs some that are never positive in both parts of the split, and some that turn "
            "positive in the part to measure on: give more consumers."
        )
    peaks = np.nan_to_num(values[calibrate & regular], nan=-1.0).max(axis=1)  # -1: too short
    test_began, turned = began[test], began[test] >= 0
    n_turned, table = int(turned.sum()), []
    for rate in rates:
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"a false-alarm rate must be at least 0 and below 1, not {rate!r}.")
        limit = _limit(np.sort(peaks), rate)
        first = alarms(values, limit)[test]
        delays = (first - test_began)[(first >= 0) & turned]
        found = float((delays >= 0).sum() / n_turned)
        lower, upper = wilson(found, n_turned)
        table.append(
            Detection(
                allowed_rate=float(rate),
                limit=limit,
                n_regular=int((~turned).sum()),
                n_turned=n_turned,
                false_alarm_rate=float((first >= 0)[~turned].mean()),
                found=found,
                found_lower=float(lower),
                found_upper=float(upper),
                too_early=float((delays < 0).sum() / n_turned),
                median_delay=float(np.median(delays[delays >= 0])) if found else None,
                found_soon=float(((delays >= 0) & (delays <= SOON)).sum() / n_turned),
            )
        )
    return table


def _limit(peaks: FloatArray, rate: float) -> float:
    """Return the lowest limit that at most a fraction `rate` of the sorted peaks reaches."""
    n_allowed = int(rate * len(peaks))
    below = float(peaks[len(peaks) - n_allowed - 1])
    if n_allowed == 0 or peaks[len(peaks) - n_allowed] == below:
        return float(np.nextafter(below, np.inf))
    return (below + float(peaks[len(peaks) - n_allowed])) / 2.0


def plot_rising(
    series: Series,
    who: Sequence[int],
    *,
    first_alarm: Sequence[int] | NDArray[Any],
    names: Sequence[str],
    time_label: str = "time",
    onset: Sequence[float | None] | None = None,
    time_names: dict[float, str] | None = None,
    label: str = "probability",
) -> Any:
    """Plot the probabilities of some consumers, one panel each, over the range of all others.

    Parameters
    ----------
    series : named tuple
        The result of `make_series` for all consumers.
    who : sequence of int
        Rows of `series` that rise. The first twelve are drawn; rows that do not rise are the background.
    first_alarm : sequence of int
        The position in time of the first alarm of each, -1 for none.
    names : sequence of str
        Titles of the panels.
    time_label, label : str, default="time" and "probability"
        Labels of the axes.
    onset : sequence of float or None, default=None
        The time at which each began to steal, if known.
    time_names : dict, default=None
        Tick labels by time, for times that are not plain numbers.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("matplotlib")
    >>> from popf.monitoring import make_series, plot_rising
    >>> series = make_series([1, 1, 2, 2], [1, 2, 1, 2], [0.1, 0.8, 0.2, 0.1])
    >>> figure = plot_rising(series, [0], first_alarm=[1], names=["A"])
    >>> figure.axes[0].get_title(loc="left")
    'A'
    """
    make_figure = need_matplotlib("matplotlib.figure").Figure
    if not len(who):
        raise ValueError("`who` is empty: there is no rise to plot.")
    band = _band(series, list(who))
    n = min(len(who), MAX_PANELS)
    n_columns = min(COLUMNS, n)
    n_rows = -(-n // n_columns)
    size = (2.6 * n_columns + 0.8, 1.75 * n_rows + 1.1)
    figure = make_figure(figsize=size, layout="constrained")
    panels = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    for number, (panel, unit) in enumerate(zip(panels[:n], who[:n], strict=True)):
        began = None if onset is None else onset[number]
        _draw(panel, series, unit, band, (int(first_alarm[number]), began))
        panel.set_title(as_text(names[number]), loc="left", fontsize=9, fontweight="bold", pad=3)
        if time_names is not None:
            shown = sorted(time_names)[:: max(1, -(-len(time_names) // 4))]
            panel.set_xticks(shown, [as_text(time_names[time]) for time in shown])
        # The lowest panel of each column shows the times.
        if number + n_columns >= n:
            panel.tick_params(labelbottom=True)
    for panel in panels[n:]:
        panel.set_visible(False)
    figure.supxlabel(as_text(time_label), fontsize=9)
    figure.supylabel(as_text(label), fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    style = {"fontsize": 8, "frameon": False, "handlelength": 1.6, "columnspacing": 1.4}
    figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), **style)
    return figure


def _band(series: Series, rising: list[int]) -> tuple[Any, Any, Any] | None:
    """Return times, and the 5 % and 95 % quantiles at each of the probabilities that do not rise."""
    present = np.isfinite(series.times)
    present[rising] = False
    times = np.unique(series.times[present])
    if len(series.times) - len(rising) < FEWEST_OTHERS or len(times) > MAX_TIMES:
        return None
    values = [series.probability[present & (series.times == time)] for time in times]
    lower, upper = np.array([np.quantile(value, [0.05, 0.95]) for value in values]).T
    return times, lower, upper


def _draw(
    panel: Any, series: Series, unit: int, band: Any, marks: tuple[int, float | None]
) -> None:
    look, (alarm, began) = look_of(panel), marks
    times, values = series.times[unit], series.probability[unit]
    if band is not None:
        grey = {"color": blend(look.ink, look.background, 0.12), "lw": 0, "zorder": 1}
        panel.fill_between(*band, label="90 % of the others", **grey)
    if began is not None:
        panel.axvline(began, color=look.quiet, lw=1.2, ls=(0, (1, 1.5)), label="began", zorder=2)
    panel.plot(times, values, color=look.colour(0), lw=1.8, zorder=3, label="probability")
    if alarm >= 0:
        mark = {"ms": 7, "color": look.colour(1), "mec": look.background, "mew": 1.2}
        panel.plot(times[alarm], values[alarm], "o", zorder=4, label="first alarm", **mark)
    panel.set_ylim(-0.04, 1.04)
    panel.set_yticks([0.0, 0.5, 1.0])
    panel.grid(axis="y", color=look.faint, lw=0.6)
    panel.tick_params(labelsize=8, length=2.5, color=look.quiet)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(look.quiet)
