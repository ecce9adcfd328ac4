"""Files: written whole or not at all, read with errors that say what is wrong, packed by suffix."""

import bz2
import errno
import gzip
import os
import secrets
import signal
import stat
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

from popf.formatting import near_words

#: Suffixes of packed files, and what packs them.
PACKED: dict[str, Any] = {".gz": gzip, ".bz2": bz2}
#: Errors that are the disk's fault, by their number.
DISK_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "the file would be too large",
    errno.EIO: "the disk reports an error",
    errno.EROFS: "the disk is read-only",
}


class OutputError(RuntimeError):
    """A result could not be written, through no fault of the input."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` that takes its place, in one step, when all went well.

    A symbolic link is followed, and the permissions of a file already there are kept.
    """
    target = check_target(path)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    # Opened by hand, for permissions such as any new file of this user has.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    # The folder's own entry, where the system lets one flush it: the file is in place anyway.
    with suppress(OSError):
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open the output file of a command: `replacing`, with errors explained."""
    with explain_write_errors(path), replacing(path) as file:
        yield file


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Explain a full disk or a lack of permission in one sentence; on SIGTERM, clean up as on Ctrl-C."""
    try:
        with _cleanup_on_sigterm():
            yield
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise OutputError(
                f"{path} was not written: {DISK_ERRORS[error.errno]}. What was there before is unchanged."
            ) from error
        if isinstance(error, PermissionError):
            raise ValueError(f"{path} was not written: no permission for that folder.") from error
        raise


@contextmanager
def _cleanup_on_sigterm() -> Iterator[None]:
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


def check_target(path: str | os.PathLike[str]) -> Path:
    """Raise an error unless a file can have this name; return it with links resolved."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is a device, not a file: give the name of a file.")
    folder = target.parent
    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file, not a folder: name another place.")
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder} for {target.name}: make it first.")
    return target


def writable_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, unless it is there, and try to write to it; raise OSError if that fails."""
    folder = Path(path).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = "it is a file" if folder.is_file() else (error.strerror or str(error)).lower()
        raise type(error)(
            f"cannot write to the output folder {folder} ({reason}): name another."
        ) from error
    return folder


def check_file(path: str | os.PathLike[str]) -> Path:
    """Raise an error unless there is a file that is not empty; for a missing one, name similar files."""
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(f"{place} is a folder: give the name of a file in it.")
    if not place.exists():
        beside = [file.name for file in place.parent.iterdir()] if place.parent.is_dir() else []
        raise FileNotFoundError(f"there is no file {place}{near_words(place.name, beside)}")
    if place.is_file() and place.stat().st_size == 0:
        raise ValueError(f"{place} is empty.")
    return place


def read_unpacked(path: str | os.PathLike[str]) -> bytes:
    """Read a file, unpacked where its name ends in ``.gz`` or ``.bz2``."""
    place = check_file(path)
    content = place.read_bytes()
    try:
        if place.suffix in PACKED:
            content = PACKED[place.suffix].decompress(content)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(
            f"{place} cannot be unpacked ({error}): it is cut short, or not what its suffix "
            f"{place.suffix} says."
        ) from error
    if not content.strip():
        raise ValueError(f"{place} is empty.")
    return content


def write_packed(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file in one step, packed where its name ends in ``.gz`` or ``.bz2``."""
    with replacing(path) as file, packing(file, Path(path).suffix) as packed:
        packed.write(content)


def packing(file: BinaryIO, suffix: str) -> Any:
    """Pack what is written to an open file, by the suffix of its name; the file stays open."""
    if suffix == ".gz":  # without name and time: the same data give the same bytes
        return gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0)
    return bz2.BZ2File(file, "wb") if suffix == ".bz2" else nullcontext(file)
