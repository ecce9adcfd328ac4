"""A bar that tells how far a study is and how long it will still take."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Protocol as Kind
from typing import TextIO


class Progress(Kind):
    """What `run` calls: once after every unit of work."""

    def advance(self, text: str) -> None:
        """One more unit is done; say which."""


class Silent:
    """No bar."""

    def advance(self, text: str) -> None:
        """Do nothing."""


class PlainBar:
    """A bar in one line of a terminal, without any library.

    Examples
    --------
    >>> import io
    >>> from popf.experiment.progress import PlainBar
    >>> out = io.StringIO()
    >>> bar = PlainBar(4, out)
    >>> bar.advance("heart, run 0")
    >>> out.getvalue().split("[")[2][:22]
    '=====               ] '
    """

    def __init__(self, total: int, stream: TextIO) -> None:
        self.total, self.stream = total, stream
        self.done, self.start = 0, time.monotonic()

    def advance(self, text: str) -> None:
        """Draw the line anew."""
        self.done += 1
        spent = time.monotonic() - self.start
        left = spent / self.done * (self.total - self.done)
        bar = "=" * int(20 * self.done / self.total)
        line = f"[{bar:20}] {self.done}/{self.total}, {clock(left)} left, {text}"
        self.stream.write(f"\r\x1b[2K{line[:79]}")
        self.stream.flush()


@contextlib.contextmanager
def progress_bar(total: int, show: bool | None = None) -> Iterator[Progress]:
    """Show a bar on the error stream while units of work are done.

    Parameters
    ----------
    total : int
        How many units there are.
    show : bool or None, default=None
        None for: if the error stream is a terminal.
    """
    stream = sys.stderr
    if not (stream.isatty() if show is None else show) or total == 0:
        yield Silent()
        return
    rich = _rich_bar(total)
    if rich is None:
        bar = PlainBar(total, stream)
        try:
            yield bar
        finally:
            stream.write("\r\x1b[2K")
            stream.flush()
        return
    with rich as progress:
        yield progress


def _rich_bar(total: int) -> "contextlib.AbstractContextManager[Progress] | None":
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
    except ImportError:
        return None

    @contextlib.contextmanager
    def bar() -> Iterator[Progress]:
        columns = (
            BarColumn(24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("left, {task.description}"),
        )
        with RichProgress(*columns, console=Console(stderr=True), transient=True) as shown:
            number = shown.add_task("", total=total)

            class Bar:
                def advance(self, text: str) -> None:
                    shown.update(number, advance=1, description=text.replace("[", r"\["))

            yield Bar()

    return bar()


def clock(seconds: float) -> str:
    """Write a time as minutes and seconds, or hours.

    Examples
    --------
    >>> from popf.experiment.progress import clock
    >>> clock(75.2), clock(7300)
    ('1:15', '2:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
