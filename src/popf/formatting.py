"""Format values, messages and tables; import optional packages; check parameters."""

import ast
import difflib
import math
import numbers
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

#: Number of decimals with which probabilities are written.
DECIMALS = 6
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_PARAMETER = re.compile(r"`(\w+)(?:=([^`]+))?`")


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Join names by commas: the first `most`, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(str(name) for name in names[:most]) + more


def counted(n: int, thing: str) -> str:
    """Format a count with its noun, plural unless the count is 1."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def decimals(probability: Any) -> list[str]:
    """Format probabilities with `DECIMALS` decimals, so that they sort as text; none becomes 0 or 1."""
    least = 10.0**-DECIMALS
    return [f"{value:.{DECIMALS}f}" for value in probability.clip(least, 1.0 - least).tolist()]


def stage_printer(model: Any) -> Callable[[str], None]:
    """Return a function that prints a stage and the seconds since now, or nothing unless `model` is verbose."""
    start = time.perf_counter()

    def tell(text: str) -> None:
        if model.verbose:
            print(f"[{type(model).__name__}] {time.perf_counter() - start:5.1f} s  {text}")

    return tell


def aligned(rows: Sequence[Sequence[str]], left: bool = False, indent: str = "  ") -> list[str]:
    """Align the cells of each column: the first column to the left, the others to the right unless `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *cells in rows:
        line = [first.ljust(widths[0])]
        for cell, width in zip(cells, widths[1:], strict=True):
            line.append(cell.ljust(width) if left else cell.rjust(width))
        lines.append((indent + "  ".join(line)).rstrip())
    return lines


def for_json(value: Any) -> Any:
    """Convert a value for JSON: NumPy arrays and scalars to Python's, NaN and infinity to None."""
    if isinstance(value, dict):
        return {str(key): for_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(entry) for entry in value]
    if hasattr(value, "tolist"):
        return for_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def install(extra: str) -> str:
    """Return the command that installs an extra of popf."""
    return f'pip install "popf[{extra}]", or pip install ".[{extra}]" in a clone of popf'


def import_extra(module: str, extra: str, use: str) -> Any:
    """Import a module; if it is missing, raise ImportError that names the extra which `use` needs."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        message = f"{use} needs {package}, which is not installed: {install(extra)}"
        raise ImportError(message) from error


def printable(text: str) -> str:
    """Escape control characters, which a terminal would interpret; keep line breaks."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def visible(text: str) -> str:
    """Replace what neither a page nor a picture can show: control characters and unpaired surrogates."""
    return _INVISIBLE.sub("\ufffd", text)


def shortened(text: str, most: int = 40) -> str:
    """Cut a text to at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def near_words(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: similar known names, or a full stop."""
    by_lower = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(by_lower[word] for word in near)}?" if near else "."


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown name, with similar names and the list of all known ones."""
    names = list(known)
    return f"there is no {kind} {name!r}{near_words(name, names)} Known: {', '.join(names)}."


def with_options(message: str, options: Mapping[str, str]) -> str:
    """Replace parameters in an error message by command-line options.

    `` `threshold` `` becomes ``--threshold``, and `` `drop=['colour']` `` becomes ``--drop colour``.
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name not in options:
            return found[0]
        if value is None:
            return options[name]
        values = ast.literal_eval(value)
        values = values if isinstance(values, list) else [values]
        return " ".join(f"{options[name]} {_quote_for_shell(str(one))}" for one in values)

    return _PARAMETER.sub(option, message)


def _quote_for_shell(value: str) -> str:
    return shlex.quote(value) if value.isprintable() else f"${value!r}"


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise ValueError unless value is one of the choices."""
    known = list(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}.")


def check_integer(name: str, value: object, lowest: int, otherwise: str = "") -> None:
    """Raise ValueError unless value is an integer of at least `lowest`; `otherwise` ends the message."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < lowest:
        raise ValueError(
            f"{name} is {value!r}; it must be an integer of at least {lowest}{otherwise}"
        )


def check_share(name: str, value: Any) -> None:
    """Raise ValueError unless value is a number between 0 and 1, both excluded."""
    if not (isinstance(value, numbers.Real) and 0.0 < float(value) < 1.0):
        raise ValueError(f"{name} must be above 0 and below 1, not {value!r}.")


def check_real(
    name: str,
    value: Any,
    lowest: float,
    highest: float | None = None,
    strictly: bool = False,
) -> None:
    """Raise ValueError unless value is a finite number from `lowest` (excluded if `strictly`) to `highest`."""
    top = math.inf if highest is None else highest
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    number = float(value) if real else math.nan
    if math.isfinite(number) and lowest <= number <= top and not (strictly and number == lowest):
        return
    if strictly:
        wanted = f"greater than {lowest:g}" + ("" if highest is None else f" and at most {top:g}")
    else:
        wanted = f"of at least {lowest:g}" if highest is None else f"from {lowest:g} to {top:g}"
    raise ValueError(f"{name} is {value!r}; it must be a finite number {wanted}")
