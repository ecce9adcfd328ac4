"""Svmlight text, as LIBSVM's page serves it: ``label index:value ...``, zeros left out."""

import io
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.tables.formats.files import content_of
from popf.tables.formats.table import Table, whole


def read_svmlight(path: str | os.PathLike[str]) -> Table:
    """Read an svmlight file: see `popf.datasets.read`."""
    return parse_svmlight(content_of(path), str(path))


def parse_svmlight(content: bytes, where: str) -> Table:
    r"""Turn svmlight text into features and target.

    Examples
    --------
    >>> from popf.tables.formats.svmlight import parse_svmlight
    >>> table = parse_svmlight(b"-1 1:0.5 3:2\n+1 2:1\n", "the example")
    >>> table.X
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> table.y
    array([-1,  1])
    """
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
    names = [f"x{number}" for number in range(1, X.shape[1] + 1)]
    return Table(X, whole(labels), names, "target")


def _first_odd_line(content: bytes) -> str:
    """Find the line that no reader could take; only for the words of an error."""
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
            shown = line[:40].decode("utf-8", "replace")
            return f"{number} ({shown!r})"
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
