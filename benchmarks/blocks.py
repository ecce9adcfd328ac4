"""The contestants that grow the forest block by block: from files, and on a cluster of processes."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .contestants import Contestant
from .memory import empty_pool, forget_peak, peak_bytes, pool_bytes
from .worker import THREAD_VARIABLES

if TYPE_CHECKING:
    from .data import Data

# From so many features on, every pair of blocks has to be compared.
WIDE = 20
#: What the tasks of a block and of a pair of blocks are called on Dask's dashboard.
TREES, PAIRS = "tree-of-block", "tree-of-two-blocks"


Work = tuple[int, float, float]


class OutOfCore(Contestant):
    """`DaskOPFClassifier` on a memory map, with threads of this process."""

    operations = ("fit",)
    from_file = True

    def fit(self, data: Data) -> None:
        from popf.dask import DaskOPFClassifier

        size = min(500_000, -(-len(data.X) // 8))
        # Not a temporary folder of the system, which may lie in memory.
        model = DaskOPFClassifier(block_size=size, scratch="scratch")
        self.model = model.fit(data.X, data.y)

    def facts(self) -> dict[str, Any]:
        return blocks_of(self.model)


class OnProcesses(Contestant):
    """`DaskOPFClassifier` on a local cluster of processes of one thread each.

    Every process reads its rows from the file, as on a cluster that shares a disk.

    Parameters
    ----------
    n_workers : int
    device : str, optional
        ``"cuda"`` for the GPU of the processes.
    """

    operations = ("fit",)
    from_file = True

    def __init__(self, n_workers: int, device: str | None = None) -> None:
        from distributed import Client, LocalCluster

        self._n_workers, self._device = n_workers, device
        self._cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=None,  # nothing is written to disk to save memory
            env=dict.fromkeys(THREAD_VARIABLES, "1"),
            dashboard_address=":0",
            silence_logs=50,
        )
        self._client = Client(self._cluster, set_as_default=False)
        self._before: dict[str, int] = {}
        self._moved = 0
        self._worked: dict[str, Work] = {}

    def warm_up(self, data: Data) -> None:
        # In every process: which of them small data would reach is chance.
        self._client.run(grow_a_little, data.X.shape[1], self._device or "cpu")
        self.fit(data)

    def close(self) -> None:
        self.model = None
        self._client.close()
        self._cluster.close()

    def fit(self, data: Data) -> None:
        from popf.dask import DaskOPFClassifier

        n, d = data.X.shape
        size = -(-n // blocks_for(self._n_workers, d))
        X, y = (lazily(array, size) for array in (data.X, data.y))
        self.model = DaskOPFClassifier(self._client, device=self._device).fit(X, y)

    def begin(self) -> None:
        self._before = self._client.run(forget_peak)
        if self._device:
            self._client.run(empty_pool)
        self._moved = self._sent()
        self._worked = self._client.run_on_scheduler(work_by_task)

    def facts(self) -> dict[str, Any]:
        peaks = self._client.run(peak_bytes)
        above = [peak - self._before[worker] for worker, peak in peaks.items()]
        worked = {}
        for name, work in self._client.run_on_scheduler(work_by_task).items():
            before = self._worked.get(name, (0, 0.0, 0.0))
            if work[0] > before[0]:
                worked[name] = [after - then for after, then in zip(work, before, strict=True)]
        facts = {
            **blocks_of(self.model),
            "workers": self._n_workers,
            "worker_memory": max(above),
            "moved": self._sent() - self._moved,
            "tasks": worked,
        }
        if self._device:
            facts["device_memory"] = max(self._client.run(pool_bytes).values())
        return facts

    def _sent(self) -> int:
        return sum(self._client.run(sent_bytes).values())


class UnderFire(OnProcesses):
    """As `OnProcesses`, on three processes, of which two are killed in the midst of every fit."""

    def __init__(self) -> None:
        super().__init__(3)
        self._killed = 0

    def fit(self, data: Data) -> None:
        from popf.dask.cluster import Tasks

        plain, killed = Tasks.gather, 0

        def gather(tasks: Any, futures: Any) -> Any:
            nonlocal killed
            # Whoever holds most, once blocks are there; the next time that something is waited for again.
            held = tasks.client.has_what()
            names = {str(key) for keys in held.values() for key in keys}
            if killed < 2 and any("gather-block" in name for name in names):
                victim = max(held, key=lambda address: len(held[address]))
                os.kill(tasks.client.run(os.getpid)[victim], signal.SIGKILL)
                killed += 1
            return plain(tasks, futures)

        Tasks.gather = gather  # type: ignore[method-assign]
        try:
            super().fit(data)
        finally:
            Tasks.gather = plain  # type: ignore[method-assign]
        self._killed = killed

    def warm_up(self, data: Data) -> None:
        self._client.run(grow_a_little, data.X.shape[1], "cpu")

    def begin(self) -> None:
        """Nothing of the processes is measured: they do not live to tell."""

    def facts(self) -> dict[str, Any]:
        if self._killed != 2:
            raise RuntimeError(f"{self._killed} processes were killed, not 2: the data are too few")
        return blocks_of(self.model)


def grow_a_little(n_features: int, device: str) -> None:
    """Load and compile what grows trees of blocks."""
    import popf.dask.base  # noqa: F401  (with all that tasks need)
    from popf.dask.kruskal import link, reduce_arcs
    from popf.dask.nearby import Block, boxes_reached, bridge
    from popf.dask.spanning import Means, tree_of_block, tree_of_two

    rng = np.random.default_rng(0)
    points, ones = rng.random((2, 3_000, n_features)), np.ones(3_000)
    points[1, :, 0] += 0.9
    first, second = (
        Block(2 * np.arange(3_000) + i, points[i], rng.integers(0, 2, 3_000), ones)
        for i in range(2)
    )
    lower, higher, *rest = bridge(first, second)
    for algorithm in ("kd_tree", "brute") if device == "cpu" else ("brute",):
        means = Means(algorithm, 1, 2**28, device=device)
        trees = tree_of_block(first, means), tree_of_block(second, means)
        arc = type(trees[0].arcs)(*(np.array([value]) for value in (lower, higher, *rest)))
        links = link(reduce_arcs([trees[0].arcs, trees[1].arcs, arc], 6_000)[0], 6_000)
        boxes_reached(first, links, points.min(axis=1), points.max(axis=1))
        tree_of_two(first, second, means, trees, links)


def blocks_for(n_workers: int, n_features: int) -> int:
    """Choose how many blocks keep so many processes busy.

    With few features most of the work is in the blocks, so there is one each. With many it is in the
    pairs: 2√k blocks make about 2k of them, and fewer blocks are compared with fewer others.
    """
    return max(4, n_workers if n_features < WIDE else round(2 * n_workers**0.5))


def blocks_of(model: Any) -> dict[str, int]:
    """Tell into how many blocks a fit went, and how many pairs of them it compared."""
    return {"n_blocks": model.n_blocks_, "n_pairs": model.n_block_pairs_}


def sent_bytes(dask_worker: Any) -> int:
    """Read how much a worker has sent, to other workers and, for the client, to the scheduler."""
    return int(dask_worker.transfer_outgoing_bytes_total)


def work_by_task(dask_scheduler: Any) -> dict[str, Work]:
    """Tell, by name, how many tasks were done, and their seconds of work and of fetching from others."""
    found = {}
    for name, prefix in dask_scheduler.task_prefixes.items():
        spent = prefix.all_durations
        found[name] = (prefix.state_counts["memory"], spent["compute"], spent["transfer"])
    return found


def lazily(array: NDArray[Any], size: int) -> Any:
    """Make a Dask array of `size` rows a chunk; a memory map is read by whoever needs the rows."""
    import dask
    import dask.array as da

    if not isinstance(array, np.memmap):
        return da.from_array(array, chunks=(size, *array.shape[1:]))
    width = array[:1].size
    chunks = []
    for start in range(0, len(array), size):
        shape = (min(size, len(array) - start), *array.shape[1:])
        offset = array.offset + start * width * array.itemsize
        rows = dask.delayed(read_rows)(str(array.filename), array.dtype.str, shape, offset)
        chunks.append(da.from_delayed(rows, shape, array.dtype))
    return da.concatenate(chunks)


def read_rows(path: str, dtype: str, shape: tuple[int, ...], offset: int) -> NDArray[Any]:
    """Read rows; not by a memory map, whose pages would count as memory."""
    return np.fromfile(path, dtype, int(np.prod(shape)), offset=offset).reshape(shape)
