"""Matrix products in the engine's own threads, not in those of BLAS."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_limits: list[Any] = []  # one for everybody inside; the number of threads belongs to the process
_inside = 0


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looking for the libraries takes a while, so once


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, so that `n_jobs` alone says how many cores are used.

    Several user threads may be inside at a time: the first limits BLAS, the last one lets it go.
    """
    global _inside
    with _lock:
        if _inside == 0:
            _limits.append(_controller().limit(limits=1, user_api="blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.pop().restore_original_limits()
