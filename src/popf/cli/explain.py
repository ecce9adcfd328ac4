"""``popf explain``: explain the label of a row."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from popf.cli import options
from popf.cli.options import option
from popf.cli.scoring import Scoring
from popf.cli.terminal import show
from popf.formatting import aligned, shortened

EXAMPLES = """\b
Examples:
  popf explain model.popf new.csv --row 17
  popf explain model.popf new.csv --where consumer=C0017
"""
LONG_PATH, LONGEST_BAR = 12, 24


def explain(
    model: Path = options.MODEL,
    data: Path = options.DATA,
    row: int | None = option(None, "Row number, counted from 1 below the header.", min=1),
    where: str | None = option(
        None, "Explain the first row with this value, instead of --row.", metavar="COLUMN=VALUE"
    ),
    features: int = option(8, "Number of features to show, the most influential first.", min=1),
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    na: list[str] | None = options.MISSING,
    json: bool = options.JSON,
) -> int:
    """Explain the label of a row by its columns and its path.

    The log odds are the sum of a baseline, the same for every row, and the contributions of the forest and
    of each column. The path leads from a prototype through training rows to the row; its cost is the length
    of its longest arc. Lengths are distances between prepared (standardised) rows; values are shown in the
    units of the data.
    """
    from popf.table_models import explain_row

    if (row is None) == (where is None):
        raise ValueError("choose the row with either --row or --where.")
    scoring = Scoring(model, data, (delimiter, encoding, decimal, na), labels_only=True)
    number, frame = _find(scoring, row, where)
    facts = {"row": number, **explain_row(scoring.model, frame)}
    show(facts, lines_of(facts, features), json)
    return 0


def _find(scoring: Scoring, row: int | None, where: str | None) -> tuple[int, Any]:
    """Find the row in the table; return its number and a frame with this row."""
    import numpy as np

    column, _, value = (where or "").partition("=")
    if where is not None and not (column and value):
        raise ValueError(f"--where must be COLUMN=VALUE, as in consumer=C0017, not {where!r}.")
    table, extra = scoring.table, [column] if column else []
    table.need(extra, "where")
    start = 0
    for frame in table.pieces(scoring.model.column_types(table, extra)):
        if row is None:
            found = np.flatnonzero(frame[column].astype(str).str.strip() == value.strip())
        else:
            found = np.array([row - start - 1] if row <= start + len(frame) else [])
        if len(found):
            return start + int(found[0]) + 1, frame.iloc[[found[0]]]
        start += len(frame)
    if row is None:
        raise ValueError(f"no row of {table.path} has {value!r} in column {column!r}.")
    raise ValueError(f"--row {row} is beyond the end of {table.path}, which has {start:,} rows.")


def lines_of(facts: dict[str, Any], n_features: int) -> list[str]:
    """Format the result of `explain_row`."""
    best = str(facts["path_label"])
    names = [f"training row {node['training_row']}" for node in facts["path"][:-1]]
    names.append(f"row {facts['row']}")
    lines = [_label_line(facts)]
    if facts["probabilities"] is not None:
        rows = [[name, _probability(p)] for name, p in facts["probabilities"].items()]
        lines += ["", "Probabilities", *aligned(rows)]
    if facts["log_odds"] is not None:
        lines += ["", *_log_odds_lines(facts, n_features)]
    costs = [
        [name, f"{cost:.3g}", "<- best path" if name == best else ""]
        for name, cost in facts["offers"].items()
    ]
    lines += ["", f"Path from a prototype of {best}", *_path_lines(facts, names)]
    lines += ["", "Cost of the best path from each class", *aligned(costs)]
    return [*lines, *_disagreement(facts), "", *_value_lines(facts, names, n_features)]


def _label_line(facts: dict[str, Any]) -> str:
    """Return the label of the row and the rule behind it."""
    start, p = f"Row {facts['row']} is classified as {facts['label']}", facts["probabilities"]
    if p is None:
        return f"{start}."
    if facts["positive"] is None:
        return f"{start}, the most probable of {len(p)} classes."
    reaches = "reaches" if str(facts["label"]) == str(facts["positive"]) else "does not reach"
    of_positive = _probability(p[str(facts["positive"])])
    return (
        f"{start}: the probability of {facts['positive']} ({of_positive}) {reaches} the threshold "
        f"{facts['threshold']:.4g}."
    )


def _log_odds_lines(facts: dict[str, Any], n_features: int) -> list[str]:
    """Format the contributions of baseline, forest and columns, as numbers and as bars."""
    from popf.display.log_odds import LogOdds

    log_odds = LogOdds(**facts["log_odds"])
    terms = log_odds.terms(n_features, facts["path"][-1]["values"])
    unit = max(abs(share) for _, share in terms) / LONGEST_BAR or 1.0
    rows = []
    for name, share in terms:
        bar = ("+" if share > 0.0 else "-") * round(abs(share) / unit)
        rows.append([name, f"{share:+.2f}", bar.ljust(LONGEST_BAR)])
    title = f"Contributions to the log odds of {log_odds.pos_label} against {log_odds.against}"
    return [title, *aligned(rows)]


def _disagreement(facts: dict[str, Any]) -> list[str]:
    """Explain why the label is not that of the best path, if so."""
    label, best = str(facts["label"]), str(facts["path_label"])
    if label == best:
        return []
    split, p = facts["log_odds"], facts["probabilities"]
    likeliest = max(p, key=p.get)
    if likeliest == best:
        why = f"and {best} is the more probable class, but the threshold gives {label}."
    elif split is None:
        why = f"but its cost makes {label} more probable."
    else:
        columns = " and the columns" if split["features"] else ""
        why = f"but all paths{columns} together make {label} more probable."
    return ["", f"The best single path comes from {best}, {why}"]


def _path_lines(facts: dict[str, Any], names: list[str]) -> list[str]:
    """Format the arcs of the path; a long path is shortened, but always shows its longest arc."""
    deciding = facts["deciding_arc"]
    rows = []
    for position, (name, node) in enumerate(zip(names, facts["path"], strict=True)):
        length = "prototype" if node["length"] is None else f"arc {node['length']:.3g}"
        mark = "<- longest arc, the cost of the path" if position == deciding else ""
        label = "" if node["label"] is None else str(node["label"])
        rows.append([name, label, length, mark])
    lines = aligned(rows)
    if len(lines) <= LONG_PATH:
        return lines
    n = len(lines)
    kept = sorted({0, 1, deciding - 1, deciding, n - 3, n - 2, n - 1})
    shown = [lines[0]]
    for before, at in pairwise(kept):
        if at - before > 1:
            shown.append(f"  ... {at - before - 1} more")
        shown.append(lines[at])
    return shown


def _value_lines(facts: dict[str, Any], names: list[str], n_features: int) -> list[str]:
    """Format the ends of the longest arc and of the last one, in the units of the data."""
    path, deciding, shares = facts["path"], facts["deciding_arc"], facts["contributions"]
    last = len(path) - 1
    shown = list(dict.fromkeys([deciding - 1, deciding, last - 1, last]))
    known = all(path[position]["values"] is not None for position in shown)
    if not known:
        shown = [last]
    head = ["Feature values", *(names[position] for position in shown)]
    rows = [[*head, "share of the longest arc"] if shares else head]
    # Without shares of the arc the columns that add most to the log odds come first.
    added = facts["log_odds"]["features"] if facts["log_odds"] else {}
    order = list(shares or {**added, **path[-1]["values"]})
    for name in order[:n_features]:
        cells = [_cell(path[position]["values"][name]) for position in shown]
        rows.append([f"  {name}", *cells, *([f"{100 * shares[name]:.0f} %"] if shares else [])])
    lines = aligned(rows, indent="")
    if not known:
        lines.append(
            "(training rows are not shown, as the preparation of this model cannot be inverted)"
        )
    return lines


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    return "" if value is None else shortened(str(value))


def _probability(value: float) -> str:
    if 0.0 < value < 0.001:
        return "below 0.001"
    return "above 0.999" if 0.999 < value < 1.0 else f"{value:.3f}"
