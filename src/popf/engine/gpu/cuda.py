"""The kernels on a CUDA device, through CuPy.

A warp of 32 threads processes a row, and each thread keeps one candidate. Exact distances are summed over the
features in order, with every operation rounded separately, so that they equal those of the CPU to the bit.
"""

from functools import cache, cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.gpu import cuda_source
from popf.engine.gpu.host import CANDIDATES, ROOM, Array, Pair
from popf.engine.structures import FloatArray, IntArray, ceil_div

THREADS = 256
WARP = 32
# Blocks that keep a large device busy.
BLOCKS = 1024
NAMES = (
    *("select_smallest", "sort_neighbours", "find_conquerors", "outsider_bounds"),
    *("list_outsiders", "pair_squares", "add_terms"),
)


class DeviceError(RuntimeError):
    """Raised when there is no usable GPU."""


@cache
def cuda_kernels() -> "CudaKernels":
    """Compile the kernels once; raise DeviceError without CuPy, a driver or a GPU."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            'device="cuda" needs CuPy: pip install "popf[cuda]" (or the CuPy wheel for your CUDA '
            "version), or use device=None."
        ) from error
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy has one error class for each library below it
        raise DeviceError(
            f"CUDA is not available ({error}). Install a driver that supports CUDA "
            f"{cupy.cuda.runtime.runtimeGetVersion() // 1000} on a machine with a GPU, or use device=None."
        ) from error
    if n_devices == 0:
        raise DeviceError('device="cuda" was requested, but there is no GPU: use device=None.')
    try:
        return CudaKernels(cupy)
    except Exception as error:
        raise DeviceError(
            f"CuPy {cupy.__version__} cannot compile for this GPU ({error}): install the CuPy wheel for your "
            "CUDA version, or use device=None."
        ) from error


class CudaKernels:
    """The kernels on the current CUDA device; `tests/host_kernels.py` defines what they compute."""

    def __init__(self, cupy: Any) -> None:
        self.xp = cupy
        module = cupy.RawModule(code=cuda_source.SOURCE, options=("--std=c++14",))
        self._kernel = {name: module.get_function(name) for name in NAMES}
        self._tensor = _tensor_cores(cupy)
        self._shared_bytes = 0
        if self._tensor is not None:
            self._shared_bytes = int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])
        self._compute_type_lock = Lock()  # while CuPy's compute type is changed

    def put(self, array: NDArray[Any]) -> Array:
        """Copy an array to the device."""
        return self.xp.asarray(np.ascontiguousarray(array))

    def get(self, array: Array) -> NDArray[Any]:
        """Copy an array back to the host."""
        found: NDArray[Any] = self.xp.asnumpy(array)
        return found

    def free_bytes(self) -> int:
        """Return the number of bytes that may be used on the device."""
        pool = self.xp.get_default_memory_pool()
        return int(self.xp.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())

    def rounding(self, n_features: int) -> float:
        """Return the maximum error of a product, relative to half the sum of the squared norms."""
        rounded = 2.0 * (n_features + 16) * float(np.finfo(np.float32).eps)
        # Tensor cores round both factors to eleven bits first.
        return rounded + (2.0**-10 * 1.01 if self._tensor is not None else 0.0)

    def multiply(self, left: Array, right: Array) -> Array:
        """Compute the products of all pairs of rows; in float32, on the tensor cores if there are any."""
        if self._tensor is None or left.dtype != np.float32:
            return self.xp.matmul(left, right.T)
        linalg, tensor = self._tensor
        with self._compute_type_lock:
            before = linalg.get_compute_type(np.float32)
            linalg.set_compute_type(np.float32, tensor)
            try:
                return self.xp.matmul(left, right.T)
            finally:  # leave the user's own products unchanged
                linalg.set_compute_type(np.float32, before)

    def select(
        self, products: Array, norms: Pair, floors: Array, first_column: int, own: Array, kept: Pair
    ) -> None:
        """Keep the candidates with the smallest lower bounds."""
        sizes = products.shape
        self._run("select_smallest", products, *norms, floors, *sizes, first_column, own, *kept)

    def can_filter(self, n_features: int) -> bool:
        """Return whether products can be filtered while they are computed."""
        return _bytes_of_filter(n_features) <= self._shared_bytes

    def filter(
        self, rows: Any, own: Array, columns: Any, floors: Array, kept: Pair, crowded: Array
    ) -> None:
        """Keep the candidates with the smallest lower bounds, from products in half precision."""
        xp, (n_rows, width), n_columns = self.xp, rows.values.shape, len(columns.lower)
        limits = kept[0].max(axis=1)
        scaled = xp.ldexp(limits, np.int32(2 * rows.exponent))
        # Pairs whose sum is not above the bar are not below the limit, even with rounding.
        bars = (rows.lower - scaled) * np.float32(0.5)
        bars -= np.float32(2.0**-20) * (abs(rows.lower) + scaled)
        counts = xp.zeros(n_rows, dtype=np.int32)
        passed = xp.empty((n_rows, ROOM), dtype=np.float32)
        indices = xp.empty((n_rows, ROOM), dtype=np.int32)
        n_groups, n_tiles, tiles_each = _shares_of_filter(n_rows, n_columns)
        half_norms = xp.full(n_tiles * cuda_source.COLUMNS, np.inf, dtype=np.float32)
        half_norms[:n_columns] = columns.lower * np.float32(0.5)
        kernel = self._filter_kernels["filter_products"]
        kernel.max_dynamic_shared_size_bytes = _bytes_of_filter(width)
        arguments = (
            *(rows.values, columns.values, np.int32(width), n_rows, n_columns),
            *(half_norms, bars, rows.lower),
            *(xp.ascontiguousarray(floors), limits, np.float32(2.0 ** (-2 * rows.exponent))),
            *(own, columns.first, columns.stride, np.int32(tiles_each)),
            *(np.int32(ROOM), counts, passed, indices),
        )
        kernel(
            (n_groups, ceil_div(n_tiles, tiles_each)),
            (cuda_source.THREADS,),
            _as_long(arguments),
            shared_mem=_bytes_of_filter(width),
        )
        self._run("keep_passed", counts, np.int32(ROOM), n_rows, passed, indices, *kept, crowded)

    @cached_property
    def _filter_kernels(self) -> dict[str, Any]:
        """Compile the filter kernels when first needed: that takes seconds, once per machine."""
        module = self.xp.RawModule(
            code=cuda_source.SOURCE + cuda_source.FILTER_SOURCE, options=("--std=c++14",)
        )
        found = {name: module.get_function(name) for name in ("filter_products", "keep_passed")}
        self._kernel |= found
        return found

    def neighbours(
        self, rows: Array, points: Array, kept: Pair, k: int
    ) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        """Compute exact distances of the candidates; return positions, squares and horizon, nearest first."""
        xp, n_rows = self.xp, len(rows)
        positions = xp.empty((n_rows, k), dtype=np.int32)
        squared, horizon = xp.empty((n_rows, k)), xp.empty(n_rows)
        sizes = (*rows.shape, k)
        self._run("sort_neighbours", rows, points, *kept, *sizes, positions, squared, horizon)
        return self.get(positions), self.get(squared), self.get(horizon)

    def conquerors(
        self, rows: Array, points: Array, kept: Pair, costs: Array, rank: Array
    ) -> tuple[IntArray, FloatArray, FloatArray, NDArray[np.bool_]]:
        """Find the conqueror among the candidates: node, cost, squared distance, and whether it is certain."""
        xp, n_rows = self.xp, len(rows)
        nodes, certain = xp.empty(n_rows, dtype=np.int64), xp.empty(n_rows, dtype=np.bool_)
        offers, squared = xp.empty(n_rows), xp.empty(n_rows)
        found = (nodes, offers, squared, certain)
        self._run("find_conquerors", rows, points, *kept, costs, rank, *rows.shape, *found)
        return self.get(nodes), self.get(offers), self.get(squared), self.get(certain)

    def outsider_bounds(self, products: Array, norms: Pair, components: Pair, low: Array) -> None:
        """Lower `low` to the smallest upper bound on the squared distance to another component."""
        self._run("outsider_bounds", products, *norms, *components, *products.shape, low)

    def outsiders(
        self, products: Array, norms: Pair, components: Pair, limits: Array, capacity: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """List pairs of different components whose lower bound is within the row's limit; None if too many."""
        xp = self.xp
        rows, columns = xp.empty(capacity, dtype=np.int32), xp.empty(capacity, dtype=np.int32)
        count = xp.zeros(1, dtype=np.uint64)
        sizes = (*products.shape, capacity)
        self._run(
            "list_outsiders", products, *norms, *components, limits, *sizes, rows, columns, count
        )
        found = int(count.get()[0])
        if found > capacity:
            return None
        return self.get(rows[:found]).astype(np.int64), self.get(columns[:found]).astype(np.int64)

    def pair_squares(self, points: Array, first: Array, second: Array) -> Array:
        """Compute the squared distances of pairs, summing the features in order."""
        squared = self.xp.empty(len(first))
        blocks = ceil_div(len(first), THREADS)
        arguments = (points, first, second, len(first), points.shape[1], squared)
        if len(first):
            self._kernel["pair_squares"]((blocks,), (THREADS,), _as_long(arguments))
        return squared

    def add_terms(
        self,
        products: Array,
        queries: tuple[Array, Array, Array],
        nodes: tuple[Array, Array, Array, Array],
        taus: FloatArray,
        state: Pair,
    ) -> None:
        """Add the exponentials of path costs to the sums of a class."""
        assert len(taus) <= 9  # their sums are kept in registers
        sizes = (*products.shape, queries[0].shape[1])
        bandwidths = self.put(taus), len(taus)
        self._run("add_terms", products, *queries, *nodes, *sizes, *bandwidths, *state)

    def _run(self, name: str, of_rows: Array, *arguments: Any) -> None:
        """Launch a kernel with one warp for each row of its first argument."""
        blocks = ceil_div(len(of_rows) * WARP, THREADS)
        self._kernel[name]((blocks,), (THREADS,), _as_long((of_rows, *arguments)))


def _bytes_of_filter(n_features: int) -> int:
    """Return the bytes of shared memory for a block of rows and for the tiles of columns in transit."""
    width: int = ceil_div(n_features, cuda_source.WIDTH) * cuda_source.WIDTH
    tile = cuda_source.COLUMNS * (cuda_source.WIDTH + cuda_source.PAD)
    halves = cuda_source.ROWS * (width + cuda_source.PAD) + cuda_source.STAGES * tile
    return 2 * halves + 8 * (cuda_source.COLUMNS + cuda_source.QUEUE)


def _shares_of_filter(n_rows: int, n_columns: int) -> tuple[int, int, int]:
    """Return the number of groups of rows, of tiles of columns, and of tiles per block.

    With few rows, the columns are divided among more blocks, so that the whole device is busy. No block takes
    more columns than it can count.
    """
    n_groups, n_tiles = ceil_div(n_rows, cuda_source.ROWS), ceil_div(n_columns, cuda_source.COLUMNS)
    n_shares = max(1, min(n_tiles, BLOCKS // n_groups))
    most = cuda_source.MAX_BLOCK_COLUMNS // cuda_source.COLUMNS
    return n_groups, n_tiles, min(ceil_div(n_tiles, n_shares), most)


def _as_long(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert plain integers to the kernels' ``long long``."""
    return tuple(np.int64(one) if isinstance(one, int) else one for one in arguments)


def _tensor_cores(cupy: Any) -> tuple[Any, int] | None:
    """Return how to run float32 products on the tensor cores; None if CuPy or the device cannot."""
    try:
        from cupy._core import _routines_linalg as linalg

        tensor = linalg.COMPUTE_TYPE_TF32
        linalg.get_compute_type(np.float32)
    except (ImportError, AttributeError):
        return None
    return (linalg, tensor) if int(cupy.cuda.Device().compute_capability) >= 80 else None


assert CANDIDATES == WARP
