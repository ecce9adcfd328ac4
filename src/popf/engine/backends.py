"""Devices that do the work in place of the processor, by name.

The engine asks a backend by what `Backend` says and never imports one; `popf.engine.gpu` has the one there is.
All of them give the forest that the processor gives, to the bit.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from popf.engine.structures import Conquered, FloatArray, IntArray, NeighbourLists

if TYPE_CHECKING:
    from popf.engine.soft.by_tiles import CompetingPoints
    from popf.engine.structures import OutgoingArcSearch


class Backend(Protocol):
    """What a device is asked for, all of it by Euclidean distances."""

    def place(self, points: FloatArray) -> Any:
        """Lay out points on the device, for the methods below."""

    def nearest_neighbours(self, placed: Any, split: int | None = None) -> NeighbourLists:
        """List neighbours of all points; with `split`, those on the other side of that position."""

    def nearest_outsiders(
        self, placed: Any, search: "OutgoingArcSearch", split: int | None = None
    ) -> None:
        """Find the shortest arcs out of components, as `trees.neighbours.nearest_outsiders`."""

    def conquer(
        self,
        placed: Any,
        costs: FloatArray,
        rank: IntArray,
        queries: FloatArray,
        fallback: Callable[[FloatArray], Conquered],
    ) -> Conquered:
        """Find who conquers each query; those that stay uncertain are handed to `fallback`."""

    def soft_scores(
        self, nodes: "CompetingPoints", queries: FloatArray, taus: FloatArray
    ) -> FloatArray:
        """Score queries softly, as ``nodes.scores``."""


class Resources(NamedTuple):
    """What a computation may use."""

    n_threads: int = 1
    n_bytes: int = 2**30  # for blocks of distances, of all threads together
    backend: Backend | None = None  # a device, None for the processor


_makers: dict[str, Callable[[], Backend]] = {}


def register(device: str, make: Callable[[], Backend]) -> None:
    """Offer a backend under a name; `make` raises RuntimeError where it cannot work."""
    _makers[device] = make


def devices() -> tuple[str, ...]:
    """Name all devices, the processor first."""
    return ("cpu", *_makers)


def backend_for(device: str) -> Backend | None:
    """Return the backend of a device, None for the processor."""
    return None if device == "cpu" else _makers[device]()
