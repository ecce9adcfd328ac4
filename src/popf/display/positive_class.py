"""The class whose probability is drawn."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from popf.metrics.checks import as_probabilities, class_index, shown

FloatArray = NDArray[np.float64]


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
    if pos_label is None:
        if len(classes) != 2:
            raise ValueError(
                f"{type(estimator).__name__} knows {len(classes)} classes ({shown(classes)}); name the "
                "one to draw against all others as in pos_label=..."
            )
        pos_label = classes.tolist()[1]
    column = class_index(pos_label, classes)
    probability: FloatArray = np.asarray(estimator.predict_proba(X))[:, column]
    return probability, pos_label


def last_step(estimator: Any) -> Any:
    """Return the classifier itself, of a pipeline its last step."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator
