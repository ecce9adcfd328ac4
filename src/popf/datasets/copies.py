"""What is known of each public dataset, to tell a true copy by its values.

Copies differ in white space, in printed digits and in the order of their rows, so bytes tell nothing. Recorded
are sizes, class counts and, column by column, the sum, the sum of squares and the sum over the first class.
That catches another dataset, a cut file, swapped columns or labels and lost decimal points; it does not vouch
for the last printed digit of every value.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Columns whose moments are recorded one by one; of wider data the rest is in the totals.
_RECORDED = 40
# A copy printed with six significant digits is off by at most 5e-6 of a value, to either side.
_RELATIVE, _ABSOLUTE = 2e-6, 5e-7


class Facts(NamedTuple):
    """Recorded facts of one dataset."""

    shape: tuple[int, int]
    counts: dict[int, int]  # samples of each label
    # Of each recorded column: sum, sum of squares, sum over the first class.
    moments: NDArray[np.float64]
    # Sum, sum weighted by the column's number, sum over the first class.
    totals: NDArray[np.float64]


def measure(X: NDArray[np.float64], y: NDArray[Any]) -> Facts:
    """Measure the facts of a dataset."""
    labels, counts = np.unique(y, return_counts=True)
    first = X[y == labels[0]]
    head = X[:, :_RECORDED]
    moments = [head.sum(0), (head**2).sum(0), first[:, :_RECORDED].sum(0)]
    totals = [X.sum(), X.sum(0) @ np.arange(1, X.shape[1] + 1), first.sum()]
    return Facts(
        (X.shape[0], X.shape[1]),
        dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        np.array(moments),
        np.array(totals),
    )


@cache
def recorded() -> dict[str, Facts]:
    """Return the recorded facts by the name of the file, ``breast-w`` being breast-cancer without the id."""
    text = files("popf.datasets").joinpath("facts.json").read_text(encoding="utf-8")
    return {
        name: Facts(
            tuple(fact["shape"]),
            {int(label): count for label, count in fact["counts"].items()},
            np.array(fact["moments"]),
            np.array(fact["totals"]),
        )
        for name, fact in json.loads(text).items()
    }


def check_copy(X: NDArray[np.float64], y: NDArray[Any], file: str, where: str) -> None:
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


def difference(X: NDArray[np.float64], y: NDArray[Any], file: str) -> str | None:
    """Tell how data differ from the recorded facts of a file; None if they agree."""
    known, new = recorded()[file], measure(X, y)
    if new.shape != known.shape:
        return (
            f"it has {X.shape[0]} samples of {X.shape[1]} features, and {file} has {known.shape[0]} of "
            f"{known.shape[1]}"
        )
    if new.counts != known.counts:
        return f"its classes count {_counted(new.counts)}, and those of {file} {_counted(known.counts)}"
    if not np.isfinite(X).all():
        return "it holds NaN or infinity"
    head = np.abs(X[:, :_RECORDED])
    size = np.array([head.sum(0), (head**2).sum(0), head.sum(0)])
    # A square is off by twice the error of the value times the value, which the second term covers.
    allowed = _RELATIVE * size + 2 * len(X) * _ABSOLUTE * np.maximum(1.0, head.max(0))
    wrong = np.flatnonzero(np.any(np.abs(new.moments - known.moments) > allowed, axis=0))
    if len(wrong):
        j = int(wrong[0])
        numbers = ", ".join(str(column + 1) for column in wrong[:8])
        return (
            f"column {numbers} does not agree with what is recorded (column {j + 1} sums up to "
            f"{new.moments[0, j]:.10g}, where {known.moments[0, j]:.10g} is right): were decimal points lost?"
        )
    total = np.abs(X).sum() + len(X) * X.shape[1] * _ABSOLUTE
    weights = np.array([1.0, X.shape[1], 1.0])
    if np.any(np.abs(new.totals - known.totals) > _RELATIVE * total * weights):
        return f"its columns after the first {_RECORDED} do not sum up to those of {file}"
    return None


def _counted(counts: dict[int, int]) -> str:
    return ", ".join(f"{label}: {count}" for label, count in sorted(counts.items()))
