"""The container: a JSON header and arrays in a zip file, checked before anything is used.

A popf file is a zip archive of members that are stored, not compressed:

``popf.json``     the header: what the model is, and the dtype and shape of every array
``*.npy``         the arrays, in NumPy's own format, so that `numpy.load` reads them too
``SHA256SUMS``    the SHA-256 of every other member, as ``sha256sum -c`` wants it

Stored members take the room in memory that they take in the file, so a small file cannot ask for much
of it. Nothing is parsed but zip's directory and JSON: the head of an ``.npy`` member is not read, it is
compared with the one that follows from the header. Members are never extracted, so their names cannot
reach anything outside. What a model is made of is no concern of this module.
"""

import errno
import hashlib
import json
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
# Numbers only: no objects, no records.
DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
MAX_MEMBERS = 10_000
# Parsed JSON takes some twenty times the memory of its text.
MAX_HEADER = 16 * 2**20
MAX_DIRECTORY = 4 * 2**20
CHUNK = 2**20
LONGEST_QUOTE = 200

_SUM = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_.-]{1,200})")
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_-]{1,190}")
_END, _END64, _LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"


class ModelFileError(ValueError):
    """A file is not a popf model, is damaged, or needs a newer popf.

    Examples
    --------
    >>> import os, tempfile
    >>> import popf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("no model")
    ...     try:
    ...         popf.load(path)
    ...     except popf.io.ModelFileError as error:
    ...         print(os.path.basename(str(error)))
    notes.txt is not a popf model: it does not begin as one.
    """


def write(file: BinaryIO, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a container.

    Parameters
    ----------
    file : binary file
        Open for writing, and seekable.
    header : mapping
        What JSON can hold.
    arrays : mapping of str to ndarray
        Of numbers or truth values.
    """
    little = {name: _little_endian(name, array) for name, array in arrays.items()}
    declared = {
        name: {"dtype": array.dtype.str, "shape": list(array.shape)}
        for name, array in little.items()
    }
    whole = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **header,
        "arrays": declared,
    }
    text = json.dumps(whole, allow_nan=False, indent=1).encode("ascii")
    if len(text) > MAX_HEADER or len(little) > MAX_MEMBERS - 2:
        raise ValueError(
            f"the description of this model takes {len(text)} bytes and {len(little)} arrays, but at "
            f"most {MAX_HEADER} and {MAX_MEMBERS - 2} can be saved. Are there very many categories or classes?"
        )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        sums = [_add(archive, HEADER, text)]
        for name, array in little.items():
            prefix = npy_prefix(array.dtype.str, array.shape)
            sums.append(_add(archive, f"{name}.npy", prefix, _bytes(array)))
        _add(archive, SUMS, "".join(sums).encode("ascii"))


def read(path: str | os.PathLike[str], *, only_header: bool = False) -> tuple[Header, Arrays]:
    """Read a container, and check it.

    Parameters
    ----------
    path : str or path-like
    only_header : bool
        Read and check no arrays.

    Returns
    -------
    header : dict
        With ``file_bytes`` and ``sha256``, the SHA-256 of the list of checksums, added.
    arrays : dict of str to ndarray
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelFileError(f"{path} is not a popf model but a folder or a device.")
        with open(path, "rb") as file:
            return _Reader(path, file).read(only_header)
    except ModelFileError:
        raise
    except Exception as error:  # whatever zip or JSON find in a file that is not what it should be
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # no such file, no permission: the system says it well. But not: no such place in it
        raise ModelFileError(f"{path} is damaged: {brief(error)}.") from error


def brief(error: Exception) -> str:
    """Say what an error says, without a long quotation from a file."""
    text = str(error) or type(error).__name__
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]} ..."


def npy_prefix(dtype: str, shape: tuple[int, ...]) -> bytes:
    r"""Make the first bytes of an ``.npy`` file, up to the numbers.

    Examples
    --------
    >>> from popf.io.container import npy_prefix
    >>> npy_prefix("<f8", (2, 3))[10:]
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }...\n"
    """
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1")


def _little_endian(name: str, array: NDArray[Any]) -> NDArray[Any]:
    little = np.ascontiguousarray(array).reshape(array.shape)
    little = little.astype(little.dtype.newbyteorder("<"), copy=False)
    if little.dtype.str not in DTYPES or not _ARRAY_NAME.fullmatch(name):
        raise TypeError(f"an array {name!r} of {array.dtype} cannot be saved.")
    return little


def _bytes(array: NDArray[Any]) -> memoryview:
    """Look at the numbers of a contiguous array as bytes."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)


def _add(archive: zipfile.ZipFile, name: str, *parts: bytes | memoryview) -> str:
    """Add a member; returns its line of the checksums."""
    info = zipfile.ZipInfo(name)  # of a fixed date, so that equal models make equal members
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


class _Reader:
    """An open container."""

    def __init__(self, path: str | os.PathLike[str], file: BinaryIO) -> None:
        self.path, self.file = path, file
        self.size = os.fstat(file.fileno()).st_size

    def read(self, only_header: bool) -> tuple[Header, Arrays]:
        self._check_ends()
        with zipfile.ZipFile(self.file) as self.archive:
            self.members = self._list_members()
            if HEADER not in self.members or SUMS not in self.members:
                raise ModelFileError(
                    f"{self.path} is not a popf model but another kind of zip archive."
                )
            text, digest = self._bytes_of(SUMS, MAX_HEADER)
            self.sums = self._parse_sums(text.decode("ascii"))
            header = self._header()
            header["file_bytes"], header["sha256"] = self.size, digest
            declared = self._declared(header)
            if only_header:
                return header, {}
            return header, {name: self._array(name, *of) for name, of in declared.items()}

    def _damaged(self, why: str) -> NoReturn:
        raise ModelFileError(f"{self.path} is damaged: {why}.")

    def _check_ends(self) -> None:
        """Look at the first and the last bytes, before the list of members is read."""
        start = self.file.read(4)
        if start != b"PK\x03\x04":
            why = "it is empty" if self.size == 0 else "it does not begin as one"
            if start[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
                why = "it begins as a pickle, which can run any code and is therefore not opened"
            raise ModelFileError(f"{self.path} is not a popf model: {why}.")
        self.file.seek(max(0, self.size - 98))
        tail = self.file.read(98).rjust(98, b"\0")
        end, locator, end64 = tail[-22:], tail[-42:-22], tail[:-42]
        if end[:4] != _END or end[20:] != b"\0\0":
            self._damaged("its end is missing; was it copied in full?")
        size = struct.unpack("<L", end[12:16])[0]
        if locator[:4] == _LOCATOR64 and end64[:4] == _END64:
            size = struct.unpack("<Q", end64[40:48])[0]
        if size > MAX_DIRECTORY:
            self._damaged(f"its list of members claims {size} bytes")

    def _list_members(self) -> dict[str, zipfile.ZipInfo]:
        members = {info.filename: info for info in self.archive.infolist()}
        if len(members) != len(self.archive.infolist()):
            self._damaged("two members have the same name")
        if len(members) > MAX_MEMBERS:
            self._damaged(f"it claims {len(members)} members")
        for name, info in members.items():
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
                self._damaged(
                    f"member {name!r} is compressed or encrypted, which popf never does; "
                    "an archive that was packed anew is no model any more"
                )
            if info.compress_size != info.file_size:
                self._damaged(f"member {name!r} has two sizes")
        if sum(info.file_size for info in members.values()) > self.size:
            self._damaged("its members claim more bytes than there are in the file")
        return members

    def _bytes_of(self, name: str, limit: int) -> tuple[bytes, str]:
        size = self.members[name].file_size
        if size > limit:
            self._damaged(f"member {name!r} claims {size} bytes")
        with self.archive.open(self.members[name]) as member:
            content = member.read()
        return content, hashlib.sha256(content).hexdigest()

    def _parse_sums(self, text: str) -> dict[str, str]:
        sums = {}
        for line in text.splitlines():
            match = _SUM.fullmatch(line)
            if match is None:
                self._damaged(f"{SUMS} holds {line[:80]!r}")
            sums[match[2]] = match[1]
        if {*sums, SUMS} != set(self.members):
            self._damaged("members and checksums do not belong together")
        return sums

    def _check_sum(self, name: str, digest: str) -> None:
        if digest != self.sums[name]:
            self._damaged(f"the checksum of member {name!r} is wrong")

    def _header(self) -> Header:
        text, digest = self._bytes_of(HEADER, MAX_HEADER)
        self._check_sum(HEADER, digest)
        header = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            self._damaged("its header is not a popf model's")
        version = header.get("format_version")
        if type(version) is not int or version < 1:
            self._damaged(f"its format version is {version!r}")
        if version > FORMAT_VERSION:
            writer = str(header.get("popf_version"))[:40]
            raise ModelFileError(
                f"{self.path} was written by a newer popf, {writer}, in format {version}; this one "
                f"reads formats up to {FORMAT_VERSION}: upgrade popf."
            )
        return header

    def _declared(self, header: Header) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
        """Hold the dtypes and shapes of the header against the sizes of the members."""
        declared = {}
        for name, entry in header.pop("arrays").items():
            dtype, shape = entry["dtype"], tuple(entry["shape"])
            if dtype not in DTYPES or not _ARRAY_NAME.fullmatch(name):
                self._damaged(f"array {name[:80]!r} is of {str(dtype)[:80]!r}")
            if len(shape) > 2 or not all(type(n) is int and n >= 0 for n in shape):
                self._damaged(f"array {name!r} has shape {str(shape)[:80]}")
            prefix = npy_prefix(dtype, shape)
            size = len(prefix) + int(dtype[2]) * int(np.prod(np.array(shape, dtype=object)))
            info = self.members.get(f"{name}.npy")
            if info is None or info.file_size != size:
                self._damaged(f"array {name!r} should take {size} bytes")
            declared[name] = dtype, shape, prefix
        if len(declared) + 2 != len(self.members):
            self._damaged("it has members that its header does not know")
        return declared

    def _array(self, name: str, dtype: str, shape: tuple[int, ...], prefix: bytes) -> NDArray[Any]:
        array = np.empty(shape, dtype=dtype)
        room = _bytes(array)
        with self.archive.open(self.members[f"{name}.npy"]) as member:
            head = member.read(len(prefix))
            digest = hashlib.sha256(head)
            for start in range(0, len(room), CHUNK):
                piece = member.read(min(CHUNK, len(room) - start))
                digest.update(piece)
                room[start : start + CHUNK] = piece
            member.read(1)  # at the end, where zip compares its own checksum
        self._check_sum(f"{name}.npy", digest.hexdigest())
        if head != prefix:
            self._damaged(f"array {name!r} is not what the header says")
        return array.astype(array.dtype.newbyteorder("="), copy=False)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name occurs twice in its header")
    return entries


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"its header holds {constant}")
