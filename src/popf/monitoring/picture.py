"""The probabilities of those that rise, drawn over time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.display.canvas import blend, look_of, need_matplotlib
from popf.monitoring.rule import Series

COLUMNS, MAX_PANELS = 4, 12
FEWEST_OTHERS, MAX_TIMES = 20, 2000


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
    """Draw a small picture for each of some consumers, with the range of all others behind it.

    Parameters
    ----------
    series : named tuple
        Of all consumers, as from `make_series`.
    who : sequence of int
        Rows of `series` that rise; the first twelve are drawn, and all others are the background.
    first_alarm : sequence of int
        For each of them, the position in time of the alarm, -1 for none.
    names : sequence of str
        Their names.
    time_label, label : str, default="time" and "probability"
        Of the axes.
    onset : sequence of float or None, default=None
        For each of them the time at which theft began, if that is known.
    time_names : dict, default=None
        How to write times that are not plain numbers.

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
        raise ValueError("there is nobody to draw: no probability rises by the limit.")
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
        panel.set_title(str(names[number]), loc="left", fontsize=9, fontweight="bold", pad=3)
        if time_names is not None:
            shown = sorted(time_names)[:: max(1, -(-len(time_names) // 4))]
            panel.set_xticks(shown, [time_names[time] for time in shown])
        # A panel above an empty place carries the times itself.
        if number + n_columns >= n:
            panel.tick_params(labelbottom=True)
    for panel in panels[n:]:
        panel.set_visible(False)
    figure.supxlabel(time_label, fontsize=9)
    figure.supylabel(label, fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    style = {"fontsize": 8, "frameon": False, "handlelength": 1.6, "columnspacing": 1.4}
    figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), **style)
    return figure


def _band(series: Series, rising: list[int]) -> tuple[Any, Any, Any] | None:
    """Return times, and at each the 5 % and 95 % quantiles of the probabilities that do not rise."""
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
