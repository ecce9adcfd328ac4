"""Distances that the user has computed: what must hold for them."""

import numpy as np

from popf.engine.structures import FloatArray

# How far entries [i, j] and [j, i] may differ, relative to the larger.
SYMMETRY_TOLERANCE = 1e-10
# Entries looked at together, so that checking takes little memory beside the matrix.
CHECKED_AT_A_TIME = 2**20


def check_square(D: FloatArray) -> None:
    """Raise ValueError if `D` cannot be a matrix of distances between samples."""
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            "metric 'precomputed' needs a square matrix of the distances between all training "
            f"samples, but X has shape {D.shape}. To compute one: "
            "sklearn.metrics.pairwise_distances(X)."
        )


def check_precomputed(D: FloatArray) -> FloatArray:
    """Check a square matrix of distances, and make it exactly symmetric.

    Entries ``[i, j]`` and ``[j, i]`` may differ by 1e-10 of the larger; then the one above the
    diagonal counts, in a copy. The diagonal is ignored.
    """
    symmetric = True
    step = max(1, CHECKED_AT_A_TIME // len(D))
    for start in range(0, len(D), step):
        rows = D[start : start + step].copy()
        columns = D[:, start : start + step].T.copy()
        own = np.arange(len(rows))
        rows[own, start + own] = columns[own, start + own] = 0.0
        for i, j in np.argwhere(~((rows >= 0.0) & (rows < np.inf))):
            what = "Negative values in data" if rows[i, j] < 0.0 else "Not a distance"
            raise ValueError(
                f"{what}: X[{start + i}, {j}] of the precomputed matrix is {rows[i, j]}, but "
                "distances must be finite and not negative. Check how they were computed."
            )
        symmetric = symmetric and np.array_equal(rows, columns)
        # A NaN among the columns, whose own rows come later, counts as a difference.
        near = np.abs(rows - columns) <= SYMMETRY_TOLERANCE * np.maximum(rows, columns)
        for i, j in np.argwhere(~near):
            raise ValueError(
                f"metric 'precomputed' needs a symmetric matrix, but X[{start + i}, {j}] is "
                f"{rows[i, j]} and X[{j}, {start + i}] is {columns[i, j]}. If the difference does "
                "not matter, pass (X + X.T) / 2."
            )
    if symmetric:
        return D
    upper = D.copy()
    for i in range(len(D)):
        upper[i, :i] = upper[:i, i]
    return upper
