"""Charts as SVG, fluid in width: places are per cent of the frame, so text keeps its size.

Curves live in an inner picture of 1000 × 1000 units that is stretched to the frame; its lines keep their
width. Colours are classes of the style sheet, for light, dark and print.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.report.formatting import count, fixed, percent, safe, threshold_text
from popf.report.numbers import Decisions, Quality

FloatArray = NDArray[np.float64]

UNITS = 1000
SCORES = ("balanced_accuracy", "precision", "recall")


def line_path(x: Sequence[float] | FloatArray, y: Sequence[float] | FloatArray) -> str:
    """Draw a line through points of the unit square; a gap where y is NaN.

    Examples
    --------
    >>> from popf.report.charts import line_path
    >>> line_path([0.0, 0.5, 0.75, 1.0], [1.0, 0.5, float("nan"), 0.25])
    'M0.0 0.0L500.0 500.0M1000.0 750.0'
    """
    parts, pen_down = [], False
    for across, up in zip(x, y, strict=True):
        if np.isnan(up):
            pen_down = False
            continue
        place = f"{fixed(UNITS * across, 1)} {fixed(UNITS * (1.0 - up), 1)}"
        parts.append(("L" if pen_down else "M") + place)
        pen_down = True
    return "".join(parts)


def reliability_chart(quality: Quality, event: str) -> str:
    """Draw frequencies over probabilities with their intervals, and a histogram below.

    Parameters
    ----------
    quality : Quality
    event : str
        What happens, in words.

    Returns
    -------
    str
        SVG elements.
    """
    curve = quality.curve
    x, low, high = curve.probability, curve.lower, curve.upper
    if len(x) > 1:
        band = line_path(x, high) + "L" + line_path(x[::-1], low[::-1])[1:] + "Z"
        area = f'<path class="band" d="{band}"/>'
    else:
        area = f'<path class="whisker" d="{line_path([x[0], x[0]], [low[0], high[0]])}"/>'
    lines = [
        area,
        f'<path class="ideal" d="{line_path([0, 1], [0, 1])}"/>',
        f'<path class="line one" d="{line_path(x, curve.frequency)}"/>',
    ]
    dots = [
        f'<circle class="dot one" cx="{_place(across)}" cy="{_place(1 - up)}" r="4">'
        f"<title>{percent(across)} said, {percent(up)} happened, {count(round(weight))} samples</title>"
        "</circle>"
        for across, up, weight in zip(x, curve.frequency, curve.weights, strict=True)
    ]
    gaps = np.abs(curve.frequency - curve.probability)
    words = (
        f"Reliability curve of the probability of {event}: {len(x)} bins; the largest distance from the "
        f"diagonal is {percent(float(gaps.max()))}."
    )
    main = _frame("reliability tall", words, [*_grid(), *_inner(lines), *dots], _y_percent())
    top = float(curve.shares.max()) or 1.0
    bars = _bars(curve.shares / top, "bar quiet")
    words = (
        "Histogram of the probabilities, in twentieths; the table of bins below has the numbers."
    )
    histogram = _frame(
        "reliability low",
        words,
        [*_inner(bars), *_x_labels()],
        [_y_label(0.0, percent(top, 0), "dy='4'"), _y_label(1.0, "0")],
    )
    return main + histogram


def class_chart(found: Decisions, threshold: float, names: tuple[str, str]) -> str:
    """Draw where the probabilities of either class lie."""
    top = float(max(found.positive_shares.max(), found.negative_shares.max()))
    bars = [
        *_bars(found.negative_shares / top, "bar zero"),
        *_bars(found.positive_shares / top, "bar one"),
    ]
    words = f"Histogram of the probability for samples of {names[0]} and of {names[1]}, as shares of each."
    labels = [_y_label(0.0, percent(top, 0), "dy='4'"), _y_label(1.0, "0")]
    return _frame("classes low", words, [*_inner(bars), _cursor(threshold)], labels)


def score_chart(found: Decisions, at: int) -> str:
    """Draw accuracy, precision and recall over the threshold."""
    scores = found.counts.scores()
    threshold = float(found.counts.thresholds[at])
    lines = [
        f'<path class="line {name}" d="{line_path(found.counts.thresholds, scores[name])}"/>'
        for name in SCORES
    ]
    words = (
        "Balanced accuracy, precision and recall over the threshold; the numbers at the chosen one are in the "
        "table beside."
    )
    body = [*_grid(), *_inner(lines), _cursor(threshold)]
    body += [_dot(name, threshold, float(scores[name][at])) for name in SCORES]
    return _frame("scores middle", words, body, _y_percent())


def cost_chart(found: Decisions, at: int, pair: int) -> str:
    """Draw the cost over the threshold."""
    cost, top = found.mean_cost(pair), found.cost_top(pair) or 1.0
    threshold, best = float(found.counts.thresholds[at]), int(found.recommended[pair])
    lines = [f'<path class="line cost" d="{line_path(found.counts.thresholds, cost / top)}"/>']
    body = [
        *_inner(lines),
        _cursor(threshold),
        _dot("best", float(found.counts.thresholds[best]), float(cost[best]) / top),
        _dot("cost", threshold, min(float(cost[at]) / top, 1.0)),
        *_x_labels(),
    ]
    words = "Cost over the threshold; the numbers at the chosen one are in the table beside."
    labels = [_y_label(0.0, fixed(UNITS * top, 0), "dy='4' id='cost-top'"), _y_label(1.0, "0")]
    return _frame("cost low", words, body, labels)


def _frame(kind: str, words: str, body: Iterable[str], labels: Iterable[str]) -> str:
    parts = "".join(body)
    return (
        f'<svg class="chart {kind}" role="img" aria-label="{safe(words)}">'
        f'<rect class="ground" width="100%" height="100%"/>{parts}{"".join(labels)}</svg>'
    )


def _inner(parts: Iterable[str]) -> list[str]:
    """Put curves into the stretched picture."""
    opening = (
        f'<svg class="curves" viewBox="0 0 {UNITS} {UNITS}" preserveAspectRatio="none" width="100%" '
        'height="100%">'
    )
    return [opening, *parts, "</svg>"]


def _place(share: float) -> str:
    return f"{fixed(100.0 * share, 2)}%"


def _bars(heights: FloatArray, kind: str) -> list[str]:
    width = UNITS / len(heights)
    return [
        f'<rect class="{kind}" x="{fixed(number * width, 1)}" width="{fixed(width * 0.92, 1)}" '
        f'y="{fixed(UNITS * (1.0 - height), 1)}" height="{fixed(UNITS * height, 1)}"/>'
        for number, height in enumerate(heights.tolist())
        if height > 0.0
    ]


def _cursor(threshold: float) -> str:
    place = f"{threshold_text(100.0 * threshold)}%"
    return f'<line class="cursor" x1="{place}" x2="{place}" y1="0" y2="100%"/>'


def _dot(name: str, across: float, up: float) -> str:
    hidden = ' visibility="hidden"' if np.isnan(up) else ""
    up = 0.0 if np.isnan(up) else up
    return (
        f'<circle class="dot {name}" data-dot="{name}" r="4.5" cx="{_place(across)}" '
        f'cy="{_place(1.0 - up)}"{hidden}/>'
    )


def _grid() -> list[str]:
    lines = [
        f'<line class="grid" x1="0" x2="100%" y1="{share}%" y2="{share}%"/>'
        for share in (25, 50, 75)
    ]
    return lines + [
        f'<line class="grid" y1="0" y2="100%" x1="{share}%" x2="{share}%"/>'
        for share in (25, 50, 75)
    ]


def _x_labels() -> list[str]:
    return [
        f'<text class="tick" x="{share}%" y="100%" dy="17" text-anchor="middle">{share / 100:g}</text>'
        for share in (0, 25, 50, 75, 100)
    ]


def _y_label(down: float, text: Any, more: str = "") -> str:
    more = more.replace("'", '"') or 'dy="4"'
    return f'<text class="tick" x="-8" y="{100 * down:g}%" text-anchor="end" {more}>{safe(text)}</text>'


def _y_percent() -> list[str]:
    return [_y_label(1 - share, f"{100 * share:g} %") for share in (0, 0.25, 0.5, 0.75, 1)]
