"""The suites: lists of tasks, with their data and contestants.

Every suite is a function of `full`: True for the sizes of the published tables, False for a quick run.
"""

import os
from dataclasses import dataclass, replace

from .contestants import (
    FOREST,
    FROM_FILE,
    GPU,
    GPU_FOREST,
    GPU_PROCESS,
    IMPORTS,
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
    processor_time : bool
        Whether to measure the time of the processor, which other work on the machine affects less.
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
    processor_time: bool = False


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
        for n in doubling(largest // 8, largest) if full else (1_000, 4_000):
            tasks.append(Task("growth", f"{n:,} × {d}", DataSpec(n, d, n // 8), operations=BOTH))
    return tasks


def plane(full):
    """Compute spanning trees of few features, on one thread and on all cores."""
    tasks = []
    for n, d in ((100_000, 2), (100_000, 5), (1_000_000, 2), (10_000_000, 2)):
        for count in sorted({1, CORES}):
            if n > 1_000_000 and count < 8:
                continue
            data = DataSpec(n if full else n // 100, d)
            threads = f"{count} thread{'s' * (count > 1)}"
            name, peers = f"{data.size}, {threads}", (TREE, "quitefastmst")
            tasks.append(Task("plane", name, data, peers, threads=count))
    return tasks


def spanning_tree(full):
    """Compute spanning trees without labels."""
    tasks = []
    for n, d, shape, peers in (
        (10_000, 8, "blobs", ("SciPy",)),
        (100_000, 2, "blobs", ()),
        (100_000, 8, "blobs", ()),
        (20_000, 20, "five blobs", ()),
    ):
        data = DataSpec(n if full else n // 20, d, 0, shape)
        peers = (TREE, "quitefastmst", "fast_hdbscan", *peers)
        once = ("fast_hdbscan",) if d > 2 else ()
        tasks.append(Task("spanning-tree", f"{data.size}, {shape}", data, peers, once=once))
    return tasks


def shapes(full):
    """Fit data that is hard for space trees and Borůvka's algorithm, and blobs of the same size."""
    chosen = [(shape, 8) for shape in SHAPES if "classes" not in shape and "decimals" not in shape]
    chosen += [("blobs", 50), ("separated clusters", 50), ("categories", 24)]
    tasks = []
    for shape, d in chosen:
        n = (50_000 if d == 8 else 20_000) if full else 1_000
        data = DataSpec(n, d, 0, shape)
        name = f"{shape}, {data.size}"
        tasks.append(Task("shapes", name, data, (POPF, "quitefastmst")))
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
    """Fit and predict probabilities."""
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
        tasks.append(Task("probability", name, data, (POOLED, FOREST), BOTH))
    return tasks


def large_forest(full):
    """Predict probabilities from large forests, with and without other components."""
    tasks = []
    for n in (300_000, 1_000_000) if full else (60_000,):
        data = DataSpec(n, 3, 2_000, "three decimals")
        tasks.append(Task("large-forest", data.size, data, (FOREST, POOLED), BOTH))
    return tasks


def classes(full):
    """Fit many classes."""
    tasks = []
    for shape in ("26 classes", "500 classes"):
        data = DataSpec(1_000 if full else 200, 16, 1_000, shape)
        tasks.append(Task("classes", f"{data.size}, {shape}", data, (POOLED,), BOTH))
    return tasks


def pooled_threads(full):
    """Fit probabilities on one thread and on all cores."""
    return [
        Task("pooled-threads", data.size, data, (POOLED,), threads=count)
        for n, few in ((20_000, 1_000), (100_000, 2_000))
        for data in [DataSpec(n if full else few, 20, 100)]
        for count in sorted({1, CORES})
    ]


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
    for who, d in ((POPF, 8), (POPF, 100), (POOLED, 8)) if full else ((POPF, 8),):
        data = DataSpec(2_000 if full else 500, d, 100)
        tasks.append(Task("start", f"{who}, {data.size}", data, (who,), kind="first"))
    return tasks


def memory(full):
    """Measure the peak memory of fits and predictions."""
    tasks = []
    for n, d, n_queries, contestants in (
        (1_000_000, 8, 2_000, (POPF, "1-NN")),
        (1_000_000, 2, 2_000, (POOLED,)),
        (20_000, 10, 1_000_000, (POOLED,)),
    ):
        data = DataSpec(n if full else n // 100, d, n_queries if full else n_queries // 100)
        operations = BOTH if n_queries > n else ("fit",)
        tasks.append(
            Task("memory", data.size, data, contestants, operations, kind="alone", repeat=1)
        )
    return tasks


def gpu(full):
    """Fit and predict probabilities on a GPU."""
    data = DataSpec(300_000 if full else 3_000, 128, 50_000 if full else 500)
    return [Task("gpu", data.size, data, (GPU_FOREST,), BOTH, threads=CORES)]


def scaling(full):
    """Fit on one core, on all cores, and on a GPU."""
    places = {
        (1_000_000, 8): ((POPF, 1), (POPF, CORES), (GPU, CORES)),
        (50_000, 128): ((POPF, 1), (POPF, CORES)),
        (200_000, 128): ((POPF, CORES), (GPU, CORES)),
        (1_000_000, 128): ((GPU, CORES),),
    }
    tasks = [
        alone("scaling", full, n, d, (who,), threads=count)
        for (n, d), each in places.items()
        for who, count in each
    ]
    return list(dict.fromkeys(tasks))


def dask(full):
    """Fit on local clusters of processes with one thread each, and on one process with a GPU."""
    clusters = [f"popf on {k} processes" for k in PROCESSES if k <= max(2, CORES)]
    sizes = [(n, 8) for n in doubling(125_000, 2_000_000)]
    sizes += [(n, 128) for n in doubling(12_500, 100_000)] + [(2_000, 10_000)]
    return [
        alone("dask", full, n, d, (POPF, *clusters[-2:], GPU_PROCESS), threads=CORES)
        for n, d in (sizes if full else sizes[::5])
    ]


def out_of_core(full):
    """Fit from files with bounded memory, and with the plain forest for comparison."""
    sizes = [(200_000, 4), (1_000_000, 4), (5_000_000, 4), (40_000, 200), (2_000, 10_000)]
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
    "plane": plane,
    "spanning-tree": spanning_tree,
    "shapes": shapes,
    "threads": threads,
    "probability": probability,
    "large-forest": large_forest,
    "classes": classes,
    "pooled-threads": pooled_threads,
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
