"""``popf explain``: why a row is called what it is called."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from popf.cli import options

if TYPE_CHECKING:
    from popf.table_models.model import TableModel
    from popf.tables import Table

EXAMPLES = """\b
Examples:
  popf explain model.popf new.csv --row 17
  popf explain model.popf new.csv --where consumer=C0017
"""
MOST_FEATURES = 8
LONG_PATH = 12


def explain(
    model: options.Model,
    data: options.Data,
    row: Annotated[
        int | None, typer.Option(min=1, help="Which row, counted from 1 below the names.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN=VALUE", help="The first row with this value, in place of --row."
        ),
    ] = None,
    features: Annotated[
        int, typer.Option(min=1, help="How many features to show, those that weigh most first.")
    ] = MOST_FEATURES,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    na: options.Missing = None,
    json: options.Json = False,
) -> int:
    """Show the path from a prototype, over training rows, to a row; and what the other classes offer.

    A path is as good as its longest arc is short: this is the arc that decides. Lengths are distances
    between prepared (standardised) rows; values are shown in the units of the data.
    """
    from popf.cli.output import plain_warnings, show
    from popf.table_models import explain_row, open_model

    if (row is None) == (where is None):
        raise ValueError("say which row is meant: either --row or --where.")
    with plain_warnings():
        table_model = open_model(model)
        table = options.table(data, delimiter, encoding, decimal, na)
        number, frame = _find(table_model, table, row, where)
        facts = {"row": number, **explain_row(table_model, frame)}
    show(facts, _lines(facts, features), json)
    return 0


def _find(
    table_model: "TableModel", table: "Table", row: int | None, where: str | None
) -> tuple[int, Any]:
    """Look through the table for the row; give its number and it."""
    import numpy as np

    column, _, value = (where or "").partition("=")
    if where is not None and not (column and value):
        raise ValueError(f"--where takes COLUMN=VALUE, as in consumer=C0017, not {where!r}.")
    extra = [column] if where is not None else []
    table.need(extra, "where")
    start = 0
    for frame in table.pieces(table_model.plan(table, extra)):
        if where is None and row is not None and row <= start + len(frame):
            return row, frame.iloc[[row - start - 1]]
        if where is not None:
            found = np.flatnonzero(frame[column].astype(str).str.strip() == value.strip())
            if len(found):
                return start + int(found[0]) + 1, frame.iloc[[found[0]]]
        start += len(frame)
    if where is not None:
        raise ValueError(f"no row of {table.path} has {value!r} in column {column!r}.")
    raise ValueError(f"--row {row} is beyond the end of {table.path}, which has {start:,} rows.")


def _lines(facts: dict[str, Any], n_features: int) -> list[str]:
    from popf.cli.output import columns

    label, path = facts["label"], facts["path"]
    lines = [f"Row {facts['row']} is called {label}."]
    if facts["probabilities"] is not None:
        rows = [[str(name), _probability(p)] for name, p in facts["probabilities"].items()]
        lines += ["", "Probabilities", *columns(rows)]
        if facts["positive"] is not None:
            lines += [f"  ({facts['positive']} from {facts['threshold']:.4g} on)"]
    lines += ["", *_path_lines(facts)]
    others = [
        [
            str(name),
            f"{cost:.3g}",
            "<- the best path" if str(name) == str(facts["path_label"]) else "",
        ]
        for name, cost in facts["offers"].items()
    ]
    lines += ["", "What each class offers (its shortest longest arc)"]
    lines += [line.rstrip() for line in columns(others)]
    if str(facts["path_label"]) != str(label):
        lines += [
            "",
            f"The best single path leads to {facts['path_label']}; all paths together, and the threshold, "
            f"say {label}.",
        ]
    names = list(facts["contributions"] or path[-1]["values"])[:n_features]
    lines += ["", *_value_lines(facts, names)]
    return lines


def _stations(facts: dict[str, Any]) -> list[str]:
    rows = [station["training_row"] for station in facts["path"][:-1]]
    return [*(f"training row {row}" for row in rows), f"row {facts['row']} itself"]


def _path_lines(facts: dict[str, Any]) -> list[str]:
    from popf.cli.output import columns

    lines = [f"The path, from a prototype of {facts['path_label']}"]
    rows = []
    for place, (name, station) in enumerate(zip(_stations(facts), facts["path"], strict=True)):
        length = "prototype" if station["length"] is None else f"arc {station['length']:.3g}"
        decides = "<- the longest, it decides" if place == facts["deciding_arc"] else ""
        rows.append(
            [name, "" if station["label"] is None else str(station["label"]), length, decides]
        )
    shown = columns(rows)
    return [*lines, *_shortened(shown, facts["deciding_arc"])]


def _shortened(lines: list[str], deciding: int) -> list[str]:
    """Leave out the middle of a long path, but not the arc that decides."""
    if len(lines) <= LONG_PATH:
        return lines
    kept = sorted({0, 1, deciding - 1, deciding, len(lines) - 3, len(lines) - 2, len(lines) - 1})
    shown: list[str] = []
    for place, at in enumerate(kept):
        between = at - kept[place - 1] - 1 if place else 0
        if between:
            shown.append(f"  ... {between} more")
        shown.append(lines[at])
    return shown


def _value_lines(facts: dict[str, Any], names: list[str]) -> list[str]:
    """Show the ends of the deciding arc, and of the last one, in the units of the data."""
    from popf.cli.output import columns

    at = facts["deciding_arc"]
    stations, path = _stations(facts), facts["path"]
    # The last training row is the one that reached the new row.
    places = list(dict.fromkeys([at - 1, at, len(path) - 2, len(path) - 1]))
    known = all(path[place]["values"] is not None for place in places)
    if not known:
        places = [len(path) - 1]
    shares = facts["contributions"]
    title = "In your units" if known else "The row"
    rows = [
        [
            title,
            *(stations[place] for place in places),
            *(["share of the longest arc"] if shares else []),
        ]
    ]
    for name in names:
        cells = [_cell(path[place]["values"][name]) for place in places]
        rows.append([f"  {name}", *cells, *([f"{100 * shares[name]:.0f} %"] if shares else [])])
    lines = columns(rows, indent="")
    if not known:
        lines.append(
            "(the linear map of this model does not let training rows be shown in your units)"
        )
    return lines


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    return "" if value is None else str(value)


def _probability(value: float) -> str:
    if 0.0 < value < 0.001:
        return "below 0.001"
    return "above 0.999" if 0.999 < value < 1.0 else f"{value:.3f}"
