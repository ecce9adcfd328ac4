"""What commands print and write: notes, JSON, and files that are whole or not there."""

import errno
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from popf.cli.messages import say
from popf.cli.options import plain


class OutputError(RuntimeError):
    """A result could not be written, through no fault of the input."""


_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "the file would be too large",
    errno.EIO: "the disk reports an error",
    errno.EROFS: "the disk is read-only",
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what goes wrong in writing into a sentence; SIGTERM cleans up as Ctrl-C does."""
    try:
        with _terminated_in_order():
            yield
    except OSError as error:
        if error.errno in _FULL:
            raise OutputError(
                f"{path} was not written: {_FULL[error.errno]}. What was there before is as it was."
            ) from error
        if isinstance(error, PermissionError):
            raise ValueError(f"{path} was not written: no permission for that folder.") from error
        raise


@contextmanager
def file_for(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its place when all is written."""
    from popf.files import replacing

    with writing(path), replacing(path) as file:
        yield file


@contextmanager
def _terminated_in_order() -> Iterator[None]:
    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check_output(
    path: Path | None, inputs: Sequence[Path], suffixes: Sequence[str] = (), option: str = ""
) -> None:
    """Raise an error if a result would go where it cannot, or destroy an input, before any work.

    Parameters
    ----------
    path : Path or None
        None for nowhere.
    inputs : sequence of Path
    suffixes : sequence of str
        Those that the name may have; none for any.
    option : str
        What an error calls the path, such as ``--plot``.
    """
    from popf.files import writable_folder

    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a device, not a file: give the name of a file.")
    folder = path.resolve().parent
    if not folder.is_dir():
        if folder.exists():
            raise NotADirectoryError(f"{folder} is a file, not a folder: name another place.")
        raise FileNotFoundError(f"there is no folder {folder}: make it first.")
    for source in inputs:
        with suppress(OSError):
            if path.exists() and os.path.samefile(path, source):
                raise ValueError(f"the output {path} would replace an input: name another file.")
    if suffixes and path.suffix.lower() not in suffixes:
        known = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if suffixes[1:] else suffixes[0]
        raise ValueError(f"{option or '--output'}: the suffix of {path} must be {known}.")
    writable_folder(folder)


def show(facts: dict[str, Any], lines: Sequence[str], as_json: bool) -> None:
    """Print the facts as JSON, or the lines for a person."""
    if as_json:
        print(json.dumps(plain(facts), allow_nan=False, indent=2))
    else:
        print("\n".join(lines))


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Say warnings as notes of one line, without file names and line numbers."""

    def note(message: Any, category: Any, *rest: Any, **more: Any) -> None:
        if not issubclass(category, DeprecationWarning | FutureWarning):
            say("note: " + " ".join(str(message).split()))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = note
        yield


def columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    r"""Align cells: the first column to the left, the others to the right.

    Examples
    --------
    >>> from popf.cli.output import columns
    >>> print("\n".join(columns([["a", "10"], ["long", "9"]])))
      a     10
      long   9
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def counted(n: int, thing: str) -> str:
    """Write a number with its thing.

    Examples
    --------
    >>> from popf.cli.output import counted
    >>> counted(1, "row"), counted(12345, "row")
    ('1 row', '12,345 rows')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def is_terminal() -> bool:
    """Say whether a person watches the error stream."""
    return sys.stderr.isatty()
