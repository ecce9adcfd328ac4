"""Tables scored piece by piece, with a bar: what predict, evaluate and monitor share."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from popf.cli.messages import say
from popf.formatting import near_words

if TYPE_CHECKING:
    from popf.table_models.model import Scored, TableModel
    from popf.tables import Table

#: Mebibytes that blocks of distances may take; the default of scikit-learn is a gibibyte.
WORKING_MEMORY = 128


@contextmanager
def scored_pieces(
    table_model: "TableModel",
    table: "Table",
    extra: Sequence[str] = (),
    *,
    n_rows: int | None = None,
    progress: bool | None = None,
) -> Iterator[Iterator["Scored"]]:
    """Score a table piece by piece, showing how far it is; say at the end what was unknown."""
    from sklearn import config_context

    from popf.cli.progress import progress_bar

    unknown: Counter[str] = Counter()

    def pieces(advance: Any) -> Iterator["Scored"]:
        done = 0
        for scored in table_model.pieces(table, extra, n_rows):
            unknown.update(scored.unknown)
            yield scored
            done += len(scored.codes)
            # The bar counts hundredths of the file.
            advance(min(100, int(100 * table.share)), 100, f"{done:,} rows")

    with config_context(working_memory=WORKING_MEMORY), progress_bar(progress) as advance:
        yield pieces(advance)
    for name, n in unknown.items():
        rows = f"{n:,} row{'' if n == 1 else 's'}"
        say(f"note: column {name!r} holds values never seen in training, in {rows}.")


def ids_in(table_model: "TableModel", table: "Table", asked: Sequence[str] | None) -> list[str]:
    """Choose the columns to carry through: those asked for, else those of the model that are there."""
    if asked:
        table.need(asked, "id")
        return list(dict.fromkeys(asked))
    known = table_model.layout.ids
    absent = [name for name in known if name not in table.names]
    if absent:
        say(f"note: {table.path} has no column {', '.join(map(repr, absent))} to carry through.")
    return [name for name in known if name in table.names]


def target_in(table_model: "TableModel", table: "Table", asked: str | None) -> str:
    """Choose the column with the labels: the one asked for, else the model's."""
    column = asked or table_model.layout.target
    if column is None:
        raise ValueError("the model does not know which column holds the labels: give --target.")
    if column not in table.names:
        raise ValueError(
            f"{table.path} has no column {column!r} with labels{near_words(column, table.names)} What the "
            "rows are must be known here; name the column by --target."
        )
    if column in table_model.features:
        raise ValueError(f"--target {column} is a feature of the model: name the column of labels.")
    return column


def need_probabilities(table_model: "TableModel", path: Any) -> None:
    """Raise ValueError for a model of labels only."""
    if not hasattr(table_model.final, "predict_proba"):
        raise ValueError(f"{path} gives labels only, no probabilities: fit one by `popf fit`.")
