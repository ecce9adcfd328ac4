"""The paper's figures: the landscape of F with the paths of solvers, and accuracy over thresholds."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from popf.experiment import paper
from popf.experiment.methods import methods
from popf.experiment.results import Results

THRESHOLDS = np.arange(1, 100) / 100
# Curves that are nearer than this on average are drawn as one.
ALIKE = 0.005
PANEL = (5.6, 4.2)


def figures(results: Results) -> dict[str, Any]:
    """Draw all figures that the data sets and methods of a study allow.

    Parameters
    ----------
    results : Results

    Returns
    -------
    dict of str to matplotlib Figure
        By the names of their files: ``figure1`` (landscapes), ``figure2`` and ``figure3`` (thresholds).
    """
    drawn = {}
    landscapes = _panels(results, [*paper.LANDSCAPES], 2)
    if landscapes and _solvers(results):
        drawn["figure1"] = _grid(results, landscapes, _landscape)
    curves = [
        panel
        for panel in _panels(results, [name for pair in paper.THRESHOLDS for name in pair], 4)
        if any(results.curves(panel[0], method, panel[1]).size for method in results.methods)
    ]
    for number, group in enumerate(_pairs(curves), 2):
        drawn[f"figure{number}"] = _grid(results, group, _thresholds)
    return drawn


def caption(name: str) -> str:
    """Say what a figure shows.

    Examples
    --------
    >>> from popf.experiment.figures import caption
    >>> caption("figure2")[:36]
    'Accuracy over the threshold Θ: means'
    """
    if name == "figure1":
        return (
            "The objective F over A × B, on the training samples of the first run, and the path of each "
            "solver: its best point after every iteration."
        )
    return (
        "Accuracy over the threshold Θ: means over the runs, in bands of one deviation on either side. The "
        "plain forest has no threshold and is a level line."
    )


def _panels(results: Results, preferred: list[str], most: int) -> list[tuple[str, str]]:
    """Choose data sets of two classes, the paper's first, with all forms in which they were run."""
    binary = [name for name, dataset in results.datasets.items() if dataset.n_classes == 2]
    chosen = [name for name in preferred if name in binary] or binary[:most]
    return [(name, form) for name, form in results.rows() if name in chosen]


def _pairs(panels: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Put the panels of two data sets after another into one figure, in the paper's order."""
    order = [name for pair in paper.THRESHOLDS for name in pair]
    names = list(dict.fromkeys(name for name, _ in panels))
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    return [
        [panel for name in names[k : k + 2] for panel in panels if panel[0] == name]
        for k in range(0, len(names), 2)
    ]


def _grid(results: Results, panels: list[tuple[str, str]], draw: Any) -> Any:
    """Draw panels, a row for each data set and a column for each form."""
    from popf.display.canvas import need_matplotlib

    names = list(dict.fromkeys(name for name, _ in panels))
    n_columns = max(sum(panel[0] == name for panel in panels) for name in names)
    if n_columns == 1:  # then data sets side by side
        shape, place = (1, len(names)), {panel: (0, k) for k, panel in enumerate(panels)}
    else:
        shape = (len(names), n_columns)
        place = {
            panel: (row, [p for p in panels if p[0] == name].index(panel))
            for row, name in enumerate(names)
            for panel in panels
            if panel[0] == name
        }
    figure = need_matplotlib("matplotlib.figure").Figure(
        figsize=(PANEL[0] * shape[1], PANEL[1] * shape[0]), layout="constrained"
    )
    axes = figure.subplots(*shape, squeeze=False)
    for ax in axes.flat:
        ax.set_visible(False)
    for panel, (row, column) in place.items():
        ax = axes[row, column]
        ax.set_visible(True)
        draw(results, *panel, ax)
        stand_in = ", stand-in" if results.datasets[panel[0]].stand_in else ""
        ax.set_title(f"{panel[0]} ({panel[1]}{stand_in})")
    return figure


def _solvers(results: Results) -> dict[str, Any]:
    """Solvers of the paper's method that took part, by the paper's abbreviations."""
    return {
        name: method.solver
        for name, method in methods().items()
        if name in results.methods and getattr(method, "method", "") == "paper"
    }


def _landscape(results: Results, name: str, form: str, ax: Any) -> None:
    """Draw F on the training samples of the first run, and how every solver walks in it."""
    from popf.display.landscape import LandscapeDisplay
    from popf.solvers import PlattObjective, platt_targets

    dataset, protocol = results.datasets[name], results.protocol
    train, _ = protocol.split(dataset, 0)
    X = dataset.X[train]
    if form == "scaled":
        X = StandardScaler().fit_transform(X)
    forest = clone(methods()["OPF"]).fit(X, dataset.y[train])
    sign = np.where(dataset.y[train] == forest.classes_[1], 1, -1)
    objective = PlattObjective(sign * forest.costs_, platt_targets(sign))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a solver held by the box is what the picture shows
        solutions = {
            solver_name.removeprefix("P-OPF-"): solver.minimize(
                objective, random_state=protocol.random_state(0)
            )
            for solver_name, solver in _solvers(results).items()
        }
    LandscapeDisplay.from_objective(objective, solutions=solutions, ax=ax)


def _thresholds(results: Results, name: str, form: str, ax: Any) -> None:
    """Draw accuracy over thresholds: methods whose curves are alike as one."""
    from popf.display.threshold import ThresholdDisplay

    values: dict[str, Any] = {}
    groups: list[list[str]] = []
    means: list[Any] = []
    for method in results.methods:
        curves = results.curves(name, method, form)
        if not curves.size:  # no probabilities: a level line
            accuracy = results.values("accuracy", name, method, form)
            if np.isfinite(accuracy).any():
                values[method] = np.full(99, np.nanmean(accuracy))
                groups.append([method])
                means.append(np.full(99, np.inf))
            continue
        mean = curves.mean(axis=0)
        near = [k for k, other in enumerate(means) if np.abs(mean - other).mean() < ALIKE]
        if near:
            groups[near[0]].append(method)
        else:
            groups.append([method])
            means.append(mean)
            values[method] = curves
    labelled = {_group_name(group): values[group[0]] for group in groups}
    ThresholdDisplay(thresholds=THRESHOLDS, values=labelled).plot(ax=ax)
    ax.set_ylabel("Accuracy (Papa's)")


def _group_name(group: list[str]) -> str:
    """Name curves that are drawn as one.

    Solvers that find the same optimum are named together.
    """
    first, *others = group
    return (
        f"{first}, {', '.join(name.removeprefix('P-OPF-') for name in others)}" if others else first
    )
