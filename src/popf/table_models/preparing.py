"""The steps before the forest, fitted so that a row of weight 2 counts as two rows, in each of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from popf.probability.squashing import weighted_quantile

if TYPE_CHECKING:
    from popf.table_models.fitting import FitOptions

FloatArray = NDArray[np.float64]


def make_pipeline(numbers: list[str], categories: list[str], options: "FitOptions") -> Any:
    """Make the pipeline of a table, not fitted: imputing, scaling and encoding, then the classifier.

    Parameters
    ----------
    numbers, categories : list of str
        The columns.
    options : FitOptions

    Returns
    -------
    Pipeline
        Of the steps ``columns`` and ``popf``.

    Examples
    --------
    >>> from popf.table_models import FitOptions
    >>> from popf.table_models.preparing import make_pipeline
    >>> model = make_pipeline(["size"], ["colour"], FitOptions("stolen", missing="median"))
    >>> [(name, [step for step, _ in part.steps]) for name, part, _ in model["columns"].transformers]
    [('numbers', ['impute', 'scale']), ('categories', ['impute', 'encode'])]
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from popf import POPFClassifier

    impute = options.missing != "refuse"
    for_numbers: list[Any] = [("impute", SimpleImputer(strategy=options.missing))] if impute else []
    for_numbers += [("scale", StandardScaler())] if options.scale else []
    for_text: list[Any] = [("impute", SimpleImputer(strategy="most_frequent"))] if impute else []
    for_text += [("encode", OneHotEncoder(handle_unknown="ignore", sparse_output=False))]
    parts: list[Any] = []
    if numbers:
        one = Pipeline(for_numbers) if for_numbers else "passthrough"
        parts.append(("numbers", one, numbers))
    if categories:
        parts.append(("categories", Pipeline(for_text), categories))
    classifier = POPFClassifier(
        options.method,
        linear_map=None if options.linear_map == "none" else options.linear_map,
        metric=options.metric,
        random_state=options.seed,
        n_jobs=options.n_jobs,
    )
    return Pipeline([("columns", ColumnTransformer(parts)), ("popf", classifier)])


def fit_weighted(model: Any, frame: Any, y: Any, weights: FloatArray | None) -> Any:
    """Fit a pipeline of `make_pipeline`, all of its steps by the weights.

    Parameters
    ----------
    model : Pipeline
    frame : pandas.DataFrame
        The features.
    y : ndarray
        The labels.
    weights : ndarray or None
        All positive: rows of weight zero are left out before.

    Returns
    -------
    Pipeline
        `model`, fitted.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas
    >>> from popf.table_models import FitOptions
    >>> from popf.table_models.preparing import fit_weighted, make_pipeline
    >>> model = make_pipeline(["size"], [], FitOptions("stolen"))
    >>> frame = pandas.DataFrame({"size": [0.0, 4.0, 8.0]})
    >>> fitted = fit_weighted(model, frame, np.array([0, 0, 1]), np.array([1.0, 1.0, 2.0]))
    >>> fitted["columns"].named_transformers_["numbers"]["scale"].mean_
    array([5.])
    """
    if weights is None:
        return model.fit(frame, y)
    columns, classifier = model["columns"], model["popf"]
    columns.fit(frame)
    for _, part, names in columns.transformers_:
        if hasattr(part, "steps"):  # else there is nothing to fit
            _weigh(part, frame[names], weights)
    classifier.fit(columns.transform(frame), y, sample_weight=weights)
    return model


def _weigh(part: Any, cells: Any, weights: FloatArray) -> None:
    """Replace what the steps have learnt of some columns by what weighted rows say.

    The imputer of scikit-learn takes no weights, so its statistics are set. The encoder has nothing to weigh.
    """
    for name, step in part.steps:
        if name == "impute":
            step.statistics_ = _statistics(step, cells, weights)
        elif name == "scale":
            # Only shares matter here; a sum of weights far from the number of rows would spoil the scaler's
            # test for constant columns, which takes the sum for that number.
            step.fit(cells, sample_weight=weights / weights.mean())
        cells = step.transform(cells)


def _statistics(imputer: Any, cells: Any, weights: FloatArray) -> NDArray[Any]:
    """Give what stands for a missing cell, by column."""
    statistic_of = _STATISTICS[imputer.strategy]
    statistics: NDArray[Any] = imputer.statistics_.copy()
    present = cells.notna().to_numpy()
    for at, name in enumerate(cells):
        here = present[:, at]
        if here.any():  # a column without any cell stays as the imputer has it
            statistics[at] = statistic_of(cells[name].to_numpy()[here], weights[here])
    return statistics


def _mean(values: FloatArray, weights: FloatArray) -> float:
    return float(np.average(values, weights=weights))


def _most_frequent(values: NDArray[Any], weights: FloatArray) -> Any:
    """Give the value of the largest weight; of several the smallest, as the imputer does."""
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct[np.bincount(codes, weights).argmax()]


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    return float(weighted_quantile(values[:, None], weights, 0.5)[0])


_STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": _mean,
    "median": _weighted_median,
    "most_frequent": _most_frequent,
}
