"""Options that several commands have, and what they mean together."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from popf.tables import Table

Names = list[str]
ENCODINGS = ("onehot", "ordinal")

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Of `popf fit`, or of popf.save.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="CSV or Parquet with named columns.")]
Ids = Annotated[
    Names | None,
    typer.Option("--id", metavar="COLUMN", help="Carried through, never a feature. Repeat it."),
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Between cells. Default: comma; tab in .tsv.")
]
Encoding = Annotated[str, typer.Option(help="Of the text, for instance latin-1.")]
Decimal = Annotated[str, typer.Option(metavar="CHAR", help="The decimal mark, . or ,")]
Missing = Annotated[
    Names | None,
    typer.Option("--na", metavar="TEXT", help="Also stands for a missing value. Repeat it."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, for scripts.")]
Encode = Annotated[
    str | None,
    typer.Option(
        help="onehot or ordinal: columns of text as numbers.",
        callback=lambda value: check_choice("--encode", value, ENCODINGS),
    ),
]
Jobs = Annotated[
    int, typer.Option(help="Threads; -1 for all cores.", callback=lambda value: check_jobs(value))
]
Progress = Annotated[
    bool | None, typer.Option("--progress/--no-progress", help="Default: on a terminal.")
]
ChunkRows = Annotated[
    int | None, typer.Option(min=1, help="Rows held at a time. Default: some megabytes of cells.")
]


def seed(words: str) -> Any:
    """Make the option --seed, with words of help."""
    return typer.Option(min=0, max=2**32 - 1, help=words)


def check_choice(option: str, value: str | None, known: Sequence[str]) -> str | None:
    """Give a value back, or raise ValueError where it is none of those known; None is left as it is.

    Examples
    --------
    >>> from popf.cli.options import check_choice
    >>> check_choice("--encode", "one hot", ["onehot", "ordinal"])
    Traceback (most recent call last):
    ValueError: --encode must be one of onehot, ordinal, not 'one hot'.
    """
    if value is not None and value not in known:
        raise ValueError(f"{option} must be one of {', '.join(known)}, not {value!r}.")
    return value


def check_jobs(value: int) -> int:
    """Give a number of threads or processes back, or raise ValueError for 0."""
    if value == 0:
        raise ValueError("--n-jobs must be at least 1, or -1 for all cores, not 0.")
    return value


def table(
    path: Path, delimiter: str | None, encoding: str, decimal: str, missing: Names | None
) -> "Table":
    """Open a table as the options say."""
    from popf.tables import Dialect, open_table

    dialect = Dialect(delimiter, encoding, decimal, tuple(missing or ()))
    return open_table(path, dialect)


def plain(value: Any) -> Any:
    """Make a value fit for JSON: NumPy's numbers and labels as Python's.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.cli.options import plain
    >>> plain({"a": np.int64(3), "b": [np.float64("nan")]})
    {'a': 3, 'b': [None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
