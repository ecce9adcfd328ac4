"""Threads over chunks of work, the only source of parallelism in the engine.

Kernels release the GIL, so plain threads scale. Work is cut into chunks short enough that Ctrl-C is
answered between two of them; results do not depend on the cut.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def chunks(total: int, size: int) -> list[tuple[int, int]]:
    """Cut ``range(total)`` into ranges of at most `size`.

    Examples
    --------
    >>> from popf.engine.threads import chunks
    >>> chunks(10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    size = max(1, size)
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def map_chunks(
    function: Callable[[int, int], Result], total: int, size: int, n_threads: int = 1
) -> list[Result]:
    """Call ``function(start, stop)`` for every chunk of ``range(total)``, results in order.

    Parameters
    ----------
    function : callable
        Called as ``function(start, stop)``; must be safe to call from several threads.
    total, size : int
        How many items there are, and how many make a chunk.
    n_threads : int
        How many chunks may be under way at a time.

    Returns
    -------
    list
        One result a chunk, in the order of the chunks.
    """
    ranges = chunks(total, size)
    if n_threads <= 1 or len(ranges) <= 1:
        return [function(start, stop) for start, stop in ranges]
    pool = ThreadPoolExecutor(max_workers=min(n_threads, len(ranges)))
    try:
        futures = [pool.submit(function, start, stop) for start, stop in ranges]
        return [future.result() for future in futures]
    finally:
        # On Ctrl-C or an error the chunks not yet begun are dropped; those under way are short.
        pool.shutdown(wait=True, cancel_futures=True)
