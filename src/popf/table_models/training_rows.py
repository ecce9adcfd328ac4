"""How columns are read, and the rows of a table that a model is fitted to, or all that is wrong with them."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray, IntArray
from popf.forest.metrics import METRIC_NAMES
from popf.formatting import counted, unknown
from popf.probability.classifier import MAPS, METHODS
from popf.table_models.model import MISSING, infinite_cells, missing_numbers
from popf.tables import ColumnTypes, Table
from popf.tables.cells import Kind, labels_of

#: A column of text with more different values than this is no category if there are many for its rows.
MANY_VALUES = 50
#: How many rows a table must have, and how many values a column, before a column is called an id.
MANY_ROWS, MANY_GROUPS = 20, 10
_ID = re.compile(r"(?:^|[ _.-])(?:id|ID|Id)$|[a-z]I[dD]$")
#: The first parameter that a problem names with a value is what most likely mends it.
_REMEDY = re.compile(r"`\w+=[^`]+`")


class Column(NamedTuple):
    """How a column is read."""

    name: str
    role: str  # number or category for a feature, else target, id, dropped, weight, one per
    n_values: int  # different ones
    n_missing: int
    problem: str  # why it cannot be used, empty if it can
    note: str  # what should be looked at, but is no error

    @property
    def words(self) -> str:
        """The role; of a category with the number of its values."""
        n_values = counted(self.n_values, "value")
        return f"category, {n_values}" if self.role == "category" else self.role


@dataclass(frozen=True)
class FitOptions:
    """What `fit_table` is told.

    Attributes
    ----------
    target : str
        The column with the labels.
    id, drop, categorical : sequence of str
        Columns that are carried through, left out, or categories although they look like numbers.
    one_per : str or None
        Keep one random row for each value of this column, such as a consumer of whom there are many months.
    sample_weight : str or None
        The column with weights, of which only the ratios matter; rows of weight 0 are left out.
    missing : {"refuse", "median", "mean"}
        What to do about missing numbers; a missing text is a category of its own.
    scale : bool
        Whether to standardise numbers.
    positive : str or None
        The class to find, of two; None for the rarer, or the second of equally frequent ones.
    threshold : float or None
        From which probability on a row is called positive.
    cost_fp, cost_fn : float or None
        What a false alarm and a miss cost, to choose the threshold by.
    method, linear_map, metric : str
        As for `POPFClassifier`; "none" is no map.
    test_size : float or None
        The share of the rows to keep aside, from each class alike; rows of one `id` stay together.
    seed, n_jobs : int
    """

    target: str
    id: Sequence[str] = ()
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    sample_weight: str | None = None
    missing: str = "refuse"
    scale: bool = True
    positive: str | None = None
    threshold: float | None = None
    cost_fp: float | None = None
    cost_fn: float | None = None
    method: str = "pooled"
    linear_map: str = "auto"
    metric: str = "euclidean"
    test_size: float | None = None
    seed: int = 0
    n_jobs: int | None = None
    one_per: str | None = None


def check_options(options: FitOptions) -> None:
    """Raise ValueError for options that are unknown, out of range or contradict each other."""
    for name, choices in (
        ("missing", MISSING),
        ("method", METHODS),
        ("linear_map", ("none", *MAPS)),
    ):
        value = getattr(options, name)
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(choices)}, not {value!r}.")
    if options.metric == "precomputed":
        raise ValueError(
            "`metric='precomputed'` is for distances, and a table holds rows: take another."
        )
    if options.metric not in METRIC_NAMES:
        raise ValueError("`metric`: " + unknown("metric", options.metric, METRIC_NAMES))
    if (options.cost_fp is None) != (options.cost_fn is None):
        raise ValueError("`cost_fp` and `cost_fn` belong together: give both, or a `threshold`.")
    if options.cost_fp is not None and options.threshold is not None:
        raise ValueError(
            "`threshold` and `cost_fp`/`cost_fn` are two ways to say one thing: give one of them."
        )
    for name, limit, words in (
        ("cost_fp", np.inf, "be a positive number, not"),
        ("cost_fn", np.inf, "be a positive number, not"),
        ("threshold", 1.0, "lie between 0 and 1, not at"),
        ("test_size", 1.0, "lie between 0 and 1, not at"),
    ):
        value = getattr(options, name)
        if value is not None and not 0.0 < value < limit:
            raise ValueError(f"`{name}` must {words} {value:g}.")


class TrainingRows(NamedTuple):
    """What a model is fitted to."""

    frame: Any  # the features; the index holds the rows of the file, from 0
    y: NDArray[Any]
    weights: FloatArray | None  # of mean 1
    groups: IntArray  # rows of one id have one number; a number each where no id repeats
    columns: list[Column]  # how each is read
    n_read: int  # rows of the file
    n_weightless: int  # those of weight 0, which are left out
    notes: list[str]  # what should be looked at, but is no error


def read_training_rows(table: Table, options: FitOptions) -> TrainingRows:
    """Read a table as the options say; raise ValueError with all that is wrong with it."""
    columns, problems = _choose_columns(table, options)
    numbers, categories = with_role(columns, "number"), with_role(columns, "category")
    if not numbers + categories:
        problems.append("no column is left to learn from.")
    weight = with_role(columns, "weight")
    known = with_role(columns, "target", "id", "one per")
    frame = table.frame(ColumnTypes([*numbers, *weight], categories, known))
    n_read = len(frame)
    frame = _with_weight(frame, weight, table)  # from here on its index holds the rows of the file
    n_weightless = n_read - len(frame)
    if options.one_per is not None and options.one_per in frame:
        frame = _one_of_each(frame, options.one_per, options.seed)
    ids = [name for name in options.id if name in frame and options.one_per is None]
    counts = {name: int(frame[name].nunique()) for name in ids}
    problems += _cell_problems(frame, numbers, columns, options)
    y = np.array([])
    if options.target in frame:
        try:
            y = labels_of(frame[options.target].tolist(), options.target, frame.index)
            _check_classes(np.unique(y), len(y), options)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError(_listed(problems, table))
    # Weights whose mean is far from 1 would count as many more or fewer rows than there are.
    weights = frame[weight[0]].to_numpy() / frame[weight[0]].mean() if weight else None
    features = [name for name in table.names if name in {*numbers, *categories}]
    return TrainingRows(
        frame[features],
        y,
        weights,
        _groups(frame, [name for name, n in counts.items() if n > 1]),
        columns,
        n_read,
        n_weightless,
        [
            f"{name!r} repeats ({n:,} values): rows that belong together are nearly alike, which makes the "
            f"model overconfident. Consider `one_per={name!r}`."
            for name, n in counts.items()
            if 1 < n < 0.5 * len(frame)
        ]
        + [column.note for column in columns if column.note],
    )


def read_columns(
    table: Table, roles: Mapping[str, str], categorical: Collection[str] = ()
) -> list[Column]:
    """Tell how every column of a table is read; `roles` are those of columns that are no features."""
    text, columns = table.text(), []
    n_rows = len(text)
    for name in table.names:
        kind, insisted = table.kind(text[name]), name in categorical
        role, problem, note = roles.get(name), "", ""
        if role is None:
            role = "number" if kind.numbers and not insisted else "category"
            if not insisted or not kind.n_present:
                problem = _problem(name, kind, n_rows)
            if not insisted and not problem:
                note = _note(name, kind, n_rows)
        columns.append(Column(name, role, kind.n_values, n_rows - kind.n_present, problem, note))
    return columns


def with_role(columns: Sequence[Column], *roles: str) -> list[str]:
    """Name the columns with one of the roles, role by role."""
    return [column.name for role in roles for column in columns if column.role == role]


def _problem(name: str, kind: Kind, n_rows: int) -> str:
    """Find a column that is empty, a number or a date in disguise, a spoilt number, or a name."""
    drop, category, carried = f"`drop={[name]}`", f"`categorical={[name]}`", f"`id={[name]}`"
    if kind.n_present == 0:
        return f"column {name!r} holds nothing at all: leave it out by {drop}."
    if kind.numbers:
        return ""
    looks_like = f"column {name!r} holds {kind.looks_like}, such as {kind.odd_cell!r}"
    if "date" in kind.looks_like:
        return (
            f"{looks_like}: put numbers in its place (the month, the days since some day), carry it "
            f"through by {carried}, leave it out by {drop}, or make it categories by {category}."
        )
    if "decimal" in kind.looks_like:
        return f"{looks_like}: `decimal=','` reads them."
    if kind.looks_like:
        return (
            f"{looks_like}: write them as plain numbers in the file, leave the column out by {drop}, or make "
            f"it categories by {category}."
        )
    if kind.n_numbers >= 0.5 * kind.n_present:
        return (
            f"column {name!r} holds numbers, but {kind.odd_cell!r} in row {kind.odd_row}. Mend it, or say "
            f"what it is: `na={[kind.odd_cell]}` for a missing value, {category} for categories."
        )
    # Every value becomes a column of 0 and 1, which some rows should share.
    if kind.n_values > max(MANY_VALUES, min(0.1 * n_rows, 20 * MANY_VALUES)):
        return (
            f"column {name!r} holds {kind.n_values} different texts in {n_rows} rows (such as "
            f"{kind.odd_cell!r}): carry it through by {carried}, leave it out by {drop}, or insist by "
            f"{category}."
        )
    return ""


def _note(name: str, kind: Kind, n_rows: int) -> str:
    """Call out a feature that looks like an id: by its name, another in every row, or equal groups of rows."""
    if n_rows < MANY_ROWS or kind.n_values < MANY_GROUPS or (kind.numbers and not kind.whole):
        return ""
    if _ID.search(name) and not kind.rows_each:
        return f"{name!r} is called an id, and is used as a feature. If it is one: `id={[name]}`."
    if not kind.rows_each:
        return ""
    if kind.rows_each == 1:
        return (
            f"{name!r} has another whole number in every row, as an id has, and is used as a feature. If it "
            f"is one: `id={[name]}`."
        )
    return (
        f"{name!r} has {kind.n_values:,} values in {kind.rows_each} rows each, as ids of rows that belong "
        f"together have, and is used as a feature. If it is one: `id={[name]}`, or `one_per={name!r}`."
    )


def _choose_columns(table: Table, options: FitOptions) -> tuple[list[Column], list[str]]:
    """Read the columns by the roles that the options give them; find unknown names and unusable columns."""
    roles = dict.fromkeys(table.unnamed, "dropped")  # an index, or a delimiter at the end of lines
    problems = []
    for parameter, role, names in (
        ("id", "id", options.id),
        ("drop", "dropped", options.drop),
        ("sample_weight", "weight", [options.sample_weight]),
        ("one_per", "one per", [options.one_per]),
        ("target", "target", [options.target]),
        ("categorical", None, options.categorical),
    ):
        for name in filter(None, names):
            unknown_name = table.unknown_name(name, parameter)
            if unknown_name:
                problems.append(unknown_name)
            elif role is not None:
                roles[name] = role
    if options.target in (*options.id, *options.drop):
        problems.append(f"column {options.target!r} is the target: it cannot be an id, or dropped.")
    columns = read_columns(table, roles, options.categorical)
    problems += [column.problem for column in columns if column.problem]
    return columns, problems


def _listed(problems: list[str], table: Table) -> str:
    """Write all problems of a table as one message, and the parameters that would mend them."""
    if len(problems) == 1:
        return f"{table.path}: {problems[0]}"
    lines = [f"{table.path} cannot be used as it is:", *problems]
    remedies = dict.fromkeys(found[0] for found in map(_REMEDY.search, problems) if found)
    if remedies:
        lines.append(f"What would do: {' '.join(remedies)}")
    return "\n- ".join(lines)


def _with_weight(frame: Any, column: list[str], table: Table) -> Any:
    """Leave out the rows of weight zero."""
    if not column:
        return frame
    weights: FloatArray = frame[column[0]].to_numpy()
    odd = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    if len(odd):
        raise ValueError(
            f"{table.path}, row {odd[0] + 1}: the weight in {column[0]!r} must be a number "
            f"from 0 on, not {weights[odd[0]]:g}."
        )
    if not weights.any():
        raise ValueError(
            f"{table.path}: every weight in {column[0]!r} is 0, which leaves no row: give "
            "some of them a positive weight."
        )
    return frame[weights > 0.0]


def _cell_problems(
    frame: Any, numbers: list[str], columns: list[Column], options: FitOptions
) -> list[str]:
    """Find infinite and missing numbers, and columns that are empty in the rows that are left."""
    problems = list(filter(None, [infinite_cells(frame[numbers], frame.index)]))
    sound = [column.name for column in columns if column.name in frame and not column.problem]
    empty = [name for name in sound if frame[name].isna().all()]
    problems += [
        f"column {name!r} holds nothing in the rows that are left to learn from: leave it out by "
        f"`drop={[name]}`."
        for name in empty
    ]
    if options.missing == "refuse":
        filled = [name for name in numbers if name in sound and name not in empty]
        gaps = missing_numbers(frame[filled], frame.index)
        if gaps:
            problems.append(f"{gaps}: fill them in, or let `missing='median'` (or mean) do it.")
    return problems


def _check_classes(classes: NDArray[Any], n_rows: int, options: FitOptions) -> None:
    """Raise ValueError unless the target has classes that can be told apart, and that the options fit."""
    where = f"column {options.target!r}"
    if len(classes) < 2:
        raise ValueError(
            f"{where} holds one class only, {classes[0]!s}: there is nothing to tell apart. Give rows of "
            "two classes at least."
        )
    if len(classes) > max(MANY_VALUES, 0.5 * n_rows):
        raise ValueError(
            f"{where} holds {len(classes)} different values in {n_rows} rows: it is no class. Name the "
            "column with the labels by `target`."
        )
    about_two = (options.positive, options.threshold, options.cost_fp)
    if len(classes) != 2 and any(value is not None for value in about_two):
        raise ValueError(
            f"{where} has {len(classes)} classes; `positive`, `threshold` and costs are for two. Leave "
            "them out: the label is then the class of the largest probability."
        )


def _one_of_each(frame: Any, column: str, seed: int) -> Any:
    """Keep one random row for every value of a column."""
    shuffled = np.random.default_rng(seed).permutation(len(frame))
    kept = frame.iloc[shuffled].drop_duplicates(column).index
    return frame.loc[kept.sort_values()]


def _groups(frame: Any, repeating: Sequence[str]) -> IntArray:
    """Give rows with the same value in the first column that repeats one number; each its own if none does."""
    for name in repeating:
        groups: IntArray = frame[name].factorize(use_na_sentinel=False)[0]
        if groups.max() + 1 < len(frame):
            return groups
    return np.arange(len(frame))
