"""The suites: lists of tasks, with their data and contestants.

Every suite is a function of `full`: True for the sizes of the published tables, False for a quick run.
"""

import os
from dataclasses import dataclass, replace

from .contestants import (
    FOREST,
    FROM_FILE,
    GPU,
    GPU_PROCESS,
    IMPORTS,
    LABELS,
    POOLED,
    POPF,
    PROCESSES,
    SOLVERS,
    TREE,
)
from .data import SHAPES, DataSpec

BOTH = ("fit", "predict")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Times of LibOPF (C) in seconds on similar hardware, by features: fit and predict 20,000 samples each.
LIBOPF = {8: (5.3, 4.5), 100: (31.0, 33.0)}


@dataclass(frozen=True)
class Task:
    """One measurement: contestants on one dataset. The first is compared with the others.

    Attributes
    ----------
    suite, name : str
    data : DataSpec
    contestants, operations : tuple of str
        If ``"fit"`` is not among the operations, models are fitted but the fit is not timed.
    kind : str
        ``"time"`` (all in turn in one process), ``"alone"`` (one process each; also measures memory, and hashes
        the forest), ``"import"`` or ``"first"`` (the first fit in a process).
    threads, repeat : int
    once : tuple of str
        Contestants that are too slow to be timed more than once.
    recorded : tuple of (peer, operation, seconds)
        Times of peers that were measured elsewhere.
    """

    suite: str
    name: str
    data: DataSpec
    contestants: tuple[str, ...] = (POPF,)
    operations: tuple[str, ...] = ("fit",)
    kind: str = "time"
    threads: int = 1
    repeat: int = 3
    once: tuple[str, ...] = ()
    recorded: tuple[tuple[str, str, float], ...] = ()


def table(full):
    """Compare the fit with the fastest peer at each size, and with LibOPF's recorded times."""
    tasks = []
    for n, few, d, peer in (
        (100_000, 5_000, 2, "quitefastmst"),
        (1_000_000, 20_000, 2, "quitefastmst"),
        (100_000, 5_000, 8, "quitefastmst"),
        (20_000, 2_000, 20, "quitefastmst brute"),
        (20_000, 2_000, 100, "quitefastmst brute"),
        (5_000, 300, 8, "opfython"),
        (5_000, 300, 8, "opforch"),
    ):
        data = DataSpec(n if full else few, d)
        tasks.append(Task("table", f"fit {data.size}", data, (POPF, peer), once=("opfython",)))
    for d, (fit, predict) in LIBOPF.items() if full else ():
        data = DataSpec(20_000, d, 20_000)
        recorded = (("LibOPF", "fit", fit), ("LibOPF", "predict", predict))
        tasks.append(Task("table", data.size, data, operations=BOTH, recorded=recorded))
    return tasks


def predict(full):
    """Compare predictions with nearest neighbours."""
    tasks = []
    for n, few, d in ((100_000, 5_000, 8), (20_000, 2_000, 100)):
        data = DataSpec(n if full else few, d, 20_000 if full else 1_000)
        name = f"predict {data.n_queries:,} from {data.size}"
        tasks.append(Task("predict", name, data, (POPF, "1-NN", "5-NN"), ("predict",)))
    return tasks


def growth(full):
    """Fit n samples and predict n/8 others for several n, to estimate the growth exponent."""
    tasks = []
    for d, largest in ((2, 256_000), (8, 256_000), (20, 64_000), (100, 32_000)):
        for n in doubling(2_000, largest) if full else (1_000, 4_000):
            data = DataSpec(n, d, n // 8)
            tasks.append(Task("growth", data.size, data, (POPF, "1-NN"), BOTH))
    return tasks


def spanning_tree(full):
    """Compute spanning trees without labels."""
    tasks = []
    for n, d, shape, peers in (
        (10_000, 8, "blobs", ("SciPy",)),
        (100_000, 2, "blobs", ()),
        (100_000, 8, "blobs", ()),
        (100_000, 20, "five blobs", ()),
    ):
        data = DataSpec(n if full else n // 20, d, 0, shape)
        peers = (TREE, "quitefastmst", "fast_hdbscan", *peers)
        once = ("quitefastmst", "fast_hdbscan") if n == 100_000 and d > 8 else ()
        tasks.append(Task("spanning-tree", f"{data.size}, {shape}", data, peers, once=once))
    return tasks


def shapes(full):
    """Fit data that is hard for space trees and Borůvka's algorithm, and blobs of the same size."""
    chosen = [(shape, 8) for shape in SHAPES]
    chosen += [("blobs", 50), ("separated clusters", 50), ("categories", 24)]
    tasks = []
    for shape, d in chosen:
        n = (50_000 if d == 8 else 20_000) if full else 1_000
        data = DataSpec(n, d, n // 10, shape)
        name = f"{shape}, {data.size}"
        tasks.append(Task("shapes", name, data, (POPF, "quitefastmst"), BOTH))
    return tasks


def threads(full):
    """Fit and predict on 1, 2, 4 … threads, up to the number of cores."""
    tasks = []
    for count in sorted({*doubling(1, CORES), CORES}):
        for n, few, d, peers in (
            (200_000, 5_000, 8, ("quitefastmst", "1-NN")),
            (50_000, 2_000, 100, ("1-NN",)),
        ):
            n = n if full else few
            data = DataSpec(n, d, n // 10)
            tasks.append(Task("threads", data.size, data, (POPF, *peers), BOTH, threads=count))
    return tasks


def probability(full):
    """Compare the time of probabilities with that of the forest's labels."""
    tasks = []
    for n, few, d, shape in (
        (1_000, 300, 8, "blobs"),
        (1_000, 300, 8, "ten classes"),
        (20_000, 3_000, 8, "blobs"),
        (100_000, 6_000, 2, "blobs"),
        (20_000, 3_000, 100, "blobs"),
        (1_000_000, 10_000, 2, "blobs"),
    ):
        data = DataSpec(n if full else few, d, 2_000 if full else 500, shape)
        name = data.size if shape == "blobs" else f"{data.size}, {shape}"
        tasks.append(Task("probability", name, data, (POOLED, FOREST, LABELS), BOTH))
    return tasks


def solvers(full):
    """Minimise Platt's objective."""
    tasks = []
    for name in SOLVERS:
        n = (1_000_000 if full else 10_000) if name == "Newton" else 200
        tasks.append(Task("solvers", f"{name}, {n:,} scores", DataSpec(n, 1), (name,)))
    return tasks


def start(full):
    """Measure start-up times: imports, compilation, the first fit in a process."""
    repeat, nothing = 7 if full else 3, DataSpec(0, 0)
    tasks = [Task("start", "import", nothing, tuple(IMPORTS), ("import",), "import", 1, repeat)]
    for d in (8, 100) if full else (8,):
        data = DataSpec(2_000 if full else 500, d, 100)
        tasks.append(Task("start", f"first fit {data.size}", data, kind="first"))
    return tasks


def memory(full):
    """Measure the peak memory of a fit."""
    tasks = []
    for d, contestants in ((8, (POPF, "1-NN")), (2, (POOLED, LABELS))):
        data = DataSpec(1_000_000 if full else 10_000, d, 2_000)
        tasks.append(Task("memory", data.size, data, contestants, kind="alone", repeat=1))
    return tasks


def gpu(full):
    """Fit and predict on a GPU, and at the smaller size on all cores of the same machine."""
    tasks = []
    for n, few, contestants in (
        (200_000, 2_000, (GPU, POPF)),
        (1_000_000, 4_000, (GPU,)),
    ):
        n = n if full else few
        data = DataSpec(n, 128, n)
        task = Task("gpu", data.size, data, contestants, BOTH, threads=CORES, once=(POPF,))
        tasks.append(task)
    return tasks


def scaling(full):
    """Fit for several n, then several d, on one core, on all cores, and on a GPU."""
    over_n = {
        (POPF, 1, 8): 62_500,
        (POPF, 1, 128): 3_125,
        (POPF, CORES, 8): 125_000,
        (POPF, CORES, 128): 12_500,
        (GPU, CORES, 8): 125_000,
        (GPU, CORES, 128): 125_000,
    }
    over_d = {(POPF, 1): 25_000, (POPF, CORES): 100_000, (GPU, CORES): 250_000}
    sizes = [(who, k, n, d) for (who, k, d), n0 in over_n.items() for n in doubling(n0, 16 * n0)]
    sizes += [(who, k, n, d) for (who, k), n in over_d.items() for d in (2, 8, 16, 32, 64, 128)]
    tasks = []
    for who, k, n, d in sizes if full else sizes[::5]:
        once = () if k > 1 else (who,)
        tasks.append(alone("scaling", full, n, d, (who,), operations=BOTH, threads=k, once=once))
    return list(dict.fromkeys(tasks))


def dask(full):
    """Fit on local clusters of processes with one thread each, and on one process with a GPU."""
    clusters = [f"popf on {k} processes" for k in PROCESSES if k <= max(2, CORES)]
    sizes = [(n, 8) for n in doubling(125_000, 2_000_000)]
    sizes += [(n, 128) for n in doubling(12_500, 100_000)]
    return [
        alone("dask", full, n, d, (POPF, *clusters[-2:], GPU_PROCESS), threads=CORES)
        for n, d in (sizes if full else sizes[::5])
    ]


def out_of_core(full):
    """Fit from files with bounded memory, and with the plain forest for comparison."""
    sizes = [(200_000, 4), (1_000_000, 4), (5_000_000, 4), (40_000, 200), (8_000, 10_000)]
    return [
        alone("out-of-core", full, n, d, (POPF, FROM_FILE), threads=CORES)
        for n, d in (sizes if full else sizes[::3])
    ]


def same_forest(full):
    """Fit the same data on all backends, with and without ties: the forests must be equal."""
    everyone = (POPF, FROM_FILE, "popf on 2 processes", GPU)
    tasks = []
    for n, d, shape in ((20_000, 8, "blobs"), (5_000, 64, "blobs"), (20_000, 2, "integer grid")):
        for who, count in ((everyone, CORES), ((POPF,), 1)):
            task = alone("same-forest", full, n, d, who, threads=count)
            data = replace(task.data, shape=shape)
            tasks.append(replace(task, data=data, name=f"{data.size}, {shape}"))
    return tasks


def alone(suite, full, n, d, contestants, **settings):
    """Create a task of one fit per contestant; equal sizes have equal data in all suites."""
    n = n if full else max(200, n // 100)
    data = DataSpec(n, d, n // 10)
    settings = {"once": contestants, **settings}
    return Task(suite, data.size, data, contestants, kind="alone", **settings)


def doubling(first, last):
    """List sizes from `first` to `last`, each twice the one before."""
    return [first * 2**i for i in range((last // first).bit_length())]


SUITES = {
    "table": table,
    "predict": predict,
    "growth": growth,
    "spanning-tree": spanning_tree,
    "shapes": shapes,
    "threads": threads,
    "probability": probability,
    "solvers": solvers,
    "start": start,
    "memory": memory,
    "gpu": gpu,
    "scaling": scaling,
    "dask": dask,
    "out-of-core": out_of_core,
    "same-forest": same_forest,
}
#: Suites that run only when selected: they take long, start clusters and write files.
ON_DEMAND = ("scaling", "dask", "out-of-core", "same-forest")
