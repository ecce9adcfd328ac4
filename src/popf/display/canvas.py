"""What the displays share: matplotlib when it is needed, axes, colours and legends.

Axes and figures are typed ``Any``: the package must type-check where matplotlib is not installed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from popf.formatting import import_extra

# The colours of Okabe and Ito, which colour-blind people can tell apart. Vermillion is for what must stand out.
_BLUE, _SKY, _GREEN, _PURPLE = "#0072B2", "#56B4E9", "#009E73", "#CC79A7"
_ORANGE, _YELLOW, STRONG = "#E69F00", "#F0E442", "#D55E00"
ON_LIGHT = (_BLUE, STRONG, _GREEN, _PURPLE, _ORANGE, _SKY)
ON_DARK = (_SKY, _ORANGE, _GREEN, _PURPLE, _YELLOW, STRONG)
FILLS_ON_LIGHT = (_BLUE, _ORANGE, _GREEN, _PURPLE, _SKY)
FILLS_ON_DARK = (_SKY, _YELLOW, _GREEN, _PURPLE, _BLUE)
# Colour is never the only difference.
LINE_STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
CURVE, PANEL = "popf-curve", "_popf_panel"
Colour = tuple[float, float, float]


class Look(NamedTuple):
    """Colours that suit the axes they were taken from."""

    ink: Colour  # of text
    background: Colour
    quiet: Colour  # for what should be seen second
    faint: Colour  # for what should hardly be seen
    colours: tuple[str, ...]  # of lines
    fills: tuple[str, ...]  # of marks and areas, without `STRONG`

    def colour(self, number: int) -> str:
        """Return the colour of a line."""
        return self.colours[number % len(self.colours)]

    def fill(self, number: int) -> str:
        """Return the colour of a class."""
        return self.fills[number % len(self.fills)]


def need_matplotlib(module: str = "matplotlib") -> Any:
    """Import matplotlib, or a module of it, or say how to install it."""
    return import_extra(module, "plot", "Drawing")


def axes_for(ax: Any, figsize: tuple[float, float]) -> Any:
    """Return `ax`, or new axes in a new figure of pyplot if it is None."""
    need_matplotlib()
    if ax is None:
        _, ax = need_matplotlib("matplotlib.pyplot").subplots(figsize=figsize, layout="constrained")
    return ax


def panel_below(ax: Any, share: float) -> Any:
    """Return the panel below the axes, which takes a share of their height the first time."""
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
    figure.sca(ax)  # what pyplot does next is meant for the axes the user knows
    return panel


def look_of(ax: Any) -> Look:
    """Choose colours for the axes as they are, whatever the style they were made in."""
    to_rgba = need_matplotlib("matplotlib.colors").to_rgba
    background = to_rgba(ax.get_facecolor())
    if background[3] == 0.0:
        background = to_rgba(ax.figure.get_facecolor())
    back: Colour = background[:3]
    ink: Colour = to_rgba(ax.xaxis.label.get_color())[:3]
    lines, fills = (ON_DARK, FILLS_ON_DARK) if sum(back) < 1.5 else (ON_LIGHT, FILLS_ON_LIGHT)
    return Look(ink, back, blend(ink, back, 0.55), blend(ink, back, 0.18), lines, fills)


def blend(colour: Any, background: Colour, share: float) -> Colour:
    """Mix a colour into the background, as if it were partly transparent."""
    over = need_matplotlib("matplotlib.colors").to_rgb(colour)
    red, green, blue = (share * a + (1 - share) * b for a, b in zip(over, background, strict=True))
    return red, green, blue


def n_curves(ax: Any) -> int:
    """Count the curves that displays have drawn, so that the next one looks different."""
    return sum(str(line.get_gid()).startswith(CURVE) for line in ax.get_lines())


def curve_style(ax: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    """Choose how the next curve looks, except for what the user wants."""
    number = n_curves(ax)
    style = {
        "gid": f"{CURVE}-{number}",
        "color": look_of(ax).colour(number),
        "linestyle": LINE_STYLES[number % len(LINE_STYLES)],
    }
    return {**style, **long_names(wanted)}


def long_names(wanted: dict[str, Any]) -> dict[str, Any]:
    """Write out the short names of a line's options: matplotlib refuses a name in both forms."""
    line = need_matplotlib("matplotlib.lines").Line2D
    return dict(need_matplotlib("matplotlib.cbook").normalize_kwargs(wanted, line))


def refresh_legend(
    ax: Any, last: Sequence[str] = (), *, loc: str = "best", beside: bool = False
) -> None:
    """Make the legend again: every label once, those in `last` at the end; `beside` in the figure's margin."""
    handles: dict[str, Any] = {}
    for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
        handles.setdefault(label, handle)
    labels = sorted(handles, key=lambda label: last.index(label) if label in last else -1)
    shown = [handles[label] for label in labels]
    if beside:
        ax.figure.legend(shown, labels, loc="outside right upper", fontsize="small")
    else:
        ax.legend(shown, labels, loc=loc, fontsize="small")


def halo(look: Look, width: float) -> list[Any]:
    """Make an edge in the colour of the background, so that lines stand out."""
    effects = need_matplotlib("matplotlib.patheffects")
    return [effects.withStroke(linewidth=width, foreground=look.background)]
