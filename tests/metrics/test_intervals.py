"""Confidence intervals; those of the bootstrap are tested with `evaluate`."""

import pytest

from popf.metrics.intervals import wilson


def test_the_interval_of_a_share_is_wilsons():
    # Newcombe's example: 81 of 263.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0.0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(1.0, 20)[1] == 1.0
