"""``popf predict``: a table scored, however long."""

import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popf.cli import options
from popf.cli.options import option
from popf.cli.output import STDIO, check_table_output, say, show, table_writer
from popf.cli.scoring import Scoring, model_for
from popf.formatting import counted, listed

if TYPE_CHECKING:
    from popf.table_models.model import Scored, TableModel

EXAMPLES = """\b
Examples:
  popf predict model.popf new.csv -o scored.csv
  popf predict model.popf new.csv --id consumer --threshold 0.2 -o scored.parquet
"""


def predict(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path | None, options.output("CSV (also .gz) or Parquet. Default: standard output, -.")
    ] = None,
    id: options.Ids = None,
    threshold: options.Threshold = None,
    chunk_rows: Annotated[
        int | None, option("Rows held at a time. Default: some megabytes of cells.", min=1)
    ] = None,
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

    output = STDIO if output is None else output
    check_table_output(output, [model, data], json)
    if output == STDIO and sys.stdout.isatty():
        progress = False  # a bar between the rows
    table_model = model_for(model, n_jobs, threshold, labels_only=True)
    table = options.table(data, delimiter, encoding, decimal, na)
    scoring = Scoring(table_model, table)
    ids = scoring.choose_ids(id)
    names, probabilities = _columns(table_model, ids)
    counts = np.zeros(len(table_model.classes), dtype=np.int64)
    with (
        table_writer(output, probabilities) as write,
        scoring.pieces(ids, progress, chunk_rows) as pieces,
    ):
        for scored in pieces:
            write(_frame(table_model, scored, ids))
            counts += np.bincount(scored.codes, minlength=len(counts))
    n_rows = int(counts.sum())
    if output == STDIO:
        say(f"scored {counted(n_rows, 'row')}; {table_model.rule}.")
        return 0
    facts: dict[str, Any] = {
        "output": str(output),
        "n_rows": n_rows,
        "predicted": dict(zip(table_model.classes.tolist(), counts.tolist(), strict=True)),
        "columns": names,
        "positive": table_model.positive,
        "threshold": table_model.threshold,
        "unknown_categories": dict(scoring.unknown),
    }
    shares = listed([f"{label} {n:,}" for label, n in facts["predicted"].items()])
    title = f"Scored {counted(n_rows, 'row')} into {output}; {table_model.rule}"
    show(facts, [title, f"  {shares}"], json)
    return 0


def _columns(table_model: "TableModel", ids: list[str]) -> tuple[list[str], list[str]]:
    """Name the columns of the output, and those of them that hold probabilities."""
    probabilities = []
    if not table_model.labels_only:
        probabilities = [f"probability_{label}" for label in table_model.classes.tolist()]
    check_clash(ids, [*probabilities, "predicted"])
    return [*(ids or ["row"]), *probabilities, "predicted"], probabilities


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
