"""Reliability curves, which show whether probabilities are frequencies."""

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from popf.display import canvas
from popf.display.estimators import CurveDisplay, probability_of
from popf.engine.structures import FloatArray
from popf.metrics.checks import as_weights, check_same_length, event
from popf.metrics.evaluation import CONFIDENCE, wilson
from popf.metrics.scores import N_BINS, bins_of, mean_gap

FIGURE_SIZE = (5.4, 5.8)
HISTOGRAM_BINS, HISTOGRAM_SHARE = 20, 0.24
CALIBRATED = "calibrated"


class ReliabilityCurve(NamedTuple):
    """A reliability curve with its interval, over the bins that are not empty, and a histogram."""

    probability: FloatArray  # the mean probability in each bin
    frequency: FloatArray  # the share of positive samples there
    lower: FloatArray  # Wilson's 95 % interval of the frequency
    upper: FloatArray
    weights: FloatArray  # the number of samples in the bin, or the sum of their weights
    error: float  # the expected calibration error with these bins
    shares: FloatArray  # of the samples whose probability lies in each twentieth of [0, 1]


def prepare_reliability(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = N_BINS,
    strategy: Literal["uniform", "quantile"] = "uniform",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> ReliabilityCurve:
    """Compute a reliability curve; nothing is drawn. See `ReliabilityDisplay.from_predictions`.

    Where samples have weights w, the interval is that of their effective number, (Σ w)² / Σ w².
    """
    happened, _ = event(y_true, pos_label)
    probability = probability_of(y_prob)
    check_same_length(happened, probability, "y_prob")
    weights = as_weights(sample_weight, len(happened))
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
    """Reliability curve with an interval, and the histogram of the probabilities below it.

    On the diagonal probabilities are frequencies: of the samples with 80 %, eight in ten are positive. Below
    the diagonal they are too high, above it too low.

    Parameters
    ----------
    curve : named tuple
        ``probability`` and ``frequency`` of each bin that is not empty, ``lower`` and ``upper`` end of the
        interval, ``weights`` (samples in the bin), ``error`` (ECE), and ``shares`` for the histogram.
    name, pos_label : str and object, default=None
        The name in the legend, and the class whose probability it is, for the labels of the axes.

    Attributes
    ----------
    ax_, histogram_ax_, figure_ : matplotlib Axes (None without a histogram) and Figure
    line_, band_ : matplotlib Line2D and PolyCollection
        The curve, and Wilson's interval of each bin by itself, joined from bin to bin.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from popf.display import ReliabilityDisplay
    >>> ax = Figure().subplots()  # leave ax out for a figure of pyplot
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
        """Draw the curve of probabilities.

        Parameters
        ----------
        y_true, y_prob : array-like of shape (n_samples,)
            True labels, and probabilities of the positive class.
        pos_label : int, float, bool or str, default=None
            The positive class, drawn against all others; None for the second of two.
        name : str, default=None
            The name in the legend.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure. To compare, pass the ``ax_`` of another display.
        **options
            ``n_bins`` (10), ``strategy`` (``"uniform"`` or ``"quantile"``) and ``sample_weight``, as for
            `popf.metrics.expected_calibration_error`.
        """
        canvas.need_matplotlib()
        curve = prepare_reliability(y_true, y_prob, pos_label=pos_label, **options)
        _, pos_label = event(y_true, pos_label)
        return cls(curve=curve, name=name, pos_label=pos_label).plot(ax=ax)

    def plot(self, *, ax: Any = None, histogram: bool = True, **line: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure. The histogram takes its place from the bottom of the axes.
        histogram : bool, default=True
            Whether to draw the histogram.
        **line
            Options of the line, such as ``color``.
        """
        ax, curve = canvas.axes_for(ax, FIGURE_SIZE), self.curve
        number, look = canvas.n_curves(ax), canvas.look_of(ax)
        if number == 0:
            ax.plot([0, 1], [0, 1], ":", color=look.quiet, lw=1.2, zorder=1, label=CALIBRATED)
        error = f"ECE {curve.error:.3f}"
        style = {
            "label": error if self.name is None else f"{self.name} ({error})",
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
        # The band is known at the bins only; it is joined between them for the eye.
        ax.vlines(*ends, color=colour, lw=0.9, alpha=0.5)
        of = "" if self.pos_label is None else f" of {self.pos_label}"
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
