"""Locks on files between processes; the system lets go of them when a process dies."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    # Windows refuses reads of locked bytes: lock one far behind the end of any journal.
    _FAR = 2**40

    def _acquire(descriptor: int, wait: bool) -> bool:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    return False
            else:
                return True

    def _release(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(descriptor: int, wait: bool) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextlib.contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Hold the lock of an open file; wait for it as long as it takes."""
    _acquire(descriptor, wait=True)
    try:
        yield
    finally:
        _release(descriptor)


@contextlib.contextmanager
def presence(path: Path) -> Iterator[bool]:
    """Say whether this process is the first of those at work on something, and stay present.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from popf.experiment.locks import presence
    >>> with TemporaryDirectory() as folder:
    ...     lock = Path(folder, "lock")
    ...     with presence(lock) as first, presence(lock) as second:
    ...         print(first, second)
    True False
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        first = _acquire(descriptor, wait=False)
        try:
            yield first
        finally:
            if first:
                _release(descriptor)
    finally:
        os.close(descriptor)
