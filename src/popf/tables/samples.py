"""Features and labels as arrays, from tables and from numeric file formats.

svmlight text, as on the LIBSVM page, has a line ``label index:value ...`` per sample, without zeros.

LibOPF's binary files are little-endian, with 4 bytes per number: three integers, the numbers of samples,
classes and features, then for each sample its identifier and label (integers) and its features (single
precision). Labels count from 1; 0 means that the sample has no label. LibOPF's text files hold the same, one
sample per line. opfython's text files have no header line, and labels that count from 0; its JSON files hold
``{"data": [{"id": 0, "label": 1, "features": [0.5, 2.0]}, ...]}``.

LibOPF's ``distances.dat`` holds the number of samples (an integer) and the square distance matrix in single
precision; its rows belong to the identifiers 0, 1, ... opfython's file holds the matrix as text.
"""

import io
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray, IntArray
from popf.formatting import check_choice, listed
from popf.tables.columns import labels_of, whole
from popf.tables.table import ColumnTypes, Table, check_names

_HEADER = 12  # bytes
#: Errors that scikit-learn raises for text that is not svmlight.
_NOT_SVMLIGHT = (ValueError, OverflowError, TypeError, IndexError)
#: Above this size, fewer than one value in a thousand is refused instead of filled up with zeros.
_MANY_CELLS = 10**7


class Samples(NamedTuple):
    """Features and labels, with their names."""

    data: FloatArray  # NaN where a value is missing
    target: NDArray[Any]  # integers, floats or text
    feature_names: list[str]
    target_name: str = "target"
    ids: IntArray | None = None  # identifiers of the samples, in LibOPF and opfython files


def default_names(n_features: int) -> list[str]:
    """Return the default feature names ``x1``, ``x2``, ..."""
    return [f"x{number}" for number in range(1, n_features + 1)]


def samples_of(
    table: Table,
    target: str | int | None = None,
    encode: str | None = None,
    drop: Sequence[str] = (),
) -> Samples:
    """Split a table into features and labels; the parameters are those of `popf.tables.read`."""
    if encode is not None:
        check_choice("`encode`", encode, ("onehot", "ordinal"))
    table.need(drop, "drop")
    names = [name for name in table.names if name not in drop]
    target = _target_name(table, names, target)
    text = table.text()
    try:
        y = labels_of(text[target].tolist(), target)
    except ValueError as error:
        raise ValueError(f"{table.path}: {error}") from None
    features = [name for name in names if name != target]
    if not features:
        raise ValueError(
            f"{table.path} has only one column, {target!r}: features and a target need two."
        )
    kinds = {name: table.kind(text[name]) for name in features}
    numbers = [name for name in features if kinds[name].numbers or name in table.booleans]
    words = [name for name in features if name not in numbers]
    if words and encode is None:
        shown = [f"{name} (for instance {kinds[name].odd_cell!r})" for name in words]
        raise ValueError(
            f"{table.path} has columns that are not numeric: {listed(shown)}. Leave them out, or encode "
            "them: `encode='onehot'` makes a column of 0 and 1 for each value, `encode='ordinal'` numbers "
            "the values in sorted order."
        )
    frame = table.frame(ColumnTypes(numbers)) if numbers else text
    blocks, feature_names = [], []
    for name in features:
        if name not in words:
            blocks.append(frame[[name]].to_numpy())
            feature_names.append(name)
            continue
        # Missing text is a value of its own.
        values, codes = np.unique([str(cell).strip() for cell in text[name]], return_inverse=True)
        if encode == "onehot":
            blocks.append(np.eye(len(values))[codes])
            feature_names += [f"{name}={value}" for value in values.tolist()]
        else:
            blocks.append(codes.astype(np.float64)[:, None])
            feature_names.append(name)
    check_names(feature_names, f"{table.path}, encoded,")
    return Samples(np.ascontiguousarray(np.hstack(blocks)), y, feature_names, target)


def _target_name(table: Table, names: list[str], target: str | int | None) -> str:
    if isinstance(target, str):
        table.need([target], "target")
        return target
    position = -1 if target is None else target
    if isinstance(position, bool) or not -len(names) <= position < len(names):
        raise ValueError(
            f"`target` must be the name of a column of {table.path}, or a position from 0 to "
            f"{len(names) - 1}, not {target!r}."
        )
    return names[position]


def parse_svmlight(content: bytes, where: str) -> Samples:
    """Parse svmlight text; `where` names the file in error messages."""
    from sklearn.datasets import load_svmlight_file

    try:
        sparse, labels = load_svmlight_file(io.BytesIO(content))
    except _NOT_SVMLIGHT as error:
        raise ValueError(
            f"{where} is not svmlight text ('label index:value ...' on each line), "
            f"line {_first_odd_line(content)}: {error}"
        ) from error
    if not sparse.shape[0] or b":" not in content:
        raise ValueError(f"{where} has no samples with features.")
    cells = sparse.shape[0] * sparse.shape[1]
    if cells > _MANY_CELLS and cells > 1000 * sparse.nnz:
        raise ValueError(
            f"{where} is sparse: it has {sparse.nnz:,} of the {cells:,} values of {sparse.shape[0]:,} samples "
            f"and {sparse.shape[1]:,} features. popf needs all of them in memory: select features first."
        )
    X = np.ascontiguousarray(sparse.toarray(), dtype=np.float64)
    return Samples(X, whole(labels), default_names(X.shape[1]))


def _first_odd_line(content: bytes) -> str:
    """Return the first line that cannot be read, for an error message."""
    from sklearn.datasets import load_svmlight_file

    for number, line in enumerate(content.splitlines(), start=1):
        try:
            load_svmlight_file(io.BytesIO(line))
        except _NOT_SVMLIGHT:
            return f"{number} ({line[:40].decode('utf-8', 'replace')!r})"
    return "unknown"


def svmlight_bytes(X: FloatArray, y: NDArray[Any]) -> bytes:
    """Return svmlight text with exact numbers: scikit-learn's writer keeps 16 digits, a double may need 17.

    The last feature of the first sample is written even if it is zero, to keep the number of features.
    """
    if y.dtype.kind not in "biuf":
        shown = ", ".join(repr(str(label)) for label in np.unique(y)[:3])
        raise ValueError(
            f"svmlight labels are numbers, but y has {shown}: write CSV, or number the labels."
        )
    numbers = y.astype(np.float64)
    if not np.isfinite(numbers).all() or not np.array_equal(numbers.astype(y.dtype), y):
        raise ValueError(
            "svmlight labels must be finite float64 numbers, which some labels of y are not."
        )
    lines = []
    for row, (values, label) in enumerate(zip(X.tolist(), whole(numbers).tolist(), strict=True)):
        cells = [
            f"{index}:{value!r}"
            for index, value in enumerate(values, start=1)
            if value != 0.0 or (row == 0 and index == len(values))
        ]
        lines.append(" ".join([repr(label), *cells]) + "\n")
    return "".join(lines).encode()


def parse_libopf(content: bytes, where: str) -> Samples:
    """Parse a LibOPF data file, binary or text; `where` names the file in error messages."""
    if _is_text(content):
        return _parse_libopf_text(content, where)
    if len(content) < _HEADER:
        raise ValueError(
            f"{where} is truncated: it has {len(content)} bytes, but the header alone takes 12."
        )
    n_samples, n_classes, n_features = (int(n) for n in np.frombuffer(content, "<i4", 3))
    expected = _HEADER + n_samples * (8 + 4 * n_features)
    if n_samples > 0 and len(content) == 4 + 4 * n_samples**2 != expected:
        raise ValueError(
            f"{where} holds distances, not samples: read it with `popf.datasets.read_distances`."
        )
    if n_samples < 1 or n_classes < 0 or not 1 <= n_features <= 2**24:
        raise ValueError(
            f"{where} is not a LibOPF data file: it does not begin with the numbers of samples and features."
        )
    if len(content) != expected:
        verb = "is truncated" if len(content) < expected else "is too long"
        raise ValueError(
            f"{where} {verb}: {n_samples} samples of {n_features} features take {expected} bytes, but it "
            f"has {len(content)}. Or it is not a LibOPF data file."
        )
    samples = np.frombuffer(content, _record(n_features), n_samples, _HEADER)
    labels = samples["label"].astype(np.int64)
    _check_labels(labels, n_classes, where)
    X = np.ascontiguousarray(samples["features"], dtype=np.float64)
    return Samples(X, labels, default_names(n_features), ids=samples["id"].astype(np.int64))


def parse_opfython(content: bytes, where: str) -> Samples:
    """Parse an opfython text or JSON file; `where` names the file in error messages."""
    if not content.lstrip().startswith(b"{"):
        return _samples(_rows(content, where), where)
    try:
        entries = json.loads(content)["data"]
        lines = [[entry["id"], entry["label"], *entry["features"]] for entry in entries]
        rows = np.array(lines, dtype=np.float64)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{where} is not an opfython JSON file, a list 'data' of objects with 'id', 'label' and equally "
            f"many 'features': {error}"
        ) from error
    return _samples(rows, where)


def text_format(content: bytes) -> str:
    """Detect the format of a text file from its first line: svmlight, libopf, opfython or csv."""
    line, _, rest = content.lstrip().partition(b"\n")
    words = line.replace(b",", b" ").split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:  # "1 3:0.5", or column names
        return "svmlight" if b":" in line or line.startswith((b"#", b"<")) else "csv"
    if len(words) == 3 and numbers[0] == len(rest.split(b"\n")) - rest.endswith(b"\n"):
        return "libopf"
    return "opfython" if len(words) > 2 else "svmlight"


def parse_distances(content: bytes, where: str) -> FloatArray:
    """Parse a distance matrix, LibOPF's binary format or text."""
    if _is_text(content):
        matrix = _rows(content, where)
        if len(matrix) != matrix.shape[1]:
            raise ValueError(f"{where} must hold a square matrix, not one of shape {matrix.shape}.")
        return matrix
    n_samples = int(np.frombuffer(content, "<i4", 1)[0]) if len(content) >= 4 else 0
    if n_samples < 1 or len(content) != 4 + 4 * n_samples**2:
        raise ValueError(
            f"{where} is not a LibOPF distance file: {n_samples} samples do not take {len(content)} bytes."
        )
    distances = np.frombuffer(content, "<f4", offset=4).reshape(n_samples, n_samples)
    return distances.astype(np.float64)


def libopf_bytes(X: FloatArray, y: NDArray[Any], ids: IntArray | None = None) -> bytes:
    """Return a LibOPF data file; labels that it cannot hold are numbered from 1 in sorted order."""
    with np.errstate(over="ignore"):
        features = X.astype("<f4")
    if np.any(np.isfinite(X) & ~np.isfinite(features)):
        worst = X[np.isfinite(X) & ~np.isfinite(features)][0]
        raise ValueError(
            f"LibOPF stores single precision, and {worst:g} exceeds its range: scale X."
        )
    samples = np.empty(len(X), _record(X.shape[1]))
    samples["id"] = np.arange(len(X)) if ids is None else ids
    samples["label"] = _labels_from_1(y)
    samples["features"] = features
    header = np.array([len(X), samples["label"].max(), X.shape[1]], dtype="<i4")
    return header.tobytes() + samples.tobytes()


def _labels_from_1(y: NDArray[Any]) -> NDArray[Any]:
    """Return non-negative integers unchanged; number other labels (text, -1 and 1, ...) from 1."""
    if y.dtype.kind in "iu" and y.min() >= 0:
        if y.max() >= 2**31:
            raise ValueError(f"LibOPF labels are 32-bit integers, and {y.max()} is too large.")
        return y
    classes, codes = np.unique(y, return_inverse=True)
    if y.dtype.kind == "i" and len(classes) > 2:
        raise ValueError(
            f"LibOPF labels count from 1, with 0 for samples without a label, but y holds {classes[0]}: write "
            "y + 1 if -1 marks samples without a label, or number the classes from 1."
        )
    return codes + 1


def _record(n_features: int) -> np.dtype[Any]:
    return np.dtype([("id", "<i4"), ("label", "<i4"), ("features", "<f4", (n_features,))])


def _is_text(content: bytes) -> bool:
    """Return whether a file is text, judged by its first bytes."""
    return all(32 <= byte < 127 or byte in b"\t\r\n" for byte in content[:64])


def _parse_libopf_text(content: bytes, where: str) -> Samples:
    first, _, rest = content.lstrip().partition(b"\n")
    words = first.split()
    if len(words) != 3 or not all(word.isdigit() for word in words):
        kind = " in KEEL's format" if first.lower().startswith(b"@relation") else ""
        raise ValueError(
            f"{where} is text{kind}, but not in LibOPF's format, whose first line has the numbers of samples, "
            "classes and features: convert it to CSV, or give its format, for instance `format='csv'`."
        )
    n_samples, n_classes, n_features = (int(word) for word in words)
    rows = _rows(rest, where)
    if rows.shape != (n_samples, 2 + n_features):
        raise ValueError(
            f"{where} declares {n_samples} samples of {n_features} features, but has {len(rows)} lines of "
            f"{rows.shape[1]} numbers. A line holds an identifier, a label and the features."
        )
    samples = _samples(rows, where)
    _check_labels(samples.target, n_classes, where)
    return samples


def _rows(content: bytes, where: str) -> FloatArray:
    """Parse lines of equally many numbers, separated by commas or spaces."""
    rows: list[list[float]] = []
    for number, line in enumerate(content.splitlines(), start=1):
        words = line.replace(b",", b" ").split()
        if rows and words and len(words) != len(rows[0]):
            raise ValueError(
                f"{where}, line {number}: {len(words)} numbers, but the first line has {len(rows[0])}."
            )
        try:
            rows += [[float(word) for word in words]] if words else []
        except ValueError as error:
            raise ValueError(f"{where}, line {number}: {str(error)[:100]}.") from error
    if not rows:
        raise ValueError(f"{where} has no lines of numbers.")
    return np.array(rows)


def _samples(rows: FloatArray, where: str) -> Samples:
    """Split rows into identifiers, labels and features."""
    if rows.shape[1] < 3:
        raise ValueError(f"{where} must have lines of an identifier, a label and features.")
    ids, labels = whole(rows[:, 0]), whole(rows[:, 1])
    for name, numbers in {"identifiers": ids, "labels": labels}.items():
        if numbers.dtype.kind == "f":
            raise ValueError(
                f"{where} is not an opfython or LibOPF file: their {name} are integers, not "
                f"{numbers[numbers != np.floor(numbers)][0]:g}."
            )
    X = np.ascontiguousarray(rows[:, 2:])
    return Samples(X, labels, default_names(X.shape[1]), ids=ids)


def _check_labels(labels: NDArray[Any], n_classes: int, where: str) -> None:
    if labels.min() < 0 or labels.max() > n_classes:
        odd = int(labels[(labels < 0) | (labels > n_classes)][0])
        raise ValueError(
            f"{where} is not a LibOPF data file: it declares {n_classes} classes, but a sample has "
            f"label {odd}."
        )
