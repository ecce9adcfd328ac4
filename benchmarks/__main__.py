"""Command line of the benchmarks: run tasks in worker processes, and print the tables."""

import argparse
import contextlib
import datetime
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, replace
from pathlib import Path

from .contestants import GPU_PROCESS, PROCESSES
from .results import FOLDER, ROOT, Results, plain
from .suites import ON_DEMAND, SUITES
from .tables import best, forests_that_differ, seconds, tables
from .worker import THREAD_VARIABLES

# Each process of a cluster has one thread.
CLUSTERS = {GPU_PROCESS, *(f"popf on {k} processes" for k in PROCESSES)}


def main(arguments=None):
    """Run the benchmarks; return 130 after Ctrl-C, 1 if forests of the same data differ."""
    parser = command_line()
    options = parser.parse_args(arguments)
    tasks = [
        replace(
            task,
            repeat=task.repeat if task.kind == "import" else options.repeat,
            processor_time=options.processor_time,
        )
        for suite in options.suite
        for task in SUITES[suite](not options.quick)
        if options.match in task.name
    ]
    if options.list:
        for task in tasks:
            print(
                f"{task.suite}: {task.name}, {task.threads} thread(s): {', '.join(task.contestants)}"
            )
        return 0
    if not tasks:
        suites = ", ".join(options.suite)
        parser.error(f"no task of {suites} has {options.match!r} in its name; see --list")
    try:
        results = open_results(options)
    except ValueError as error:
        parser.error(str(error))
    status = 0
    try:
        for task in tasks:
            if not results.has(task):
                results.add(measure(task, options.limit))
            say(one_line(task, results))
    except KeyboardInterrupt:
        status = 130
    for table in tables(results.records):
        print("\n" + table.as_text())
    print(f"\n{len(results.records)} tasks in {results.path}")
    if status:
        print("stopped; to continue, repeat the command with --resume and --out")
    for name in forests_that_differ(results.records):
        say(f"forests of {name} differ")
        status = status or 1
    return status


def command_line():
    """Build the argument parser."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time popf and similar libraries in the same run."
    )
    add = parser.add_argument
    default = [name for name in SUITES if name not in ON_DEMAND]
    add("--quick", action="store_true", help="use small sizes; takes a few minutes")
    add("--suite", nargs="+", choices=SUITES, metavar="NAME", default=default,
        help=f"suites to run: {', '.join(SUITES)} (default: all but {', '.join(ON_DEMAND)})")  # fmt: skip
    add("--match", default="", metavar="TEXT", help="run only tasks with TEXT in their name")
    add("--repeat", type=int, default=3, metavar="N", help="number of timings (default 3)")
    add("--processor-time", action="store_true",
        help="measure processor time, for one thread on a machine that does other work")  # fmt: skip
    add("--limit", type=float, default=600.0, metavar="SECONDS",
        help="stop a contestant that reports nothing for this time (default 600)")  # fmt: skip
    add("--out", type=Path, metavar="FILE",
        help="JSON file for the results (default: benchmarks/results/TIME.json, or quick.json)")  # fmt: skip
    add("--resume", action="store_true", help="run only the tasks that are not in --out")
    add("--list", action="store_true", help="list the tasks and exit")
    return parser


def open_results(options):
    """Create a results file, or open one to resume."""
    scale = "quick" if options.quick else "full"
    if options.resume:
        if options.out is None or not options.out.exists():
            raise ValueError("--resume needs --out with an existing file to continue")
        return Results.resume(options.out, scale)
    if options.out is not None and options.out.exists():
        raise ValueError(
            f"{options.out} exists; add --resume to continue it, or give another --out"
        )
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d-%H%M%S")
    return Results(options.out or FOLDER / f"{'quick' if options.quick else moment}.json", scale)


def measure(task, limit):
    """Measure one task; repeat it without a contestant that crashes or takes too long."""
    record = {"task": plain(task), "values": [], "missing": {}, "failed": {}, "timed_out": {}}
    remaining = list(task.contestants)
    while remaining:
        record["values"] = []
        current = remaining[0]
        try:
            with tempfile.TemporaryDirectory(prefix="numba-cache-") as cache:
                for order, environment in orders(
                    replace(task, contestants=tuple(remaining)), cache
                ):
                    for event in ask(order, environment, limit):
                        current = event["contestant"]
                        kind = event.pop("event")
                        if kind == "value":
                            record["values"].append(event)
                        elif kind in ("missing", "failed"):
                            record[kind][current] = event["reason"]
                            say(f"{task.name}: {current} {kind}: {event['detail']}")
            break
        except TimeoutError:
            record["timed_out"][current] = limit
            say(f"{task.name}: {current} was stopped after {limit:g} s")
        except RuntimeError as error:
            record["failed"][current] = "the process died"
            say(f"{task.name}: the process of {current} died:\n{error}")
        remaining.remove(current)
    return record


def orders(task, cache):
    """Yield the orders of a task, one for each worker process, with their environment variables."""
    order = asdict(task)
    environment = dict.fromkeys(THREAD_VARIABLES, str(task.threads))
    if task.kind == "time":
        yield order, environment
        return
    for contestant in task.contestants:
        one = {**order, "contestants": [contestant], "round": 0}
        if task.kind == "alone":
            single = dict.fromkeys(THREAD_VARIABLES, "1")
            yield one, single if contestant in CLUSTERS else environment
        elif task.kind == "import":
            for number in range(task.repeat):
                yield {**one, "round": number}, environment
        elif task.kind == "first":
            environment["NUMBA_CACHE_DIR"] = cache  # initially empty
            yield {**one, "cache": "cold"}, environment
            for number in range(task.repeat):
                yield {**one, "cache": "warm", "round": number}, environment


def ask(order, environment, limit):
    """Run `order` in a worker process and yield its events.

    Raises TimeoutError if there is no event for `limit` seconds, RuntimeError if the process died.
    """
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH")]
    with contextlib.ExitStack() as stack:
        # A temporary folder, because opfython writes a log file to the current one.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-"))
        errors = stack.enter_context(tempfile.TemporaryFile("w+"))
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.worker", json.dumps(order)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                env={
                    **os.environ,
                    **environment,
                    "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                },
            )
        )
        stack.callback(process.kill)
        late = threading.Event()
        while True:
            timer = threading.Timer(limit, lambda: (late.set(), process.kill()))
            timer.start()
            line = process.stdout.readline()
            timer.cancel()
            if not line:
                break
            yield json.loads(line)
        if late.is_set():
            raise TimeoutError
        if process.wait() != 0:
            errors.seek(0)
            raise RuntimeError(errors.read()[-2000:])


def one_line(task, results):
    """Summarise the results of a task in one line."""
    wanted = plain(task)
    record = next(record for record in results.records if record["task"] == wanted)
    parts = [
        f"{who} {operation} {seconds(found)}"
        for who in task.contestants
        for operation in task.operations
        if (found := best(record, who, operation)) is not None
    ]
    return f"{task.suite}: {task.name}, {task.threads} thread(s): {', '.join(parts)}"


def say(line):
    """Print a progress line to standard error."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
