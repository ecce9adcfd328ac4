"""Describe the model, and explain the probabilities of the listed samples in the user's features and units."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.display.estimators import as_forest_sees, last_step
from popf.display.log_odds import log_odds_of, split_log_odds
from popf.engine.structures import FloatArray
from popf.forest.optimum_path_forest import Path
from popf.formatting import listed
from popf.io.models import facts_of, shown, versions
from popf.metrics.checks import is_missing
from popf.report.numbers import count, figure, percent, plain
from popf.table_models.explaining import training_rows, training_values

Cells = NDArray[Any]
Entries = list[tuple[str, str]]

MAX_FEATURES, MAX_NODES, MAX_NAMES = 12, 6, 60
NOTE = (
    "The features of training samples are not shown, because the model keeps them only after its "
    "preprocessing, which cannot be inverted."
)
METHODS = {
    "pooled": "the forest, pooled with boosted trees and with logistic regressions on features, and on splines "
    "and pairs of features",
    "forest": "the forest alone: each class is scored by the paths through all of its training samples",
}
PAPER = "the paper’s P-OPF: the cost of the optimum path alone"
HELD_OUT = {
    "pool": "pool",
    "forest": "forest",
    "linear": "logistic regression",
    "additive": "logistic regression on splines and pairs",
    "trees": "boosted trees",
    "prior": "class frequencies",
}


ABOUT_LOSSES = (
    "The pool may stand above its best part: it is scored on samples that had no say in choosing it, and which "
    "part is the best is known only afterwards."
)


def model_facts(model: Any, about: Mapping[str, Any]) -> list[tuple[str, Entries]]:
    """Collect headings with (term, text) pairs; `about` is as for `popf.report.build`."""
    final = last_step(model)
    known = {**facts_of(model, final, None), **about}
    return [
        ("Summary", _summarise_model(final, known)),
        ("Training", _training(known)),
        ("Parameters", _parameters(final, known)),
        ("Origin", _origin(known)),
    ]


def _summarise_model(final: Any, known: Mapping[str, Any]) -> Entries:
    entries = [("Classifier", f"{known['estimator']}, a probabilistic optimum-path forest")]
    steps = [f"{name} ({kind})" for name, kind in known["steps"][:-1]]
    if steps:
        entries.append(("Preprocessing", ", then ".join(steps)))
    entries.append(("Probabilities from", PAPER if hasattr(final, "A_") else METHODS[final.method]))
    if len(getattr(final, "linear_map_losses_", ())) > 1:
        tried = _pairs(final.linear_map_losses_, ".4g")
        text = f"{final.linear_map_} (held-out log loss of each candidate: {tried})"
        entries.append(("Linear map of the features", text))
    if hasattr(final, "A_"):
        pairs = zip(np.atleast_1d(final.A_), np.atleast_1d(final.B_), strict=True)
        text = "; ".join(f"{a:.5g} and {b:.5g}" for a, b in pairs)
        entries.append(("Slope A and offset B", text))
    if hasattr(final, "pool_weights_"):
        entries.append(("Pool weights", _pairs(final.pool_weights_, ".2f")))
        entries.append(("Bandwidth τ", f"{final.bandwidth_:.5g}"))
    losses = {HELD_OUT[name]: loss for name, loss in getattr(final, "held_out_losses_", {}).items()}
    if losses:
        entries.append(("Log loss on held-out training samples", _pairs(losses, ".3g")))
    if len(losses) > 3:
        entries.append(("About these losses", ABOUT_LOSSES))
    if getattr(final, "prior_weight_", 0.0) >= 0.01:
        text = f"{percent(final.prior_weight_)}: the training samples hardly separate the classes"
        entries.append(("Shrunk towards the base rate by", text))
    return entries


def _pairs(values: Mapping[str, float], digits: str) -> str:
    return ", ".join(f"{plain(name)} {value:{digits}}" for name, value in values.items())


def _training(known: Mapping[str, Any]) -> Entries:
    classes = (
        f"“{plain(label)}” {count(number)}"
        for label, number in zip(known["classes"], known["class_counts"], strict=True)
    )
    names = [feature["name"] for feature in known["features"]]
    entries = [
        ("Samples", count(known["n_samples"])),
        ("Classes", ", ".join(classes)),
        ("Prototypes", f"{count(known['n_prototypes'])}, where classes meet"),
        ("Features", count(known["n_features"])),
    ]
    if None not in names:
        entries.append(("Feature names", listed([plain(name) for name in names], MAX_NAMES)))
    return entries


def _parameters(final: Any, known: Mapping[str, Any]) -> Entries:
    defaults = type(final)().get_params(deep=False)
    changed: list[str] = []
    same: list[str] = []
    for name, value in known["parameters"].items():
        (same if shown(defaults.get(name)) == value else changed).append(f"{name} = {value}")
    return [
        ("Not default", ", ".join(map(plain, changed)) or "none: all are defaults"),
        ("Default", ", ".join(map(plain, same))),
    ]


def _origin(known: Mapping[str, Any]) -> Entries:
    terms = {"file": "Model", "data": "Evaluated on", "saved": "Saved", "sha256": "SHA-256"}
    entries = [(term, plain(known[key])) for key, term in terms.items() if known.get(key)]
    libraries = {"popf": known.get("popf_version", version("popf"))}
    libraries.update(known.get("libraries") or versions())
    texts = (plain(f"{name} {number}") for name, number in libraries.items())
    entries.append(("Fitted with" if "libraries" in known else "Versions", ", ".join(texts)))
    noted = known.get("facts") or {}
    table = noted.get("table")  # of `popf fit`
    if isinstance(table, Mapping):
        noted = {"Fitted on": table.get("source"), **noted}
    for name, value in noted.items():
        if value and isinstance(value, str | int | float):
            entries.append((plain(name), figure(value)))
    return entries


def explain_samples(
    model: Any, chosen: Any, label: Any, rows: list[int] | None = None
) -> tuple[list[dict[str, Any]], str]:
    """Explain the probability of a class for some samples; also return a note on what cannot be shown.

    Each explanation holds plain values for the page's script: the ``terms`` of the log odds against the class
    ``rival``, both empty for the paper's method, and the path from `trace_paths`.
    """
    names, cells = feature_names(model), np.asarray(chosen, dtype=object)
    paths, note = trace_paths(model, chosen, rows)
    if not hasattr(last_step(model), "explain_proba"):
        return [{"rival": "", "terms": [], **path} for path in paths], note
    split = split_log_odds(model, chosen)
    if not hasattr(chosen, "columns") and len(split.feature_names) == len(names):
        split = replace(split, feature_names=names)
    explained = []
    for number, path in enumerate(paths):
        log_odds = log_odds_of(split, number, label)
        shown = (None if is_missing(cell) else figure(cell) for cell in cells[number])
        values = dict(zip(names, shown, strict=True))
        named = log_odds.terms(MAX_FEATURES, values)
        terms = [(plain(name), round(share, 4)) for name, share in named]
        explained.append({"rival": plain(log_odds.against), "terms": terms, **path})
    return explained, note


def feature_names(model: Any) -> list[str]:
    """Return the column names of X, or names with numbers from 1."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"feature {number}" for number in range(1, model.n_features_in_ + 1)]
    return [str(name) for name in names]


def trace_paths(
    model: Any, chosen: Any, rows: list[int] | None
) -> tuple[list[dict[str, Any]], str]:
    """Trace the paths to samples; also return a note on what cannot be shown, or an empty string.

    A path has a ``summary``; ``nodes`` (name, class, and "prototype", "between" or "sample"); ``steps``
    (length, length relative to the longest, whether it is the longest, number of nodes left out);
    ``features``, one row each: name, and value at each node; and the number of ``hidden`` features.
    """
    opf = last_step(model).opf_
    prepared = as_forest_sees(model, chosen)
    paths, offers = opf.explain(prepared), opf.path_costs_by_class(prepared)
    names, own = feature_names(model), np.asarray(chosen, dtype=object)
    nodes = np.unique(np.concatenate([path.nodes for path in paths]))
    training, note = training_values(model, nodes), ""
    if opf.forest_.metric.precomputed:  # columns are distances to training samples
        names, own = [], own[:, :0]
    elif training is None:
        note = NOTE
    if training is None:
        training = np.full((len(nodes), len(names)), "–", dtype=object)
    spread = np.array([_deviation(cells) for cells in training.T])
    views, numbers = [], training_rows(model, rows) + 1
    for path, costs, sample in zip(paths, offers, own, strict=True):
        cells = np.vstack([training[np.searchsorted(nodes, path.nodes)], sample])
        features = _most_different(cells, path.bottleneck, spread)
        shown = _shown_nodes(len(path.nodes), path.bottleneck)
        label = plain(path.label)
        kinds = ("between" if place else "prototype" for place in shown[:-1])
        used = (f"training row {numbers[path.nodes[place]]}" for place in shown[:-1])
        training_nodes = [(row, label, kind) for row, kind in zip(used, kinds, strict=True)]
        views.append(
            {
                "summary": _summary(path, dict(zip(opf.classes_.tolist(), costs, strict=True))),
                "nodes": [*training_nodes, ("this sample", "", "sample")],
                "steps": list(_steps(path, shown)),
                "features": [[plain(names[k]), *map(figure, cells[shown, k])] for k in features],
                "hidden": len(names) - len(features),
            }
        )
    return views, note


def _deviation(column: Cells) -> float:
    """Return the standard deviation of a feature (1 if it is 0), NaN if it is not numeric."""
    try:
        return float(np.nanstd(column.astype(np.float64))) or 1.0
    except (TypeError, ValueError):
        return np.nan


def _most_different(cells: Cells, bottleneck: int, spread: FloatArray) -> list[int]:
    """Choose the features to show: all, or those that differ most along the longest step."""
    if len(spread) <= MAX_FEATURES:
        return list(range(len(spread)))
    ends = zip(cells[bottleneck], cells[bottleneck + 1], spread, strict=True)
    order = np.argsort([-_difference(*end) for end in ends], kind="stable")
    return [int(k) for k in order[:MAX_FEATURES]]


def _difference(tail: Any, head: Any, unit: float) -> float:
    """Return how far two values of a feature are apart; 1 for different categories, or if one is missing."""
    if np.isnan(unit):
        return float(tail != head)
    ends = np.array([tail, head], np.float64)  # None becomes NaN
    missing = np.isnan(ends)
    if missing.any():
        return float(not missing.all())
    return float(abs(ends[1] - ends[0]) / unit)


def _shown_nodes(n: int, bottleneck: int) -> list[int]:
    """Choose the nodes of a path to show: at its ends and its longest step; node n is the sample itself."""
    if n + 1 <= MAX_NODES:
        return list(range(n + 1))
    return sorted({0, 1, bottleneck, bottleneck + 1, n - 1, n})


def _steps(path: Path, shown: list[int]) -> Iterator[tuple[str, float, bool, int]]:
    for before, place in pairwise(shown):
        weight, left_out = float(path.weights[place - 1]), place - before - 1
        longest = not left_out and place - 1 == path.bottleneck
        yield f"{weight:.4g}", round(weight / (path.cost or 1.0), 3), longest, left_out


def _summary(path: Path, offers: dict[Any, float]) -> str:
    """Describe a path and the costs of other classes' paths; of more than three, only the cheapest."""
    label, n_steps = plain(path.label), len(path.weights)
    if n_steps == 1:
        way = f"One step leads from a prototype of “{label}” to this sample; its length"
    else:
        way = (
            f"{n_steps} steps lead from a prototype of “{label}” through training samples of the same class "
            "to this sample; the longest"
        )
    rivals = [(cost, plain(other)) for other, cost in offers.items() if plain(other) != label]
    if len(rivals) > 3:
        rivals = [min(rivals, key=lambda rival: rival[0])]
    costs = (f" The cheapest path from “{other}” costs {cost:.4g}." for cost, other in rivals)
    return f"{way}, {path.cost:.4g}, is the cost of the path.{''.join(costs)}"
