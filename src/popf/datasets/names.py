"""Names that are not known, and what was probably meant."""

import difflib
from collections.abc import Iterable


def near_words(name: str, known: Iterable[str]) -> str:
    """End a sentence about an unknown name: with the nearest known ones, or with a full stop.

    Examples
    --------
    >>> from popf.datasets.names import near_words
    >>> near_words("hart", ["heart", "liver"])
    '; did you mean heart?'
    >>> near_words("hart", [])
    '.'
    """
    by_lower = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(by_lower[word] for word in near)}?" if near else "."
