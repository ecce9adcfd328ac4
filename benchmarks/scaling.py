"""The suites of the page on scaling: over n and over d, on a cluster of processes, and from files.

Every fit has a process of its own, which tells its time, its memory, and a digest of the forest that must be
the same for all who fit the same data (`benchmarks.fits`). What the measurements say of other sizes is
the matter of `benchmarks.cost_model`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .contestants import FROM_FILE, GPU, GPU_PROCESS, POPF, UNDER_FIRE, on_processes
from .data import DataSpec
from .tasks import Scale, Task, cores

#: The numbers of features over which time and memory are measured.
FEATURES = (2, 8, 16, 32, 64, 128)


def scaling(scale: Scale) -> list[Task]:
    """Fit more and more samples, then more and more features, on one core, on all, and on a GPU.

    The largest number of samples of each curve checks the cost model.
    """
    everyone = cores()
    over_n = {
        (POPF, 1, 8): doubled(62_500, 5),
        (POPF, 1, 128): doubled(3_125, 5),
        (POPF, everyone, 8): doubled(125_000, 5),
        (POPF, everyone, 128): doubled(12_500, 5),
        (GPU, everyone, 8): doubled(125_000, 5),
        (GPU, everyone, 128): doubled(125_000, 5),
    }
    over_d = {(POPF, 1): 25_000, (POPF, everyone): 100_000, (GPU, everyone): 250_000}
    tasks = []
    for (who, threads, d), sizes in over_n.items():
        for n in few(sizes, scale):
            tasks.append(fits("scaling", spec(scale, n, d), (who,), threads))
    for (who, threads), n in over_d.items():
        for d in few(FEATURES, scale):
            tasks.append(fits("scaling", spec(scale, n, d), (who,), threads))
    return list(dict.fromkeys(tasks))


def dask(scale: Scale) -> list[Task]:
    """Fit on local clusters of processes, one thread each; every other size also on the smaller one.

    A few widths run on the larger.
    The suite `scaling` has the plain forests of the same data, which must be the same.
    """
    some = [k for k in (4, 16) if k <= cores()] if scale.name == "full" else []
    clusters = tuple(on_processes(k) for k in some or [2])
    beside = () if scale.name == "full" else (POPF,)
    tasks = []
    for d, sizes in ((8, doubled(125_000, 5)), (128, doubled(12_500, 4))):
        for i, n in enumerate(few(sizes, scale)[::-1]):
            who = clusters if i % 2 == 0 else clusters[-1:]
            tasks.append(fits("dask", spec(scale, n, d), (*beside, *who), cores()))
    if scale.name == "full":
        tasks += [
            fits("dask", spec(scale, 25_000, d), clusters[-1:], cores()) for d in (64, 32, 16, 8, 2)
        ]
    return list(dict.fromkeys(tasks))[::-1]


def dask_gpu(scale: Scale) -> list[Task]:
    """Fit on a cluster of one process with a GPU, beside a plain fit on it."""
    return list(
        dict.fromkeys(
            fits("dask-gpu", spec(scale, n, d), (GPU, GPU_PROCESS), cores())
            for d in (8, 128)
            for n in few(doubled(250_000, 3), scale)
        )
    )


def out_of_core(scale: Scale) -> list[Task]:
    """Fit from files with bounded memory, beside the plain forest on all cores."""
    sizes = [(200_000, 4), (1_000_000, 4), (5_000_000, 4), (40_000, 200)]
    return [
        fits("out-of-core", spec(scale, n, d), (POPF, FROM_FILE), cores())
        for n, d in (sizes if scale.name == "full" else sizes[::3])
    ]


def same_forest(scale: Scale) -> list[Task]:
    """Fit the same data everywhere, with ties and without, and with workers that are killed.

    The forests must be the same; the times are not what this is for.
    """
    everyone = (POPF, FROM_FILE, on_processes(2), UNDER_FIRE, GPU)
    shapes = [(20_000, 8, "blobs"), (5_000, 64, "blobs"), (20_000, 2, "integer grid")]
    tasks = []
    for n, d, shape in shapes if scale.name == "full" else shapes[2:]:
        data = replace(spec(scale, n, d), shape=shape)
        for who, threads in ((everyone, cores()), ((POPF,), 1)):
            task = fits("same-forest", data, who, threads)
            tasks.append(replace(task, name=f"{data.size}, {shape}"))
    return list(dict.fromkeys(tasks))


def fits(suite: str, data: DataSpec, contestants: tuple[str, ...], threads: int) -> Task:
    """Make a task of one fit each, of which only those of several threads need repeating."""
    plain = suite == "scaling"
    return Task(
        suite,
        data.size,
        data,
        contestants,
        operations=("fit", "predict") if plain else ("fit",),
        kind="fit",
        threads=threads,
        once=() if plain and threads > 1 else contestants,
    )


def spec(scale: Scale, n: int, d: int) -> DataSpec:
    """Describe the data: the same in all suites, so that all forests can be held side by side."""
    n = scale.pick(n, max(200, n // 100))
    return DataSpec(n, d, n // 10)


def doubled(first: int, count: int) -> list[int]:
    """List `count` sizes, each twice the one before."""
    return [first * 2**i for i in range(count)]


def few(sizes: Iterable[int], scale: Scale) -> list[int]:
    """Take all sizes at full scale, and else the last two."""
    return list(sizes) if scale.name == "full" else list(sizes)[-2:]
