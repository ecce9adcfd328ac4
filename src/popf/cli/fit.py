"""``popf fit``: fit a model to a table."""

from pathlib import Path
from typing import Any

from popf.cli import options
from popf.cli.evaluate import evaluation_facts, evaluation_lines, importances_line
from popf.cli.options import column, option
from popf.cli.terminal import (
    as_options,
    check_output,
    class_counts,
    column_facts,
    named,
    open_data,
    say,
    show,
    stages,
)
from popf.files import explain_write_errors
from popf.formatting import aligned, counted, listed

EXAMPLES = """\b
Examples:
  popf fit data.csv --target stolen -o model.popf
  popf fit data.csv --target stolen --id consumer -o model.popf
  popf fit data.csv --target stolen --positive yes --cost-fp 1 --cost-fn 20 -o model.popf
  popf fit data.parquet --target species --test-size 0.25 -o model.popf
  popf fit visits.csv --target theft --time month --test-size 0.25 -o model.popf
"""


def fit(
    data: Path = options.DATA,
    target: str = column(..., "Column with the labels."),
    output: Path = options.output(..., "Model file to write."),
    id: list[str] | None = column(
        None, "Id column, never a feature; rows with equal ids are held out together. Repeatable."
    ),
    drop: list[str] | None = options.DROP,
    categorical: list[str] | None = column(
        None, "Numeric column to treat as categories. Repeatable."
    ),
    readings: list[str] | None = option(
        None,
        "Columns of readings in order of time, such as kwh_1:kwh_12, to make features of. Repeatable.",
        metavar="FIRST:LAST",
    ),
    positive: str | None = option(
        None, "Positive class. Default: 1, true or yes; else the rarer of two.", metavar="LABEL"
    ),
    threshold: float | None = option(
        None, "Probability from which a row is predicted positive. Default: 0.5."
    ),
    cost_fp: float | None = option(
        None, "Cost of a false alarm (false positive). Both costs together choose the threshold."
    ),
    cost_fn: float | None = options.COST_FN,
    one_per: str | None = column(
        None, "Keep one random row for each value, such as one visit per patient."
    ),
    sample_weight: str | None = column(None, "Column with row weights; only their ratios matter."),
    method: str = option("pooled", "Method for the probabilities: pooled, forest or paper."),
    linear_map: str = option(
        "auto",
        "Linear map of the features: none, weights, whitening, discriminant, or auto for the best.",
    ),
    metric: str = option("euclidean", "Distance metric."),
    scale: bool = option(
        True,
        "Standardise features, for the paper's method and other metrics.",
        "--scale/--no-scale",
    ),
    time: str | None = column(
        None, "Time of each row, never a feature: --test-size then takes the latest rows."
    ),
    test_size: float | None = option(
        None,
        "Fraction of the rows to test on, such as 0.25; rows with equal ids stay together.",
    ),
    seed: int = options.seed("Seed for everything random."),
    n_jobs: int = options.JOBS,
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    na: list[str] | None = options.MISSING,
    progress: bool | None = options.PROGRESS,
    json: bool = options.JSON,
) -> int:
    """Fit a model to a table of labelled rows.

    Text columns are categories or dates, and cells may be missing. The model file contains the training rows:
    share it only with people who may see them.
    """
    check_output(output, [data])
    from popf.io import save
    from popf.table_models import FitOptions, fit_table

    wanted = FitOptions(
        target=target,
        id=id or (),
        drop=drop or (),
        categorical=categorical or (),
        readings=readings or (),
        sample_weight=sample_weight,
        scale=scale,
        positive=positive,
        threshold=threshold,
        cost_fp=cost_fp,
        cost_fn=cost_fn,
        method=method,
        linear_map=linear_map,
        metric=metric,
        seed=seed,
        n_jobs=n_jobs,
        one_per=one_per,
        time=time,
        test_size=test_size,
    )
    with stages(progress) as stage:
        table = open_data(data, delimiter, encoding, decimal, na)
        fitted = fit_table(table, wanted, stage)
        table_model, example = fitted.table_model, fitted.rows.frame.head(1)
        stage(f"writing {output}")
        with explain_write_errors(output):
            save(table_model.model, output, X=example, facts=table_model.layout.as_facts())
    for note in [*fitted.rows.notes, *table_model.layout.cautions]:
        say(f"note: {as_options(note)}")
    facts = {
        "output": str(output),
        "n_rows": sum(fitted.counts.values()),
        "n_rows_read": fitted.rows.n_read,
        "n_zero_weight": fitted.rows.n_weightless,
        "classes": list(fitted.counts),
        "class_counts": list(fitted.counts.values()),
        "gaps": fitted.gaps,
        "columns": column_facts(fitted.rows.columns),
        "readings": fitted.rows.readings,
        "positive": table_model.positive,
        "threshold": table_model.threshold,
        "threshold_from": table_model.layout.threshold_from if table_model.binary else None,
        "cost_per_row": fitted.costs,
        "held_out": fitted.held_out,
        "linear_map": getattr(table_model.final, "linear_map_", None),
        "importances": fitted.importances,
        "cautions": [as_options(caution) for caution in table_model.layout.cautions],
        "n_prototypes": len(table_model.final.opf_.prototypes_),
        "test": None if fitted.test is None else evaluation_facts(table_model, *fitted.test, seed),
    }
    title = f"Fitted {named(data)} and wrote {output}; {table_model.rule}"
    show(facts, [title, *_lines(facts)], json)
    return 0


def _held_out_lines(held_out: dict[str, dict[str, float]]) -> list[str]:
    """Format the held-out scores of the model and of its parts."""
    names = {"pool": "the model", "prior": "class frequencies"}
    parts = ["pool", *(part for part in held_out if part not in names), "prior"]
    rows = [["", "accuracy", "ROC AUC", "log loss"]]
    for part in parts if len(held_out) > 3 else ["pool", "prior"]:
        scores = held_out[part]
        cells = [f"{scores[name]:.3f}" for name in ("accuracy", "auc", "log_loss")]
        rows.append([names.get(part, f"  {part} alone"), *cells])
    lines = aligned(rows)
    if len(rows) > 3 and held_out["pool"]["log_loss"] > min(
        held_out[part]["log_loss"] for part in parts[1:]
    ):
        lines.append(
            "  The model is scored on rows that had no say in its weights, so a part may score better."
        )
    return lines


def _column_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """List the columns by the role in which they were read."""
    titles = {"number": "numbers", "category": "categories", "date": "dates", "id": "ids"}
    by_title: dict[str, list[str]] = {}
    for name, found in facts["columns"].items():
        role = found["read_as"]
        n_values = f" ({counted(found['n_values'], 'value')})" if role == "category" else ""
        by_title.setdefault(titles.get(role, role), []).append(name + n_values)
    return [
        (title, f"{len(names)}: {listed(names, 12)}" if len(names) > 1 else names[0])
        for title, names in by_title.items()
    ]


def _lines(facts: dict[str, Any]) -> list[str]:
    counts = class_counts(facts["classes"], facts["class_counts"])
    read, costs = facts["n_rows_read"], facts["cost_per_row"]
    of_all = f" of {read:,}" if read > facts["n_rows"] else ""
    rows = [("rows", f"{facts['n_rows']:,}{of_all} ({counts})")]
    if facts["n_zero_weight"]:
        rows.append(("left out", f"{counted(facts['n_zero_weight'], 'row')} of weight 0"))
    rows += _column_rows(facts)
    if facts["readings"]:
        of_readings = facts["readings"]
        rows.append(("readings", f"{len(of_readings)}: {of_readings[0]} to {of_readings[-1]}"))
    if facts["gaps"]:
        total = counted(sum(facts["gaps"].values()), "cell")
        gaps = listed([f"{name} ({n:,})" for name, n in facts["gaps"].items()], 12)
        rows.append(("missing", f"{total} in {gaps}"))
    if facts["linear_map"]:
        rows.append(("linear map", facts["linear_map"]))
    if facts["positive"] is not None:
        rows.append(("threshold", f"{facts['threshold']:.4g} ({facts['threshold_from']})"))
    if costs:
        others = f"at 0.5: {costs['at_half']:.4g}, all negative: {costs['all_negative']:.4g}"
        others += f", all positive: {costs['all_positive']:.4g}"
        rows.append(("cost per row", f"{costs['at_threshold']:.4g} ({others})"))
    if facts["importances"]:
        rows.append(("driven by", importances_line(facts["importances"])))
    lines = aligned(rows, left=True)
    if facts["held_out"]:
        lines += ["", "Cross-validation on the training rows", *_held_out_lines(facts["held_out"])]
    if facts["test"] is not None:
        title = f"Evaluation on {counted(facts['test']['n_rows'], 'test row')}"
        lines += ["", title, *evaluation_lines(facts["test"])]
    return [*lines, "", f"Next: popf predict {facts['output']} new.csv -o scored.csv"]
