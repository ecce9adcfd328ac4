"""Blocks: some of the samples, in memory or on disk."""

from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from popf.engine.structures import FloatArray, IntArray


class Block(NamedTuple):
    """Some of the samples."""

    samples: IntArray  # their numbers among all samples, ascending
    points: FloatArray  # scaled by the power of two that is common to all samples
    codes: IntArray  # their classes
    weights: FloatArray

    def take(self, which: Any) -> "Block":
        """Choose some of the samples."""
        return Block(*(array[which] for array in self))


class StoredBlock(NamedTuple):
    """A block on disk, as parts of files: (path, start, stop)."""

    parts: tuple[tuple[str, int, int], ...]

    def load(self) -> Block:
        """Read it into memory."""
        loaded = []
        for path, start, stop in self.parts:
            maps = (map_file(f"{path}-{name}.npy") for name in Block._fields)
            loaded.append(Block(*(np.array(mapped[start:stop]) for mapped in maps)))
        return concatenate(loaded)


class Nodes(NamedTuple):
    """A block of training nodes, with their path costs in the engine's unit."""

    block: Block
    costs: FloatArray


class StoredNodes(NamedTuple):
    """`Nodes` on disk; the file at `costs` holds those of all samples."""

    block: StoredBlock
    costs: str

    def load(self) -> Nodes:
        """Read them into memory."""
        block = self.block.load()
        return Nodes(block, np.array(map_file(self.costs)[block.samples]))


def load(value: Any) -> Any:
    """Read what is on disk into memory, and return everything else as it is."""
    return value.load() if isinstance(value, StoredBlock | StoredNodes) else value


def save(block: Block, path: str) -> None:
    """Write the arrays of a block to files whose names begin with `path`."""
    for name, array in block._asdict().items():
        np.save(f"{path}-{name}.npy", array)


def concatenate(parts: list[Block]) -> Block:
    """Put blocks together, samples in ascending order."""
    if len(parts) == 1:
        return parts[0]
    whole = Block(*map(np.concatenate, zip(*parts, strict=True)))
    return whole.take(np.argsort(whole.samples, kind="stable"))


reading_header = Lock()


def map_file(path: str | Path) -> np.memmap[Any, Any]:
    """Map an array in a ``.npy`` file.

    One thread at a time: NumPy parses the header as Python, and before 3.11.9 and 3.12.3 Python counts how deep
    it is in syntax trees for all threads together, and raises SystemError where two meet.
    """
    with reading_header:
        mapped: np.memmap[Any, Any] = np.load(path, mmap_mode="r")
    return mapped
