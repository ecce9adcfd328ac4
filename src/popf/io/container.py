"""The file format: a JSON header and arrays in a zip archive, checked before use.

A popf file is a zip archive whose members are stored without compression:

``popf.json``     the header: the description of the model, and the dtype and shape of every array
``*.npy``         the arrays, in NumPy's own format, so that `numpy.load` reads them too
``SHA256SUMS``    the SHA-256 of every other member, in the format of ``sha256sum -c``

Stored members take as much memory as they take in the file, so a small file cannot use much of it. Only the zip
directory and JSON are parsed: the header of an ``.npy`` member is compared with the one that the JSON header
implies. Members are never extracted, so their names cannot refer to other files.
"""

import errno
import hashlib
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

FORMAT, FORMAT_VERSION = "popf-model", 1
HEADER, SUMS = "popf.json", "SHA256SUMS"
MAX_MEMBERS = 10_000
# Parsed JSON takes about twenty times the memory of its text.
MAX_HEADER = 16 * 2**20
MAX_DIRECTORY = 4 * 2**20
CHUNK = 2**20
LONGEST_QUOTE = 200

# Numbers, booleans and fixed-width text: no objects, no structured arrays.
_DTYPE = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[48]|<U[1-9][0-9]{0,8}")
_SUM = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_.-]{1,200})")
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_-]{1,190}")
_PICKLES = tuple(bytes([0x80, version]) for version in range(2, 6))
_END, _END64, _LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"


class ModelFileError(ValueError):
    """The file is not a popf model, is damaged, or needs a newer version of popf."""


def can_hold(dtype: np.dtype[Any]) -> bool:
    """Return whether arrays of this dtype can be stored."""
    return _DTYPE.fullmatch(dtype.newbyteorder("<").str) is not None


def write(file: BinaryIO, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a header and arrays; `file` must be seekable, `header` must be serialisable as JSON."""
    little = {
        name: np.asarray(array, array.dtype.newbyteorder("<"), order="C")
        for name, array in arrays.items()
    }
    declared = {
        name: {"dtype": array.dtype.str, "shape": list(array.shape)}
        for name, array in little.items()
    }
    whole = {"format": FORMAT, "format_version": FORMAT_VERSION, **header, "arrays": declared}
    text = json.dumps(whole, allow_nan=False, indent=1).encode("ascii")
    if len(text) > MAX_HEADER or len(little) > MAX_MEMBERS - 2:
        raise ValueError(
            f"the description of this model has {len(text)} bytes and {len(little)} arrays, but at "
            f"most {MAX_HEADER} and {MAX_MEMBERS - 2} can be saved. Are there very many features or classes?"
        )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        sums = [_add(archive, HEADER, text)]
        for name, array in little.items():
            prefix = _npy_prefix(array.dtype.str, array.shape)
            sums.append(_add(archive, f"{name}.npy", prefix, _bytes(array)))
        _add(archive, SUMS, "".join(sums).encode("ascii"))


def read(path: str | os.PathLike[str], *, only_header: bool = False) -> tuple[Header, Arrays]:
    """Read and check a file; return its header and arrays.

    ``file_bytes`` and ``sha256``, the SHA-256 of the list of checksums, are added to the header.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelFileError(f"{path} is not a popf model but a folder or a device.")
        with open(path, "rb") as file:
            return _read(path, file, only_header)
    except ModelFileError:
        raise
    except Exception as error:  # zip and JSON raise many kinds of errors for damaged files
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # such as a missing file; EINVAL comes from an invalid position in a damaged file
        raise ModelFileError(f"{path} is damaged: {brief(error)}.") from error


def brief(error: Exception) -> str:
    """Return the message of an error, shortened and without its full stop."""
    text = (str(error) or type(error).__name__).removesuffix(".")
    if isinstance(error, KeyError):
        text = f"{text} is missing"
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]} ..."


def _read(path: Any, file: BinaryIO, only_header: bool) -> tuple[Header, Arrays]:
    size = os.fstat(file.fileno()).st_size
    _check_ends(path, file, size)
    with zipfile.ZipFile(file) as archive:
        members = _list_members(archive, size)
        if HEADER not in members or SUMS not in members:
            raise ModelFileError(f"{path} is not a popf model but another kind of zip archive.")
        listed = _small_member(archive, members[SUMS])
        sums = {}
        for line in listed.decode("ascii").splitlines():
            match = _SUM.fullmatch(line)
            if match is None:
                raise ValueError(f"{SUMS} holds {line[:80]!r}")
            sums[match[2]] = match[1]
        if {*sums, SUMS} != set(members):
            raise ValueError("members and checksums do not match")
        text = _small_member(archive, members[HEADER])
        _check_sum(HEADER, hashlib.sha256(text).hexdigest(), sums)
        header = _parse_header(path, text)
        header["file_bytes"], header["sha256"] = size, hashlib.sha256(listed).hexdigest()
        declared = _check_declared(header.pop("arrays"), members, size)
        if only_header:
            return header, {}
        return header, {
            name: _read_array(archive, name, dtype, shape, sums)
            for name, (dtype, shape) in declared.items()
        }


def _check_ends(path: Any, file: BinaryIO, size: int) -> None:
    """Check the first and the last bytes, before the zip directory is read."""
    start = file.read(4)
    if start != b"PK\x03\x04":
        why = "it is empty" if size == 0 else "it does not begin like one"
        if start[:2] in _PICKLES:
            why = "it looks like a pickle, which can run arbitrary code and is therefore not opened"
        raise ModelFileError(f"{path} is not a popf model: {why}.")
    file.seek(max(0, size - 98))
    tail = file.read(98).rjust(98, b"\0")
    end, locator, end64 = tail[-22:], tail[-42:-22], tail[:-42]
    if end[:4] != _END or end[20:] != b"\0\0":
        raise ValueError("its end is missing; was it copied in full?")
    directory = struct.unpack("<L", end[12:16])[0]
    if locator[:4] == _LOCATOR64 and end64[:4] == _END64:
        directory = struct.unpack("<Q", end64[40:48])[0]
    if directory > MAX_DIRECTORY:
        raise ValueError(f"its zip directory declares {directory} bytes")


def _list_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    members = {info.filename: info for info in archive.infolist()}
    if len(members) != len(archive.infolist()):
        raise ValueError("two members have the same name")
    if len(members) > MAX_MEMBERS:
        raise ValueError(f"it declares {len(members)} members")
    for name, info in members.items():
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
            raise ValueError(
                f"member {name!r} is compressed or encrypted, which popf never does; "
                "a model file must not be repacked"
            )
        if info.compress_size != info.file_size:
            raise ValueError(f"member {name!r} has two sizes")
    if sum(info.file_size for info in members.values()) > size:
        raise ValueError("its members declare more bytes than the file has")
    return members


def _small_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.file_size > MAX_HEADER:
        raise ValueError(f"member {info.filename!r} declares {info.file_size} bytes")
    return archive.read(info)


def _check_sum(name: str, digest: str, sums: dict[str, str]) -> None:
    if digest != sums[name]:
        raise ValueError(f"the checksum of member {name!r} is wrong")


def _parse_header(path: Any, text: bytes) -> Header:
    header = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header is not that of a popf model")
    version = header.get("format_version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its format version is {version!r}")
    if version > FORMAT_VERSION:
        writer = str(header.get("popf_version"))[:40]
        raise ModelFileError(
            f"{path} was written by a newer popf, {writer}, in format {version}; this version "
            f"reads formats up to {FORMAT_VERSION}: upgrade popf."
        )
    return header


def _check_declared(
    entries: Any, members: dict[str, zipfile.ZipInfo], size: int
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Compare the dtypes and shapes in the header with the sizes of the members."""
    declared = {}
    for name, entry in entries.items():
        dtype, shape = entry["dtype"], tuple(entry["shape"])
        if not (isinstance(dtype, str) and _DTYPE.fullmatch(dtype) and _ARRAY_NAME.fullmatch(name)):
            raise ValueError(f"array {name[:80]!r} has dtype {str(dtype)[:80]!r}")
        if len(shape) > 2 or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"array {name!r} has shape {str(shape)[:80]}")
        expected = len(_npy_prefix(dtype, shape)) + np.dtype(dtype).itemsize * math.prod(shape)
        info = members.get(f"{name}.npy")
        # A shape such as (10**12, 0) takes no bytes, but arrays derived from it might.
        if info is None or info.file_size != expected or math.prod(max(n, 1) for n in shape) > size:
            raise ValueError(f"array {name!r} should take {expected} bytes")
        declared[name] = dtype, shape
    if len(declared) + 2 != len(members):
        raise ValueError("it has members that are not in its header")
    return declared


def _read_array(
    archive: zipfile.ZipFile, name: str, dtype: str, shape: tuple[int, ...], sums: dict[str, str]
) -> NDArray[Any]:
    array, prefix = np.empty(shape, dtype=dtype), _npy_prefix(dtype, shape)
    buffer = _bytes(array)
    with archive.open(f"{name}.npy") as member:
        head = member.read(len(prefix))
        digest = hashlib.sha256(head)
        for start in range(0, len(buffer), CHUNK):
            piece = member.read(min(CHUNK, len(buffer) - start))
            digest.update(piece)
            buffer[start : start + CHUNK] = piece
        member.read(1)  # at the end, zipfile checks its own checksum
    _check_sum(f"{name}.npy", digest.hexdigest(), sums)
    if head != prefix:
        raise ValueError(f"array {name!r} does not match the header")
    if dtype[1] == "U" and array.size and array.reshape(-1).view("<u4").max() > 0x10FFFF:
        raise ValueError(f"array {name!r} holds invalid text")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _npy_prefix(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of an ``.npy`` file, up to the values."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1")


def _bytes(array: NDArray[Any]) -> memoryview:
    """Return the values of a contiguous array as a view of bytes."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)


def _add(archive: zipfile.ZipFile, name: str, *parts: bytes | memoryview) -> str:
    """Add a member; return its line for the list of checksums."""
    info = zipfile.ZipInfo(name)  # with a fixed date, so that equal models give equal members
    info.external_attr = 0o644 << 16
    info.file_size = sum(len(part) for part in parts)
    digest = hashlib.sha256()
    with archive.open(info, "w") as member:
        for part in parts:
            for start in range(0, len(part), CHUNK):
                piece = part[start : start + CHUNK]
                digest.update(piece)
                member.write(piece)
    return f"{digest.hexdigest()}  {name}\n"


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key occurs twice in its header")
    return entries


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"its header holds {constant}")
