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


class Team:
    """Threads that stay together over several rounds of work, as a context.

    Parameters
    ----------
    n_threads : int
        How many chunks may be under way at a time.

    Examples
    --------
    >>> from popf.engine.threads import Team
    >>> with Team(2) as team:
    ...     team.map_chunks(lambda start, stop: stop - start, 10, 4)
    [4, 4, 2]
    """

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=n_threads) if n_threads > 1 else None

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            # On Ctrl-C or an error the chunks not yet begun are dropped; those under way are short.
            self._pool.shutdown(wait=True, cancel_futures=True)

    def map_chunks(
        self, function: Callable[[int, int], Result], total: int, size: int
    ) -> list[Result]:
        """Call ``function(start, stop)`` for every chunk of ``range(total)``, results in order."""
        ranges = chunks(total, size)
        if self._pool is None or len(ranges) <= 1:
            return [function(start, stop) for start, stop in ranges]
        futures = [self._pool.submit(function, start, stop) for start, stop in ranges]
        return [future.result() for future in futures]


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
    with Team(min(n_threads, -(-total // max(1, size)))) as team:
        return team.map_chunks(function, total, size)
