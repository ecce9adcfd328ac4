"""Paths from prototypes to samples, in the user's own features and units."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.display.estimators import as_forest_sees
from popf.forest.optimum_path_forest import Path
from popf.report.formatting import figure, plain
from popf.table_models.explaining import training_rows, training_values

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Cells = NDArray[Any]

MAX_FEATURES, MAX_NODES = 12, 6
NOTE = (
    "The features of training samples are not shown: the model keeps them only as transformed by its steps, "
    "which cannot be undone."
)


class PathView(NamedTuple):
    """A path as it is shown."""

    label: str  # the class whose prototype it starts from
    cost: float
    n_steps: int
    rivals: list[tuple[str, str]]  # other classes, and the costs of their cheapest paths
    nodes: list[tuple[str, str, str]]  # name, class, and "prototype", "between" or "sample"
    steps: list[tuple[str, float, bool, int]]  # length, share of the longest, longest, left out
    features: list[list[str]]  # a row a feature: its name, and its value at each node
    n_hidden: int  # features that are not shown


def trace_paths(model: Any, final: Any, chosen: Any) -> tuple[list[PathView], str]:
    """Trace the paths to samples; return them, and what cannot be shown, empty if everything can."""
    opf = final.opf_
    prepared = as_forest_sees(model, chosen)
    paths, offers = opf.explain(prepared), opf.path_costs_by_class(prepared)
    names, own = feature_names(model), np.asarray(chosen, dtype=object)
    training: Cells | None = None
    note = ""
    nodes = np.unique(np.concatenate([path.nodes for path in paths]))
    if opf.forest_.metric.precomputed:  # columns are distances to training samples
        names, own = [], own[:, :0]
    else:
        training = training_values(model, nodes)
        note = NOTE if training is None else ""
    spread = None if training is None else np.array([_deviation(cells) for cells in training.T])
    views, origin = [], training_rows(model)
    for path, costs, sample in zip(paths, offers, own, strict=True):
        if training is None or spread is None:
            cells = np.full((len(path.nodes), len(names)), "–", dtype=object)
            picked = list(range(min(len(names), MAX_FEATURES)))
        else:
            cells = training[np.searchsorted(nodes, path.nodes)]
            picked = _most_different(np.vstack([cells, sample]), path.bottleneck, spread)
        features = [names[k] for k in picked], np.vstack([cells, sample])[:, picked]
        numbers = origin[path.nodes] + 1
        views.append(_view(opf, path, numbers, costs, features, len(names) - len(picked)))
    return views, note


def feature_names(model: Any) -> list[str]:
    """Return the names of the columns of X, or numbers from 1."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"feature {number}" for number in range(1, model.n_features_in_ + 1)]
    return [str(name) for name in names]


def _deviation(column: Cells) -> float:
    """Spread of a feature, NaN if it is not a number."""
    try:
        return float(np.nanstd(column.astype(np.float64))) or 1.0
    except (TypeError, ValueError):
        return np.nan


def _most_different(cells: Cells, bottleneck: int, spread: FloatArray) -> list[int]:
    """Choose the features to show: all, or those that differ most along the longest step."""
    if len(spread) <= MAX_FEATURES:
        return list(range(len(spread)))
    differences = [
        float(tail != head) if np.isnan(unit) else abs(float(tail) - float(head)) / unit
        for tail, head, unit in zip(cells[bottleneck], cells[bottleneck + 1], spread, strict=True)
    ]
    order = np.argsort(-np.nan_to_num(differences), kind="stable")
    return [int(k) for k in order[:MAX_FEATURES]]


def _view(
    opf: Any,
    path: Path,
    numbers: IntArray,
    costs: FloatArray,
    features: tuple[list[str], Cells],
    n_hidden: int,
) -> PathView:
    names, cells = features
    label = plain(path.label)
    shown = _shown_nodes(len(path.nodes), path.bottleneck)
    nodes = [
        (
            f"training row {numbers[place]}",
            label,
            "between" if place else "prototype",
        )
        for place in shown[:-1]
    ]
    steps = []
    for before, place in pairwise(shown):
        weight, left_out = float(path.weights[place - 1]), place - before - 1
        longest = not left_out and place - 1 == path.bottleneck
        steps.append((f"{weight:.4g}", round(weight / (path.cost or 1.0), 3), longest, left_out))
    rivals = [
        (plain(other), cost)
        for other, cost in zip(opf.classes_.tolist(), costs.tolist(), strict=True)
        if plain(other) != label
    ]
    if len(rivals) > 3:
        rivals = [min(rivals, key=lambda rival: rival[1])]
    return PathView(
        label=label,
        cost=path.cost,
        n_steps=len(path.weights),
        rivals=[(other, f"{cost:.4g}") for other, cost in rivals],
        nodes=[*nodes, ("this sample", "", "sample")],
        steps=steps,
        features=[
            [plain(name), *(figure(cell) for cell in column[shown])]
            for name, column in zip(names, cells.T, strict=True)
        ],
        n_hidden=n_hidden,
    )


def _shown_nodes(n: int, bottleneck: int) -> list[int]:
    """Nodes of a path to show: its ends and those of its longest step; node n is the sample itself."""
    if n + 1 <= MAX_NODES:
        return list(range(n + 1))
    return sorted({0, 1, bottleneck, bottleneck + 1, n - 1, n})
