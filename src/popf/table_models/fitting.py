"""Fit a model to a table: split off test rows, choose the threshold, fit."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from popf.dates import periods_of
from popf.display.estimators import last_step
from popf.engine.structures import FloatArray, IntArray
from popf.forest.metrics import choose_metric
from popf.formatting import counted
from popf.metrics import spread_of_periods
from popf.metrics.thresholds import HUNDREDTHS, best_threshold, count_at_thresholds
from popf.paper.classifier import PlattOPFClassifier
from popf.probability import ConsumptionFeatures, POPFClassifier, TableEncoder
from popf.probability.columns import read_training
from popf.table_models.cautions import cautions_of
from popf.table_models.model import Layout, TableModel
from popf.table_models.training_rows import (
    FitOptions,
    TrainingRows,
    check_options,
    read_training_rows,
    with_role,
)
from popf.tables import Table
from popf.tables.columns import RowGroups, find_class

#: Pairs of labels, in lower case, of which the second is the positive class.
CONVENTIONAL = (("0", "1"), ("false", "true"), ("no", "yes"), ("n", "y"))
#: Number of cross-validation folds for choosing the threshold by cost.
FOLDS = 5


class TestRows(NamedTuple):
    """The rows that a model was tested on."""

    codes: IntArray  # the true classes, as positions
    probability: FloatArray
    groups: RowGroups
    periods: tuple[list[str], IntArray] | None  # names, and the period of each row


class Fitted(NamedTuple):
    """A fitted model, and what `popf fit` reports about it."""

    table_model: TableModel
    counts: dict[Any, int]  # training rows of each class, without those of weight 0
    # Held-out log loss, accuracy and AUC of each part; empty for the paper's method.
    held_out: dict[str, dict[str, float]]
    costs: dict[str, float] | None  # cost per row in cross-validation; None without costs
    gaps: dict[str, int]  # number of missing cells, by column
    rows: TrainingRows
    test: "TestRows | None"
    # Mean absolute contributions to the log odds of the test rows or, without these, of the training rows;
    # None for models that have none.
    importances: dict[str, float] | None


def fit_table(
    table: Table, options: FitOptions, stage: Callable[[str], None] = lambda text: None
) -> Fitted:
    r"""Fit a model to a table.

    Parameters
    ----------
    table : Table
    options : FitOptions
    stage : callable
        Called with a description of each stage.

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
    check_options(options)
    stage(f"reading {table.path}")
    rows = read_training_rows(table, options)
    train, held_out = _split_off_test_rows(rows, options)
    frame, y = rows.frame.iloc[train], rows.y[train]
    classes, codes = np.unique(y, return_inverse=True)
    categories = with_role(rows.columns, "category")
    model, weights = _unfitted(rows, categories, options), None
    if rows.weights is not None:
        weights = rows.weights[train] / rows.weights[train].mean()
    positive = _positive(classes, np.bincount(codes, weights), options)
    groups = rows.groups.take(train).numbers
    threshold, threshold_from, costs = _threshold(
        model, (frame, y, weights, groups), positive, options, stage
    )
    stage(f"fitting {len(y):,} rows")
    last_step(model).set_params(threshold=threshold if positive == 1 else 1.0 - threshold)
    model.fit(frame, y, **_fit_parameters(model, weights, groups))
    test = None
    if len(held_out):
        stage(f"scoring {len(held_out):,} test rows")
        probability = model.predict_proba(rows.frame.iloc[held_out])
        test = TestRows(
            np.searchsorted(classes, rows.y[held_out]),
            probability,
            rows.groups.take(held_out),
            None if rows.times is None else periods_of(rows.times[held_out], rows.are_dates),
        )
    spread = None
    if rows.times is not None and len(classes) == 2:
        periods = periods_of(rows.times[train], rows.are_dates)[1]
        spread = spread_of_periods(codes == positive, periods)
    fitted_rows = rows.frame.index[train].tolist()
    layout = Layout(
        with_role(rows.columns, "number"),
        categories,
        with_role(rows.columns, "date"),
        ids=list(dict.fromkeys([*options.id, *filter(None, [options.one_per])])),
        target=options.target,
        time=options.time,
        spread=spread,
        threshold=threshold,
        positive=positive,
        threshold_from=threshold_from,
        source=table.path.name,
        cost_fp=options.cost_fp,
        cost_fn=options.cost_fn,
        rows=None if len(fitted_rows) == rows.n_read else fitted_rows,
    )
    table_model = TableModel(model, layout)
    matrix, columns = read_training(frame, categories)
    if columns is not None:
        cautions = cautions_of(columns, matrix, y)
        layout.cautions.extend(cautions.sentences())
    unseen = rows.frame.iloc[held_out if len(held_out) else train]
    return Fitted(
        table_model,
        dict(zip(classes.tolist(), np.bincount(codes).tolist(), strict=True)),
        _held_out(last_step(model)),
        costs,
        {name: n for name, n in frame.isna().sum().items() if n},
        rows,
        test,
        table_model.importances(unseen),
    )


def _unfitted(rows: TrainingRows, categories: list[str], options: FitOptions) -> Any:
    """Return an unfitted classifier of frames, alone where it encodes them by itself."""
    shared: dict[str, Any] = {"metric": options.metric, "n_jobs": options.n_jobs}
    # Units matter to distances, which need the same features everywhere.
    steps: list[Any] = [TableEncoder(categories), *([StandardScaler()] if options.scale else [])]
    if options.method == "paper":
        steps.append(PlattOPFClassifier(**shared))
    else:
        steps.append(POPFClassifier(options.method, linear_map=options.linear_map, **shared))
        if choose_metric(options.metric, None).euclidean:
            steps = [steps[-1].set_params(categorical_features=categories)]
    if rows.readings:
        steps.insert(0, ConsumptionFeatures(rows.readings))
    return make_pipeline(*steps) if len(steps) > 1 else steps[0]


def _strata(groups: IntArray, y: NDArray[Any], needs: str, remedy: str) -> IntArray:
    """Return the rarest class of each group, to stratify by; raise ValueError if a class has only one group."""
    classes, codes = np.unique(y, return_inverse=True)
    by_frequency = np.argsort(np.bincount(codes), kind="stable")
    rarest = np.full(groups.max() + 1, len(by_frequency))
    np.minimum.at(rarest, groups, np.argsort(by_frequency)[codes])
    strata: IntArray = by_frequency[rarest]
    alone = np.flatnonzero(np.bincount(strata) == 1)
    if len(alone):
        unit = "rows" if len(strata) == len(y) else "different values of `id`"
        raise ValueError(
            f"{needs} two {unit} in every class, but {classes[alone[0]]!s} has only one: {remedy}."
        )
    return strata


def _split_off_test_rows(rows: TrainingRows, options: FitOptions) -> tuple[Any, Any]:
    """Return the positions of training and test rows; groups stay whole, stratified by their rarest class."""
    numbers = np.arange(len(rows.y))
    if options.test_size is None:
        return numbers, numbers[:0]
    if rows.times is not None:
        return _split_by_time(rows, rows.times, options.test_size)
    remedy = "give more rows of this class, or leave out the class or `test_size`"
    strata = _strata(rows.groups.numbers, rows.y, "`test_size` needs", remedy)
    try:
        _, drawn = train_test_split(
            np.arange(len(strata)),
            test_size=options.test_size,
            stratify=strata,
            random_state=options.seed,
        )
    except ValueError as error:
        raise ValueError(f"`test_size`: {error}") from error
    in_test = np.isin(rows.groups.numbers, drawn)
    return numbers[~in_test], numbers[in_test]


def _split_by_time(rows: TrainingRows, times: FloatArray, test_size: float) -> tuple[Any, Any]:
    """Return the positions of earlier and of the latest rows; equal times stay together, and groups whole."""
    found, codes, counts = np.unique(times, return_inverse=True, return_counts=True)
    if len(found) == 1:
        raise ValueError(
            f"`time` holds one period only in all {len(times):,} rows: leave out `time` or `test_size`."
        )
    n_later = len(times) - np.cumsum(counts)[:-1]
    latest = codes > np.abs(n_later - test_size * len(times)).argmin()
    again = ~latest & np.isin(rows.groups.numbers, rows.groups.numbers[latest])
    train = np.flatnonzero(~latest & ~again)
    if again.any():
        which = f"{counted(int(again.sum()), 'earlier row')} with a value of {rows.groups.id!r}"
        rows.notes.append(f"{which} in the test rows are left out, because ids stay whole.")
    for label in np.unique(rows.y):
        if label not in rows.y[train]:
            without = " without ids of the test rows" if again.any() else ""
            raise ValueError(
                f"`time`: no earlier row{without} is of class {label!s}: give `test_size` a smaller value, or "
                f"leave it{' or `id`' if without else ''} out."
            )
    return train, np.flatnonzero(latest)


def _positive(classes: NDArray[Any], masses: NDArray[Any], options: FitOptions) -> int:
    """Return the position of the positive class: the one in the options, else by convention, else the rarer."""
    if options.positive is not None:
        return find_class(options.positive, classes)
    if len(classes) != 2:
        return 1
    plain = tuple(str(label).strip().lower() for label in classes)
    for pair in CONVENTIONAL:
        if set(plain) == set(pair):
            return plain.index(pair[1])
    if masses[0] == masses[1] and (options.cost_fp is not None or options.threshold is not None):
        raise ValueError(
            f"{classes[0]!s} and {classes[1]!s} are equally frequent: choose the class that `threshold` and "
            f"costs refer to, `positive={str(classes[0])!r}` or `positive={str(classes[1])!r}`."
        )
    return 0 if masses[0] < masses[1] else 1


def _held_out(classifier: Any) -> dict[str, dict[str, float]]:
    """Return the held-out scores of each part of a model; empty for the paper's method."""
    if isinstance(classifier, PlattOPFClassifier):
        return {}
    scores = {
        "log_loss": classifier.held_out_losses_,
        "accuracy": classifier.held_out_accuracies_,
        "auc": classifier.held_out_aucs_,
    }
    return {
        part: {name: by_part[part] for name, by_part in scores.items()}
        for part in classifier.held_out_losses_
    }


def _fit_parameters(
    model: Any, weights: FloatArray | None, groups: IntArray
) -> dict[str, NDArray[Any]]:
    """Return fit parameters: weights for the steps that take them, and groups for a classifier that does."""
    steps = [(f"{name}__", step) for name, step in getattr(model, "steps", [])] or [("", model)]
    found: dict[str, NDArray[Any]] = {}
    if weights is not None:
        found = {
            f"{name}sample_weight": weights
            for name, step in steps
            if has_fit_parameter(step, "sample_weight")
        }
    if 1 < groups.max() + 1 < len(groups) and has_fit_parameter(steps[-1][1], "groups"):
        found[f"{steps[-1][0]}groups"] = groups
    return found


def _threshold(
    model: Any,
    data: tuple[Any, NDArray[Any], FloatArray | None, IntArray],
    positive: int,
    options: FitOptions,
    stage: Callable[[str], None],
) -> tuple[float, str, dict[str, float] | None]:
    """Return the threshold, a description of where it comes from, and the costs per row.

    If costs are given, the threshold is chosen by cross-validation; a group is never split between folds.
    `data` holds features, labels, weights and groups.
    """
    if options.threshold is not None:
        return options.threshold, "given", None
    if options.cost_fp is None or options.cost_fn is None:
        return 0.5, "the default", None
    frame, y, weights, groups = data
    codes = np.unique(y, return_inverse=True)[1]
    needs, remedy = (
        "choosing a threshold by cost uses cross-validation, which needs",
        "give a `threshold`",
    )
    strata = _strata(groups, y, needs, remedy)
    if len(strata) == 2 < len(y):
        raise ValueError(
            f"{needs} three different values of `id`, but there are only two: {remedy}."
        )
    counts = np.bincount(strata)
    n_folds = min(FOLDS, int(counts[counts > 0].min()))
    stage(f"choosing a threshold by {n_folds}-fold cross-validation")
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=options.seed)
    test_masks = [np.isin(groups, fold) for _, fold in folds.split(strata, strata)]
    probability = cross_val_predict(
        model,
        frame,
        y,
        cv=[(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in test_masks],
        method="predict_proba",
        params=_fit_parameters(model, weights, groups),
    )[:, positive]
    unit_costs = (options.cost_fp, options.cost_fn)

    def cost(thresholds: Any) -> FloatArray:
        found = count_at_thresholds(codes == positive, probability, np.asarray(thresholds), weights)
        return found.mean_cost(*unit_costs)

    # Also try the threshold that would be optimal for exact probabilities.
    tried = np.union1d(HUNDREDTHS, [unit_costs[0] / sum(unit_costs)])
    best = float(tried[best_threshold(tried, -cost(tried))])
    names = ("at_threshold", "at_half", "all_negative", "all_positive")
    costs = dict(zip(names, cost([best, 0.5, np.inf, 0.0]).tolist(), strict=True))
    return best, f"lowest cost in {n_folds}-fold cross-validation", costs
