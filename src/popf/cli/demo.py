"""``popf demo``: a quick reproduction."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("popf-demo"),
) -> int:
    """Reproduce the paper's experiment in small, on data that come with popf, and explain one prediction."""
    # The data sets and classifiers are not needed to print help.
    from popf.demo import demo as show

    return show(out)
