"""Columns of a training table that deserve a second look: leaks of the target, constants, duplicates, gaps."""

from typing import Any, NamedTuple

import numpy as np

from popf.engine.structures import FloatArray, IntArray
from popf.formatting import listed
from popf.probability.columns import NUMBER, Columns
from popf.probability.logits import Labels, prior_logits

#: The area under the ROC curve, on rows left out one by one, from which a column alone separates the classes.
SEPARATES = 0.98
#: Minimum number of rows, and of rows in every class, to call out a column that separates the classes.
MIN_ROWS, MIN_IN_CLASS = 50, 8
#: Maximum number of bins of a number, minimum number of rows in each, and maximum number of cells to look at.
MAX_BINS, ROWS_PER_BIN, MAX_CELLS = 64, 6, 2_000_000
#: Probability below which it is no chance that all gaps of a column are in rows of one class.
NO_CHANCE = 1e-6


class Cautions(NamedTuple):
    """Columns that deserve a second look."""

    leaks: dict[
        str, float
    ]  # the area under the ROC curve by columns that alone separate the classes
    constant: list[str]
    duplicates: list[
        tuple[str, str]
    ]  # pairs of columns with equal cells, the second after the first
    gaps: dict[str, list[str]]  # columns with gaps in rows of one class only, by class

    def sentences(self) -> list[str]:
        """Describe them, with the parameters that leave columns out."""
        found = [
            f"{name!r} alone separates the classes (ROC AUC {area:.3f} on rows left out). Is it known when a "
            f"prediction is made? If not: `drop={[name]}`."
            for name, area in self.leaks.items()
        ]
        for label, with_gaps in self.gaps.items():
            names = listed([repr(name) for name in with_gaps], 3)
            found.append(
                f"every row with a gap in {names} is of class {label}. Will that be so in new rows?"
            )
        if self.constant:
            names = listed([repr(name) for name in self.constant], 12)
            found.append(f"the same in all rows: {names}.")
        if self.duplicates:
            pairs = listed([f"{one!r} and {other!r}" for one, other in self.duplicates], 6)
            found.append(f"equal columns: {pairs}.")
        return found


def cautions_of(columns: Columns, matrix: FloatArray, y: Any) -> Cautions:
    """Look at the columns of a training table, given as a matrix, and its labels."""
    labels, codes = np.unique(y, return_inverse=True)
    names = columns.names.tolist()
    areas = single_column_areas(columns, matrix, codes)
    leaks = {names[j]: float(areas[j]) for j in np.flatnonzero(areas >= SEPARATES)}
    chances = np.log(np.bincount(codes) / len(codes))
    gaps: dict[str, list[str]] = {}
    for name, missing in zip(names, np.isnan(matrix).T, strict=True):
        found = np.unique(codes[missing])
        if (
            len(found) == 1
            and missing.sum() * chances[found[0]] < np.log(NO_CHANCE)
            and name not in leaks
        ):
            gaps.setdefault(str(labels[found[0]]), []).append(name)
    cells = np.where(np.isnan(matrix), np.inf, matrix)
    constant = [names[j] for j in np.flatnonzero((cells == cells[:1]).all(axis=0))]
    first: dict[bytes, str] = {}
    duplicates = []
    for name, column, kind in zip(names, cells.T, columns.kinds.tolist(), strict=True):
        key = kind.encode() + np.ascontiguousarray(column).tobytes()
        if name not in constant and first.setdefault(key, name) != name:
            duplicates.append((first[key], name))
    return Cautions(leaks, constant, duplicates, gaps)


def single_column_areas(columns: Columns, matrix: FloatArray, codes: IntArray) -> FloatArray:
    """Compute the area under the ROC curve of each column alone; NaN if there are too few rows.

    Numbers are divided into bins of about equally many rows. The score of a row is the share of the classes
    among the other rows of its bin or level, so nothing is fitted to the row itself.
    """
    found = np.full(matrix.shape[1], np.nan)
    step = -(-matrix.size // MAX_CELLS)
    matrix, codes = matrix[::step], codes[::step]
    counts = np.bincount(codes)
    if len(codes) < MIN_ROWS or counts.min() < MIN_IN_CLASS:
        return found
    n = len(codes)
    prior = prior_logits(counts.astype(np.float64))
    labels = Labels(codes, np.ones(n), np.zeros(n, np.int64), prior, np.arange(len(counts)))
    own = np.eye(len(counts))[codes]
    for j, column in enumerate(matrix.T):
        levels = _bins(column) if columns.kinds[j] == NUMBER else _numbered(column)
        in_level = np.stack([np.bincount(levels, weights=each) for each in own.T], axis=1)[levels]
        others = in_level - own
        shares = (others + counts / n) / (others.sum(axis=1, keepdims=True) + 1.0)
        found[j] = labels.area_under_curve(np.log(shares))
    return found


def _numbered(column: FloatArray) -> IntArray:
    return np.unique(column, return_inverse=True)[1]


def _bins(column: FloatArray) -> IntArray:
    """Divide numbers into bins; gaps have one of their own."""
    levels, n_bins = _numbered(column), min(MAX_BINS, len(column) // ROWS_PER_BIN)
    if levels.max(initial=0) < n_bins:
        return levels
    edges = np.unique(np.nanquantile(column, np.arange(1, n_bins) / n_bins))
    below, up_to = (np.searchsorted(edges, column, side=side) for side in ("left", "right"))
    return np.where(np.isnan(column), 2 * n_bins, below + up_to)  # frequent values are alone
