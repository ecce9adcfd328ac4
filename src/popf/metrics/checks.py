"""Validation of the arguments of metrics: labels, probabilities, weights and groups."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import _check_sample_weight

from popf.formatting import listed

# Also defined in the engine, which metrics do not import.
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Labels = NDArray[Any]

#: Allowed difference of the sum of a row of probabilities from 1. Probabilities may be in single precision or
#: rounded to four digits, and no metric is known more precisely than that.
SUM_TOLERANCE = 1e-3
#: Pairs of labels in which 1 is the positive class even if only one of the two occurs.
CONVENTIONAL = ({0, 1}, {-1, 1})


def shown(labels: Labels) -> str:
    """Format labels for a message; only the first few if there are many."""
    return listed([repr(label) for label in labels.tolist()], 6)


def class_index(label: Any, classes: Labels, name: str = "pos_label") -> int:
    """Return the index of a label in `classes`."""
    known: list[Any] = classes.tolist()
    if label not in known:
        raise ValueError(f"`{name}={label!r}` is not a class; use one of {shown(classes)}.")
    return known.index(label)


def as_labels(y: ArrayLike, name: str) -> Labels:
    """Convert class labels to a one-dimensional array of integers, booleans, integral floats or strings."""
    if isinstance(y, list | tuple):
        y = np.array(y, dtype=object)  # otherwise NumPy would turn ["a", 1] into two strings
    labels: Labels = column_or_1d(y)
    if len(labels) == 0:
        raise ValueError(f"{name} is empty; pass at least one label.")
    if labels.dtype.kind in "biuUS":
        return labels
    values: list[Any] = labels.tolist()
    for row, value in enumerate(values):
        if not isinstance(value, int | str | bytes) and not (
            isinstance(value, float) and value.is_integer()
        ):
            raise ValueError(
                f"{name} holds {value!r} at row {row}, which is not a class label; use integers, booleans or "
                "strings, drop samples whose label is missing, and turn probabilities into labels first, "
                "for instance by y_prob >= 0.5."
            )
    if len({isinstance(value, str | bytes) for value in values}) > 1:
        raise ValueError(f"{name} holds strings and numbers; give all labels one type.")
    return np.array(values)


def event(y_true: ArrayLike, pos_label: Any) -> tuple[BoolArray, Any]:
    """Return which samples are positive, and the positive class: the second of two if `pos_label` is None."""
    labels = as_labels(y_true, "y_true")
    classes = np.unique(labels)
    names: list[Any] = classes.tolist()
    if pos_label is None:
        if labels.dtype.kind != "b" and len(names) == 2:
            pos_label = names[1]
        elif any(set(names) <= pair for pair in CONVENTIONAL):
            pos_label = labels.dtype.type(1).item()
        else:
            raise ValueError(
                f"y_true holds {len(names)} classes ({shown(classes)}), so which one is positive is "
                "not clear; name it by pos_label=..., and all others count as negative."
            )
    check_same_kind(labels, np.array([pos_label]), "y_true", "pos_label")
    if len(names) > 1:
        class_index(pos_label, classes)
    return labels == pos_label, pos_label


def check_same_length(y: Labels, other: NDArray[Any], name: str) -> None:
    """Raise ValueError unless `other` has one row for each label in `y`."""
    if len(y) != len(other):
        raise ValueError(
            f"y_true has {len(y)} samples and {name} has {len(other)}; pass both for the same samples."
        )


def check_same_kind(one: Labels, other: Labels, its_name: str, other_name: str) -> None:
    """Raise ValueError if strings would be compared with numbers."""
    if (one.dtype.kind in "US") != (other.dtype.kind in "US"):
        raise ValueError(
            f"{its_name} holds labels like {one[:1].tolist()[0]!r} and {other_name} like "
            f"{other[:1].tolist()[0]!r}: strings and numbers are never equal; give both one type."
        )


def as_weights(sample_weight: ArrayLike | None, y: NDArray[Any]) -> FloatArray:
    """Convert weights to an array with one weight per row of `y`; all are 1 if `sample_weight` is None."""
    weights: FloatArray = _check_sample_weight(
        sample_weight, y, dtype=np.float64, ensure_non_negative=True
    )
    if not 0 < (total := weights.sum()) < np.inf:
        raise ValueError(
            f"sample_weight sums to {total}; the sum must be positive and finite: give at least one "
            "sample a positive weight, and divide huge weights by their maximum."
        )
    return weights


def group_numbers(
    groups: ArrayLike, n_samples: int, name: str = "groups"
) -> tuple[Labels, IntArray]:
    """Check the groups of samples; return the distinct groups, and the number of each sample's group."""
    values: Labels = np.asarray(groups)
    if values.shape != (n_samples,):
        raise ValueError(
            f"{name} has the shape {values.shape}, but there are {n_samples} samples: give one for each."
        )
    for row in np.flatnonzero(are_missing(values)):
        raise ValueError(f"{name}[{row}] is missing: give every sample a {name[:-1]}, or drop it.")
    try:
        found, numbers = np.unique(values, return_inverse=True)
    except TypeError:
        raise TypeError(
            f"{name} mixes values of several types, which cannot be sorted: give all of them one type, for "
            f"instance by {name}.astype(str)."
        ) from None
    return found, numbers


def is_missing(label: Any) -> bool:
    """Return whether a value is missing: None, NaN, or pandas' NA or NaT."""
    if isinstance(label, Real):
        return bool(label != label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def are_missing(values: Labels) -> BoolArray:
    """Return which values are missing."""
    if values.dtype.kind == "O":
        return np.array([*map(is_missing, values.ravel().tolist())], dtype=bool)
    missing: BoolArray = values != values
    return missing


def as_probabilities(y_prob: ArrayLike) -> FloatArray:
    """Convert probabilities to an array of shape (n_samples,) or (n_samples, at least 2)."""
    table: FloatArray = check_array(
        y_prob, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y_prob"
    )
    odd = np.argwhere(~((table >= 0) & (table <= 1)))
    if len(odd):
        raise ValueError(
            f"y_prob holds {table[tuple(odd[0])]} at row {odd[0][0]}; probabilities lie between 0 "
            "and 1: pass what predict_proba returns rather than decision_function, and drop rows "
            "with NaN."
        )
    if table.ndim == 1:
        return table
    if table.shape[1] < 2:
        raise ValueError(
            f"y_prob has the shape {table.shape}; use (n_samples,) for the probability of the "
            "positive class, for instance y_prob.ravel(), or one column for each class."
        )
    sums = table.sum(axis=1)
    rows = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if len(rows):
        raise ValueError(
            f"y_prob sums to {sums[rows[0]]:.6g} over the classes at row {rows[0]}; every row must sum "
            "to 1: pass all columns of predict_proba, or divide each row by its sum."
        )
    return table


def as_forecast(
    y_true: ArrayLike, y_prob: ArrayLike, labels: ArrayLike | None, pos_label: Any
) -> tuple[IntArray, FloatArray, Labels, int]:
    """Check labels and probabilities; for two classes, `y_prob` may hold the positive class only.

    Return the true column of each sample, a table with all columns, their classes, and the positive column.
    """
    true, table = as_labels(y_true, "y_true"), as_probabilities(y_prob)
    check_same_length(true, table, "y_prob")
    classes = _column_classes(true, labels, table)
    if pos_label is not None and len(classes) > 2:
        raise ValueError(
            f"pos_label={pos_label!r} can be used with two classes only, and there are "
            f"{len(classes)}; leave it None."
        )
    positive = 1 if pos_label is None else class_index(pos_label, classes)
    if table.ndim == 1:
        table = both_columns(table, positive)
    order = np.argsort(classes)
    return order[np.searchsorted(classes[order], true)], table, classes, positive


def both_columns(probability: FloatArray, positive: int) -> FloatArray:
    """Return the columns of both classes, from the probability of the positive one."""
    other = 1.0 - probability
    return np.column_stack([probability, other] if positive == 0 else [other, probability])


def _column_classes(y: Labels, labels: ArrayLike | None, table: FloatArray) -> Labels:
    """Return the class of each column of probabilities, or both classes for a single column."""
    n_columns = 2 if table.ndim == 1 else table.shape[1]
    present = np.unique(y)
    if labels is None:
        classes = np.array([False, True]) if y.dtype.kind == "b" else present
    else:
        classes = as_labels(labels, "labels")
        if len(np.unique(classes)) < len(classes):
            raise ValueError(f"labels={classes.tolist()} repeats a class; name every class once.")
        check_same_kind(y, classes, "y_true", "labels")
        unknown = present[~np.isin(present, classes)]
        if len(unknown):
            raise ValueError(
                f"y_true holds {shown(unknown)}, not among labels={classes.tolist()}; name all "
                "classes in labels, in the order of the columns of y_prob."
            )
    if len(classes) != n_columns:
        source = "y_true holds" if labels is None else "labels names"
        single = "one probability per sample, which needs 2 classes"
        shape = single if table.ndim == 1 else f"{n_columns} columns"
        raise ValueError(
            f"{source} {len(classes)} classes ({shown(classes)}), but y_prob has {shape}; pass one "
            "column for each class, and where a class does not occur in y_true, name all of them "
            "as in labels=classifier.classes_."
        )
    return classes
