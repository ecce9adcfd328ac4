"""Names in sentences: lists of them, those that are not known, and what was probably meant."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Write the first of some names, and how many more there are.

    Examples
    --------
    >>> from popf.formatting import listed
    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(str(name) for name in names[:most]) + more


def near_words(name: str, known: Iterable[str]) -> str:
    """End a sentence about an unknown name: with the nearest known ones, or with a full stop.

    Examples
    --------
    >>> from popf.formatting import near_words
    >>> near_words("hart", ["heart", "liver"])
    '; did you mean heart?'
    >>> near_words("hart", [])
    '.'
    """
    by_lower = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(by_lower[word] for word in near)}?" if near else "."


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that a name is unknown, which known ones are nearest, and all there are.

    Examples
    --------
    >>> from popf.formatting import unknown
    >>> unknown("dataset", "hart", ["heart", "liver"])
    "there is no dataset 'hart'; did you mean heart? Known: heart, liver."
    """
    names = list(known)
    return f"there is no {kind} {name!r}{near_words(name, names)} Known: {', '.join(names)}."
