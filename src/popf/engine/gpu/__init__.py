"""Forests on a GPU: matrix products only select candidates, decisions are made in float64.

`backend` implements the interface that the engine expects of a device. `cuda` holds the kernels (their source
is in `cuda_source`), `host` the decisions for points that do not fit on the device. The tests have the same
kernels in NumPy, so that everything else also runs without a GPU. The rest of the engine does not import this
folder.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popf.engine.structures import Backend


def cuda_backend() -> "Backend":
    """Create the backend for the CUDA device; raise DeviceError if there is none."""
    from popf.engine.gpu.backend import GpuBackend
    from popf.engine.gpu.cuda import cuda_kernels

    return GpuBackend(cuda_kernels())
