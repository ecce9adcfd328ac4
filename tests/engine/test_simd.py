"""Vector instructions, against the plain loops that they stand for."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from popf.engine.runtime import simd
from popf.engine.runtime.simd import LANES
from strategies import bounded, seeds, size


def compiled(operation):
    """Call a vector operation from compiled code; not cached, for it depends on another file."""
    return numba.njit(lambda *arguments: operation(*arguments))


call_lane_distances = compiled(simd.lane_distances)
call_lane_box_hits = compiled(simd.lane_box_hits)
call_lanes_reaching = compiled(simd.lanes_reaching)
call_lanes_unlike = compiled(simd.lanes_unlike)
call_tile_hits = compiled(simd.tile_hits)
call_lowest_bit = compiled(simd.lowest_bit)


def bits(mask):
    return [bool(mask >> lane & 1) for lane in range(LANES)]


class TestLanes:
    @given(seed=seeds, d=st.integers(1, 40), grid=st.booleans())
    @bounded(30)
    def test_distances(self, seed, d, grid):
        rng = np.random.default_rng(seed)
        blocks = simd.empty_blocks(3, d)
        assert blocks.ctypes.data % simd.ALIGNMENT == 0
        blocks[:] = np.inf
        points = rng.integers(0, 3, (5, d)).astype(float) if grid else rng.normal(size=(5, d))
        blocks[1, :, :9] = points[0][:, np.newaxis] + rng.integers(0, 3, (d, 9))
        out = np.empty(LANES)
        expected = naive.squared_distances(blocks[1, :, :9].T, points[[3]])[:, 0]
        bound = float(np.median(expected))
        mask = call_lane_distances(blocks, 1, points, 3, bound, out)
        np.testing.assert_array_equal(out[:9], expected)
        assert bits(mask) == [*(expected <= bound), *[False] * 7]

    @given(seed=seeds, d=st.integers(1, 10))
    @bounded(30)
    def test_distances_to_boxes(self, seed, d):
        rng = np.random.default_rng(seed)
        blocks = simd.empty_blocks(2, d)
        blocks[1] = rng.integers(-3, 4, (d, LANES)) / 3.0
        lows = rng.integers(-2, 1, (4, d)) / 3.0
        highs = lows + rng.integers(0, 3, (4, d)) / 3.0
        bounds = rng.integers(0, 4, LANES) / 3.0
        x = blocks[1].T
        nearest = np.clip(x, lows[2], highs[2])
        squared = np.array(
            [naive.squared_distances(x[[i]], nearest[[i]])[0, 0] for i in range(LANES)]
        )
        mask = call_lane_box_hits(blocks, 1, lows, highs, 2, bounds)
        assert bits(mask) == list(squared <= bounds)

    def test_no_point_of_a_box_is_nearer_than_the_box_to_the_bit(self):
        rng = np.random.default_rng(0)
        for _ in range(size(200)):
            d = int(rng.integers(1, 12))
            inside, queries = rng.normal(size=(6, d)), rng.normal(size=(LANES, d))
            blocks = simd.empty_blocks(1, d)
            blocks[0] = queries.T
            lows, highs = inside.min(axis=0)[None], inside.max(axis=0)[None]
            bounds = naive.squared_distances(queries, inside).min(axis=1)
            assert all(bits(call_lane_box_hits(blocks, 0, lows, highs, 0, bounds)))

    def test_bounds_that_reach(self):
        bounds = np.array([-1.0, np.inf, *range(LANES - 2)], dtype=np.float64)
        for squared in (0.0, 3.0, 3.5, np.inf):
            assert bits(call_lanes_reaching(bounds, squared)) == list(bounds >= squared)

    @pytest.mark.parametrize("n", [1, 16, 20])
    def test_components_that_differ(self, n):
        values = simd.padded_range(n)
        assert values.tolist() == list(range(n))
        values[:] = np.arange(n) % 3
        start = n // LANES * LANES if n % LANES else 0
        expected = [i >= n or i % 3 != 1 for i in range(start, start + LANES)]
        assert bits(call_lanes_unlike(values, start, np.int32(1))) == expected

    @given(seed=seeds)
    @pytest.mark.parametrize("real", [np.float32, np.float64])
    @bounded(20)
    def test_hits_of_a_tile(self, real, seed):
        rng = np.random.default_rng(seed)
        tile = rng.integers(-4, 5, (3, 2 * LANES)).astype(real)
        norms, bounds = rng.integers(0, 9, (2, 3 * LANES)).astype(real)
        norm, bound = real(4), real(2)
        at = int(rng.integers(0, 2 * LANES))
        there = slice(at, at + LANES)
        lower = norm + norms[there] - 2 * tile[1, LANES:]
        expected = (lower <= bound) | (lower <= bounds[there])
        mask = call_tile_hits(tile, 1, LANES, norm, norms, bound, bounds, at)
        assert bits(mask) == expected.tolist()

    def test_the_lowest_bit(self):
        for mask in (1, 6, 0b1000, 1 << 15, (1 << 16) - 1):
            assert call_lowest_bit(mask) == bits(mask).index(True)
