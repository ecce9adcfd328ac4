"""A fitted `POPFClassifier` from plain values of unknown origin; see `popf.forest.state`."""

from typing import Any

from popf.forest.state import Fields, read_features


def restore(state: dict[str, Any], owner: str) -> dict[str, Any]:
    """Check a state, and make of it what the classifier holds."""
    from popf.forest.restoring import forest_from_arrays, read_rows
    from popf.probability.evidence import Evidence
    from popf.solvers import Solution

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
        evidence = Evidence.from_arrays(inside, n_samples, n_features, len(classes))
        found["_evidence"] = evidence
        if raw is not None:
            arrays["samples"] = evidence.preparation.apply(raw)
            width = arrays["samples"].shape[1]
        found["held_out_losses_"] = _numbers(fields, "held_out_losses_")
        found["linear_map_losses_"] = _numbers(fields, "linear_map_losses_")
    else:
        found["A_"], found["B_"] = fields.number("A_"), fields.number("B_")
        found["solution_"] = Solution(**dict(fields.fields("solution_").items()))
    found["forest_"] = forest_from_arrays(Fields(arrays, "forest_"), classes, width)
    return {
        **features,
        **found,
        "classes_": classes,
        "sample_indices_": rows,
        "samples_": raw,
        "device_": "cpu",
    }


def _numbers(fields: Fields, name: str) -> dict[str, float]:
    inside = fields.fields(name)
    return {str(key): inside.number(key) for key, _ in inside.items()}
