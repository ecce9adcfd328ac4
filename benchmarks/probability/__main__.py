"""Command line: ``python -m benchmarks.probability``."""

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

from joblib import Parallel, delayed

from ..results import FOLDER
from .contestants import CONTESTANTS, OURS, PRIOR, SVM
from .datasets import DESIGN_GROUPS, GROUPS, QUICK, datasets
from .frame_contestants import FRAME_CONTESTANTS
from .journal import Journal
from .measure import contestants_for, measure
from .tables import draw, tables

EVERY = list(CONTESTANTS | FRAME_CONTESTANTS)


def main(arguments=None):
    """Run what is not yet in the file, and print the tables; return 130 after Ctrl-C."""
    parser = command_line()
    options = parser.parse_args(arguments)
    known = datasets()
    unknown = [name for name in options.datasets if name not in known]
    if unknown:
        parser.error(f"dataset {unknown[0]!r} is unknown; see --list")
    groups = options.group or (GROUPS if options.again else DESIGN_GROUPS)
    chosen = options.datasets or [
        name
        for name, dataset in known.items()
        if (name in QUICK if options.quick else dataset.group in groups)
    ]
    names = available(known, chosen)
    if options.list:
        for name in names:
            print(f"{known[name].group}: {name}")
        print("contestants:", ", ".join(EVERY))
        return 0
    paths = [options.out or FOLDER / f"{'quick-' * options.quick}probability.jsonl"]
    if options.again and not options.out:
        paths = sorted(FOLDER.glob("probability-*.jsonl"))
    for path in paths:
        journal = Journal(path)
        todo = []
        for name, size, seed, wanted in planned(options, names, journal):
            some = [one for one in wanted if one in contestants_for(known[name])]
            todo += [(known[name], size, seed, some)] if some else []
        status = run_all(todo, journal, options.n_jobs)
        if options.again and todo:
            journal.rewrite(options.contestants)
        runs = [run for run in journal.runs.values() if run["dataset"] in names]
        for table in tables(runs):
            print("\n" + table.as_text())
        if options.plot:
            draw(runs, options.plot, (OURS, SVM, "random forest", "CatBoost"))
        print(f"\n{len(journal.runs)} runs in {journal.path}")
        if status:
            print("stopped; repeat the command to continue")
            return status
    return 0


def planned(options, names, journal):
    """Yield dataset, size, seed and contestants: the splits of the file, or those that it has not."""
    if options.again:
        for name, size, seed in journal.runs:
            if (
                name in names
                and (options.sizes is None or size in options.sizes)
                and (options.seeds is None or seed < options.seeds)
            ):
                yield name, size, seed, options.contestants
        return
    # Seeds in the outer loop, so that an interrupted command has runs of every dataset.
    for seed in range(options.seeds or (3 if options.quick else 20)):
        for size in options.sizes or [None]:
            for name in names:
                yield name, size, seed, journal.missing(name, size, seed, options.contestants)


def available(known, names):
    """Return those of `names` whose package is installed, and report the others."""
    absent = defaultdict(list)
    for name in names:
        if not known[name].available:
            absent[known[name].package].append(name)
    for package, some in absent.items():
        say(f"skipped, because {package} is not installed: {', '.join(some)}")
    return [name for name in names if known[name].available]


def command_line():
    """Build the argument parser."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.probability",
        description="Compare the probabilities of popf with those of other calibrated classifiers.",
    )
    add = parser.add_argument
    add("--group", nargs="+", choices=GROUPS,
        help="groups of datasets (default: the first four; with --again, all)")  # fmt: skip
    add("--datasets", nargs="+", default=[], metavar="NAME", help="run only these; see --list")
    add("--contestants", nargs="+", default=EVERY, choices=EVERY, metavar="NAME",
        help="run only these; see --list")  # fmt: skip
    add("--sizes", nargs="+", type=int, metavar="N",
        help="numbers of training samples (default: a quarter of every dataset, of frames at most "
        "500 rows)")  # fmt: skip
    add("--seeds", type=int, metavar="N", help="number of splits of each dataset (default 20)")
    add("--n-jobs", type=int, default=1, metavar="K", help="number of parallel runs (default 1)")
    add("--quick", action="store_true", help="run 3 seeds of a few small datasets")
    add("--out", type=Path, metavar="FILE", help="file of the runs; runs that it has are not repeated "
        "(default: benchmarks/results/probability.jsonl)")  # fmt: skip
    add("--again", action="store_true", help="repeat the contestants on the splits of the file (default: "
        "of all files of benchmarks/results), of the groups, sizes and seeds that are named")  # fmt: skip
    add("--plot", type=Path, metavar="FILE", help="draw calibration curves to this file")
    add("--list", action="store_true", help="list datasets and contestants, and exit")
    return parser


def run_all(todo, journal, n_jobs):
    """Measure everything in `todo`, and add each run to the journal when it is finished."""
    start = time.perf_counter()
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    reported = set()
    try:
        for done, run in enumerate(parallel(delayed(measure)(*one) for one in todo), 1):
            if run is None:  # the dataset is too small for this size
                continue
            journal.add(run)
            for name, reason in run["absent"].items():
                if reason.startswith("not installed") and name not in reported:
                    reported.add(name)
                    say(f"{name} is skipped: {reason}")
            elapsed = time.perf_counter() - start
            left = elapsed / done * (len(todo) - done)
            say(f"{done}/{len(todo)}, {elapsed:.0f} s, {left:.0f} s left: {one_line(run)}")
    except KeyboardInterrupt:
        return 130
    return 0


def one_line(run):
    """Summarise a run in one line."""
    shown = [
        f"{name} {run['scores'][name]['log loss']:.3f}"
        for name in (OURS, SVM, PRIOR)
        if name in run["scores"]
    ]
    failed = [f"{name} FAILED ({text})" for name, text in run["failed"].items()]
    what = f"{run['dataset']}, n = {run['n_train']}, seed {run['seed']}"
    return f"{what}: {', '.join([*shown, *failed])}"


def say(line):
    """Print a progress line to standard error."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
