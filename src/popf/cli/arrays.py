"""Samples and labels as arrays, from a file in any format: what convert and reproduce share."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from popf.tables.samples import Samples

#: Suffixes of files with named columns; the others hold numbers and one label a row.
TABLES = (".csv", ".tsv", ".parquet", ".pq")


def check_format(path: Path) -> None:
    """Raise ValueError where the suffix of a file tells no format."""
    from popf.tables.formats import FORMATS, suffix_of

    known = [suffix for suffixes in FORMATS.values() for suffix in suffixes if suffix]
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if suffix_of(path) not in known:
        raise ValueError(f"the suffix of {path} tells no format: use one of {', '.join(known)}.")


def from_file(path: Path, *naming: Any) -> "Samples":
    """Read a file without named columns: svmlight or LibOPF.

    Parameters
    ----------
    path : Path
    *naming
        What was given by options that name columns, and must be nothing.
    """
    from popf.tables import read
    from popf.tables.samples import Samples

    if any(naming):
        raise ValueError(
            "--target, --drop and --encode name columns, which svmlight and LibOPF files do not have."
        )
    found = read(path)
    return Samples(found.data, found.target, found.feature_names, found.target_name, found.ids)
