"""Times in a column of text, and the periods they form."""

import numpy as np
import pytest

from popf.dates import MOST_PERIODS, periods_of, read_times


def dates(start, stop, unit):
    return np.arange(start, stop, dtype=f"datetime64[{unit}]").astype(str).tolist()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (dates("2018-01", "2018-04", "M"), ["2018-01", "2018-02", "2018-03"]),
        (["2018-02-01", "2018-01-01"], ["2018-01", "2018-02"]),
        (["2018-01-31 10:00", "2018-02-01 11:00"], ["2018-01-31", "2018-02-01"]),
        (dates("2018-01-01", "2018-03-02", "D"), ["2018-01", "2018-02", "2018-03"]),
        (
            dates("2015-11", "2018-02", "M"),
            ["2015 Q4", *(f"{y} Q{q}" for y in (2016, 2017) for q in (1, 2, 3, 4)), "2018 Q1"],
        ),
        (dates("1990", "2000", "M"), [str(year) for year in range(1990, 2000)]),
        (["14/3/2024", "1/4/2024"], ["2024-03-14", "2024-04-01"]),
        (["3", "1", "10"], ["1", "3", "10"]),
        ([str(n) for n in range(95)], [f"from {n}" for n in range(0, 95, 5)]),
        ([str(n - 50) for n in range(95)], [f"from {n}" for n in range(-50, 45, 5)]),
    ],
    ids=lambda words: words[0],
)
def test_times_form_at_most_24_periods_in_order(words, names):
    times, are_dates = read_times(words, "when")
    found, codes = periods_of(times, are_dates)
    assert found == names
    assert len(found) <= MOST_PERIODS
    # Later rows are in the same period or in a later one.
    assert (np.diff(codes[np.argsort(times)]) >= 0).all()
    assert [*np.unique(codes)] == [*range(len(names))]


def test_time_zones_are_seconds_in_utc():
    times, are_dates = read_times(["1970-01-01T01:00:00+01:00", "1970-01-02"], "when")
    assert are_dates
    assert times.tolist() == [0.0, 86400.0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["2018-01", "2018-02", "soon"], r"when: 'soon' \(row 3\) is neither a number nor a date"),
        (["soon", "later"], r"'soon' \(row 1\) is neither"),
        (["2018-01", "7", "2018-02"], r"'7' \(row 2\) is a number among dates: write all times as"),
        (["2018-01", " "], "when: row 2 has no time: fill it in"),
        ([1.0, np.nan], "row 2 has no time"),
        (["1_000", "2"], "'1_000'"),
        (["1", "inf"], "'inf'"),
    ],
    ids=str,
)
def test_what_is_no_time_is_named_with_its_row(words, said):
    with pytest.raises(ValueError, match=said):
        read_times(words, "when")
