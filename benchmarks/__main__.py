"""The command line of the benchmarks: runs tasks, each in worker processes, and shows the tables."""

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

# The processes of a cluster have a thread each.
CLUSTERS = {GPU_PROCESS, *(f"popf on {k} processes" for k in PROCESSES)}


def main(arguments=None):
    """Run the benchmarks; 130 after Ctrl-C, 1 if forests of the same data differ."""
    parser = command_line()
    options = parser.parse_args(arguments)
    tasks = [
        task if task.kind == "import" else replace(task, repeat=options.repeat)
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
        parser.error(f"no task of {options.suite} has {options.match!r} in its name; see --list")
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
        print("stopped; the same command with --resume and --out continues")
    for name in forests_that_differ(results.records):
        say(f"forests of {name} differ")
        status = status or 1
    return status


def command_line():
    """Make the parser of the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="popf beside its peers, in one run, ratios first."
    )
    add = parser.add_argument
    default = [name for name in SUITES if name not in ON_DEMAND]
    add("--quick", action="store_true", help="small sizes, a few minutes")
    add("--suite", nargs="+", choices=SUITES, metavar="NAME", default=default,
        help=f"some of {', '.join(SUITES)} (default: all but {', '.join(ON_DEMAND)})")  # fmt: skip
    add("--match", default="", metavar="TEXT", help="only tasks with TEXT in their name")
    add("--repeat", type=int, default=3, metavar="N", help="timings of each (default 3)")
    add("--limit", type=float, default=600.0, metavar="SECONDS",
        help="stop a contestant that is silent for so long (default 600)")  # fmt: skip
    add("--out", type=Path, metavar="FILE",
        help="the JSON file (default: benchmarks/results/TIME.json, or quick.json)")  # fmt: skip
    add("--resume", action="store_true", help="measure only what --out lacks")
    add("--list", action="store_true", help="show the tasks and stop")
    return parser


def open_results(options):
    """Begin a results file, or continue one."""
    scale = "quick" if options.quick else "full"
    if options.resume:
        if options.out is None or not options.out.exists():
            raise ValueError("--resume needs --out, a file to continue")
        return Results.resume(options.out, scale)
    if options.out is not None and options.out.exists():
        raise ValueError(
            f"{options.out} exists; add --resume to continue it, or give another --out"
        )
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d-%H%M%S")
    return Results(options.out or FOLDER / f"{'quick' if options.quick else moment}.json", scale)


def measure(task, limit):
    """Measure one task; a contestant that dies or takes too long is left out of a second try."""
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
            say(f"{task.name}: the process of {current} died\n{error}")
        remaining.remove(current)
    return record


def orders(task, cache):
    """Yield the orders of a task, each for a worker of its own, with its environment."""
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
            environment["NUMBA_CACHE_DIR"] = cache  # empty at first
            yield {**one, "cache": "cold"}, environment
            for number in range(task.repeat):
                yield {**one, "cache": "warm", "round": number}, environment


def ask(order, environment, limit):
    """Give `order` to a worker and yield its events.

    TimeoutError if nothing was heard for `limit` seconds, RuntimeError if the process died.
    """
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH")]
    with contextlib.ExitStack() as stack:
        # A folder of its own: opfython leaves a log where it runs.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-"))
        complaints = stack.enter_context(tempfile.TemporaryFile("w+"))
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.worker", json.dumps(order)],
                stdout=subprocess.PIPE,
                stderr=complaints,
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
            complaints.seek(0)
            raise RuntimeError(complaints.read()[-2000:])


def one_line(task, results):
    """Say what came out of a task, in a line."""
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
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
