"""What the engine asks of a device, answered by kernels of a GPU or by their twin in NumPy."""

from collections.abc import Callable
from typing import Any

from popf.engine.gpu import conquest, points, soft, tree
from popf.engine.gpu.points import DevicePoints
from popf.engine.soft.by_tiles import CompetingPoints
from popf.engine.structures import (
    Conquered,
    FloatArray,
    IntArray,
    NeighbourLists,
    OutgoingArcSearch,
)


class GpuBackend:
    """The GPU's algorithms, by `CudaKernels` or `HostKernels`; see `popf.engine.backends.Backend`."""

    def __init__(self, kernels: Any) -> None:
        self.kernels = kernels

    def place(self, points: FloatArray) -> DevicePoints:
        """Lay out points on the device."""
        return DevicePoints(points, self.kernels)

    def nearest_neighbours(self, placed: DevicePoints, split: int | None = None) -> NeighbourLists:
        """List neighbours of all points."""
        return tree.nearest_neighbours(placed, split=split)

    def nearest_outsiders(
        self, placed: DevicePoints, search: OutgoingArcSearch, split: int | None = None
    ) -> None:
        """Find the shortest arcs out of components."""
        tree.nearest_outsiders(placed, points.ROWS, search, split)

    def conquer(
        self,
        placed: DevicePoints,
        costs: FloatArray,
        rank: IntArray,
        queries: FloatArray,
        fallback: Callable[[FloatArray], Conquered],
    ) -> Conquered:
        """Find who conquers each query."""
        return conquest.conquer(placed, costs, rank, queries, fallback)

    def soft_scores(
        self, nodes: CompetingPoints, queries: FloatArray, taus: FloatArray
    ) -> FloatArray:
        """Score queries softly."""
        return soft.device_scores(nodes, queries, taus, self.kernels)
