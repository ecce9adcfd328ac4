"""The tables of the page on scaling, and a cost model fitted to them.

    python -m benchmarks.cost_model FILE [FILE …] [--cluster FILE …]

takes results of the suites `scaling`, `dask` and `out-of-core`, and prints Markdown: time and memory over n
and over d; the curves of `benchmarks.curves` and the cluster's costs (`benchmarks.cluster_model`), each
beside a size that it has not seen; and what they say of 100 million samples on 64 machines. The cluster may
have been measured on another machine, together with its own curves: then its files follow ``--cluster``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from .cluster_model import ClusterModel, Job, Run, fit_cluster, held_out, runs_of
from .curves import Checked, Fit, curves, fits_of
from .results import Record, Results
from .scaling_tables import file_table, tables_over_d, tables_over_n
from .summary import forests_that_differ
from .tables import Table, as_markdown, seconds

SAMPLES = 100_000_000
NODES = 64
# Bytes a second that a machine of the prediction sends and receives: 10 Gbit/s.
NETWORK = 1.25e9
HELD_OUT = "**held out** "
Curves = dict[tuple[str, int], Checked]


def curve_table(found: Curves) -> Table:
    """Put the curves beside what was measured."""
    rows = []
    for (where, d), checked in found.items():
        for n, measured in checked.seconds.items():
            said = checked.curve(n)
            mark = HELD_OUT if n == checked.held_out else ""
            off = f"{mark}{said / measured - 1:+.0%}"
            rows.append((f"{where}, d = {d}", f"{n:,}", seconds(measured), seconds(said), off))
        rows.append(("", "", "", f"{checked.curve}", ""))
    note = "All sizes but the smallest and the largest were fitted."
    return Table("scaling", "The curves", note, ("", "n", "measured", "model", "off by"), rows)


def plain_of(job: Job) -> tuple[str, int]:
    """Name the curve of a plain fit on what a process of `job` has."""
    return "a GPU" if job.gpu else "1 core", job.d


def processes(job: Job) -> str:
    """Write how many processes a job ran on."""
    return f"{job.workers}{' with a GPU' if job.gpu else ''}"


def cluster_table(runs: list[Run], model: ClusterModel, found: Curves) -> Table:
    """Put the cluster's model beside what was measured."""
    rows = []
    unseen = held_out(runs)
    for run in sorted(runs):
        job = run.job
        said = model.seconds(job, found[plain_of(job)].curve)
        moved, held = model.bytes_moved(job), model.bytes_held(job)
        mark = HELD_OUT if job in unseen else ""
        rows.append(
            (
                f"{job.n:,} × {job.d}",
                processes(job),
                f"{job.blocks}, {job.pairs}",
                seconds(run.seconds),
                f"{seconds(said)}, {mark}{said / run.seconds - 1:+.0%}",
                f"{run.moved / 2**20:,.0f}",
                f"{moved / 2**20:,.0f}",
                f"{run.memory / 2**20:,.0f}",
                f"{held / 2**20:,.0f}",
            )
        )
    header = (
        "samples",
        "processes",
        "blocks, pairs",
        "measured",
        "model",
        "moved, MiB",
        "model",
        "largest process, MiB",
        "model",
    )
    note = (
        "The model of time takes bytes and tasks from the models of those, so that nothing is known of a "
        "held-out fit but its size, its blocks and its pairs."
    )
    return Table("dask", "The cluster", note, header, rows)


def work_table(runs: list[Run]) -> Table:
    """Say what the processes did with their time."""
    rows = []
    for run in sorted(runs):
        job, whole = run.job, run.seconds * run.job.workers
        parts = (run.trees, run.pairs, run.others, run.fetching)
        rows.append(
            (
                f"{job.n:,} × {job.d}",
                processes(job),
                seconds(whole),
                *(f"{seconds(part)}, {part / whole:.0%}" for part in parts),
                seconds(run.pairs / job.pairs) if job.pairs else "",
            )
        )
    header = (
        "samples",
        "processes",
        "their time",
        "trees of blocks",
        "pairs of blocks",
        "other tasks",
        "fetching",
        "a pair",
    )
    note = "Seconds of all processes together, by Dask's own clock; what is missing they waited."
    return Table("dask", "What the cluster does", note, header, rows)


def coefficient_table(model: ClusterModel) -> Table:
    """Write the coefficients."""
    moved, tasks = model.moved, model.tasks
    rows = []
    for (d, gpu), (tree, pair) in model.work.items():
        plain = "a plain fit on " + ("the GPU" if gpu else "one core")
        rows.append((f"a block's tree, d = {d}", f"{tree:.2f} of {plain} of the block"))
        rows.append((f"a pair, d = {d}", f"{pair:.2f} of {plain} of both"))
    rows += [
        ("a GiB sent by a process", seconds(2**30 * model.byte)),
        ("fixed", seconds(model.fixed)),
        ("a task", seconds(model.task)),
        ("a million values, read and dealt", seconds(1e6 * model.value)),
        ("a million samples, in one process alone", seconds(1e6 * model.sample)),
        (
            "bytes moved",
            f"{moved[0]:.2f} blocks a pair + {moved[1]:.2f} × the data "
            f"+ {moved[2]:.1f} a sample and process + {moved[3]:.1f} a sample",
        ),
        ("tasks", f"{tasks[0]:.1f} b + {tasks[1]:.2f} b² + {tasks[2]:.1f} a pair, for b blocks"),
        (
            "memory of the largest process",
            f"{model.memory[0] / 2**20:.0f} MiB + {model.memory[1]:.1f} blocks "
            f"+ {model.memory[2]:.0f} bytes a sample",
        ),
    ]
    return Table("dask", "What the cluster's parts cost", "", ("", ""), rows)


def prediction_table(runs: list[Run], model: ClusterModel, found: Curves) -> Table:
    """Extrapolate to many samples on many machines."""
    rows = []
    for (where, d), checked in found.items():
        these = [run.job for run in runs if run.job.d == d]
        if not these or where == "1 core":
            continue
        # Of more blocks a smaller share has to be compared, so this is too much rather than too little.
        most = max(these, key=lambda job: (job.blocks, job.n))
        pairs = round(most.share * NODES * (NODES - 1) / 2)
        # Without a fit on a process with a GPU, a pair is taken to cost there what it costs on a core.
        gpu = where == "a GPU" and (d, True) in model.work
        if (d, gpu) not in model.work:
            continue
        job = Job(SAMPLES, d, NODES, NODES, pairs, gpu)
        parts = model.parts(job, checked.curve)
        parts["network"] = model.bytes_moved(job) / NODES / NETWORK
        shown = ("trees", "pairs", "alone", "dealing", "sending", "network")
        rows.append(
            (
                f"d = {d}, {where} a machine",
                f"{pairs:,}",
                *(duration(parts[part]) for part in shown),
                duration(sum(parts.values())),
                f"{model.bytes_held(job) / 2**30:,.0f} GiB",
            )
        )
    note = (
        f"**A prediction, not a measurement**: {SAMPLES:,} samples on {NODES} machines, one block each, "
        "a network of 10 Gbit/s that was assumed; work by the curve of the machine, at the cluster's "
        "price of a tree and of a pair."
    )
    header = (
        "",
        "pairs",
        "trees",
        "pairs take",
        "one machine alone",
        "reading and dealing",
        "packing and unpacking",
        "network",
        "in all",
        "memory of the largest",
    )
    return Table("dask", f"{SAMPLES:,} samples on {NODES} machines", note, header, rows)


def duration(value: float) -> str:
    """Write a time that may be long."""
    for unit, length in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if value >= 2 * length:
            return f"{value / length:.1f} {unit}"
    return seconds(value)


def tables_of_machine(fits: list[Fit]) -> Iterator[Table]:
    """Make the tables of what was measured on one machine, and its curves."""
    yield from tables_over_n(fits)
    yield from tables_over_d(fits)
    yield file_table(fits)
    yield curve_table(curves(fits))


def all_tables(fits: list[Fit], on_cluster: list[Fit] | None = None) -> Iterator[Table]:
    """Make every table that there are measurements for."""
    found = curves(fits)
    yield from tables_of_machine(fits)
    if on_cluster is None:
        on_cluster = fits
    else:
        for table in tables_of_machine(on_cluster):
            yield table._replace(title=f"{table.title}, second machine")
    there = curves(on_cluster)
    runs = [run for run in runs_of(on_cluster) if plain_of(run.job) in there]
    unseen = held_out(runs)
    seen = [run for run in runs if run.job not in unseen]
    if seen:
        model = fit_cluster(seen, lambda job: there[plain_of(job)].curve)
        runs = [run for run in runs if (run.job.d, run.job.gpu) in model.work]
        yield cluster_table(runs, model, there)
        yield work_table(runs)
        yield coefficient_table(model)
        yield prediction_table(runs, model, found)


def markdown(records: list[Record], on_cluster: list[Record] | None = None) -> str:
    """Write the tables of `records`, and of the cluster on another machine if it was on one.

    Raises
    ------
    ValueError
        If forests of the same data differ: then times mean nothing.
    """
    different = forests_that_differ(records + (on_cluster or []))
    if different:
        raise ValueError("\n".join(different))
    parts = []
    there = None if on_cluster is None else fits_of(on_cluster)
    for table in all_tables(fits_of(records), there):
        if table.rows:
            note = f"{table.note}\n\n" if table.note else ""
            parts.append(f"### {table.title}\n\n{note}{as_markdown(table)}\n")
    return "\n".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables of results files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost_model")
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path)
    parser.add_argument("--cluster", nargs="+", metavar="FILE", type=Path)
    options = parser.parse_args(arguments)
    try:
        records, on_cluster = (
            paths and [record for path in paths for record in Results.load(path).records]
            for paths in (options.files, options.cluster)
        )
        text = markdown(records, on_cluster)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
