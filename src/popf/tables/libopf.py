"""LibOPF's binary data files.

Everything is little-endian and 4 bytes long. A file opens with three integers, the numbers of samples, of
classes and of features; then every sample follows as two integers, its identifier and its label, and its
features as single-precision numbers. Labels count from 1; 0 stands for a sample without a label.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.labels import encode
from popf.tables.samples import Samples, default_names

_HEADER = 12  # bytes


def parse_libopf(content: bytes, where: str) -> Samples:
    """Turn the bytes of LibOPF's data file into samples; `where` is what an error calls it."""
    if len(content) < _HEADER:
        raise ValueError(
            f"{where} is cut short: {len(content)} bytes, and the head alone takes 12."
        )
    n_samples, n_classes, n_features = (int(n) for n in np.frombuffer(content, "<i4", 3))
    expected = _HEADER + n_samples * (8 + 4 * n_features)
    if n_samples < 1 or n_classes < 0 or n_features < 1 or len(content) != expected:
        raise ValueError(f"{where} {_what_is_wrong(content, n_samples, n_features)}")
    record = np.dtype([("id", "<i4"), ("label", "<i4"), ("features", "<f4", (n_features,))])
    samples = np.frombuffer(content, record, n_samples, _HEADER)
    labels = samples["label"].astype(np.int64)
    if labels.min() < 0 or labels.max() > n_classes:
        odd = int(labels[(labels < 0) | (labels > n_classes)][0])
        raise ValueError(
            f"{where} is no data file of LibOPF: it names {n_classes} classes, and a sample has "
            f"label {odd}."
        )
    X = np.ascontiguousarray(samples["features"], dtype=np.float64)
    ids = samples["id"].astype(np.int64)
    return Samples(X, labels, default_names(n_features), ids=ids)


def _what_is_wrong(content: bytes, n_samples: int, n_features: int) -> str:
    start = content[:64]
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in start):
        kind = "KEEL's" if start.lstrip().lower().startswith(b"@relation") else "some other"
        return (
            f"is text ({kind}), not a binary data file of LibOPF: convert it to CSV, or name the "
            "format that it has, for instance `format='csv'`."
        )
    if n_samples < 1 or n_features < 1 or n_features > 2**24:
        return "is no data file of LibOPF: its first numbers are not those of samples and features."
    expected = _HEADER + n_samples * (8 + 4 * n_features)
    verb = "is cut short" if len(content) < expected else "goes on after its end"
    return (
        f"{verb}: {n_samples} samples of {n_features} features take {expected} bytes, and it "
        f"has {len(content)}. Or it is no data file of LibOPF."
    )


def libopf_bytes(
    X: NDArray[np.float64], y: NDArray[Any], ids: NDArray[np.int64] | None = None
) -> bytes:
    """Write a data file of LibOPF; labels are numbered from 1 in sorted order."""
    with np.errstate(over="ignore"):
        features = X.astype("<f4")
    if np.any(np.isfinite(X) & ~np.isfinite(features)):
        worst = X[np.isfinite(X) & ~np.isfinite(features)][0]
        raise ValueError(f"LibOPF keeps single precision, and {worst:g} is beyond it: scale X.")
    classes, codes = encode(y)
    record = np.dtype([("id", "<i4"), ("label", "<i4"), ("features", "<f4", (X.shape[1],))])
    samples = np.empty(len(X), record)
    samples["id"] = np.arange(len(X)) if ids is None else ids
    samples["label"] = codes + 1
    samples["features"] = features
    header = np.array([len(X), len(classes), X.shape[1]], dtype="<i4")
    return header.tobytes() + samples.tobytes()
