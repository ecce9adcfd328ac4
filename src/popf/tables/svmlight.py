"""Svmlight text, as LIBSVM's page serves it: ``label index:value ...``, zeros left out."""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.tables.cells import whole
from popf.tables.samples import Samples, default_names


def parse_svmlight(content: bytes, where: str) -> Samples:
    """Turn svmlight text into features and labels; `where` is what an error calls it."""
    from sklearn.datasets import load_svmlight_file

    try:
        sparse, labels = load_svmlight_file(io.BytesIO(content))
    except (ValueError, OverflowError, TypeError, IndexError) as error:
        raise ValueError(
            f"{where} is not svmlight text, 'label index:value ...' in every line, "
            f"line {_first_odd_line(content)}: {error}"
        ) from error
    if not sparse.shape[0] or b":" not in content:
        raise ValueError(f"{where} holds no sample with a feature.")
    X = np.ascontiguousarray(sparse.toarray(), dtype=np.float64)
    return Samples(X, whole(labels), default_names(X.shape[1]))


def _first_odd_line(content: bytes) -> str:
    """Find the line that cannot be read, for an error message."""
    for number, line in enumerate(content.splitlines(), start=1):
        words = line.partition(b"#")[0].split()
        try:
            if words:
                float(words[0])
            for word in words[1:]:
                index, _, value = word.partition(b":")
                if index != b"qid":
                    int(index)
                    float(value)
        except ValueError:
            return f"{number} ({line[:40].decode('utf-8', 'replace')!r})"
    return "unknown"


def svmlight_bytes(X: NDArray[np.float64], y: NDArray[Any]) -> bytes:
    """Write svmlight text with all digits, so that reading gives the same numbers.

    scikit-learn's own writer keeps 16 digits, of which a double may need 17. The last feature of the
    first sample is written even where it is zero: it tells the reader how many features there are.
    """
    if y.dtype.kind not in "biuf":
        shown = ", ".join(repr(str(label)) for label in np.unique(y)[:3])
        raise ValueError(
            f"svmlight holds numbers as labels, and y has {shown}: write CSV, or number the labels."
        )
    numbers = y.astype(np.float64)
    if not np.isfinite(numbers).all() or not np.array_equal(numbers.astype(y.dtype), y):
        raise ValueError("svmlight readers take labels as doubles, and a label of y is none.")
    lines = []
    last = X.shape[1]
    labels = whole(numbers).tolist()
    for row, (values, label) in enumerate(zip(X.tolist(), labels, strict=True)):
        cells = [
            f"{index}:{value!r}"
            for index, value in enumerate(values, start=1)
            if value != 0.0 or (row == 0 and index == last)
        ]
        lines.append(" ".join([repr(label), *cells]))
    return ("\n".join(lines) + "\n").encode()
