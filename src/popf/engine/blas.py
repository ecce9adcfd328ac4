"""Matrix products in the engine's own threads, not in those of BLAS."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looking for the libraries takes a while, so once


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread, so that `n_jobs` alone says how many cores are used."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
