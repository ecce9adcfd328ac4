"""A model and the table that it scores, as used by predict, rank, evaluate, explain, report and monitor."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popf.cli.terminal import STDIO, check_output, open_data, progress_bar, say
from popf.formatting import counted, near_words

if TYPE_CHECKING:
    from popf.table_models.model import Scored

#: Memory limit for blocks of distances, in MiB; scikit-learn's default is 1 GiB.
WORKING_MEMORY = 128


def check_table_output(path: Path | None, inputs: Sequence[Path], json: bool) -> None:
    """Raise an error if a table cannot be written to `path`, or if it would mix with JSON on stdout."""
    if path == STDIO and json:
        raise ValueError("--json needs another --output: standard output cannot hold both.")
    check_output(path, inputs)
    if path is not None and path != STDIO:
        from popf.tables.formats import delimiter_of

        delimiter_of(path)


class Scoring:
    """A model and the table that it scores, at the model's threshold or at another."""

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
            raise ValueError(
                f"{model} predicts labels only, no probabilities: fit a model with `popf fit`."
            )
        self.table = open_data(data, *how)
        #: Number of rows with a category not seen in training, by column.
        self.unknown: Counter[str] = Counter()

    def choose_ids(
        self,
        requested: Sequence[str] | None,
        results: Sequence[str] = (),
        use: str = "copy to the output",
    ) -> list[str]:
        """Return the id columns: those requested, else the model's; `results` are names they must not have."""
        if requested:
            self.table.need(requested, "id")
        wanted = list(dict.fromkeys(requested or self.model.layout.ids))
        absent = [name for name in wanted if name not in self.table.names]
        if absent:
            names = ", ".join(map(repr, absent))
            say(f"note: {self.table.path} has no column {names} to {use}.")
        for name in results:
            if name in wanted:
                raise ValueError(
                    f"column {name!r} has the name of an output column: rename it in the data."
                )
        return [name for name in wanted if name not in absent]

    def choose_target(self, requested: str | None, ids: Sequence[str] = ()) -> str:
        """Return the column with the labels: the one requested, else the model's; it must not be an id."""
        column, names = requested or self.model.layout.target, self.table.names
        if column is None:
            raise ValueError(
                "the model does not store which column holds the labels: give --target."
            )
        if column not in names:
            raise ValueError(
                f"{self.table.path} has no column {column!r} with labels{near_words(column, names)} This "
                "command needs labels: name their column with --target."
            )
        if column in self.model.features:
            raise ValueError(
                f"--target {column} is a feature of the model: name the column with the labels."
            )
        if column in ids:
            raise ValueError(f"--id {column} holds the labels: it cannot be an id as well.")
        return column

    def choose_time(self, requested: str | None) -> list[str]:
        """Return the column with times, the one requested, else the model's; none if the table has none."""
        self.table.need([requested] if requested else [], "time")
        name = requested or self.model.layout.time
        return [name] if name in self.table.names else []

    def numbers(self, column: str) -> Any:
        """Read a column that is no feature; raise ValueError unless all numbers are finite."""
        import numpy as np

        from popf.tables import ColumnTypes

        table = self.table
        values = table.frame(ColumnTypes([column]))[column].to_numpy()
        odd = np.flatnonzero(~np.isfinite(values))
        if len(odd):
            raise ValueError(
                f"column {column!r} of {table.path} has no finite number in row {odd[0] + 1}: fill it in, for "
                "instance with 0."
            )
        return values

    def choose_class(self, requested: str | None) -> int:
        """Return the position of the positive class: the one requested, else the model's."""
        from popf.tables.columns import find_class

        if requested is None:
            return self.model.layout.positive
        return find_class(requested, self.model.classes)

    @contextmanager
    def pieces(
        self, columns: Sequence[str], progress: bool | None, n_rows: int | None = None
    ) -> Iterator[Iterator["Scored"]]:
        """Score the table in pieces of `n_rows`, with a progress bar; also read `columns`."""
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
            say(f"note: column {name!r} holds categories not seen in training, in {rows}.")

    def score_all(self, columns: Sequence[str], progress: bool | None) -> tuple[Any, Any]:
        """Return a frame of `columns` and features, and the probabilities; note training rows among them."""
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
                "same features as a training row. A model looks better than it is on rows that it was fitted "
                "on: use other rows."
            )
        return frame, np.vstack(probabilities)

    def true_codes(self, frame: Any, column: str) -> Any:
        """Return the true classes of scored rows, as positions in the model's classes."""
        from popf.tables.columns import match_labels

        where = f"column {column!r} of {self.table.path}"
        return match_labels(frame[column].tolist(), self.model.classes, where)


def id_columns(ids: Any, rows: Any) -> Any:
    """Return a frame of the ids of rows, or of the row numbers if there are no ids."""
    ids = ids.reset_index(drop=True)
    return ids if len(ids.columns) else ids.assign(row=rows + 1)
