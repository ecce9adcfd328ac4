"""How much memory a process holds, and held at most, on the host and on a GPU."""

from __future__ import annotations

import contextlib
import os
import sys


def peak_bytes() -> int:
    """Read the most memory this process has held, since it began or since `forget_peak`."""
    try:
        # Linux lets ru_maxrss begin at what the parent held; this mark is the process's own.
        with open("/proc/self/status") as file:
            marks = [line.split()[1] for line in file if line.startswith("VmHWM:")]
        return int(marks[0]) * 1024
    except (OSError, IndexError):
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """Read the memory this process holds now; where that cannot be read, the most it ever held."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_bytes()


def forget_peak() -> int:
    """Let the high-water mark begin anew where the system can, and give what is held now."""
    # Elsewhere the mark stays that of the warm-up, which is small.
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return resident_bytes()


def empty_pool() -> None:
    """Give back what CuPy's pool holds of the device and nobody uses."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


def pool_bytes() -> int:
    """Read what CuPy's pool has taken of the device.

    The pool keeps what it once got, so that its size after a fit that it began empty is the most that was
    reserved. What CUDA's libraries hold for themselves is not in it.
    """
    import cupy

    return int(cupy.get_default_memory_pool().total_bytes())
