"""Helpers that read fitted estimators, for displays and reports."""

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import FloatArray, IntArray
from popf.probability.columns import names_of_features


def steps_of(estimator: Any) -> list[Any]:
    """List the steps of a pipeline, with nested pipelines flattened; otherwise the estimator alone."""
    if not isinstance(estimator, Pipeline):
        return [] if estimator in (None, "passthrough") else [estimator]
    return [inner for _, step in estimator.steps for inner in steps_of(step)]


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return steps_of(estimator)[-1]


def fitted_step(estimator: Any, kinds: tuple[type, ...], what: str) -> Any:
    """Return the last step; raise an error unless it is fitted and an instance of one of `kinds`."""
    last = last_step(estimator)
    if not isinstance(last, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"{type(last).__name__} has no {what}; pass a fitted {names}, or a Pipeline that ends in one."
        )
    check_is_fitted(last)
    return last


def as_forest_sees(estimator: Any, X: Any) -> FloatArray:
    """Return samples as the forest sees them: transformed by the pipeline's steps, squashed and mapped."""
    *steps, last = steps_of(estimator)
    for step in steps:
        X = step.transform(X)
    if hasattr(X, "columns") and hasattr(last, "feature_names_in_"):
        X = X[list(last.feature_names_in_)]
    with warnings.catch_warnings():  # arrays have no feature names
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        prepare = getattr(last, "prepare", np.asarray)
        return np.ascontiguousarray(prepare(X), dtype=np.float64)


def owners_after(step: Any, owners: list[str] | None) -> list[str] | None:
    """Name the input column from which a step makes each output column; None if columns have no names."""
    if hasattr(step, "owners_"):  # a TableEncoder, which makes several columns from one
        given = names_of_features(step) if owners is None else owners
        return [given[column] for column in step.owners_]
    if isinstance(step, OneToOneFeatureMixin):
        return owners
    with suppress(AttributeError, ValueError):  # a step without feature names
        return [str(name) for name in step.get_feature_names_out()]
    return None


def features_of_axes(classifier: Any) -> IntArray | None:
    """Return the feature behind each axis of the forest's space; None if a linear map mixes features."""
    pool: Any = getattr(classifier, "pool_", None)
    matrix = None if pool is None else pool.forest.matrix
    if matrix is None:
        table = getattr(classifier, "table_", None)
        return np.arange(classifier.n_features_in_ if table is None else len(table.encoding.owners))
    if not np.array_equal(matrix, np.diag(np.diagonal(matrix))):
        return None
    features: IntArray = pool.scaler.columns
    return features


def one_sample(sample: Any) -> Any:
    """Reshape one sample to a single row; a DataFrame of one row is returned unchanged."""
    shape = np.shape(sample)
    if len(shape) == 1 and hasattr(sample, "iloc"):  # a row of a DataFrame, with its column names
        return sample.to_frame().T.infer_objects()
    if len(shape) == 1:
        return np.asarray(sample)[np.newaxis]
    if len(shape) != 2 or shape[0] != 1:
        raise ValueError(
            f"sample has the shape {shape}; pass one sample, (n_features,) or (1, n_features)."
        )
    return sample
