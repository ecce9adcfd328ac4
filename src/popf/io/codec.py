"""Plain values as JSON and arrays, and back.

What JSON knows is written as it is. The rest becomes an object with a key ``"!"`` that names its kind, out of a
fixed list; no name in a file finds a class or a function by itself. Arrays go to the container.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.io.container import Arrays, can_hold
from popf.solvers import SOLVERS, Solver

KIND = "!"
_SOLVERS: dict[str, Any] = {solver.__name__: solver for solver in SOLVERS.values()}
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Encoder:
    """Turns values into JSON, and collects their arrays.

    ``encode_object(value, encoder, where)`` encodes an estimator, or raises TypeError.
    """

    def __init__(self, encode_object: Callable[[Any, "Encoder", str], dict[str, Any]]) -> None:
        self._encode_object = encode_object
        self.arrays: Arrays = {}

    def value(self, value: Any, where: str) -> Any:
        """Encode a value; `where` names it, in messages and for its array."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {KIND: "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if type(value) in (list, tuple):
            items = [self.value(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return items if type(value) is list else {KIND: "tuple", "items": items}
        if isinstance(value, Mapping):
            pairs = [
                [self.value(key, where), self.value(item, f"{key} of {where}")]
                for key, item in value.items()
            ]
            return {KIND: "dict", "items": pairs}
        if isinstance(value, np.str_):
            return str(value)
        if isinstance(value, np.generic) and can_hold(value.dtype):
            return {**self._array(np.asarray(value), where), KIND: "number"}
        if isinstance(value, Solver) and _SOLVERS.get(type(value).__name__) is type(value):
            fields = {name: self.value(item, where) for name, item in vars(value).items()}
            return {KIND: "solver", "class": type(value).__name__, "fields": fields}
        return self._encode_object(value, self, where)

    def _array(self, array: NDArray[Any], where: str) -> dict[str, Any]:
        if array.dtype.kind == "O" and array.ndim == 1:
            return {KIND: "objects", "items": [_entry(entry, where) for entry in array]}
        if not can_hold(array.dtype) or array.ndim > 2:
            raise TypeError(
                f"{where} is an array of {array.dtype} in {array.ndim} dimensions, which popf.save "
                "does not know. Use numbers, truth values or text."
            )
        letters = re.sub(r"[^A-Za-z0-9]+", "_", where)
        name = f"{len(self.arrays):03d}_{letters[:100]}"
        self.arrays[name] = array
        return {KIND: "array", "name": name}


def _entry(entry: Any, where: str) -> Any:
    """Encode what an array of objects may hold."""
    if isinstance(entry, np.generic):
        entry = entry.item()
    if isinstance(entry, str):
        return str(entry)
    if (
        entry is None
        or type(entry) in (bool, int)
        or (type(entry) is float and math.isfinite(entry))
    ):
        return entry
    raise TypeError(
        f"{where} holds {entry!r}, a {type(entry).__name__}; only text, finite numbers, truth values and "
        "None can be saved. Turn such labels into text first."
    )


class Decoder:
    """Turns JSON and the arrays of the container back into values.

    ``decode_object(entry, decoder)`` decodes an estimator, or raises an error.
    """

    def __init__(
        self, arrays: Arrays, decode_object: Callable[[dict[str, Any], "Decoder"], Any]
    ) -> None:
        self._arrays = dict(arrays)
        self._decode_object = decode_object

    def value(self, entry: Any) -> Any:
        """Decode a value."""
        if isinstance(entry, list):
            return [self.value(item) for item in entry]
        if not isinstance(entry, dict):
            return entry
        kind = entry.get(KIND)
        if kind == "estimator":
            return self._decode_object(entry, self)
        if kind not in _DECODERS:
            raise ValueError(f"a value of the kind {str(kind)[:80]!r}")
        return _DECODERS[kind](self, entry)

    def finish(self) -> None:
        """Raise ValueError if an array was not asked for."""
        if self._arrays:
            raise ValueError(f"array {next(iter(self._arrays))!r} belongs to nothing")

    def _array(self, entry: dict[str, Any]) -> NDArray[Any]:
        # Taken out: two things must not share one array, which one of them might change.
        return self._arrays.pop(entry["name"])

    def _objects(self, entry: dict[str, Any]) -> NDArray[Any]:
        items = entry["items"]
        if not all(item is None or type(item) in (bool, int, float, str) for item in items):
            raise ValueError("an array of objects holds more than text and numbers")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array

    def _solver(self, entry: dict[str, Any]) -> Any:
        fields = {name: self.value(item) for name, item in entry["fields"].items()}
        return _SOLVERS[entry["class"]](**fields)

    def _dict(self, entry: dict[str, Any]) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in entry["items"]}


_DECODERS: dict[str, Callable[[Decoder, dict[str, Any]], Any]] = {
    "float": lambda decoder, entry: _FLOATS[entry["value"]],
    "tuple": lambda decoder, entry: tuple(decoder.value(item) for item in entry["items"]),
    "number": lambda decoder, entry: decoder._array(entry)[()],
    "array": Decoder._array,
    "objects": Decoder._objects,
    "solver": Decoder._solver,
    "dict": Decoder._dict,
}
