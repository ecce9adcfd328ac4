"""The forest on a GPU: products there only tell where to look, decisions are made in float64.

`cuda` holds the kernels and `host` the same in NumPy, so that all the rest runs, and is tested, where there
is no GPU. `points` lays the data out, `candidates` looks for the nearest of each, `tree` makes neighbours
for the spanning tree of them, `conquest` conquers new samples, `soft` sums the soft competition. Labels,
files and estimators do not live here.
"""

from typing import Any


def kernels_for(device: str) -> Any:
    """Give the kernels of a device, None for the processor's own algorithms.

    Parameters
    ----------
    device : {"cpu", "cuda", "host"}

    Examples
    --------
    >>> from popf.engine.gpu import kernels_for
    >>> kernels_for("host").name
    'numpy'
    """
    if device == "cuda":
        from popf.engine.gpu.cuda import cuda_kernels

        return cuda_kernels()
    if device == "host":
        from popf.engine.gpu.host import HostKernels

        return HostKernels()
    return None
