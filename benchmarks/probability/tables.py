"""The summary as tables for a terminal."""

from __future__ import annotations

from typing import Any

from ..tables import Table
from .contestants import MAPPED, SOFT
from .measure import METRICS

OURS = (SOFT, MAPPED)


def tables(summary: dict[str, Any]) -> list[Table]:
    """Make the tables of every kind of dataset."""
    made = []
    for kind, part in summary.items():
        made += [
            overall_table(kind, part),
            dataset_table(kind, part),
            criteria_table(kind, part),
            worse_table(kind, part),
        ]
    return [table for table in made if table.rows]


def overall_table(kind: str, part: dict[str, Any]) -> Table:
    """Tabulate the means over datasets, best log loss first, with ranks and tests."""
    header = (
        *("", *METRICS, "rank by log loss", "by ECE"),
        *(text for ours in OURS for text in (f"{ours} wins : loses", "p")),
        *("datasets", "fit", "warnings"),
    )
    rows = []
    by_loss = sorted(part["overall"].items(), key=lambda item: item[1]["log loss"])
    for name, means in by_loss:
        tests = [part["against"][ours]["log loss"].get(name) for ours in OURS]
        rows.append(
            (
                name,
                *(f"{means[metric]:.4f}" for metric in METRICS),
                *(optional(part["ranks"][of].get(name), ".2f") for of in ("log loss", "ECE")),
                *(text for test in tests for text in tested(test)),
                str(means["datasets"]),
                f"{1e3 * means['fit']:.0f} ms",
                f"{means['warnings']:.1f}",
            )
        )
    seeds = sorted(set(part["n_seeds"].values()))
    counted = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    title = f"Means over {len(part['means'])} {kind} datasets, {counted} seed(s) each"
    if part["failed"]:
        failures = ", ".join(f"{name} {count}" for name, count in part["failed"].items())
        title += f"; failed fits: {failures}"
    return Table("probability", title, "", header, rows)


def tested(test: dict[str, Any] | None) -> tuple[str, str]:
    """Say how often ours wins and loses, and how likely that is by chance."""
    if test is None:
        return "", ""
    return f"{test['wins']} : {test['losses']}", optional(test["p"], ".2g")


def dataset_table(kind: str, part: dict[str, Any]) -> Table:
    """Tabulate the mean log loss of everyone on every dataset."""
    names = list(part["overall"])
    rows = [
        (dataset, *(optional(means.get(name, {}).get("log loss"), ".3f") for name in names))
        for dataset, means in part["means"].items()
    ]
    return Table("probability", f"Mean log loss, {kind}", "", ("", *names), rows)


def criteria_table(kind: str, part: dict[str, Any]) -> Table:
    """Tabulate what is asked of ours."""
    rows = [
        (
            entry["criterion"],
            f"{entry['value']:.4g}",
            f"{entry['limit']:.4g}",
            "met" if entry["met"] else "MISSED",
            str(len(entry["worse"])),
        )
        for entry in part["criteria"]
    ]
    header = ("criterion", "value", "limit", "", "datasets above it")
    return Table("probability", f"Criteria, {kind}", "", header, rows)


def worse_table(kind: str, part: dict[str, Any]) -> Table:
    """Tabulate the datasets that would miss a criterion if they were alone."""
    criteria = part["criteria"]
    names = [name for name in part["means"] if any(name in entry["worse"] for entry in criteria)]

    def cell(entry: dict[str, Any], name: str) -> str:
        pair = entry["worse"].get(name)
        return "" if pair is None else f"{pair[0]:.4f} > {pair[1]:.4f}"

    rows = [(name, *(cell(entry, name) for entry in criteria)) for name in names]
    header = ("", *(entry["criterion"] for entry in criteria))
    return Table("probability", f"Datasets above a limit, {kind}", "", header, rows)


def optional(value: float | None, form: str) -> str:
    """Format a number that may be missing."""
    return "–" if value is None else format(value, form)
