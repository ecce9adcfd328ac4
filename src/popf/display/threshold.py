"""Accuracy, precision, recall and cost over the threshold on the probability."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from popf.display import canvas
from popf.display.estimators import CurveDisplay, probability_of
from popf.engine.structures import FloatArray
from popf.metrics import threshold_curve
from popf.metrics.checks import event
from popf.metrics.thresholds import best_threshold, check_costs, count_at_thresholds

FIGURE_SIZE, FIGURE_SIZE_WITH_COST = (6.4, 4.4), (6.4, 5.6)
COST_SHARE = 0.3


class ThresholdValues(NamedTuple):
    """What every threshold leads to."""

    thresholds: FloatArray
    values: dict[str, FloatArray]  # scores by name, NaN where one is not defined
    cost: FloatArray | None  # of a sample, if costs were given
    chosen: float  # the threshold of the lowest cost, or else of the best balanced accuracy


def prepare_thresholds(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    thresholds: ArrayLike | Literal["all"] | None = None,
    cost_fp: float | None = None,
    cost_fn: float | None = None,
    pos_label: Any = None,
) -> ThresholdValues:
    """Compute scores and cost at every threshold; see `ThresholdDisplay.from_predictions`."""
    happened, _ = event(y_true, pos_label)
    probability = probability_of(y_prob)
    curve = threshold_curve(happened, probability, thresholds=thresholds)
    at = curve.thresholds
    counts = count_at_thresholds(happened, probability, at)
    values = {name.replace("_", " "): found for name, found in counts.scores().items()}
    check_costs(cost_fp, cost_fn)
    if cost_fp is None or cost_fn is None:
        return ThresholdValues(at, values, None, curve.best_threshold)
    cost = counts.mean_cost(float(cost_fp), float(cost_fn))
    return ThresholdValues(at, values, cost, float(at[best_threshold(at, -cost)]))


class ThresholdDisplay(CurveDisplay):
    r"""Scores over the threshold Θ, with the cost in a panel below.

    Samples with P ≥ Θ are predicted positive. The cost is that of the errors, per sample:

    .. math:: \frac{c_{FP} \cdot FP + c_{FN} \cdot FN}{N}

    Parameters
    ----------
    thresholds : array-like of shape (n_thresholds,)
    values : dict
        For each name an array of shape (n_thresholds,), drawn as a line, or (n_runs, n_thresholds), drawn as
        the mean over runs in a band of one standard deviation. NaN is left out.
    cost, chosen : array-like and float, default=None
        The same for the cost, drawn in a panel below, and a threshold to mark.

    Attributes
    ----------
    ax_, cost_ax_, figure_ : matplotlib Axes (None without a cost) and Figure
    lines_, bands_ : dict
        For each name its line, and its band if it has several runs.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from popf.display import ThresholdDisplay
    >>> display = ThresholdDisplay.from_predictions(
    ...     [0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], cost_fp=1, cost_fn=4, ax=Figure().subplots()
    ... )
    >>> sorted(display.lines_)
    ['accuracy', 'balanced accuracy', 'cost', 'precision', 'recall']
    >>> display.chosen
    0.4
    """

    def __init__(
        self,
        *,
        thresholds: ArrayLike,
        values: Mapping[str, ArrayLike],
        cost: ArrayLike | None = None,
        chosen: float | None = None,
    ) -> None:
        self.thresholds = np.array(thresholds, dtype=np.float64)
        self.values = {name: np.asarray(found, np.float64) for name, found in values.items()}
        self.cost = None if cost is None else np.asarray(cost, np.float64)
        self.chosen = chosen
        n = self.thresholds.shape
        for name, found in [*self.values.items(), ("cost", self.cost)]:
            if found is not None and found.shape[-1:] != n:
                raise ValueError(
                    f"{name!r} has the shape {found.shape}; for thresholds of the shape {n} it must end so."
                )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        pos_label: Any = None,
        chosen: float | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw scores over the threshold for probabilities.

        Parameters
        ----------
        y_true, y_prob : array-like of shape (n_samples,)
            True labels, and probabilities of the positive class.
        pos_label : int, float, bool or str, default=None
            The positive class, drawn against all others; None for the second of two.
        chosen : float, default=None
            The threshold to mark; None for the best.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.
        **options
            ``thresholds``, as for `popf.metrics.threshold_curve`; ``cost_fp`` and ``cost_fn``, the costs of a
            false positive and of a false negative, both or neither.
        """
        canvas.need_matplotlib()
        found = prepare_thresholds(y_true, y_prob, pos_label=pos_label, **options)
        best = found.chosen if chosen is None else chosen
        return cls(**{**found._asdict(), "chosen": best}).plot(ax=ax)

    def plot(self, *, ax: Any = None, **line: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure. The cost takes its place from the bottom of the axes.
        **line
            Options of all lines, such as ``linewidth``.
        """
        ax = canvas.axes_for(ax, FIGURE_SIZE if self.cost is None else FIGURE_SIZE_WITH_COST)
        look, panels = canvas.look_of(ax), [ax]
        self.lines_: dict[str, Any] = {}
        self.bands_: dict[str, Any] = {}
        self.ax_, self.figure_, self.cost_ax_ = ax, ax.figure, None
        for name, values in self.values.items():
            self._draw(ax, name, values, line)
        if self.cost is not None:
            self.cost_ax_ = canvas.panel_below(ax, COST_SHARE)
            panels.append(self.cost_ax_)
            self._draw(self.cost_ax_, "cost", self.cost, {"color": look.ink, **line})
            self.cost_ax_.set_ylabel("Cost per sample")
            ax.set_xlabel("")
        last = [_band_name(values) for values in self.values.values()]
        if self.chosen is not None:
            last.append(f"Θ = {self.chosen:.3g}")
            style = {"color": look.quiet, "lw": 1.2, "ls": (0, (2, 2)), "zorder": 1}
            for panel in panels:
                panel.axvline(self.chosen, label=last[-1], **style)
        panels[-1].set_xlabel("Threshold Θ")
        ax.set_ylabel("Score" if len(self.values) > 1 else next(iter(self.values)).capitalize())
        canvas.refresh_legend(ax, last=last)
        return self

    def _draw(self, ax: Any, name: str, values: FloatArray, line: dict[str, Any]) -> None:
        order = np.argsort(self.thresholds, kind="stable")
        at, runs = self.thresholds[order], np.ma.masked_invalid(np.atleast_2d(values)[:, order])
        mean = runs.mean(axis=0).filled(np.nan)
        style = {"label": name, "linewidth": 1.8, **canvas.curve_style(ax, line)}
        (self.lines_[name],) = ax.plot(at, mean, zorder=3, **style)
        if values.ndim == 2:
            n = runs.count(axis=0)
            spread = np.sqrt(runs.var(axis=0) * n / np.maximum(n - 1, 1)).filled(np.nan)
            colour, label = self.lines_[name].get_color(), _band_name(values)
            band = {"color": colour, "alpha": 0.18, "lw": 0, "zorder": 2, "label": label}
            self.bands_[name] = ax.fill_between(at, mean - spread, mean + spread, **band)


def _band_name(values: FloatArray) -> str:
    return f"± 1 deviation, {len(values)} runs" if values.ndim == 2 else ""
