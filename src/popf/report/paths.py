"""Paths from prototypes to samples, in the user's own features and units."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from popf.forest.paths import Path
from popf.report.contents import Node, PathView, Step
from popf.report.formatting import figure, plain
from popf.table_models.explaining import inverse, rounded

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_FEATURES = 12
MOST_NODES = 6
UNKNOWN = "–"
NOTE = (
    "The features of training samples are not shown: the model keeps them only as its own steps have made "
    "them, and these cannot be undone."
)


def views(model: Any, final: Any, X: Any, rows: IntArray) -> tuple[list[PathView], str]:
    """Trace the paths to some samples.

    Parameters
    ----------
    model : POPFClassifier or Pipeline
        Fitted.
    final : POPFClassifier
        Its last step.
    X : frame or array of shape (n_samples, n_features)
        Columns in the model's order.
    rows : ndarray
        Which samples.

    Returns
    -------
    views : list of PathView
    note : str
        What cannot be shown, empty if all can.
    """
    opf = final.opf_
    chosen = _safe_indexing(X, rows)
    prepared = _prepared(model, final, chosen)
    paths, offers = opf.explain(prepared), opf.path_costs_by_class(prepared)
    names = feature_names(model)
    own = np.asarray(chosen, dtype=object)
    nodes = np.unique(np.concatenate([path.nodes for path in paths]))
    values, note = _values(model, final, nodes, len(names))
    if final.opf_.forest_.metric.precomputed:  # columns are distances to training samples
        names, own, note = [], own[:, :0], ""
    spread = _spread(values)
    found = []
    for number, path in enumerate(paths):
        at = np.searchsorted(nodes, path.nodes)
        table = [*(values[place] for place in at), own[number]] if values is not None else None
        along = own[number][None, :] if table is None else np.array(table, dtype=object)
        picked = _picked(names, along, path.bottleneck, spread)
        found.append(_view(opf, path, offers[number], names, (along, picked)))
    return found, note


def feature_names(model: Any) -> list[str]:
    """Give the names of the columns that a model was fitted on, or numbers.

    Examples
    --------
    >>> from popf import OPFClassifier
    >>> from popf.report.paths import feature_names
    >>> feature_names(OPFClassifier().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]))
    ['feature 1', 'feature 2']
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"feature {number}" for number in range(1, model.n_features_in_ + 1)]
    return [str(name) for name in names]


def _prepared(model: Any, final: Any, chosen: Any) -> FloatArray:
    """Give samples as the forest sees them."""
    for _, step in getattr(model, "steps", [])[:-1]:
        chosen = chosen if step in (None, "passthrough") else step.transform(chosen)
    numbers = np.ascontiguousarray(chosen, dtype=np.float64)
    prepared: FloatArray = final.prepare(numbers)
    return prepared


def _values(model: Any, final: Any, nodes: IntArray, n: int) -> tuple[NDArray[Any] | None, str]:
    """Give training samples in the units of the user, None where that cannot be done."""
    if final.samples_ is None:
        return None, ""
    columns: Any = final.samples_[nodes]
    for _, step in reversed(getattr(model, "steps", [])[:-1]):
        columns = None if columns is None else inverse(step, columns)
    if columns is None or np.shape(columns) != (len(nodes), n):
        return None, NOTE
    cells = [[rounded(cell) for cell in row] for row in np.asarray(columns, dtype=object).tolist()]
    found = np.empty((len(nodes), n), dtype=object)
    found[:] = cells
    return found, ""


def _spread(values: NDArray[Any] | None) -> FloatArray | None:
    """Tell how much each feature varies, NaN for one that is no number."""
    if values is None:
        return None
    return np.array([_deviation(column) for column in values.T])


def _deviation(column: NDArray[Any]) -> float:
    try:
        return float(np.nanstd(column.astype(np.float64))) or 1.0
    except (TypeError, ValueError):
        return np.nan


def _picked(
    names: list[str], along: NDArray[Any], bottleneck: int, spread: FloatArray | None
) -> list[int]:
    """Choose the features to show: all, or those that differ most along the longest step."""
    if len(names) <= MOST_FEATURES or spread is None:
        return list(range(min(len(names), MOST_FEATURES)))
    tail, head = along[bottleneck], along[bottleneck + 1]
    differences = np.array(
        [
            float(tail[k] != head[k])
            if np.isnan(spread[k])
            else abs(float(tail[k]) - float(head[k])) / spread[k]
            for k in range(len(names))
        ]
    )
    order = np.argsort(-np.nan_to_num(differences), kind="stable")[:MOST_FEATURES]
    return [int(k) for k in order]


def _view(
    opf: Any, path: Path, offers: FloatArray, names: list[str], table: tuple[Any, list[int]]
) -> PathView:
    classes = [plain(label) for label in opf.classes_.tolist()]
    own = opf.classes_.tolist().index(np.asarray(path.label).item())
    shown = _shown_nodes(len(path.nodes), path.bottleneck)
    nodes, steps = [], []
    longest = path.cost or 1.0
    for number, place in enumerate(shown):
        if number:
            left_out = place - shown[number - 1] - 1
            weight = float(path.weights[place - 1])
            is_longest = not left_out and place - 1 == path.bottleneck
            steps.append(Step(f"{weight:.4g}", weight / longest, is_longest, left_out))
        if place == len(path.nodes):
            nodes.append(Node("this sample", "", "sample"))
            continue
        node = int(path.nodes[place])
        name = f"training row {int(opf.sample_indices_[node]) + 1}"
        kind = "between" if place else "prototype"
        nodes.append(Node(name, classes[opf.forest_.codes[node]], kind))
    along, picked = table
    known = len(along) == len(path.nodes) + 1
    rows = [
        [
            plain(names[k]),
            *(figure(along[place, k]) if known else UNKNOWN for place in shown[:-1]),
            figure(along[-1, k]),
        ]
        for k in picked
    ]
    rivals = [
        (label, f"{offer:.4g}")
        for code, (label, offer) in enumerate(zip(classes, offers.tolist(), strict=True))
        if code != own
    ]
    return PathView(
        label=classes[own],
        cost=path.cost,
        n_steps=len(path.weights),
        rivals=rivals if len(rivals) <= 3 else sorted(rivals, key=lambda one: float(one[1]))[:1],
        nodes=nodes,
        steps=steps,
        features=rows,
        n_hidden=len(names) - len(picked),
    )


def _shown_nodes(n: int, bottleneck: int) -> list[int]:
    """Choose which nodes of a long path to show: the ends, and those of its longest step.

    Node n is the sample itself.
    """
    if n + 1 <= MOST_NODES:
        return list(range(n + 1))
    return sorted({0, 1, bottleneck, bottleneck + 1, n - 1, n})
