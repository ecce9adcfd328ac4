"""``popf info``: what is in a model file."""

from typing import Any

from popf.cli import options
from popf.cli.output import aligned, counted, show
from popf.files import check_file
from popf.formatting import listed

EXAMPLES = """\b
Examples:
  popf info model.popf
  popf info model.popf --json | jq .features
"""


def info(model: options.Model, json: options.Json = False) -> int:
    """Show what is in a model file, without loading the model.

    Opening a model file never runs code from it, whoever wrote it; only its header is read here.
    """
    from popf.io import describe

    check_file(model)
    known = describe(model)
    show(known, [f"{model}", *aligned(_rows(known), left=True)], json)
    return 0


def _rows(known: dict[str, Any]) -> list[tuple[str, str]]:
    table = known["facts"].get("table")
    table = table if isinstance(table, dict) else {}
    steps = [kind for _, kind in known["steps"][:-1]]
    categories = table.get("categories") or []
    names = [feature["name"] or f"column {i}" for i, feature in enumerate(known["features"], 1)]
    names = [f"{name} (categories)" if name in categories else name for name in names]
    pairs = zip(known["classes"], known["class_counts"], strict=True)
    rows = [
        ("model", known["estimator"] + (f" after {', '.join(steps)}" if steps else "")),
        (
            "saved",
            f"{known['saved']} by popf {known['popf_version']}, {known['file_bytes']:,} bytes",
        ),
        (
            "fitted on",
            f"{counted(known['n_samples'], 'row')} of {table.get('source') or 'unknown data'}",
        ),
        ("classes", listed([f"{label} {n:,}" for label, n in pairs])),
        ("features", f"{len(names)}: {listed(names, 12)}"),
    ]
    if table:
        rows += [
            ("target", str(table.get("target"))),
            ("carried through", listed(table.get("ids") or ["nothing"])),
            ("missing values", str(table.get("missing"))),
        ]
        if len(known["classes"]) == 2:
            positive = known["classes"][1 if table.get("positive") == 1 else 0]
            threshold = f"{table.get('threshold'):.4g} on the probability of {positive}"
            rows.append(("threshold", f"{threshold} ({table.get('threshold_from')})"))
    parameters = known["parameters"]
    shown = ("method", "metric", "linear_map", "solver", "random_state")
    return [
        *rows,
        ("parameters", ", ".join(f"{k}={parameters[k]}" for k in shown if k in parameters)),
        ("prototypes", f"{known['n_prototypes']:,}"),
        ("checksum", str(known["sha256"])),
    ]
