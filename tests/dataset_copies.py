"""Which datasets come from where, and copies of one that are false in some way."""

import numpy as np

from popf.datasets.registry import RECORDS

PUBLIC = [name for name, record in RECORDS.items() if not record.stand_in]
EMBEDDED = ["breast_cancer", "breast_cancer_scale", "heart_scale", "liver", "liver_scale"]


def false_copies(liver):
    X, y = liver.data, liver.target
    swapped = X[:, [1, 0, 2, 3, 4, 5]]
    bare = X.copy()
    bare[:, 5] *= 10  # "0.5" without its point is "05"
    unknown = X.copy()
    unknown[3, 3] = np.nan
    flipped = y.copy()
    flipped[[np.flatnonzero(y == 1)[0], np.flatnonzero(y == 2)[0]]] = [2, 1]
    return {
        "cut": (X[:200], y[:200], "it has 200 samples of 6 features, and liver-disorders has 345"),
        "five": (X[:, :5], y, "LIBSVM page serves today.*six features"),
        "swapped": (swapped, y, "column 1, 2 does not agree"),
        "bare": (bare, y, "column 6 does not agree .* decimal points lost"),
        "labels": (X, 3 - y, "classes count 1: 200, 2: 145"),
        "flipped": (X, flipped, "does not agree"),
        "unknown": (unknown, y, "NaN"),
    }
