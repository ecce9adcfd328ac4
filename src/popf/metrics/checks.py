"""Validation of what users pass to the metrics: labels, probabilities, weights and choices."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d

from popf.labels import encode

FloatArray = NDArray[np.float64]
Labels = NDArray[Any]

#: How far from 1 a row of probabilities may sum: they may come in single precision, or rounded to
#: four digits, and no measure of quality is known more precisely than that.
SUM_TOLERANCE = 1e-3


def shown(labels: Labels) -> str:
    """List labels for a message, the first few if there are many."""
    some = labels[:6].tolist()
    return ", ".join(map(repr, some)) + (", ..." if len(labels) > len(some) else "")


def check_choice(value: object, name: str, choices: Sequence[str]) -> None:
    """Raise an error unless `value` is one of the `choices`."""
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name}={value!r} is unknown; use {' or '.join(map(repr, choices))}.")


def as_labels(y: ArrayLike, name: str) -> Labels:
    """Make class labels a one-dimensional array of integers, booleans, whole numbers or strings."""
    if isinstance(y, list | tuple):
        y = np.array(y, dtype=object)  # else NumPy would make ["a", 1] two strings
    try:
        labels: Labels = column_or_1d(y)
    except ValueError as error:
        raise ValueError(
            f"{name} has the shape {np.shape(y)}; it holds one class label a sample: pass an array "
            "of shape (n_samples,)."
        ) from error
    if len(labels) == 0:
        raise ValueError(f"{name} is empty; pass at least one label.")
    if labels.dtype.kind in "OT":
        values = labels.tolist()
        n_texts = sum(isinstance(value, str) for value in values)
        if n_texts not in (0, len(values)):
            odd = next(value for value in values if not isinstance(value, str))
            raise ValueError(
                f"{name} holds strings and {odd!r}; give all labels one type, and drop samples "
                "whose label is missing."
            )
        with suppress(ValueError):  # lists of several lengths
            labels = np.array(values)
    if labels.dtype.kind not in "biufUS":
        kinds = sorted({type(value).__name__ for value in labels.tolist()})
        raise ValueError(
            f"{name} holds labels of type {', '.join(kinds)}; use integers, booleans or strings, and "
            "drop samples whose label is missing."
        )
    if labels.dtype.kind == "f":
        odd_rows = np.flatnonzero(~np.isfinite(labels) | (labels != np.trunc(labels)))
        if len(odd_rows):
            raise ValueError(
                f"{name} holds {labels[odd_rows[0]]} at row {odd_rows[0]}, which is no class label; "
                "drop missing labels, and turn probabilities into labels first, as by y_prob >= 0.5."
            )
    return labels


def check_same_length(y: Labels, other: NDArray[Any], name: str) -> None:
    """Raise an error unless there is one row of `other` for each label in `y`."""
    if len(y) != len(other):
        raise ValueError(
            f"y_true has {len(y)} samples and {name} has {len(other)}; pass both for the same samples."
        )


def check_same_kind(one: Labels, other: Labels, its_name: str, other_name: str) -> None:
    """Raise an error where strings would be compared with numbers."""
    if (one.dtype.kind in "US") != (other.dtype.kind in "US"):
        raise ValueError(
            f"{its_name} holds labels like {one[:1].tolist()[0]!r} and {other_name} like "
            f"{other[:1].tolist()[0]!r}: strings and numbers never agree; give both one type."
        )


def as_distinct_labels(labels: ArrayLike) -> Labels:
    """Make the parameter `labels` an array, in its order."""
    array = as_labels(labels, "labels")
    if len(encode(array)[0]) < len(array):
        raise ValueError(f"labels={array.tolist()} repeats a class; name every class once.")
    return array


def as_weights(sample_weight: ArrayLike | None, n_samples: int) -> FloatArray:
    """Make weights an array, ones if there are none."""
    if sample_weight is None:
        return np.ones(n_samples)
    weights: FloatArray = check_array(
        sample_weight,
        dtype=np.float64,
        ensure_2d=False,
        ensure_all_finite=False,
        ensure_min_samples=0,
        input_name="sample_weight",
    )
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}; pass one weight for each sample, an array "
            f"of shape ({n_samples},)."
        )
    odd = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(odd):
        raise ValueError(
            f"sample_weight holds {weights[odd[0]]} at row {odd[0]}; weights are finite and not "
            "negative: use 0 to leave a sample out."
        )
    if not 0 < (total := weights.sum()) < np.inf:
        raise ValueError(
            f"sample_weight sums to {total}; the sum must be positive and finite: give at least one "
            "sample a weight, and divide huge weights by their maximum."
        )
    return weights


def as_probabilities(y_prob: ArrayLike) -> FloatArray:
    """Make probabilities an array of shape (n_samples,) or (n_samples, at least 2)."""
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
            "positive class, as by y_prob.ravel(), or one column for each class."
        )
    sums = table.sum(axis=1)
    rows = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if len(rows):
        raise ValueError(
            f"y_prob sums to {sums[rows[0]]:.6g} over the classes at row {rows[0]}; every row must sum "
            "to 1: pass all columns of predict_proba, or divide each row by its sum."
        )
    return table


def column_classes(y: Labels, labels: ArrayLike | None, table: FloatArray) -> Labels:
    """Return the class of each column of the probabilities, or two classes for a single column."""
    n_columns = 2 if table.ndim == 1 else table.shape[1]
    present, _ = encode(y)
    if labels is None:
        classes = np.array([False, True]) if y.dtype.kind == "b" else present
    else:
        classes = as_distinct_labels(labels)
        check_same_kind(y, classes, "y_true", "labels")
        strangers = present[~np.isin(present, classes)]
        if len(strangers):
            raise ValueError(
                f"y_true holds {shown(strangers)}, not among labels={classes.tolist()}; name all "
                "classes in labels, in the order of the columns of y_prob."
            )
    if len(classes) != n_columns:
        source = "y_true holds" if labels is None else "labels names"
        shape = "one probability a sample, which takes 2"
        if table.ndim == 2:
            shape = f"{n_columns} columns"
        raise ValueError(
            f"{source} {len(classes)} classes ({shown(classes)}), but y_prob has {shape}; pass one "
            "column for each class, and where a class does not occur in y_true, name all of them "
            "as in labels=classifier.classes_."
        )
    return classes


def as_table(table: FloatArray, positive: int) -> FloatArray:
    """Give both classes a column where there is only the probability of the positive class."""
    if table.ndim == 2:
        return table
    return np.column_stack([table, 1.0 - table] if positive == 0 else [1.0 - table, table])


def positive_column(classes: Labels, pos_label: Any) -> int:
    """Find the column of the positive class, the second of two unless it is named."""
    if pos_label is None:
        return 1
    if len(classes) > 2:
        raise ValueError(
            f"pos_label={pos_label!r} has a meaning for two classes only, and there are "
            f"{len(classes)}; leave it None."
        )
    names: list[Any] = classes.tolist()
    if pos_label not in names:
        raise ValueError(
            f"pos_label={pos_label!r} is not a class; use {names[0]!r} or {names[1]!r}."
        )
    return names.index(pos_label)
