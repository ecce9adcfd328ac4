"""What displays and reports ask of a fitted estimator."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from popf.display import canvas
from popf.engine.structures import FloatArray
from popf.metrics.checks import as_probabilities, class_index, shown


class CurveDisplay:
    """A display that draws curves of the probability of one class, by `from_predictions`."""

    from_predictions: Any
    named = False  # whether the curve has the name of the classifier

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, pos_label: Any = None, **options: Any
    ) -> Self:
        """Draw the curves of a fitted classifier.

        Parameters
        ----------
        estimator : classifier or Pipeline
            Fitted, with ``predict_proba``.
        X, y : array-like of shape (n_samples, n_features) and (n_samples,)
            Samples that it was not fitted to, and their labels.
        pos_label : int, float, bool or str, default=None
            The positive class, drawn against all others; None for the second of two.
        **options
            Those of `from_predictions`; the name in the legend is that of the class, unless it is given.
        """
        canvas.need_matplotlib()
        probability, pos_label = predicted(estimator, X, pos_label)
        if cls.named and options.get("name") is None:
            options["name"] = type(last_step(estimator)).__name__
        display: Self = cls.from_predictions(y, probability, pos_label=pos_label, **options)
        return display


def probability_of(y_prob: ArrayLike) -> FloatArray:
    """Check probabilities of one class."""
    table = as_probabilities(y_prob)
    if table.ndim != 1:
        raise ValueError(
            f"y_prob has the shape {table.shape}; a curve shows one class: pass its column, as in "
            "y_prob[:, 1], and its name as pos_label."
        )
    return table


def predicted(estimator: Any, X: ArrayLike, pos_label: Any) -> tuple[FloatArray, Any]:
    """Predict the probability of the positive class, the second of two if None; return it and the class."""
    name = type(estimator).__name__
    check_is_fitted(estimator)
    if not is_classifier(estimator):
        raise ValueError(
            f"{name} is not a classifier; pass a fitted classifier that has predict_proba, such as "
            "POPFClassifier."
        )
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{name} has no predict_proba; use POPFClassifier, or wrap it in "
            "sklearn.calibration.CalibratedClassifierCV."
        )
    classes = np.asarray(estimator.classes_)
    if pos_label is None:
        if len(classes) != 2:
            raise ValueError(
                f"{name} knows {len(classes)} classes ({shown(classes)}); name the "
                "one to draw against all others as in pos_label=..."
            )
        pos_label = classes.tolist()[1]
    column = class_index(pos_label, classes)
    return np.asarray(estimator.predict_proba(X))[:, column], pos_label


def last_step(estimator: Any) -> Any:
    """Return the classifier itself, of a pipeline its last step."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


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
    while isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator[-1]
    if hasattr(X, "columns") and hasattr(estimator, "feature_names_in_"):
        X = X[list(estimator.feature_names_in_)]
    with warnings.catch_warnings():  # an array has no names, which is no reason to warn
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        prepare = getattr(estimator, "prepare", np.asarray)
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
