"""Options that several commands have."""

from pathlib import Path
from typing import Annotated, Any

import typer

from popf.cli.terminal import check_jobs

Names = list[str]


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
