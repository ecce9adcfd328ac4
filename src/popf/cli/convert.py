"""``popf convert``: from one format of data files to another."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popf.cli import options
from popf.cli.arrays import TABLES, check_format, from_file

if TYPE_CHECKING:
    from popf.tables.samples import Samples

EXAMPLES = """\b
Examples:
  popf convert data.csv data.parquet
  popf convert boat.dat boat.csv
  popf convert data.csv data.dat --target stolen --drop consumer
  popf convert data.csv data.svm --target stolen --encode onehot
"""


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="CSV, Parquet, svmlight or LibOPF.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The suffix tells the format.")],
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the labels. Default: the last."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Left out. Repeat it.")
    ] = None,
    encode: options.Encode = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    json: options.Json = False,
) -> int:
    """Convert data between CSV (.csv, .tsv), Parquet (.parquet), svmlight (.svm) and LibOPF (.dat).

    Between CSV and Parquet all columns are kept. svmlight and LibOPF hold numbers and one label a row; LibOPF's
    format keeps single precision, and numbers the labels from 1 in sorted order.
    """
    from popf.cli.output import check_output, counted, show
    from popf.tables.formats import suffix_of
    from popf.tables.samples import samples_of

    for path in (source, output):
        check_format(path)
    check_output(output, [source])
    from_tables, to_table = (suffix_of(path) in TABLES for path in (source, output))
    table = options.table(source, delimiter, encoding, decimal, None) if from_tables else None
    if table is not None and to_table:
        if target is not None or encode is not None:
            raise ValueError(
                "--target and --encode are for svmlight and LibOPF files: leave them out."
            )
        n_rows, n_columns = _between_tables(table, output, drop or [])
    else:
        if table is None:
            found = from_file(source, target, drop, encode)
        else:
            found = samples_of(table, target, encode, drop or ())
        n_rows, n_columns = _write(found, output)
    facts = {"output": str(output), "n_rows": n_rows, "n_columns": n_columns}
    lines = [f"Wrote {counted(n_rows, 'row')} and {counted(n_columns, 'column')} to {output}"]
    show(facts, lines, json)
    return 0


def _between_tables(table: Any, output: Path, drop: list[str]) -> tuple[int, int]:
    """Copy all columns; those whose cells are all numbers become numbers."""
    from popf.cli.output import file_for
    from popf.tables import ColumnTypes
    from popf.tables.formats import suffix_of

    table.need(drop, "drop")
    names = [name for name in table.names if name not in drop]
    text = table.text()
    # "007" is a name, not a number.
    numbers = [
        name for name in names if table.kind(text[name]).numbers and not _has_names(text[name])
    ]
    words = [name for name in names if name not in numbers]
    frame = table.frame(ColumnTypes(numbers, (), words))[names]
    for name in numbers:
        whole = frame[name].dropna()
        if (whole == whole.round()).all() and (whole.abs() < 2**53).all():
            frame[name] = frame[name].astype("Int64" if frame[name].isna().any() else "int64")
    with file_for(output) as file:
        if suffix_of(output) in (".parquet", ".pq"):
            frame.to_parquet(file, index=False)
        else:
            tabs = suffix_of(output) == ".tsv"
            packed = "gzip" if output.suffix == ".gz" else None
            frame.to_csv(file, index=False, sep="\t" if tabs else ",", compression=packed)
    return len(frame), len(names)


def _has_names(column: Any) -> bool:
    """Tell whether cells hold digits that a number would lose: a leading zero, or more than 15."""
    return bool(column.astype(str).str.strip().str.match(r"[+-]?(0\d|\d{16})").any())


def _write(found: "Samples", output: Path) -> tuple[int, int]:
    """Write features and labels; give the numbers of rows and columns."""
    from popf.cli.output import writing
    from popf.tables import write
    from popf.tables.formats import suffix_of

    with writing(output):
        write(
            output,
            found.X,
            found.y,
            feature_names=found.feature_names,
            target_name=found.target_name,
            ids=found.ids if suffix_of(output) in (".dat", ".opf") else None,
        )
    return len(found.X), len(found.feature_names) + 1
