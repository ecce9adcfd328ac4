"""A bar that shows how far a command is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int, int, str], None]


@contextmanager
def progress_bar(show: bool | None) -> Iterator[Advance]:
    """Show a bar on the error stream, moved by calls of ``advance(n_done, n_total, text)``.

    None for `show` means: if the error stream is a terminal.
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda n_done, n_total, text: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
    text = TextColumn("left, {task.description}")
    with Progress(*columns, text, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, visible=False)

        def advance(n_done: int, n_total: int, text: str) -> None:
            bar.update(
                task, completed=n_done, total=n_total, description=escape(text), visible=True
            )

        yield advance
