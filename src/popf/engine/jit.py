"""One way to compile a kernel."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile `function` on first use, without the GIL, cached on disk where that is possible.

    Numba looks for a writable folder (beside the source, else the user's cache) when the function is
    decorated, and raises if there is none; then the kernel is compiled anew in every process.
    """
    compiled: Any
    try:
        compiled = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        compiled = numba.njit(nogil=True)(function)
    return compiled  # type: ignore[no-any-return]


def _forget_stale_kernels(folder: Path) -> None:
    """Delete cached kernels older than any source beside them.

    Numba compares a cached kernel with its own file only. A kernel that calls into another file, or
    takes a structure defined there, would survive a change of that file.
    """
    sources = [path.stat().st_mtime for path in folder.glob("*.py")]
    with suppress(OSError):
        for path in (folder / "__pycache__").glob("*.nb[ic]"):
            if path.stat().st_mtime < max(sources):
                path.unlink()


_forget_stale_kernels(Path(__file__).parent)
