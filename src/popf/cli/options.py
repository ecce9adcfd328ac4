"""Options that several commands have."""

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popf.cli.output import STDIO
from popf.formatting import with_options

if TYPE_CHECKING:
    from popf.tables import Table

Names = list[str]


def check_jobs(value: int) -> int:
    """Return a number of threads or processes, or raise ValueError for 0."""
    if value == 0:
        raise ValueError("--n-jobs must be at least 1, or -1 for all cores, not 0.")
    return value


def option(words: str, *names: str, **settings: Any) -> Any:
    """Make an option with words of help."""
    return typer.Option(*names, help=words, **settings)


def column(words: str, *names: str) -> Any:
    """Make an option that names a column."""
    return option(words, *names, metavar="COLUMN")


def seed(words: str) -> Any:
    """Make the option --seed."""
    return option(words, min=0, max=2**32 - 1)


def output(words: str) -> Any:
    """Make the option --output."""
    return option(words, "--output", "-o")


Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file of `popf fit` or of popf.save.")
]
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV or Parquet with named columns; - is stdin.")
]
Target = Annotated[str | None, column("The column with the labels. Default: the model's.")]
Positive = Annotated[
    str | None, option("The class to find. Default: the model's.", metavar="LABEL")
]
Ids = Annotated[
    Names | None, column("Column to carry through, never a feature. Repeatable.", "--id")
]
Drop = Annotated[Names | None, column("Column to leave out. Repeatable.")]
Delimiter = Annotated[
    str | None, option("Delimiter of CSV cells. Default: detected.", metavar="CHAR")
]
Encoding = Annotated[str, option("Text encoding, for instance latin-1.")]
Decimal = Annotated[str, option("The decimal mark, . or ,", metavar="CHAR")]
Missing = Annotated[
    Names | None, option("Another mark of a missing value. Repeatable.", "--na", metavar="TEXT")
]
Json = Annotated[bool, option("Print JSON, and nothing else, for scripts.", "--json")]
Encode = Annotated[str | None, option("Text columns as numbers: onehot or ordinal.")]
Jobs = Annotated[int, option("Number of threads; -1 for all cores.", callback=check_jobs)]
BootstrapSeed = Annotated[int, seed("Seed of the bootstrap for the intervals.")]
Progress = Annotated[
    bool | None, option("Show a progress bar. Default: on a terminal.", "--progress/--no-progress")
]
CostFn = Annotated[float | None, option("Cost of a miss.")]
Threshold = Annotated[float | None, option("Threshold to use instead of the model's own.")]


def as_options(words: str) -> str:
    """Show parameters of `popf fit`, in backticks, as its options."""
    names = ("id", "drop", "categorical", "one_per", "na", "decimal", "missing")
    return with_options(words, {name: "--" + name.replace("_", "-") for name in names})


def named(path: Path) -> str:
    """Name a file, or the stream that - stands for."""
    return "standard input" if path == STDIO else str(path)


def temporary(name: str) -> Path:
    """Name a file in a folder that is deleted when the process ends."""
    folder = tempfile.mkdtemp(prefix="popf-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder, name)


def from_stdin(path: Path) -> Path:
    """Keep standard input as a CSV file, because tables are read more than once; return any other path."""
    if path != STDIO:
        return path
    kept = temporary("standard-input.csv")
    with open(kept, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return kept


def table(
    path: Path, delimiter: str | None, encoding: str, decimal: str, na: Names | None = None
) -> "Table":
    """Open a table as the options say."""
    from popf.tables import Dialect, open_table

    mark = "\t" if delimiter == "\\t" else delimiter  # as it is typed in a shell
    return open_table(from_stdin(path), Dialect(mark, encoding, decimal, tuple(na or ())))
