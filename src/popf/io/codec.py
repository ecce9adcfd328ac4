"""Plain values as JSON and arrays, and back.

What JSON knows is written as it is. The rest becomes an object with one key ``"!"`` that names its kind,
out of a fixed list; no name in a file ever finds a class or a function by itself. Numbers go to arrays
of the container, text stays in the header.
"""

import math
import re
from collections import UserList
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.io.container import DTYPES

# NumPy pads text to its longest entry; so much of it may be made from a header.
MAX_TEXT = 256 * 2**20
KIND = "!"
_NUMBER_TYPES: dict[str, type] = {
    name: getattr(np, name)
    for name in (
        *("bool_", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64", "float32", "float64"),
    )
}
_BUILTIN_TYPES: dict[str, type] = {"int": int, "float": float, "bool": bool}
_TYPES = {**_NUMBER_TYPES, **_BUILTIN_TYPES}


class Encoder:
    """Turns values into JSON, and collects their arrays.

    Parameters
    ----------
    encode_object : callable
        ``encode_object(value, encoder, where)`` encodes an estimator, or raises TypeError.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.io.codec import Encoder
    >>> encoder = Encoder(lambda value, encoder, where: {})
    >>> encoder.value((1, np.arange(3)), "pair")
    {'!': 'tuple', 'items': [1, {'!': 'array', 'name': '000_pair_1'}]}
    >>> encoder.arrays
    {'000_pair_1': array([0, 1, 2])}
    """

    def __init__(self, encode_object: Callable[[Any, "Encoder", str], dict[str, Any]]) -> None:
        self._encode_object = encode_object
        self.arrays: dict[str, NDArray[Any]] = {}

    def value(self, value: Any, where: str) -> Any:
        """Encode a value; `where` names it, in messages and for its array."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {KIND: "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self.array(value, where)
        if isinstance(value, UserList):  # columns, in some versions; to look at its items warns
            value = value.data
        if type(value) is list:
            return self._items(value, where)
        if type(value) is tuple:
            return {KIND: "tuple", "items": self._items(value, where)}
        if isinstance(value, slice):
            parts = [self.value(part, where) for part in (value.start, value.stop, value.step)]
            return {KIND: "slice", "items": parts}
        if isinstance(value, Mapping):
            pairs = [
                [self.value(key, where), self.value(entry, f"{where}_{key}")]
                for key, entry in value.items()
            ]
            return {KIND: "dict", "items": pairs}
        return self._special(value, where)

    def array(self, array: NDArray[Any], where: str) -> Any:
        """Encode an array: numbers as an array of the container, text in the header."""
        if array.dtype.kind in "UO" and array.ndim == 1:
            entries = [self._entry(entry, where) for entry in array.tolist()]
            if array.dtype.itemsize * len(array) > MAX_TEXT:
                raise ValueError(f"{where} takes more than {MAX_TEXT} bytes of text.")
            dtype = "object" if array.dtype.kind == "O" else array.dtype.newbyteorder("<").str
            return {KIND: "text", "dtype": dtype, "values": entries}
        if array.dtype.newbyteorder("<").str not in DTYPES or array.ndim > 2:
            raise TypeError(
                f"{where} is an array of {array.dtype} in {array.ndim} dimensions, which popf.save "
                "does not know. Use numbers, truth values or str."
            )
        letters = re.sub(r"[^A-Za-z0-9]+", "_", where)
        name = f"{len(self.arrays):03d}_{letters[-100:]}"
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            # Kept so: a matrix product rounds differently if the order in memory is another.
            self.arrays[name] = array.T
            return {KIND: "array", "name": name, "order": "F"}
        self.arrays[name] = array
        return {KIND: "array", "name": name}

    def _items(self, values: list[Any] | tuple[Any, ...], where: str) -> list[Any]:
        return [self.value(value, f"{where}_{i}") for i, value in enumerate(values)]

    def _entry(self, entry: Any, where: str) -> Any:
        """Encode what an array of objects may hold."""
        if isinstance(entry, np.generic):
            entry = entry.item()
        if isinstance(entry, str):
            return str(entry)
        if entry is None or type(entry) in (bool, int, float):
            return self.value(entry, where)
        raise TypeError(
            f"{where} holds {entry!r}, a {type(entry).__name__}; only str, numbers, truth values and "
            "None can be saved. Turn such labels or categories into str first."
        )

    def _special(self, value: Any, where: str) -> Any:
        if isinstance(value, np.generic) and value.dtype.newbyteorder("<").str in DTYPES:
            dtype = value.dtype.newbyteorder("<").str
            return {KIND: "number", "dtype": dtype, "value": self.value(value.item(), where)}
        if isinstance(value, np.str_):
            return str(value)
        if isinstance(value, np.dtype):
            name = "object" if value.kind == "O" else value.newbyteorder("<").str
            return {KIND: "dtype", "name": name}
        if isinstance(value, type) and value in _TYPES.values():
            (name,) = (name for name, known in _TYPES.items() if known is value)
            return {KIND: "type", "name": name}
        if _records().get(type(value).__name__) is not type(value):
            return self._encode_object(value, self, where)
        record: Any = value  # a named tuple or a dataclass
        names = record._fields if isinstance(value, tuple) else record.__dataclass_fields__
        fields = {name: self.value(getattr(value, name), f"{where}_{name}") for name in names}
        return {KIND: "record", "class": type(value).__name__, "fields": fields}


def _records() -> dict[str, Any]:
    """Give the classes that are nothing but their fields, by name."""
    from popf import solvers
    from popf.probability.covariance import Spectrum

    makers = (solvers.Newton, solvers.NelderMead, solvers.PSO, solvers.Bat, solvers.Firefly)
    return {maker.__name__: maker for maker in (*makers, solvers.Solution, Spectrum)}


class Decoder:
    """Turns JSON back into values.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Those of the container.
    decode_object : callable
        ``decode_object(entry, decoder)`` decodes an estimator, or raises an error.

    Examples
    --------
    >>> from popf.io.codec import Decoder
    >>> Decoder({}, lambda entry, decoder: None).value({"!": "tuple", "items": [1, "a"]})
    (1, 'a')
    """

    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        decode_object: Callable[[dict[str, Any], "Decoder"], Any],
    ) -> None:
        self._arrays = dict(arrays)
        self._decode_object = decode_object

    def value(self, entry: Any) -> Any:
        """Decode a value."""
        if isinstance(entry, list):
            return [self.value(item) for item in entry]
        if not isinstance(entry, dict):
            return entry
        kind = entry[KIND]
        if kind == "estimator":
            return self._decode_object(entry, self)
        return _DECODERS[kind](self, entry)

    def done(self) -> None:
        """Raise ValueError if an array was not asked for."""
        if self._arrays:
            raise ValueError(f"array {next(iter(self._arrays))!r} belongs to nothing")

    def _array(self, entry: dict[str, Any]) -> NDArray[Any]:
        # Taken out: two things must not share one array, which one of them might change.
        array = self._arrays.pop(entry["name"])
        return array.T if entry.get("order") == "F" else array

    def _text(self, entry: dict[str, Any]) -> NDArray[Any]:
        values, name = [self.value(value) for value in entry["values"]], entry["dtype"]
        if name == "object":
            array = np.empty(len(values), dtype=object)
            array[:] = values
            if not all(value is None or type(value) in (bool, int, float, str) for value in values):
                raise ValueError("an array of objects holds more than text and numbers")
            return array
        width = int(name.removeprefix("<U"))
        if name != f"<U{width}" or 4 * width * len(values) > MAX_TEXT:
            raise ValueError(f"text of {name!r} and {len(values)} entries")
        if not all(type(value) is str and len(value) <= width for value in values):
            raise ValueError(f"entries that are no text, or longer than {width}")
        return np.array(values, dtype=f"=U{width}").reshape(len(values))

    def _number(self, entry: dict[str, Any]) -> Any:
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"a number of {entry['dtype']!r}")
        value = self.value(entry["value"])
        if type(value) not in (bool, int, float):
            raise ValueError(f"{value!r} for a number")
        return np.dtype(entry["dtype"]).newbyteorder("=").type(value)

    def _dtype(self, entry: dict[str, Any]) -> np.dtype[Any]:
        name = entry["name"]
        text = isinstance(name, str) and name.startswith("<U") and name[2:].isascii()
        if name not in (*DTYPES, "object") and not (text and int(name[2:]) <= MAX_TEXT):
            raise ValueError(f"a dtype {name!r}")
        native: np.dtype[Any] = np.dtype(name).newbyteorder("=")
        return native

    def _slice(self, entry: dict[str, Any]) -> slice:
        parts = [self.value(part) for part in entry["items"]]
        if not all(part is None or type(part) in (int, str) for part in parts):
            raise ValueError(f"a slice of {parts!r}")
        return slice(*parts)

    def _dict(self, entry: dict[str, Any]) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in entry["items"]}

    def _record(self, entry: dict[str, Any]) -> Any:
        make = _records()[entry["class"]]
        return make(**{name: self.value(value) for name, value in entry["fields"].items()})


_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DECODERS: dict[str, Callable[[Decoder, dict[str, Any]], Any]] = {
    "float": lambda decoder, entry: _FLOATS[entry["value"]],
    "tuple": lambda decoder, entry: tuple(decoder.value(item) for item in entry["items"]),
    "type": lambda decoder, entry: _TYPES[entry["name"]],
    "array": Decoder._array,
    "text": Decoder._text,
    "number": Decoder._number,
    "dtype": Decoder._dtype,
    "slice": Decoder._slice,
    "dict": Decoder._dict,
    "record": Decoder._record,
}
