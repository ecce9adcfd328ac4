"""Input and output of the commands: standard streams, notes, JSON, progress."""

import atexit
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popf.files import check_target, writable_folder
from popf.formatting import for_json, listed, printable, with_options

if TYPE_CHECKING:
    from popf.tables import Table
    from popf.tables.columns import Column

#: The path that stands for standard input or output.
STDIO = Path("-")
Advance = Callable[[int, int, str], None]


def say(sentence: str) -> None:
    """Print a message on standard error; one that quotes a huge cell is cut."""
    print(f"popf: {printable(sentence[:2000])}", file=sys.stderr)


def show(
    facts: dict[str, Any], lines: Sequence[str], as_json: bool, error_stream: bool = False
) -> None:
    """Print the facts as JSON or the lines as text, on standard output or on standard error."""
    text = printable("\n".join(lines))
    if as_json:
        text = json.dumps(for_json(facts), allow_nan=False, indent=2)
    print(text, file=sys.stderr if error_stream else sys.stdout)


def class_counts(classes: Iterable[Any], counts: Iterable[int]) -> str:
    """Format the number of rows of each class."""
    return listed([f"{label}: {n:,}" for label, n in zip(classes, counts, strict=True)])


def more_rows(n: int, output: str | None) -> str:
    """Return a line that tells where the remaining rows are."""
    return f"  ... {n:,} more" + (f" in {output}" if output else "; --output writes them all")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings as one-line notes, without file names and line numbers."""

    def note(message: Any, category: Any, *rest: Any, **more: Any) -> None:
        if not issubclass(category, DeprecationWarning | FutureWarning):
            say("note: " + " ".join(str(message).split()))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = note
        yield


@contextmanager
def progress_bar(shown: bool | None) -> Iterator[Advance]:
    """Show a progress bar on standard error, updated by ``advance(n_done, n_total, text)``."""
    if not _is_shown(shown):
        yield lambda n_done, n_total, text: None
        return
    from rich import progress
    from rich.markup import escape

    text = progress.TextColumn("left, {task.description}")
    columns = (progress.MofNCompleteColumn(), progress.TimeRemainingColumn(), text)
    with _live(progress.BarColumn(24), *columns) as bar:
        task = bar.add_task("", total=None, visible=False)
        yield lambda n_done, n_total, text: bar.update(
            task, completed=n_done, total=n_total, description=escape(text), visible=True
        )


@contextmanager
def stages(shown: bool | None) -> Iterator[Callable[[str], None]]:
    """Show the elapsed time and the current stage: the one set by ``stage(text)``, or compiling."""
    if not _is_shown(shown):
        yield lambda text: None
        return
    from numba.core import event
    from rich import progress
    from rich.markup import escape

    text = progress.TextColumn("{task.description}")
    with _live(progress.SpinnerColumn(), text, progress.TimeElapsedColumn()) as bar:
        task, current = bar.add_task("", total=None), [""]

        def describe(text: str) -> None:
            bar.update(task, description=escape(text), refresh=True)

        def stage(text: str) -> None:
            current[0] = text
            describe(text)

        class Compiling(event.Listener):
            def on_start(self, event: Any) -> None:
                describe("compiling (first run only)")

            def on_end(self, event: Any) -> None:
                describe(current[0])

        with event.install_listener("numba:compile", Compiling()):
            yield stage


def _is_shown(requested: bool | None) -> bool:
    """Decide whether to show progress: as requested, or with None if standard error is a terminal."""
    return sys.stderr.isatty() if requested is None else requested


def _live(*columns: Any) -> Any:
    """Return a progress display on standard error that disappears when it ends."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)


def check_output(
    path: Path | None,
    inputs: Sequence[Path],
    suffixes: Sequence[str] = (),
    option: str = "--output",
) -> None:
    """Raise an error if `path` cannot be written or is one of the inputs."""
    if path is None or path == STDIO:
        return
    folder = check_target(path).parent
    for source in inputs:
        with suppress(OSError):
            if os.path.samefile(path, source):
                raise ValueError(f"the output {path} would replace an input: name another file.")
    if suffixes and path.suffix.lower() not in suffixes:
        known = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise ValueError(f"{option}: the suffix of {path} must be {known}.")
    writable_folder(folder)


def check_jobs(value: int) -> int:
    """Return a number of threads or processes; raise ValueError for 0."""
    if value == 0:
        raise ValueError("--n-jobs must be at least 1, or -1 for all cores, not 0.")
    return value


def as_options(text: str) -> str:
    """Replace parameters in backticks by the options of `popf fit`."""
    names = ("id", "drop", "categorical", "one_per", "na", "decimal", "time")
    return with_options(text, {name: "--" + name.replace("_", "-") for name in names})


def column_facts(columns: Iterable["Column"]) -> dict[str, dict[str, Any]]:
    """Return how each column is read, by name."""
    return {
        column.name: {
            "read_as": column.role,
            "n_values": column.n_values,
            "n_missing": column.n_missing,
            "problem": as_options(column.problem),
            "note": as_options(column.note),
        }
        for column in columns
    }


def named(path: Path) -> str:
    """Return the name of a file, or "standard input" for ``-``."""
    return "standard input" if path == STDIO else str(path)


def temporary(name: str) -> Path:
    """Return a path in a temporary folder that is deleted at exit."""
    folder = tempfile.mkdtemp(prefix="popf-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder, name)


def from_stdin(path: Path) -> Path:
    """Copy standard input to a temporary CSV file; return any other path unchanged.

    Tables are read more than once.
    """
    if path != STDIO:
        return path
    copy = temporary("standard-input.csv")
    with open(copy, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


def open_data(
    path: Path, delimiter: str | None, encoding: str, decimal: str, na: list[str] | None = None
) -> "Table":
    """Open a table with the given options."""
    from popf.tables import Dialect, open_table

    mark = "\t" if delimiter == "\\t" else delimiter  # as typed in a shell
    return open_table(from_stdin(path), Dialect(mark, encoding, decimal, tuple(na or ())))
