"""``popf rank``: rank the rows to inspect first."""

from pathlib import Path
from typing import Any

from popf.cli import options
from popf.cli.options import column, option
from popf.cli.scoring import Scoring, check_table_output, id_columns
from popf.cli.terminal import STDIO, more_rows, named, show
from popf.formatting import aligned, counted, decimals

EXAMPLES = """\b
Examples:
  popf rank model.popf new.csv --budget 200 -o visits.csv
  popf rank model.popf new.csv --budget 200 --value demand_billed --visit-cost 80 -o visits.csv
  popf rank model.popf new.csv -o - | head
"""
SHOWN = 10


def rank(
    model: Path = options.MODEL,
    data: Path = options.DATA,
    budget: int | None = option(None, "Number of rows that can be inspected. Default: all.", min=1),
    value: str | None = column(None, "Column with the gain of a hit in each row."),
    visit_cost: float = option(0.0, "Cost of inspecting a row; needs --value.", min=0.0),
    output: Path | None = options.output(
        None, "File for the ranked rows: CSV or Parquet; - for stdout."
    ),
    id: list[str] | None = options.IDS,
    all_columns: bool = option(
        False,
        "Copy all columns to the output, so that `popf evaluate` can judge the visits.",
        "--all-columns",
    ),
    positive: str | None = options.POSITIVE,
    n_jobs: int = options.JOBS,
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    na: list[str] | None = options.MISSING,
    progress: bool | None = options.PROGRESS,
    json: bool = options.JSON,
) -> int:
    """Rank the rows to inspect first, and estimate the hits.

    Rows are ranked by the probability of the positive class. With --value they are ranked by the expected
    gain, probability times value minus --visit-cost, and rows with no expected gain are left out. The
    expected number of hits and its 95 % interval assume calibrated probabilities: evaluate the model first.
    For a model of `popf fit --time` the interval also allows for a shift such as between earlier periods.
    """
    import numpy as np

    from popf.table_models.ranking import rank_rows
    from popf.tables.columns import whole
    from popf.tables.formats import table_writer

    check_table_output(output, [model, data], json)
    if visit_cost and value is None:
        raise ValueError("--visit-cost needs --value: a cost has no meaning without a gain.")
    scoring = Scoring(model, data, (delimiter, encoding, decimal, na), n_jobs)
    classes = scoring.model.classes
    if positive is None and not scoring.model.binary:
        raise ValueError(
            f"{model} has {len(classes)} classes: choose the positive one with --positive."
        )
    code = scoring.choose_class(positive)
    name = f"probability_{classes[code]}"
    gain = [] if value is None else [value, "expected_gain"]
    ids = scoring.choose_ids(id, ["rank", name, *gain])
    if all_columns:
        scoring.choose_ids(scoring.table.names, ["rank", name, *gain[1:]])  # for names that clash
    scoring.table.need([value] if value else [], "value")
    values = None if value is None else scoring.numbers(value)
    frame, probabilities = scoring.score_all(ids, progress)
    probability = probabilities[:, code]
    expected = rank_rows(
        probability, budget, values, visit_cost, scoring.model.layout.spread
    )._asdict()
    rows, gains = expected.pop("rows"), expected.pop("gains")
    ranked = id_columns(frame[ids].iloc[rows], rows)
    ranked.insert(0, "rank", np.arange(1, len(rows) + 1))
    ranked[name] = probability[rows]
    if values is not None:
        ranked[gain[0]], ranked[gain[1]] = whole(values)[rows], gains[rows].round(6)
    if output is not None:
        listed = ranked
        if all_columns:
            others = scoring.table.text().iloc[rows].set_axis(ranked.index)
            listed = ranked.join(others[[each for each in others if each not in ranked]])
        with table_writer(output, [name]) as write:
            write(listed)
    facts = {
        "output": None if output is None else str(output),
        "n_rows": len(probability),
        "n_ranked": len(rows),
        "positive": classes.tolist()[code],
        "budget": budget,
        "value": value,
        "visit_cost": visit_cost,
        **expected,
        "expected_gain": None if gains is None else float(gains[rows].sum()),
        "top": ranked.head(SHOWN).to_dict("records"),
    }
    ranked_rows = f"Ranked {counted(len(probability), 'row')} of {named(data)}"
    title = f"{ranked_rows}; positive class: {facts['positive']}"
    show(facts, [title, *_lines(facts, ranked)], json, error_stream=output == STDIO)
    return 0


def _lines(facts: dict[str, Any], ranked: Any) -> list[str]:
    n = facts["n_ranked"]
    if not n:
        return ["  no row has an expected gain above 0"]
    interval = f"{facts['expected_hits_lower']:,} to {facts['expected_hits_upper']:,}"
    rows = [
        ("rows to inspect", f"{n:,}"),
        ("expected hits", f"{facts['expected_hits']:.1f} (95 % interval {interval})"),
        ("hits at random", f"{facts['random_hits']:.1f} (lift {facts['lift']:.2f})"),
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
        lines.append(more_rows(n - SHOWN, facts["output"]))
    return lines
