"""Labels of any type, and the numbers that stand for them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def encode(y: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Give the sorted labels, and for every sample the number of its label: ``classes[codes]`` is `y`."""
    if y.dtype.kind in "iu" and len(y):
        low, high = int(y.min()), int(y.max())
        if high - low < len(y):  # counting is ten times as fast as sorting
            wide = y if y.dtype.itemsize == 8 else y.astype(np.int64)  # 127 - (-128) as int8
            offset = (wide - wide.dtype.type(low)).astype(np.int64)
            present = np.bincount(offset, minlength=high - low + 1) > 0
            codes = (np.cumsum(present) - 1)[offset]
            classes = np.empty(int(present.sum()), dtype=y.dtype)
            classes[codes] = y
            return classes, codes
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.int64, copy=False)
