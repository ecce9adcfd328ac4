"""Dates that are written as text."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from math import isnan

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
