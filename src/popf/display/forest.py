"""The forest as a picture: arcs, prototypes, regions, and the path of one sample."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from popf.display import canvas
from popf.display.layout import COST_AXIS, ForestLayout, prepare_forest

if TYPE_CHECKING:
    from typing import Self

# In inches: the longer side of the picture, the legend beside it, the axis below it, and the least height.
PICTURE, LEGEND, AXIS, LOWEST = 5.2, 2.1, 0.5, 3.0
MAX_LETTERS = 32
STRETCH = 3.0
CROSSING = "arc between classes"


class ForestDisplay:
    """An optimum-path forest in the plane or in a projection, with the path of one sample.

    Arcs lead from prototypes, which have a ring, to the samples they have conquered. Dashed arcs are those
    of the spanning tree between two classes; their ends are the prototypes. The longest arc on the path of a
    sample, which is its cost, is drawn in vermillion. Two features are drawn as they are. More are projected on
    their first two principal components. A single one is drawn with the path cost as the other axis.

    Parameters
    ----------
    layout : named tuple
        What is drawn where: ``coordinates``, ``predecessors``, ``crossings``, ``regions``, ``path``, ...

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
    ...     forest, sample=[6.0, 2.7, 4.6, 1.5], ax=Figure().subplots()
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
        cls, estimator: Any, *, sample: ArrayLike | None = None, ax: Any = None, **options: Any
    ) -> "Self":
        """Draw the forest of a fitted classifier.

        Parameters
        ----------
        estimator : OPFClassifier, POPFClassifier or Pipeline
            Fitted. Samples are drawn as its forest knows them: after the steps of a pipeline, squashed and
            mapped.
        sample : array-like of shape (n_features,) or (1, n_features), default=None
            A sample whose path is drawn.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.
        **options
            ``regions`` : whether to show who conquers each point of the picture, which takes one or two
            features (None: yes, unless the metric is a Python function, which is slow); ``resolution`` : the
            number of its points in each direction (200).
        """
        canvas.need_matplotlib()
        return cls(layout=prepare_forest(estimator, sample=sample, **options)).plot(ax=ax)

    def plot(self, *, ax: Any = None, **marks: Any) -> "Self":
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.
        **marks
            Options of the marks of all samples, such as ``markersize``.
        """
        layout, (low, high) = self.layout, self.layout.limits()
        own, (width, height) = ax is None, high - low
        ratio = height / width
        # Units of their own, or of very different size, fill the axes: lengths cannot be compared.
        stretched = layout.axis_names[1] == COST_AXIS or not 1 / STRETCH <= ratio <= STRETCH
        ratio = 0.8 if stretched else float(ratio)
        across, up = PICTURE * min(1.0, 1.0 / ratio), PICTURE * min(1.0, ratio)
        ax = canvas.axes_for(ax, (across + LEGEND, max(up + AXIS, LOWEST)))
        look = canvas.look_of(ax)
        self.ax_, self.figure_ = ax, ax.figure
        self.regions_ = None if layout.regions is None else self._draw_regions(ax, look)
        children = np.flatnonzero(layout.predecessors >= 0)
        arcs = np.column_stack([layout.predecessors[children], children])
        self.arcs_ = self._draw_arcs(ax, arcs, color=look.quiet)
        self.crossings_ = self._draw_arcs(
            ax, layout.crossings, color=look.ink, ls=(0, (3, 2)), label=CROSSING
        )
        self.samples_ = self._draw_samples(ax, look, marks)
        self.path_ = self.bottleneck_ = None
        if layout.path is not None:
            self._draw_path(ax, look)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        ax.set(xlabel=layout.axis_names[0], ylabel=layout.axis_names[1])
        if not stretched:
            # In a corner, or matplotlib's layout takes the room beside it for that of labels.
            ax.set_aspect("equal", adjustable="box", anchor="NW")
        canvas.refresh_legend(ax, last=("prototype", CROSSING), beside=own)
        return self

    def _draw_regions(self, ax: Any, look: canvas.Look) -> Any:
        n_classes = len(self.layout.classes)
        tints = [canvas.blend(look.fill(k), look.background, 0.24) for k in range(n_classes)]
        style = {
            "cmap": canvas.need_matplotlib("matplotlib.colors").ListedColormap(tints),
            "vmin": -0.5,
            "vmax": n_classes - 0.5,
            "shading": "nearest",
            "rasterized": True,
        }
        return ax.pcolormesh(*(self.layout.regions or ()), zorder=0, **style)

    def _draw_arcs(self, ax: Any, arcs: NDArray[np.int64], **style: Any) -> Any:
        collections = canvas.need_matplotlib("matplotlib.collections")
        lines = collections.LineCollection(self.layout.coordinates[arcs], lw=1.1, zorder=2, **style)
        return ax.add_collection(lines)

    def _draw_samples(self, ax: Any, look: canvas.Look, marks: dict[str, Any]) -> list[Any]:
        places, prototypes = self.layout.coordinates, self.layout.predecessors < 0
        # Large marks for few samples, small ones for many, so that arcs stay visible.
        size = float(np.clip(65.0 / np.sqrt(len(places)), 3.0, 7.5))
        drawn = []
        for k, name in enumerate(_names(self.layout)):
            style = {
                "marker": canvas.MARKERS[k % len(canvas.MARKERS)],
                "ms": size,
                "mfc": look.fill(k),
                "mec": look.background,
                "mew": 0.6,
                "label": name,
                **marks,
            }
            drawn += ax.plot(*places[self.layout.codes == k].T, ls="", zorder=3, **style)
        ring = {"marker": "o", "ms": size + 4.0, "mfc": "none", "mec": look.ink, "mew": 1.1}
        ax.plot(*places[prototypes].T, ls="", zorder=4, label="prototype", **ring)
        return drawn

    def _draw_path(self, ax: Any, look: canvas.Look) -> None:
        path, place = self.layout.path, self.layout.sample
        assert path is not None
        assert place is not None
        winner = _names(self.layout)[int(self.layout.codes[path.nodes[0]])]
        stops = np.vstack([self.layout.coordinates[path.nodes], place])
        line = {"color": look.ink, "lw": 2.4, "path_effects": canvas.halo(look, 5.5)}
        (self.path_,) = ax.plot(
            *stops.T, zorder=5, label=f"path to {winner}", solid_capstyle="round", **line
        )
        (self.bottleneck_,) = ax.plot(
            *stops[path.bottleneck : path.bottleneck + 2].T,
            color=canvas.STRONG,
            lw=3.6,
            zorder=6,
            label=f"longest arc: {path.cost:.3g}",
            solid_capstyle="round",
        )
        star = {"marker": "*", "ms": 15.0, "mfc": look.background, "mec": look.ink, "mew": 1.4}
        ax.plot(*place, ls="", zorder=7, label="sample", **star)


def _names(layout: ForestLayout) -> list[str]:
    """Return the classes as they stand in the legend, long names cut."""
    names = map(str, layout.classes.tolist())
    return [name if len(name) <= MAX_LETTERS else f"{name[: MAX_LETTERS - 1]}…" for name in names]
