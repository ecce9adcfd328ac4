"""One way to compile a kernel."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile `function` on first use, without the GIL, and cache it on disk where that is possible.

    Numba looks for a writable folder (beside the source, else the user's cache) when the function is
    decorated, and raises if there is none; then the kernel is compiled anew in every process.
    """
    try:
        compiled = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        compiled = numba.njit(nogil=True)(function)
    return compiled  # type: ignore[no-any-return]
