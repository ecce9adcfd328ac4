"""The suites: what is measured, against whom, and what popf shall reach.

Sizes come in three scales: ``full`` are those of the targets, ``quick`` tries everything in about a
minute, ``tiny`` is for the tests. Targets are judged at full scale only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .contestants import GPU, IMPORTS, LABELS, POPF, SOFT, SOLVERS
from .data import SHAPES, DataSpec
from .scaling import dask, dask_gpu, out_of_core, same_forest, scaling
from .tasks import Scale, Target, Task, cores, thread_counts

GROWTH_LIMIT = 1.3
SHAPE_LIMIT = 3.0
MEMORY_LIMIT = 8.0
COLD_LIMIT = 15.0
WARM_LIMIT = 1.0
IMPORT_LIMIT = 0.05


def table(scale: Scale) -> list[Task]:
    """Build the rows of the table "How fast" of the engine's issue."""

    def fit(full: int, quick: int, d: int, peer: str, ratio: float) -> Task:
        data = DataSpec(scale.pick(full, quick), d)
        return Task(
            "table",
            f"fit {data.size}",
            data,
            (POPF, peer),
            targets=(Target("fit", peer, ratio),),
            once=("opfython",),
        )

    def predict(full: int, quick: int, d: int, ratio: float) -> Task:
        data = DataSpec(scale.pick(full, quick), d, scale.pick(20_000, 1_000))
        return Task(
            "table",
            f"predict {data.n_queries:,} from {data.size}",
            data,
            (POPF, "1-NN", "5-NN"),
            ("predict",),
            targets=(Target("predict", "1-NN", ratio), Target("predict", "5-NN")),
        )

    return [
        fit(100_000, 5_000, 2, "quitefastmst", 1.0),
        fit(1_000_000, 20_000, 2, "quitefastmst", 1.0),
        fit(100_000, 5_000, 8, "quitefastmst", 0.9),
        fit(20_000, 2_000, 20, "quitefastmst brute", 0.5),
        fit(20_000, 2_000, 100, "quitefastmst brute", 0.25),
        fit(5_000, 500, 8, "opfython", 1 / 500),
        predict(100_000, 5_000, 8, 0.5),
        predict(20_000, 2_000, 100, 1.0),
    ]


def libopf(scale: Scale) -> list[Task]:
    """Compare with LibOPF (C), by its figures recorded on similar hardware, not in this run."""
    tasks = []
    targets = tuple(
        Target(operation, "LibOPF", ratio)
        for operation, ratio in (("total", 0.1), ("fit", None), ("predict", None))
    )
    for d, fit, predict in ((8, 5.3, 4.5), (100, 31.0, 33.0)):
        n = scale.pick(20_000, 2_000)
        data = DataSpec(n, d, n)
        tasks.append(
            Task(
                "libopf",
                data.size,
                data,
                operations=("fit", "predict"),
                targets=targets if scale.name == "full" else (),
                recorded=(("LibOPF", "fit", fit), ("LibOPF", "predict", predict)),
            )
        )
    return tasks


def growth(scale: Scale) -> list[Task]:
    """Fit n samples and predict n/8 more, over n, for the growth exponent."""
    tasks = []
    for d, largest in ((2, 256_000), (8, 256_000), (20, 64_000), (100, 32_000)):
        for n in scale.doubling(largest):
            data = DataSpec(n, d, n // 8)
            tasks.append(Task("growth", data.size, data, (POPF, "1-NN"), ("fit", "predict")))
    return tasks


def shapes(scale: Scale) -> list[Task]:
    """Try data that brings space trees and Borůvka to a fall, beside blobs of the same size."""
    sizes = {8: scale.pick(50_000, 4_000), 50: scale.pick(20_000, 1_000)}
    chosen = [(shape, 8) for shape in SHAPES]
    chosen += [("blobs", 50), ("separated clusters", 50)]
    tasks = []
    for shape, d in chosen:
        data = DataSpec(sizes[d], d, sizes[d] // 10, shape)
        name = f"{shape}, {data.size}"
        peers = (POPF, "quitefastmst")
        targets = (Target("fit", "quitefastmst"),)
        tasks.append(Task("shapes", name, data, peers, ("fit", "predict"), targets=targets))
    return tasks


def threads(scale: Scale) -> list[Task]:
    """Fit and predict on 1, 2, 4 … threads, up to the number of cores."""
    tasks = []
    for full, quick, d in ((200_000, 5_000, 8), (50_000, 2_000, 100)):
        n = scale.pick(full, quick)
        data = DataSpec(n, d, n // 10)
        contestants = (POPF, "quitefastmst", "1-NN") if d == 8 else (POPF, "1-NN")
        task = Task("threads", data.size, data, contestants, ("fit", "predict"))
        tasks.append(task)
    return [replace(task, threads=k) for k in thread_counts() for task in tasks]


def memory(scale: Scale) -> list[Task]:
    """Peak memory of a fit, beyond what the process held once the data was there."""
    data = DataSpec(scale.pick(1_000_000, 50_000), 8)
    plane = DataSpec(scale.pick(1_000_000, 10_000), 2, 2_000)
    return [
        Task("memory", data.size, data, (POPF, "1-NN"), kind="memory", repeat=1),
        Task("memory", plane.size, plane, (SOFT, LABELS), kind="memory", repeat=1),
    ]


def start(scale: Scale) -> list[Task]:
    """Measure what a user waits for first: imports, compilation, the Numba cache."""
    nothing, repeat = DataSpec(0, 0), scale.pick(7, 3)
    tasks = [Task("start", "import", nothing, tuple(IMPORTS), ("import",), "import", repeat)]
    for d in (8, 100) if scale.name == "full" else (8,):
        data = DataSpec(scale.pick(2_000, 500), d, 100)
        tasks.append(
            Task("start", f"first fit {data.size}", data, operations=("fit",), kind="first")
        )
    return tasks


def probability(scale: Scale) -> list[Task]:
    """Compare the soft method with the forest's labels.

    A fit of the peer is that of the forest and one prediction of its training set.
    """
    tasks = []
    for full, quick, d, ratio in (
        (20_000, 3_000, 8, 10.0),
        (100_000, 6_000, 2, 10.0),
        (20_000, 3_000, 100, 4.0),
    ):
        data = DataSpec(scale.pick(full, quick), d, scale.pick(2_000, 500))
        targets = (Target("fit", LABELS, 3.0, SOFT), Target("predict", LABELS, ratio, SOFT))
        both = ("fit", "predict")
        tasks.append(Task("probability", data.size, data, (SOFT, LABELS), both, targets=targets))
    data = DataSpec(scale.pick(1_000_000, 10_000), 2, scale.pick(2_000, 500))
    targets = (Target("fit", LABELS, None, SOFT), Target("predict", LABELS, None, SOFT))
    tasks.append(
        Task("probability", data.size, data, (SOFT, LABELS), ("fit", "predict"), targets=targets)
    )
    return tasks


def solvers(scale: Scale) -> list[Task]:
    """Hold the solvers of Platt's objective against the seconds that they may take."""
    tasks = []
    for name, seconds in zip(SOLVERS, (0.5, 0.2, 0.2, 0.2), strict=True):
        data = DataSpec(scale.pick(1_000_000, 10_000) if name == SOLVERS[0] else 200, 1)
        tasks.append(
            Task(
                "solvers",
                f"{name}, {data.n_samples:,} scores",
                data,
                (name,),
                targets=(Target("fit", WANTED, 1.0, name),),
                recorded=((WANTED, "fit", seconds),),
            )
        )
    return tasks


def gpu(scale: Scale) -> list[Task]:
    """Fit and predict on a GPU, beside all cores of the same machine where that is bearable."""
    tasks, both = [], ("fit", "predict")
    for full, quick, fit, predict in ((200_000, 2_000, 2.0, None), (1_000_000, 4_000, 30.0, 20.0)):
        n = scale.pick(full, quick)
        data = DataSpec(n, 128, n)
        wanted = [("fit", fit)] + ([("predict", predict)] if predict else [])
        tasks.append(
            Task(
                "gpu",
                data.size,
                data,
                (GPU,),
                both,
                threads=cores(),
                targets=tuple(Target(operation, WANTED, 1.0, GPU) for operation, _ in wanted),
                recorded=tuple((WANTED, operation, seconds) for operation, seconds in wanted),
            )
        )
    data = DataSpec(scale.pick(200_000, 2_000), 128, scale.pick(20_000, 500))
    targets = tuple(Target(operation, POPF, None, GPU) for operation in both)
    beside = Task("gpu", f"{data.size}, beside", data, (GPU, POPF), both, targets=targets)
    return [*tasks, replace(beside, threads=cores(), once=(POPF,))]


#: The name of a limit in seconds, beside which a time is put as beside a peer's.
WANTED = "wanted"

SUITES: dict[str, Callable[[Scale], list[Task]]] = {
    "table": table,
    "libopf": libopf,
    "growth": growth,
    "shapes": shapes,
    "threads": threads,
    "memory": memory,
    "start": start,
    "probability": probability,
    "solvers": solvers,
    "gpu": gpu,
    "scaling": scaling,
    "dask": dask,
    "dask-gpu": dask_gpu,
    "out-of-core": out_of_core,
    "same-forest": same_forest,
}

#: Suites that are run only when they are asked for: they start clusters and write files.
ON_DEMAND = ("dask", "dask-gpu", "out-of-core", "same-forest")


def tasks_of(
    names: list[str], scale: str = "full", thread_list: list[int] | None = None, repeat: int = 3
) -> list[Task]:
    """All tasks of the suites `names`.

    Parameters
    ----------
    names : list of str
        Keys of `SUITES`.
    scale : str
        One of `SCALES`.
    thread_list : list of int, optional
        Run every timed task on each of these numbers of threads, instead of on one (the suite
        `threads`: instead of on 1, 2, 4 … up to the number of cores).
    repeat : int
        How often each timing is taken.
    """
    tasks: list[Task] = []
    for name in names:
        built = [
            task if task.kind in ("memory", "import") else replace(task, repeat=repeat)
            for task in SUITES[name](Scale(scale))
        ]
        if thread_list and name not in ("start", *ON_DEMAND):
            single = dict.fromkeys(replace(task, threads=1) for task in built)
            built = [replace(task, threads=k) for k in thread_list for task in single]
        tasks += built
    return tasks
