"""From single values to ratios, growth exponents and verdicts. Pure functions of the records."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from typing import Any

from .contestants import POPF
from .suites import (
    COLD_LIMIT,
    GROWTH_LIMIT,
    IMPORT_LIMIT,
    MEMORY_LIMIT,
    SHAPE_LIMIT,
    WARM_LIMIT,
)

Record = dict[str, Any]
Row = dict[str, Any]


def summarise(records: list[Record], scale: str) -> dict[str, list[Row]]:
    """Make everything that is derived from `records`; verdicts only at full scale."""
    by_suite: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_suite[record["task"]["suite"]].append(record)
    summary = {
        "comparisons": [row for record in records for row in comparisons(record)],
        "growth": growth(by_suite["growth"]),
        "shapes": shapes(by_suite["shapes"]),
        "threads": threads(by_suite["threads"]),
        "memory": memory(by_suite["memory"]),
        "start": start(by_suite["start"]),
    }
    if scale != "full":
        for rows in summary.values():
            for row in rows:
                if row.get("verdict"):
                    row["verdict"] = "not judged"
    return summary


def values(record: Record, contestant: str, operation: str) -> list[float]:
    """Every value of a contestant's operation; ``"total"`` is fit and predict together."""
    if operation == "total":
        pairs = zip(
            values(record, contestant, "fit"), values(record, contestant, "predict"), strict=False
        )
        return [fit + predict for fit, predict in pairs]
    recorded = [
        seconds
        for peer, name, seconds in record["task"]["recorded"]
        if (peer, name) == (contestant, operation)
    ]
    return recorded or [
        value["value"]
        for value in record["values"]
        if (value["contestant"], value["operation"]) == (contestant, operation)
    ]


def best(record: Record, contestant: str, operation: str) -> float | None:
    """Take the least value: noise only ever adds to a time."""
    return min(values(record, contestant, operation), default=None)


def verdict(measured: float | None, limit: float | None) -> str | None:
    """``"met"`` or ``"not met"``; nothing where there is no target or no measurement."""
    if limit is None or measured is None:
        return None
    return "met" if measured <= limit else "not met"


def divided(numerator: float | None, denominator: float | None) -> float | None:
    """Divide, where both are known."""
    if numerator is None or not denominator:
        return None
    return numerator / denominator


def comparisons(record: Record) -> list[Row]:
    """Put popf beside the peers named in the task's targets."""
    task = record["task"]
    rows = []
    for target in task["targets"]:
        operation, peer = target["operation"], target["peer"]
        subject = target.get("subject", POPF)  # not in files of before
        ours, theirs = values(record, subject, operation), values(record, peer, operation)
        recorded = {name for name, _, _ in task["recorded"]}
        note = "against a recorded figure" if peer in recorded else ""
        if peer in record["timed_out"]:
            # It took longer than that, so the true ratio is smaller still.
            theirs, note = [record["timed_out"][peer]], "peer stopped at the time limit"
        for name in (peer, subject):
            if name in record["missing"] or name in record["failed"]:
                note = f"{name}: {record['missing'].get(name) or record['failed'][name]}"
        ratio = divided(min(ours, default=None), min(theirs, default=None))
        medians = (statistics.median(side) if side else None for side in (ours, theirs))
        row = {
            "suite": task["suite"],
            "task": task["name"],
            "threads": task["threads"],
            "operation": operation,
            "peer": peer,
            "subject": subject,
            "popf_seconds": min(ours, default=None),
            "peer_seconds": min(theirs, default=None),
            "ratio": ratio,
            "ratio_of_medians": divided(*medians),
            "target": target["ratio"],
            "verdict": verdict(ratio, target["ratio"]),
            "note": note,
        }
        if subject in record["timed_out"]:
            row["note"] = "popf stopped at the time limit"
            row["verdict"] = None if target["ratio"] is None else "not met"
        rows.append(row)
    return rows


def exponent(sizes: list[int], seconds: list[float]) -> float | None:
    """Least-squares slope of log seconds over log n, the e of seconds ~ n^e."""
    if len(sizes) < 2:
        return None
    return statistics.linear_regression(
        [math.log(n) for n in sizes], [math.log(s) for s in seconds]
    ).slope


def growth(records: list[Record]) -> list[Row]:
    """Fit growth exponents by features, contestant and operation.

    Fixed costs flatten the curve at small n, so there are two exponents, over all n and over the
    four largest; the verdict falls on the larger.
    """
    curves: dict[tuple[int, int, str, str], dict[int, float]] = defaultdict(dict)
    for record in records:
        task = record["task"]
        for contestant in task["contestants"]:
            for operation in task["operations"]:
                seconds = best(record, contestant, operation)
                if seconds is not None:
                    key = (task["threads"], task["data"]["n_features"], contestant, operation)
                    curves[key][task["data"]["n_samples"]] = seconds
    rows = []
    for (k, d, contestant, operation), curve in curves.items():
        sizes = sorted(curve)
        overall = exponent(sizes, [curve[n] for n in sizes])
        tail = exponent(sizes[-4:], [curve[n] for n in sizes[-4:]])
        limit = GROWTH_LIMIT if contestant == POPF and d <= 8 else None
        worst = max(overall, tail) if overall is not None and tail is not None else None
        rows.append(
            {
                "n_features": d,
                "threads": k,
                "contestant": contestant,
                "operation": operation,
                "sizes": sizes,
                "seconds": [curve[n] for n in sizes],
                "exponent": overall,
                "tail_exponent": tail,
                "target": limit,
                "verdict": verdict(worst, limit),
            }
        )
    return sorted(rows, key=lambda row: (row["threads"], row["n_features"]))


def shapes(records: list[Record]) -> list[Row]:
    """Compare each shape with blobs of the same size, for popf and for the peer."""
    blobs: dict[tuple[int, int, int], Record] = {}

    def key(task: Record) -> tuple[int, int, int]:
        return task["data"]["n_samples"], task["data"]["n_features"], task["threads"]

    for record in records:
        if record["task"]["data"]["shape"] == "blobs":
            blobs[key(record["task"])] = record
    rows = []
    for record in records:
        task = record["task"]
        reference = blobs.get(key(task))
        for operation in task["operations"]:
            for contestant in task["contestants"]:
                seconds = best(record, contestant, operation)
                plain = best(reference, contestant, operation) if reference else None
                ratio = divided(seconds, plain)
                limit = SHAPE_LIMIT if contestant == POPF and record is not reference else None
                if seconds is None:
                    continue
                rows.append(
                    {
                        "shape": task["data"]["shape"],
                        "n_samples": task["data"]["n_samples"],
                        "n_features": task["data"]["n_features"],
                        "threads": task["threads"],
                        "contestant": contestant,
                        "operation": operation,
                        "seconds": seconds,
                        "ratio_to_blobs": ratio,
                        "target": limit,
                        "verdict": verdict(ratio, limit),
                    }
                )
    return rows


def threads(records: list[Record]) -> list[Row]:
    """Compute speed-ups over one thread."""
    single = {r["task"]["name"]: r for r in records if r["task"]["threads"] == 1}
    rows = []
    for record in records:
        task = record["task"]
        for contestant in task["contestants"]:
            for operation in task["operations"]:
                seconds = best(record, contestant, operation)
                if seconds is None:
                    continue
                one = single.get(task["name"])
                alone = best(one, contestant, operation) if one else None
                rows.append(
                    {
                        "task": task["name"],
                        "contestant": contestant,
                        "operation": operation,
                        "threads": task["threads"],
                        "seconds": seconds,
                        "speed_up": divided(alone, seconds),
                    }
                )
    names = [record["task"]["name"] for record in records]
    return sorted(
        rows,
        key=lambda row: (
            row["contestant"] != POPF,
            row["contestant"],
            row["operation"],
            names.index(row["task"]),
            row["threads"],
        ),
    )


def memory(records: list[Record]) -> list[Row]:
    """Express peaks as multiples of the data."""
    rows = []
    for record in records:
        for value in record["values"]:
            times = value["value"] / value["data"]
            limit = MEMORY_LIMIT if value["contestant"] == POPF else None
            rows.append(
                {
                    "task": record["task"]["name"],
                    "threads": record["task"]["threads"],
                    "contestant": value["contestant"],
                    "bytes": value["value"],
                    "data_bytes": value["data"],
                    "times_data": times,
                    "target": limit,
                    "verdict": verdict(times, limit),
                }
            )
    return rows


def start(records: list[Record]) -> list[Row]:
    """Work out waiting times: imports beside scikit-learn's, the first fit cold and warm."""
    rows: list[Row] = []

    def add(what: str, seconds: float | None, limit: float | None = None) -> None:
        if seconds is not None:
            judged = verdict(seconds, limit)
            rows.append({"what": what, "seconds": seconds, "target": limit, "verdict": judged})

    for record in records:
        name = record["task"]["name"]
        if record["task"]["kind"] == "import":
            medians = {
                contestant: statistics.median(found)
                for contestant in record["task"]["contestants"]
                if (found := values(record, contestant, "import"))
            }
            if POPF in medians and "scikit-learn" in medians:
                added = medians[POPF] - medians["scikit-learn"]
                add("popf's import beyond scikit-learn's", added, IMPORT_LIMIT)
            for contestant, median in medians.items():
                add(f"import of {contestant}", median)
            continue
        add(f"{name}, ever (cold cache)", best(record, POPF, "cold first fit"), COLD_LIMIT)
        prediction = best(record, POPF, "cold first predict")
        add(f"{name}, then the first prediction (cold cache)", prediction)
        first = values(record, POPF, "warm first fit")
        second = values(record, POPF, "warm second fit")
        if first:
            overhead = statistics.median(a - b for a, b in zip(first, second, strict=True))
            add(f"{name} in a new process, beyond the second", overhead, WARM_LIMIT)
    return rows


def forests_that_differ(records: list[Record]) -> list[str]:
    """Say, for every set of data of which not all contestants grew the same forest, who grew which."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        task = record["task"]
        for value in record["values"]:
            if "digest" in value:
                who = f"{value['contestant']} ({task['suite']}, {task['threads']} threads)"
                found[json.dumps(task["data"], sort_keys=True)][value["digest"]].append(who)
    return [
        f"forests differ for {data}: "
        + "; ".join(f"{digest} by {', '.join(who)}" for digest, who in digests.items())
        for data, digests in found.items()
        if len(digests) > 1
    ]
