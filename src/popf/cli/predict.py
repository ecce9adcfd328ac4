"""``popf predict``: predict probabilities and labels for a table of any length."""

import sys
from pathlib import Path

from popf.cli import options
from popf.cli.options import option
from popf.cli.scoring import Scoring, check_table_output, id_columns
from popf.cli.terminal import STDIO, class_counts, say, show
from popf.formatting import counted

EXAMPLES = """\b
Examples:
  popf predict model.popf new.csv -o scored.csv
  popf predict model.popf new.csv --id consumer --threshold 0.2 -o scored.parquet
"""


def predict(
    model: Path = options.MODEL,
    data: Path = options.DATA,
    output: Path | None = options.output(
        None, "CSV (also .gz) or Parquet file. Default: -, standard output."
    ),
    id: list[str] | None = options.IDS,
    threshold: float | None = options.THRESHOLD,
    chunk_rows: int | None = option(
        None, "Rows to read at a time. Default: a few megabytes.", min=1
    ),
    n_jobs: int = options.JOBS,
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    na: list[str] | None = options.MISSING,
    progress: bool | None = options.PROGRESS,
    json: bool = options.JSON,
) -> int:
    """Predict class probabilities and labels for the rows of a table.

    The table is read and written in pieces, so it may be larger than memory. The output has the id columns
    (or the row number if there are none), probability_CLASS for each class, and predicted.
    """
    import numpy as np

    from popf.tables.formats import table_writer

    output = STDIO if output is None else output
    check_table_output(output, [model, data], json)
    if output == STDIO and sys.stdout.isatty():
        progress = False  # the bar would mix with the rows
    how = (delimiter, encoding, decimal, na)
    scoring = Scoring(model, data, how, n_jobs, threshold, labels_only=True)
    table_model = scoring.model
    classes, probabilities = table_model.classes, []
    if not table_model.labels_only:
        probabilities = [f"probability_{label}" for label in classes.tolist()]
    ids = scoring.choose_ids(id, [*probabilities, "predicted"])
    counts = np.zeros(len(classes), dtype=np.int64)
    with (
        table_writer(output, probabilities) as write,
        scoring.pieces(ids, progress, chunk_rows) as pieces,
    ):
        for scored in pieces:
            frame = id_columns(scored.frame[ids], scored.start + np.arange(len(scored.codes)))
            if scored.probability is not None:
                frame[probabilities] = scored.probability
            write(frame.assign(predicted=classes[scored.codes]))
            counts += np.bincount(scored.codes, minlength=len(counts))
    n_rows = int(counts.sum())
    if output == STDIO:
        say(f"scored {counted(n_rows, 'row')}; {table_model.rule}.")
        return 0
    facts = {
        "output": str(output),
        "n_rows": n_rows,
        "predicted": dict(zip(classes.tolist(), counts.tolist(), strict=True)),
        "columns": [*(ids or ["row"]), *probabilities, "predicted"],
        "positive": table_model.positive,
        "threshold": table_model.threshold,
        "unknown_categories": dict(scoring.unknown),
    }
    title = f"Scored {counted(n_rows, 'row')} into {output}; {table_model.rule}"
    show(facts, [title, f"  {class_counts(classes.tolist(), counts)}"], json)
    return 0
