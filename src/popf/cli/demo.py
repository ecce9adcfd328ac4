"""``popf demo``: a quick reproduction."""

from pathlib import Path
from typing import Annotated

import typer

from popf.cli import options


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("popf-demo"),
    json: options.Json = False,
) -> int:
    """Reproduce the paper's experiment in small, on data that come with popf, and explain one prediction."""
    # The data sets and classifiers are not needed to print help.
    from popf.cli.demonstration import demo as show

    return show(out, json)
