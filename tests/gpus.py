"""Whether there is a GPU here, and the devices that tests can use.

"host" is the twin of the GPU's kernels in NumPy; it is registered here, for tests alone.
"""

import pytest

from host_kernels import HostKernels
from popf.engine.gpu.backend import GpuBackend
from popf.forest.validation import BACKENDS

BACKENDS["host"] = lambda: GpuBackend(HostKernels())


def has_gpu():
    """Whether CuPy finds a GPU."""
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # not installed, or no driver
        return False


gpu = pytest.mark.skipif(
    not has_gpu(), reason="needs an NVIDIA GPU, and CuPy: pip install popf[cuda]"
)
DEVICES = ["host", pytest.param("cuda", marks=[gpu, pytest.mark.gpu])]
