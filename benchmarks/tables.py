"""Tables of a summary, for the terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Row = dict[str, Any]


class Table(NamedTuple):
    """A table and what to know about it."""

    suite: str
    title: str
    note: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def tables(summary: dict[str, list[Row]]) -> list[Table]:
    """Make one table for each part of `summary` that has rows."""

    def compared(suite: str) -> list[Row]:
        return [row for row in summary["comparisons"] if row["suite"] == suite]

    candidates = [
        comparison_table(
            "table",
            "Beside the peers",
            "popf's best time divided by the peer's, both timed in turn in one process. A fit of "
            "popf is the whole fit, quitefastmst's the spanning tree alone.",
            compared("table"),
        ),
        comparison_table(
            "libopf",
            "Beside LibOPF",
            "LibOPF's times were recorded elsewhere on similar hardware, not in this run.",
            compared("libopf"),
        ),
        growth_table(summary["growth"]),
        shapes_table(summary["shapes"]),
        comparison_table(
            "shapes", "Shapes beside quitefastmst", "The same fits.", compared("shapes")
        ),
        comparison_table(
            "probability",
            "Probabilities beside labels",
            "The soft method's fit beside a fit of the forest and one prediction of its training set; "
            "`predict_proba` beside `predict`.",
            compared("probability"),
        ),
        comparison_table(
            "solvers", "Solvers", "Beside the seconds that they may take.", compared("solvers")
        ),
        comparison_table(
            "gpu",
            "On a GPU",
            "Exact, the same forest as the processor's; beside the seconds wanted, and beside all cores "
            "of the same machine.",
            compared("gpu"),
        ),
        threads_table(summary["threads"]),
        memory_table(summary["memory"]),
        start_table(summary["start"]),
    ]
    return [table for table in candidates if table.rows]


def comparison_table(suite: str, title: str, note: str, rows: list[Row]) -> Table:
    """Tabulate ratios to peers, against targets."""
    header: tuple[str, ...] = (
        "",
        "peer",
        "ratio",
        "target",
        "verdict",
        "of medians",
        "popf",
        "peer takes",
        "note",
    )
    if not any(row["target"] for row in rows):
        header = tuple(name for name in header if name not in ("target", "verdict"))
    body = []
    for row in rows:
        bound = "< " if row["note"].startswith("peer stopped") else ""
        cells = {
            "": what(row) + on_threads(row),
            "peer": row["peer"],
            "ratio": bound + number(row["ratio"]),
            "target": limit(row["target"]),
            "verdict": row["verdict"] or "",
            "of medians": number(row["ratio_of_medians"]),
            "popf": seconds(row["popf_seconds"]),
            "peer takes": seconds(row["peer_seconds"]),
            "note": row["note"],
        }
        body.append(tuple(cells[heading] for heading in header))
    return Table(suite, title, note, header, body)


def what(row: Row) -> str:
    """Name the task, with the operation where the name does not begin with it."""
    if row["task"].startswith(row["operation"]):
        return str(row["task"])
    operation = "fit and predict" if row["operation"] == "total" else row["operation"]
    return f"{operation} {row['task']}"


def on_threads(row: Row) -> str:
    """Say on how many threads, where it is not one."""
    return f", {row['threads']} threads" if row["threads"] > 1 else ""


def growth_table(rows: list[Row]) -> Table:
    """Tabulate the exponents of n."""
    body = [
        (
            f"{row['contestant']} {row['operation']}, d = {row['n_features']}" + on_threads(row),
            number(row["exponent"]),
            number(row["tail_exponent"]),
            limit(row["target"]),
            row["verdict"] or "",
            f"{row['sizes'][0]:,} to {row['sizes'][-1]:,}",
            f"{seconds(row['seconds'][0])} to {seconds(row['seconds'][-1])}",
        )
        for row in rows
    ]
    note = (
        "Time grows as n to this power (least squares in logarithms), over all n and over the four "
        "largest; the larger of the two is judged. Predictions are of n/8 samples."
    )
    header = ("", "exponent", "largest n", "target", "verdict", "n", "time")
    return Table("growth", "Growth with n", note, header, body)


def shapes_table(rows: list[Row]) -> Table:
    """Tabulate what the difficult shapes cost, in blobs of the same size."""
    body = [
        (
            f"{row['shape']}, {row['n_samples']:,} × {row['n_features']}" + on_threads(row),
            f"{row['contestant']} {row['operation']}",
            number(row["ratio_to_blobs"]),
            limit(row["target"]),
            row["verdict"] or "",
            seconds(row["seconds"]),
        )
        for row in rows
        if row["shape"] != "blobs"
    ]
    note = (
        "Each as a ratio to Gaussian blobs of the same size. The limit is our own reading of "
        '"no cliff".'
    )
    header = ("", "who", "ratio to blobs", "target", "verdict", "time")
    return Table("shapes", "Difficult shapes", note, header, body)


def threads_table(rows: list[Row]) -> Table:
    """Tabulate the speed-up over one thread."""
    body = [
        (
            f"{row['contestant']} {row['operation']} {row['task']}",
            str(row["threads"]),
            number(row["speed_up"]),
            seconds(row["seconds"]),
        )
        for row in rows
    ]
    note = "Speed-up over one thread."
    return Table("threads", "Threads", note, ("", "threads", "speed-up", "time"), body)


def memory_table(rows: list[Row]) -> Table:
    """Tabulate peak memory, in multiples of the data."""
    body = [
        (
            f"{row['contestant']} fit {row['task']}{on_threads(row)}",
            number(row["times_data"]),
            limit(row["target"]),
            row["verdict"] or "",
            f"{row['bytes'] / 2**20:,.0f} MiB",
            f"{row['data_bytes'] / 2**20:,.0f} MiB",
        )
        for row in rows
    ]
    note = (
        "The most memory a fit took beyond what the process held before it (interpreter, libraries "
        "and the data itself), in multiples of the data."
    )
    header = ("", "times the data", "target", "verdict", "peak", "data")
    return Table("memory", "Memory", note, header, body)


def start_table(rows: list[Row]) -> Table:
    """Tabulate what a user waits for at the start."""
    body = [
        (
            row["what"],
            seconds(row["seconds"]),
            "" if row["target"] is None else f"≤ {row['target']:g} s",
            row["verdict"] or "",
        )
        for row in rows
    ]
    note = "Each in a fresh process. Times are medians of several; the cold cache is met once."
    return Table("start", "Starting up", note, ("", "time", "target", "verdict"), body)


def number(value: float | None) -> str:
    """Write a ratio with as many digits as mean something."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def limit(value: float | None) -> str:
    """Write a target ratio."""
    return "" if value is None else f"≤ {value:g}"


def seconds(value: float | None) -> str:
    """Write a time in the unit that suits it."""
    if value is None:
        return "–"
    if abs(value) < 0.1:
        return f"{1000 * value:.1f} ms"
    return f"{value:.2f} s" if abs(value) < 10 else f"{value:.1f} s"


def as_text(table: Table) -> str:
    """Lay `table` out in aligned columns for a terminal."""
    lines = [table.header, *table.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.header))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))

    rule = "  ".join("-" * width for width in widths)
    return "\n".join(
        text.rstrip() for text in (table.title, line(table.header), rule, *map(line, table.rows))
    )


def as_markdown(table: Table) -> str:
    """Write `table` in Markdown."""
    lines = [table.header, tuple("---" for _ in table.header), *table.rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
