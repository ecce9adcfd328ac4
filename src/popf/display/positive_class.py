"""The class whose probability is drawn, in labels and in estimators."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from popf.labels import encode
from popf.metrics.checks import as_labels, as_probabilities, check_same_kind, shown

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Pairs of labels of which the second is the positive one even where the first does not occur.
_CONVENTIONAL = ({0, 1}, {-1, 1})


def event(y_true: ArrayLike, pos_label: Any) -> tuple[BoolArray, Any]:
    """Find which samples are of the positive class, the second of two if None, and which class that is."""
    labels = as_labels(y_true, "y_true")
    classes, _ = encode(labels)
    names: list[Any] = classes.tolist()
    if pos_label is None:
        if labels.dtype.kind != "b" and len(names) == 2:
            pos_label = names[1]
        elif any(set(names) <= pair for pair in _CONVENTIONAL):
            pos_label = labels.dtype.type(1).item()
        else:
            raise ValueError(
                f"y_true holds {len(names)} classes ({shown(classes)}), so which one is positive is "
                "not clear; name it as in pos_label=..., and it is drawn against all others."
            )
    check_same_kind(labels, np.array([pos_label]), "y_true", "pos_label")
    if len(names) > 1 and pos_label not in names:
        raise ValueError(f"pos_label={pos_label!r} is not a class; y_true holds {shown(classes)}.")
    return labels == pos_label, pos_label


def probability_of(y_prob: ArrayLike) -> FloatArray:
    """Check probabilities of one class."""
    table = as_probabilities(y_prob)
    if table.ndim != 1:
        raise ValueError(
            f"y_prob has the shape {table.shape}; a curve shows one class: pass its column, as in "
            "y_prob[:, 1], and its name as pos_label."
        )
    return table


def check_classifier(estimator: Any) -> None:
    """Raise an error unless `estimator` is a fitted classifier that gives probabilities."""
    name = type(estimator).__name__
    if isinstance(estimator, type):
        raise TypeError(f"{estimator.__name__} is a class; pass a fitted object of it.")
    if not hasattr(estimator, "fit") or not is_classifier(estimator):
        raise ValueError(
            f"{name} is not a classifier; pass a fitted classifier that has predict_proba, such as "
            "POPFClassifier."
        )
    check_is_fitted(estimator)
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{name} has no predict_proba; use POPFClassifier, or wrap it in "
            "sklearn.calibration.CalibratedClassifierCV."
        )


def predicted(estimator: Any, X: ArrayLike, pos_label: Any) -> tuple[FloatArray, Any]:
    """Predict the probability of the positive class, the second of two if None; return it and the class."""
    check_classifier(estimator)
    classes = np.asarray(estimator.classes_)
    names: list[Any] = classes.tolist()
    if pos_label is None:
        if len(names) != 2:
            raise ValueError(
                f"{type(estimator).__name__} knows {len(names)} classes ({shown(classes)}); name the "
                "one to draw against all others as in pos_label=..."
            )
        pos_label = names[1]
    if pos_label not in names:
        raise ValueError(f"pos_label={pos_label!r} is not a class; use one of {shown(classes)}.")
    probability: FloatArray = np.asarray(estimator.predict_proba(X))[:, names.index(pos_label)]
    return probability, pos_label


def last_step(estimator: Any) -> Any:
    """Return the classifier itself, of a pipeline its last step."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator
