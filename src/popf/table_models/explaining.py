"""One row's path through the forest, in the user's own features and units."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.table_models.model import TableModel

FloatArray = NDArray[np.float64]


def explain_row(table_model: TableModel, frame: Any) -> dict[str, Any]:
    """Tell why a row is called what it is called.

    Parameters
    ----------
    table_model : TableModel
    frame : pandas.DataFrame
        One row, with the columns of the features.

    Returns
    -------
    dict
        Plain values: ``label`` (by the threshold), ``probabilities`` by class (None for a model of labels
        only), ``threshold``, ``positive``; ``path``, a list of stations from the prototype to the row, each
        with ``training_row`` (from 1; None for the row itself), ``label``, ``values`` by feature (None
        where a map does not let them be found again) and ``length`` of the arc that leads to it (None for the
        prototype); ``deciding_arc``, the position in ``path`` to which the longest arc leads; ``path_label``,
        ``path_cost``; ``offers``, the cost of the best path of every class; ``contributions``, by feature
        its share of the squared length of the deciding arc (None where the metric or a map forbids it).

    Examples
    --------
    >>> import pandas
    >>> from popf import POPFClassifier
    >>> from popf.table_models import TableModel, explain_row
    >>> from popf.table_models.model import Layout
    >>> frame = pandas.DataFrame({"size": [0.0, 1.0, 2.0, 7.0, 8.0, 9.0]})
    >>> fitted = POPFClassifier().fit(frame, ["no", "no", "no", "yes", "yes", "yes"])
    >>> why = explain_row(TableModel(fitted, Layout(["size"])), pandas.DataFrame({"size": [8.5]}))
    >>> [(station["training_row"], station["values"]["size"]) for station in why["path"]]
    [(4, 7.0), (5, 8.0), (None, 8.5)]
    """
    scored = table_model.score(frame)
    opf = getattr(table_model.final, "opf_", table_model.final)
    sample = _prepared(table_model, frame)
    (path,) = opf.explain(sample)
    offers = opf.path_costs_by_class(sample)[0]
    prepared = opf.forest_.samples
    stations = []
    nodes = path.nodes.tolist()
    raw = getattr(table_model.final, "samples_", prepared)
    values = _values_of(table_model, None if raw is None else raw[nodes], len(nodes))
    for place, node in enumerate(nodes):
        stations.append(
            {
                "training_row": int(opf.sample_indices_[node]) + 1,
                "label": _plain(opf.classes_[opf.forest_.codes[node]]),
                "length": None if place == 0 else float(path.weights[place - 1]),
                "values": values[place],
            }
        )
    own = {name: _plain(frame[name].iloc[0]) for name in table_model.features}
    stations.append(
        {
            "training_row": None,
            "label": None,
            "length": float(path.weights[-1]),
            "values": own,
        }
    )
    ends = None if prepared is None else np.vstack([prepared[nodes], sample])
    names = [str(label) for label in table_model.classes.tolist()]
    probability = None if scored.probability is None else scored.probability[0].tolist()
    return {
        "label": _plain(table_model.classes[scored.codes[0]]),
        "probabilities": None
        if probability is None
        else dict(zip(names, probability, strict=True)),
        "threshold": table_model.layout.threshold if table_model.binary else None,
        "positive": _plain(table_model.positive) if table_model.binary else None,
        "path": stations,
        "deciding_arc": path.bottleneck + 1,
        "path_label": _plain(path.label),
        "path_cost": path.cost,
        "offers": dict(zip(names, offers.tolist(), strict=True)),
        "contributions": _contributions(table_model, ends, path.bottleneck),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and np.isnan(value) else value


def _prepared(table_model: TableModel, frame: Any) -> FloatArray:
    """Give a row as the forest sees it."""
    order = getattr(table_model.model, "feature_names_in_", None)
    features: Any = frame[table_model.features if order is None else list(order)]
    steps = getattr(table_model.model, "steps", [])
    for _, step in steps[:-1]:
        features = features if step in (None, "passthrough") else step.transform(features)
    if isinstance(steps, list) and not steps:
        features = features.to_numpy()
    numbers = np.ascontiguousarray(features, dtype=np.float64)
    prepare = getattr(table_model.final, "prepare", None)
    return numbers if prepare is None else np.ascontiguousarray(prepare(numbers))


def _values_of(table_model: TableModel, samples: FloatArray | None, n: int) -> list[Any]:
    """Give training samples in the units of the table, None for what cannot be found again."""
    unknown: list[Any] = [None] * n
    if samples is None:
        return unknown
    columns: Any = samples
    model = table_model.model
    for _, step in reversed(getattr(model, "steps", [])[:-1]):
        columns = inverse(step, columns)
        if columns is None:
            return unknown
    order = getattr(model, "feature_names_in_", None)
    names = table_model.features if order is None else list(order)
    rows: list[Any] = [
        {str(name): rounded(cell) for name, cell in zip(names, row, strict=True)}
        for row in np.asarray(columns, dtype=object).tolist()
    ]
    return rows


def rounded(cell: Any) -> Any:
    """Take off what scaling there and back has added in the last digits.

    Examples
    --------
    >>> from popf.table_models.explaining import rounded
    >>> rounded(0.1 + 0.2), rounded("red"), rounded(float("nan"))
    (0.3, 'red', None)
    """
    cell = _plain(cell)
    if isinstance(cell, float):
        cell = float(f"{cell:.12g}")
        return 0.0 if abs(cell) < 1e-12 else cell
    return cell


def inverse(step: Any, columns: Any) -> Any:
    """Undo a step of a pipeline, as far as it can be undone; None where it cannot.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from popf.table_models.explaining import inverse
    >>> X = np.array([[1.0], [3.0]])
    >>> scaler = StandardScaler().fit(X)
    >>> inverse(scaler, scaler.transform(X)).tolist()
    [[1.0], [3.0]]
    """
    if step in (None, "passthrough"):
        return columns
    name = type(step).__name__
    if name == "Pipeline":
        for _, part in reversed(step.steps):
            columns = None if columns is None else inverse(part, columns)
        return columns
    if name == "ColumnTransformer":
        return _inverse_columns(step, columns)
    if name == "SimpleImputer":
        # What was imputed is shown as the forest saw it.
        return None if step.add_indicator else columns
    if name == "FunctionTransformer":
        return columns
    undo = getattr(step, "inverse_transform", None)
    if undo is not None:
        return undo(columns)
    if hasattr(step, "scale_") and hasattr(step, "mean_"):
        return unmapped(step, columns)
    return None


def _inverse_columns(transformer: Any, columns: Any) -> Any:
    indices = transformer._transformer_to_input_indices
    found = np.full((len(columns), transformer.n_features_in_), None, dtype=object)
    for name, part, _ in transformer.transformers_:
        if part == "drop":
            continue
        part_columns = inverse(part, columns[:, transformer.output_indices_[name]])
        if part_columns is None:
            return None
        found[:, indices[name]] = part_columns
    return found


def unmapped(linear_map: Any, samples: FloatArray) -> FloatArray | None:
    """Undo a linear map where it loses nothing; None where it does.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.probability.linear_maps import EffectSizeWeights
    >>> from popf.table_models.explaining import unmapped
    >>> X = np.array([[0.0, 1.0], [1.0, 3.0], [4.0, 2.0], [5.0, 5.0]])
    >>> weighted = EffectSizeWeights().fit(X, [0, 0, 1, 1])
    >>> np.allclose(unmapped(weighted, weighted.transform(X)), X)
    True
    """
    if linear_map is None:
        return samples
    mean, scale = getattr(linear_map, "mean_", None), getattr(linear_map, "scale_", None)
    if mean is None or scale is None:
        return None
    varies = scale > 0.0
    ends = linear_map.transform(np.vstack([mean, mean + np.diag(scale)[varies]]))
    origin, directions = ends[0], ends[1:] - ends[0]
    if np.linalg.matrix_rank(directions) < varies.sum():
        return None
    steps = np.linalg.lstsq(directions.T, (samples - origin).T, rcond=None)[0].T
    found: FloatArray = np.repeat(mean[np.newaxis, :], len(samples), axis=0)
    found[:, varies] += steps * scale[varies]
    return found


def _contributions(
    table_model: TableModel, ends: FloatArray | None, bottleneck: int
) -> dict[str, float] | None:
    """Share out the squared length of the longest arc among the features."""
    final = table_model.final
    plain = final.metric == "euclidean" and getattr(final, "linear_map_", None) is None
    if ends is None or not plain:
        return None
    squares = (ends[bottleneck + 1] - ends[bottleneck]) ** 2
    total = float(squares.sum())
    if total == 0.0:
        return None
    owners = _owners(table_model, len(squares))
    if owners is None:
        return None
    shares: dict[str, float] = dict.fromkeys(table_model.features, 0.0)
    for owner, square in zip(owners, squares.tolist(), strict=True):
        shares[owner] += square / total
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _owners(table_model: TableModel, n: int) -> list[str] | None:
    """Say to which feature each column of the prepared samples belongs."""
    steps = getattr(table_model.model, "steps", [])
    order = getattr(table_model.model, "feature_names_in_", None)
    names = table_model.features if order is None else [str(name) for name in order]
    transformers = [step for _, step in steps[:-1] if type(step).__name__ == "ColumnTransformer"]
    if not transformers:
        return names if n == len(names) else None
    if len(steps) != 2:
        return None
    (transformer,) = transformers
    owners: list[str] = [""] * n
    for name, part, columns in transformer.transformers_:
        at = transformer.output_indices_[name]
        encoder = part.steps[-1][1] if type(part).__name__ == "Pipeline" else part
        widths = [len(values) for values in getattr(encoder, "categories_", [])]
        widths = widths or [1] * len(columns)
        if part == "drop" or sum(widths) != at.stop - at.start:
            return None if part != "drop" else owners
        repeated = [str(c) for c, width in zip(columns, widths, strict=True) for _ in range(width)]
        owners[at] = repeated
    return owners
