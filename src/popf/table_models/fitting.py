"""From a table to a model: the fit, the threshold that costs least, and what is to be said of the model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import Pipeline

from popf.engine.structures import FloatArray, IntArray
from popf.metrics.thresholds import best_threshold, count_at_thresholds
from popf.probability.classifier import POPFClassifier
from popf.table_models.model import Layout, TableModel, TablePreparation
from popf.table_models.training_rows import (
    FitOptions,
    TrainingRows,
    check_options,
    read_training_rows,
    with_role,
)
from popf.tables import Table
from popf.tables.cells import find_class

#: Folds, and thresholds, among which the costs choose.
FOLDS = 5
_THRESHOLDS = np.arange(1, 100) / 100


class Fitted(NamedTuple):
    """A fitted model, and what is to be said of it."""

    table_model: TableModel
    counts: dict[Any, int]  # rows of every class, without those of weight 0
    # Log loss, accuracy and AUC of each part on rows held out of its fit; nothing for the paper's method.
    held_out: dict[str, dict[str, float]]
    costs: dict[str, float] | None  # per row, by cross-validation, where costs were given
    n_imputed: int  # missing numbers that were filled in
    rows: TrainingRows  # what was read
    # Classes and probabilities of rows kept aside.
    test: tuple[IntArray, FloatArray] | None


def fit_table(
    table: Table, options: FitOptions, stage: Callable[[str], None] = lambda text: None
) -> Fitted:
    r"""Fit a model to a table.

    Parameters
    ----------
    table : Table
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
    kept, aside = _keep_aside(rows, options)
    frame, y = rows.frame.iloc[kept], rows.y[kept]
    classes, codes = np.unique(y, return_inverse=True)
    numbers, categories = with_role(rows.columns, "number"), with_role(rows.columns, "category")
    model, weights = _pipeline(numbers, categories, options), None
    if rows.weights is not None:
        weights = rows.weights[kept] / rows.weights[kept].mean()
    positive = _positive(classes, np.bincount(codes, weights), options)
    threshold, words, costs = _threshold(model, (frame, y, weights), positive, options, stage)
    stage(f"fitting {len(y):,} rows")
    model.set_params(popf__threshold=threshold if positive == 1 else 1.0 - threshold)
    model.fit(frame, y, **_fit_parameters(model, weights))
    test = None
    if len(aside):
        stage(f"scoring {len(aside):,} rows that were kept aside")
        test = np.searchsorted(classes, rows.y[aside]), model.predict_proba(rows.frame.iloc[aside])
    layout = Layout(
        numbers,
        categories,
        ids=list(dict.fromkeys([*options.id, *filter(None, [options.one_per])])),
        target=options.target,
        threshold=threshold,
        positive=positive,
        missing=options.missing,
        threshold_from=words,
        source=table.path.name,
        cost_fp=options.cost_fp,
        cost_fn=options.cost_fn,
    )
    return Fitted(
        TableModel(model, layout),
        dict(zip(classes.tolist(), np.bincount(codes).tolist(), strict=True)),
        _held_out(model["popf"]),
        costs,
        int(frame[numbers].isna().to_numpy().sum()),
        rows,
        test,
    )


def _pipeline(numbers: list[str], categories: list[str], options: FitOptions) -> Any:
    """Make the pipeline of a table, not fitted: `TablePreparation`, then `POPFClassifier`."""
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


def _keep_aside(rows: TrainingRows, options: FitOptions) -> tuple[Any, Any]:
    """Split the rows into those to fit and those to keep aside, by groups, each with its rarest class."""
    numbers = np.arange(len(rows.y))
    if options.test_size is None:
        return numbers, numbers[:0]
    codes = np.unique(rows.y, return_inverse=True)[1]
    by_frequency = np.argsort(np.bincount(codes), kind="stable")
    rarest = np.full(rows.groups.max() + 1, len(by_frequency))
    np.minimum.at(rarest, rows.groups, np.argsort(by_frequency)[codes])
    try:
        _, drawn = train_test_split(
            np.arange(len(rarest)),
            test_size=options.test_size,
            stratify=by_frequency[rarest],
            random_state=options.seed,
        )
    except ValueError as error:
        together = "" if len(rarest) == len(numbers) else ", which keeps rows of one `id` together"
        raise ValueError(f"`test_size`{together}: {error}") from error
    aside = np.isin(rows.groups, drawn)
    return numbers[~aside], numbers[aside]


def _positive(classes: NDArray[Any], masses: NDArray[Any], options: FitOptions) -> int:
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


def _fit_parameters(model: Any, weights: FloatArray | None) -> dict[str, FloatArray]:
    """Give the weights, if there are any, to every step of a pipeline."""
    return {} if weights is None else {f"{name}__sample_weight": weights for name, _ in model.steps}


def _threshold(
    model: Any,
    data: tuple[Any, NDArray[Any], FloatArray | None],
    positive: int,
    options: FitOptions,
    stage: Callable[[str], None],
) -> tuple[float, str, dict[str, float] | None]:
    """Choose the threshold, by cross-validation where costs are given.

    Returns it, where it comes from, in words, and costs per row. `data` are features, labels, weights.
    """
    if options.threshold is not None:
        return options.threshold, "given", None
    if options.cost_fp is None or options.cost_fn is None:
        return 0.5, "the default", None
    frame, y, weights = data
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes)
    if counts.min() < 2:
        raise ValueError(
            f"costs need two rows of every class, to choose a threshold by cross-validation, and "
            f"{classes[counts.argmin()]!s} has one: give a `threshold`."
        )
    n_folds = min(FOLDS, int(counts.min()))
    stage(f"choosing a threshold by {n_folds}-fold cross-validation")
    probability = cross_val_predict(
        model,
        frame,
        y,
        cv=StratifiedKFold(n_folds, shuffle=True, random_state=options.seed),
        method="predict_proba",
        params=_fit_parameters(model, weights),
    )[:, positive]
    prices = (options.cost_fp, options.cost_fn)

    def cost(thresholds: Any) -> FloatArray:
        found = count_at_thresholds(codes == positive, probability, np.asarray(thresholds), weights)
        return found.mean_cost(*prices)

    # What would be best if the probabilities were exact is tried too.
    tried = np.union1d(_THRESHOLDS, [prices[0] / sum(prices)])
    best = float(tried[best_threshold(tried, -cost(tried))])
    names = ("at_threshold", "at_half", "call_none", "call_all")
    costs = dict(zip(names, cost([best, 0.5, np.inf, 0.0]).tolist(), strict=True))
    return best, f"least cost over {n_folds}-fold cross-validated probabilities", costs
