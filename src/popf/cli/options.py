"""Options that several commands have, with their defaults."""

from typing import Any

import typer

from popf.cli.terminal import check_jobs


def option(default: Any, words: str, *names: str, **settings: Any) -> Any:
    """Make an option with a line of help; one whose default is ... is required."""
    return typer.Option(default, *names, help=words, **settings)


def column(default: Any, words: str, *names: str) -> Any:
    """Make an option that names a column."""
    return option(default, words, *names, metavar="COLUMN")


def seed(words: str) -> Any:
    """Make the option --seed."""
    return option(0, words, min=0, max=2**32 - 1)


def output(default: Any, words: str) -> Any:
    """Make the option --output."""
    return option(default, words, "--output", "-o")


MODEL = typer.Argument(..., metavar="MODEL", help="A file of `popf fit` or of popf.save.")
DATA = typer.Argument(..., metavar="DATA", help="CSV or Parquet with named columns; - is stdin.")
TARGET = column(None, "The column with the labels. Default: the model's.")
POSITIVE = option(None, "The class to find. Default: the model's.", metavar="LABEL")
IDS = column(None, "Column to carry through, never a feature. Repeatable.", "--id")
DROP = column(None, "Column to leave out. Repeatable.")
DELIMITER = option(None, "Delimiter of CSV cells. Default: detected.", metavar="CHAR")
ENCODING = option("utf-8", "Text encoding, for instance latin-1.")
DECIMAL = option(".", "The decimal mark, . or ,", metavar="CHAR")
MISSING = option(None, "Another mark of a missing value. Repeatable.", "--na", metavar="TEXT")
JSON = option(False, "Print JSON, and nothing else, for scripts.", "--json")
ENCODE = option(None, "Text columns as numbers: onehot or ordinal.")
JOBS = option(-1, "Number of threads; -1 for all cores.", callback=check_jobs)
BOOTSTRAP_SEED = seed("Seed of the bootstrap for the intervals.")
PROGRESS = option(None, "Show a progress bar. Default: on a terminal.", "--progress/--no-progress")
COST_FN = option(None, "Cost of a miss.")
THRESHOLD = option(None, "Threshold to use instead of the model's own.")
