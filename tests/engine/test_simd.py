"""Vector operations: compiled, they do what their NumPy expressions say."""

import numba
import numpy as np
import pytest

import naive
from popf.engine.mst.boruvka import padded_range
from popf.engine.runtime import simd, simd_sums
from popf.engine.runtime.simd import LANES
from strategies import size


def blocks_of(rng, n_blocks, d):
    return rng.integers(-3, 4, (n_blocks, d, LANES)) / 3.0


def make_distances(rng, d):
    blocks = blocks_of(rng, 3, d)
    blocks[1, :, 9:] = np.inf  # missing points
    return blocks, 1, rng.normal(size=(5, d)), 3, float(d), np.empty(LANES)


def make_box_hits(rng, d):
    lows = rng.integers(-2, 1, (4, d)) / 3.0
    highs = lows + rng.integers(0, 3, (4, d)) / 3.0
    return blocks_of(rng, 2, d), 1, lows, highs, 2, rng.integers(-1, 4, LANES) / 3.0


def make_reaching(rng, d):
    return np.array([-1.0, np.inf, *rng.integers(0, 5, LANES - 2)]), float(rng.integers(0, 5))


def make_unlike(rng, d):
    values = padded_range(16 * d + 3)
    values[:] = rng.integers(0, 3, len(values))
    return values, 16 * d, np.int32(1)


def make_tile_hits(rng, d, real=np.float64):
    norms, bounds = rng.integers(0, 9, (2, 3 * LANES)).astype(real)
    tile = rng.integers(-4, 5, (3, 2 * LANES)).astype(real)
    return tile, 1, LANES, real(4), norms, real(2), bounds, int(rng.integers(0, 2 * LANES))


def make_path_costs(rng, d):
    blocks, costs = blocks_of(rng, 3, d), rng.random(3 * LANES)
    return blocks, 1, rng.normal(size=(6, d)), 2, costs, np.zeros((4, 2 * LANES)), 8


def make_sums(rng, d):
    costs, weights = 1.0 + 50.0 * rng.random((3, 48)), rng.random(64)
    return costs, 1, 8 * (d % 6 + 1), weights, 8, 1.0, -0.7, rng.random((3, 12, 8)), 2


EXACT = {
    "lane_distances": (simd.lane_distances, make_distances),
    "lane_box_hits": (simd.lane_box_hits, make_box_hits),
    "lanes_reaching": (simd.lanes_reaching, make_reaching),
    "lanes_unlike": (simd.lanes_unlike, make_unlike),
    "tile_hits": (simd.tile_hits, make_tile_hits),
    "tile_hits, float32": (simd.tile_hits, lambda rng, d: make_tile_hits(rng, d, np.float32)),
    "lowest_bit": (simd.lowest_bit, lambda rng, d: (int(rng.integers(1, 1 << 16)),)),
}
# The soft sums round differently.
ROUNDED = {
    "path_costs": (simd_sums.path_costs, make_path_costs),
    "path_costs_of_four": (simd_sums.path_costs_of_four, make_path_costs),
    "smallest": (simd_sums.smallest, lambda rng, d: (rng.random((3, 64)), 1, 8 * (d % 8 + 1))),
    "add_exponentials": (simd_sums.add_exponentials, make_sums),
    "add_chain": (simd_sums.add_chain, make_sums),
}


@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_compiled_operations_do_what_their_expressions_say(name):
    operation, make = {**EXACT, **ROUNDED}[name]
    compiled = numba.njit(lambda *arguments: operation(*arguments))
    tolerance = 0.0 if name in EXACT else 1e-13
    for d in range(1, 13):
        mine, theirs = make(np.random.default_rng(d), d), make(np.random.default_rng(d), d)
        found, expected = compiled(*mine), operation(*theirs)
        for one, other in zip((found, *mine), (expected, *theirs), strict=True):
            if other is not None:
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_no_point_of_a_box_is_nearer_than_the_box_to_the_bit():
    rng = np.random.default_rng(0)
    for _ in range(size(200)):
        d = int(rng.integers(1, 12))
        inside, queries = rng.normal(size=(6, d)), rng.normal(size=(LANES, d))
        lows, highs = inside.min(axis=0)[None], inside.max(axis=0)[None]
        bounds = naive.squared_distances(queries, inside).min(axis=1)
        assert simd.lane_box_hits(queries.T[None], 0, lows, highs, 0, bounds) == (1 << LANES) - 1
