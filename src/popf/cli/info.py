"""``popf info``: what is in a model file."""

from typing import Any

from popf.cli import options

EXAMPLES = """\b
Examples:
  popf info model.popf
  popf info model.popf --json | jq .features
"""


def info(model: options.Model, json: options.Json = False) -> int:
    """Tell what is in a model file, without loading the model.

    Opening a model file never runs code from it, whoever wrote it; only its header is read here.
    """
    from popf.cli.output import show
    from popf.files import check_file
    from popf.io import describe

    check_file(model)
    known = describe(model)
    show(known, _lines(known, model), json)
    return 0


def _lines(known: dict[str, Any], model: Any) -> list[str]:
    from popf.cli.output import counted
    from popf.formatting import listed

    table = known["facts"].get("table")
    table = table if isinstance(table, dict) else {}
    pairs = zip(known["classes"], known["class_counts"], strict=True)
    parameters = known["parameters"]
    rows = [
        ("model", known["estimator"] + _steps(known)),
        (
            "saved",
            f"{known['saved']} by popf {known['popf_version']}, {known['file_bytes']:,} bytes",
        ),
        (
            "fitted on",
            f"{counted(known['n_samples'], 'row')} of {table.get('source') or 'unknown data'}",
        ),
        ("classes", listed([f"{label} {n:,}" for label, n in pairs])),
        ("features", _features(known, table)),
    ]
    if table:
        rows += [
            ("target", str(table.get("target"))),
            ("carried through", listed(table.get("ids") or ["nothing"])),
            ("missing values", str(table.get("missing"))),
        ]
        if len(known["classes"]) == 2:
            positive = known["classes"][1 if table.get("positive") == 1 else 0]
            said = f"{table.get('threshold'):.4g} on the probability of {positive}"
            rows.append(("threshold", f"{said} ({table.get('threshold_from')})"))
    shown = ("method", "metric", "linear_map", "solver", "random_state")
    rows.append(
        (
            "parameters",
            ", ".join(f"{name}={parameters[name]}" for name in shown if name in parameters),
        )
    )
    rows.append(("prototypes", f"{known['n_prototypes']:,}"))
    rows.append(("checksum", str(known["sha256"])))
    width = max(len(name) for name, _ in rows) + 2
    return [f"{model}", *(f"  {name.ljust(width)}{said}" for name, said in rows)]


def _steps(known: dict[str, Any]) -> str:
    before = [kind for _, kind in known["steps"][:-1]]
    return f" after {', '.join(before)}" if before else ""


def _features(known: dict[str, Any], table: dict[str, Any]) -> str:
    from popf.formatting import listed

    names = [feature["name"] or f"column {i}" for i, feature in enumerate(known["features"], 1)]
    categories = table.get("categories") or []
    shown = [f"{name} (categories)" if name in categories else name for name in names]
    return f"{len(names)}: {listed(shown, 12)}"
