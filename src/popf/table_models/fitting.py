"""From a table to a model: which rows and columns, the fit, and what is to be said of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.forest.metrics import METRIC_NAMES
from popf.formatting import unknown
from popf.labels import encode
from popf.probability.parameters import MAPS, METHODS
from popf.table_models.model import Layout, TableModel, check_infinite, check_missing
from popf.table_models.preparation import MISSING, TablePreparation, fit_pipeline
from popf.table_models.thresholds import with_least_cost
from popf.tables import ColumnTypes, Table
from popf.tables.cells import Kind, find_class, labels_of

FloatArray = NDArray[np.float64]
#: A column of text with more different values than this, and than half of its rows, is no category.
MANY_VALUES = 50
MAP_CHOICES = ("none", *MAPS)


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
        A column by which rows belong together, as all months of a consumer do: one random row of each is
        kept. Rows that are nearly alike make left-out probabilities too sure.
    sample_weight : str or None
        The column with weights, which are scaled to a mean of 1: only their ratios matter. A row of weight 0
        is left out before anything else.
    missing : {"refuse", "median", "mean", "most_frequent"}
        What to do about missing values; of categories always the most frequent is taken.
    scale : bool
        Whether to standardise numbers.
    positive : str or None
        The class to find, of two; None for the rarer one, and of equally frequent ones the second in sorted
        order, unless a threshold or costs are given: then it must be named.
    threshold : float or None
        From which probability on a row is called positive.
    cost_fp, cost_fn : float or None
        What a false alarm and a miss cost: then the threshold of the least cost is chosen.
    method, linear_map, metric : str
        As for `POPFClassifier`; "none" is no map.
    seed : int
    n_jobs : int
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
    seed: int = 0
    n_jobs: int | None = None
    one_per: str | None = None


class Fitted(NamedTuple):
    """A fitted model, and what is to be said of it."""

    table_model: TableModel
    frame: Any  # the features it was fitted on
    counts: dict[Any, int]  # rows of every class, without those of weight 0
    log_loss: float | None  # of training rows that were held out
    prior_log_loss: float  # of predicting the class frequencies
    costs: dict[str, float] | None  # per row, by cross-validation, where costs were given
    n_imputed: int  # cells that were missing
    n_read: int  # rows of the file
    n_weightless: int  # those of weight 0, which are left out
    repeated: dict[str, int]  # id columns whose values repeat, with the number of different ones
    counters: list[str]  # features that count the rows up, as identifiers do


def fit_table(table: Table, options: FitOptions) -> Fitted:
    r"""Fit a model to a table.

    Parameters
    ----------
    table : Table
        Of `open_table`.
    options : FitOptions

    Returns
    -------
    Fitted

    Examples
    --------
    >>> import os, tempfile
    >>> from popf.table_models import FitOptions, fit_table
    >>> from popf.tables import open_table
    >>> rows = [f"{x},{'yes' if x > 5 else 'no'}" for x in range(11)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "mine.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("\n".join(["size,stolen", *rows]))
    ...     fitted = fit_table(open_table(path), FitOptions("stolen"))
    >>> fitted.counts, fitted.table_model.positive
    ({'no': 6, 'yes': 5}, 'yes')
    """
    _check_options(options)
    features, numbers, counters = _choose_columns(table, options)
    categories = [name for name in features if name not in numbers]
    verbatim = [options.target, *options.id, *_given(options.one_per)]
    types = ColumnTypes([*numbers, *_given(options.sample_weight)], categories, verbatim)
    frame = table.frame(types)
    n_read = len(frame)
    # From here on the index of the frame holds the rows of the file.
    frame = _with_weight(frame, options.sample_weight, table)
    n_weightless = n_read - len(frame)
    repeated = {}
    if options.one_per is None:
        repeated = _repeated(frame, options.id)
    else:
        frame = _one_of_each(frame, options.one_per, options.seed)
    y = labels_of(frame[options.target].tolist(), options.target, str(table.path), frame.index)
    weights = None
    if options.sample_weight is not None:
        # Weights whose mean is far from 1 would count as many more or fewer rows than there are.
        weights = frame[options.sample_weight].to_numpy()
        weights = weights / weights.mean()
    frame = frame[features]
    _check_cells(frame, numbers, options, table)
    classes, codes = encode(y)
    masses = np.bincount(codes, weights).astype(np.float64)
    layout = _layout(numbers, categories, (classes, masses), options, table)
    model, data = make_pipeline(numbers, categories, options), (frame, y, weights)
    costs = None
    if options.cost_fp is not None and options.cost_fn is not None:
        prices = (options.cost_fp, options.cost_fn)
        layout, costs = with_least_cost(layout, model, data, prices, options.seed)
    threshold = layout.threshold if layout.positive == 1 else 1.0 - layout.threshold
    fit_pipeline(model.set_params(popf__threshold=threshold), data)
    losses = getattr(model["popf"], "held_out_losses_", {})
    return Fitted(
        TableModel(model, layout),
        frame,
        dict(zip(classes.tolist(), np.bincount(codes).tolist(), strict=True)),
        losses.get("pool"),
        _prior_loss(masses),
        costs,
        int(frame.isna().to_numpy().sum()),
        n_read,
        n_weightless,
        repeated,
        counters,
    )


def make_pipeline(numbers: list[str], categories: list[str], options: FitOptions) -> Any:
    """Make the pipeline of a table, not fitted: `TablePreparation`, then `POPFClassifier`."""
    from sklearn.pipeline import Pipeline

    from popf.probability.classifier import POPFClassifier

    preparation = TablePreparation(
        numbers, categories, missing=options.missing, scale=options.scale
    )
    classifier = POPFClassifier(
        options.method,
        linear_map=None if options.linear_map == "none" else options.linear_map,
        metric=options.metric,
        random_state=options.seed,
        n_jobs=options.n_jobs,
    )
    return Pipeline([("columns", preparation), ("popf", classifier)])


def _given(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _one_of_each(frame: Any, column: str, seed: int) -> Any:
    """Keep one random row for every value of a column."""
    shuffled = np.random.default_rng(seed).permutation(len(frame))
    kept = frame.iloc[shuffled].drop_duplicates(column).index
    return frame.loc[kept.sort_values()]


def _repeated(frame: Any, ids: Sequence[str]) -> dict[str, int]:
    """Find id columns with fewer than half as many values as there are rows."""
    counts = {name: int(frame[name].nunique()) for name in ids}
    return {name: n for name, n in counts.items() if 1 < n < 0.5 * len(frame)}


def _check_options(options: FitOptions) -> None:
    for name, value, choices in (
        ("missing", options.missing, MISSING),
        ("method", options.method, METHODS),
        ("linear_map", options.linear_map, MAP_CHOICES),
    ):
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(choices)}, not {value!r}.")
    if options.metric == "precomputed":
        raise ValueError(
            "`metric='precomputed'` is for distances, and a table holds rows: take another."
        )
    if options.metric not in METRIC_NAMES:
        raise ValueError("`metric`: " + unknown("metric", options.metric, METRIC_NAMES))
    costs = (options.cost_fp, options.cost_fn)
    if (costs[0] is None) != (costs[1] is None):
        raise ValueError("`cost_fp` and `cost_fn` belong together: give both, or a `threshold`.")
    if costs[0] is not None and options.threshold is not None:
        raise ValueError(
            "`threshold` and `cost_fp`/`cost_fn` are two ways to say one thing: give one of them."
        )
    for name, cost in zip(("cost_fp", "cost_fn"), costs, strict=True):
        if cost is not None and not 0.0 < cost < np.inf:
            raise ValueError(f"`{name}` must be a positive number, not {cost:g}.")
    if options.threshold is not None and not 0.0 < options.threshold < 1.0:
        raise ValueError(f"`threshold` must lie between 0 and 1, not at {options.threshold:g}.")


def _choose_columns(table: Table, options: FitOptions) -> tuple[list[str], list[str], list[str]]:
    """Return the features, those of them that are numbers, and those of these that look like identifiers."""
    weight, groups = _given(options.sample_weight), _given(options.one_per)
    for parameter, wanted in (
        ("target", [options.target]),
        ("id", options.id),
        ("drop", options.drop),
        ("categorical", options.categorical),
        ("sample_weight", weight),
        ("one_per", groups),
    ):
        table.need(wanted, parameter)
    aside = {options.target, *options.id, *options.drop, *weight, *groups}
    if options.target in options.id or options.target in options.drop:
        raise ValueError(
            f"column {options.target!r} is the target: it cannot be an id, or dropped."
        )
    features = [name for name in table.names if name not in aside]
    if not features:
        raise ValueError(f"{table.path} has no column left to learn from.")
    text = table.text()
    numbers, empty = [], []
    for name in features:
        kind = table.kind(text[name])
        if kind.n_present == 0:
            empty.append(name)
        elif kind.numbers and name not in options.categorical:
            numbers.append(name)
        elif name not in options.categorical:
            _check_category(name, kind, len(text), table)
    if empty:
        raise ValueError(
            f"{table.path}: column {empty[0]!r} holds nothing at all: leave it out by `drop={empty[:1]}`."
        )
    return features, numbers, [name for name in numbers if _counts_up(text[name])]


def _counts_up(column: Any) -> bool:
    """Tell whether whole numbers rise from row to row, all the way."""
    cells = column.astype(str).str.strip()
    if len(cells) < 20 or not cells.str.fullmatch(r"\d+").all():
        return False
    return bool((np.diff(cells.astype(float)) > 0.0).all())


def _check_category(name: str, kind: Kind, n_rows: int, table: Table) -> None:
    """Refuse text that is a spoilt number, or a name."""
    if kind.n_numbers >= 0.5 * kind.n_present:
        raise ValueError(
            f"{table.path}: column {name!r} holds numbers, but {kind.odd_cell!r} in row {kind.odd_row}. "
            f"Mend it, or say what it is: `na=[{kind.odd_cell!r}]` for a missing value, "
            f"`categorical=[{name!r}]` for categories, `decimal=','` for numbers such as 1,5."
        )
    if kind.n_values > max(MANY_VALUES, 0.5 * n_rows):
        raise ValueError(
            f"{table.path}: column {name!r} holds {kind.n_values} different texts in {n_rows} rows (such "
            f"as {kind.odd_cell!r}): carry it through by `id=[{name!r}]`, leave it out by "
            f"`drop=[{name!r}]`, or insist by `categorical=[{name!r}]`."
        )


def _with_weight(frame: Any, column: str | None, table: Table) -> Any:
    """Leave out the rows of weight zero."""
    if column is None:
        return frame
    weights: FloatArray = frame[column].to_numpy()
    odd = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    if len(odd):
        raise ValueError(
            f"{table.path}, row {odd[0] + 1}: the weight in {column!r} must be a number "
            f"from 0 on, not {weights[odd[0]]:g}."
        )
    if not weights.any():
        raise ValueError(
            f"{table.path}: every weight in {column!r} is 0, which leaves no row: give "
            "some of them a positive weight."
        )
    return frame[weights > 0.0]


def _check_cells(frame: Any, numbers: list[str], options: FitOptions, table: Table) -> None:
    where = str(table.path)
    check_infinite(frame[numbers], frame.index, where)
    empty = [str(name) for name in frame.columns[frame.isna().all()]]
    if empty:
        raise ValueError(
            f"{where}: column {empty[0]!r} holds nothing in the rows that are left to learn from: "
            f"leave it out by `drop={empty[:1]}`."
        )
    if options.missing == "refuse":
        remedy = (
            "fill them in, or impute: `missing='median'` (or mean, most_frequent; categories get their "
            "most frequent value)"
        )
        check_missing(frame, frame.index, where, remedy)


def _layout(
    numbers: list[str],
    categories: list[str],
    target: tuple[NDArray[Any], FloatArray],
    options: FitOptions,
    table: Table,
) -> Layout:
    """Say what the columns are; `target` holds the classes and their total weights."""
    classes, masses = target
    n_rows = round(masses.sum())
    where = f"column {options.target!r} of {table.path}"
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
    return Layout(
        numbers,
        categories,
        list(dict.fromkeys([*options.id, *_given(options.one_per)])),
        options.target,
        0.5 if options.threshold is None else options.threshold,
        _positive(classes, masses, options),
        options.missing,
        "the default" if options.threshold is None else "given",
        table.path.name,
    )


def _positive(classes: NDArray[Any], masses: FloatArray, options: FitOptions) -> int:
    """Return the class to find: the one that was named, else the rarer."""
    if options.positive is not None:
        return find_class(options.positive, classes)
    if len(classes) != 2:
        return 1
    if masses[0] == masses[1] and (options.cost_fp is not None or options.threshold is not None):
        raise ValueError(
            f"{classes[0]!s} and {classes[1]!s} are equally frequent: say which class `threshold` and costs "
            f"are about, `positive={str(classes[0])!r}` or `positive={str(classes[1])!r}`."
        )
    return 0 if masses[0] < masses[1] else 1


def _prior_loss(masses: FloatArray) -> float:
    """Log loss of always predicting the class frequencies."""
    share = masses / masses.sum()
    return float(-(share * np.log(share)).sum())
