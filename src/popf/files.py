"""Files that are whole or not there: written beside their place, then moved into it."""

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when all went well, and leaves no trace otherwise.

    What is written goes to a temporary file in the same folder, is flushed to the disk, and is then
    renamed, which systems do in one step. So a crash, a full disk or Ctrl-C leaves what was there before.

    Parameters
    ----------
    path : str or path-like
        A symbolic link is followed, permissions of a file already there are kept.

    Yields
    ------
    binary file
        To write to, and seek in.

    Examples
    --------
    >>> import os, tempfile
    >>> from popf.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(os.path.join(folder, "notes.txt")) as file:
    ...         _ = file.write(b"whole")
    ...         before = os.path.exists(os.path.join(folder, "notes.txt"))
    ...     before, os.listdir(folder)
    (False, ['notes.txt'])
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is a device, not a file: give the name of a file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {target.parent} to write {target.name} to: make it first."
        )
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
    _settle(target.parent)


def writable_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, unless it is there, and try to write to it.

    Raises
    ------
    OSError
        With a sentence that names the folder, if that does not work.

    Examples
    --------
    >>> import tempfile
    >>> from popf.files import writable_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writable_folder(os.path.join(folder, "new")).name
    'new'
    """
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


def _settle(folder: Path) -> None:
    """Flush the folder's own entry, where the system lets one: the file is in place anyway."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
