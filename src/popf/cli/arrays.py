"""Samples and labels as arrays, from a file in any format: what convert and reproduce share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from popf.tables.reading import Table

#: Suffixes of files with named columns; the others hold numbers and one label a row.
TABLES = (".csv", ".tsv", ".parquet", ".pq")


class Arrays(NamedTuple):
    """Features, labels, and what they are called; `ids` are those of LibOPF, else None."""

    X: Any
    y: Any
    names: list[str]
    target: str
    ids: Any


def suffix_of(path: Path) -> str:
    """Give the suffix that tells the format, before that of packing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from popf.cli.arrays import suffix_of
    >>> suffix_of(Path("a.CSV.gz"))
    '.csv'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".bz2")]
    return suffixes[-1] if suffixes else ""


def check_format(path: Path) -> None:
    """Raise ValueError where the suffix of a file tells no format."""
    from popf.tables.formats import FORMATS

    known = [suffix for suffixes in FORMATS.values() for suffix in suffixes if suffix]
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if suffix_of(path) not in known:
        raise ValueError(f"the suffix of {path} tells no format: use one of {', '.join(known)}.")


def kept_names(table: "Table", drop: Sequence[str]) -> list[str]:
    """Give the columns of a table that are not dropped; raise ValueError for one it does not have."""
    from popf.tables.reading import need_columns

    need_columns(table, drop, "drop")
    return [name for name in table.names if name not in drop]


def from_file(path: Path, *naming: Any) -> Arrays:
    """Read a file without named columns: svmlight or LibOPF.

    Parameters
    ----------
    path : Path
    *naming
        What was given by options that name columns, and must be nothing.
    """
    from popf.datasets import read

    if any(naming):
        raise ValueError(
            "--target, --drop and --encode name columns, which svmlight and LibOPF files do not have."
        )
    found = read(path)
    return Arrays(found.data, found.target, found.feature_names, found.target_name, found.ids)


def from_table(table: "Table", target: str | None, encode: Any, drop: Sequence[str] = ()) -> Arrays:
    """Make arrays of a table.

    Parameters
    ----------
    table : Table
    target : str or None
        The column with the labels; None for the last.
    encode : {"onehot", "ordinal"} or None
        What becomes of columns of text; None for an error that names them.
    drop : sequence of str
        Columns to leave out.
    """
    from popf.tables.formats.table import assemble
    from popf.tables.reading import need_columns

    names = kept_names(table, drop)
    if target is not None:
        need_columns(table, [target], "target")
    text = table.text()
    columns = {name: text[name].tolist() for name in names}
    dialect = getattr(table, "dialect", None)
    if dialect is not None and dialect.decimal != ".":
        mark = dialect.decimal
        columns = {name: [cell.replace(mark, ".") for cell in c] for name, c in columns.items()}
    return Arrays(*assemble(columns, target, encode, str(table.path)), None)
