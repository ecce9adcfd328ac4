"""What a fit on a cluster costs, and what it would cost on a larger one.

A fit of n samples in b blocks of m on k processes, in which p pairs are compared, T tasks run and B bytes
move, takes

    seconds = tree ⌈b/k⌉ w(m) + pair ⌈p/k⌉ w(2m) + byte B/k + fixed + task T + value n d/k + sample n

where w(m) is the curve of a plain fit on one core, or on a GPU, for that number of features. Dask tells the
time of every task, so `tree`, `pair` (by number of features) and `byte` are fitted to what those tasks took;
the others to what is left of the whole: `value` is for reading and dealing, `sample` for what one process
does while the others wait, merging and growing the forest. B, T and the memory of a process have coefficients
of their own. All fits are to relative errors; nothing is negative. The largest n on each number of processes is
held out as a check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .blocks import PAIRS, TREES
from .curves import Curve, Fit, Floats, not_negative


class Job(NamedTuple):
    """A fit on a cluster: how large, and on what.

    Attributes
    ----------
    n, d : int
        Samples and features.
    workers, blocks, pairs : int
        How many processes, blocks, and pairs of blocks compared.
    gpu : bool
        Whether the processes work on GPUs.
    """

    n: int
    d: int
    workers: int
    blocks: int
    pairs: int
    gpu: bool = False

    @property
    def block_size(self) -> float:
        """Samples in a block."""
        return self.n / self.blocks

    @property
    def block_bytes(self) -> float:
        """The size of a block's samples."""
        return self.block_size * self.d * 8.0

    @property
    def share(self) -> float:
        """Which share of all pairs of blocks had to be compared."""
        every = self.blocks * (self.blocks - 1) / 2
        return self.pairs / every if every else 1.0


class Run(NamedTuple):
    """A job that was done.

    Attributes
    ----------
    job : Job
    seconds : float
        By the clock.
    trees, pairs, others, fetching : float
        Seconds of all processes together: trees of blocks, pairs, all other tasks, and waiting for
        what others sent.
    moved, tasks, memory : float
        Bytes sent, tasks done, and the memory of the largest process in bytes.
    """

    job: Job
    seconds: float
    trees: float
    pairs: float
    others: float
    fetching: float
    moved: float
    tasks: float
    memory: float


def runs_of(fits: Iterable[Fit]) -> list[Run]:
    """Take the fits on clusters."""
    found = []
    for fit in fits:
        if not fit.workers:
            continue
        facts, tasks = fit.facts, fit.facts["tasks"]
        gpu = "device_memory" in facts
        work = {name: seconds for name, (_, seconds, _) in tasks.items()}
        trees, pairs = work.pop(TREES, 0.0), work.pop(PAIRS, 0.0)
        found.append(
            Run(
                Job(fit.n, fit.d, fit.workers, facts["n_blocks"], facts["n_pairs"], gpu),
                fit.seconds,
                trees,
                pairs,
                sum(work.values()),
                sum(fetching for _, _, fetching in tasks.values()),
                facts["moved"],
                sum(count for count, _, _ in tasks.values()),
                facts["worker_memory"],
            )
        )
    return found


def held_out(runs: Sequence[Run]) -> set[Job]:
    """Choose the largest job of each number of features and processes that has several."""
    groups: dict[tuple[int, int, bool], list[Job]] = {}
    for run in runs:
        groups.setdefault((run.job.d, run.job.workers, run.job.gpu), []).append(run.job)
    return {max(jobs) for jobs in groups.values() if len(jobs) > 1}


def bytes_terms(job: Job) -> list[float]:
    """List what is moved: a block to each pair, rows to their blocks, paths to all processes, arcs."""
    return [job.pairs * job.block_bytes, job.n * job.d * 8.0, job.n * job.workers, job.n]


def task_terms(job: Job) -> list[float]:
    """List what tasks are for: blocks, rows from every chunk to every block, and pairs."""
    return [job.blocks, job.blocks**2, job.pairs]


def memory_terms(job: Job) -> list[float]:
    """List what a process holds: work space, blocks, and arcs of all samples."""
    return [1.0, job.block_bytes, job.n]


def work_terms(job: Job, curve: Curve) -> tuple[float, float]:
    """Give the seconds of all rounds of trees and of pairs, if each were a plain fit."""
    trees = math.ceil(job.blocks / job.workers) * curve(job.block_size)
    return trees, math.ceil(job.pairs / job.workers) * curve(2.0 * job.block_size)


Work = dict[tuple[int, bool], tuple[float, float]]


class ClusterModel(NamedTuple):
    """The coefficients.

    Attributes
    ----------
    work : dict of (int, bool) to (tree, pair)
        By number of features, and whether on a GPU: how often the work of a plain fit.
    byte, fixed, task, value, sample : float
        Seconds.
    moved, tasks, memory : ndarray
        Of `bytes_terms`, `task_terms` and `memory_terms`.
    """

    work: Work
    byte: float
    fixed: float
    task: float
    value: float
    sample: float
    moved: Floats
    tasks: Floats
    memory: Floats

    def bytes_moved(self, job: Job) -> float:
        """Give the bytes that processes send each other."""
        return float(self.moved @ bytes_terms(job))

    def bytes_held(self, job: Job) -> float:
        """Give the memory of the largest process."""
        return float(self.memory @ memory_terms(job))

    def parts(self, job: Job, curve: Curve) -> dict[str, float]:
        """Give the seconds of each part of a fit.

        Parameters
        ----------
        job : Job
        curve : Curve
            The seconds of a fit on what one process has: a core, several, a GPU.
        """
        tree, pair = self.work[job.d, job.gpu]
        trees, pairs = work_terms(job, curve)
        return {
            "trees": tree * trees,
            "pairs": pair * pairs,
            "sending": self.byte * self.bytes_moved(job) / job.workers,
            "fixed": self.fixed,
            "tasks": self.task * float(self.tasks @ task_terms(job)),
            "dealing": self.value * job.n * job.d / job.workers,
            "alone": self.sample * job.n,
        }

    def seconds(self, job: Job, curve: Curve) -> float:
        """Give the seconds of a fit."""
        return sum(self.parts(job, curve).values())


def fit_cluster(runs: Sequence[Run], curve_of: Callable[[Job], Curve]) -> ClusterModel:
    """Fit the model.

    Parameters
    ----------
    runs : sequence of Run
        Without those that shall check it.
    curve_of : callable
        The curve of a plain fit on what a process of the job has.
    """
    if not runs:
        raise ValueError("there are no fits on a cluster to learn from; run --suite dask")
    work: Work = {}
    for d, gpu in sorted({(run.job.d, run.job.gpu) for run in runs}):
        these = [run for run in runs if (run.job.d, run.job.gpu) == (d, gpu)]
        curve = curve_of(these[0].job)
        trees = [(run.job.blocks * curve(run.job.block_size), run.trees) for run in these]
        pairs = [(run.job.pairs * curve(2.0 * run.job.block_size), run.pairs) for run in these]
        work[d, gpu] = (ratio(trees), ratio(pairs))
    byte = ratio((run.moved, run.fetching) for run in runs)
    known, rest = [], []
    for run in runs:
        job, (tree, pair) = run.job, work[run.job.d, run.job.gpu]
        trees_in_a_row, pairs_in_a_row = work_terms(job, curve_of(job))
        explained = tree * trees_in_a_row + pair * pairs_in_a_row
        known.append(explained + byte * run.moved / job.workers)
        rest.append([1.0, run.tasks, job.n * job.d / job.workers, job.n])
    costs = not_negative(rest, [run.seconds for run in runs], known)
    fixed, task, value, sample = costs.tolist()
    return ClusterModel(
        work,
        byte,
        fixed,
        task,
        value,
        sample,
        amounts(bytes_terms, [(run.job, run.moved) for run in runs]),
        amounts(task_terms, [(run.job, run.tasks) for run in runs]),
        amounts(memory_terms, [(run.job, run.memory) for run in runs]),
    )


def amounts(terms: Callable[[Job], list[float]], found: list[tuple[Job, float]]) -> Floats:
    """Fit the coefficients of an amount."""
    return not_negative([terms(job) for job, _ in found], [max(one, 1.0) for _, one in found])


def ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """Fit the factor between expected and measured, both positive; 0 if nothing was measured."""
    positive = [(x, y) for x, y in pairs if x > 0.0 and y > 0.0]
    if not positive:
        return 0.0
    expected, measured = np.array(positive).T
    return float(not_negative(expected[:, None], measured)[0])
