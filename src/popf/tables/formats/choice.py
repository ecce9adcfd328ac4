"""Read and write data files, in the format that the file's name tells."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_array

from popf.tables.formats.delimited import check_csv_labels, check_csv_names, csv_bytes, read_csv
from popf.tables.formats.files import PACKED, put
from popf.tables.formats.libopf import libopf_bytes, read_libopf
from popf.tables.formats.parquet import parquet_bytes, read_parquet
from popf.tables.formats.svmlight import read_svmlight, svmlight_bytes
from popf.tables.formats.table import Encoding, check_names

#: The formats, and the suffixes by which files of them are known.
FORMATS = {
    "svmlight": (".svm", ".svmlight", ".libsvm", ".txt", ""),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
    "libopf": (".dat", ".opf"),
}


def read(
    path: str | os.PathLike[str],
    target: str | int | None = None,
    *,
    format: str | None = None,
    encode: Encoding | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    return_X_y: bool = False,
) -> Any:
    """Read samples and labels from a file.

    Parameters
    ----------
    path : str or path-like
        The suffix tells the format: ``.svm``, ``.svmlight``, ``.libsvm``, ``.txt`` or none for svmlight;
        ``.csv`` or ``.tsv``; ``.parquet`` or ``.pq``; ``.dat`` or ``.opf`` for LibOPF. ``.gz`` or
        ``.bz2`` after it is unpacked.
    target : str or int, default=None
        The column with the labels, by name or position; None for the last. Only for CSV and Parquet.
    format : {"svmlight", "csv", "parquet", "libopf"}, default=None
        In place of what the suffix says.
    encode : {"onehot", "ordinal"}, default=None
        What becomes of columns that are not numbers: a column of 0 and 1 for every value, or the values'
        numbers in sorted order; None for an error that names the columns. Only for CSV and Parquet.
    delimiter : str, default=None
        Between the values of a row; None for a comma, or a tab in a ``.tsv`` file.
    encoding : str, default="utf-8"
        Of the text of a CSV file.
    return_X_y : bool, default=False
        Give ``(data, target)`` alone.

    Returns
    -------
    Bunch
        `data` of shape (n_samples, n_features), float64, unknown values as NaN; `target`, integers, real
        numbers or text; `feature_names`; `target_name`; `ids`, for LibOPF the samples' identifiers, else None.

    Notes
    -----
    A CSV file opens with the names of its columns. Where the first line is all numbers, it counts as a sample,
    and the columns are named ``x1``, ``x2``, ...

    Examples
    --------
    >>> import os, tempfile
    >>> from popf.datasets import read, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "mine.csv")
    ...     write(path, [[1.5, 0.0], [0.1, 2.0]], ["no", "yes"], feature_names=["length", "width"])
    ...     mine = read(path, target="target")
    >>> mine.data
    array([[1.5, 0. ],
           [0.1, 2. ]])
    >>> mine.target
    array(['no', 'yes'], dtype='<U3')
    """
    kind = _format_of(path, format)
    _check_options(kind, target=target, encode=encode, delimiter=delimiter)
    ids = None
    if kind == "csv":
        table = read_csv(
            path,
            target=target,
            encode=encode,
            delimiter=_delimiter(path) if delimiter is None else delimiter,
            encoding=encoding,
        )
    elif kind == "parquet":
        table = read_parquet(path, target=target, encode=encode)
    elif kind == "libopf":
        table, ids = read_libopf(path)
    else:
        table = read_svmlight(path)
    if return_X_y:
        return table.X, table.y
    return Bunch(
        data=table.X,
        target=table.y,
        feature_names=table.feature_names,
        target_name=table.target_name,
        ids=ids,
    )


def write(
    path: str | os.PathLike[str],
    X: ArrayLike,
    y: ArrayLike,
    *,
    feature_names: list[str] | None = None,
    target_name: str = "target",
    format: str | None = None,
    delimiter: str | None = None,
    ids: ArrayLike | None = None,
) -> None:
    """Write samples and labels to a file, whole or not at all.

    Reading the file gives the same numbers back, to the last bit; LibOPF's format alone keeps single
    precision only, and numbers the labels from 1 in sorted order.

    Parameters
    ----------
    path : str or path-like
        The suffix tells the format, as for `read`. A file that is there is replaced in one step.
    X : array-like of shape (n_samples, n_features)
        Numbers; NaN for unknown values.
    y : array-like of shape (n_samples,)
        Labels; numbers for svmlight. In CSV, text that looks like a number comes back as a number.
    feature_names : list of str, default=None
        None for the columns' own names where `X` has some, else ``x1``, ``x2``, ... Only CSV and Parquet
        keep them.
    target_name : str, default="target"
    format : {"svmlight", "csv", "parquet", "libopf"}, default=None
        In place of what the suffix says.
    delimiter : str, default=None
        Between the values of a row of CSV; None for a comma, or a tab in a ``.tsv`` file.
    ids : array-like of shape (n_samples,), default=None
        The samples' identifiers, for LibOPF; None counts from 0.

    Examples
    --------
    >>> import os, tempfile
    >>> from popf.datasets import read, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "mine.dat")
    ...     write(path, [[1.5], [2.5], [3.5]], ["b", "a", "b"])
    ...     read(path).target
    array([2, 1, 2])
    """
    kind = _format_of(path, format)
    names = feature_names if feature_names is not None else _own_names(X)
    data = check_array(X, dtype=np.float64, ensure_all_finite=False, input_name="X")
    labels = _checked_labels(y, len(data))
    names = [f"x{number}" for number in range(1, data.shape[1] + 1)] if names is None else names
    names = [str(name) for name in names]
    if len(names) != data.shape[1]:
        raise ValueError(f"{len(names)} feature_names for X with {data.shape[1]} features.")
    check_names([*names, target_name], "the table")
    if kind == "csv":
        check_csv_names([*names, target_name])
        check_csv_labels(labels)
        delimiter = _delimiter(path) if delimiter is None else delimiter
        content = csv_bytes(data, labels, names, target_name, delimiter)
    elif kind == "parquet":
        content = parquet_bytes(data, labels, names, target_name)
    elif kind == "libopf":
        content = libopf_bytes(data, labels, None if ids is None else _checked_ids(ids, len(data)))
    else:
        content = svmlight_bytes(data, labels)
    put(path, content)


def _format_of(path: str | os.PathLike[str], format: str | None) -> str:
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"`format` must be one of {', '.join(FORMATS)}, not {format!r}.")
        return format
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    for name, known in FORMATS.items():
        if suffix in known:
            return name
    every = ", ".join(suffix for known in FORMATS.values() for suffix in known if suffix)
    raise ValueError(
        f"the suffix {suffix!r} of {path} tells no format: use one of {every}, or pass `format` "
        f"({', '.join(FORMATS)})."
    )


def _delimiter(path: str | os.PathLike[str]) -> str:
    return "\t" if ".tsv" in [suffix.lower() for suffix in Path(path).suffixes] else ","


def _check_options(kind: str, **options: object) -> None:
    takes = {"csv": ("target", "encode", "delimiter"), "parquet": ("target", "encode")}
    for name, value in options.items():
        if value is not None and name not in takes.get(kind, ()):
            raise ValueError(
                f"`{name}={value!r}` has no meaning in the format {kind}: leave it out."
            )


def _own_names(X: ArrayLike) -> list[str] | None:
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def _checked_labels(y: ArrayLike, n_samples: int) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.shape != (n_samples,):
        raise ValueError(f"y must hold one label for each of {n_samples} samples, "
                         f"not shape {labels.shape}.")  # fmt: skip
    if labels.dtype.kind == "O":
        kinds = {type(label) for label in labels.tolist()}
        if len(kinds) != 1:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"y mixes labels of several types ({names}): give all one type.")
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y holds NaN or infinity: give every sample a label.")
    if labels.dtype.kind not in "biufU":
        raise TypeError(f"y must hold integers, real numbers or text, not {labels.dtype}.")
    return labels


def _checked_ids(ids: ArrayLike, n_samples: int) -> NDArray[np.int64]:
    numbers = np.asarray(ids)
    limits = np.iinfo(np.int32)
    fits = numbers.shape == (n_samples,) and numbers.dtype.kind in "iu"
    if not fits or numbers.min() < limits.min or numbers.max() > limits.max:
        raise ValueError(f"ids must be {n_samples} integers of 32 bits.")
    return numbers.astype(np.int64)
