"""``popf info``: show what a model file or a data file contains."""

from pathlib import Path
from typing import Any

import typer

from popf.cli import options
from popf.cli.terminal import as_options, class_counts, column_facts, open_data, show
from popf.files import check_file
from popf.formatting import aligned, counted, listed

EXAMPLES = """\b
Examples:
  popf info model.popf
  popf info model.popf --json | jq .features
  popf info data.csv
  popf info boat.dat
"""


def info(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="Model file from `popf fit` or popf.save, or data file."
    ),
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    na: list[str] | None = options.MISSING,
    json: bool = options.JSON,
) -> int:
    """Show what a model file or a data file contains.

    For a table, show how `popf fit` would read its columns; for svmlight, LibOPF and opfython files, the
    samples, features and labels. Of a model file only the header is read, and no code in it is ever run.
    """
    from popf.io.container import is_model
    from popf.tables.formats import SUFFIXES, format_of_file, suffix_of

    check_file(file)
    # A model may have any suffix.
    if suffix_of(file) not in SUFFIXES or is_model(file):
        facts, lines = _model(file)
    elif format_of_file(file) in ("csv", "parquet"):
        facts, lines = _table(open_data(file, delimiter, encoding, decimal, na))
    else:
        facts, lines = _samples(file)
    show(facts, lines, json)
    return 0


def _table(table: Any) -> tuple[dict[str, Any], list[str]]:
    """Describe how each column of a table is read, and problems with it."""
    text = table.text()
    columns = column_facts(table.columns(dict.fromkeys(table.unnamed, "dropped"), text=text))
    rows = [["column", "read as", "values", "missing"]]
    remarks = []
    for name, found in columns.items():
        role, remark = found["read_as"], found["problem"] or found["note"]
        if found["n_values"] == 1 and not found["n_missing"] and not remark:
            remark = f"{name!r} is the same in all rows."
        remarks += [f"- {remark}"] if remark else []
        role = f"{role} (?)" if remark else role
        rows.append([name, role, f"{found['n_values']:,}", f"{found['n_missing']:,}"])
    title = f"{table.path}: {counted(len(text), 'row')}, {counted(len(columns), 'column')}"
    return {"n_rows": len(text), "columns": columns}, [title, *aligned(rows, left=True), *remarks]


def _samples(file: Path) -> tuple[dict[str, Any], list[str]]:
    """Describe a file of numeric features and labels."""
    import numpy as np

    from popf.tables import read

    found = read(file)
    labels, counts = np.unique(found.target, return_counts=True)
    facts = {
        "format": found.format,
        "n_samples": len(found.data),
        "n_features": found.data.shape[1],
        "labels": labels.tolist(),
        "label_counts": counts.tolist(),
        "n_missing": int(np.isnan(found.data).sum()),
    }
    names = [str(label) for label in labels]
    if found.format == "libopf" and names[0] == "0":
        names[0] = "none"
    rows = [
        ("format", found.format),
        ("samples", f"{len(found.data):,}"),
        ("features", f"{found.data.shape[1]:,}, {counted(facts['n_missing'], 'value')} missing"),
        ("labels", class_counts(names, counts)),
    ]
    return facts, [f"{file}", *aligned(rows, left=True)]


def _model(file: Path) -> tuple[dict[str, Any], list[str]]:
    """Describe a model file from its header."""
    from popf.io import describe

    known = describe(file)
    table = known["facts"].get("table")
    table = table if isinstance(table, dict) else {}
    table.pop("rows", None)  # may be many
    steps = [kind for _, kind in known["steps"][:-1]]
    categories = table.get("categories") or []
    names = [feature["name"] or f"column {i}" for i, feature in enumerate(known["features"], 1)]
    names = [f"{name} (categories)" if name in categories else name for name in names]
    size, n_rows = f"{known['file_bytes']:,} bytes", counted(known["n_samples"], "row")
    rows = [
        ("model", known["estimator"] + (f" after {', '.join(steps)}" if steps else "")),
        ("saved", f"{known['saved']} by popf {known['popf_version']}, {size}"),
        ("fitted on", f"{n_rows} of {table.get('source') or 'unknown data'}"),
        ("classes", class_counts(known["classes"], known["class_counts"]) or "none"),
        ("features", f"{len(names)}: {listed(names, 12)}"),
    ]
    if table:
        rows += [("caution", as_options(caution)) for caution in table.get("cautions") or []]
        rows += [
            ("target", str(table.get("target"))),
            ("ids", listed(table.get("ids") or ["none"])),
            *([("time", str(table["time"]))] if table.get("time") else []),
        ]
        if len(known["classes"]) == 2:
            positive = known["classes"][1 if table.get("positive") == 1 else 0]
            threshold = f"{table.get('threshold'):.4g} on the probability of {positive}"
            rows.append(("threshold", f"{threshold} ({table.get('threshold_from')})"))
    parameters = known["parameters"]
    shown = ("method", "metric", "linear_map", "solver", "random_state")
    rows += [
        ("parameters", ", ".join(f"{k}={parameters[k]}" for k in shown if k in parameters)),
        ("prototypes", f"{known['n_prototypes']:,}"),
        ("checksum", str(known["sha256"])),
    ]
    return known, [f"{file}", *aligned(rows, left=True)]
