"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

from .contestants import POPF
from .progress import Progress
from .results import FOLDER, Record, Results, files, plain
from .runner import run
from .suites import ON_DEMAND, SUITES, tasks_of
from .summary import best, forests_that_differ
from .tables import as_text, seconds, tables
from .tasks import SCALES, Task


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks.

    The exit status is 130 after Ctrl-C, as shells expect, and 1 if two who fitted the same data grew
    different forests.
    """
    parser = command_line()
    options = parser.parse_args(arguments)
    scale = "quick" if options.quick else options.scale
    tasks = [
        task
        for task in tasks_of(options.suite, scale, options.threads, options.repeat)
        if options.match in task.name
    ]
    if options.list:
        for task in tasks:
            beside = ", ".join(name for name in task.contestants if name != POPF) or "alone"
            print(f"{task.suite:8}  {task.name}, {task.threads} thread(s): {POPF} | {beside}")
        return 0
    if not tasks:
        parser.error(f"no task of {options.suite} has {options.match!r} in its name; see --list")
    try:
        results = results_file(options.out, scale, options.resume)
    except ValueError as error:
        parser.error(str(error))
    status = 0
    with Progress(tasks, one_line) as progress:
        try:
            run(tasks, results, options.limit, progress)
        except KeyboardInterrupt:
            status = 130
    for table in tables(results.summary):
        print("\n" + as_text(table))
    print(f"\n{len(results.records)} tasks in {results.path}")
    if status:
        print("stopped; the same command with --resume goes on from here")
    differences = forests_that_differ(results.records)
    for line in differences:
        print(line, file=sys.stderr)
    if differences:
        status = status or 1
    return status


def command_line() -> argparse.ArgumentParser:
    """Make the parser of the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="popf beside its peers, in one run, ratios first."
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="small sizes, about a minute")
    add("--scale", choices=SCALES, default="full", help="--quick is --scale quick")
    add("--suite", nargs="+", choices=SUITES, metavar="NAME",
        default=[name for name in SUITES if name not in ON_DEMAND],
        help=f"which (default: all but the last three): {', '.join(SUITES)}")  # fmt: skip
    add("--match", default="", metavar="TEXT", help="only tasks with TEXT in their name")
    add("--threads", nargs="+", type=positive, metavar="K",
        help="numbers of threads (default 1; the suite threads: up to all cores)")  # fmt: skip
    add("--repeat", type=positive, default=3, metavar="N", help="timings of each (default 3)")
    add("--limit", type=float, default=600.0, metavar="SECONDS",
        help="stop a contestant that takes longer for one operation (default 600)")  # fmt: skip
    add("--out", type=Path, metavar="FILE",
        help="the JSON file (default: benchmarks/results/DATE.json, or quick.json)")  # fmt: skip
    add("--resume", action="store_true",
        help="go on with --out or the newest file: measure only what it lacks")  # fmt: skip
    add("--list", action="store_true", help="show the tasks and stop")
    return parser


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


def results_file(out: Path | None, scale: str, resume: bool) -> Results:
    """Begin a results file, or go on with one.

    Raises
    ------
    ValueError
        If there is nothing to resume, or if a file would be overwritten.
    """
    default = FOLDER / f"{scale}.json"
    if resume:
        candidates = (
            [out] if out else [p for p in files() if Results.load(p).content["scale"] == scale]
        )
        if not candidates or not candidates[0].exists():
            raise ValueError(f"nothing to resume at {scale} scale; run without --resume first")
        return Results.resume(candidates[0], scale)
    if out is None:
        # Full runs are kept, each under its time; the others replace the one before.
        moment = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d-%H%M%S")
        return Results.begin(FOLDER / f"{moment}.json" if scale == "full" else default, scale)
    if out.exists():
        raise ValueError(f"{out} exists; add --resume to go on with it, or give another --out")
    return Results.begin(out, scale)


def one_line(task: Task, results: Results) -> str:
    """Say what came out of a task, in a line."""
    wanted = plain(task)
    record = next(record for record in results.records if record["task"] == wanted)
    parts = []
    for contestant in task.contestants:
        for operation in task.operations:
            value = best(record, contestant, operation)
            if value is not None:
                shown = f"{value / 2**20:.0f} MiB" if task.kind == "memory" else seconds(value)
                parts.append(
                    f"{contestant} {operation} {shown}{memory_of(record, contestant, operation)}"
                )
    threads = f", {task.threads} threads" if task.threads > 1 else ""
    return f"{task.suite}: {task.name}{threads}: {', '.join(parts) or 'see the table'}"


def memory_of(record: Record, contestant: str, operation: str) -> str:
    """Write the memory of a timed operation, if it was measured."""
    for value in record["values"]:
        if (value["contestant"], value["operation"]) == (contestant, operation):
            kinds = (
                ("memory", ""),
                ("worker_memory", " a worker"),
                ("device_memory", " on the device"),
            )
            parts = [f"{value[key] / 2**20:.0f} MiB{where}" for key, where in kinds if key in value]
            return f" ({', '.join(parts)})" if parts and record["task"]["kind"] == "fit" else ""
    return ""


if __name__ == "__main__":
    sys.exit(main())
