"""Tables scored piece by piece: what predict, evaluate, report and monitor share."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popf.cli.output import progress_bar, say
from popf.formatting import counted, near_words

if TYPE_CHECKING:
    from popf.table_models.model import Scored, TableModel
    from popf.tables import Table

#: Mebibytes that blocks of distances may take; the default of scikit-learn is a gibibyte.
WORKING_MEMORY = 128


def model_for(
    path: Path, n_jobs: int, threshold: float | None = None, labels_only: bool = False
) -> "TableModel":
    """Open a model file, with another threshold where one is given; it must give probabilities."""
    from popf.table_models import open_model

    table_model = open_model(path, n_jobs).with_threshold(threshold)
    if not labels_only and not hasattr(table_model.final, "predict_proba"):
        raise ValueError(f"{path} gives labels only, no probabilities: fit one by `popf fit`.")
    return table_model


def choose_ids(table_model: "TableModel", table: "Table", asked: Sequence[str] | None) -> list[str]:
    """Choose the columns to carry through: those asked for, else those of the model that are there."""
    if asked:
        table.need(asked, "id")
        return list(dict.fromkeys(asked))
    known = table_model.layout.ids
    absent = [name for name in known if name not in table.names]
    if absent:
        say(f"note: {table.path} has no column {', '.join(map(repr, absent))} to carry through.")
    return [name for name in known if name in table.names]


def choose_target(table_model: "TableModel", table: "Table", asked: str | None) -> str:
    """Choose the column with the labels: the one asked for, else the model's."""
    column = asked or table_model.layout.target
    if column is None:
        raise ValueError("the model does not know which column holds the labels: give --target.")
    if column not in table.names:
        raise ValueError(
            f"{table.path} has no column {column!r} with labels{near_words(column, table.names)} The labels "
            "must be known here; name their column by --target."
        )
    if column in table_model.features:
        raise ValueError(f"--target {column} is a feature of the model: name the column of labels.")
    return column


@contextmanager
def scored_pieces(
    table_model: "TableModel",
    table: "Table",
    columns: Sequence[str],
    progress: bool | None,
    n_rows: int | None = None,
) -> Iterator[Iterator["Scored"]]:
    """Score a table piece by piece, with a bar, and count categories never seen in training.

    `columns` are read besides the features; `n_rows` is the size of a piece.
    """
    from sklearn import config_context

    unknown: Counter[str] = Counter()
    with config_context(working_memory=WORKING_MEMORY), progress_bar(progress) as advance:

        def pieces() -> Iterator["Scored"]:
            n_done = 0
            for scored in table_model.pieces(table, columns, n_rows):
                unknown.update(scored.unknown)
                yield scored
                n_done += len(scored.codes)
                advance(min(100, int(100 * table.share)), 100, f"{n_done:,} rows")

        yield pieces()
    for name, n in unknown.items():
        say(f"note: column {name!r} holds values never seen in training, in {counted(n, 'row')}.")


def score_all(
    table_model: "TableModel",
    table: "Table",
    columns: Sequence[str],
    progress: bool | None,
    features: bool = False,
) -> tuple[Any, Any]:
    """Score all rows: a frame of `columns` (and of the features, if asked for), and the probabilities."""
    import numpy as np
    import pandas

    frames: list[Any] = []
    found: list[Any] = []
    with scored_pieces(table_model, table, columns, progress) as pieces:
        for scored in pieces:
            frames.append(scored.frame if features else scored.frame[list(columns)])
            found.append(scored.probability)
    return pandas.concat(frames, ignore_index=True), np.vstack(found)


def note_training_rows(table_model: "TableModel", table: "Table", frame: Any) -> None:
    """Print a note if a model is judged by the rows that it was fitted to; `frame` holds the features."""
    n_seen = table_model.count_training_rows(frame)
    if n_seen:
        say(
            f"note: {n_seen:,} of the {counted(len(frame), 'row')} of {table.path} have the features of a "
            "training row. On rows that it was fitted to, a model looks better than it is: use others."
        )


def true_codes(table_model: "TableModel", table: "Table", frame: Any, column: str) -> Any:
    """Return the true classes of scored rows, as positions in the classes of the model."""
    from popf.tables.cells import match_labels

    where = f"column {column!r} of {table.path}"
    return match_labels(frame[column].tolist(), table_model.classes, where)
