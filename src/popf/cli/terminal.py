"""What commands read and print: standard streams, notes, JSON, progress."""

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

#: Standard input or output.
STDIO = Path("-")
Advance = Callable[[int, int, str], None]


def say(sentence: str) -> None:
    """Print a sentence on the error stream, where it does not get into the output."""
    print(f"popf: {printable(sentence)}", file=sys.stderr)


def show(
    facts: dict[str, Any], lines: Sequence[str], as_json: bool, error_stream: bool = False
) -> None:
    """Print the facts as JSON, or the lines for a person; on the error stream beside a table."""
    text = printable("\n".join(lines))
    if as_json:
        text = json.dumps(for_json(facts), allow_nan=False, indent=2)
    print(text, file=sys.stderr if error_stream else sys.stdout)


def class_counts(classes: Iterable[Any], counts: Iterable[int]) -> str:
    """Write how many rows each class has."""
    return listed([f"{label}: {n:,}" for label, n in zip(classes, counts, strict=True)])


def more_rows(n: int, output: str | None) -> str:
    """Write where to find the rows that are not shown."""
    return f"  ... {n:,} more" + (f" in {output}" if output else "; --output writes them all")


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings as notes of one line, without file names and line numbers."""

    def note(message: Any, category: Any, *rest: Any, **more: Any) -> None:
        if not issubclass(category, DeprecationWarning | FutureWarning):
            say("note: " + " ".join(str(message).split()))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = note
        yield


@contextmanager
def progress_bar(shown: bool | None) -> Iterator[Advance]:
    """Show a bar on the error stream, moved by calls of ``advance(n_done, n_total, text)``."""
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
    """Show the stage that ``stage(text)`` has set, or that kernels compile, and the time elapsed."""
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
                describe("compiling, first run only")

            def on_end(self, event: Any) -> None:
                describe(current[0])

        with event.install_listener("numba:compile", Compiling()):
            yield stage


def _is_shown(wanted: bool | None) -> bool:
    """Decide if progress is shown: as wanted, or with None if the error stream is a terminal."""
    return sys.stderr.isatty() if wanted is None else wanted


def _live(*columns: Any) -> Any:
    """Make a display on the error stream that disappears when it ends."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)


def check_output(
    path: Path | None,
    inputs: Sequence[Path],
    suffixes: Sequence[str] = (),
    option: str = "--output",
) -> None:
    """Raise an error if a file cannot be written there, or would replace an input."""
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
    """Return a number of threads or processes, or raise ValueError for 0."""
    if value == 0:
        raise ValueError("--n-jobs must be at least 1, or -1 for all cores, not 0.")
    return value


def as_options(words: str) -> str:
    """Show parameters of `popf fit`, in backticks, as its options."""
    names = ("id", "drop", "categorical", "one_per", "na", "decimal", "missing")
    return with_options(words, {name: "--" + name.replace("_", "-") for name in names})


def column_facts(columns: Iterable["Column"]) -> dict[str, dict[str, Any]]:
    """Tell how columns are read, by name."""
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


def open_data(
    path: Path, delimiter: str | None, encoding: str, decimal: str, na: list[str] | None = None
) -> "Table":
    """Open a table as the options say."""
    from popf.tables import Dialect, open_table

    mark = "\t" if delimiter == "\\t" else delimiter  # as it is typed in a shell
    return open_table(from_stdin(path), Dialect(mark, encoding, decimal, tuple(na or ())))
