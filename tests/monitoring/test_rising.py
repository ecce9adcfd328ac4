"""The rule by which a probability is rising, and how early and surely it finds what began."""

import io

import numpy as np
import pytest

from naive_metrics import naive_rise
from popf.monitoring import alarms, detection_table, make_series, plot_rising, rises


@pytest.mark.parametrize("recent", [1, 2, 3])
@pytest.mark.parametrize("history", [1, 4])
def test_the_rise_is_what_the_rule_says(recent, history):
    p = np.random.default_rng(0).random((9, 12))
    expected = [naive_rise(row, recent, history) for row in p.tolist()]
    np.testing.assert_allclose(rises(p, recent, history), expected, atol=1e-12)


def test_series_of_different_lengths_do_not_disturb_each_other():
    p = np.random.default_rng(1).random((5, 10))
    lengths = [10, 3, 7, 1, 9]
    unit = np.concatenate([np.full(n, i) for i, n in enumerate(lengths)])
    time = np.concatenate([np.arange(n) * 2.0 for n in lengths])
    value = np.concatenate([p[i, :n] for i, n in enumerate(lengths)])
    order = np.random.default_rng(2).permutation(len(unit))
    series = make_series(unit[order], time[order], value[order])
    for row, first in enumerate(series.units):
        who = unit[order][first]
        n = lengths[who]
        np.testing.assert_array_equal(series.probability[row, :n], p[who, :n])
        assert np.isnan(series.probability[row, n:]).all()
        expected = naive_rise(p[who, :n].tolist(), 2, 1)
        np.testing.assert_allclose(rises(series.probability)[row, :n], expected, atol=1e-12)


def test_a_steady_probability_is_no_alarm_and_a_step_is_one_at_once():
    steady = np.full((1, 8), 0.95)
    step = np.array([[0.1] * 4 + [0.9] * 4])
    assert alarms(rises(steady), 0.3).tolist() == [-1]
    assert alarms(rises(step), 0.3).tolist() == [4]
    assert alarms(rises(step), 0.5).tolist() == [5]


def test_one_consumer_twice_at_one_time_is_refused():
    with pytest.raises(ValueError, match="rows 1 and 3"):
        make_series([4, 5, 4], [1, 1, 1], [0.1, 0.2, 0.3])


def test_limits_are_set_on_one_side_and_measured_on_the_other():
    rng = np.random.default_rng(3)
    rise = rng.random((400, 6))
    onset = np.full(400, -1)
    onset[300:] = 2
    rise[300:, 3:] += 2.0  # found one period after it began
    calibration = np.arange(400) % 2 == 0
    for row in detection_table(rise, onset, calibration=calibration, rates=[0.02, 0.2]):
        peaks = rise[:300].max(axis=1)
        assert (peaks[::2] >= row.limit).mean() <= row.allowed_rate
        assert row.false_alarm_rate == (peaks[1::2] >= row.limit).mean()
        first = [int(np.flatnonzero(r >= row.limit)[0]) for r in rise[301::2]]
        assert row.found == np.mean([at >= 2 for at in first])
        assert row.too_early == pytest.approx(1 - row.found)
        assert row.median_delay == np.median([at - 2 for at in first if at >= 2])
        assert row.found_lower < row.found < row.found_upper or row.found == 1.0


def test_a_table_needs_both_kinds_of_consumers():
    with pytest.raises(ValueError, match="give more consumers"):
        detection_table(np.zeros((4, 3)), [-1] * 4, calibration=[True, False, True, False])


def test_names_are_drawn_as_they_are():
    pytest.importorskip("matplotlib")
    series = make_series([1, 1, 2, 2], [1, 2, 1, 2], [0.1, 0.8, 0.2, 0.1])
    odd = r"$\frac{39$"
    figure = plot_rising(
        series, [0], first_alarm=[1], names=[odd], label=odd, time_label=odd, time_names={1.0: odd}
    )
    figure.savefig(io.BytesIO())
    assert figure.axes[0].get_title(loc="left") == r"\$\frac{39\$"
