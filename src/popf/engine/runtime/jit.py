"""One way to compile a kernel."""

import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numba
from numba.core import event

from popf.engine.runtime.kernel_cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile `function` on first use, without the GIL, cached on disk where there is a folder for it."""
    # Nobody calls kernels from C: the entry for that would only take time to compile.
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(**options)(function)
    if compiled is not function:  # as it is with NUMBA_DISABLE_JIT
        with suppress(RuntimeError):
            compiled._cache = KernelCache(function)
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
        function.__dict__.update(compiled=compiled, _numba_type_=numba.typeof(compiled))
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
        elif event.data["dispatcher"].py_func.__module__.startswith("popf."):
            self._depth, self._was_enabled = 1, gc.isenabled()
            gc.disable()

    def on_end(self, event: event.Event) -> None:
        if self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0 and self._was_enabled:
            gc.enable()


event.register("numba:compile", _NoCollection())
