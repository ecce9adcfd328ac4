"""Write files atomically, read them with clear errors, and compress them according to their suffix."""

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

#: Suffixes of compressed files, and the modules that compress them.
PACKED: dict[str, Any] = {".gz": gzip, ".bz2": bz2}
#: Explanations of disk errors, by errno.
DISK_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be too large",
    errno.EIO: "the disk reports an error",
    errno.EROFS: "the disk is read-only",
}


class OutputError(RuntimeError):
    """A result could not be written because of the disk, not because of the input."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` atomically if no error occurs.

    Symbolic links are followed, and the permissions of an existing file are kept.
    """
    target = check_target(path)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    # os.open, not tempfile, so that the file gets the user's default permissions.
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
    # Flush the folder's entry too, where the system allows it; the file is already in place.
    with suppress(OSError):
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a command's output file with `replacing`, and explain write errors."""
    with explain_write_errors(path), replacing(path) as file:
        yield file


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Replace disk and permission errors by a one-sentence message; clean up on SIGTERM as on Ctrl-C."""
    try:
        with _cleanup_on_sigterm():
            yield
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise OutputError(
                f"{path} was not written: {DISK_ERRORS[error.errno]}. An existing file is unchanged."
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
    """Raise an error if no file can be written to `path`; return the path with links resolved."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is a device, not a file: give the name of a file.")
    folder = target.parent
    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file, not a folder: choose another path.")
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder} for {target.name}: create it first.")
    return target


def writable_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder if it does not exist, and check that it is writable; raise OSError if it is not."""
    folder = Path(path).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = "it is a file" if folder.is_file() else (error.strerror or str(error)).lower()
        raise type(error)(
            f"cannot write to the output folder {folder} ({reason}): choose another."
        ) from error
    return folder


def check_file(path: str | os.PathLike[str]) -> Path:
    """Raise an error if a file is missing or empty; if it is missing, suggest files with similar names."""
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
    """Read a file, decompressed if its name ends in ``.gz`` or ``.bz2``."""
    place = check_file(path)
    content = place.read_bytes()
    try:
        if place.suffix in PACKED:
            content = PACKED[place.suffix].decompress(content)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise not_unpacked(place, error) from error
    if not content.strip():
        raise ValueError(f"{place} is empty.")
    return content


def not_unpacked(path: Path, error: Exception) -> ValueError:
    """Return the error for a compressed file that cannot be read."""
    return ValueError(
        f"{path} cannot be decompressed ({error}): it is truncated, or not a {path.suffix} file."
    )


def write_packed(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically, compressed if its name ends in ``.gz`` or ``.bz2``."""
    with replacing(path) as file, packing(file, Path(path).suffix) as packed:
        packed.write(content)


def packing(file: BinaryIO, suffix: str) -> Any:
    """Wrap an open file to compress what is written, according to the suffix; the file stays open."""
    if suffix == ".gz":  # no name and time stamp: equal data give equal bytes
        return gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0)
    return bz2.BZ2File(file, "wb") if suffix == ".bz2" else nullcontext(file)
