"""From a table to a model: which rows and columns, the fit, and what is to be said of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.forest.metrics import METRIC_NAMES
from popf.formatting import unknown
from popf.labels import encode
from popf.probability.parameters import MAPS, METHODS
from popf.table_models.columns import MANY_VALUES, Column, read_columns
from popf.table_models.model import Layout, TableModel, infinite_cells, missing_numbers
from popf.table_models.preparation import MISSING, TablePreparation, fit_pipeline
from popf.table_models.thresholds import with_least_cost
from popf.tables import ColumnTypes, Table
from popf.tables.cells import find_class, labels_of

FloatArray = NDArray[np.float64]
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
    missing : {"refuse", "median", "mean"}
        What to do about missing numbers; a missing text is a category of its own.
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
    test_size : float or None
        The share of the rows to keep aside, from each class alike.
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
    test_size: float | None = None
    seed: int = 0
    n_jobs: int | None = None
    one_per: str | None = None


class Fitted(NamedTuple):
    """A fitted model, and what is to be said of it."""

    table_model: TableModel
    frame: Any  # the features it was fitted on
    counts: dict[Any, int]  # rows of every class, without those of weight 0
    held_out: dict[
        str, dict[str, float]
    ]  # log loss, accuracy and AUC on rows held out, of each part
    costs: dict[str, float] | None  # per row, by cross-validation, where costs were given
    n_imputed: int  # missing numbers that were filled in
    n_read: int  # rows of the file
    n_weightless: int  # those of weight 0, which are left out
    repeated: dict[str, int]  # id columns whose values repeat, with the number of different ones
    columns: list[Column]  # how each is read
    test: (
        tuple[NDArray[np.int64], FloatArray] | None
    )  # classes and probabilities of rows kept aside


def fit_table(
    table: Table, options: FitOptions, stage: Callable[[str], None] = lambda text: None
) -> Fitted:
    r"""Fit a model to a table.

    Parameters
    ----------
    table : Table
        Of `open_table`.
    options : FitOptions
    stage : callable
        Told in words what is being done.

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
    stage(f"reading {table.path}")
    columns, problems = _choose_columns(table, options)
    features = [column for column in columns if column.role in ("number", "category")]
    if not features:
        problems.append(Problem("no column is left to learn from."))
    numbers = [column.name for column in features if column.role == "number"]
    categories = [column.name for column in features if column.role == "category"]
    known = [column.name for column in columns if column.role in ("target", "id", "one per")]
    weight = [column.name for column in columns if column.role == "weight"]
    frame = table.frame(ColumnTypes([*numbers, *weight], categories, known))
    n_read = len(frame)
    # From here on the index of the frame holds the rows of the file.
    frame = _with_weight(frame, weight, table)
    n_weightless = n_read - len(frame)
    repeated = {}
    if options.one_per is None:
        repeated = _repeated(frame, [name for name in options.id if name in frame])
    elif options.one_per in frame:
        frame = _one_of_each(frame, options.one_per, options.seed)
    problems += _cell_problems(frame, numbers, columns, options)
    y = np.array([])
    if options.target in frame:
        try:
            y = labels_of(frame[options.target].tolist(), options.target, frame.index)
            _check_classes(np.unique(y), len(y), options)
        except ValueError as error:
            problems.append(Problem(str(error)))
    if problems:
        raise ValueError(_listed(problems, table))
    weights = None
    if weight:
        # Weights whose mean is far from 1 would count as many more or fewer rows than there are.
        weights = frame[weight[0]].to_numpy()
        weights = weights / weights.mean()
    frame = frame[[column.name for column in features]]
    kept, aside = _keep_aside(y, options)
    test_frame, test_y = frame.iloc[aside], y[aside]
    frame, y = frame.iloc[kept], y[kept]
    weights = None if weights is None else weights[kept] / weights[kept].mean()
    classes, codes = encode(y)
    masses = np.bincount(codes, weights).astype(np.float64)
    layout = _layout(numbers, categories, (classes, masses), options, table)
    model, data = make_pipeline(numbers, categories, options), (frame, y, weights)
    costs = None
    if options.cost_fp is not None and options.cost_fn is not None:
        prices = (options.cost_fp, options.cost_fn)
        layout, costs = with_least_cost(layout, model, data, prices, options.seed, stage)
    threshold = layout.threshold if layout.positive == 1 else 1.0 - layout.threshold
    stage(f"fitting {len(y):,} rows")
    fit_pipeline(model.set_params(popf__threshold=threshold), data)
    table_model = TableModel(model, layout)
    test = None
    if len(aside):
        stage(f"scoring {len(aside):,} rows that were kept aside")
        test = np.searchsorted(classes, test_y), model.predict_proba(test_frame)
    return Fitted(
        table_model,
        frame,
        dict(zip(classes.tolist(), np.bincount(codes).tolist(), strict=True)),
        _held_out(model["popf"]),
        costs,
        int(frame[numbers].isna().to_numpy().sum()),
        n_read,
        n_weightless,
        repeated,
        columns,
        test,
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


def _keep_aside(y: NDArray[Any], options: FitOptions) -> tuple[Any, Any]:
    """Split the rows into those to fit and those to keep aside, which are none without `test_size`."""
    rows = np.arange(len(y))
    if options.test_size is None:
        return rows, rows[:0]
    from sklearn.model_selection import train_test_split

    try:
        kept, aside = train_test_split(
            rows, test_size=options.test_size, stratify=y, random_state=options.seed
        )
    except ValueError as error:
        raise ValueError(f"`test_size`: {error}") from error
    return np.sort(kept), np.sort(aside)


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
    for name in ("threshold", "test_size"):
        value = getattr(options, name)
        if value is not None and not 0.0 < value < 1.0:
            raise ValueError(f"`{name}` must lie between 0 and 1, not at {value:g}.")


class Problem(NamedTuple):
    """What is wrong with a table, and the parameter that most likely mends it."""

    text: str
    remedy: str = ""


def _choose_columns(table: Table, options: FitOptions) -> tuple[list[Column], list[Problem]]:
    """Read the columns by the roles that the options give them; find unknown names and unusable columns."""
    roles = {} if table.index is None else {table.index: "dropped"}
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
                problems.append(Problem(unknown_name))
            elif role is not None:
                roles[name] = role
    if options.target in (*options.id, *options.drop):
        problems.append(
            Problem(f"column {options.target!r} is the target: it cannot be an id, or dropped.")
        )
    columns = read_columns(table, roles, options.categorical)
    problems += [Problem(column.problem, column.remedy) for column in columns if column.problem]
    return columns, problems


def _listed(problems: list[Problem], table: Table) -> str:
    """Write all problems of a table as one message, and the parameters that would mend them."""
    if len(problems) == 1:
        return f"{table.path}: {problems[0].text}"
    remedies = dict.fromkeys(problem.remedy for problem in problems if problem.remedy)
    lines = [f"{table.path} cannot be used as it is:", *(problem.text for problem in problems)]
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
) -> list[Problem]:
    """Find infinite and missing numbers, and columns that are empty in the rows that are left."""
    problems = []
    infinite = infinite_cells(frame[numbers], frame.index)
    if infinite:
        problems.append(Problem(infinite))
    sound = [column.name for column in columns if column.name in frame and not column.problem]
    empty = [name for name in sound if frame[name].isna().all()]
    for name in empty:
        drop = f"`drop={[name]}`"
        text = f"column {name!r} holds nothing in the rows that are left to learn from"
        problems.append(Problem(f"{text}: leave it out by {drop}.", drop))
    if options.missing == "refuse":
        filled = [name for name in numbers if name in sound and name not in empty]
        gaps = missing_numbers(frame[filled], frame.index)
        if gaps:
            fill = "`missing='median'`"
            problems.append(Problem(f"{gaps}: fill them in, or let {fill} (or mean) do it.", fill))
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


def _layout(
    numbers: list[str],
    categories: list[str],
    target: tuple[NDArray[Any], FloatArray],
    options: FitOptions,
    table: Table,
) -> Layout:
    """Say what the columns are; `target` holds the classes and their total weights."""
    return Layout(
        numbers,
        categories,
        list(dict.fromkeys([*options.id, *filter(None, [options.one_per])])),
        options.target,
        0.5 if options.threshold is None else options.threshold,
        _positive(*target, options),
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


def _held_out(classifier: Any) -> dict[str, dict[str, float]]:
    """Collect what the parts of a model score on held-out rows; nothing for the paper's method."""
    if classifier.method == "paper":
        return {}
    figures = {
        "log_loss": classifier.held_out_losses_,
        "accuracy": classifier.held_out_accuracies_,
        "auc": classifier.held_out_aucs_,
    }
    return {
        part: {name: scores[part] for name, scores in figures.items()}
        for part in classifier.held_out_losses_
    }
