"""Read and write data files; the suffix sets the format."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_X_y

from popf.files import PACKED, check_file, open_output, packing, read_unpacked, write_packed
from popf.formatting import check_choice, decimals
from popf.tables.columns import is_missing, is_number
from popf.tables.csv_files import DELIMITERS, CsvFile
from popf.tables.parquet_files import ParquetFile
from popf.tables.samples import (
    default_names,
    libopf_bytes,
    parse_distances,
    parse_libopf,
    parse_opfython,
    parse_svmlight,
    samples_of,
    svmlight_bytes,
    text_format,
)
from popf.tables.table import Dialect, Table, check_names, need_pandas, need_pyarrow

#: Suffixes of files with named columns.
CSV, PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
#: The formats and their suffixes.
FORMATS = {
    "svmlight": (".svm", ".svmlight", ".libsvm", ".txt", ""),
    "csv": CSV,
    "parquet": PARQUET,
    "libopf": (".dat", ".opf"),
    "opfython": (".json",),
}
Writer = Callable[[Any], None]
#: Suffixes of tables with named columns; the other formats hold numbers and one label per row.
TABLES = (*CSV, *PARQUET)
SUFFIXES = [suffix for known in FORMATS.values() for suffix in known if suffix]


def open_table(path: str | os.PathLike[str], dialect: Dialect = Dialect()) -> Table:  # noqa: B008
    r"""Open a CSV or Parquet file: read and check the column names, but no rows.

    Parameters
    ----------
    path : str or path-like
        ``.csv``, ``.tsv`` or ``.txt``, also compressed as ``.gz`` or ``.bz2``; ``.parquet`` or ``.pq``.
    dialect : Dialect
        The format of a text file.

    Returns
    -------
    Table
        Its ``pieces`` method reads the rows.

    Examples
    --------
    >>> import os, tempfile
    >>> from popf.tables import ColumnTypes, open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "mine.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("name,size\na,1\nb,2\nc,3\n")
    ...     table = open_table(path)
    ...     print(table.names, [len(piece) for piece in table.pieces(ColumnTypes(["size"]), 2)])
    ['name', 'size'] [2, 1]
    """
    need_pandas()
    place = check_file(path)
    suffix = suffix_of(place)
    if suffix in PARQUET and place.suffix.lower() not in PACKED:
        return ParquetFile(place)
    if suffix in (*CSV, ".txt"):
        return CsvFile(place, dialect)
    raise ValueError(
        f"{place} does not have the suffix of a table: use .csv, .tsv, .txt, .parquet or .pq. Save "
        "spreadsheets as CSV; `popf convert` converts svmlight and LibOPF files."
    )


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of the format, in lower case, without that of the compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read(
    path: str | os.PathLike[str],
    target: str | int | None = None,
    *,
    format: str | None = None,
    encode: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    return_X_y: bool = False,
) -> Any:
    """Read samples and labels from a file.

    Parameters
    ----------
    path : str or path-like
        The suffix sets the format: ``.svm``, ``.svmlight``, ``.libsvm`` or none for svmlight; ``.csv`` or
        ``.tsv``; ``.parquet`` or ``.pq``; ``.dat`` or ``.opf`` for LibOPF; ``.json`` for opfython. The format
        of ``.txt`` (svmlight, LibOPF, opfython or CSV) is detected from the first line. Files with a further
        ``.gz`` or ``.bz2`` are decompressed.
    target : str or int, default=None
        Column of CSV or Parquet with the labels, by name or position; None for the last. The columns of CSV
        without a line of names are ``x1``, ``x2``, ..., and `target` must then be given.
    format : {"svmlight", "csv", "parquet", "libopf", "opfython"}, default=None
        Overrides the suffix. opfython's CSV, which has no column names, needs ``"opfython"``.
    encode : {"onehot", "ordinal"}, default=None
        How to encode text columns: a column of 0 and 1 for each value, or the position of the value in sorted
        order. With None, text columns raise an error that names them.
    delimiter : str, default=None
        CSV delimiter; None to detect it (comma, semicolon, tab or bar).
    encoding : str, default="utf-8"
        Encoding of CSV.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.

    Returns
    -------
    Bunch
        `data` of shape (n_samples, n_features), float64, NaN for missing values; `target`, integers, floats or
        text; `feature_names`; `target_name`; `ids` of LibOPF and opfython samples, else None; `format`.

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
    kind = format_of_file(path, format)
    takes = {"csv": ("target", "encode", "delimiter"), "parquet": ("target", "encode")}
    for name, value in {"target": target, "encode": encode, "delimiter": delimiter}.items():
        if value is not None and name not in takes.get(kind, ()):
            raise ValueError(
                f"`{name}={value!r}` does not apply to the format {kind}: leave it out."
            )
    if kind == "csv":
        need_pandas()
        table = CsvFile(check_file(path), Dialect(delimiter, encoding), need_names=False)
        if target is None and not table.has_names:
            raise ValueError(
                f"{path} begins with numbers, not with column names: give the position of the labels, such as "
                "`target=-1` for the last column, or `format='opfython'` if the columns are identifier, label, "
                "features."
            )
        samples = samples_of(table, target, encode)
    elif kind == "parquet":
        need_pandas()
        samples = samples_of(ParquetFile(check_file(path)), target, encode)
    else:
        parse = {"libopf": parse_libopf, "opfython": parse_opfython}.get(kind, parse_svmlight)
        samples = parse(read_unpacked(path), str(path))
    return samples[:2] if return_X_y else Bunch(**samples._asdict(), format=kind)


def read_distances(path: str | os.PathLike[str]) -> NDArray[np.float64]:
    r"""Read a distance matrix: LibOPF's ``distances.dat``, or lines of numbers, as opfython writes them.

    Parameters
    ----------
    path : str or path-like
        ``.gz`` and ``.bz2`` files are decompressed.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)
        For ``metric="precomputed"``. Row i of LibOPF's file belongs to the sample with identifier i.

    Examples
    --------
    >>> import os, tempfile
    >>> from popf.datasets import read_distances
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "distances.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("0 1.5\n1.5 0\n")
    ...     read_distances(path)
    array([[0. , 1.5],
           [1.5, 0. ]])
    """
    return parse_distances(read_unpacked(path), str(path))


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
    """Write samples and labels to a file, atomically.

    Reading the file gives exactly the same numbers, except that LibOPF's format stores single precision. LibOPF
    labels are integers from 1, and 0 for samples without a label; text labels are numbered from 1 in sorted
    order.

    Parameters
    ----------
    path : str or path-like
        The suffix sets the format, as in `read`.
    X : array-like of shape (n_samples, n_features)
        NaN for missing values.
    y : array-like of shape (n_samples,)
        Labels; svmlight needs numbers. Text labels that look like numbers are read back from CSV as numbers.
    feature_names : list of str, default=None
        Stored by CSV and Parquet. None for the column names of X, or ``x1``, ``x2``, ...
    target_name : str, default="target"
    format : {"svmlight", "csv", "parquet", "libopf"}, default=None
        Overrides the suffix.
    delimiter : str, default=None
        CSV delimiter; None for a comma, or a tab in ``.tsv`` files.
    ids : array-like of shape (n_samples,), default=None
        Identifiers of the samples, for LibOPF; None to count from 0.
    """
    kind = format_of(path, format)
    if kind == "opfython":
        raise ValueError("opfython files can be read but not written: write CSV or LibOPF's .dat.")
    data, labels = check_X_y(X, y, dtype=np.float64, ensure_all_finite=False)
    if labels.dtype.kind == "O":
        types = sorted({type(label).__name__ for label in labels.tolist()})
        if len(types) != 1:
            raise TypeError(
                f"y mixes labels of several types ({', '.join(types)}): use a single type."
            )
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "biufU":
        raise TypeError(f"y must hold integers, floats or text, not {labels.dtype}.")
    if feature_names is None:
        feature_names = getattr(X, "columns", default_names(data.shape[1]))
    names = [str(name) for name in feature_names]
    if len(names) != data.shape[1]:
        raise ValueError(f"{len(names)} feature_names, but X has {data.shape[1]} features.")
    check_names([*names, target_name], "the table")
    if kind == "libopf":
        content = libopf_bytes(data, labels, None if ids is None else _checked_ids(ids, len(data)))
    elif kind == "svmlight":
        content = svmlight_bytes(data, labels)
    else:
        frame = need_pandas().DataFrame(data, columns=names)
        frame[target_name] = labels
        if kind == "csv":
            usual = "\t" if suffix_of(path) == ".tsv" else ","
            content = _csv_bytes(frame, labels, delimiter or usual)
        else:
            need_pyarrow()
            content = frame.to_parquet(index=False)
    write_packed(path, content)


def format_of(path: str | os.PathLike[str], format: str | None = None) -> str:
    """Return the format of a file: the given one, else by its suffix."""
    if format is not None:
        check_choice("`format`", format, FORMATS)
        return format
    suffix = suffix_of(path)
    for name, known in FORMATS.items():
        if suffix in known:
            return name
    raise ValueError(
        f"the suffix {suffix!r} of {path} is unknown: use one of {', '.join(SUFFIXES)}, or pass "
        f"`format` ({', '.join(FORMATS)})."
    )


def format_of_file(path: str | os.PathLike[str], format: str | None = None) -> str:
    """Return the format of an existing file: as `format_of`, but ``.txt`` by its first line."""
    kind = format_of(path, format)
    if format is None and suffix_of(path) == ".txt":
        return text_format(read_unpacked(path))
    return kind


def _checked_ids(ids: ArrayLike, n_samples: int) -> NDArray[np.int64]:
    numbers = np.asarray(ids)
    limits = np.iinfo(np.int32)
    fits = numbers.shape == (n_samples,) and numbers.dtype.kind in "iu"
    if not fits or numbers.min() < limits.min or numbers.max() > limits.max:
        raise ValueError(f"ids must be 32-bit integers, one for each of the {n_samples} samples.")
    return numbers.astype(np.int64)


def _csv_bytes(frame: Any, labels: NDArray[Any], delimiter: str) -> bytes:
    """Return a frame as CSV; raise ValueError if names or labels would be read back differently."""
    names = list(frame.columns)
    if all(is_number(name) and not is_missing(name) for name in names):
        raise ValueError(
            f"column names that are all numbers ({names[0]!r}, ...) would be read back as a row: "
            "use names with a letter."
        )
    odd = [name for name in names if name != name.strip() or not name]
    if odd:
        raise ValueError(
            f"the column name {odd[0]!r} is empty or has spaces around it: rename the column."
        )
    words = np.unique(labels).astype(str).tolist()
    if labels.dtype.kind == "U":
        odd = [word for word in words if is_missing(word) or word != word.strip()]
    if odd:
        raise ValueError(
            f"the label {odd[0]!r} would not be read back from CSV, where it means a missing value or loses "
            "spaces: rename it."
        )
    # Text that contains any possible delimiter is quoted, so that the delimiter is detected correctly.
    quoted = any(mark in word for word in [*names, *words] for mark in DELIMITERS)
    quoting = csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL
    text: str = frame.to_csv(sep=delimiter, index=False, lineterminator="\n", quoting=quoting)
    return text.encode()


@contextmanager
def table_writer(output: Path, probabilities: Sequence[str] = ()) -> Iterator[Writer]:
    """Yield a function that appends frames to a table; CSV has the `probabilities` with fixed decimals.

    The output ``-`` is CSV on standard output.
    """
    if output == Path("-"):
        yield _csv_writer(sys.stdout, ",", probabilities)
        return
    delimiter = delimiter_of(output)
    with ExitStack() as stack:
        file = stack.enter_context(open_output(output))
        if delimiter is None:
            yield _parquet_writer(file, stack)
            return
        packed = stack.enter_context(packing(file, output.suffix.lower()))
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        stack.callback(text.detach)  # flushes, and leaves the file open
        yield _csv_writer(text, delimiter, probabilities)


def delimiter_of(path: Path) -> str | None:
    """Return the delimiter of a CSV file, None for Parquet; raise ValueError for any other suffix."""
    suffix = suffix_of(path)
    if suffix in PARQUET and path.suffix.lower() not in PACKED:
        return None
    if suffix not in (*CSV, ".txt"):
        raise ValueError(f"the suffix of {path} must be .csv, .csv.gz, .tsv or .parquet.")
    return "\t" if suffix == ".tsv" else ","


def _csv_writer(text: Any, delimiter: str, probabilities: Sequence[str]) -> Writer:
    header = True

    def write(frame: Any) -> None:
        nonlocal header
        cells = {name: decimals(frame[name].to_numpy()) for name in probabilities}
        frame.assign(**cells).to_csv(
            text, sep=delimiter, index=False, header=header, lineterminator="\n"
        )
        header = False

    return write


def _parquet_writer(file: Any, stack: ExitStack) -> Writer:
    pyarrow = need_pyarrow()
    writer: Any = None

    def write(frame: Any) -> None:
        nonlocal writer
        batch = pyarrow.Table.from_pandas(frame, preserve_index=False)
        if writer is None:
            writer = stack.enter_context(pyarrow.parquet.ParquetWriter(file, batch.schema))
        writer.write_table(batch.cast(writer.schema))

    return write
