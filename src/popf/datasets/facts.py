"""What is known of the public datasets, to tell a true copy by its parsed values.

Copies differ in white space, in printed digits and in the order of their rows, so bytes tell nothing. Recorded
are sizes, class counts and, column by column, the sum, the sum of squares and the sum over the first class.
That catches another dataset, a cut file, swapped columns or labels and lost decimal points; it does not vouch
for the last printed digit of every value.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Columns whose moments are recorded one by one; of wider data the rest is in the totals.
RECORDED_COLUMNS = 40
# A copy printed with six significant digits is off by at most 5e-6 of a value, to either side.
_RELATIVE, _ABSOLUTE = 2e-6, 5e-7


@dataclass(frozen=True)
class Facts:
    """Recorded facts of one dataset.

    Attributes
    ----------
    shape : tuple of int
        Samples and features.
    counts : dict of int to int
        Samples of each label.
    moments : ndarray of shape (3, n_recorded)
        Sum, sum of squares and sum over the first class, of each recorded column.
    totals : ndarray of shape (3,)
        Over all columns: sum, sum weighted by the column's number, sum over the first class.
    fractional : list of int
        Recorded columns in which some value is not whole.
    """

    shape: tuple[int, int]
    counts: dict[int, int]
    moments: NDArray[np.float64]
    totals: NDArray[np.float64]
    fractional: list[int]


def measure(X: NDArray[np.float64], y: NDArray[Any]) -> Facts:
    """Measure the facts of a dataset.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.datasets.facts import measure
    >>> facts = measure(np.array([[1.0, 0.5], [2.0, 0.25]]), np.array([-1, 1]))
    >>> facts.counts, facts.fractional
    ({-1: 1, 1: 1}, [1])
    >>> facts.totals
    array([3.75, 4.5 , 1.5 ])
    """
    labels, counts = np.unique(y, return_counts=True)
    first = X[y == labels[0]]
    head = X[:, :RECORDED_COLUMNS]
    moments = [head.sum(0), (head**2).sum(0), first[:, :RECORDED_COLUMNS].sum(0)]
    numbers = np.arange(1, X.shape[1] + 1)
    totals = [X.sum(), X.sum(0) @ numbers, first.sum()]
    fractional = np.flatnonzero(np.any(head != np.round(head), axis=0))
    return Facts(
        (X.shape[0], X.shape[1]),
        {int(label): int(count) for label, count in zip(labels, counts, strict=True)},
        np.array(moments),
        np.array(totals),
        [int(column) for column in fractional],
    )


@cache
def recorded() -> dict[str, Facts]:
    """Give the recorded facts by the name of the file, ``breast-w`` being breast-cancer without the id."""
    text = files("popf.datasets").joinpath("facts.json").read_text(encoding="utf-8")
    return {
        name: Facts(
            (fact["shape"][0], fact["shape"][1]),
            {int(label): count for label, count in fact["counts"].items()},
            np.array(fact["moments"]),
            np.array(fact["totals"]),
            fact["fractional"],
        )
        for name, fact in json.loads(text).items()
    }


def complaint(X: NDArray[np.float64], y: NDArray[Any], name: str) -> str | None:
    """Say how data differ from the recorded facts of a file, None where they agree.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.datasets.facts import complaint
    >>> complaint(np.zeros((10, 2)), np.zeros(10), "heart")
    'it has 10 samples of 2 features, and heart has 270 of 13'
    """
    known = recorded()[name]
    if X.shape != known.shape:
        return (
            f"it has {X.shape[0]} samples of {X.shape[1]} features, and {name} has "
            f"{known.shape[0]} of {known.shape[1]}"
        )
    labels, counts = np.unique(y, return_counts=True)
    found = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    if found != known.counts:
        return f"its classes count {_counted(found)}, and those of {name} {_counted(known.counts)}"
    if not np.isfinite(X).all():
        return "it holds NaN or infinity"
    new = measure(X, y)
    head = np.abs(X[:, :RECORDED_COLUMNS])
    size = np.array([head.sum(0), (head**2).sum(0), head.sum(0)])
    # A square is off by twice the error of the value times the value, which the second term covers.
    allowed = _RELATIVE * size + 2 * len(X) * _ABSOLUTE * np.maximum(1.0, head.max(0))
    wrong = np.flatnonzero(np.any(np.abs(new.moments - known.moments) > allowed, axis=0))
    if len(wrong):
        return _wrong_columns(X, new, known, wrong)
    total = np.abs(X).sum() + len(X) * X.shape[1] * _ABSOLUTE
    weights = np.array([1.0, X.shape[1], 1.0])
    if np.any(np.abs(new.totals - known.totals) > _RELATIVE * total * weights):
        return f"its columns after the first {RECORDED_COLUMNS} do not sum up to those of {name}"
    return None


def _counted(counts: dict[int, int]) -> str:
    return ", ".join(f"{label}: {count}" for label, count in sorted(counts.items()))


def _wrong_columns(
    X: NDArray[np.float64], new: Facts, known: Facts, wrong: NDArray[np.int64]
) -> str:
    bare = [j for j in wrong if j in known.fractional and j not in new.fractional]
    numbers = ", ".join(str(j + 1) for j in (bare or wrong)[:8])
    if bare:
        return (
            f"the decimal points of column {numbers} are lost (the largest value is "
            f"{X[:, bare[0]].max():g}), as in the copies of the KEEL packages: take another copy"
        )
    j = int(wrong[0])
    return (
        f"column {numbers} does not agree with what is recorded (column {j + 1} sums up to "
        f"{new.moments[0, j]:.10g}, where {known.moments[0, j]:.10g} is right)"
    )
