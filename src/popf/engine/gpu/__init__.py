"""The forest on a GPU: products there only tell where to look, decisions are made in float64.

`backend` answers what the engine asks of a device. `cuda` holds the kernels and `host` the same in NumPy, so
that all the rest runs, and is tested, where there is no GPU. `points` lays the data out, `candidates` looks for
the nearest of each, `tree` makes neighbours for the spanning tree of them, `conquest` conquers new samples,
`soft` sums the soft competition. The rest of the engine does not import this folder; labels, files and
estimators do not live here.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popf.engine.backends import Backend


def cuda_backend() -> "Backend":
    """Make the backend of the CUDA device; raises DeviceError where there is none."""
    from popf.engine.gpu.backend import GpuBackend
    from popf.engine.gpu.cuda import cuda_kernels

    return GpuBackend(cuda_kernels())
