"""Shared by all displays: lazy import of matplotlib, axes, colours and legends.

Axes and figures are typed ``Any``: the package must type-check where matplotlib is not installed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from popf.formatting import import_extra, visible

# The colour-blind safe palette of Okabe and Ito. Vermillion is for highlights.
_BLUE, _SKY, _GREEN, _PURPLE = "#0072B2", "#56B4E9", "#009E73", "#CC79A7"
_ORANGE, _YELLOW, STRONG = "#E69F00", "#F0E442", "#D55E00"
ON_LIGHT = (_BLUE, STRONG, _GREEN, _PURPLE, _ORANGE, _SKY)
ON_DARK = (_SKY, _ORANGE, _GREEN, _PURPLE, _YELLOW, STRONG)
FILLS_ON_LIGHT = (_BLUE, _ORANGE, _GREEN, _PURPLE, _SKY)
FILLS_ON_DARK = (_SKY, _YELLOW, _GREEN, _PURPLE, _BLUE)
# Curves and classes never differ by colour alone.
LINE_STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
CURVE, PANEL = "popf-curve", "_popf_panel"
Colour = tuple[float, float, float]


class Look(NamedTuple):
    """Colours chosen to suit some axes."""

    ink: Colour  # text
    background: Colour
    quiet: Colour  # secondary elements
    faint: Colour  # barely visible elements
    colours: tuple[str, ...]  # lines
    fills: tuple[str, ...]  # markers and areas, without `STRONG`

    def colour(self, number: int) -> str:
        """Return the colour of a line by its number."""
        return self.colours[number % len(self.colours)]

    def fill(self, number: int) -> str:
        """Return the fill colour of a class by its number."""
        return self.fills[number % len(self.fills)]


def need_matplotlib(module: str = "matplotlib") -> Any:
    """Import matplotlib or one of its modules; if missing, the error explains how to install it."""
    return import_extra(module, "plot", "Drawing")


def as_text(value: Any) -> str:
    """Return text that matplotlib draws as it is: a dollar sign begins no mathematics."""
    return visible(str(value)).replace("$", r"\$")


def axes_for(ax: Any, figsize: tuple[float, float]) -> Any:
    """Return `ax`, or axes in a new pyplot figure if it is None."""
    need_matplotlib()
    if ax is None:
        _, ax = need_matplotlib("matplotlib.pyplot").subplots(figsize=figsize, layout="constrained")
    return ax


def panel_below(ax: Any, share: float) -> Any:
    """Return the panel below the axes; the first call splits it off, with a share of their height."""
    panel = getattr(ax, PANEL, None)
    if panel is not None and panel.figure is not None:
        return panel
    figure, place = ax.figure, ax.get_subplotspec()
    if place is not None:
        rows = place.subgridspec(2, 1, height_ratios=(1.0 - share, share), hspace=0.03)
        ax.set_subplotspec(rows[0])
        panel = figure.add_subplot(rows[1], sharex=ax)
    else:  # axes that were placed by hand
        box = ax.get_position()
        low, gap = share * box.height, 0.04 * box.height
        ax.set_position([box.x0, box.y0 + low + gap, box.width, box.height - low - gap])
        panel = figure.add_axes([box.x0, box.y0, box.width, low], sharex=ax)
    setattr(ax, PANEL, panel)
    ax.tick_params(labelbottom=False)
    figure.sca(ax)  # keep the user's axes current in pyplot
    return panel


def look_of(ax: Any) -> Look:
    """Choose colours that match the background and text colour of the axes."""
    to_rgba = need_matplotlib("matplotlib.colors").to_rgba
    background = to_rgba(ax.get_facecolor())
    if background[3] == 0.0:
        background = to_rgba(ax.figure.get_facecolor())
    back: Colour = background[:3]
    ink: Colour = to_rgba(ax.xaxis.label.get_color())[:3]
    lines, fills = (ON_DARK, FILLS_ON_DARK) if sum(back) < 1.5 else (ON_LIGHT, FILLS_ON_LIGHT)
    return Look(ink, back, blend(ink, back, 0.55), blend(ink, back, 0.18), lines, fills)


def blend(colour: Any, background: Colour, share: float) -> Colour:
    """Mix a colour with the background, as if it were partly transparent."""
    over = need_matplotlib("matplotlib.colors").to_rgb(colour)
    red, green, blue = (share * a + (1 - share) * b for a, b in zip(over, background, strict=True))
    return red, green, blue


def n_curves(ax: Any) -> int:
    """Count the curves that displays have drawn, so that the next one gets another style."""
    return sum(str(line.get_gid()).startswith(CURVE) for line in ax.get_lines())


def curve_style(ax: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Choose the style of the next curve; the user's options take precedence."""
    number = n_curves(ax)
    style = {
        "gid": f"{CURVE}-{number}",
        "color": look_of(ax).colour(number),
        "linestyle": LINE_STYLES[number % len(LINE_STYLES)],
    }
    return {**style, **long_names(options)}


def long_names(options: dict[str, Any]) -> dict[str, Any]:
    """Expand abbreviated line options, because matplotlib rejects an option given under both names."""
    line = need_matplotlib("matplotlib.lines").Line2D
    return dict(need_matplotlib("matplotlib.cbook").normalize_kwargs(options, line))


def refresh_legend(ax: Any, last: Sequence[str] = (), *, beside: bool = False) -> None:
    """Redraw the legend with each label once, those in `last` at the end; `beside` puts it in the margin."""
    handles: dict[str, Any] = {}
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        handles.setdefault(label, handle)
    labels = sorted(handles, key=lambda label: last.index(label) if label in last else -1)
    shown = [handles[label] for label in labels]
    if beside:
        ax.figure.legend(shown, labels, loc="outside right upper", fontsize="small")
    else:
        ax.legend(shown, labels, fontsize="small")


def halo(look: Look, width: float) -> list[Any]:
    """Return an outline in the background colour that makes lines stand out."""
    effects = need_matplotlib("matplotlib.patheffects")
    return [effects.withStroke(linewidth=width, foreground=look.background)]
