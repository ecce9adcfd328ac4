"""``popf convert``: convert data files between formats."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from popf.cli import options
from popf.cli.options import column
from popf.cli.terminal import STDIO, check_output, from_stdin, open_data, show, temporary
from popf.files import explain_write_errors
from popf.formatting import counted

if TYPE_CHECKING:
    from popf.tables import Table

EXAMPLES = """\b
Examples:
  popf convert consumers.csv consumers.parquet
  popf convert consumers.csv consumers.dat --target stolen --drop consumer
  popf convert consumers.dat numbers.csv
  popf convert consumers.csv - --drop consumer | head
"""


def convert(
    source: Path = typer.Argument(
        ...,
        metavar="IN",
        help="CSV, Parquet, svmlight, LibOPF or opfython file; - for CSV on stdin.",
    ),
    output: Path = typer.Argument(
        ..., metavar="OUT", help="Output file, its suffix sets the format; - for CSV on stdout."
    ),
    target: str | None = column(None, "Column with the labels. Default: the last."),
    drop: list[str] | None = options.DROP,
    encode: str | None = options.ENCODE,
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    json: bool = options.JSON,
) -> int:
    """Convert data between CSV, Parquet, svmlight and LibOPF files.

    The suffixes are .csv and .tsv, .parquet, .svm, and .dat for LibOPF. Between CSV and Parquet all columns
    are kept. svmlight and LibOPF files hold numeric features and one label per row. LibOPF files store single
    precision and integer labels; text labels are numbered from 1 in sorted order. LibOPF and opfython text
    files (.txt) and opfython .json files can be read, too.
    """
    from popf.tables import write
    from popf.tables.formats import TABLES, format_of, suffix_of

    source = from_stdin(source)
    to_stdout = output == STDIO
    if to_stdout:
        output = temporary("standard-output.csv")
    for path in (source, output):
        check_format(path)
    check_output(output, [source])
    how, n_unlabelled = (delimiter, encoding, decimal), 0
    if suffix_of(source) in TABLES and suffix_of(output) in TABLES:
        if target is not None or encode is not None:
            raise ValueError(
                "--target and --encode are for svmlight and LibOPF files: leave them out."
            )
        n_rows, n_columns = _copy(open_data(source, *how), output, drop or [])
    else:
        found = read_samples(source, target, encode, drop or [], how)
        n_rows, n_columns = len(found.data), len(found.feature_names) + 1
        to_libopf = format_of(output) == "libopf"
        n_unlabelled = int((found.target == 0).sum()) if to_libopf else 0
        names = {"feature_names": found.feature_names, "target_name": found.target_name}
        with explain_write_errors(output):
            ids = found.ids if to_libopf else None
            write(output, found.data, found.target, **names, ids=ids)
    facts = {"output": str(output), "n_rows": n_rows, "n_columns": n_columns}
    lines = [f"Wrote {counted(n_rows, 'row')} and {counted(n_columns, 'column')} to {output}"]
    if n_unlabelled:
        lines.append(
            f"Label 0 ({counted(n_unlabelled, 'row')}) means that a sample has no label in LibOPF files."
        )
    if to_stdout:
        sys.stdout.write(output.read_text(encoding="utf-8"))
    else:
        show(facts, lines, json)
    return 0


def check_format(path: Path) -> None:
    """Raise an error for a folder or an unknown suffix."""
    from popf.tables.formats import SUFFIXES, suffix_of

    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if suffix_of(path) not in SUFFIXES:
        raise ValueError(f"the suffix of {path} is unknown: use one of {', '.join(SUFFIXES)}.")


def read_samples(
    path: Path, target: str | None, encode: Any, drop: list[str], how: tuple[str | None, str, str]
) -> Any:
    """Read features and labels from a file; `how` is (delimiter, encoding, decimal separator)."""
    from popf.tables import read
    from popf.tables.formats import TABLES, suffix_of
    from popf.tables.samples import samples_of

    if suffix_of(path) in TABLES:
        return samples_of(open_data(path, *how), target, encode, drop)
    if target is not None or encode is not None or drop:
        raise ValueError(
            "--target, --drop and --encode name columns, which svmlight and LibOPF files do not have."
        )
    return read(path)


def _copy(table: "Table", output: Path, drop: list[str]) -> tuple[int, int]:
    """Copy all columns but the dropped ones; columns of numbers only become numeric."""
    from popf.tables import ColumnTypes
    from popf.tables.formats import table_writer

    table.need(drop, "drop")
    names = [name for name in table.names if name not in drop]
    text = table.text()
    numbers = [
        name for name in names if table.kind(text[name]).numbers and not _loses_digits(text[name])
    ]
    words = [name for name in names if name not in numbers]
    frame = table.frame(ColumnTypes(numbers, (), words))[names]
    for name in numbers:
        whole = frame[name].dropna()
        if (whole == whole.round()).all() and (whole.abs() < 2**53).all():
            frame[name] = frame[name].astype("Int64" if frame[name].isna().any() else "int64")
    with table_writer(output) as write:
        write(frame)
    return len(frame), len(names)


def _loses_digits(column: Any) -> bool:
    """Return whether numbers would lose digits: a leading zero as in "007", or more than 15 digits."""
    return bool(column.astype(str).str.strip().str.match(r"[+-]?(0\d|\d{16})").any())
