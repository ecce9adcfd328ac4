"""Dates and times that are written as text, and the periods they form."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from math import floor, isnan, log10

import numpy as np
from numpy.typing import NDArray

#: How days are written, besides ISO 8601, which comes first; the first format that fits all texts is used.
DAYS = (
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %Y",
    "%B %Y",
    "%Y-%m",
)
CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
ISO = "ISO 8601"
FORMATS = (ISO, *DAYS, *(f"{day} {clock}" for day in DAYS for clock in CLOCKS), *CLOCKS)
#: Periods in a table of scores: more are put together.
MOST_PERIODS = 24
_LIKE_DATE = re.compile(r"(?=.*\d)[\w ,./:+-]{4,35}")


def date_format(words: Sequence[str]) -> str:
    """Return the format that fits all texts, empty if they are not all dates or times.

    Where both 3/4 as March and as April fit all texts, it is March.

    Examples
    --------
    >>> from popf.dates import date_format
    >>> date_format(["3/4/2024", "3/14/2024"]), date_format(["3/4/2024", "14/3/2024"]), date_format(["A 1"])
    ('%m/%d/%Y', '%d/%m/%Y', '')
    """
    if not words or not all(_LIKE_DATE.fullmatch(word.strip()) for word in words):
        return ""
    for format_ in FORMATS:
        if not any(isnan(parse_date(word, format_)) for word in words):  # stops at the first
            return format_
    return ""


def parse_date(word: str, format_: str) -> float:
    """Return seconds since 1970 in UTC, NaN for a text in another format."""
    try:
        if format_ == ISO:
            return seconds_of(datetime.fromisoformat(word.strip()))
        return seconds_of(datetime.strptime(word.strip(), format_))
    except (ValueError, OverflowError):
        return float("nan")


def seconds_of(day: date) -> float:
    """Return seconds since 1970 in UTC; a time without a time zone is taken for one in UTC."""
    if isinstance(day, datetime):
        return (day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp()
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def read_times(words: Sequence[str], where: str) -> tuple[NDArray[np.float64], bool]:
    """Convert texts to numbers, or dates to seconds since 1970; return them, and whether they are dates.

    `where` names the column in the message of the ValueError for a text that is neither.

    Examples
    --------
    >>> from popf.dates import read_times
    >>> read_times(["1970-01", "1970-02"], "month")
    (array([      0., 2678400.]), True)
    """
    distinct, codes = np.unique([str(word).strip() for word in words], return_inverse=True)
    missing = np.isin(distinct, ["", "nan", "None", "NaT", "<NA>"])
    if missing.any():
        row = int(np.flatnonzero(missing[codes])[0])
        raise ValueError(f"{where}: row {row + 1} has no time: fill it in, or leave the row out.")
    numbers = np.array([_number(word) for word in distinct])
    if np.isfinite(numbers).all():
        return numbers[codes], False
    format_ = date_format(distinct.tolist())
    if format_:
        return np.array([parse_date(word, format_) for word in distinct])[codes], True
    numeric = np.isfinite(numbers)
    fits = [[not isnan(parse_date(word, each)) for word in distinct.tolist()] for each in FORMATS]
    odd = ~np.array(max([numeric.tolist(), *fits], key=sum))
    row = int(np.flatnonzero(odd[codes])[0])
    is_number = numeric[codes[row]]
    what = "a number among dates" if is_number else "neither a number nor a date"
    raise ValueError(
        f"{where}: {str(words[row]).strip()!r} (row {row + 1}) is {what}: write all times as numbers, or as "
        "dates such as 2024-05 or 2024-05-31."
    )


def periods_of(times: NDArray[np.float64], are_dates: bool) -> tuple[list[str], NDArray[np.int64]]:
    """Name the periods of times, earliest first, and number them: at most 24 days, months, quarters or years.

    Times that are numbers are their own periods, or form ranges of equal length.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.dates import periods_of
    >>> periods_of(np.array([2678400.0, 0.0]), are_dates=True)
    (['1970-01', '1970-02'], array([1, 0]))
    """
    if are_dates:
        days = np.floor(times / 86400.0).astype("datetime64[D]")
        months, years = days.astype("datetime64[M]"), days.astype("datetime64[Y]")
        quarters = months - (months - years).astype(int) % 3
        units = [months, quarters, years]
        if (days != months).any():  # else the dates are months
            units.insert(0, days)
        for starts in units:
            found, codes = np.unique(starts, return_inverse=True)
            if len(found) <= MOST_PERIODS:
                break
        names = [str(each) for each in found]
        if starts is quarters:
            names = [f"{name[:4]} Q{int(name[5:]) // 3 + 1}" for name in names]
        return names, codes
    found, codes = np.unique(times, return_inverse=True)
    if len(found) <= MOST_PERIODS:
        return [f"{start:.10g}" for start in found], codes
    width = (found[-1] - found[0]) / MOST_PERIODS * 1.1  # the first and the last may be cut
    size = 10.0 ** floor(log10(width))
    width = size * next(step for step in (1, 2, 5, 10) if step * size >= width)
    found, codes = np.unique(np.floor(times / width), return_inverse=True)
    return [f"from {width * start:.10g}" for start in found], codes


def _number(word: str) -> float:
    try:
        return float("nan") if "_" in word else float(word)
    except ValueError:
        return float("nan")
