"""Tiles of matrix products are lower bounds on distances, in every precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from popf.engine import points, tiles
from popf.engine.runtime.simd import LANES
from strategies import KINDS, bounded, random_points, seeds, size


def make_tile(rows, columns, center, real, left_over=0.0):
    """Lay out two blocks in a precision, None for the one that tells nothing, in memory used before."""
    tile = tiles.empty_tile(len(rows), len(columns), rows.shape[1], real or np.float64)
    for part in tile[:7]:
        part.fill(left_over)
    if real is None:
        tile = tile._replace(shrink=0.0)
    tiles.set_rows(tile, rows, np.arange(len(rows)), len(rows), center)
    tiles.set_columns(tile, columns, 0, len(columns), center)
    return tile


def lower_bounds(tile):
    """What a tile tells about squared distances, in its own precision, as `tile_hits` takes it."""
    products = tiles.multiply(tile, 0, len(tile.left), 0, len(tile.right))
    return tile.row_norms[:, np.newaxis] + tile.column_norms - (products + products)


class TestTiles:
    @given(
        seed=seeds,
        d=st.sampled_from([1, 2, 7, 100, 1000]),
        offset=st.sampled_from([0.0, 1.0, 1e4, 1e8]),
        spread=st.sampled_from([1e-12, 1e-6, 1.0]),
    )
    @pytest.mark.parametrize("real", [np.float32, np.float64, None])
    @bounded(30)
    def test_never_exceed_the_distances(self, real, seed, d, offset, spread):
        rng = np.random.default_rng(seed)
        center = offset * rng.normal(size=d)
        rows = center + spread * rng.normal(size=(rng.integers(1, 40), d))
        columns = center + rng.choice([spread, 1.0]) * rng.normal(size=(rng.integers(1, 40), d))
        columns[: len(rows)] = rows[: len(columns)]  # some pairs are at no distance
        squared = naive.squared_distances(rows, columns)
        tile = make_tile(rows, columns, center, real)
        bounds = lower_bounds(tile)
        assert bounds.shape[1] % LANES == 0
        assert np.isinf(bounds[:, len(columns) :]).all()
        bounds = bounds[:, : len(columns)]
        assert (bounds <= squared).all()
        # Rounded to the precision of the tile, no bound falls below what it was.
        tile.row_bounds[:] = squared.min(axis=1) * tile.widen + tile.slack
        assert (tile.row_bounds >= squared.min(axis=1)).all()
        if real is not None:  # and they are worth having
            loose = 8.0 * (d + 16) * np.finfo(real).eps
            norms = ((rows - center) ** 2).sum(axis=1)[:, None] + ((columns - center) ** 2).sum(1)
            nothing = 4.0 * (d + 16) * np.finfo(real).tiny
            assert (bounds >= squared - loose * norms - nothing).all()

    @pytest.mark.parametrize("real", [np.float32, np.float64, None])
    def test_do_not_depend_on_what_was_in_their_memory(self, real):
        rows, columns = np.random.default_rng(0).normal(size=(2, 30, 5))
        fresh, used = (make_tile(rows, columns, rows[0], real, value) for value in (0.0, np.nan))
        np.testing.assert_array_equal(lower_bounds(used), lower_bounds(fresh))

    @pytest.mark.parametrize("block", [tiles.SMALLEST_BLOCK, 100])
    @pytest.mark.parametrize("kind", KINDS)
    def test_blocks_hold_all_points_within_their_radius(self, kind, block):
        X = random_points(0, size(500), 4, kind)
        ordered = points.order_points(X, block)
        np.testing.assert_array_equal(np.sort(ordered.order), np.arange(len(X)))
        np.testing.assert_array_equal(ordered.points, X[ordered.order])
        assert ordered.starts[0] == 0
        assert ordered.starts[-1] == len(X)
        assert (np.diff(ordered.starts) <= block).all()
        assert (np.diff(ordered.starts)[:-1] == block).all()
        for b, (start, stop) in enumerate(zip(ordered.starts, ordered.starts[1:], strict=False)):
            away = naive.squared_distances(ordered.points[start:stop], ordered.centers[[b]])
            assert np.sqrt(away.max()) <= ordered.radii[b]

    @pytest.mark.parametrize("kind", KINDS)
    def test_gaps_never_exceed_the_distances_between_blocks(self, kind):
        ordered = points.order_points(random_points(1, size(500), 3, kind), tiles.SMALLEST_BLOCK)
        D = naive.squared_distances(ordered.points, ordered.points)
        n_blocks = len(ordered.radii)
        nearest = np.minimum.reduceat(D, ordered.starts[:-1], axis=0)
        nearest = np.minimum.reduceat(nearest, ordered.starts[:-1], axis=1)
        for b in range(n_blocks):
            assert (points.gaps_from(ordered, b, np.arange(n_blocks)) <= nearest[b]).all()

    @pytest.mark.parametrize("n_bytes", [1, 2**16, 2**20, 2**30])
    @pytest.mark.parametrize("d", [1, 100, 5000])
    def test_block_sizes_are_whole_lanes_within_the_memory(self, d, n_bytes):
        block = tiles.block_size(d, n_bytes)
        assert block % LANES == 0
        assert tiles.SMALLEST_BLOCK <= block <= tiles.BLOCK
        if block > tiles.SMALLEST_BLOCK:
            assert 8 * block * (block + 4 * d) <= n_bytes
