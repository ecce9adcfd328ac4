"""What commands print and write: notes, tables, JSON, a bar, and files that are whole or not there."""

import bz2
import errno
import gzip
import io
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from popf.files import PACKED, check_target, replacing, writable_folder
from popf.formatting import printable

#: Standard input or output.
STDIO = Path("-")
Advance = Callable[[int, int, str], None]
Writer = Callable[[Any], None]
#: How many decimals of a probability are written.
DECIMALS = 6
#: What is wrong with a disk, by the number of the error.
DISK = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "the file would be too large",
    errno.EIO: "the disk reports an error",
    errno.EROFS: "the disk is read-only",
}


class OutputError(RuntimeError):
    """A result could not be written, through no fault of the input."""


def say(sentence: str) -> None:
    """Print a sentence on the error stream, where it does not get into the output."""
    print(f"popf: {printable(sentence)}", file=sys.stderr)


def show(
    facts: dict[str, Any], lines: Sequence[str], as_json: bool, error_stream: bool = False
) -> None:
    """Print the facts as JSON, or the lines for a person; on the error stream beside a table."""
    text = printable("\n".join(lines))
    if as_json:
        text = json.dumps(_plain(facts), allow_nan=False, indent=2)
    print(text, file=sys.stderr if error_stream else sys.stdout)


def _plain(value: Any) -> Any:
    """Make a value fit for JSON: NumPy's numbers and labels as Python's, None for NaN."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


def aligned(rows: Sequence[Sequence[str]], left: bool = False, indent: str = "  ") -> list[str]:
    """Align cells in columns: the first to the left, the others to the right unless `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *cells in rows:
        line = [first.ljust(widths[0])]
        for cell, width in zip(cells, widths[1:], strict=True):
            line.append(cell.ljust(width) if left else cell.rjust(width))
        lines.append((indent + "  ".join(line)).rstrip())
    return lines


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
    """Show what is being done, set by calls of ``stage(text)`` or that kernels compile, and for how long."""
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
    """Raise an error if a result would go where it cannot, or replace an input, before any work."""
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


def check_table_output(path: Path | None, inputs: Sequence[Path], json: bool) -> None:
    """Check as `check_output` the place of a table; if it is standard output, there is no room for JSON."""
    if path == STDIO and json:
        raise ValueError("--json needs another --output: standard output cannot hold both.")
    check_output(path, inputs)
    if path is not None and path != STDIO:
        _delimiter(path)


@contextmanager
def file_for(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its place when all is written."""
    with writing(path), replacing(path) as file:
        yield file


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what goes wrong in writing into a sentence; SIGTERM cleans up as Ctrl-C does."""
    try:
        with _cleanup_on_sigterm():
            yield
    except OSError as error:
        if error.errno in DISK:
            raise OutputError(
                f"{path} was not written: {DISK[error.errno]}. What was there before is unchanged."
            ) from error
        if isinstance(error, PermissionError):
            raise ValueError(f"{path} was not written: no permission for that folder.") from error
        raise


@contextmanager
def _cleanup_on_sigterm() -> Iterator[None]:
    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def table_writer(output: Path, probabilities: Sequence[str] = ()) -> Iterator[Writer]:
    """Yield a function that writes frames one after another; in text, `probabilities` with fixed decimals."""
    if output == STDIO:
        yield _csv_writer(sys.stdout, ",", probabilities)
        return
    delimiter, packing = _delimiter(output), output.suffix.lower()
    with ExitStack() as stack:
        file: Any = stack.enter_context(file_for(output))
        if delimiter is None:
            yield stack.enter_context(_parquet_writer(file))
            return
        if packing == ".gz":
            packed = gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0)
            file = stack.enter_context(packed)
        elif packing == ".bz2":
            file = stack.enter_context(bz2.BZ2File(file, "wb"))
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        stack.callback(text.detach)  # flushes, and leaves the file open
        yield _csv_writer(text, delimiter, probabilities)


def _delimiter(path: Path) -> str | None:
    """Return the delimiter of a text file, None for Parquet; raise ValueError for any other suffix."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return None
    suffix = (path.with_suffix("") if path.suffix.lower() in PACKED else path).suffix.lower()
    if suffix not in (".csv", ".tsv", ".txt"):
        raise ValueError(f"the suffix of {path} must be .csv, .csv.gz, .tsv or .parquet.")
    return "\t" if suffix == ".tsv" else ","


def _csv_writer(text: Any, delimiter: str, probabilities: Sequence[str]) -> Writer:
    header = True

    def write(frame: Any) -> None:
        nonlocal header
        cells = {name: decimals(frame[name].to_numpy()) for name in probabilities}
        frame.assign(**cells).to_csv(
            text, sep=delimiter, index=False, header=header, lineterminator="\n"
        )
        header = False

    return write


def decimals(probability: Any) -> list[str]:
    """Write probabilities with a fixed number of decimals, which sort as text; none becomes 0 or 1."""
    least = 10.0**-DECIMALS
    return [f"{value:.{DECIMALS}f}" for value in probability.clip(least, 1.0 - least).tolist()]


@contextmanager
def _parquet_writer(file: Any) -> Iterator[Writer]:
    from popf.tables.parquet_file import need_pyarrow

    pyarrow = need_pyarrow()
    writer: Any = None

    def write(frame: Any) -> None:
        nonlocal writer
        batch = pyarrow.Table.from_pandas(frame, preserve_index=False)
        if writer is None:
            writer = pyarrow.parquet.ParquetWriter(file, batch.schema)
        writer.write_table(batch.cast(writer.schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
