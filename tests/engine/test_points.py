"""Distinct points among the samples: copied, scaled, without duplicates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popf.engine import points
from popf.engine.points import distinct_points
from strategies import bounded


@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 2)), min_size=1, max_size=30))
@bounded(60)
def test_every_sample_has_the_point_where_it_lies(rows):
    X = np.array(rows, dtype=np.float64)
    found = distinct_points(X)
    np.testing.assert_array_equal(np.ldexp(found.points, found.exponent)[found.point_of], X)
    # Points are numbered as they first occur, and `first` is where that is.
    expected = [rows.index(row) for row in dict.fromkeys(rows)]
    np.testing.assert_array_equal(found.first, expected)


def test_rows_with_the_same_hash_are_still_different_points(monkeypatch):
    monkeypatch.setattr(points, "_row_hashes", lambda bits, team: np.zeros(len(bits), np.uint64))
    found = distinct_points(np.array([[3.0, 0.0], [1.0, 2.0], [3.0, 0.0], [0.0, 3.0]]))
    np.testing.assert_array_equal(found.first, [0, 1, 3])
    np.testing.assert_array_equal(found.point_of, [0, 1, 0, 2])


def test_zeros_of_both_signs_are_one_point():
    found = distinct_points(np.array([[0.0, 1.0], [-0.0, 1.0]]))
    np.testing.assert_array_equal(found.point_of, 0)
    assert not np.signbit(found.points).any()


@pytest.mark.parametrize("scale", [1e-310, 1e-150, 1.0, 1e150, 1.7e308])
def test_the_largest_value_comes_between_a_half_and_one(scale):
    X = np.array([[0.5 * scale], [-scale], [0.0]])
    found = distinct_points(X)
    assert 0.5 <= np.abs(found.points).max() < 1.0
    np.testing.assert_array_equal(np.ldexp(found.points, found.exponent), X)


def test_all_zeros_have_no_scale():
    found = distinct_points(np.zeros((3, 2)))
    assert (found.exponent, len(found.points)) == (0, 1)
