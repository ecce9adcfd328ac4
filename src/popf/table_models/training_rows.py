"""Options of a fit, and the training rows of a table."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.dates import read_times
from popf.engine.structures import FloatArray
from popf.forest.metrics import METRIC_NAMES
from popf.formatting import check_choice, check_share, listed, unknown
from popf.metrics.thresholds import check_costs
from popf.probability.consumption import positions_in_range
from popf.probability.linear_maps import MAPS
from popf.table_models.model import infinite_cells
from popf.tables import ColumnTypes, Table
from popf.tables.columns import MANY_VALUES, Column, RowGroups, group_rows, labels_of

#: "pooled" and "forest" are methods of `POPFClassifier`; "paper" is `PlattOPFClassifier`.
METHODS = ("pooled", "forest", "paper")
#: A parameter with a value; the first one in a message is the most likely remedy.
_REMEDY = re.compile(r"`\w+=[^`]+`")


@dataclass(frozen=True)
class FitOptions:
    """Options of `fit_table`.

    Attributes
    ----------
    target : str
        Column with the labels.
    id, drop, categorical : sequence of str
        Id columns, which are not features and are copied to predictions; columns to leave out; numeric columns
        to treat as categories. Rows with the same value of the first id that repeats are held out together.
    readings : sequence of str
        Columns of readings in order of time, to make features of by `ConsumptionFeatures`: names, or ranges in
        the order of the table, such as ``"consumption_12:consumption_1"``.
    one_per : str or None
        Keep one random row for each value of this column, such as one visit per patient.
    sample_weight : str or None
        Column with weights, of which only the ratios matter; rows of weight 0 are left out.
    scale : bool
        Whether to standardise features for ``method="paper"`` and for metrics that are not Euclidean; otherwise
        units never matter.
    positive : str or None
        Positive class of two; None for 1 of 0 and 1, yes of no and yes, and the like, else for the rarer, or
        the second if both are equally frequent.
    threshold : float or None
        Probability from which a row is predicted positive.
    cost_fp, cost_fn : float or None
        Costs of a false alarm and of a miss, to choose the threshold by.
    method : {"pooled", "forest", "paper"}
        How to compute probabilities: by a method of `POPFClassifier`, or by the paper's, `PlattOPFClassifier`.
    linear_map, metric : str
        As in `POPFClassifier`.
    time : str or None
        Column with the time of each row, a number or a date; not a feature.
    test_size : float or None
        Fraction of the rows to test on: the latest ones if there is a `time`, else random ones, stratified by
        class. Rows with the same `id` stay together.
    seed, n_jobs : int
    """

    target: str
    id: Sequence[str] = ()
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    readings: Sequence[str] = ()
    one_per: str | None = None
    sample_weight: str | None = None
    scale: bool = True
    positive: str | None = None
    threshold: float | None = None
    cost_fp: float | None = None
    cost_fn: float | None = None
    method: str = "pooled"
    linear_map: str = "auto"
    metric: str = "euclidean"
    time: str | None = None
    test_size: float | None = None
    seed: int = 0
    n_jobs: int | None = None


def check_options(options: FitOptions) -> None:
    """Raise ValueError for options that are unknown, out of range or contradictory."""
    check_choice("`method`", options.method, METHODS)
    check_choice("`linear_map`", options.linear_map, ("auto", *MAPS))
    if options.method == "paper" and options.linear_map not in ("none", "auto"):
        raise ValueError(
            f"`linear_map={options.linear_map!r}` needs `method='pooled'` or `method='forest'`."
        )
    if options.metric == "precomputed":
        raise ValueError(
            "`metric='precomputed'` is for distance matrices, not for tables: choose another metric."
        )
    if options.metric not in METRIC_NAMES:
        raise ValueError("`metric`: " + unknown("metric", options.metric, METRIC_NAMES))
    if options.cost_fp is not None or options.cost_fn is not None:
        check_costs(options.cost_fp, options.cost_fn, strictly=True)
        if options.threshold is not None:
            raise ValueError(
                "`threshold` and `cost_fp`/`cost_fn` both set the threshold: give only one of them."
            )
    if options.threshold is not None:
        check_share("`threshold`", options.threshold)
    if options.test_size is not None:
        check_share("`test_size`", options.test_size)


class TrainingRows(NamedTuple):
    """The rows that a model is fitted to."""

    frame: Any  # the features; the index is the row in the file, from 0
    y: NDArray[Any]
    weights: FloatArray | None  # of mean 1
    groups: RowGroups
    readings: list[str]  # the features that are readings
    columns: list[Column]  # how each column is read
    times: FloatArray | None
    are_dates: bool  # whether the times are dates, in seconds since 1970
    n_read: int  # number of rows in the file
    n_weightless: int  # number of rows of weight 0, which are left out
    notes: list[str]  # possible mistakes that are not errors


def read_training_rows(table: Table, options: FitOptions) -> TrainingRows:
    """Read the training rows of a table; raise ValueError that lists all problems."""
    columns, problems = _choose_columns(table, options)
    numbers, texts = with_role(columns, "number"), with_role(columns, "category", "date")
    if not numbers + texts:
        problems.append("no feature column is left.")
    readings = _readings(table, numbers, options, problems)
    weight = with_role(columns, "weight")
    known = with_role(columns, "target", "id", "one per", "time")
    frame = table.frame(ColumnTypes([*numbers, *weight], texts, known))
    n_read = len(frame)
    times, are_dates = None, False
    if options.time in frame and options.time != options.target:
        try:
            times, are_dates = read_times(frame[options.time].tolist(), f"`time` {options.time}")
        except ValueError as error:
            problems.append(str(error))
    # From here on, the index is the row in the file.
    frame = _without_zero_weights(frame, weight, table)
    n_weightless = n_read - len(frame)
    if options.one_per is not None and options.one_per in frame:
        frame = _one_row_per_value(frame, options.one_per, options.seed)
    ids = [name for name in options.id if name in frame and options.one_per is None]
    groups = group_rows({name: frame[name].tolist() for name in ids}, len(frame))
    notes = [column.note for column in columns if column.note]
    if groups.id is not None:
        note = f"{groups.id!r} repeats ({groups.n_groups:,} values): rows with the same value are held out"
        notes.insert(0, f"{note} together.")
    dates = with_role(columns, "date")
    if options.test_size is not None and options.time is None and dates:
        notes.append(
            f"column {dates[0]!r} holds dates, but the test rows are drawn at random: some training rows are "
            f"later. `time={dates[0]!r}` tests on the latest rows."
        )
    problems += filter(None, [infinite_cells(frame[numbers], frame.index)])
    y = np.array([])
    if options.target in frame:
        try:
            y = labels_of(frame[options.target].tolist(), options.target, frame.index)
            _check_classes(np.unique(y), len(y), options)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError(_list_of_problems(problems, table))
    # Scaled to mean 1, so that weights do not count as more or fewer rows than there are.
    weights = frame[weight[0]].to_numpy() / frame[weight[0]].mean() if weight else None
    used = {*numbers, *texts}
    features = [name for name in table.names if name in used]
    return TrainingRows(
        frame[features],
        y,
        weights,
        groups,
        readings,
        columns,
        None if times is None else times[frame.index],
        are_dates,
        n_read,
        n_weightless,
        notes,
    )


def _readings(
    table: Table, numbers: list[str], options: FitOptions, problems: list[str]
) -> list[str]:
    """Return the columns of readings; add to `problems` those that cannot be."""
    found = []
    for given in options.readings:
        try:
            found += [table.names[j] for j in positions_in_range(given, table.names)]
        except ValueError as error:
            problems.append(str(error))
    odd = [name for name in dict.fromkeys(found) if name not in numbers]
    if odd:
        problems.append(
            f"`readings` has {listed(odd)}, but readings must be features that are numbers."
        )
    if len({*found}) < len(found):
        problems.append(f"`readings` has {Counter(found).most_common(1)[0][0]!r} twice.")
    return found


def with_role(columns: Sequence[Column], *roles: str) -> list[str]:
    """Return the names of the columns with one of the roles, role by role."""
    return [column.name for role in roles for column in columns if column.role == role]


def _choose_columns(table: Table, options: FitOptions) -> tuple[list[Column], list[str]]:
    """Return how the columns are read under the options, and the problems with names and columns."""
    # Unnamed: an index that was saved with a frame, or a delimiter at the end of lines.
    roles = dict.fromkeys(table.unnamed, "dropped")
    problems = []
    for parameter, role, names in (
        ("id", "id", options.id),
        ("drop", "dropped", options.drop),
        ("sample_weight", "weight", [options.sample_weight]),
        ("one_per", "one per", [options.one_per]),
        ("time", "time", [options.time]),
        ("target", "target", [options.target]),
        ("categorical", None, options.categorical),
    ):
        for name in filter(None, names):
            unknown_name = table.unknown_name(name, parameter)
            if unknown_name:
                problems.append(unknown_name)
            elif role is not None:
                roles[name] = role
    others = options.sample_weight, options.one_per, options.time
    if options.target in (*options.id, *options.drop, *others):
        problems.append(f"column {options.target!r} is the target: remove it from other options.")
    columns = table.columns(roles, options.categorical)
    problems += [column.problem for column in columns if column.problem]
    return columns, problems


def _list_of_problems(problems: list[str], table: Table) -> str:
    """Combine all problems of a table into one message, with the parameters that would solve them."""
    if len(problems) == 1:
        return f"{table.path}: {problems[0]}"
    lines = [f"{table.path} cannot be used as it is:", *problems]
    remedies = dict.fromkeys(found[0] for found in map(_REMEDY.search, problems) if found)
    if remedies:
        lines.append(f"Try: {' '.join(remedies)}")
    return "\n- ".join(lines)


def _without_zero_weights(frame: Any, column: list[str], table: Table) -> Any:
    """Drop the rows of weight 0."""
    if not column:
        return frame
    weights: FloatArray = frame[column[0]].to_numpy()
    odd = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    if len(odd):
        raise ValueError(
            f"{table.path}, row {odd[0] + 1}: the weight in {column[0]!r} must be a "
            f"non-negative number, not {weights[odd[0]]:g}."
        )
    if not weights.any():
        raise ValueError(
            f"{table.path}: all weights in {column[0]!r} are 0: give some rows a positive weight."
        )
    return frame[weights > 0.0]


def _check_classes(classes: NDArray[Any], n_rows: int, options: FitOptions) -> None:
    """Raise ValueError unless the target holds classes, and two of them if the options need it."""
    where = f"column {options.target!r}"
    if len(classes) < 2:
        raise ValueError(
            f"{where} holds only one class, {classes[0]!s}: give rows of at least two classes."
        )
    if len(classes) > max(MANY_VALUES, 0.5 * n_rows):
        raise ValueError(
            f"{where} holds {len(classes)} different values in {n_rows} rows: these are not classes. Name "
            "the column with the labels with `target`, or add a column with bins of the values, such as low "
            "and high."
        )
    for_two = (options.positive, options.threshold, options.cost_fp)
    if len(classes) != 2 and any(value is not None for value in for_two):
        raise ValueError(
            f"{where} has {len(classes)} classes, but `positive`, `threshold` and costs are for two. Leave "
            "them out: the most probable class is then predicted."
        )


def _one_row_per_value(frame: Any, column: str, seed: int) -> Any:
    """Keep one random row for each value of a column."""
    shuffled = np.random.default_rng(seed).permutation(len(frame))
    kept = frame.iloc[shuffled].drop_duplicates(column).index
    return frame.loc[kept.sort_values()]
