"""``popf predict``: a table scored, however long."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popf.cli import options, scoring
from popf.cli.output import check_output, file_for, plain_warnings, say, show
from popf.formatting import counted, listed

if TYPE_CHECKING:
    from popf.table_models.model import Scored, TableModel

EXAMPLES = """\b
Examples:
  popf predict model.popf new.csv -o scored.csv
  popf predict model.popf new.csv --id consumer --threshold 0.2 -o scored.parquet
"""
DECIMALS = 6
Writer = Callable[[Any], None]


def predict(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="CSV (also .gz) or Parquet. Default: standard output, -."
        ),
    ] = None,
    id: options.Ids = None,
    threshold: options.Threshold = None,
    chunk_rows: options.ChunkRows = None,
    n_jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    na: options.Missing = None,
    progress: options.Progress = None,
    json: options.Json = False,
) -> int:
    """Give every row of a table a probability for each class, and a label.

    The table is read and written in pieces, so it may be larger than memory. The columns written: the id
    columns (or, without any, the number of the row), probability_CLASS for each class, and predicted.
    """
    from collections import Counter

    import numpy as np

    output = None if output == options.STDIO else output
    if output is None and sys.stdout.isatty():
        progress = False  # a bar between the rows
    if output is None and json:
        raise ValueError("--json needs --output: standard output cannot hold both.")
    check_output(output, [model, data])
    with plain_warnings():
        table_model = scoring.model_for(model, n_jobs, threshold, labels_only=True)
        table = options.table(data, delimiter, encoding, decimal, na)
        ids = scoring.choose_ids(table_model, table, id)
        names = _columns(table_model, ids)
        counts = np.zeros(len(table_model.classes), dtype=np.int64)
        unknown: Counter[str] = Counter()
        with (
            writer(output or options.STDIO) as write,
            scoring.scored_pieces(table_model, table, ids, progress, chunk_rows) as pieces,
        ):
            for scored in pieces:
                write(_frame(table_model, scored, ids))
                counts += np.bincount(scored.codes, minlength=len(counts))
                unknown.update(scored.unknown)
    n_rows = int(counts.sum())
    if output is None:
        say(f"scored {counted(n_rows, 'row')}; {table_model.rule}.")
        return 0
    facts: dict[str, Any] = {
        "output": str(output),
        "n_rows": n_rows,
        "predicted": dict(zip(table_model.classes.tolist(), counts.tolist(), strict=True)),
        "columns": names,
        "positive": table_model.positive if table_model.binary else None,
        "threshold": table_model.layout.threshold if table_model.binary else None,
        "unknown_categories": dict(unknown),
    }
    shares = listed([f"{label} {n:,}" for label, n in facts["predicted"].items()])
    title = f"Scored {counted(n_rows, 'row')} into {output}; {table_model.rule}"
    show(facts, [title, f"  {shares}"], json)
    return 0


def _columns(table_model: "TableModel", ids: list[str]) -> list[str]:
    """Name the columns of the output."""
    own = ["predicted"]
    if hasattr(table_model.final, "predict_proba"):
        own = [*(f"probability_{label}" for label in table_model.classes.tolist()), *own]
    check_clash(ids, own)
    return [*(ids or ["row"]), *own]


def check_clash(ids: Iterable[str], own: Collection[str]) -> None:
    """Raise ValueError where an id has the name of a column of ours."""
    for name in ids:
        if name in own:
            raise ValueError(f"column {name!r} has the name of a result: rename it in the data.")


def _frame(table_model: "TableModel", scored: "Scored", ids: list[str]) -> Any:
    """Make the rows of the output from a scored piece."""
    import numpy as np
    import pandas

    columns: dict[str, Any] = {name: scored.frame[name].to_numpy() for name in ids}
    if not ids:
        columns["row"] = np.arange(scored.start + 1, scored.start + len(scored.codes) + 1)
    if scored.probability is not None:
        for code, label in enumerate(table_model.classes.tolist()):
            columns[f"probability_{label}"] = scored.probability[:, code]
    columns["predicted"] = table_model.classes[scored.codes]
    return pandas.DataFrame(columns)


@contextmanager
def writer(output: Path) -> Iterator[Writer]:
    """Yield a function that writes frames to a file or standard output, one after another."""
    import gzip
    import io

    if output == options.STDIO:
        yield _csv_writer(sys.stdout, ",")
        return
    suffixes = [suffix.lower() for suffix in output.suffixes]
    parquet = suffixes[-1:] in ([".parquet"], [".pq"])
    if not parquet and not {".csv", ".tsv", ".txt"} & set(suffixes[-2:]):
        raise ValueError(f"the suffix of {output} must be .csv, .csv.gz, .tsv or .parquet.")
    with ExitStack() as stack:
        file: Any = stack.enter_context(file_for(output))
        if parquet:
            yield stack.enter_context(_parquet_writer(file))
            return
        if suffixes[-1] == ".gz":
            packed = gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0)
            file = stack.enter_context(packed)
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        stack.callback(text.detach)  # flushes, and leaves the file open
        yield _csv_writer(text, "\t" if ".tsv" in suffixes else ",")


def _csv_writer(text: Any, delimiter: str) -> Writer:
    header = True

    def write(frame: Any) -> None:
        nonlocal header
        own = [name for name in frame.columns if name.startswith("probability_")]
        written = frame.assign(**{name: decimals(frame[name].to_numpy()) for name in own})
        written.to_csv(text, sep=delimiter, index=False, header=header, lineterminator="\n")
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
