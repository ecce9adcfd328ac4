"""What a task is: one measurement, of some contestants on some data."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .contestants import POPF
from .data import DataSpec

SCALES = ("full", "quick", "tiny")


@dataclass(frozen=True)
class Target:
    """`subject` shall take at most `ratio` times what `peer` takes for `operation`.

    `operation` is ``"fit"``, ``"predict"`` or ``"total"``, their sum. Without a ratio the two are
    only shown beside each other.
    """

    operation: str
    peer: str
    ratio: float | None = None
    subject: str = POPF


@dataclass(frozen=True)
class Task:
    """One measurement: one set of data, some contestants, some operations.

    Attributes
    ----------
    suite, name : str
        Where it belongs and what it is called.
    kind : str
        ``"time"``, ``"memory"``, ``"fit"`` (both, and a digest of the forest), ``"import"`` or ``"first"``
        (the first fit in a process).
    data : DataSpec
        What is fitted and predicted.
    contestants, operations : tuple of str
        Who does what. Without ``"fit"`` among the operations, the fit is made but not timed.
    repeat, threads : int
        How often each is timed, and on how many threads.
    once : tuple of str
        Contestants too slow to be timed more than once.
    targets : tuple of Target
        What popf is compared with.
    recorded : tuple of (str, str, float)
        Peer, operation and seconds for peers measured elsewhere.
    """

    suite: str
    name: str
    data: DataSpec
    contestants: tuple[str, ...] = (POPF,)
    operations: tuple[str, ...] = ("fit",)
    kind: str = "time"
    repeat: int = 3
    threads: int = 1
    once: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    recorded: tuple[tuple[str, str, float], ...] = ()


class Scale:
    """Chooses between the sizes of the three scales."""

    def __init__(self, name: str = "full") -> None:
        if name not in SCALES:
            raise ValueError(f"unknown scale {name!r}; choose one of {SCALES}")
        self.name = name

    def pick(self, full: int, quick: int) -> int:
        """Pick the size at this scale."""
        return {"full": full, "quick": quick, "tiny": min(quick, 120)}[self.name]

    def doubling(self, full: int) -> list[int]:
        """List sizes for a growth exponent: 2,000 doubling up to `full`, or two small ones."""
        if self.name == "tiny":
            return [60, 120]
        if self.name == "quick":
            return [1_000, 4_000]
        return [2_000 * 2**i for i in range((full // 2_000).bit_length())]


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_counts() -> list[int]:
    """1, 2, 4 … and the number of cores."""
    available = cores()
    return sorted({2**i for i in range(available.bit_length())} | {available})
