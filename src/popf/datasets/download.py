"""Downloads: OpenML through scikit-learn, and the LIBSVM page."""

import bz2
import socket
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.datasets.registry import OpenML
from popf.tables.samples import parse_svmlight

Data = tuple[NDArray[np.float64], NDArray[Any]]

LIBSVM_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
TIMEOUT = 30.0  # seconds without an answer
_PACKED = ("colon-cancer",)


def libsvm_url(file: str) -> str:
    """Return the address of a file of the LIBSVM page."""
    return LIBSVM_URL + file + (".bz2" if file in _PACKED else "")


def from_libsvm(file: str) -> Data:
    """Download a file of the LIBSVM page."""
    url = libsvm_url(file)
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        content = answer.read()
    if file in _PACKED:
        try:
            content = bz2.decompress(content)
        except (OSError, ValueError) as error:
            raise ValueError(f"{url} is cut short or no bzip2 file: {error}") from error
    samples = parse_svmlight(content, url)
    return samples.X, samples.y


def from_openml(source: OpenML) -> Data:
    """Download a dataset of OpenML; rows with unknown values are left out."""
    from sklearn.datasets import fetch_openml

    with _timeout(TIMEOUT), warnings.catch_warnings():
        # Such as that liver's selector is not the target that OpenML advises.
        warnings.simplefilter("ignore")
        bunch = fetch_openml(
            data_id=source.data_id,
            target_column=source.target,
            as_frame=False,
            cache=False,
            parser="liac-arff",  # the one parser that needs no pandas
            n_retries=1,
        )
    X = _decoded(bunch)
    known = np.isfinite(X).all(axis=1)
    # Labels are text or numbers, as the column was declared: "1" and 1.0 are one label.
    words = [str(word).removesuffix(".0") for word in np.asarray(bunch.target)[known]]
    strange = sorted(set(words) - set(source.labels))
    if strange:
        raise ValueError(
            f"OpenML {source.data_id} has labels {', '.join(strange)}, not "
            f"{', '.join(source.labels)}."
        )
    return X[known], np.array([source.labels[word] for word in words], dtype=np.int64)


def _decoded(bunch: Any) -> NDArray[np.float64]:
    """Undo scikit-learn's numbering of nominal columns: their values are numbers here."""
    X = np.array(bunch.data, dtype=np.float64)
    categories = getattr(bunch, "categories", None) or {}
    for column, name in enumerate(bunch.feature_names):
        if name in categories:
            values = np.array([float(word) for word in categories[name]])
            present = np.isfinite(X[:, column])
            X[present, column] = values[X[present, column].astype(np.int64)]
    return X


@contextmanager
def _timeout(seconds: float) -> Iterator[None]:
    """Set the time limit of new connections: scikit-learn's function takes none."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
