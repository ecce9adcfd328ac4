"""The forest on a GPU: products there only tell where to look, decisions are made in float64.

`backend` answers what the engine asks of a device. `cuda` holds the kernels, their source in `cuda_source`, and
`host` the same in NumPy, so that all the rest runs, and is tested, where there is no GPU. The rest of the
engine does not import this folder.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popf.engine.structures import Backend


def cuda_backend() -> "Backend":
    """Make the backend of the CUDA device; raises DeviceError where there is none."""
    from popf.engine.gpu.backend import GpuBackend
    from popf.engine.gpu.cuda import cuda_kernels

    return GpuBackend(cuda_kernels())
