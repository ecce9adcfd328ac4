"""The command line: ``python -m benchmarks.probability``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from ..__main__ import positive
from ..results import FOLDER
from ..tables import as_text
from .contestants import MAKERS, MAPPED, PRIOR, SOFT, SVM
from .datasets import PUBLIC, QUICK, Dataset, datasets
from .journal import Journal
from .measure import measure
from .tables import tables

QUICK_SEEDS = 3


def main(arguments: list[str] | None = None) -> int:
    """Run what the file lacks, and show the tables; the exit status is 130 after Ctrl-C."""
    parser = command_line()
    options = parser.parse_args(arguments)
    known = datasets()
    try:
        chosen = choose(known, options.datasets, options.kind, options.quick)
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        for dataset in chosen:
            print(f"{dataset.name}: {dataset.kind}, {dataset.origin}")
        return 0
    missing = [name for name in PUBLIC if name not in known]
    if missing:
        say(f"not at hand, set POPF_DATA to their folder: {', '.join(missing)}")
    seeds = options.seeds or (QUICK_SEEDS if options.quick else 20)
    out = options.out or FOLDER / (
        "probability-quick.json" if options.quick else f"probability-{seeds}-seeds.json"
    )
    try:
        fresh = options.fresh or not out.exists()
        journal = Journal(out) if fresh else Journal.resume(out)
    except ValueError as error:
        parser.error(str(error))
    only = tuple(options.contestants)
    # Seed by seed, so that a run that is stopped has something of every dataset.
    pairs = [(dataset, seed) for seed in range(seeds) for dataset in chosen]
    todo = [
        (dataset, seed)
        for dataset, seed in pairs
        if options.again or not journal.has(dataset.name, seed, only)
    ]
    if len(todo) < len(pairs):
        say(f"{len(pairs) - len(todo)} of {len(pairs)} runs are in {out.name} already")
    status = 0
    try:
        run_all(todo, journal, only, options.n_jobs)
    except KeyboardInterrupt:
        status = 130
    journal.finish()
    for table in tables(journal.content["summary"]):
        print("\n" + as_text(table))
    print(f"\n{len(journal.runs)} runs in {out}")
    if status:
        print("stopped; the same command goes on from here")
    return status


def command_line() -> argparse.ArgumentParser:
    """Make the parser of the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.probability",
        description="Quality of probabilities: popf beside calibrated rivals, paired.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="3 seeds, few datasets, less than a minute")
    add("--seeds", type=positive, metavar="N", help="how many splits of each dataset (default 20)")
    add("--datasets", nargs="+", default=[], metavar="NAME", help="only these; see --list")
    add("--kind", choices=("binary", "multiclass"), help="only datasets of this kind")
    add("--contestants", nargs="+", default=[], choices=list(MAKERS), metavar="NAME",
        help=f"only these: {', '.join(MAKERS)}; others keep what the file has")  # fmt: skip
    add("--n-jobs", type=positive, default=1, metavar="K", help="runs at a time (default 1)")
    add("--out", type=Path, metavar="FILE",
        help="the JSON file (default: benchmarks/results/probability-N-seeds.json); "
        "runs that it has are not made again")  # fmt: skip
    add("--again", action="store_true",
        help="make runs that the file has once more; with --contestants, only theirs")  # fmt: skip
    add("--fresh", action="store_true", help="begin the file anew")
    add("--list", action="store_true", help="show the datasets and stop")
    return parser


def choose(
    known: dict[str, Dataset], names: list[str], kind: str | None, quick: bool
) -> list[Dataset]:
    """Choose the datasets.

    Raises
    ------
    ValueError
        If a name is unknown, or nothing is left.
    """
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no dataset {unknown[0]!r} is at hand; see --list")
    wanted = names or (QUICK if quick else known)
    chosen = [known[name] for name in wanted if kind in (None, known[name].kind)]
    if not chosen:
        raise ValueError(f"none of these datasets is {kind}; see --list")
    return chosen


def run_all(
    todo: list[tuple[Dataset, int]], journal: Journal, only: tuple[str, ...], n_jobs: int
) -> None:
    """Measure everything in `todo`, and note each run as it comes back."""
    start = time.perf_counter()
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    runs = parallel(delayed(measure)(dataset, seed, only) for dataset, seed in todo)
    for done, run in enumerate(runs, 1):
        journal.add(run)
        elapsed = time.perf_counter() - start
        left = elapsed / done * (len(todo) - done)
        say(f"{done}/{len(todo)}, {elapsed:.0f} s, {left:.0f} s left: {one_line(run)}")


def one_line(run: dict[str, Any]) -> str:
    """Say what came out of a run."""
    shown = [
        f"{name} {run['scores'][name]['log loss']:.3f}"
        for name in (SOFT, MAPPED, SVM, PRIOR)
        if name in run["scores"]
    ]
    failed = [f"{name} FAILED ({text})" for name, text in run["failed"].items()]
    return f"{run['dataset']}, seed {run['seed']}: {', '.join([*shown, *failed])}"


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
