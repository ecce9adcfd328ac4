"""Displays of the probability of one class: reliability curve, and scores and cost by threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from popf.display import canvas
from popf.display.estimators import last_step
from popf.engine.structures import FloatArray
from popf.metrics import threshold_curve
from popf.metrics.checks import (
    as_probabilities,
    as_weights,
    check_same_length,
    class_index,
    event,
    shown,
)
from popf.metrics.evaluation import N_BINS, bins_of, mean_gap
from popf.metrics.intervals import CONFIDENCE, wilson
from popf.metrics.thresholds import best_threshold, check_costs, count_at_thresholds

HISTOGRAM_BINS, HISTOGRAM_SHARE, COST_SHARE = 20, 0.24, 0.3
CALIBRATED = "perfectly calibrated"


class CurveDisplay:
    """Base of displays with a `from_predictions` that draws curves of the probability of one class."""

    from_predictions: Any
    named = False  # whether `from_estimator` names the curve after the classifier

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, pos_label: Any = None, **options: Any
    ) -> Self:
        """Draw the curves of a fitted classifier.

        Parameters
        ----------
        estimator : classifier or Pipeline
            Fitted, with ``predict_proba``.
        X, y : array-like of shape (n_samples, n_features) and (n_samples,)
            Samples that it was not fitted to, and their labels.
        pos_label, **options
            As for `from_predictions`; ``name`` defaults to the classifier's type, such as ``POPFClassifier``.
        """
        canvas.need_matplotlib()
        check_is_fitted(estimator)
        name = type(estimator).__name__
        if not (is_classifier(estimator) and hasattr(estimator, "predict_proba")):
            raise ValueError(
                f"{name} is not a classifier with predict_proba; use POPFClassifier, or wrap a classifier in "
                "sklearn.calibration.CalibratedClassifierCV."
            )
        classes = np.asarray(estimator.classes_)
        if pos_label is None:
            if len(classes) != 2:
                raise ValueError(
                    f"{name} has {len(classes)} classes ({shown(classes)}); choose the one to draw against "
                    "all others with pos_label=..."
                )
            pos_label = classes.tolist()[1]
        probability = np.asarray(estimator.predict_proba(X))[:, class_index(pos_label, classes)]
        if cls.named and options.get("name") is None:
            options["name"] = type(last_step(estimator)).__name__
        display: Self = cls.from_predictions(y, probability, pos_label=pos_label, **options)
        return display


def probability_of(y_prob: ArrayLike) -> FloatArray:
    """Check that `y_prob` holds the probabilities of one class, and return them as an array."""
    table = as_probabilities(y_prob)
    if table.ndim != 1:
        raise ValueError(
            f"y_prob has the shape {table.shape}; a curve shows one class: pass its column, such as "
            "y_prob[:, 1], and the class as pos_label."
        )
    return table


class ReliabilityCurve(NamedTuple):
    """A reliability curve over non-empty bins, with confidence intervals and a histogram."""

    probability: FloatArray  # mean predicted probability in each bin
    frequency: FloatArray  # share of positive samples in each bin
    lower: FloatArray  # 95 % Wilson interval of the frequency
    upper: FloatArray
    weights: FloatArray  # number of samples in each bin, or the sum of their weights
    error: float  # expected calibration error with these bins
    shares: FloatArray  # share of samples in each of 20 equal bins of [0, 1]


def prepare_reliability(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = N_BINS,
    strategy: Literal["uniform", "quantile"] = "uniform",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> ReliabilityCurve:
    """Compute a reliability curve without drawing it; see `ReliabilityDisplay.from_predictions`.

    With sample weights w, the interval is that of the effective sample size, (Σ w)² / Σ w².
    """
    happened, _ = event(y_true, pos_label)
    probability = probability_of(y_prob)
    check_same_length(happened, probability, "y_prob")
    weights = as_weights(sample_weight, happened)
    bins = bins_of(probability, weights, n_bins, strategy)
    mass = np.bincount(bins, weights).astype(np.float64, copy=False)
    filled = mass > 0.0

    def mean(of: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(bins, weights * of)[filled] / mass[filled])

    frequency, n = mean(happened.astype(np.float64)), mass[filled] / mean(weights)
    lower, upper = wilson(frequency, n)
    fine = bins_of(probability, weights, HISTOGRAM_BINS, "uniform")
    return ReliabilityCurve(
        probability=mean(probability),
        frequency=frequency,
        lower=lower,
        upper=upper,
        weights=mass[filled],
        error=mean_gap(bins, happened, probability, weights),
        shares=np.bincount(fine, weights, minlength=HISTOGRAM_BINS) / weights.sum(),
    )


class ReliabilityDisplay(CurveDisplay):
    """Reliability curve with confidence intervals, and a histogram of the probabilities below it.

    On the diagonal, probabilities match observed frequencies; below it they are too high, above it too low.

    Parameters
    ----------
    curve : named tuple
        ``probability`` and ``frequency`` of each non-empty bin, ``lower`` and ``upper`` bounds of the interval,
        ``weights`` (number of samples in the bin), ``error`` (ECE), and ``shares`` for the histogram.
    name, pos_label : str and object, default=None
        The name in the legend, and the positive class, for the labels of the axes.

    Attributes
    ----------
    ax_, histogram_ax_, figure_ : matplotlib Axes (None without a histogram) and Figure
    line_, band_ : matplotlib Line2D and PolyCollection
        The curve, and the Wilson interval of each single bin, joined from bin to bin.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from popf.display import ReliabilityDisplay
    >>> ax = Figure().subplots()  # without ax, a new pyplot figure is made
    >>> y_true, y_prob = [1, 1, 1, 0, 0], [0.9, 0.9, 0.9, 0.9, 0.0]
    >>> display = ReliabilityDisplay.from_predictions(y_true, y_prob, name="ours", ax=ax)
    >>> display.line_.get_label()
    'ours (ECE 0.120)'
    """

    named = True

    def __init__(
        self, *, curve: ReliabilityCurve, name: str | None = None, pos_label: Any = None
    ) -> None:
        self.curve = curve
        self.name = name
        self.pos_label = pos_label

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the reliability curve of predicted probabilities.

        Parameters
        ----------
        y_true, y_prob : array-like of shape (n_samples,)
            True labels, and probabilities of the positive class.
        pos_label : int, float, bool or str, default=None
            The positive class, drawn against all others; None for the second of two.
        name : str, default=None
            The name in the legend.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure. To compare curves, pass the ``ax_`` of another display.
        **options
            ``n_bins`` (10), ``strategy`` (``"uniform"`` or ``"quantile"``) and ``sample_weight``, as for
            `popf.metrics.expected_calibration_error`.
        """
        canvas.need_matplotlib()
        curve = prepare_reliability(y_true, y_prob, pos_label=pos_label, **options)
        _, pos_label = event(y_true, pos_label)
        return cls(curve=curve, name=name, pos_label=pos_label).plot(ax=ax)

    def plot(self, *, ax: Any = None, histogram: bool = True, **line: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax, **line
            Axes, None for a new figure; and options of the line, such as ``color``.
        histogram : bool, default=True
            Whether to draw the histogram, in a panel split off the bottom of the axes.
        """
        ax, curve = canvas.axes_for(ax, (5.4, 5.8)), self.curve
        number, look = canvas.n_curves(ax), canvas.look_of(ax)
        if number == 0:
            ax.plot([0, 1], [0, 1], ":", color=look.quiet, lw=1.2, zorder=1, label=CALIBRATED)
        error = f"ECE {curve.error:.3f}"
        style = {
            "label": error if self.name is None else f"{canvas.as_text(self.name)} ({error})",
            "marker": canvas.MARKERS[number % len(canvas.MARKERS)],
            "markersize": 5.0,
            "linewidth": 1.8,
            **canvas.curve_style(ax, line),
        }
        (self.line_,) = ax.plot(curve.probability, curve.frequency, zorder=3, **style)
        colour = self.line_.get_color()
        interval = f"{100 * CONFIDENCE:g} % interval (Wilson)"
        ends = (curve.probability, curve.lower, curve.upper)
        band = {"color": colour, "alpha": 0.2, "lw": 0, "zorder": 2, "label": interval}
        self.band_ = ax.fill_between(*ends, **band)
        # The interval is defined only at the bins; the band between them guides the eye.
        ax.vlines(*ends, color=colour, lw=0.9, alpha=0.5)
        of = "" if self.pos_label is None else f" of {canvas.as_text(self.pos_label)}"
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel=f"Frequency{of}")
        self.ax_, self.figure_, self.histogram_ax_ = ax, ax.figure, None
        lowest = ax
        if histogram:
            lowest = self.histogram_ax_ = canvas.panel_below(ax, HISTOGRAM_SHARE)
            bars = (curve.shares, np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1))
            lowest.stairs(*bars, fill=True, color=colour, alpha=0.2)
            lowest.stairs(*bars, color=colour, lw=1.3, linestyle=self.line_.get_linestyle())
            before = 0.0 if number == 0 else lowest.get_ylim()[1]
            lowest.set_ylim(0.0, max(before, 1.1 * float(curve.shares.max())))
            lowest.set_ylabel("Share")
            ax.set_xlabel("")
        lowest.set_xlabel(f"Probability{of}")
        canvas.refresh_legend(ax, last=(interval, CALIBRATED))
        return self


class ThresholdValues(NamedTuple):
    """Scores and cost at every threshold."""

    thresholds: FloatArray
    values: dict[str, FloatArray]  # scores by name, NaN where undefined
    cost: FloatArray | None  # per sample, if costs were given
    chosen: float  # threshold of lowest cost or, without costs, of best balanced accuracy


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
    r"""Scores as functions of the threshold Θ, with the cost in a panel below.

    Samples with P ≥ Θ are predicted positive. The cost of the errors per sample is

    .. math:: \frac{c_{FP} \cdot FP + c_{FN} \cdot FN}{N}

    Parameters
    ----------
    thresholds : array-like of shape (n_thresholds,)
    values : dict
        Scores by name: arrays of shape (n_thresholds,), drawn as a line, or (n_runs, n_thresholds), drawn as
        the mean over runs with a band of one standard deviation. NaN is left out.
    cost, chosen : array-like and float, default=None
        The cost, in the same shapes, drawn in a panel below; and a threshold to mark.

    Attributes
    ----------
    ax_, cost_ax_, figure_ : matplotlib Axes (None without a cost) and Figure
    lines_, bands_ : dict
        The line of each name, and the band of each name with several runs.

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
                    f"{name!r} has the shape {found.shape}; its last dimension must match the thresholds, {n}."
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
        """Draw the scores of predicted probabilities at all thresholds.

        Parameters
        ----------
        y_true, y_prob, pos_label, ax
            As for `ReliabilityDisplay.from_predictions`.
        chosen : float, default=None
            The threshold to mark; None for the best.
        **options
            ``thresholds``, as for `popf.metrics.threshold_curve`; ``cost_fp`` and ``cost_fn``, the costs of a
            false positive and of a false negative, both or neither.
        """
        canvas.need_matplotlib()
        found = prepare_thresholds(y_true, y_prob, pos_label=pos_label, **options)
        best = found.chosen if chosen is None else chosen
        return cls(**{**found._asdict(), "chosen": best}).plot(ax=ax)

    def plot(self, *, ax: Any = None, **line: Any) -> Self:
        """Draw the scores and the cost.

        Parameters
        ----------
        ax, **line
            Axes, None for a new figure; and options of all lines, such as ``linewidth``. The panel of the cost
            is split off the bottom of the axes.
        """
        ax = canvas.axes_for(ax, (6.4, 4.4 if self.cost is None else 5.6))
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
            style = {"color": look.quiet, "lw": 1.2, "zorder": 1}
            for panel in panels:
                panel.axvline(self.chosen, label=last[-1], **style)
        panels[-1].set_xlabel("Threshold Θ")
        names = [canvas.as_text(name) for name in self.values]
        ax.set_ylabel("Score" if len(names) > 1 else names[0].capitalize())
        canvas.refresh_legend(ax, last=last)
        return self

    def _draw(self, ax: Any, name: str, values: FloatArray, line: dict[str, Any]) -> None:
        order = np.argsort(self.thresholds, kind="stable")
        at, runs = self.thresholds[order], np.ma.masked_invalid(np.atleast_2d(values)[:, order])
        mean = runs.mean(axis=0).filled(np.nan)
        style = {"label": canvas.as_text(name), "linewidth": 1.8, **canvas.curve_style(ax, line)}
        (self.lines_[name],) = ax.plot(at, mean, zorder=3, **style)
        if values.ndim == 2:
            n = runs.count(axis=0)
            spread = np.sqrt(runs.var(axis=0) * n / np.maximum(n - 1, 1)).filled(np.nan)
            colour, label = self.lines_[name].get_color(), _band_name(values)
            band = {"color": colour, "alpha": 0.18, "lw": 0, "zorder": 2, "label": label}
            self.bands_[name] = ax.fill_between(at, mean - spread, mean + spread, **band)


def _band_name(values: FloatArray) -> str:
    return f"± 1 standard deviation, {len(values)} runs" if values.ndim == 2 else ""
