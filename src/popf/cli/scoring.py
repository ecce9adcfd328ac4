"""A model and the table that it scores: what predict, rank, evaluate, report and monitor share."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popf.cli.terminal import STDIO, check_output, open_data, progress_bar, say
from popf.formatting import counted, near_words

if TYPE_CHECKING:
    from popf.table_models.model import Scored

#: Mebibytes that blocks of distances may take; the default of scikit-learn is a gibibyte.
WORKING_MEMORY = 128


def check_table_output(path: Path | None, inputs: Sequence[Path], json: bool) -> None:
    """Raise an error if a table cannot be written there, or would share standard output with JSON."""
    if path == STDIO and json:
        raise ValueError("--json needs another --output: standard output cannot hold both.")
    check_output(path, inputs)
    if path is not None and path != STDIO:
        from popf.tables.formats import delimiter_of

        delimiter_of(path)


class Scoring:
    """A model and the table that it scores, at its own threshold or at another."""

    def __init__(
        self,
        model: Path,
        data: Path,
        how: tuple[str | None, str, str, list[str] | None],
        n_jobs: int | None = None,
        threshold: float | None = None,
        labels_only: bool = False,
    ) -> None:
        from popf.table_models import open_model

        self.model = open_model(model, n_jobs).with_threshold(threshold)
        if self.model.labels_only and not labels_only:
            raise ValueError(f"{model} gives labels only, no probabilities: fit one by `popf fit`.")
        self.table = open_data(data, *how)
        self.unknown: Counter[str] = Counter()  # scored rows with a category never seen, by column

    def choose_ids(
        self, asked: Sequence[str] | None, results: Sequence[str] = (), use: str = "carry through"
    ) -> list[str]:
        """Choose the ids to `use`: those asked for, or the model's; `results` are taken names."""
        if asked:
            self.table.need(asked, "id")
        wanted = list(dict.fromkeys(asked or self.model.layout.ids))
        absent = [name for name in wanted if name not in self.table.names]
        if absent:
            names = ", ".join(map(repr, absent))
            say(f"note: {self.table.path} has no column {names} to {use}.")
        for name in results:
            if name in wanted:
                raise ValueError(
                    f"column {name!r} has the name of a result: rename it in the data."
                )
        return [name for name in wanted if name not in absent]

    def choose_target(self, asked: str | None, ids: Sequence[str] = ()) -> str:
        """Choose the column with the labels, none of the ids: the one asked for, else the model's."""
        column, names = asked or self.model.layout.target, self.table.names
        if column is None:
            raise ValueError(
                "the model does not know which column holds the labels: give --target."
            )
        if column not in names:
            raise ValueError(
                f"{self.table.path} has no column {column!r} with labels{near_words(column, names)} The "
                "labels must be known here; name their column by --target."
            )
        if column in self.model.features:
            raise ValueError(
                f"--target {column} is a feature of the model: name the column of labels."
            )
        if column in ids:
            raise ValueError(f"--id {column} holds the labels: it cannot be an id as well.")
        return column

    def choose_class(self, asked: str | None) -> int:
        """Choose the class to find, as a position: the one asked for, else the model's."""
        from popf.tables.columns import find_class

        if asked is None:
            return self.model.layout.positive
        return find_class(asked, self.model.classes)

    @contextmanager
    def pieces(
        self, columns: Sequence[str], progress: bool | None, n_rows: int | None = None
    ) -> Iterator[Iterator["Scored"]]:
        """Score the table in pieces of `n_rows`, with a bar; `columns` are read besides the features."""
        from sklearn import config_context

        with config_context(working_memory=WORKING_MEMORY), progress_bar(progress) as advance:

            def pieces() -> Iterator["Scored"]:
                n_done = 0
                for scored in self.model.pieces(self.table, columns, n_rows):
                    self.unknown.update(scored.unknown)
                    yield scored
                    n_done += len(scored.codes)
                    advance(min(100, int(100 * self.table.share)), 100, f"{n_done:,} rows")

            yield pieces()
        for name, n in self.unknown.items():
            rows = counted(n, "row")
            say(f"note: column {name!r} holds values never seen in training, in {rows}.")

    def score_all(self, columns: Sequence[str], progress: bool | None) -> tuple[Any, Any]:
        """Return a frame of `columns` and the features, and the probabilities; note rows seen in training."""
        import numpy as np
        import pandas

        with self.pieces(columns, progress) as pieces:
            found = [(scored.frame, scored.probability) for scored in pieces]
        frames, probabilities = zip(*found, strict=True)
        frame = pandas.concat(frames, ignore_index=True)
        n_seen = self.model.count_training_rows(frame)
        if n_seen:
            say(
                f"note: {n_seen:,} of the {counted(len(frame), 'row')} of {self.table.path} have the "
                "features of a training row. On rows that it was fitted to, a model looks better than it is: "
                "use others."
            )
        return frame, np.vstack(probabilities)

    def true_codes(self, frame: Any, column: str) -> Any:
        """Return the true classes of scored rows, as positions in the classes of the model."""
        from popf.tables.columns import match_labels

        where = f"column {column!r} of {self.table.path}"
        return match_labels(frame[column].tolist(), self.model.classes, where)


def id_columns(ids: Any, rows: Any) -> Any:
    """Return a frame of the ids of rows, or of the numbers of the rows where there are no ids."""
    ids = ids.reset_index(drop=True)
    return ids if len(ids.columns) else ids.assign(row=rows + 1)
