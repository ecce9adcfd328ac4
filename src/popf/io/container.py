"""The file format: a JSON header and arrays, laid out as in safetensors, and checked before use.

A popf file has

- 8 bytes: the length of the header, as a little-endian integer;
- the header, JSON: the dtype, shape and position of every array, and as text under ``"__metadata__"`` the
  description of the model, the SHA-256 of the data, and that of the header itself;
- the data: all arrays one after the other, in C order and little-endian.

An array takes as much memory as it takes in the file, and only JSON is parsed. Any reader of safetensors reads
these files, too.
"""

import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

FORMAT, FORMAT_VERSION = "popf-model", 2
METADATA = "__metadata__"
# Parsed JSON takes about twenty times the memory of its text.
MAX_HEADER = 16 * 2**20
CHUNK = 2**20
LONGEST_QUOTE = 200
#: Numbers and booleans: no objects, no structured arrays.
DTYPES = {
    "BOOL": "|b1",
    **{f"I{8 * size}": np.dtype(f"<i{size}").str for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}").str for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": f"<f{size}" for size in (4, 8)},
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_PICKLES = tuple(bytes([0x80, version]) for version in range(2, 6))


class ModelFileError(ValueError):
    """The file is not a popf model, is damaged, or needs another version of popf."""


def can_hold(dtype: np.dtype[Any]) -> bool:
    """Return whether arrays of this dtype can be stored."""
    return dtype.newbyteorder("<").str in _NAMES


def write(file: BinaryIO, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a header, which must be serialisable as JSON, and arrays."""
    entries, start, digest = {}, 0, hashlib.sha256()
    pieces = []
    for name, array in arrays.items():
        little = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
        entries[name] = {
            "dtype": _NAMES[little.dtype.str],
            "shape": list(little.shape),
            "data_offsets": [start, start + little.nbytes],
        }
        start += little.nbytes
        pieces.append(_bytes(little))
        digest.update(pieces[-1])
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "popf": json.dumps(header, allow_nan=False),
        "data_sha256": digest.hexdigest(),
    }
    whole: Header = {METADATA: metadata, **entries}
    metadata["sha256"] = _sum_of(whole)
    text = json.dumps(whole).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(
            f"the description of this model has {len(text)} bytes, but at most {MAX_HEADER} can be saved. Are "
            "there very many features or classes?"
        )
    file.write(len(text).to_bytes(8, "little") + text)
    for piece in pieces:
        file.write(piece)


def read(path: str | os.PathLike[str], *, only_header: bool = False) -> tuple[Header, Arrays]:
    """Read and check a file; return its header and arrays.

    ``format_version``, ``file_bytes`` and ``sha256``, which includes the data, are added to the header.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelFileError(f"{path} is not a popf model but a folder or a device.")
        with open(path, "rb") as file:
            return _read(path, file, only_header)
    except ModelFileError:
        raise
    except Exception as error:  # JSON raises several kinds of errors for damaged files
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # such as a missing file
        raise ModelFileError(f"{path} is damaged: {brief(error)}.") from error


def is_model(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins like a model."""
    with open(path, "rb") as file:
        return _header_length(file.read(9)) > 0


def brief(error: Exception) -> str:
    """Return the message of an error, shortened and without its full stop."""
    text = (str(error) or type(error).__name__).removesuffix(".")
    if isinstance(error, KeyError):
        text = f"{text} is missing"
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]} ..."


def _read(path: Any, file: BinaryIO, only_header: bool) -> tuple[Header, Arrays]:
    size = os.fstat(file.fileno()).st_size
    start = file.read(9)
    length = _header_length(start)
    if length == 0:
        raise ModelFileError(f"{path} is not a popf model: {_what_it_is(start, size)}.")
    text = start[8:] + file.read(length - 1)
    entries = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)
    metadata = entries.get(METADATA, {})
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a popf model: its header is that of another format.")
    _check_version(path, metadata)
    given = metadata.pop("sha256")
    if given != _sum_of(entries):
        raise ValueError("the checksum of its header is wrong")
    header: Header = json.loads(
        metadata["popf"], object_pairs_hook=_without_repeats, parse_constant=_refuse
    )
    header |= {"format_version": FORMAT_VERSION, "file_bytes": size, "sha256": given}
    del entries[METADATA]
    _check_entries(entries, size - 8 - length)
    if only_header:
        return header, {}
    digest, arrays = hashlib.sha256(), {}
    for name, entry in entries.items():
        array = np.empty(entry["shape"], dtype=DTYPES[entry["dtype"]])
        buffer = _bytes(array)
        for begin in range(0, len(buffer), CHUNK):
            file.readinto(buffer[begin : begin + CHUNK])  # type: ignore[attr-defined]
        digest.update(buffer)
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    if digest.hexdigest() != metadata["data_sha256"]:
        raise ValueError("the checksum of its data is wrong")
    return header, arrays


def _header_length(start: bytes) -> int:
    """Return the length of the header from the first 9 bytes; 0 if there is no header."""
    length = int.from_bytes(start[:8], "little")
    return length if start[8:] == b"{" and 2 <= length <= MAX_HEADER else 0


def _what_it_is(start: bytes, size: int) -> str:
    """Describe a file that does not begin like a model."""
    if start[:4] == b"PK\x03\x04":
        return (
            "it is a zip archive. So were models of popf in format 1: fit the model again, or load it with the "
            "popf that wrote it"
        )
    if start[:2] in _PICKLES:
        return "it looks like a pickle, which can run arbitrary code and is therefore not opened"
    return "it does not begin like one" if size else "it is empty"


def _check_version(path: Any, metadata: Header) -> None:
    version = int(metadata["format_version"])
    if version != FORMAT_VERSION:
        writer = f"popf {json.loads(metadata['popf']).get('popf_version')}"[:40]
        age, remedy = "a newer", "upgrade popf"
        if version < FORMAT_VERSION:
            age, remedy = "an older", f"fit the model again, or load it with {writer}"
        raise ModelFileError(
            f"{path} was written by {age} version, {writer}, in format {version}, but this version reads "
            f"format {FORMAT_VERSION}: {remedy}."
        )


def _check_entries(entries: Header, n_bytes: int) -> None:
    """Check that the arrays fill the data one after the other."""
    stop = 0
    for name, entry in entries.items():
        shape, (start, end) = entry["shape"], entry["data_offsets"]
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"array {name[:80]!r} has dtype {str(entry['dtype'])[:80]!r}")
        if len(shape) > 2 or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"array {name[:80]!r} has shape {str(shape)[:80]}")
        expected = np.dtype(DTYPES[entry["dtype"]]).itemsize * math.prod(shape)
        # A shape such as (10**12, 0) takes no bytes, but arrays derived from it might.
        if (start, end) != (stop, stop + expected) or math.prod(max(n, 1) for n in shape) > n_bytes:
            raise ValueError(f"array {name[:80]!r} should take {expected} bytes after the others")
        stop = end
    if stop != n_bytes:
        raise ValueError(
            f"it has {n_bytes} bytes of data instead of {stop}; was it copied in full?"
        )


def _sum_of(entries: Header) -> str:
    """Compute the SHA-256 of a header without its own checksum."""
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode("ascii")).hexdigest()


def _bytes(array: NDArray[Any]) -> memoryview:
    """Return the values of a contiguous array as a view of bytes."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key occurs twice in its header")
    return entries


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"its header holds {constant}")
