"""CSV: text with one row a line, read and written by the standard library alone."""

import csv
import io
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.tables.formats.files import content_of
from popf.tables.formats.table import Encoding, Table, assemble, check_names, is_missing, is_number

_DELIMITERS = (",", ";", "\t", "|")


def read_csv(
    path: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    encode: Encoding | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> Table:
    """Read a CSV file: see `popf.datasets.read`."""
    if not (isinstance(delimiter, str) and len(delimiter) == 1):
        raise ValueError(f"`delimiter` must be one character, not {delimiter!r}.")
    rows = _rows(_decoded(path, encoding), path, delimiter)
    names = [cell.strip() for _, cell in enumerate(rows[0][1])]
    if all(_is_number(name) for name in names):
        names = [f"x{number}" for number in range(1, len(names) + 1)]
    else:
        rows = rows[1:]
    _check_width(names, path, delimiter)
    unnamed = [number for number, name in enumerate(names, start=1) if not name]
    if unnamed:
        raise ValueError(f"{path}: column {unnamed[0]} has no name in the first line: give it one.")
    check_names(names, str(path))
    if not rows:
        raise ValueError(f"{path} has names of columns, but no row.")
    for line, row in rows:
        if len(row) != len(names):
            raise ValueError(
                f"{path}, line {line}: {len(row)} values, where the file has {len(names)} columns. "
                "The file is cut short, or a value holds an unquoted delimiter."
            )
    columns = dict(zip(names, zip(*(row for _, row in rows), strict=True), strict=True))
    return assemble(columns, target, encode, str(path))


def _decoded(path: str | os.PathLike[str], encoding: str) -> str:
    content = content_of(path)
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        encoding = "utf-8-sig"  # spreadsheets put a mark before the first name
    try:
        text = content.decode(encoding)
    except LookupError as error:
        raise ValueError(f"there is no encoding named {encoding!r}: try 'utf-8'.") from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in {error.encoding}: byte {error.start} cannot be read. "
            "Name its encoding, for instance `encoding='latin-1'` or `encoding='utf-16'`."
        ) from error
    if "\0" in text:
        raise ValueError(
            f"{path} holds zero bytes: it is no text, or in another encoding, for instance 'utf-16'."
        )
    return text


def _rows(text: str, path: str | os.PathLike[str], delimiter: str) -> list[tuple[int, list[str]]]:
    """Give the rows with the numbers of their lines, without empty ones."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}.") from error
    if not rows:
        raise ValueError(f"{path} is empty.")
    return rows


def _is_number(word: str) -> bool:
    return not is_missing(word) and is_number(word)


def _check_width(names: list[str], path: str | os.PathLike[str], delimiter: str) -> None:
    if len(names) > 1:
        return
    others = [other for other in _DELIMITERS if other != delimiter and other in names[0]]
    if others:
        raise ValueError(
            f"{path} has one column only when split at {delimiter!r}, and looks split at "
            f"{others[0]!r}: pass `delimiter={others[0]!r}`."
        )
    raise ValueError(
        f"{path} has one column only when split at {delimiter!r}: features and a target need two. "
        "Pass the delimiter that it uses."
    )


def csv_bytes(
    X: NDArray[Any], y: NDArray[Any], feature_names: list[str], target_name: str, delimiter: str
) -> bytes:
    """Write features and target as CSV text, numbers with all their digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([*feature_names, target_name])
    labels = y.tolist()
    for row, label in zip(X.tolist(), labels, strict=True):
        writer.writerow([*("" if value != value else repr(value) for value in row), label])
    return text.getvalue().encode()


def check_csv_names(names: list[str]) -> None:
    """Raise ValueError where names would be read back as numbers, or not at all."""
    if all(_is_number(name) for name in names):
        raise ValueError(
            f"names of columns that are all numbers ({names[0]!r}, ...) would be read back as a "
            "row: give names with a letter."
        )
    odd = [name for name in names if name != name.strip() or not name]
    if odd:
        raise ValueError(f"the name {odd[0]!r} is empty or has spaces around it: strip it.")


def check_csv_labels(y: NDArray[Any]) -> None:
    """Raise ValueError where a label would not come back as it is."""
    if y.dtype.kind == "U":
        odd = [str(word) for word in np.unique(y) if is_missing(str(word)) or word != word.strip()]
        if odd:
            raise ValueError(
                f"the label {odd[0]!r} would not be read back from CSV, where it stands for "
                "nothing or loses spaces: rename it."
            )
