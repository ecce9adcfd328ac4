"""Tables of the page on scaling: time and memory over n and over d, and fits from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .contestants import FROM_FILE
from .curves import Fit
from .tables import Table, seconds

#: What is told of memory: key of the facts, and how a column says it.
MEMORY = (("memory", ""), ("device_memory", ", device"), ("worker_memory", ", largest worker"))


def tables_over_n(fits: list[Fit]) -> list[Table]:
    """Tabulate time, then memory, over n for each number of features that has several sizes."""
    found = []
    measured = [fit for fit in fits if fit.who != FROM_FILE]
    for d in sorted({fit.d for fit in measured}):
        these = [fit for fit in measured if fit.d == d]
        places = by_place(these)
        these = [fit for fit in these if len(places[fit.where]) > 2]
        if these:
            found += both(these, f"d = {d}", lambda fit: fit.n, "samples")
    return found


def tables_over_d(fits: list[Fit]) -> list[Table]:
    """Tabulate time, then memory, over d for each number of samples that has several widths."""
    found = []
    for n in sorted({fit.n for fit in fits}):
        these = [fit for fit in fits if fit.n == n and fit.who != FROM_FILE]
        places = by_place(these)
        these = [fit for fit in these if len(places[fit.where]) > 2]
        if these:
            found += both(these, f"n = {n:,}", lambda fit: fit.d, "features")
    return found


def by_place(fits: Iterable[Fit]) -> dict[str, list[Fit]]:
    """Sort fits by what they ran on."""
    places: dict[str, list[Fit]] = {}
    for fit in fits:
        places.setdefault(fit.where, []).append(fit)
    return places


def both(fits: list[Fit], fixed: str, size: Callable[[Fit], int], name: str) -> list[Table]:
    """Tabulate time and memory of `fits` over their `size`."""
    places = by_place(fits)
    sizes = sorted({size(fit) for fit in fits})
    found = {where: {size(fit): fit for fit in these} for where, these in places.items()}
    rows = [
        (
            f"{s:,}",
            *(seconds(found[where][s].seconds) if s in found[where] else "" for where in places),
        )
        for s in sizes
    ]
    time = Table("scaling", f"Time of a fit, {fixed}", "", (name, *places), rows)
    columns = [
        (where, key, where_in)
        for where, these in places.items()
        for key, where_in in MEMORY
        if any(key in fit.facts for fit in these)
    ]
    if not columns:
        return [time]
    header = [where + place_of(key, said, places[where]) for where, key, said in columns]
    rows = [
        (f"{s:,}", *(amount(found[where].get(s), key) for where, key, _ in columns)) for s in sizes
    ]
    return [time, Table("scaling", f"Memory of a fit, {fixed}", "", (name, *header), rows)]


def place_of(key: str, said: str, fits: list[Fit]) -> str:
    """Say whose memory it is, where a fit has several."""
    if key == "memory" and "worker_memory" in fits[0].facts:
        return ", client"
    return ", host" if key == "memory" and "device_memory" in fits[0].facts else said


def amount(fit: Fit | None, key: str) -> str:
    """Write memory in MiB, and in multiples of the data."""
    if fit is None or key not in fit.facts:
        return ""
    value, data = fit.facts[key], fit.facts["data"]
    return f"{value / 2**20:,.0f} ({value / data:.1f} ×)"


def file_table(fits: list[Fit]) -> Table:
    """Tabulate fits from files beside plain ones."""
    rows = []
    for fit in sorted(fits, key=lambda fit: (fit.d, fit.n)):
        if fit.who != FROM_FILE:
            continue
        plain: list[Fit | None] = [
            other
            for other in fits
            if (other.n, other.d, other.threads) == (fit.n, fit.d, fit.threads)
            and other.where.endswith(("core", "cores"))
        ]
        (beside,) = plain[:1] or [None]
        same = beside is not None and beside.facts.get("digest") == fit.facts["digest"]
        rows.append(
            (
                f"{fit.n:,} × {fit.d}",
                f"{fit.facts['data'] / 2**20:,.0f}",
                *time_and_memory(beside),
                *time_and_memory(fit),
                f"{fit.facts['n_blocks']}, {fit.facts['n_pairs']}",
                "yes" if same else "NO" if beside else "not compared",
            )
        )
    header = (
        "samples",
        "data, MiB",
        "plain",
        "MiB",
        "from a file",
        "MiB",
        "blocks, pairs",
        "same forest",
    )
    return Table("out-of-core", "From files", "", header, rows)


def time_and_memory(fit: Fit | None) -> tuple[str, str]:
    """Write the two cells of a fit."""
    if fit is None:
        return "", ""
    return seconds(fit.seconds), f"{fit.facts['memory'] / 2**20:,.0f}"
