"""The forest as a picture: arcs, prototypes, regions, and the path of one sample."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from popf.display import canvas
from popf.display.layout import COST_AXIS, ForestLayout, limits_of, prepare_forest

if TYPE_CHECKING:
    from typing import Self

__all__ = ["ForestDisplay", "ForestLayout", "prepare_forest"]

FloatArray = NDArray[np.float64]

FIGURE_SIZE = (7.2, 4.6)
# In inches: the longer side of the picture, the legend and the axis beside it, and the least height, for
# which the names of the axes ask; a letter more than so many makes the legend wider.
PICTURE, LEGEND_WIDTH, LOWEST = 5.2, 2.1, 3.0
LETTER, LETTERS, CUT = 0.075, 16, 32
# Beyond this ratio of the sides the picture fills the axes, and lengths in it cannot be compared.
STRETCH = 3.0
MEETING = "arc between classes"


class ForestDisplay:
    """An optimum-path forest in the plane or in a projection, with the path of one sample.

    Arcs lead from prototypes, which have a ring, to the samples they have conquered. Dashed arcs are those
    of the spanning tree between two classes; their ends are the prototypes. Of the path of a sample the
    longest arc, which is its cost, is drawn in vermillion with its length beside it.

    Parameters
    ----------
    layout : ForestLayout
        What `prepare_forest` computes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    samples_ : list of matplotlib Line2D
        For each class its samples.
    arcs_ : matplotlib LineCollection
        The arcs of the forest.
    crossings_ : matplotlib LineCollection
        The arcs between two classes.
    regions_ : matplotlib QuadMesh or None
        Who conquers what.
    path_, bottleneck_ : matplotlib Line2D or None
        The path of the sample, and its longest arc.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from popf import OPFClassifier
    >>> from popf.display import ForestDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = OPFClassifier().fit(X, y)
    >>> display = ForestDisplay.from_estimator(
    ...     forest, X, sample=[6.0, 2.7, 4.6, 1.5], ax=Figure().subplots()
    ... )
    >>> display.ax_.get_xlabel()
    'principal component 1 (92 % of the variance)'
    >>> display.bottleneck_.get_label()
    'longest arc: 0.332'
    """

    ax_: Any
    figure_: Any

    def __init__(self, *, layout: ForestLayout) -> None:
        self.layout = layout

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        sample: ArrayLike | None = None,
        regions: bool | None = None,
        resolution: int = 200,
        ax: Any = None,
    ) -> "Self":
        """Draw the forest of a fitted classifier.

        Parameters
        ----------
        estimator : OPFClassifier, POPFClassifier or Pipeline
            Fitted.
        X : array-like of shape (n_samples, n_features)
            The samples it was fitted to.
        sample : array-like of shape (n_features,) or (1, n_features), default=None
            A sample whose path is drawn.
        regions : bool, default=None
            Whether to colour who conquers what; None for yes with one or two features. In a projection, True
            shows the plane through the mean of the samples, and the picture says so.
        resolution : int, default=200
            How fine the regions are.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ForestDisplay
        """
        canvas.need_matplotlib()
        layout = prepare_forest(estimator, X, sample=sample, regions=regions, resolution=resolution)
        return cls(layout=layout).plot(ax=ax)

    def plot(self, *, ax: Any = None, legend: bool = True, **marks: Any) -> "Self":
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.
        legend : bool, default=True
            Whether to draw a legend.
        **marks
            Options of the marks of all samples, such as ``markersize``.

        Returns
        -------
        self : ForestDisplay
        """
        layout, (low, high) = self.layout, limits_of(self.layout)
        own, stretched = ax is None, _stretched(layout)
        ax = canvas.axes_for(ax, FIGURE_SIZE if stretched else _figure_size(layout))
        look = canvas.look_of(ax)
        self.ax_, self.figure_, self.regions_ = ax, ax.figure, None
        if layout.regions is not None:
            self.regions_ = self._draw_regions(ax, look)
        quiet, ink = look.quiet, look.ink
        children = np.flatnonzero(layout.predecessors >= 0)
        arcs = np.column_stack([layout.predecessors[children], children])
        self.arcs_ = self._draw_arcs(ax, arcs, color=quiet, lw=1.1, zorder=2)
        self.crossings_ = self._draw_arcs(
            ax, layout.crossings, color=ink, lw=1.1, ls=(0, (3, 2)), zorder=2, label=MEETING
        )
        self.samples_ = self._draw_samples(ax, look, marks)
        self.path_ = self.bottleneck_ = None
        if layout.path is not None:
            self._draw_path(ax, look)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        ax.set(xlabel=layout.axis_names[0], ylabel=layout.axis_names[1])
        if not stretched:
            # In a corner, or the layout of matplotlib takes the room beside it for that of labels.
            ax.set_aspect("equal", adjustable="box", anchor="NW")
        if layout.regions is not None and not layout.exact:
            ax.set_title("regions: on the plane through the mean only", fontsize="small")
        if legend:
            canvas.refresh_legend(ax, last=("prototype", MEETING), beside=own)
        return self

    def _draw_regions(self, ax: Any, look: canvas.Look) -> Any:
        assert self.layout.regions is not None
        x, y, codes = self.layout.regions
        colors = canvas.need_matplotlib("matplotlib.colors")
        n_classes = len(self.layout.classes)
        tints = [canvas.blend(look.fill(k), look.background, 0.24) for k in range(n_classes)]
        return ax.pcolormesh(
            x,
            y,
            codes,
            cmap=colors.ListedColormap(tints),
            vmin=-0.5,
            vmax=n_classes - 0.5,
            shading="nearest",
            rasterized=True,
            zorder=0,
        )

    def _draw_arcs(self, ax: Any, arcs: NDArray[np.int64], **style: Any) -> Any:
        collections = canvas.need_matplotlib("matplotlib.collections")
        lines = collections.LineCollection(self.layout.coordinates[arcs], **style)
        return ax.add_collection(lines)

    def _draw_samples(self, ax: Any, look: canvas.Look, marks: dict[str, Any]) -> list[Any]:
        layout = self.layout
        places, prototypes = layout.coordinates, layout.predecessors < 0
        # Large marks for few samples, small ones for many, so that arcs stay visible.
        size = float(np.clip(65.0 / np.sqrt(len(places)), 3.0, 7.5))
        drawn = []
        for k, name in enumerate(_names(layout)):
            marker = canvas.MARKERS[k % len(canvas.MARKERS)]
            style = {
                "marker": marker,
                "ms": size * canvas.MARKER_SCALE.get(marker, 1.0),
                "mfc": look.fill(k),
                "mec": look.background,
                "mew": 0.6,
                "label": name,
                **marks,
            }
            own = places[layout.codes == k]
            drawn += ax.plot(*own.T, ls="", zorder=3, **style)
        ax.plot(
            *places[prototypes].T,
            marker="o",
            ls="",
            ms=size + 4.0,
            mfc="none",
            mec=look.ink,
            mew=1.1,
            zorder=4,
            label="prototype",
        )
        return drawn

    def _draw_path(self, ax: Any, look: canvas.Look) -> None:
        path, place = self.layout.path, self.layout.sample
        assert path is not None
        assert place is not None
        winner = _names(self.layout)[int(self.layout.codes[path.nodes[0]])]
        stops = np.vstack([self.layout.coordinates[path.nodes], place])
        wide = {"path_effects": canvas.halo(look, 5.5), "solid_capstyle": "round"}
        (self.path_,) = ax.plot(
            *stops.T, color=look.ink, lw=2.4, zorder=5, label=f"path to {winner}", **wide
        )
        longest = stops[path.bottleneck : path.bottleneck + 2]
        (self.bottleneck_,) = ax.plot(
            *longest.T,
            color=canvas.STRONG,
            lw=3.6,
            zorder=6,
            label=f"longest arc: {path.cost:.3g}",
            solid_capstyle="round",
        )
        ax.plot(
            *place,
            marker="*",
            ls="",
            ms=15.0,
            mfc=look.background,
            mec=look.ink,
            mew=1.4,
            zorder=7,
            label="sample",
        )


def _stretched(layout: ForestLayout) -> bool:
    """Whether the axes have units of their own, so that lengths in the picture mean nothing."""
    low, high = limits_of(layout)
    sides = np.sort(high - low)
    return bool(sides[1] > STRETCH * sides[0]) or layout.axis_names[1] == COST_AXIS


def _figure_size(layout: ForestLayout) -> tuple[float, float]:
    """Choose a figure that the picture fills, with room for the legend beside it."""
    low, high = limits_of(layout)
    width, (across, up) = PICTURE, high - low
    height = width * float(up / across)
    if height > PICTURE + 0.4:
        width, height = (PICTURE + 0.4) * width / height, PICTURE + 0.4
    longest = max(map(len, _names(layout)))
    beside = LEGEND_WIDTH + LETTER * max(0, longest - LETTERS)
    return max(width, 2.0) + beside, max(height + 0.5, LOWEST)


def _names(layout: ForestLayout) -> list[str]:
    """Give the classes as they stand in the legend, long names cut."""
    names = map(str, layout.classes.tolist())
    return [name if len(name) <= CUT else f"{name[: CUT - 1]}…" for name in names]
