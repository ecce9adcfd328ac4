"""Files as bytes: read whole, unpacked by suffix, with errors that say what is wrong."""

import bz2
import gzip
import os
import zlib
from pathlib import Path

from popf.files import replacing
from popf.formatting import near_words

PACKED = (".gz", ".bz2")


def check_file(path: str | os.PathLike[str]) -> Path:
    """Raise an error unless there is a file with something in it.

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        With the nearest names in the folder.
    IsADirectoryError, ValueError
        When it is a folder, or empty.

    Examples
    --------
    >>> from popf.tables.formats.files import check_file
    >>> check_file("no such file.csv")
    Traceback (most recent call last):
    FileNotFoundError: there is no file no such file.csv.
    """
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(f"{place} is a folder: give the name of a file in it.")
    if not place.exists():
        beside = [file.name for file in place.parent.iterdir()] if place.parent.is_dir() else []
        raise FileNotFoundError(f"there is no file {place}{near_words(place.name, beside)}")
    if place.is_file() and place.stat().st_size == 0:
        raise ValueError(f"{place} is empty.")
    return place


def content_of(path: str | os.PathLike[str]) -> bytes:
    """Read a file, unpacked where its name ends in ``.gz`` or ``.bz2``.

    Raises
    ------
    FileNotFoundError
        With the nearest names in the folder.
    ValueError
        When the file is empty, or packed and broken.
    """
    place = check_file(path)
    content = place.read_bytes()
    try:
        if place.suffix == ".gz":
            content = gzip.decompress(content)
        elif place.suffix == ".bz2":
            content = bz2.decompress(content)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(f"{place} cannot be unpacked ({error}): it is cut short, or not "
                         f"what its suffix {place.suffix} says.") from error  # fmt: skip
    if not content.strip():
        raise ValueError(f"{place} is empty.")
    return content


def put(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file in one step, packed where its name ends in ``.gz`` or ``.bz2``."""
    suffix = Path(path).suffix
    if suffix == ".gz":
        content = gzip.compress(content, mtime=0)  # the same data give the same bytes
    elif suffix == ".bz2":
        content = bz2.compress(content)
    with replacing(path) as file:
        file.write(content)
