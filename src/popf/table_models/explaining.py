"""Explain the label of a row: log odds by column, and the path in the units of the data."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.display.estimators import (
    as_forest_sees,
    features_of_axes,
    last_step,
    owners_after,
    steps_of,
)
from popf.display.log_odds import log_odds_of, split_log_odds
from popf.engine.structures import FloatArray, IntArray
from popf.formatting import for_json
from popf.probability.columns import DATE
from popf.table_models.model import TableModel


def explain_row(table_model: TableModel, frame: Any) -> dict[str, Any]:
    """Explain the label of a row by its log odds and its path through the forest.

    Parameters
    ----------
    table_model : TableModel
    frame : pandas.DataFrame
        One row, with the feature columns.

    Returns
    -------
    dict
        Plain values:

        - ``label`` (by the threshold), ``probabilities`` by class (None if the model predicts labels only),
          ``threshold``, ``positive``;
        - ``log_odds``, the contributions ``prior``, ``forest`` and ``features``, and their sum ``total``, to
          the log odds of the class ``pos_label``, which has ``probability``, against the class ``against``: the
          positive class against the other, or with more than two classes the most probable against the next;
          None for the paper's method and for models that predict labels only;
        - ``path``, the nodes from the prototype to the row, each with ``training_row`` (from 1; None for the
          row itself), ``label``, ``values`` by feature (None where a transformation cannot be inverted), and
          ``length`` of the arc that leads to it;
        - ``deciding_arc``, the position in ``path`` that the longest arc leads to;
        - ``path_label`` and ``path_cost``;
        - ``offers``, the cost of the best path from each class;
        - ``contributions``, each feature's share of the squared length of the longest arc; None where the
          metric or a transformation does not allow it.

    Examples
    --------
    >>> import pandas
    >>> from popf import POPFClassifier
    >>> from popf.table_models import TableModel, explain_row
    >>> from popf.table_models.model import Layout
    >>> frame = pandas.DataFrame({"size": [0.0, 1.0, 2.0, 7.0, 8.0, 9.0]})
    >>> fitted = POPFClassifier().fit(frame, ["no", "no", "no", "yes", "yes", "yes"])
    >>> why = explain_row(TableModel(fitted, Layout(["size"])), pandas.DataFrame({"size": [8.4]}))
    >>> [(node["training_row"], node["values"]["size"]) for node in why["path"]]
    [(4, 7.0), (5, 8.0), (None, 8.4)]
    """
    table_model, frame = table_model.after_readings(frame)
    scored = table_model.score(frame)
    names = [str(label) for label in table_model.classes.tolist()]
    log_odds = None
    if hasattr(table_model.final, "explain_proba"):
        split = split_log_odds(table_model.model, frame[table_model.features])
        log_odds = log_odds_of(split, 0, table_model.positive)._asdict()
    return {
        "label": for_json(table_model.classes[scored.codes[0]]),
        "probabilities": None
        if scored.probability is None
        else dict(zip(names, scored.probability[0].tolist(), strict=True)),
        "threshold": table_model.threshold,
        "positive": table_model.positive,
        "log_odds": log_odds,
        **_path(table_model, frame),
    }


def _path(table_model: TableModel, frame: Any) -> dict[str, Any]:
    """Trace the path to a row; see `explain_row`."""
    model, features = table_model.model, table_model.features
    opf = getattr(table_model.final, "opf_", table_model.final)
    sample = as_forest_sees(model, frame[features])
    if not hasattr(opf, "explain"):
        raise ValueError(f"{type(opf).__name__} has no paths to explain a row with.")
    (path,) = opf.explain(sample)
    values = training_values(model, path.nodes)
    own = {name: for_json(frame[name].iloc[0]) for name in features}
    columns = table_model.columns
    if columns is not None:  # dates as in the training rows, however they are written here
        cells = dict(zip(features, columns.values(columns.read(frame[features]))[0], strict=True))
        own |= {name: cells[name] for name in columns.names[columns.kinds == DATE].tolist()}
    known: list[Any] = [None] * len(path.nodes)
    if values is not None:
        known = [dict(zip(features, row, strict=True)) for row in values.tolist()]
    nodes = zip(
        [*(training_rows(model, table_model.layout.rows)[path.nodes] + 1).tolist(), None],
        [*opf.forest_.labels[path.nodes].tolist(), None],
        [None, *path.weights.tolist()],
        [*known, own],
        strict=True,
    )
    keys = ("training_row", "label", "length", "values")
    names = map(str, table_model.classes.tolist())
    return {
        "path": [dict(zip(keys, node, strict=True)) for node in nodes],
        "deciding_arc": path.bottleneck + 1,
        "path_label": for_json(path.label),
        "path_cost": path.cost,
        "offers": dict(zip(names, opf.path_costs_by_class(sample)[0].tolist(), strict=True)),
        "contributions": _contributions(table_model, path, sample),
    }


def training_values(model: Any, nodes: IntArray) -> NDArray[Any] | None:
    """Return nodes of the forest in the units of the data, as objects; None if a step cannot be inverted."""
    *steps, final = steps_of(model)
    samples = final.samples_ if hasattr(final, "opf_") else final.forest_.samples
    table = getattr(final, "table_", None)
    if table is not None and not steps:
        return _all_rounded(table.columns.values(samples[nodes]))
    columns = _inverse_transform(steps, None if samples is None else samples[nodes])
    if columns is None or np.shape(columns) != (len(nodes), model.n_features_in_):
        return None
    return _all_rounded(np.asarray(columns, object))


def training_rows(model: Any, rows: list[int] | None) -> IntArray:
    """Return the row of the training file that each node of the forest comes from, counted from 0.

    `rows` are the rows of the file that the model was fitted to, None for all.
    """
    final = last_step(model)
    used: IntArray = getattr(final, "opf_", final).sample_indices_
    return used if rows is None else np.array(rows)[used]


def _all_rounded(cells: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = np.vectorize(_rounded, otypes=[object])(cells)
    return found


def _rounded(cell: Any) -> Any:
    """Round off the error of scaling and unscaling."""
    cell = for_json(cell)
    if isinstance(cell, float):
        cell = float(f"{cell:.12g}")
        return 0.0 if abs(cell) < 1e-12 else cell
    return cell


def _inverse_transform(steps: list[Any], columns: Any) -> Any:
    """Invert the steps of a pipeline, last step first; return None if one cannot be inverted."""
    for step in reversed(steps):
        kind = type(step).__name__
        if columns is None:
            break
        if kind == "ColumnTransformer":
            columns = _inverse_of_columns(step, columns)
        elif kind == "SimpleImputer":  # imputed values are shown as such
            columns = None if step.add_indicator else columns
        else:
            columns = getattr(step, "inverse_transform", lambda columns: None)(columns)
    return columns


def _inverse_of_columns(transformer: Any, columns: Any) -> Any:
    names = list(getattr(transformer, "feature_names_in_", []))
    found = np.full((len(columns), transformer.n_features_in_), None, dtype=object)
    for name, part, taken in transformer.transformers_:
        if part == "drop":
            continue
        values = _inverse_transform(steps_of(part), columns[:, transformer.output_indices_[name]])
        if values is None or not isinstance(taken, list):
            return None
        found[:, [names.index(one) if isinstance(one, str) else one for one in taken]] = values
    return found


def _contributions(
    table_model: TableModel, path: Any, sample: FloatArray
) -> dict[str, float] | None:
    """Split the squared length of the longest arc by feature; None if that is not possible."""
    final = table_model.final
    samples = getattr(final, "opf_", final).forest_.samples
    features = features_of_axes(final)
    if samples is None or features is None or final.metric != "euclidean":
        return None
    ends = np.vstack([samples[path.nodes], sample])[path.bottleneck :][:2]
    squares = (ends[1] - ends[0]) ** 2
    owners: list[str] | None = table_model.features
    table = getattr(final, "table_", None)
    if table is not None:
        owners = [table_model.features[column] for column in table.encoding.owners]
    for step in table_model.steps:
        owners = owners_after(step, owners)
    if owners is None or not set(owners) <= {*table_model.features}:
        return None
    if squares.sum() == 0.0:
        return None
    shares = dict.fromkeys(table_model.features, 0.0)
    for feature, share in zip(features, (squares / squares.sum()).tolist(), strict=True):
        shares[owners[feature]] += share
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
