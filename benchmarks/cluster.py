"""Contestants that grow the forest block by block: from files, and on a cluster of processes."""

import numpy as np

from .contestants import Contestant
from .worker import THREAD_VARIABLES, forget_peak, peak_bytes

# From this number of features on, every pair of blocks has to be compared.
WIDE = 20
# From this number on, memory matters most, so blocks are small.
VERY_WIDE, BLOCK_BYTES = 1_000, 2**24


class OutOfCore(Contestant):
    """`DaskOPFClassifier` on memory-mapped files, with threads of this process."""

    from_file = True

    def fit(self, data):
        from popf.dask import DaskOPFClassifier

        n, d = data.X.shape
        size = min(500_000, -(-n // 8))
        if d > VERY_WIDE:
            size = min(size, BLOCK_BYTES // (8 * d))
        # The system's temporary folder may be in memory.
        model = DaskOPFClassifier(block_size=size, scratch="scratch")
        self.model = model.fit(data.X, data.y)

    def facts(self):
        return {"n_blocks": self.model.n_blocks_, "n_pairs": self.model.n_block_pairs_}


class OnProcesses(Contestant):
    """`DaskOPFClassifier` on a local cluster of processes with one thread each.

    Every process reads its rows from the file, as on a cluster with a shared disk.
    """

    from_file = True

    def __init__(self, n_workers, device=None):
        from distributed import Client, LocalCluster

        self.n_workers, self.device = n_workers, device
        self.cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=None,
            env=dict.fromkeys(THREAD_VARIABLES, "1"),
            dashboard_address=":0",
            silence_logs=50,
        )
        self.client = Client(self.cluster, set_as_default=False)

    def close(self):
        self.model = None
        self.client.close()
        self.cluster.close()

    def fit(self, data):
        from popf.dask import DaskOPFClassifier

        n, d = data.X.shape
        # With few features most of the work is within the blocks, so there is one per process. With many
        # features it is in the pairs of blocks: 2√k blocks make about 2k pairs for k processes.
        n_blocks = max(4, self.n_workers if d < WIDE else round(2 * self.n_workers**0.5))
        if d > VERY_WIDE:
            n_blocks = max(n_blocks, data.X.nbytes // BLOCK_BYTES)
        X, y = (lazily(array, -(-n // n_blocks)) for array in (data.X, data.y))
        self.model = DaskOPFClassifier(self.client, device=self.device).fit(X, y)

    def begin(self):
        self.before = self.client.run(forget_peak)
        self.sent = sum(self.client.run(sent_bytes).values())

    def facts(self):
        peaks = self.client.run(peak_bytes)
        return {
            "n_blocks": self.model.n_blocks_,
            "n_pairs": self.model.n_block_pairs_,
            "workers": self.n_workers,
            "worker_memory": max(peak - self.before[worker] for worker, peak in peaks.items()),
            "moved": sum(self.client.run(sent_bytes).values()) - self.sent,
        }


def sent_bytes(dask_worker):
    """Return the number of bytes that a worker has sent."""
    return int(dask_worker.transfer_outgoing_bytes_total)


def lazily(array, size):
    """Build a Dask array with chunks of `size` rows; workers read the rows of a memory map themselves."""
    import dask
    import dask.array as da

    if not isinstance(array, np.memmap):
        return da.from_array(array, chunks=(size, *array.shape[1:]))
    width = array[:1].nbytes
    chunks = []
    for start in range(0, len(array), size):
        shape = (min(size, len(array) - start), *array.shape[1:])
        offset = array.offset + start * width
        rows = dask.delayed(read_rows)(str(array.filename), array.dtype.str, shape, offset)
        chunks.append(da.from_delayed(rows, shape, array.dtype))
    return da.concatenate(chunks)


def read_rows(path, dtype, shape, offset):
    """Read rows from a file, without a memory map, whose pages would count as memory."""
    return np.fromfile(path, dtype, int(np.prod(shape)), offset=offset).reshape(shape)
