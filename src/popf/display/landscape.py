"""Display of the function that the paper's fit minimises over A and B, with the paths of solvers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from popf.display import canvas
from popf.display.estimators import fitted_step
from popf.engine.structures import FloatArray
from popf.formatting import check_integer
from popf.paper.classifier import PlattOPFClassifier, signed_costs, solver_of
from popf.paper.platt import PlattObjective, platt_targets
from popf.paper.solver import PAPER_BOX, Objective, Search, Solution, Solver, check_box

FIGURE_SIZE = (6.4, 5.0)
# Contour levels span this many powers of ten below the highest value: the valley is flat, its walls are steep.
DECADES = 4
LEVELS_PER_DECADE = 3


class Landscape(NamedTuple):
    """Function values on a grid: ``values[i, j]`` belongs to ``B[i]`` and ``A[j]``, as in `numpy.meshgrid`."""

    A: FloatArray
    B: FloatArray
    values: FloatArray


def prepare_landscape(
    objective: Objective, box: ArrayLike = PAPER_BOX, *, resolution: int = 101
) -> Landscape:
    """Evaluate a function of two parameters on a grid; see `LandscapeDisplay.from_objective`."""
    check_integer("resolution", resolution, 2)
    ends = check_box(box)
    if not ends.bounded:
        raise ValueError("box is None; a landscape needs bounds, such as ((-10, 10), (-10, 10)).")
    evaluate = Search(objective, ends).evaluate
    A, B = np.linspace(ends.lower, ends.upper, resolution).T
    # One row at a time, because an objective may need memory for every point.
    rows = [evaluate(np.column_stack([A, np.full(resolution, b)])) for b in B]
    return Landscape(A, B, np.array(rows))


def paper_objective(
    estimator: PlattOPFClassifier, sample_weight: ArrayLike | None = None
) -> tuple[PlattObjective, Solution]:
    """Return the function of A and B that was minimised to fit a model, and the solution found."""
    opf, fitted = estimator.opf_, estimator.solution_
    if isinstance(fitted, list):
        raise ValueError(
            f"a landscape shows one A and one B, but there are {len(fitted)} classes, each with its own; use "
            "LandscapeDisplay.from_objective."
        )
    weights = None
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)[opf.sample_indices_]
    codes = opf.forest_.codes
    targets = platt_targets(codes, weights, estimator.smoothing)
    objective = PlattObjective(signed_costs(codes, opf.costs_, 1), targets, weights)
    if not np.isclose(float(objective(fitted.theta)), fitted.value, rtol=1e-9, atol=0.0):
        raise ValueError(
            "the model was fitted with other sample weights than those given here; pass sample_weight as "
            "in fit."
        )
    return objective, fitted


class LandscapeDisplay:
    """Contour plot of a function of A and B, with the paths of solvers.

    Colours and contours show, on a logarithmic scale, how far F lies above its lowest value on the grid.

    Parameters
    ----------
    landscape : named tuple
        The grid ``A`` and ``B``, and ``values`` of shape (n_B, n_A). Values that are not finite are left blank.
    solutions : dict, default=None
        Results of ``solver.minimize`` by name.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    contours_, colorbar_ : matplotlib QuadContourSet and Colorbar
    paths_ : dict of str to matplotlib Line2D

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from popf import PlattOPFClassifier
    >>> from popf.display import LandscapeDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PlattOPFClassifier(box=((-60, 20), (-10, 10))).fit(X, y == 1)
    >>> display = LandscapeDisplay.from_estimator(model, solvers=["pso"], ax=Figure().subplots())
    >>> list(display.paths_)
    ['newton (fitted)', 'pso']
    """

    def __init__(
        self, *, landscape: Landscape, solutions: Mapping[str, Solution] | None = None
    ) -> None:
        if not np.isfinite(landscape.values).any():
            raise ValueError("the function has no finite value on the grid: nothing to draw.")
        self.landscape = landscape
        self.solutions = dict(solutions or {})

    @classmethod
    def from_objective(
        cls,
        objective: Objective,
        box: ArrayLike = PAPER_BOX,
        *,
        solutions: Mapping[str, Solution] | None = None,
        resolution: int = 101,
        ax: Any = None,
    ) -> Self:
        """Draw any function of two parameters.

        Parameters
        ----------
        objective : callable
            Maps an array of shape (n, 2), one point per row, to n values.
        box : array-like of shape (2, 2), default=((-10, 10), (-10, 10))
            (lowest, highest) value of A and of B. Paths are not drawn outside.
        solutions
            As for the class.
        resolution : int, default=101
            Number of grid values of each parameter.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.
        """
        canvas.need_matplotlib()
        found = prepare_landscape(objective, box, resolution=resolution)
        return cls(landscape=found, solutions=solutions).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        solvers: Iterable[str | Solver] = (),
        sample_weight: ArrayLike | None = None,
        random_state: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the function that was minimised to fit a `PlattOPFClassifier`, over its box.

        Parameters
        ----------
        estimator : PlattOPFClassifier or Pipeline
            Fitted to two classes.
        solvers : list of str or solvers, default=()
            Further solvers to run, by name (``"pso"``) or as objects of `popf.paper`.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights given to ``fit``, if any.
        random_state : int, RandomState or None, default=None
            Seed for the swarm solvers.
        **options
            As for `from_objective`: ``resolution``, ``ax``.
        """
        canvas.need_matplotlib()
        estimator = fitted_step(estimator, (PlattOPFClassifier,), "landscape over A and B")
        objective, fitted = paper_objective(estimator, sample_weight)
        solutions = {f"{_name_of(estimator.solver)} (fitted)": fitted}
        for solver in solvers:
            found = solver_of(solver).minimize(objective, estimator.box, random_state)
            solutions[_name_of(solver)] = found
        box = PAPER_BOX if estimator.box is None else estimator.box
        return cls.from_objective(objective, box, solutions=solutions, **options)

    def plot(self, *, ax: Any = None, **line: Any) -> Self:
        """Draw the contours and the paths.

        Parameters
        ----------
        ax, **line
            Axes, None for a new figure; and options for the lines of all paths, such as ``linewidth``.
        """
        ax = canvas.axes_for(ax, FIGURE_SIZE)
        look, (A, B, values) = canvas.look_of(ax), self.landscape
        self.ax_, self.figure_ = ax, ax.figure
        above, contours = self._contours(look)
        edges = {"levels": contours["levels"], "colors": [look.background], "linewidths": 0.5}
        ax.contour(A, B, above, **edges)
        self.contours_ = ax.contourf(A, B, above, zorder=0, **contours)
        self.colorbar_ = ax.figure.colorbar(self.contours_, ax=ax, pad=0.02)
        top = np.log10(contours["levels"][-1])
        self.colorbar_.set_ticks(10.0 ** np.arange(np.ceil(top - DECADES), np.floor(top) + 1))
        self.colorbar_.ax.minorticks_off()
        lowest = values[np.isfinite(values)].min()
        self.colorbar_.set_label(f"F − {lowest:.4g} (lowest value on the grid)")
        ax.set(xlabel="A", ylabel="B")
        ax.set(xlim=(A.min(), A.max()), ylim=(B.min(), B.max()))
        self.paths_ = {name: self._draw_path(ax, name, line) for name in self.solutions}
        if self.solutions:
            canvas.refresh_legend(ax)
        return self

    def _contours(self, look: canvas.Look) -> tuple[Any, dict[str, Any]]:
        """Return the values above the minimum, and the style of their contours."""
        colors = canvas.need_matplotlib("matplotlib.colors")
        above = np.ma.masked_invalid(self.landscape.values)
        above = above - above.min()
        # A constant function has no contours; any positive height will do to draw it.
        highest = float(above.max()) or 1.0
        top = np.ceil(np.log10(highest) * LEVELS_PER_DECADE) / LEVELS_PER_DECADE
        levels = np.logspace(top - DECADES, top, DECADES * LEVELS_PER_DECADE + 1)
        # The valley gets the background colour, in light and dark themes.
        ends = [canvas.blend(look.ink, look.background, share) for share in (0.0, 0.62)]
        # The lowest point, at 0, must be positive on a logarithmic scale.
        return np.ma.maximum(above, levels[0] / 10.0), {
            "levels": levels,
            "norm": colors.LogNorm(levels[0], levels[-1]),
            "cmap": colors.LinearSegmentedColormap.from_list("popf", ends),
            "extend": "min",
        }

    def _draw_path(self, ax: Any, name: str, line: dict[str, Any]) -> Any:
        """Draw a path with small markers at its steps, a hollow one at the start and a large one at the end."""
        look, path = canvas.look_of(ax), self.solutions[name].path
        moved = np.append(True, (np.diff(path, axis=0) != 0.0).any(axis=1))
        path, number = path[moved], canvas.n_curves(ax)
        marker = canvas.MARKERS[number % len(canvas.MARKERS)]
        style = {"linewidth": 1.6, "marker": marker, **canvas.curve_style(ax, line)}
        halo = canvas.halo(look, style["linewidth"] + 1.8)
        (drawn,) = ax.plot(*path.T, zorder=3, **{"markersize": 3.0, "path_effects": halo, **style})
        colour, above = drawn.get_color(), {"marker": style["marker"], "ls": "", "zorder": 4}
        ax.plot(*path[0], mfc=look.background, mec=colour, mew=1.3, ms=5.5, **above)
        # Solvers that end at the same point all stay visible: each marker is smaller than the one before.
        size = max(10.0 - 1.7 * number, 3.5)
        ax.plot(*path[-1], mfc=colour, mec=look.background, mew=0.8, ms=size, **above)
        label = f"{canvas.as_text(name)}: F = {self.solutions[name].value:.4g}"
        ax.plot([], [], **{**style, "gid": None, "markersize": 5.0, "label": label})
        return drawn


def _name_of(solver: str | Solver) -> str:
    return solver if isinstance(solver, str) else repr(solver)
