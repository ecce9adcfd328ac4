"""Threads over chunks of work, the only source of parallelism in the engine.

Kernels release the GIL, so plain threads scale. Work is cut into chunks short enough that Ctrl-C is
answered between two of them; results do not depend on the cut. BLAS is kept to one thread meanwhile.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

# Rows of a chunk where each takes some nanoseconds: less than that, and handing out takes longer.
CHUNK_ROWS = 1 << 15
# Where items take longer, a chunk holds at least so many, and there are so many chunks for a thread, so
# that all threads end at about the same time.
FEWEST_ITEMS, CHUNKS_PER_THREAD = 32, 8
# How often a waiting thread looks up: if another library has set a handler of SIGINT, Ctrl-C need not wake it.
WAKE_SECONDS = 0.25


class Team:
    """Threads that stay together over several rounds of work, as a context."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = max(1, n_threads)
        self._pool = (
            ThreadPoolExecutor(n_threads, initializer=_limit_new_thread) if n_threads > 1 else None
        )

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
        size = max(1, size)
        ranges = [(start, min(start + size, total)) for start in range(0, total, size)]
        if self._pool is None or len(ranges) <= 1:
            return [function(start, stop) for start, stop in ranges]
        results: list[Any] = [None] * len(ranges)
        # Threads fetch their chunks: handing out each one as a future costs more than many a chunk.
        waiting = deque(enumerate(ranges))

        def work() -> None:
            while True:
                try:
                    number, (start, stop) = waiting.popleft()
                except IndexError:
                    return
                try:
                    results[number] = function(start, stop)
                except BaseException:
                    waiting.clear()
                    raise

        try:  # Ctrl-C may come as soon as the first thread is at work
            futures = [self._pool.submit(work) for _ in range(min(self.n_threads, len(ranges)))]
            pending = set(futures)
            while pending:
                done, pending = wait(pending, WAKE_SECONDS, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
        finally:
            waiting.clear()
        return results

    def map_shares(self, function: Callable[[int, int], Result], total: int) -> list[Result]:
        """Call ``function(start, stop)`` for as many equal shares of ``range(total)`` as threads."""
        return self.map_chunks(function, total, -(-total // self.n_threads))

    def map_rows(self, function: Callable[[int, int], Result], total: int) -> list[Result]:
        """Call ``function(start, stop)`` for chunks of rows that take some nanoseconds each."""
        return self.map_chunks(function, total, CHUNK_ROWS)


#: For work on one thread.
ALONE = Team(1)


def map_chunks(
    function: Callable[[int, int], Result], total: int, size: int, n_threads: int = 1
) -> list[Result]:
    """Call ``function(start, stop)`` for every chunk of ``range(total)``, results in order."""
    with Team(min(n_threads, -(-total // max(1, size)))) as team:
        return team.map_chunks(function, total, size)


def map_items(
    function: Callable[[Item], Result], items: Sequence[Item], n_threads: int = 1
) -> list[Result]:
    """Call ``function(item)`` for few items that take long, results in order; Ctrl-C waits for those begun."""
    return map_chunks(lambda number, _: function(items[number]), len(items), 1, n_threads)


def chunk_size(total: int, largest: int, n_threads: int) -> int:
    """How many items make a chunk: at most `largest`, and some chunks for every thread."""
    if n_threads == 1:
        return largest
    return min(largest, max(FEWEST_ITEMS, total // (CHUNKS_PER_THREAD * n_threads)))


class BufferPool(Generic[Result]):
    """Buffers that threads use again and again, one for each thread at work.

    Fresh memory would cost a page fault for every 4 KiB of it, which takes a single thread a sixth of
    its time, and many threads wait for each other in it.
    """

    def __init__(self, make: Callable[[], Result]) -> None:
        self._make = make
        self._free: deque[Result] = deque()

    @contextmanager
    def borrow(self) -> Iterator[Result]:
        """Lend a buffer, whose contents do not matter."""
        try:
            buffer = self._free.pop()
        except IndexError:
            buffer = self._make()
        try:
            yield buffer
        finally:
            self._free.append(buffer)


# BLAS -------------------------------------------------------------------------------------------------------

_lock = Lock()
_limits: list[Any] = []  # what undoes the limit, for the last one who leaves
_inside = 0


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


def _limit_new_thread() -> None:
    """Limit BLAS in a new thread, too, if it is limited in others."""
    with _lock:  # so that nobody lets go meanwhile
        if _inside:
            _limit()


@cache
def _controller() -> ThreadpoolController:
    # Kernels multiply by SciPy's BLAS, which need not be NumPy's: it has to be there to be limited.
    import scipy.linalg.cython_blas  # noqa: F401

    # Looking for the libraries takes a while, so once.
    return ThreadpoolController().select(user_api="blas")


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
