"""Runs of the benchmarks, and records as they write them."""

import subprocess
import sys
from pathlib import Path

from benchmarks.data import DataSpec
from benchmarks.results import plain
from benchmarks.tasks import Task

ROOT = Path(__file__).resolve().parent.parent


def bench(*arguments, **settings):
    command = [sys.executable, "-m", "benchmarks", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, **settings
    )


def record_of(task, seconds, **more):
    """A record in which contestant and operation took the seconds given."""
    values = [
        {"contestant": contestant, "operation": operation, "round": number, "value": value}
        for (contestant, operation), found in seconds.items()
        for number, value in enumerate(found)
    ]
    empty = {"missing": {}, "failed": {}, "timed_out": {}}
    return {"task": plain(task), "values": values, **empty, **more}


def fit_record(suite, who, n, d, seconds, threads=1, **facts):
    task = Task(suite, f"{n} × {d}", DataSpec(n, d), (who,), kind="fit", threads=threads)
    record = record_of(task, {(who, "fit"): [seconds]})
    record["values"][0].update({"data": n * d * 8, "memory": n * d * 16, **facts})
    return record
