"""``popf convert``: from one format of data files to another."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from popf.cli import options

EXAMPLES = """\b
Examples:
  popf convert data.csv data.parquet
  popf convert boat.dat boat.csv
  popf convert data.csv data.dat --target stolen --drop consumer
  popf convert data.csv data.svm --target stolen --encode onehot
"""
TABLES = (".csv", ".tsv", ".parquet", ".pq")


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
    encode: Annotated[
        str | None, typer.Option(help="onehot or ordinal: columns of text, for formats of numbers.")
    ] = None,
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

    check_output(output, [source])
    for path in (source, output):
        _check_format(path)
    from_table, to_table = (_suffix(path) in TABLES for path in (source, output))
    if not from_table and (drop or target or encode):
        raise ValueError(
            "--target, --drop and --encode name columns, which svmlight and LibOPF files do not have."
        )
    table = options.table(source, delimiter, encoding, decimal, None) if from_table else None
    if table is not None and to_table:
        if target is not None or encode is not None:
            raise ValueError(
                "--target and --encode are for svmlight and LibOPF files: leave them out."
            )
        n_rows, n_columns = _between_tables(table, output, drop or [])
    else:
        named = None if table is None else _columns(table, drop or [])
        n_rows, n_columns = _through_arrays(source, output, target, encode, named)
    facts = {"output": str(output), "n_rows": n_rows, "n_columns": n_columns}
    lines = [f"Wrote {counted(n_rows, 'row')} and {counted(n_columns, 'column')} to {output}"]
    show(facts, lines, json)
    return 0


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".bz2")]
    return suffixes[-1] if suffixes else ""


def _check_format(path: Path) -> None:
    from popf.datasets.formats import FORMATS

    known = [suffix for suffixes in FORMATS.values() for suffix in suffixes if suffix]
    if _suffix(path) not in known:
        raise ValueError(f"the suffix of {path} tells no format: use one of {', '.join(known)}.")


def _between_tables(table: Any, output: Path, drop: list[str]) -> tuple[int, int]:
    """Copy all columns; those whose cells are all numbers become numbers."""
    import pandas

    from popf.cli.output import file_for
    from popf.tables.cells import kind_of
    from popf.tables.reading import Plan

    _check_drop(drop, table)
    names = [name for name in table.names if name not in drop]
    text = table.text()
    dialect = getattr(table, "dialect", None)
    decimal = dialect.decimal if dialect else "."
    # "007" is a name, not a number.
    numbers = [
        name
        for name in names
        if kind_of(text[name], (), decimal).numbers and not _has_names(text[name])
    ]
    words = [name for name in names if name not in numbers]
    frame = pandas.concat(list(table.pieces(Plan(numbers, (), words))), ignore_index=True)[names]
    for name in numbers:
        whole = frame[name].dropna()
        if (whole == whole.round()).all() and (whole.abs() < 2**53).all():
            frame[name] = frame[name].astype("Int64" if frame[name].isna().any() else "int64")
    with file_for(output) as file:
        if _suffix(output) in (".parquet", ".pq"):
            frame.to_parquet(file, index=False)
        else:
            tabs = _suffix(output) == ".tsv"
            packed = "gzip" if output.suffix == ".gz" else None
            frame.to_csv(file, index=False, sep="\t" if tabs else ",", compression=packed)
    return len(frame), len(names)


def _has_names(column: Any) -> bool:
    """Say whether cells begin with a zero that a number would lose."""
    return bool(column.astype(str).str.strip().str.match(r"[+-]?0\d").any())


def _check_drop(drop: list[str], table: Any) -> None:
    from popf.datasets.names import near_words

    for name in drop:
        if name not in table.names:
            near = near_words(name, table.names)
            raise ValueError(f"--drop: {table.path} has no column {name!r}{near}")


def _through_arrays(
    source: Path, output: Path, target: str | None, encode: Any, table: Any
) -> tuple[int, int]:
    """Convert by features and labels; `table` is None for a source without named columns."""
    from popf.cli.output import writing
    from popf.datasets import read, write
    from popf.datasets.formats.table import assemble

    try:
        if table is None:
            data = read(source)
            X, y, names, label, ids = (
                *(data.data, data.target),
                *(data.feature_names, data.target_name, data.ids),
            )
        else:
            X, y, names, label = assemble(table, target, encode, str(source))
            ids = None
        with writing(output):
            write(
                output,
                X,
                y,
                feature_names=names,
                target_name=label,
                ids=ids if _suffix(output) in (".dat", ".opf") else None,
            )
    except ValueError as error:
        raise ValueError(in_words_of_options(str(error))) from error
    return len(X), len(names) + 1


def _columns(table: Any, drop: list[str]) -> dict[str, list[str]]:
    """Give the columns of a table as text, with points for decimal marks."""
    _check_drop(drop, table)
    text = table.text()
    dialect = getattr(table, "dialect", None)
    found = {name: text[name].tolist() for name in table.names if name not in drop}
    if dialect is not None and dialect.decimal != ".":
        mark = dialect.decimal
        found = {name: [cell.replace(mark, ".") for cell in cells] for name, cells in found.items()}
    return found


def in_words_of_options(sentence: str) -> str:
    """Turn the names of parameters in an error into those of options.

    Examples
    --------
    >>> from popf.cli.convert import in_words_of_options
    >>> in_words_of_options("pass delimiter=';' or encode='onehot'")
    "pass --delimiter ';' or --encode onehot"
    """
    sentence = re.sub(r"\b(delimiter|encoding)=", r"--\1 ", sentence)
    return re.sub(r"\bencode='(\w+)'", r"--encode \1", sentence)
