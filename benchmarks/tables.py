"""Build tables from the records of a run: ratios, exponents, speed-ups, memory."""

import math
import statistics
from collections import defaultdict
from typing import NamedTuple

from .contestants import POPF


class Table(NamedTuple):
    """A table of strings with a title."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def without_empty_columns(self) -> "Table":
        """Drop columns that are empty in every row."""
        used = [i for i in range(len(self.header)) if any(row[i] for row in self.rows)]
        header, *rows = (tuple(row[i] for i in used) for row in (self.header, *self.rows))
        return Table(self.title, header, rows)

    def as_text(self) -> str:
        """Format the table as aligned text."""
        columns = zip(self.header, *self.rows, strict=True)
        widths = [max(map(len, column)) for column in columns]
        lines = [self.header, tuple("-" * width for width in widths), *self.rows]
        cells = (
            (cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
        )
        return "\n".join([self.title, *("  ".join(line).rstrip() for line in cells)])

    def as_markdown(self) -> str:
        """Format the table in Markdown, without the title."""
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def tables(records):
    """Build the tables of every suite in `records`."""
    by_suite = defaultdict(list)
    for record in records:
        by_suite[record["task"]["suite"]].append(record)
    made = [
        table for suite, some in by_suite.items() for table in MAKERS.get(suite, compared)(some)
    ]
    return [table for table in made if table.rows]


def values(record, contestant, operation):
    """Return all values of an operation of a contestant."""
    recorded = [
        seconds
        for peer, what, seconds in record["task"]["recorded"]
        if (peer, what) == (contestant, operation)
    ]
    return recorded or [
        value["value"]
        for value in record["values"]
        if (value["contestant"], value["operation"]) == (contestant, operation)
    ]


def best(record, contestant, operation):
    """Return the smallest value (noise only adds to a time), or None."""
    return min(values(record, contestant, operation), default=None)


def compared(records):
    """Tabulate the ratio of the first contestant's time to that of each peer."""
    rows = []
    for record in records:
        task = record["task"]
        subject, *peers = task["contestants"]
        peers += dict.fromkeys(peer for peer, _, _ in task["recorded"] if peer != "wanted")
        for operation in task["operations"]:
            what = f"{subject} {operation} {task['name'].removeprefix(operation).strip()}"
            ours, found = best(record, subject, operation), []
            for peer in peers:
                theirs, bound = best(record, peer, operation), ""
                if peer in record["timed_out"]:
                    theirs, bound = record["timed_out"][peer], "> "
                reason = record["missing"].get(peer) or record["failed"].get(peer)
                if theirs is not None or reason:
                    ratio = number(ours / theirs) if ours and theirs else ""
                    found.append((ratio, seconds(ours), reason or bound + seconds(theirs), peer))
            rows += [(what, *row) for row in found or [("", seconds(ours), "", "")] if any(row)]
    title = records[0]["task"]["suite"].capitalize()
    return [Table(title, ("", "ratio", "time", "peer's time", "peer"), rows)]


def growth(records):
    """Tabulate the exponent e of time ~ n^e."""
    curves = defaultdict(dict)
    for record, who, operation in measured(records):
        data = record["task"]["data"]
        curves[data["n_features"], who, operation][data["n_samples"]] = best(record, who, operation)
    rows = []
    for (d, who, operation), curve in sorted(curves.items()):
        sizes = sorted(curve)
        rows.append(
            (
                f"{who} {operation}, d = {d}",
                number(exponent(curve, sizes)),
                f"{sizes[0]:,} to {sizes[-1]:,}",
                f"{seconds(curve[sizes[0]])} to {seconds(curve[sizes[-1]])}",
            )
        )
    return [Table("Growth with n", ("", "exponent", "n", "time"), rows)]


def exponent(curve, sizes):
    """Return the least-squares slope of log time over log n, None for a single n."""
    if len(sizes) < 2:
        return None
    logs = [math.log(n) for n in sizes], [math.log(curve[n]) for n in sizes]
    return statistics.linear_regression(*logs).slope


def threads(records):
    """Tabulate times by number of threads, and the best speed-up over one thread."""
    found = defaultdict(dict)
    for record, who, operation in measured(records):
        key = f"{who} {operation} {record['task']['name']}"
        found[key][record["task"]["threads"]] = best(record, who, operation)
    counts = sorted({count for row in found.values() for count in row})
    rows = [
        (
            name,
            *(seconds(row.get(count)) for count in counts),
            number(row[1] / min(row.values())) if 1 in row else "",
        )
        for name, row in found.items()
    ]
    header = ("threads", *(str(count) for count in counts), "best speed-up")
    return [Table("Threads", header, rows)]


def start(records):
    """Tabulate start-up times in fresh processes: medians, except for the cold cache, timed once."""
    rows = []
    for record in records:
        name = record["task"]["name"]
        for who in record["task"]["contestants"]:
            if imports := values(record, who, "import"):
                rows.append((f"import of {who}", seconds(statistics.median(imports))))
            for what, operation in (
                ("nothing cached", "cold first fit"),
                ("nothing cached, then the first prediction", "cold first predict"),
            ):
                if cold := values(record, who, operation):
                    rows.append((f"{name}, {what}", seconds(cold[0])))
            pairs = zip(
                values(record, who, "warm first fit"),
                values(record, who, "warm second fit"),
                strict=True,
            )
            if extra := [first - second for first, second in pairs]:
                rows.append(
                    (
                        f"{name} in a new process, beyond the second",
                        seconds(statistics.median(extra)),
                    )
                )
    return [Table("Starting up", ("", "time"), rows)]


def absolute(records):
    """Tabulate the times of fits and predictions, and of one prediction."""
    rows = []
    for record in records:
        task = record["task"]
        for who in task["contestants"]:
            times = [best(record, who, operation) for operation in ("fit", "predict")]
            if all(times):
                one = f"{1e3 * times[1] / task['data']['n_queries']:.2g} ms"
                rows.append((f"{who}, {task['name']}", *map(seconds, times), one))
    title = records[0]["task"]["suite"].capitalize()
    return [Table(title, ("", "fit", "predictions", "one of them"), rows)]


def alone(records):
    """Tabulate time and memory of fits in separate processes, and whether the forests are equal."""
    digests = defaultdict(dict)
    for _, value in first_values(records):
        digests[value["data of"]].setdefault(value.get("digest"), value["contestant"])
    rows = []
    for record, value in sorted(first_values(records, "fit", "predict"), key=size):
        known = [digest for digest in digests[value["data of"]] if digest]
        same = (
            "" if "digest" not in value else "yes" if len(known) == 1 else f"NO: {value['digest']}"
        )
        cluster = [f"{value['n_blocks']}, {value['n_pairs']}"] if "n_blocks" in value else [""]
        rows.append(
            (
                f"{record['task']['name']}{prediction_of(record, value)}",
                place(record, value),
                seconds(best(record, value["contestant"], value["operation"])),
                memory(value),
                *cluster,
                mib(value.get("moved")),
                same,
            )
        )
    header = ("samples", "", "time", "memory, MiB", "blocks, pairs", "moved, MiB", "same forest")
    title = records[0]["task"]["suite"].capitalize()
    return [Table(title, header, rows).without_empty_columns()]


def prediction_of(record, value):
    """Return what was predicted, as text; nothing for a fit."""
    n_queries = record["task"]["data"]["n_queries"]
    return f", predict {n_queries:,}" if value["operation"] == "predict" else ""


def size(fit):
    """Return the numbers of features and samples, as a sort key."""
    data = fit[0]["task"]["data"]
    return data["n_features"], data["n_samples"]


def place(record, value):
    """Return what a fit of popf ran on: a number of cores, a GPU, processes or a file."""
    count = record["task"]["threads"]
    if value["contestant"] == POPF:
        return f"{count} core{'s' * (count > 1)}"
    return value["contestant"].removeprefix("popf ").removeprefix("on ")


def measured(records):
    """Yield (record, contestant, operation) for all combinations that have values."""
    for record in records:
        for who in record["task"]["contestants"]:
            for operation in record["task"]["operations"]:
                if values(record, who, operation):
                    yield record, who, operation


def first_values(records, *operations):
    """Yield (record, value) for the first fit, or other operations, of each contestant, with its data."""
    for record in records:
        for value in record["values"]:
            if value["operation"] in (operations or ("fit",)) and value["round"] == 0:
                yield record, {**value, "data of": repr(record["task"]["data"])}


def forests_that_differ(records):
    """Return the names of data on which contestants grew different forests."""
    found = defaultdict(set)
    for record, value in first_values(records):
        if "digest" in value:
            found[record["task"]["name"], value["data of"]].add(value["digest"])
    return [name for (name, _), digests in found.items() if len(digests) > 1]


def memory(value):
    """Format the memory of a fit in MiB, and as a multiple of the data."""
    if "data" not in value:
        return ""
    parts = []
    for key, where in (
        ("memory", ""),
        ("worker_memory", " a process"),
        ("device_memory", " on the GPU"),
    ):
        if (amount := value.get(key)) is not None:
            parts.append(f"{mib(amount)} ({amount / value['data']:.1f} ×){where}")
    return ", ".join(parts)


def mib(amount):
    """Format bytes as MiB."""
    return "" if amount is None else f"{amount / 2**20:,.0f}"


def number(value):
    """Format a ratio with its significant digits."""
    if value is None:
        return ""
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def seconds(value):
    """Format a time in seconds or milliseconds."""
    if value is None:
        return ""
    if value < 0.1:
        return f"{1e3 * value:.1f} ms"
    return f"{value:.2f} s" if value < 10.0 else f"{value:.1f} s"


MAKERS = {
    "growth": growth,
    "threads": threads,
    "pooled-threads": threads,
    "probability": absolute,
    "large-forest": absolute,
    "classes": absolute,
    "gpu": absolute,
    "start": start,
    "memory": alone,
    "scaling": alone,
    "dask": alone,
    "out-of-core": alone,
    "same-forest": alone,
}
