"""Matrix products in the engine's own threads, not in those of BLAS."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_limits: list[Any] = []  # what undoes the limit, for the last one who leaves
_inside = 0


@cache
def _controller() -> ThreadpoolController:
    # Kernels multiply by SciPy's BLAS, which need not be NumPy's: it has to be there to be limited.
    import scipy.linalg.cython_blas  # noqa: F401

    # Looking for the libraries takes a while, so once.
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, so that `n_jobs` alone says how many cores are used.

    Several user threads may be inside at a time: the first limits BLAS, the last one lets it go. Where
    the limit belongs to a thread, and not to the process, a `Team` limits those of its threads.
    """
    global _inside
    with _lock:
        if _inside == 0:
            _limits.append(_limit())
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _undo(_limits.pop())


def limit_new_thread() -> None:
    """Limit BLAS in a new thread, too, if it is limited in others."""
    with _lock:  # so that nobody lets go meanwhile
        if _inside:
            _limit()


def _limit() -> Any:
    """Limit BLAS; returns what undoes that, or None if it was limited already."""
    controller = _controller()
    if all(library["num_threads"] == 1 for library in controller.info()):
        return None
    limit = controller.limit(limits=1)
    _release_control()
    return limit


def _undo(limit: Any) -> None:
    if limit is not None:
        limit.restore_original_limits()
        _release_control()


def _release_control() -> None:
    """Let other threads set limits: newer versions of threadpoolctl keep the right for the first."""
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()


def _reset_after_fork() -> None:
    """Forget, in a forked process, the threads of its parent, which do not exist there."""
    global _lock, _inside
    _lock, _inside = Lock(), 0
    while _limits:
        _undo(_limits.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
