"""From a table to a model: the fit, the threshold that costs least, and what is to be said of the model."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline

from popf.labels import encode
from popf.metrics.thresholds import best_threshold, count_at_thresholds
from popf.table_models.model import Layout, TableModel
from popf.table_models.preparation import Data, TablePreparation, fit_pipeline
from popf.table_models.training_rows import (
    FitOptions,
    TrainingRows,
    check_options,
    read_training_rows,
)
from popf.tables import Table
from popf.tables.cells import find_class

FloatArray = NDArray[np.float64]
#: Folds, and thresholds, among which the costs choose.
FOLDS = 5
_THRESHOLDS = np.arange(1, 100) / 100


class Fitted(NamedTuple):
    """A fitted model, and what is to be said of it."""

    table_model: TableModel
    frame: Any  # the features it was fitted on
    counts: dict[Any, int]  # rows of every class, without those of weight 0
    # Log loss, accuracy and AUC of each part on rows held out of its fit.
    held_out: dict[str, dict[str, float]]
    costs: dict[str, float] | None  # per row, by cross-validation, where costs were given
    n_imputed: int  # missing numbers that were filled in
    rows: TrainingRows  # what was read
    # Classes and probabilities of rows kept aside.
    test: tuple[NDArray[np.int64], FloatArray] | None


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
    check_options(options)
    stage(f"reading {table.path}")
    rows = read_training_rows(table, options)
    kept, aside = _keep_aside(rows.y, options)
    frame, y, weights = rows.frame.iloc[kept], rows.y[kept], rows.weights
    weights = None if weights is None else weights[kept] / weights[kept].mean()
    numbers, categories = (
        [column.name for column in rows.columns if column.role == role]
        for role in ("number", "category")
    )
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
    test = None
    if len(aside):
        stage(f"scoring {len(aside):,} rows that were kept aside")
        test = np.searchsorted(classes, rows.y[aside]), model.predict_proba(rows.frame.iloc[aside])
    return Fitted(
        TableModel(model, layout),
        frame,
        dict(zip(classes.tolist(), np.bincount(codes).tolist(), strict=True)),
        _held_out(model["popf"]),
        costs,
        int(frame[numbers].isna().to_numpy().sum()),
        rows,
        test,
    )


def make_pipeline(numbers: list[str], categories: list[str], options: FitOptions) -> Any:
    """Make the pipeline of a table, not fitted: `TablePreparation`, then `POPFClassifier`."""
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
    try:
        kept, aside = train_test_split(
            rows, test_size=options.test_size, stratify=y, random_state=options.seed
        )
    except ValueError as error:
        raise ValueError(f"`test_size`: {error}") from error
    return np.sort(kept), np.sort(aside)


def _layout(
    numbers: list[str],
    categories: list[str],
    target: tuple[NDArray[Any], FloatArray],
    options: FitOptions,
    table: Table,
) -> Layout:
    """Describe the columns; `target` holds the classes and their total weights."""
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


def with_least_cost(
    layout: Layout,
    model: Any,
    data: Data,
    prices: tuple[float, float],
    seed: int,
    stage: Callable[[str], None],
) -> tuple[Layout, dict[str, float]]:
    """Choose the threshold of the least cost by cross-validation; `prices` are of a false alarm and a miss.

    Also returns the cost per row at the threshold, at 0.5, and of calling none and all positive.
    """
    _, y, weights = data
    classes, codes = encode(y)
    counts = np.bincount(codes)
    if counts.min() < 2:
        raise ValueError(
            f"costs need two rows of every class, to choose a threshold by cross-validation, and "
            f"{classes[counts.argmin()]!s} has one: give a `threshold`."
        )
    folds = min(FOLDS, int(counts.min()))
    probability = _left_out(model, data, folds, seed, stage)[:, layout.positive]
    happened = codes == layout.positive

    def cost(thresholds: Any) -> FloatArray:
        found = count_at_thresholds(happened, probability, np.asarray(thresholds), weights)
        return found.mean_cost(*prices)

    # What would be best if the probabilities were exact is tried too.
    tried = np.union1d(_THRESHOLDS, [prices[0] / sum(prices)])
    best = best_threshold(tried, -cost(tried))
    names = ("at_threshold", "at_half", "call_none", "call_all")
    costs = dict(zip(names, cost([tried[best], 0.5, np.inf, 0.0]).tolist(), strict=True))
    words = f"least cost over {folds}-fold cross-validated probabilities"
    layout = replace(layout, threshold=float(tried[best]), threshold_from=words)
    return replace(layout, cost_fp=prices[0], cost_fn=prices[1]), costs


def _left_out(
    model: Any, data: Data, folds: int, seed: int, stage: Callable[[str], None]
) -> FloatArray:
    """Return every row the probabilities of a model fitted without it."""
    frame, y, weights = data
    probability = np.empty((len(y), len(np.unique(y))))
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(frame, y)
    for fold, (seen, new) in enumerate(splits, start=1):
        stage(f"choosing a threshold, fold {fold} of {folds}")
        mass = None if weights is None else weights[seen]
        one = fit_pipeline(clone(model), (frame.iloc[seen], y[seen], mass))
        probability[new] = one.predict_proba(frame.iloc[new])
    return probability
