"""``popf rank``: whom to inspect first."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popf.cli import options, scoring
from popf.cli.output import aligned, check_output, plain_warnings, show
from popf.cli.predict import decimals, writer
from popf.formatting import counted

if TYPE_CHECKING:
    from popf.table_models.ranking import Ranking
    from popf.tables import Table

EXAMPLES = """\b
Examples:
  popf rank model.popf new.csv --budget 200 -o visits.csv
  popf rank model.popf new.csv --budget 200 --value demand_billed --visit-cost 80 -o visits.csv
  popf rank model.popf new.csv -o - | head
"""
SHOWN = 10


def rank(
    model: options.Model,
    data: options.Data,
    budget: Annotated[
        int | None, typer.Option(min=1, help="How many rows can be inspected. Default: all.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What a hit in this row would bring.")
    ] = None,
    visit_cost: Annotated[
        float, typer.Option(min=0.0, help="Cost of inspecting a row; with --value.")
    ] = 0.0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The ranked rows: CSV, Parquet, or - for stdout."),
    ] = None,
    id: options.Ids = None,
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The class to find. Default: the model's.")
    ] = None,
    n_jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    na: options.Missing = None,
    progress: options.Progress = None,
    json: options.Json = False,
) -> int:
    """List the rows to inspect first, and how many hits to expect among them.

    Rows are ordered by the probability of the class to find; with --value by what a visit is expected to
    bring, probability times value minus --visit-cost, and rows that would cost more than they bring are left
    out. Hits are expected as the probabilities say, with a 95 % interval; evaluate the model first.
    """
    from popf.table_models.ranking import rank_rows
    from popf.tables.cells import find_class

    check_output(output, [model, data])
    if output == options.STDIO and json:
        raise ValueError("--json needs another --output: standard output cannot hold both.")
    if visit_cost and value is None:
        raise ValueError("--visit-cost needs --value: a cost has no meaning without a gain.")
    with plain_warnings():
        table_model = scoring.model_for(model, n_jobs)
        classes = table_model.classes
        if positive is None and not table_model.binary:
            raise ValueError(
                f"{model} has {len(classes)} classes: name the one to find by --positive."
            )
        code = table_model.layout.positive if positive is None else find_class(positive, classes)
        table = options.table(data, delimiter, encoding, decimal, na)
        ids = scoring.choose_ids(table_model, table, id)
        extra = [] if value is None else [value]
        table.need(extra, "value")
        frame, table_of_probabilities = scoring.score_all(
            table_model, table, [*ids, *extra], progress, features=True
        )
        scoring.note_training_rows(table_model, table, frame)
        probability = table_of_probabilities[:, code]
        values = None if value is None else _values(frame[value], table)
        found = rank_rows(probability, budget, values, visit_cost)
        ranked = _frame(frame, ids, found, (f"probability_{classes[code]}", probability), value)
        if output is not None:
            with writer(output) as write:
                write(ranked)
    facts = {
        "output": None if output is None else str(output),
        "n_rows": len(probability),
        "n_ranked": len(found.rows),
        "positive": classes.tolist()[code],
        "budget": budget,
        "value": value,
        "visit_cost": visit_cost,
        "expected_hits": found.expected_hits,
        "expected_hits_lower": found.lower,
        "expected_hits_upper": found.upper,
        "random_hits": found.random_hits,
        "lift": found.lift,
        "expected_gain": None if found.gains is None else float(found.gains[found.rows].sum()),
        "top": ranked.head(SHOWN).to_dict("records"),
    }
    ranked_rows = f"Ranked {counted(len(probability), 'row')} of {options.named(data)}"
    title = f"{ranked_rows}; class to find: {facts['positive']}"
    show(facts, [title, *_lines(facts, ranked)], json, error_stream=output == options.STDIO)
    return 0


def _values(column: Any, table: "Table") -> Any:
    """Read the values of hits as numbers, or name the first cell that is none."""
    import numpy as np
    import pandas

    if column.dtype.kind == "f":
        values = column.to_numpy()
    else:
        kind = table.kind(column)
        if kind.odd_row is not None:
            raise ValueError(
                f"--value: column {column.name!r} of {table.path} must hold numbers, not {kind.odd_cell!r} "
                f"(row {kind.odd_row})."
            )
        text = column.astype(str).str.strip().str.replace(table.dialect.decimal, ".", regex=False)
        values = pandas.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    odd = np.flatnonzero(~np.isfinite(values))
    if len(odd):
        raise ValueError(
            f"--value: column {column.name!r} of {table.path} holds no number in row {odd[0] + 1}: fill it "
            "in, for instance with 0."
        )
    return values


def _frame(
    frame: Any, ids: list[str], found: "Ranking", scored: tuple[str, Any], value: str | None
) -> Any:
    """Make the table of ranked rows."""
    import numpy as np
    import pandas

    from popf.tables.cells import whole

    name, probability = scored
    columns: dict[str, Any] = {"rank": np.arange(1, len(found.rows) + 1)}
    for one in ids:
        columns[one] = frame[one].to_numpy()[found.rows]
    if not ids:
        columns["row"] = found.rows + 1
    columns[name] = probability[found.rows]
    if found.gains is not None and value is not None:
        columns[value] = whole(frame[value].to_numpy()[found.rows])
        columns["expected_gain"] = found.gains[found.rows].round(6)
    return pandas.DataFrame(columns)


def _lines(facts: dict[str, Any], ranked: Any) -> list[str]:
    n, positive = facts["n_ranked"], facts["positive"]
    if not n:
        return ["  no row is expected to bring more than its visit costs"]
    interval = f"{facts['expected_hits_lower']:,} to {facts['expected_hits_upper']:,}"
    rows = [
        ("to inspect", counted(n, "row")),
        (f"expected {positive}", f"{facts['expected_hits']:.1f} (95 % interval {interval})"),
        ("at random", f"{facts['random_hits']:.1f}; lift {facts['lift']:.2f}"),
    ]
    if facts["expected_gain"] is not None:
        cost = f" after {facts['visit_cost']:g} per visit" if facts["visit_cost"] else ""
        rows.append(("expected gain", f"{facts['expected_gain']:,.2f}{cost}"))
    shown = ranked.head(SHOWN)
    cells = {
        name: decimals(shown[name].to_numpy())
        if name.startswith("probability_")
        else [f"{cell:,.2f}" if name == "expected_gain" else str(cell) for cell in shown[name]]
        for name in shown
    }
    table = [list(cells), *map(list, zip(*cells.values(), strict=True))]
    if facts["output"] == "-":
        return aligned(rows, left=True)
    lines = [*aligned(rows, left=True), "", *aligned(table)]
    if n > SHOWN:
        lines.append(f"  ... {n - SHOWN:,} more in {facts['output'] or '--output'}")
    return lines
