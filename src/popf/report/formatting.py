"""Numbers, the user's own words and lines of charts as text; the script of the page does the same."""

import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

MAX_LENGTH = 120
PERCENT = "\N{NO-BREAK SPACE}%"
# Characters that no page may contain, and unpaired surrogates, which cannot be encoded.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def plain(value: Any) -> str:
    """Return text of at most 120 characters, with unprintable ones replaced."""
    text = _UNPRINTABLE.sub("\ufffd", str(value))
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"


def fixed(value: float, digits: int) -> str:
    """Write a number with a fixed number of digits, halves rounded up as by JavaScript's ``toFixed``."""
    if not np.isfinite(value):
        return "–"
    number = Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{number:f}"


def percent(value: float, digits: int = 1) -> str:
    """Write a share in per cent."""
    return "–" if not np.isfinite(value) else f"{fixed(100.0 * value, digits)}{PERCENT}"


def chance(value: float) -> str:
    """Write a probability in per cent; what is not certain is not called so."""
    if 0.0 < value < 0.001:
        return f"< 0.1{PERCENT}"
    return f"> 99.9{PERCENT}" if 0.999 < value < 1.0 else percent(value)


def log10(value: float) -> str:
    """Write the logarithm of a number."""
    return fixed(float(np.log10(value)), 2)


def points(value: float) -> str:
    """Write a difference of two shares in percentage points."""
    return f"{fixed(100.0 * value, 1)} percentage points"


def count(number: float) -> str:
    """Write a whole number with thousands separators."""
    return f"{int(number):,}"


def threshold_text(value: float) -> str:
    """Write a threshold with three digits, or with as many as distinguish it from others."""
    short = f"{value:.3f}"
    return short if float(short) == value else f"{value:.6g}"


def figure(value: Any) -> str:
    """Write a cell of the user's table: numbers to four digits, text as it is."""
    if value is None:
        return "missing"
    if isinstance(value, bool | np.bool_ | str):
        return plain(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return plain(value)
    if np.isnan(number):
        return "missing"
    if number == 0.0 or not 1e-4 <= abs(number) < 1e9:
        return f"{number:.4g}"
    digits = max(3 - int(np.floor(np.log10(abs(number)))), 0)
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def line_path(x: Iterable[float], y: Iterable[float]) -> str:
    """Draw an SVG path through points of the unit square, in thousandths from the top left; NaN is a gap."""
    parts, pen_down = [], False
    for across, up in zip(x, y, strict=True):
        if not np.isnan(up):
            place = f"{fixed(1000.0 * across, 1)} {fixed(1000.0 * (1.0 - up), 1)}"
            parts.append(("L" if pen_down else "M") + place)
        pen_down = not np.isnan(up)
    return "".join(parts)
