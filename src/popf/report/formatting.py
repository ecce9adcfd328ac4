"""Numbers and the user's own words as text, safe to put into a page."""

import json
import re
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from typing import Any

import numpy as np

LONGEST = 120
# What no page may hold, and lone halves of characters, which have no bytes.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def plain(value: Any) -> str:
    r"""Give a value as text that can be written: odd characters replaced, and not longer than 120.

    Examples
    --------
    >>> from popf.report.formatting import plain
    >>> plain("a\x00b"), len(plain("long " * 100))
    ('a�b', 120)
    """
    text = _UNPRINTABLE.sub("\ufffd", str(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def safe(value: Any) -> str:
    """Give a value as HTML that shows it, whatever it holds.

    Examples
    --------
    >>> from popf.report.formatting import safe
    >>> safe('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return escape(plain(value))


def as_json(value: Any) -> str:
    r"""Write JSON that can stand in a script element: no character in it can end the element.

    Examples
    --------
    >>> from popf.report.formatting import as_json
    >>> as_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def fixed(value: float, digits: int) -> str:
    """Write a number with so many digits, halves rounded up as JavaScript's ``toFixed`` does.

    Examples
    --------
    >>> from popf.report.formatting import fixed
    >>> fixed(6.25, 1), fixed(0.5, 0), fixed(float("nan"), 1)
    ('6.3', '1', '–')
    """
    if not np.isfinite(value):
        return "–"
    number = Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{number:f}"


def percent(value: float, digits: int = 1) -> str:
    """Write a share in per cent.

    Examples
    --------
    >>> from popf.report.formatting import percent
    >>> percent(0.125), percent(float("nan"))
    ('12.5 %', '–')
    """
    return "–" if not np.isfinite(value) else f"{fixed(100.0 * value, digits)} %"


def count(number: int) -> str:
    """Write a count with its thousands parted.

    Examples
    --------
    >>> from popf.report.formatting import count
    >>> count(100000)
    '100,000'
    """
    return f"{int(number):,}"


def threshold_text(value: float) -> str:
    """Write a threshold: three digits, or as many as tell it from others.

    Examples
    --------
    >>> from popf.report.formatting import threshold_text
    >>> threshold_text(0.5), threshold_text(0.33337)
    ('0.500', '0.33337')
    """
    short = f"{value:.3f}"
    return short if float(short) == value else f"{value:.6g}"


def figure(value: Any) -> str:
    """Write a cell of the user's table: numbers to four digits, the rest as it is.

    Examples
    --------
    >>> from popf.report.formatting import figure
    >>> [figure(value) for value in (12345.678, 0.00012346, 3.0, 17, "rural", None, float("nan"))]
    ['12,346', '0.0001235', '3', '17', 'rural', 'missing', 'missing']
    """
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


def cost_text(alarm: float, miss: float) -> str:
    """Say what a pair of costs means.

    Examples
    --------
    >>> from popf.report.formatting import cost_text
    >>> cost_text(1, 20)
    'A miss costs as much as 20 false alarms.'
    >>> cost_text(2, 1)
    'A false alarm costs as much as 2 misses.'
    """
    if alarm == miss:
        return "A miss and a false alarm cost the same."
    if miss > alarm:
        return f"A miss costs as much as {miss / alarm:.4g} false alarms."
    return f"A false alarm costs as much as {alarm / miss:.4g} misses."
