"""The paper's figures: the landscape of F with the paths of solvers, and accuracy over thresholds."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from popf.display import LandscapeDisplay, ThresholdDisplay
from popf.display.canvas import need_matplotlib
from popf.experiment import paper
from popf.experiment.methods import is_paper_method, methods
from popf.experiment.results import Results
from popf.solvers import PlattObjective, platt_targets

THRESHOLDS = np.arange(1, 100) / 100
#: Curves that differ by less than this on average are drawn as one.
ALIKE = 0.005
PANEL = (5.6, 4.2)
#: The data sets of figures 2 and 3, in the paper's order.
ORDER = [name for pair in paper.THRESHOLDS for name in pair]
LANDSCAPE_CAPTION = (
    "The objective F over A × B, on the training samples of the first run, and the path of each "
    "solver: its best point after every iteration."
)
THRESHOLDS_CAPTION = (
    "Accuracy over the threshold Θ: means over the runs, in bands of one deviation on either side. The "
    "plain forest has no threshold and is a level line."
)


def figures(results: Results) -> dict[str, tuple[Any, str]]:
    """Draw landscapes (figure1) and thresholds (figure2, figure3): figures and captions by file name."""
    drawn = {}
    landscapes = _chosen(results, paper.LANDSCAPES, 2)
    if landscapes and _solvers(results):
        drawn["figure1"] = _grid(results, landscapes, _landscape), LANDSCAPE_CAPTION
    with_curves = [
        name
        for name in _chosen(results, ORDER, 4)
        if any("over_thresholds" in r for r in results.records if r["dataset"] == name)
    ]
    with_curves.sort(key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    for k in range(0, len(with_curves), 2):
        grid = _grid(results, with_curves[k : k + 2], _thresholds)
        drawn[f"figure{2 + k // 2}"] = grid, THRESHOLDS_CAPTION
    return drawn


def _chosen(results: Results, preferred: tuple[str, ...] | list[str], most: int) -> list[str]:
    """Choose data sets of two classes: the paper's, or else the first."""
    binary = [name for name, dataset in results.datasets.items() if dataset.n_classes == 2]
    return [name for name in binary if name in preferred] or binary[:most]


def _grid(results: Results, names: list[str], draw: Callable[..., None]) -> Any:
    """Draw a row for each data set and a column for each form; with one form, data sets side by side."""
    forms = [results.protocol.forms(results.datasets[name]) for name in names]
    n_rows, n_columns = len(names), max(map(len, forms))
    if n_columns == 1:
        n_rows, n_columns = 1, len(names)
    figure = need_matplotlib("matplotlib.figure").Figure(
        figsize=(PANEL[0] * n_columns, PANEL[1] * n_rows), layout="constrained"
    )
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for ax in axes.flat:
        ax.set_visible(False)
    for k, name in enumerate(names):
        for j, form in enumerate(forms[k]):
            ax = axes[k, j] if n_rows > 1 or len(names) == 1 else axes[0, k]
            ax.set_visible(True)
            draw(results, name, form, ax)
            stand_in = ", stand-in" if results.datasets[name].stand_in else ""
            ax.set_title(f"{name} ({form}{stand_in})")
    return figure


def _solvers(results: Results) -> dict[str, Any]:
    """Solvers of the paper's method that took part, by the paper's abbreviations."""
    return {
        name.removeprefix("P-OPF-"): method.solver
        for name, method in methods().items()
        if name in results.methods and is_paper_method(method)
    }


def _landscape(results: Results, name: str, form: str, ax: Any) -> None:
    """Draw F on the training samples of the first run, and the path of every solver."""
    dataset, protocol = results.datasets[name], results.protocol
    train, _ = protocol.split(dataset, 0)
    X, y = dataset.X[train], dataset.y[train]
    if form == "scaled":
        X = StandardScaler().fit_transform(X)
    forest = clone(methods()["OPF"]).fit(X, y)
    sign = np.where(y == forest.classes_[1], 1, -1)
    objective = PlattObjective(sign * forest.costs_, platt_targets(sign))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a solver stopped by the box is what the picture shows
        solutions = {
            solver_name: solver.minimize(objective, random_state=protocol.random_state(0))
            for solver_name, solver in _solvers(results).items()
        }
    LandscapeDisplay.from_objective(objective, solutions=solutions, ax=ax)


def _thresholds(results: Results, name: str, form: str, ax: Any) -> None:
    """Draw accuracy over thresholds, methods with nearly equal curves as one."""
    groups: list[tuple[list[str], Any]] = []
    for method in results.methods:
        curves = results.curves(name, method, form)
        if not curves.size:  # no probabilities: a level line
            accuracy = results.values("accuracy", name, method, form)
            if np.isfinite(accuracy).any():
                groups.append(([method], np.full(99, np.nanmean(accuracy))))
            continue
        for names, other in groups:
            if other.ndim == 2 and np.abs(curves.mean(axis=0) - other.mean(axis=0)).mean() < ALIKE:
                names.append(method)
                break
        else:
            groups.append(([method], curves))
    values = {
        ", ".join([names[0], *(other.removeprefix("P-OPF-") for other in names[1:])]): curves
        for names, curves in groups
    }
    ThresholdDisplay(thresholds=THRESHOLDS, values=values).plot(ax=ax)
    ax.set_ylabel("Accuracy (Papa's)")
