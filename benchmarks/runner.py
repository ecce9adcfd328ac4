"""Runs tasks: turns each into orders for workers, and takes their answers."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from .contestants import GPU_PROCESS, PROCESSES, on_processes
from .processes import TimeLimitError, WorkerDiedError, Workers
from .progress import Progress
from .results import Record, Results, plain
from .tasks import Task
from .worker import THREAD_VARIABLES

Order = dict[str, Any]
CLUSTERS = frozenset({GPU_PROCESS, *map(on_processes, PROCESSES)})


def run(tasks: list[Task], results: Results, limit: float, progress: Progress) -> None:
    """Measure every task that `results` does not have yet, and save after each."""
    # Starting processes is most of a small run, in which nothing is judged.
    with Workers(limit, share=results.content["scale"] != "full") as workers:
        for task in tasks:
            if not results.has(task):
                results.add(measure(task, workers, progress))
            progress.finished(task, results)


def measure(task: Task, workers: Workers, progress: Progress) -> Record:
    """Measure one task; a contestant that dies or takes too long is left out of a second try."""
    record: Record = {"task": plain(task), "values": [], "missing": {}, "failed": {}}
    record["timed_out"] = {}
    remaining = list(task.contestants)
    while remaining:
        record["values"] = []
        left = replace(task, contestants=tuple(remaining))
        try:
            with contextlib.ExitStack() as stack:
                for order, environment in orders(left, stack):
                    for event in workers.ask(order, environment):
                        take(event, record, task, progress)
            break
        except TimeLimitError as slow:
            record["timed_out"][slow.contestant] = workers.limit
            progress.say(f"{task.name}: {slow.contestant} was stopped after {workers.limit:g} s")
            remaining.remove(slow.contestant)
        except WorkerDiedError as death:
            record["failed"][death.contestant] = "the process died"
            progress.say(f"{task.name}: {death.contestant} ended its process\n{death}")
            remaining.remove(death.contestant)
    return record


def take(event: dict[str, Any], record: Record, task: Task, progress: Progress) -> None:
    """Note what a worker said."""
    kind = event.pop("event")
    if kind == "value":
        record["values"].append(event)
        progress.step()
    elif kind in ("missing", "failed"):
        if event["contestant"] not in record[kind]:
            progress.say(f"{task.name}: {event['contestant']} {kind}: {event['detail']}")
        record[kind][event["contestant"]] = event["reason"]
    elif kind == "prepare":
        progress.show(f"{task.name} · {event['contestant']} warms up")
    elif kind == "begin":
        number = f"{event['operation']} {event['round'] + 1}/{task.repeat}"
        progress.show(f"{task.name} · {event['contestant']} {number}")


def orders(task: Task, stack: contextlib.ExitStack) -> Iterator[tuple[Order, dict[str, str]]]:
    """Say which workers a task needs, one after the other, each with its environment."""
    order = {
        "kind": task.kind,
        "data": asdict(task.data),
        "contestants": list(task.contestants),
        "operations": list(task.operations),
        "repeat": task.repeat,
        "once": list(task.once),
        "threads": task.threads,
    }
    environment = dict.fromkeys(THREAD_VARIABLES, str(task.threads))
    if task.kind == "time":
        yield order, environment
    elif task.kind in ("memory", "fit"):
        # A high-water mark never falls, so each contestant needs a process of its own.
        for contestant in task.contestants:
            alone = contestant in CLUSTERS  # their processes inherit this, and have a thread each
            own = dict.fromkeys(THREAD_VARIABLES, "1") if alone else environment
            yield {**order, "contestants": [contestant]}, own
    elif task.kind == "import":
        for number in range(task.repeat):
            for contestant in task.contestants:
                yield {**order, "contestants": [contestant], "round": number}, environment
    elif task.kind == "first":
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="numba-cache-"))
        environment["NUMBA_CACHE_DIR"] = folder
        yield {**order, "cache": "cold", "round": 0}, environment
        for number in range(task.repeat):
            yield {**order, "cache": "warm", "round": number}, environment
