"""Memory that threads use again and again."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Workbench:
    """Memory in which tiles are made, used again and again.

    Fresh memory for every tile would cost a page fault for every 4 KiB of it, which takes a single
    thread a sixth of its time, and many threads wait for each other in it.
    """

    def __init__(self) -> None:
        self._memory: dict[tuple[str, Any], NDArray[Any]] = {}

    def room(self, name: str, shape: tuple[int, int], real: Any) -> NDArray[Any]:
        """Give an array whose contents do not matter, valid until the next call with that name."""
        size = shape[0] * shape[1]
        memory = self._memory.get((name, real))
        if memory is None or memory.size < size:
            memory = self._memory[name, real] = np.empty(size, dtype=real)
        return memory[:size].reshape(shape)


class Workbenches:
    """As many workbenches as there are threads at work; a thread takes one and brings it back."""

    def __init__(self) -> None:
        self._free: deque[Workbench] = deque()

    @contextmanager
    def one(self) -> Iterator[Workbench]:
        """Lend a workbench."""
        try:
            bench = self._free.pop()
        except IndexError:
            bench = Workbench()
        try:
            yield bench
        finally:
            self._free.append(bench)
