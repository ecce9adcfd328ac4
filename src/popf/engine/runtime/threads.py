"""Threads that process chunks of work, the only source of parallelism in the engine.

Kernels release the GIL, so plain threads scale. Chunks are short enough that Ctrl-C is answered between two of
them; results do not depend on how the work is split. BLAS is limited to one thread meanwhile.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

from popf.engine.structures import ceil_div

_lock = Lock()  # of what several user threads share below
_local = local()  # the outermost team of each thread

Item = TypeVar("Item")
Result = TypeVar("Result")

# Rows per chunk where each takes a few nanoseconds: with fewer, scheduling would take longer than the work.
CHUNK_ROWS = 1 << 15
# Where items take longer: minimum items per chunk, and chunks per thread, so that all threads finish at about
# the same time.
MIN_ITEMS, CHUNKS_PER_THREAD = 32, 8
# How often a waiting thread wakes up: Ctrl-C may not wake it if another library has set a SIGINT handler.
WAKE_SECONDS = 0.25
# How long a thread that returns from a kernel waits for one that runs Python. With Python's 5 ms, two threads
# that grow a forest beside one that runs Python took 1.3 to 1.6 times as long, and sixteen threads 1.2 times.
SWITCH_SECONDS = 1e-4
_intervals: list[float] = []  # the interval to restore, once for each user


class Team:
    """A group of threads for several rounds of work, used as a context manager.

    A team inside another one of the same thread shares its threads, so that a fit starts them only once.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = max(1, n_threads)
        self.pool: ThreadPoolExecutor | None = None
        self.limits_blas = False
        self._on_exit = ExitStack()

    def __enter__(self) -> "Team":
        outer: Team | None = getattr(_local, "team", None)
        if self.n_threads == 1:
            return self
        if outer and outer.n_threads >= self.n_threads and outer.limits_blas >= bool(_inside):
            self.pool = outer.pool
            return self
        self.limits_blas = bool(_inside)
        self._on_exit.enter_context(_switch_quickly())
        self.pool = ThreadPoolExecutor(self.n_threads, initializer=_limit_new_thread)
        # On Ctrl-C or an error, chunks not yet started are dropped; those running are short.
        self._on_exit.callback(self.pool.shutdown, wait=True, cancel_futures=True)
        self._on_exit.callback(setattr, _local, "team", outer)
        _local.team = self
        return self

    def __exit__(self, *_: object) -> None:
        self._on_exit.close()

    def map_chunks(
        self, function: Callable[[int, int], Result], total: int, size: int
    ) -> list[Result]:
        """Call ``function(start, stop)`` for every chunk of ``range(total)``; return the results in order."""
        size = max(1, size)
        ranges = [(start, min(start + size, total)) for start in range(0, total, size)]
        if self.pool is None or len(ranges) <= 1:
            return [function(start, stop) for start, stop in ranges]
        results: list[Any] = [None] * len(ranges)
        # Threads fetch chunks from a queue: a future for each chunk often costs more than the chunk.
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

        try:  # Ctrl-C may come as soon as the first thread runs
            futures = [self.pool.submit(work) for _ in range(min(self.n_threads, len(ranges)))]
            pending = set(futures)
            while pending:
                done, pending = wait(pending, WAKE_SECONDS, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
        finally:
            waiting.clear()
        return results

    def map_shares(self, function: Callable[[int, int], Result], total: int) -> list[Result]:
        """Call ``function(start, stop)`` for equal shares of ``range(total)``, one per thread."""
        return self.map_chunks(function, total, ceil_div(total, self.n_threads))

    def map_rows(self, function: Callable[[int, int], Result], total: int) -> list[Result]:
        """Call ``function(start, stop)`` for chunks of rows that take a few nanoseconds each."""
        return self.map_chunks(function, total, CHUNK_ROWS)


#: Runs all work on the calling thread.
ONE_THREAD = Team(1)


def map_chunks(
    function: Callable[[int, int], Result], total: int, size: int, n_threads: int = 1
) -> list[Result]:
    """Call ``function(start, stop)`` for every chunk of ``range(total)``; return the results in order."""
    with Team(min(n_threads, ceil_div(total, max(1, size)))) as team:
        return team.map_chunks(function, total, size)


def map_items(
    function: Callable[[Item], Result], items: Sequence[Item], n_threads: int = 1
) -> list[Result]:
    """Call ``function(item)`` for a few slow items, results in order; Ctrl-C waits for those running."""
    return map_chunks(lambda number, _: function(items[number]), len(items), 1, n_threads)


def run_both(
    first: Callable[[], Item], second: Callable[[], Result], n_threads: int
) -> tuple[Item, Result]:
    """Call two slow functions, at the same time if there are several threads.

    The first runs on the calling thread, so that Ctrl-C interrupts it; then only the second is waited for.
    """
    if n_threads == 1:
        return first(), second()
    with _switch_quickly(), ThreadPoolExecutor(1, initializer=_limit_new_thread) as pool:
        other = pool.submit(second)
        return first(), other.result()


@contextmanager
def _switch_quickly() -> Iterator[None]:
    """Shorten Python's switch interval; several user threads may be inside at the same time."""
    with _lock:
        _intervals.append(_intervals[0] if _intervals else sys.getswitchinterval())
        sys.setswitchinterval(min(SWITCH_SECONDS, _intervals[0]))
    try:
        yield
    finally:
        with _lock:
            before = _intervals.pop()
            if not _intervals:
                sys.setswitchinterval(before)


def chunk_size(total: int, largest: int, n_threads: int) -> int:
    """Return the number of items per chunk: at most `largest`, with several chunks per thread."""
    if n_threads == 1:
        return largest
    return min(largest, max(MIN_ITEMS, total // (CHUNKS_PER_THREAD * n_threads)))


class BufferPool(Generic[Result]):
    """Reusable buffers, one for each running thread.

    Fresh memory costs a page fault for every 4 KiB, which takes a single thread a sixth of its time and makes
    many threads wait for each other.
    """

    def __init__(self, make: Callable[[], Result]) -> None:
        self._make = make
        self._free: deque[Result] = deque()

    @contextmanager
    def borrow(self) -> Iterator[Result]:
        """Lend a buffer with arbitrary contents."""
        try:
            buffer = self._free.pop()
        except IndexError:
            buffer = self._make()
        try:
            yield buffer
        finally:
            self._free.append(buffer)


# BLAS -------------------------------------------------------------------------------------------------------

_limits: list[Any] = []  # the limit in force, to be restored by the last thread that leaves
_inside = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, so that `n_jobs` alone determines how many cores are used.

    Several user threads may be inside at the same time: the first sets the limit, the last removes it. Where
    the limit applies to a thread instead of the process, a `Team` sets it in each of its threads.
    """
    global _inside
    with _lock:
        if _inside == 0:
            _limits.append(_limit_blas())
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _restore_blas(_limits.pop())


def _limit_new_thread() -> None:
    """Limit BLAS in a new thread as well, if it is limited in others."""
    with _lock:  # so that the limit is not removed meanwhile
        if _inside:
            _limit_blas()


@cache
def _controller() -> ThreadpoolController:
    # Kernels multiply with SciPy's BLAS, which may differ from NumPy's: it must be loaded to be limited.
    import scipy.linalg.cython_blas  # noqa: F401

    # Finding the libraries is slow, so it is done once.
    return ThreadpoolController().select(user_api="blas")


def _limit_blas() -> Any:
    """Limit BLAS; return the limit to restore later, or None if BLAS was limited already."""
    controller = _controller()
    if all(library["num_threads"] == 1 for library in controller.info()):
        return None
    limit = controller.limit(limits=1)
    _release_control()
    return limit


def _restore_blas(limit: Any) -> None:
    if limit is not None:
        limit.restore_original_limits()
        _release_control()


def _release_control() -> None:
    """Let other threads set limits: newer versions of threadpoolctl allow only the first thread to do so."""
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()


def _reset_after_fork() -> None:
    """Reset the state in a forked process, where the threads of its parent do not exist."""
    global _lock, _inside
    _lock, _inside = Lock(), 0
    _local.team = None
    while _limits:
        _restore_blas(_limits.pop())
    if _intervals:
        sys.setswitchinterval(_intervals[0])
        _intervals.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
