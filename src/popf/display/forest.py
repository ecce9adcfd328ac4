"""Display of the forest: arcs, prototypes, decision regions, and the path of one sample."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from popf.display import canvas
from popf.display.estimators import (
    as_forest_sees,
    features_of_axes,
    fitted_step,
    last_step,
    one_sample,
)
from popf.engine.structures import FloatArray, IntArray
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import Path
from popf.formatting import check_integer
from popf.paper.classifier import PlattOPFClassifier
from popf.probability.classifier import POPFClassifier

# Marker sizes and line widths, in points, are full up to this number of samples, and then fall with its root.
FULL_SIZE, MARKER, SMALLEST_MARKER, LINE = 75, 7.5, 2.5, 1.1
# In inches: the longer side of the plot, the legend beside it, the axis below it, and the minimum height.
PLOT, LEGEND, AXIS, MIN_HEIGHT = 5.2, 2.1, 0.5, 3.0
MARGIN, MAX_RATIO, MAX_LENGTH = 0.07, 3.0, 32
COST_AXIS, CROSSING = "path cost C", "arc between classes"


class ForestLayout(NamedTuple):
    """Everything needed to draw a forest."""

    coordinates: FloatArray  # of the training samples, (n_samples, 2)
    classes: NDArray[Any]
    codes: IntArray  # the class of every sample, as an index into `classes`
    predecessors: IntArray  # the previous sample on each optimum path, -1 for prototypes
    crossings: IntArray  # arcs of the spanning tree between two classes, (n, 2)
    axis_names: tuple[str, str]
    # x, y, and the predicted class of each grid point
    regions: tuple[FloatArray, FloatArray, IntArray] | None = None
    path: Path | None = None  # the optimum path to one sample
    sample: FloatArray | None = None  # coordinates of that sample

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower left and the upper right corner of the plot."""
        places = self.coordinates
        if self.sample is not None:
            places = np.vstack([places, self.sample])
        low, high = places.min(axis=0), places.max(axis=0)
        width = high - low
        width[width == 0.0] = max(float(width.max()), 1.0)
        return low - MARGIN * width, high + MARGIN * width


def prepare_forest(
    estimator: Any,
    *,
    sample: ArrayLike | None = None,
    regions: bool | None = None,
    resolution: int = 200,
) -> ForestLayout:
    """Compute the layout of a forest; see `ForestDisplay.from_estimator`."""
    check_integer("resolution", resolution, 2)
    kinds = (OPFClassifier, POPFClassifier, PlattOPFClassifier)
    last = fitted_step(estimator, kinds, "forest")
    forest = getattr(last, "opf_", last).forest_
    samples = forest.samples
    if samples is None:
        raise ValueError(
            "with metric='precomputed' the samples have no coordinates to draw; fit a forest to coordinates, "
            "for example from sklearn.manifold.MDS, and draw that."
        )
    # A classifier without feature names, since it gets arrays.
    parameters = {"metric": last.metric, "n_jobs": last.n_jobs}
    opf = OPFClassifier.from_forest(forest, parameters, samples.shape[1])
    axis_names, project = _choose_axes(samples, _feature_names(estimator, samples))
    path = position = None
    if sample is not None:
        point = as_forest_sees(estimator, one_sample(sample))
        (path,) = opf.explain(point)
        (position,) = project(point, np.array([path.cost]))
    arcs = np.column_stack([forest.spanning_tree.lower, forest.spanning_tree.higher])
    layout = ForestLayout(
        coordinates=project(samples, forest.costs),
        classes=forest.classes,
        codes=forest.codes,
        predecessors=forest.predecessors,
        crossings=arcs[forest.codes[arcs[:, 0]] != forest.codes[arcs[:, 1]]],
        axis_names=axis_names,
        path=path,
        sample=position,
    )
    if samples.shape[1] > 2 or not (regions or (regions is None and not callable(last.metric))):
        return layout
    return layout._replace(regions=_regions(opf, layout, resolution))


def _feature_names(estimator: Any, samples: FloatArray) -> list[str]:
    last, n_features = last_step(estimator), samples.shape[1]
    features = features_of_axes(last)
    if features is None:
        return [f"mapped feature {k}" for k in range(n_features)]
    table = getattr(last, "table_", None)
    names = getattr(last, "feature_names_in_", None)
    if names is not None and table is not None:
        names = table.encoding.names(table.columns)
    if names is None and hasattr(estimator, "feature_names_in_"):
        with suppress(AttributeError, ValueError):  # a step without feature names
            names = estimator[:-1].get_feature_names_out()
    if names is None:
        names = [f"feature {k}" for k in range(n_features)]
    given: Any = getattr(last, "samples_", samples)
    squashed = not np.array_equal(samples, given)
    return [f"{names[k]}, squashed" if squashed else str(names[k]) for k in features]


def _choose_axes(
    samples: FloatArray, names: list[str]
) -> tuple[tuple[str, str], Callable[[FloatArray, FloatArray], FloatArray]]:
    """Choose the axes; return their names, and a function from samples and costs to coordinates."""
    if len(names) == 1:
        return (names[0], COST_AXIS), lambda X, costs: np.column_stack([X[:, 0], costs])
    if len(names) == 2:
        return (names[0], names[1]), lambda X, costs: X
    projection = PCA(2, random_state=0)
    with np.errstate(invalid="ignore"):  # all samples coincide
        projection.fit(samples)
    first, second = np.nan_to_num(projection.explained_variance_ratio_)
    across = f"principal component 1 ({100 * first:.0f} % of the variance)"
    up = f"component 2 ({100 * second:.0f} %)"
    return (across, up), lambda X, costs: projection.transform(X)


def _regions(
    opf: OPFClassifier, layout: ForestLayout, resolution: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    low, high = layout.limits()
    if not opf.forest_.metric.euclidean and layout.coordinates.min() >= 0.0:
        # Some metrics require non-negative features, and some of them reject samples that are all zero.
        low = np.maximum(low, 1e-9 * (high - low))
    x, y = np.linspace(low, high, resolution).T
    if opf.n_features_in_ == 1:
        y = y[[0, -1]]  # the class does not depend on the path cost
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    nodes = opf.conquer(np.ascontiguousarray(grid[:, : opf.n_features_in_])).nodes
    return x, y, layout.codes[nodes].reshape(len(y), len(x))


class ForestDisplay:
    """Plot of an optimum-path forest in the plane or in a projection, with the path of one sample.

    Arcs lead from prototypes, drawn with a ring, to the samples they have conquered; dashed arcs are those of
    the spanning tree between two classes. Two features are plotted as they are, more are projected on their
    first two principal components, and for a single feature the y axis is the path cost.

    Parameters
    ----------
    layout : named tuple
        What to draw and where: ``coordinates``, ``predecessors``, ``crossings``, ``regions``, ``path``, ...

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    samples_, regions_ : list of matplotlib Line2D, and QuadMesh or None
        The samples of each class, and the decision regions.
    arcs_, crossings_ : matplotlib LineCollection
        The arcs of the forest, and those between two classes.
    path_, bottleneck_ : matplotlib Line2D or None
        The path of the sample, and its longest arc, whose length is the path cost.

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

    def __init__(self, *, layout: ForestLayout) -> None:
        self.layout = layout

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, sample: ArrayLike | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Draw the forest of a fitted classifier.

        Parameters
        ----------
        estimator : OPFClassifier, POPFClassifier, PlattOPFClassifier or Pipeline
            Fitted. Samples are drawn as the forest sees them: after a pipeline's steps, squashed and mapped.
        sample : array-like of shape (n_features,) or (1, n_features), default=None
            A sample whose path is drawn.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.
        **options
            ``regions``: whether to colour the background by predicted class, for one or two features (None:
            unless the metric is a Python function, which is slow); ``resolution``: grid points in each
            direction (200).
        """
        canvas.need_matplotlib()
        return cls(layout=prepare_forest(estimator, sample=sample, **options)).plot(ax=ax)

    def plot(self, *, ax: Any = None, **marks: Any) -> Self:
        """Draw the forest.

        Parameters
        ----------
        ax, **marks
            Axes, None for a new figure; and options for the markers of all samples, such as ``markersize``.
        """
        layout, (low, high) = self.layout, self.layout.limits()
        own, (width, height) = ax is None, high - low
        ratio = height / width
        # Axes in different units, or of very different extent, are stretched to fill the plot.
        stretched = layout.axis_names[1] == COST_AXIS or not 1 / MAX_RATIO <= ratio <= MAX_RATIO
        ratio = 0.8 if stretched else float(ratio)
        across, up = PLOT * min(1.0, 1.0 / ratio), PLOT * min(1.0, ratio)
        ax = canvas.axes_for(ax, (across + LEGEND, max(up + AXIS, MIN_HEIGHT)))
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
        if layout.path is not None and layout.sample is not None:
            self._draw_path(ax, look, layout.path, layout.sample)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        xlabel, ylabel = map(canvas.as_text, layout.axis_names)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        if not stretched:
            # Anchored in a corner; otherwise matplotlib's layout reserves the empty space beside it for labels.
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

    def _draw_arcs(self, ax: Any, arcs: IntArray, **style: Any) -> Any:
        collections = canvas.need_matplotlib("matplotlib.collections")
        width = LINE * self._shrink()
        lines = collections.LineCollection(
            self.layout.coordinates[arcs], lw=width, zorder=2, **style
        )
        return ax.add_collection(lines)

    def _shrink(self) -> float:
        """Return the factor that keeps the share of the plot that is covered by marks and lines."""
        return float(min(1.0, np.sqrt(FULL_SIZE / len(self.layout.coordinates))))

    def _draw_samples(self, ax: Any, look: canvas.Look, marks: dict[str, Any]) -> list[Any]:
        places, prototypes = self.layout.coordinates, self.layout.predecessors < 0
        shrink = self._shrink()
        drawn = []
        for k, name in enumerate(_names(self.layout)):
            style = {
                "marker": canvas.MARKERS[k % len(canvas.MARKERS)],
                "markersize": max(MARKER * shrink, SMALLEST_MARKER),
                "markerfacecolor": look.fill(k),
                "markeredgecolor": look.background,
                "markeredgewidth": 0.6 * shrink,
                "label": name,
                **canvas.long_names(marks),
            }
            drawn += ax.plot(*places[self.layout.codes == k].T, ls="", zorder=3, **style)
        size = max((MARKER + 4.0) * shrink, SMALLEST_MARKER + 1.0)
        ring = {"marker": "o", "ms": size, "mfc": "none", "mec": look.ink, "mew": LINE * shrink}
        ax.plot(*places[prototypes].T, ls="", zorder=4, label="prototype", **ring)
        return drawn

    def _draw_path(self, ax: Any, look: canvas.Look, path: Path, position: FloatArray) -> None:
        winner = _names(self.layout)[int(self.layout.codes[path.nodes[0]])]
        stops = np.vstack([self.layout.coordinates[path.nodes], position])
        line = {"color": look.ink, "lw": 2.4, "path_effects": canvas.halo(look, 5.5)}
        (self.path_,) = ax.plot(
            *stops.T, zorder=5, label=f"path ({winner})", solid_capstyle="round", **line
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
        ax.plot(*position, ls="", zorder=7, label="sample", **star)


def _names(layout: ForestLayout) -> list[str]:
    """Return the class names for the legend, long names truncated."""
    names = map(str, layout.classes.tolist())
    return [
        canvas.as_text(name if len(name) <= MAX_LENGTH else f"{name[: MAX_LENGTH - 1]}…")
        for name in names
    ]
