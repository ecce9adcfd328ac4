"""Options shared by several commands, with their defaults."""

from typing import Any

import typer

from popf.cli.terminal import check_jobs


def option(default: Any, text: str, *names: str, **settings: Any) -> Any:
    """Return an option with a help text; the default ``...`` makes it required."""
    return typer.Option(default, *names, help=text, **settings)


def column(default: Any, text: str, *names: str) -> Any:
    """Return an option that takes the name of a column."""
    return option(default, text, *names, metavar="COLUMN")


def seed(text: str) -> Any:
    """Return the option --seed."""
    return option(0, text, min=0, max=2**32 - 1)


def output(default: Any, text: str) -> Any:
    """Return the option --output."""
    return option(default, text, "--output", "-o")


MODEL = typer.Argument(..., metavar="MODEL", help="Model file from `popf fit` or popf.save.")
DATA = typer.Argument(
    ..., metavar="DATA", help="CSV or Parquet file with named columns; - for stdin."
)
TARGET = column(None, "Column with the labels. Default: as in `popf fit`.")
POSITIVE = option(None, "Positive class. Default: the model's.", metavar="LABEL")
IDS = column(None, "Column to copy to the output. Default: the model's ids. Repeatable.", "--id")
DROP = column(None, "Column to leave out. Repeatable.")
DELIMITER = option(None, "CSV delimiter. Default: detected.", metavar="CHAR")
ENCODING = option("utf-8", "Text encoding, such as latin-1.")
DECIMAL = option(".", "Decimal separator, . or ,", metavar="CHAR")
MISSING = option(
    None, "Text to read as missing, besides NA and the like. Repeatable.", "--na", metavar="TEXT"
)
JSON = option(False, "Print only JSON, for scripts.", "--json")
ENCODE = option(None, "How to encode text columns: onehot or ordinal.")
JOBS = option(-1, "Number of threads; -1 for all cores.", callback=check_jobs)
BOOTSTRAP_SEED = seed("Seed for the bootstrap intervals.")
PROGRESS = option(None, "Show a progress bar. Default: on a terminal.", "--progress/--no-progress")
COST_FN = option(None, "Cost of a miss (false negative).")
THRESHOLD = option(None, "Probability threshold. Default: the model's.")
