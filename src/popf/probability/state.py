"""Conversion of a fitted `POPFClassifier` to plain values, and back with checks; see `popf.forest.state`."""

from dataclasses import asdict
from typing import Any

import numpy as np

from popf.engine.structures import IntArray
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.forest.state import Fields, forest_from_arrays, forest_to_arrays, read_features, read_rows
from popf.probability.basis import N_KNOTS, Basis
from popf.probability.boosting import BoostedTrees
from popf.probability.features import Preparation, Scaling
from popf.probability.pooling import PARTS, Evidence, HeldOut, Pool
from popf.probability.regressions import AdditiveEvidence
from popf.probability.soft_competition import ForestScaling
from popf.solvers import Solution

#: Slopes, biases and weights beyond this cannot come from a fit.
LARGEST_SLOPE = 1e12


def to_plain(state: dict[str, Any]) -> dict[str, Any]:
    """Convert forest and evidence to plain values; samples are stored as given, not as prepared."""
    inside = ("opf_", "_evidence", "samples_", "device_")
    opf, evidence, samples, _ = (state[name] for name in inside)
    plain = {name: value for name, value in state.items() if name not in inside}
    if "solution_" in plain:
        plain["solution_"] = asdict(plain["solution_"])
    if evidence is not None:
        evidence = _plain({k: v for k, v in vars(evidence).items() if k != "competition"})
    return {
        **plain,
        "sample_indices_": opf.sample_indices_,
        "forest_": {**forest_to_arrays(opf.forest_), "samples": samples},
        "evidence_": evidence,
    }


def restore(
    state: dict[str, Any], owner: str
) -> tuple[dict[str, Any], OptimumPathForest, IntArray]:
    """Check a state; return the classifier's attributes, its forest, and the rows of X it was grown on."""
    fields = Fields(state, owner)
    features, classes = read_features(fields), fields.labels("classes_")
    n_features = features["n_features_in_"]
    arrays = dict(fields.fields("forest_").items())
    n_samples = len(Fields(arrays, "forest_").integers("codes", (None,), 0, len(classes) - 1))
    precomputed = arrays.get("metric") == "precomputed"
    rows = read_rows(fields, n_samples, n_features if precomputed else None)
    found: dict[str, Any] = {"_evidence": None}
    raw, width = None, n_features
    if arrays.get("samples") is not None:
        raw = Fields(arrays, "forest_").floats("samples", (n_samples, n_features))
    if fields.value("evidence_") is not None:
        inside = fields.fields("evidence_")
        evidence = _evidence_from(inside, n_samples, n_features, len(classes))
        found["_evidence"] = evidence
        if raw is not None:
            arrays["samples"] = evidence.preparation.apply(raw)
            width = arrays["samples"].shape[1]
    else:
        found["A_"], found["B_"] = fields.number("A_"), fields.number("B_")
        found["solution_"] = Solution(**dict(fields.fields("solution_").items()))
    kept = {k: v for k, v in state.items() if k not in ("forest_", "sample_indices_", "evidence_")}
    shared = {"classes_": classes, "samples_": raw, "device_": "cpu"}
    forest = forest_from_arrays(Fields(arrays, "forest_"), classes, width)
    return {**kept, **features, **found, **shared}, forest, rows


def _plain(value: Any) -> Any:
    """Convert named tuples to dicts, recursively."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    return {name: _plain(v) for name, v in value.items()} if isinstance(value, dict) else value


def _evidence_from(fields: Fields, n_samples: int, n_features: int, n_classes: int) -> Evidence:
    by_class = (n_classes,)
    nodes = fields.integers("nodes", (None,), 0, n_samples - 1)
    parts = fields.fields("on_features")
    on_features = {
        name: (_trees_from if name == "trees" else _regression_from)(
            parts.fields(name), n_features, n_classes
        )
        for name in PARTS[1:]
        if name in parts
    }
    preparation, forest = fields.fields("preparation"), fields.fields("forest_scaling")
    pool, held_out = fields.fields("pool"), fields.fields("held_out")
    linear_map = preparation.value("linear_map")
    if linear_map is not None and not hasattr(linear_map, "transform"):
        raise preparation.refuse("linear_map", "a transformer")
    return Evidence(
        Preparation(_scaling_from(preparation, n_features), linear_map),
        nodes,
        fields.floats("node_weights", nodes.shape, 1e-100, 1e300),
        fields.floats("bandwidths", by_class, 1e-300, 1e300),
        ForestScaling(
            forest.integers("steps", by_class, 0, 2**31),
            forest.floats("floors", by_class),
            forest.floats("slopes", by_class, 0.0, LARGEST_SLOPE),
            forest.floats("biases", by_class, -LARGEST_SLOPE, LARGEST_SLOPE),
            forest.number("loss"),
        ),
        _scaling_from(fields, n_features),
        on_features,
        Pool(
            pool.floats("weights", (1 + len(on_features),), 0.0, LARGEST_SLOPE),
            pool.floats("biases", by_class, -LARGEST_SLOPE, LARGEST_SLOPE),
        ),
        fields.number("trust", 0.0, 1.0),
        fields.floats("prior", by_class, -LARGEST_SLOPE, 0.0),
        HeldOut(*(_numbers_from(held_out.fields(name)) for name in HeldOut._fields)),
    )


def _numbers_from(fields: Fields) -> dict[str, float]:
    return {name: fields.number(name) for name, _ in fields.items()}


def _scaling_from(fields: Fields, n_features: int) -> Scaling | None:
    if fields.value("scaling") is None:
        return None
    inside, shape = fields.fields("scaling"), (n_features,)
    if not isinstance(inside.value("squashed"), bool | np.bool_):
        raise inside.refuse("squashed", "True or False")
    return Scaling(
        inside.floats("center", shape),
        inside.floats("scale", shape, 1e-310),
        inside.floats("mean", shape),
        inside.floats("factor", shape, 0.0),
        bool(inside.value("squashed")),
    )


def _regression_from(fields: Fields, n_features: int, n_classes: int) -> AdditiveEvidence:
    inside = fields.fields("basis")
    last = n_features - 1
    smooth = inside.integers("smooth", (None,), 0, last)
    knots = inside.floats("knots", (N_KNOTS, len(smooth)))
    if not (np.diff(knots, axis=0) > 0.0).all():
        raise inside.refuse("knots", "increasing numbers")
    low = inside.floats("low", (n_features,))
    high = inside.floats("high", (n_features,))
    if not (low <= high).all():
        raise inside.refuse("high", "at least low")
    plain = inside.integers("plain", (None,), 0, last)
    pairs = inside.integers("pairs", (None, 2), 0, last)
    shape = pairs.shape
    cuts, means = inside.floats("cuts", shape), inside.floats("means", shape, 0.0, 1.0)
    basis = Basis(plain, smooth, knots, low, high, pairs, cuts, means)
    n_columns = len(basis.features())
    return AdditiveEvidence(
        basis,
        fields.floats("center", (n_columns,)),
        fields.floats("coefficients", (n_classes, n_columns), -LARGEST_SLOPE, LARGEST_SLOPE),
        fields.floats("intercepts", (n_classes,), -LARGEST_SLOPE, LARGEST_SLOPE),
    )


def _trees_from(fields: Fields, n_features: int, n_classes: int) -> BoostedTrees:
    features = fields.integers("features", (None, None), -1, n_features - 1)
    (n_trees, n_inner), n_outputs = features.shape, 1 if n_classes == 2 else n_classes
    if n_trees % n_outputs:
        raise fields.refuse("features", f"a multiple of {n_outputs} trees, one for each class")
    return BoostedTrees(
        features.astype(np.int32),
        fields.floats("cuts", (n_trees, n_inner)),
        fields.floats("values", (n_trees, 2 * n_inner + 1), -LARGEST_SLOPE, LARGEST_SLOPE),
        fields.floats("intercepts", (n_classes,), -LARGEST_SLOPE, LARGEST_SLOPE),
    )
