"""The command line: ``python -m benchmarks.probability``."""

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
    """Run what the file lacks, and show the tables; the exit status is 130 after Ctrl-C."""
    parser = command_line()
    options = parser.parse_args(arguments)
    known = datasets()
    unknown = [name for name in options.datasets if name not in known]
    if unknown:
        parser.error(f"no dataset {unknown[0]!r} is at hand; see --list")
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
    # Seed by seed, so that a run that is stopped has something of every dataset.
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
        print("stopped; the same command continues from here")
    return status


def command_line():
    """Make the parser of the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.probability",
        description="Quality of probabilities: popf beside calibrated rivals, paired.",
    )
    add = parser.add_argument
    add("--group", nargs="+", choices=GROUPS, default=GROUPS[:2], help="(default: the first two)")
    add("--datasets", nargs="+", default=[], metavar="NAME", help="only these; see --list")
    add("--contestants", nargs="+", default=list(CONTESTANTS), choices=CONTESTANTS | LESS, metavar="NAME",
        help="only these; see --list")  # fmt: skip
    add("--sizes", nargs="+", type=int, metavar="N",
        help="numbers of training samples (default: a quarter of every set)")  # fmt: skip
    add("--seeds", type=int, metavar="N", help="splits of each dataset (default 20)")
    add("--n-jobs", type=int, default=1, metavar="K", help="runs at a time (default 1)")
    add("--quick", action="store_true", help="3 seeds of a few small datasets")
    add("--out", type=Path, metavar="FILE", help="the file of the runs; what it has is not run again "
        "(default: benchmarks/results/probability.jsonl)")  # fmt: skip
    add("--again", action="store_true", help="run again what the file has")
    add("--plot", type=Path, metavar="FILE", help="draw calibration curves")
    add("--list", action="store_true", help="show datasets and contestants, and stop")
    return parser


def run_all(todo, journal, n_jobs):
    """Measure everything in `todo`, and add each run as it comes back."""
    start = time.perf_counter()
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    told = set()
    try:
        for done, run in enumerate(parallel(delayed(measure)(*one) for one in todo), 1):
            if run is None:  # the set is too small for this size
                continue
            journal.add(run)
            for name, reason in run["absent"].items():
                if reason.startswith("not installed") and name not in told:
                    told.add(name)
                    say(f"{name} is left out, {reason}")
            elapsed = time.perf_counter() - start
            left = elapsed / done * (len(todo) - done)
            say(f"{done}/{len(todo)}, {elapsed:.0f} s, {left:.0f} s left: {one_line(run)}")
    except KeyboardInterrupt:
        return 130
    return 0


def one_line(run):
    """Say what came out of a run."""
    shown = [
        f"{name} {run['scores'][name]['log loss']:.3f}"
        for name in (OURS, SVM, PRIOR)
        if name in run["scores"]
    ]
    failed = [f"{name} FAILED ({text})" for name, text in run["failed"].items()]
    what = f"{run['dataset']}, n = {run['n_train']}, seed {run['seed']}"
    return f"{what}: {', '.join([*shown, *failed])}"


def say(line):
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
