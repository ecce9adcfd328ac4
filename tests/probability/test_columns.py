"""Frames and arrays of every kind as matrices of numbers, and back."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from popf.dates import date_format
from popf.probability.columns import (
    CATEGORY,
    DATE,
    EMPTY,
    NUMBER,
    is_table,
    read_columns,
    read_training,
)

NAN = float("nan")


def read(table, categorical=()):
    names = [str(name) for name in getattr(table, "columns", range(np.shape(table)[1]))]
    mask = np.isin(names, list(categorical))
    return read_columns(table, names, mask)


def one(cells, **options):
    """Return kind, levels and numbers of a single pandas column."""
    columns, matrix = read(pd.DataFrame({"c": cells}), **options)
    return str(columns.kinds[0]), columns.levels.tolist(), matrix[:, 0].tolist()


DAY = 86_400.0
KINDS = {
    "integers": ([3, 1, 2], NUMBER, [3, 1, 2]),
    "gaps": ([3.0, None, NAN], NUMBER, [3, NAN, NAN]),
    "booleans": ([True, False, True], NUMBER, [1, 0, 1]),
    "booleans with gaps": (pd.Series([True, None, False], dtype=object), NUMBER, [1, NAN, 0]),
    "nullable integers": (pd.array([3, None, 1], dtype="Int64"), NUMBER, [3, NAN, 1]),
    "nullable booleans": (pd.array([True, None, False], dtype="boolean"), NUMBER, [1, NAN, 0]),
    "decimals": ([Decimal("1.5"), None, Decimal(2)], NUMBER, [1.5, NAN, 2]),
    "durations": (pd.to_timedelta(["1D", None, "2D"]), NUMBER, [DAY, NAN, 2 * DAY]),
    "objects of durations": (
        pd.Series([timedelta(1), None], dtype=object),
        NUMBER,
        [DAY, NAN],
    ),
    "times": ([time(1), None, time(0, 1)], NUMBER, [3600, NAN, 60]),
    "empty": ([None, None], EMPTY, [NAN, NAN]),
    "dates": (pd.to_datetime(["1970-01-02", None]), DATE, [DAY, NAN]),
    "dates in a time zone": (
        pd.to_datetime(["1970-01-02 02:00+02:00", None], utc=True).tz_convert("Asia/Tokyo"),
        DATE,
        [DAY, NAN],
    ),
    "objects of dates": ([date(1970, 1, 2), None, datetime(1970, 1, 1, 1)], DATE, [DAY, NAN, 3600]),
    "months": (pd.PeriodIndex(["1970-01", "1970-02"], freq="M"), DATE, [0, 31 * DAY]),
    "dates as text": (["1970-01-02", None, "1970-01-01"], DATE, [DAY, NAN, 0]),
    "months and days as text": (["1/2/1970", "1/31/1970"], DATE, [DAY, 30 * DAY]),
    "days and months as text": (["2/1/1970", "31/1/1970"], DATE, [DAY, 30 * DAY]),
    "dates with times as text": (["2 Jan 1970 06:00", "1 Jan 1970 00:00"], DATE, [1.25 * DAY, 0]),
}


@pytest.mark.parametrize("name", KINDS)
def test_numbers_and_dates(name):
    cells, kind, numbers = KINDS[name]
    found, levels, matrix = one(cells)
    assert (found, levels) == (kind, [])
    assert_array_equal(matrix, numbers)


TEXTS = {
    "codes": (["2", "1", None, "2"], ["1", "2"]),
    "text": (["b", "a", None, "b"], ["a", "b"]),
    "strings": (pd.array(["b", "a", None, "b"], dtype="string"), ["a", "b"]),
    "categories": (pd.Categorical(["b", "a", None, "b"], ["b", "a", "never"]), ["a", "b"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_levels_are_sorted(name):
    cells, levels = TEXTS[name]
    kind, found, matrix = one(cells)
    assert (kind, found) == (CATEGORY, levels)
    assert_array_equal(matrix, [1, 0, NAN, 1])


@pytest.mark.parametrize(
    "cells", [[2, 10, 2], [2.0, 10.0, 2.0], ["2", "10", "2"], [Decimal(2), 10, 2.0]]
)
def test_numbers_that_are_categories(cells):
    assert one(cells, categorical=["c"]) == (CATEGORY, ["10", "2"], [1.0, 0.0, 1.0])


def test_polars_and_pandas_give_the_same():
    data = {
        "number": [1.5, None, 2.0],
        "integer": [1, None, 3],
        "flag": [True, None, False],
        "text": ["b", None, "a"],
        "day": [date(2020, 1, 1), None, date(2021, 5, 6)],
        "moment": [datetime(2020, 1, 1, 3), None, datetime(2021, 5, 6)],
    }
    columns, matrix = read(pd.DataFrame(data))
    others, same = read(pl.DataFrame(data).with_columns(pl.col("text").cast(pl.Categorical)))
    assert_array_equal(matrix, same)
    for mine, other in zip(columns, others, strict=True):
        assert_array_equal(mine, other)


def test_objects_in_an_array():
    columns, matrix = read(np.array([[1, "a"], [None, "b"]], dtype=object))
    assert columns.kinds.tolist() == [NUMBER, CATEGORY]
    assert_array_equal(matrix, [[1, 0], [NAN, 1]])


def test_new_rows():
    frame = pd.DataFrame({"x": [1.0, 2.0], "c": ["a", "b"], "day": ["1/2/1970", "1/31/1970"]})
    columns, _ = read(frame)
    new = pd.DataFrame({"x": [None, 3], "c": ["z", None], "day": [None, "1/3/1970"]}, index=[7, 8])
    assert_array_equal(columns.read(new), [[NAN, -1, NAN], [3, NAN, 2 * DAY]])
    # Dates as text may be read as dates elsewhere.
    later = new.assign(day=pd.to_datetime(new["day"]))
    assert_array_equal(columns.read(later), columns.read(new))
    # Or be written in another way.
    again = new.assign(day=later["day"].dt.strftime("%Y-%m-%d"))
    assert_array_equal(columns.read(again), columns.read(new))
    with pytest.raises(ValueError, match="'day' holds 'soon', but it held a date"):
        columns.read(new.assign(day="soon"))
    with pytest.warns(UserWarning, match="'day' holds 'soon', which is no date"):
        found = columns.read(new.assign(day=["soon", "1/3/1970"]))
    assert_array_equal(found, columns.read(new))
    with pytest.warns(UserWarning, match=r"'day' holds '31\.2\.1970'"):
        found = columns.read(new.assign(day=["31.2.1970", "3.1.1970"]))
    assert_array_equal(found, columns.read(new))


def test_cells_in_columns_that_were_empty_are_ignored():
    columns, _ = read(pd.DataFrame({"c": [None, None]}))
    for cells in (["a"], [1.0], pd.to_datetime(["2020-01-01"])):
        assert_array_equal(columns.read(pd.DataFrame({"c": cells})), [[NAN]])


def test_values_of_a_matrix():
    frame = pd.DataFrame(
        {"x": [1.0, None], "c": ["b", None], "day": pd.to_datetime(["2020-02-03", None])}
    )
    columns, matrix = read(frame)
    assert columns.values(matrix).tolist() == [[1.0, "b", "2020-02-03"], [None, None, None]]
    matrix[0, 1:] = -1.0, 3600.0
    assert columns.values(matrix)[0].tolist() == [1.0, None, "1970-01-01T01:00:00"]


def test_what_is_a_table():
    assert not is_table([[1, 2.5], [True, None]])
    assert not is_table(np.ones((2, 2)))
    assert not is_table(pd.DataFrame({"a": [1, None], "b": [True, False]}))
    assert is_table([[1, "a"]])
    assert is_table(np.array([["a"]]))
    assert is_table(pd.DataFrame({"a": ["b"]}))


@pytest.mark.parametrize(
    ("words", "format_"),
    [
        (["2020-01-31", "2020-02-01"], "ISO 8601"),
        (["2020-01-31T05:06:07Z"], "ISO 8601"),
        (["3/4/2020"], "%m/%d/%Y"),
        (["3/4/2020", "13/4/2020"], "%d/%m/%Y"),
        (["31.12.1999"], "%d.%m.%Y"),
        (["Jan 5, 2020"], "%b %d, %Y"),
        (["2020-01"], "%Y-%m"),
        (["A 123", "B 456"], ""),
        (["2020-01-31", "unknown"], ""),
        (["12-34"], ""),
        (["12:34", "1:05"], "%H:%M"),
    ],
)
def test_formats_of_dates(words, format_):
    assert date_format(words) == format_


REFUSED = {
    "numbers as text": (
        [str(i / 2) for i in range(21)],
        ValueError,
        "numbers stored as text, such as '0.0'.*to_numeric",
    ),
    "a mixture": ([1, "a"], ValueError, "mixes kinds of values, such as 1, 'a'.*astype"),
    "dates and text": ([date(2020, 1, 1), "a"], ValueError, "mixes kinds"),
    "lists": ([[1], [2]], TypeError, "'c' holds a list in row 0.*string, a date, a number"),
    "dicts": ([{"a": 1}, None], TypeError, "'c' holds a dict in row 0"),
    "complex numbers": ([1j, 2j], TypeError, "'c' holds a complex"),
    "objects": ([object(), 1], TypeError, "'c' holds a object"),
    "infinity": ([np.inf, None], ValueError, "contains infinity: column 'c', row 0"),
    "infinity in an object": (pd.Series([None, np.inf], dtype=object), ValueError, "row 1"),
    "huge integers": (pd.Series([10**400, None], dtype=object), ValueError, "too large"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_cells(name):
    cells, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        one(cells)


@pytest.mark.parametrize(
    ("trained", "new", "message"),
    [
        ([1, 2], ["a", "b"], "'c' holds 'a', but it held a number"),
        ([1, 2], pd.to_datetime(["2020-01-01", "2020-01-02"]), "but it held a number"),
        (pd.to_datetime(["2020-01-01"]), [3.0], "but it held a date"),
        (["a", "b"], [{}, "a"], "holds a dict"),
    ],
)
def test_cells_of_another_kind_in_new_rows(trained, new, message):
    columns, _ = read(pd.DataFrame({"c": trained}))
    with pytest.raises((ValueError, TypeError), match=message):
        columns.read(pd.DataFrame({"c": new}))


@pytest.mark.parametrize("chosen", [["a"], [0], [-2], [True, False], np.array([True, False])])
def test_ways_to_name_categories(chosen):
    _, columns = read_training(pd.DataFrame({"a": [1, 2], "b": [1, 2]}), chosen)
    assert columns.kinds.tolist() == [CATEGORY, NUMBER]


@pytest.mark.parametrize("wrong", [["z"], [2], [1.5], "z"])
def test_unknown_categories(wrong):
    with pytest.raises(ValueError, match=r"categorical_features has .*must be 'from_dtype'"):
        read_training(pd.DataFrame({"a": [1, 2], "b": [1, 2]}), wrong)


def test_nothing_is_read_of_an_array_of_numbers():
    X = np.ones((2, 2))
    matrix, columns = read_training(X, "from_dtype")
    assert matrix is X
    assert columns is None
