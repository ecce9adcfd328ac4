"""``popf predict``: a table scored, however long."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popf.cli import options

if TYPE_CHECKING:
    from popf.table_models.model import Scored, TableModel

EXAMPLES = """\b
Examples:
  popf predict model.popf new.csv -o scored.csv
  popf predict model.popf new.csv --id consumer --threshold 0.2 -o scored.parquet
  popf predict model.popf new.csv | sort -t, -k3 -r | head
"""


DECIMALS = 6


def predict(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV (also .gz) or Parquet. Default: standard output."),
    ] = None,
    id: options.Ids = None,
    threshold: Annotated[float | None, typer.Option(help="In place of the model's own.")] = None,
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
    import numpy as np

    from popf.cli.output import check_output, counted, plain_warnings, show
    from popf.cli.scoring import ids_in, scored_pieces
    from popf.formatting import listed
    from popf.table_models import open_model

    if output is None and json:
        raise ValueError("--json needs --output: standard output cannot hold both.")
    check_output(output, [model, data])
    with plain_warnings():
        table_model = with_threshold(open_model(model, n_jobs), threshold)
        table = options.table(data, delimiter, encoding, decimal, na)
        ids = ids_in(table_model, table, id)
        names = _columns(table_model, ids)
        counts = np.zeros(len(table_model.classes), dtype=np.int64)
        unknown: dict[str, int] = {}
        with (
            _sink(output) as write,
            scored_pieces(table_model, table, ids, n_rows=chunk_rows, progress=progress) as pieces,
        ):
            for scored in pieces:
                write(_frame(table_model, scored, ids))
                counts += np.bincount(scored.codes, minlength=len(counts))
                for name, n in scored.unknown.items():
                    unknown[name] = unknown.get(name, 0) + n
    if output is None:
        return 0
    called = dict(zip(table_model.classes.tolist(), counts.tolist(), strict=True))
    n_rows = int(counts.sum())
    binary = table_model.binary
    facts = {
        "output": str(output),
        "n_rows": n_rows,
        "predicted": called,
        "columns": names,
        "positive": table_model.positive if binary else None,
        "threshold": table_model.layout.threshold if binary else None,
        "unknown_categories": unknown,
    }
    shares = listed([f"{label} {n:,}" for label, n in called.items()])
    at = f" at threshold {facts['threshold']:.4g}" if binary else ""
    lines = [f"Scored {counted(n_rows, 'row')} into {output}: {shares}{at}"]
    show(facts, lines, json)
    return 0


def with_threshold(table_model: "TableModel", threshold: float | None) -> "TableModel":
    """Give the model with another threshold, where one is asked for."""
    if threshold is None:
        return table_model
    from dataclasses import replace

    from popf.table_models import TableModel

    if not table_model.binary:
        n = len(table_model.classes)
        raise ValueError(f"--threshold is for two classes, and the model has {n}: leave it out.")
    if not 0.0 < threshold < 1.0:
        raise ValueError(f"--threshold must lie between 0 and 1, not at {threshold:g}.")
    layout = replace(table_model.layout, threshold=threshold, threshold_from="given")
    return TableModel(table_model.model, layout)


def _columns(table_model: "TableModel", ids: list[str]) -> list[str]:
    """Name the columns of the output; raise ValueError where an id has one of our names."""
    own = [f"probability_{label}" for label in table_model.classes.tolist()]
    if not hasattr(table_model.final, "predict_proba"):
        own = []
    names = [*(ids or ["row"]), *own, "predicted"]
    clash = [name for name in ids if name in (*own, "predicted")]
    if clash:
        raise ValueError(f"column {clash[0]!r} has the name of a result: rename it in the data.")
    return names


def _frame(table_model: "TableModel", scored: "Scored", ids: list[str]) -> Any:
    import numpy as np
    import pandas

    n = len(scored.codes)
    columns: dict[str, Any] = {name: scored.frame[name].to_numpy() for name in ids}
    if not ids:
        columns["row"] = np.arange(scored.start + 1, scored.start + n + 1)
    if scored.probability is not None:
        for code, label in enumerate(table_model.classes.tolist()):
            columns[f"probability_{label}"] = scored.probability[:, code]
    columns["predicted"] = table_model.classes[scored.codes]
    return pandas.DataFrame(columns)


@contextmanager
def _sink(output: Path | None) -> Iterator[Any]:
    """Give a function that writes frames to where they belong."""
    import io

    from popf.cli.output import file_for

    if output is None:
        yield _csv_writer(sys.stdout)
        return
    suffixes = [suffix.lower() for suffix in output.suffixes]
    if suffixes[-1:] in ([".parquet"], [".pq"]):
        with file_for(output) as file, _parquet(file) as write:
            yield write
        return
    if not ({".csv", ".tsv", ".txt"} & set(suffixes[-2:])):
        raise ValueError(f"the suffix of {output} must be .csv, .csv.gz, .tsv or .parquet.")
    with file_for(output) as file:
        stream: Any = file
        if suffixes[-1] == ".gz":
            import gzip

            stream = gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0)
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        yield _csv_writer(text, "\t" if ".tsv" in suffixes else ",")
        text.detach()  # flushes
        if stream is not file:
            stream.close()


def _csv_writer(text: Any, delimiter: str = ",") -> Any:
    first = [True]

    def write(frame: Any) -> None:
        # Probabilities are computed to a millionth. A float_format would take longer than the rest.
        own = [name for name in frame.columns if name.startswith("probability_")]
        rounded = frame.round(dict.fromkeys(own, DECIMALS))
        rounded.to_csv(text, sep=delimiter, index=False, header=first[0], lineterminator="\n")
        first[0] = False

    return write


@contextmanager
def _parquet(file: Any) -> Iterator[Any]:
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
