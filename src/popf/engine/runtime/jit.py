"""One way to compile a kernel."""

import gc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile `function` on first use, without the GIL, cached on disk where that is possible.

    Numba looks for a writable folder (beside the source, else the user's cache) when the function is
    decorated, and raises if there is none; then the kernel is compiled anew in every process.
    """
    compiled: Any
    # Nobody calls kernels from C: the entry for that would only take time to compile.
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        compiled = numba.njit(**options)(function)
    return compiled  # type: ignore[no-any-return]


def helper(function: Function) -> Function:
    """Let kernels call `function`, which is compiled into those that do.

    It has no entry from Python, and nothing on disk, both of which take longer to make than most helpers
    themselves. Called from Python it runs as it is written.
    """
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(nogil=True, **options)(function)
    if compiled is not function:  # as it is with NUMBA_DISABLE_JIT
        # Numba asks values for their type. It would crash if the compiled one were called from Python.
        function.__dict__.update(compiled=compiled, _numba_type_=compiled._numba_type_)
    return function


class _NoCollection(event.Listener):
    """Lets the garbage collector rest while a kernel of ours is compiled.

    Numba makes objects by the million that stay, and going through them again and again takes a tenth
    of the time. Only one thread compiles at a time, so no two of them count here.
    """

    def __init__(self) -> None:
        self._depth = 0  # kernels compile what they call
        self._was_enabled = False

    def on_start(self, event: event.Event) -> None:
        if self._depth > 0:
            self._depth += 1
        elif event.data["dispatcher"].py_func.__module__.startswith(
            f"{__package__.rpartition('.')[0]}."
        ):
            self._depth, self._was_enabled = 1, gc.isenabled()
            gc.disable()

    def on_end(self, event: event.Event) -> None:
        if self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0 and self._was_enabled:
            gc.enable()


event.register("numba:compile", _NoCollection())


def _forget_stale_kernels(folder: Path) -> None:
    """Delete cached kernels older than any source beside them.

    Numba compares a cached kernel with its own file only. A kernel that calls into another file, or
    takes a structure defined there, would survive a change of that file.
    """
    sources = [path.stat().st_mtime for path in folder.rglob("*.py")]
    with suppress(OSError):
        for path in folder.rglob("*.nb[ic]"):
            if path.stat().st_mtime < max(sources):
                path.unlink()


_forget_stale_kernels(Path(__file__).parents[1])
