"""What displays and reports ask of a fitted estimator."""

import warnings
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import FloatArray


def steps_of(estimator: Any) -> list[Any]:
    """List the steps of a pipeline, those of pipelines within it included; for anything else, itself."""
    if not isinstance(estimator, Pipeline):
        return [] if estimator in (None, "passthrough") else [estimator]
    return [inner for _, step in estimator.steps for inner in steps_of(step)]


def last_step(estimator: Any) -> Any:
    """Return the classifier itself, of a pipeline its last step."""
    return steps_of(estimator)[-1]


def fitted_step(estimator: Any, kinds: tuple[type, ...], what: str) -> Any:
    """Return the classifier itself, of a pipeline its last step, if it is a fitted one of these kinds."""
    last = last_step(estimator)
    if not isinstance(last, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"{type(last).__name__} has no {what}; pass a fitted {names}, or a Pipeline that ends in one."
        )
    check_is_fitted(last)
    return last


def as_forest_sees(estimator: Any, X: Any) -> FloatArray:
    """Return samples as the forest of an estimator sees them: after a pipeline's steps, squashed and mapped."""
    *steps, last = steps_of(estimator)
    for step in steps:
        X = step.transform(X)
    if hasattr(X, "columns") and hasattr(last, "feature_names_in_"):
        X = X[list(last.feature_names_in_)]
    with warnings.catch_warnings():  # an array has no names, which is no reason to warn
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        prepare = getattr(last, "prepare", np.asarray)
        return np.ascontiguousarray(prepare(X), dtype=np.float64)


def one_sample(sample: Any) -> Any:
    """Make one sample a table of one row; a row of a DataFrame stays one."""
    shape = np.shape(sample)
    if len(shape) == 1:
        return np.asarray(sample)[np.newaxis]
    if len(shape) != 2 or shape[0] != 1:
        raise ValueError(
            f"sample has the shape {shape}; pass one sample, (n_features,) or (1, n_features)."
        )
    return sample
