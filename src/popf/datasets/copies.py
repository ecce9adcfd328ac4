"""What is known of each public dataset, to tell a true copy by its values.

Copies differ in white space, in printed digits and in the order of their rows, so bytes tell nothing. Recorded
are sizes, class counts and, column by column, the sum, the sum of squares and the sum over the first class.
That catches another dataset, a cut file, swapped columns or labels and lost decimal points; it does not vouch
for the last printed digit of every value.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray

# Columns whose moments are recorded one by one; of wider data the rest is in the totals.
_RECORDED = 40
# A copy printed with six significant digits is off by at most 5e-6 of a value, to either side.
_RELATIVE, _ABSOLUTE = 2e-6, 5e-7


def measure(X: FloatArray, y: NDArray[Any]) -> dict[str, Any]:
    """Measure the facts of a dataset; totals are of all values, the second weighted by the column's number."""
    labels, counts = np.unique(y, return_counts=True)
    first = X[y == labels[0]]
    head = X[:, :_RECORDED]
    return {
        "shape": list(X.shape),
        "counts": dict(zip(map(str, labels.tolist()), counts.tolist(), strict=True)),
        "moments": [head.sum(0), (head**2).sum(0), first[:, :_RECORDED].sum(0)],
        "totals": [X.sum(), X.sum(0) @ np.arange(1, X.shape[1] + 1), first.sum()],
    }


@cache
def recorded() -> dict[str, Any]:
    """Return the recorded facts by the name of the file, ``breast-w`` being breast-cancer without the id."""
    text = files("popf.datasets").joinpath("facts.json").read_text(encoding="utf-8")
    facts: dict[str, Any] = json.loads(text)
    return facts


def check_copy(X: FloatArray, y: NDArray[Any], file: str, where: str) -> None:
    """Raise ValueError unless the data of `where` agree with the recorded facts of `file`."""
    wrong = difference(X, y, file)
    if wrong is None:
        return
    hint = ""
    match file.removesuffix("_scale"), X.shape[1]:
        case "breast-cancer", 9:
            bare = file.replace("breast-cancer", "breast-w")
            hint = f": it lacks the id, so name it {bare}"
        case "liver-disorders", 5:
            hint = (
                ". This is the form that the LIBSVM page serves today, with another target; the paper "
                "used the six features of UCI"
            )
        case "ionosphere", 33:
            hint = (
                ". The copies of the KEEL packages lack the constant column 2, and lost decimal points: "
                "take another copy"
            )
    raise ValueError(f"{where} is not {file}: {wrong}{hint}.")


def difference(X: FloatArray, y: NDArray[Any], file: str) -> str | None:
    """Tell how data differ from the recorded facts of a file; None if they agree."""
    known, new = recorded()[file], measure(X, y)
    if new["shape"] != known["shape"]:
        n_samples, n_features = known["shape"]
        return (
            f"it has {X.shape[0]} samples of {X.shape[1]} features, and {file} has {n_samples} of "
            f"{n_features}"
        )
    if new["counts"] != known["counts"]:
        ours, theirs = (
            ", ".join(f"{label}: {count}" for label, count in facts["counts"].items())
            for facts in (new, known)
        )
        return f"its classes count {ours}, and those of {file} {theirs}"
    if not np.isfinite(X).all():
        return "it holds NaN or infinity"
    head = np.abs(X[:, :_RECORDED])
    size = np.array([head.sum(0), (head**2).sum(0), head.sum(0)])
    # A square is off by twice the error of the value times the value, which the second term covers.
    allowed = _RELATIVE * size + 2 * len(X) * _ABSOLUTE * np.maximum(1.0, head.max(0))
    moments, right = np.array(new["moments"]), np.array(known["moments"])
    wrong = np.flatnonzero(np.any(np.abs(moments - right) > allowed, axis=0))
    if len(wrong):
        j = int(wrong[0])
        numbers = ", ".join(str(column + 1) for column in wrong[:8])
        return (
            f"column {numbers} does not agree with what is recorded (column {j + 1} sums up to "
            f"{moments[0, j]:.10g}, where {right[0, j]:.10g} is right): were decimal points lost?"
        )
    total = np.abs(X).sum() + len(X) * X.shape[1] * _ABSOLUTE
    weights = np.array([1.0, X.shape[1], 1.0])
    off = np.abs(np.array(new["totals"]) - known["totals"])
    if np.any(off > _RELATIVE * total * weights):
        return f"its columns after the first {_RECORDED} do not sum up to those of {file}"
    return None
