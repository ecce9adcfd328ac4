"""Command line: ``python -m benchmarks.probability``."""

import argparse
import sys
import time
from pathlib import Path

from joblib import Parallel, delayed

from ..results import FOLDER
from .contestants import CONTESTANTS, LESS, OURS, PRIOR, SVM
from .datasets import GROUPS, QUICK, datasets
from .journal import Journal
from .measure import measure
from .tables import draw, tables


def main(arguments=None):
    """Run what is not yet in the file, and print the tables; return 130 after Ctrl-C."""
    parser = command_line()
    options = parser.parse_args(arguments)
    known = datasets()
    unknown = [name for name in options.datasets if name not in known]
    if unknown:
        parser.error(f"dataset {unknown[0]!r} is not available; see --list")
    names = options.datasets or [
        name
        for name, dataset in known.items()
        if (name in QUICK if options.quick else dataset.group in options.group)
    ]
    if options.list:
        for name in names:
            print(f"{known[name].group}: {name}")
        print("contestants:", ", ".join(CONTESTANTS | LESS))
        return 0
    seeds = options.seeds or (3 if options.quick else 20)
    journal = Journal(options.out or FOLDER / f"{'quick-' * options.quick}probability.jsonl")
    todo = []
    # Seeds in the outer loop, so that an interrupted command has runs of every dataset.
    for seed in range(seeds):
        for size in options.sizes or [None]:
            for name in names:
                wanted = options.contestants
                if not options.again:
                    wanted = journal.missing(name, size, seed, wanted)
                if wanted:
                    todo.append((known[name], size, seed, wanted))
    status = run_all(todo, journal, options.n_jobs)
    runs = [run for run in journal.runs.values() if run["dataset"] in names]
    for table in tables(runs):
        print("\n" + table.as_text())
    if options.plot:
        draw(runs, options.plot, (OURS, SVM, "random forest", "CatBoost"))
    print(f"\n{len(journal.runs)} runs in {journal.path}")
    if status:
        print("stopped; repeat the command to continue")
    return status


def command_line():
    """Build the argument parser."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.probability",
        description="Compare the probabilities of popf with those of other calibrated classifiers.",
    )
    add = parser.add_argument
    add("--group", nargs="+", choices=GROUPS, default=GROUPS[:2],
        help="groups of datasets (default: the first two)")  # fmt: skip
    add("--datasets", nargs="+", default=[], metavar="NAME", help="run only these; see --list")
    add("--contestants", nargs="+", default=list(CONTESTANTS), choices=CONTESTANTS | LESS, metavar="NAME",
        help="run only these; see --list")  # fmt: skip
    add("--sizes", nargs="+", type=int, metavar="N",
        help="numbers of training samples (default: a quarter of every dataset)")  # fmt: skip
    add("--seeds", type=int, metavar="N", help="number of splits of each dataset (default 20)")
    add("--n-jobs", type=int, default=1, metavar="K", help="number of parallel runs (default 1)")
    add("--quick", action="store_true", help="run 3 seeds of a few small datasets")
    add("--out", type=Path, metavar="FILE", help="file of the runs; runs that it has are not repeated "
        "(default: benchmarks/results/probability.jsonl)")  # fmt: skip
    add("--again", action="store_true", help="also repeat runs that are in the file")
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
