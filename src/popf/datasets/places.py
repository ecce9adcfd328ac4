"""Where datasets lie: the user's folder, the package itself, the cache."""

import os
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from popf.datasets.registry import Entry
from popf.datasets.samples import Samples
from popf.tables.formats.files import PACKED, put
from popf.tables.formats.svmlight import svmlight_bytes

_SUFFIXES = ("", ".txt", ".svm", ".svmlight", ".libsvm", ".csv")


def user_folder(data_home: str | os.PathLike[str] | None) -> Path | None:
    """Give the folder that the user names, by argument or by ``POPF_DATA``.

    Raises
    ------
    NotADirectoryError
        When it is named, and not there.
    """
    named = data_home if data_home is not None else os.environ.get("POPF_DATA") or None
    if named is None:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        by = "data_home" if data_home is not None else "the environment variable POPF_DATA"
        raise NotADirectoryError(f"{by} names {folder}, which is no folder.")
    return folder


def cache_folder() -> Path:
    """Give the folder for downloads: ``POPF_CACHE``, else the system's own place for caches."""
    named = os.environ.get("POPF_CACHE")
    if named:
        return Path(named).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "popf" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "popf"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "popf"


def embedded_folder() -> Path:
    """Give the folder of the data that travel with the package."""
    return Path(str(files("popf.datasets").joinpath("embedded")))


def files_of(folder: Path, entry: Entry, *, keep_id: bool) -> Iterator[tuple[Path, str]]:
    """Find the files in a folder that can give a dataset, best first.

    Yields
    ------
    path : Path
    file : str
        The name under which the facts of such a file are recorded.
    """
    for file in wanted_files(entry, keep_id=keep_id):
        for suffix in _SUFFIXES:
            for packed in ("", *PACKED):
                path = folder / f"{file}{suffix}{packed}"
                if path.is_file():
                    yield path, file


def wanted_files(entry: Entry, *, keep_id: bool) -> list[str]:
    """Name the files that can give a dataset: the scaled form is made from the raw one if need be."""
    stems = [entry.raw_file]
    if entry.raw_file == "breast-cancer" and not keep_id:
        stems.append("breast-w")  # OpenML's name of the same without the id
    forms = ("_scale", "") if entry.scaled else ("",)
    return [stem + form for form in forms for stem in stems]


def store(folder: Path, file: str, samples: Samples) -> str | None:
    """Keep a download in the cache; say why where that fails, for the data are good without it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        put(folder / file, svmlight_bytes(samples.X, samples.y))
    except OSError as error:
        return f"{folder} cannot be written: {error}"
    return None
