"""What a fit on a GPU is made of: ``python -m benchmarks.gpu_parts``.

Neighbours by whole tiles and by the filter, in turn; and the product of a tile and the selection from it
through CuPy and through PyTorch, where that is installed. Clocks are read when the device has come to rest.
``--device host`` runs the same on the processor, where there is no GPU, to see that it runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from popf.engine.gpu import candidates, tree
from popf.engine.gpu.cuda import cuda_kernels
from popf.engine.gpu.host import CANDIDATES, HostKernels
from popf.engine.gpu.points import COLUMNS, ROWS, DevicePoints

WHOLE, FILTERED = "whole tiles", "filtered"


def at_rest(kernels: Any) -> None:
    """Wait until the device has done everything."""
    if hasattr(kernels.xp, "cuda"):
        kernels.xp.cuda.Device().synchronize()


def best(kernels: Any, call: Callable[[], object], repeat: int) -> float:
    """Give the best seconds of several calls, after one that does not count."""
    call()
    found = []
    for _ in range(repeat):
        at_rest(kernels)
        begin = time.perf_counter()
        call()
        at_rest(kernels)
        found.append(time.perf_counter() - begin)
    return min(found)


def neighbours(kernels: Any, n: int, d: int, repeat: int) -> dict[str, float]:
    """Time the neighbours of n points by whole tiles and by the filter, which must agree.

    Raises
    ------
    ValueError
        If they do not.
    """
    laid = DevicePoints(np.random.default_rng(0).normal(size=(n, d)) / 16.0, kernels)
    before, found, lists = candidates.FEWEST, {}, []
    try:
        for name, fewest in ((WHOLE, n + 1), (FILTERED, 1)):
            candidates.FEWEST = fewest
            found[name] = best(kernels, lambda: tree.nearest_neighbours(laid), repeat)
            lists.append(tree.nearest_neighbours(laid))
    finally:
        candidates.FEWEST = before
    if not np.array_equal(lists[0].squared, lists[1].squared):
        raise ValueError(f"{WHOLE} and {FILTERED} found different neighbours of {n:,} × {d}")
    return found


def parts_of_a_tile(
    kernels: Any, d: int, repeat: int, size: tuple[int, int] = (ROWS, COLUMNS)
) -> dict[str, float]:
    """Time the product of a tile and the selection from it, by our kernels and by PyTorch."""
    rng = np.random.default_rng(0)
    left, right = (kernels.put(rng.normal(size=(n, d)).astype(np.float32)) for n in size)
    norms = ((left * left).sum(axis=1), (right * right).sum(axis=1))
    products = kernels.multiply(left, right)
    xp = kernels.xp
    own, floors = xp.full(size[0], -1, dtype=np.int64), xp.zeros(size[1], dtype=np.float32)

    def select() -> None:
        kernels.select(products, norms, floors, 0, own, candidates._nobody(xp, size[0]))

    found = {
        "product": best(kernels, lambda: kernels.multiply(left, right), repeat),
        "selection": best(kernels, select, repeat),
    }
    try:
        import torch
    except ImportError:
        return found
    torch.backends.cuda.matmul.allow_tf32 = True
    ours = (left, right, products)
    a, b, c = (torch.as_tensor(array) for array in ours)
    n_kept = min(CANDIDATES, size[1])
    found["product, PyTorch"] = best(kernels, lambda: a @ b.T, repeat)
    found["selection, PyTorch"] = best(
        kernels, lambda: torch.topk(c, n_kept, dim=1, largest=False), repeat
    )
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_parts", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--samples", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    kernels = cuda_kernels() if options.device == "cuda" else HostKernels()
    for n in options.samples:
        found = neighbours(kernels, n, options.features, options.repeat)
        ratio = found[WHOLE] / found[FILTERED]
        flops = 2.0 * n * n * options.features / found[FILTERED]
        print(
            f"neighbours of {n:,} × {options.features}: {WHOLE} {found[WHOLE]:.3f} s, "
            f"{FILTERED} {found[FILTERED]:.3f} s ({ratio:.2f} ×, {flops / 1e12:.1f} Tflop/s)"
        )
    size = (ROWS, COLUMNS) if options.device == "cuda" else (64, 128)
    for name, seconds in parts_of_a_tile(kernels, options.features, options.repeat, size).items():
        print(f"{name} of a tile of {size[0]:,} × {size[1]:,}: {1e3 * seconds:.3f} ms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
