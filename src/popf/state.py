"""Convert fitted objects to plain values and back, by one description of each.

The description is the annotations of a class. It serves pickle, joblib, skops, `copy` and `popf.save`, and
every value of a state, which may come from anywhere, is checked against it::

    class Steps(NamedTuple):
        features: Annotated[IntArray, Integer("n_steps", of="n_features")]
        cuts: Annotated[FloatArray, Float("n_steps", low=-1e12, high=1e12)]
        scaling: Scaling | None  # another part
        squashed: bool

        def check_state(self, sizes: Sizes) -> None:
            if (np.diff(self.cuts) <= 0.0).any():
                raise StateError("increasing numbers", "cuts")

- A *part* is a NamedTuple or dataclass. Each argument of its constructor is described by `Annotated` with a
  `Spec`, or is a bool, int, float, str, part, ``dict[str, ...]`` of these, or a union of parts and None.
- An *estimator* inherits from `StateMixin`. Its state is its parameters and, once it is fitted, the attributes
  whose types are `Annotated` with a `Spec`. Other attributes that end in an underscore are left out.
- Lengths have names. Equal names mean equal lengths, in an object and its parts; every entry of a dict has
  its own. Estimators know "n_features", and after `Labels` "n_classes".
- ``check_state(sizes)``, if there is one, is called when all values are there, and raises `StateError` if they
  contradict each other; that of an estimator also computes the attributes that were left out.
- An object of another class is stored as a part: ``Annotated[Forest, Part(ForestState)]``, where
  ``ForestState.of(forest)`` and ``state.restore(sizes)`` convert it.

A state holds arrays of numbers or text, numbers, text, None, lists and dicts of these, and other estimators.
"""

import builtins
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import get_annotations, signature
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

Sizes = dict[str, int]
#: Bounds of numbers that only need to be finite, and of integers.
LARGEST, LARGEST_INTEGER = float(np.finfo(np.float64).max), 2**62
_UNIONS: tuple[Any, ...] = (Union, types.UnionType)


class StateError(ValueError):
    """A value is not what was `wanted`; `name` is the field, by default the one that is being read."""

    def __init__(self, wanted: str, name: str = "") -> None:
        super().__init__(f"{name} must be {wanted}.")
        self.wanted, self.name = wanted, name


class Spec:
    """Specification of a value; this one accepts any value."""

    #: Whether every fitted estimator has it.
    required = True

    def write(self, value: Any) -> Any:
        """Convert a value to plain values."""
        return value

    def read(self, value: Any, owner: str, sizes: Sizes) -> Any:
        """Convert a plain value back or raise `StateError`; errors of values inside call this one `owner`."""
        return value


class Text(Spec):
    """An array of text of some shape; without a shape, a text. Base class of the other arrays.

    A length is a number, a name, or a known name minus a number, as in "n_samples - 1". A name that is not yet
    known stands for any length, and is known from then on.
    """

    kinds, one, many = "U", "text", "text"

    def __init__(self, *shape: int | str) -> None:
        self.shape = shape

    def read(self, value: Any, owner: str, sizes: Sizes) -> Any:
        """Check kind and shape."""
        plain = isinstance(value, bool | int | float | str | np.generic)
        array = np.asarray(value) if plain and not self.shape else value
        lengths = [_length(length, sizes) for length in self.shape]
        if not (
            isinstance(array, np.ndarray)
            and array.dtype.kind in self.kinds
            and array.ndim == len(lengths)
            and all(length in (None, n) for length, n in zip(lengths, array.shape, strict=True))
        ):
            shape = ", ".join("any" if length is None else str(length) for length in lengths)
            many = f"an array of {self.many} of shape ({shape})"
            raise StateError(many if self.shape else self.one)
        for name, length, n in zip(self.shape, lengths, array.shape, strict=True):
            if length is None:
                sizes[str(name)] = n
        return array if self.shape else array.item()


class Flag(Text):
    """True or False, or an array of these."""

    kinds, one, many = "b", "True or False", "True and False"


class Float(Text):
    """A finite number from `low` to `high`, or below the length `of` that name; or an array of these.

    With `gaps`, numbers of the array may also be NaN.

    A single number is itself the length called `size`, if that is given.
    """

    kinds, one, many = "fiu", "a finite number", "finite numbers"
    lowest, highest = -LARGEST, LARGEST
    dtype: Any = np.float64

    def __init__(
        self,
        *shape: int | str,
        low: float | None = None,
        high: float | None = None,
        of: str = "",
        dtype: Any = None,
        size: str = "",
        gaps: bool = False,
    ) -> None:
        super().__init__(*shape)
        self.gaps = gaps
        self.low = self.lowest if low is None else low
        self.high = self.highest if high is None else high
        self.of, self.size, self.dtype = of, size, self.dtype if dtype is None else dtype

    def read(self, value: Any, owner: str, sizes: Sizes) -> Any:
        """Check kind, shape and range."""
        array = np.asarray(super().read(value, owner, sizes))
        high = sizes[self.of] - 1 if self.of else self.high
        some = array[~np.isnan(array)] if self.gaps else array
        if some.size and not self.low <= some.min().item() <= some.max().item() <= high:
            raise StateError((self.many if self.shape else self.one) + _range(self.low, high))
        found = np.ascontiguousarray(array, dtype=self.dtype)
        if self.size:
            sizes[self.size] = found.item()
        return found if self.shape else found.item()


class Integer(Float):
    """An integer, at least 0 unless another `low` is given, or an array of these; see `Float`."""

    kinds, one, many = "iu", "an integer", "integers"
    lowest, highest, dtype = 0, LARGEST_INTEGER, np.int64


class Choice(Spec):
    """One of several texts, or of several tuples."""

    def __init__(self, *choices: Any) -> None:
        self.choices = choices

    def read(self, value: Any, owner: str, sizes: Sizes) -> Any:
        """Check that it is one of them."""
        if not (isinstance(value, str | tuple) and value in self.choices):
            raise StateError(f"one of {', '.join(map(repr, self.choices))}")
        return value


class Labels(Spec):
    """The labels of at least two classes; their number is known as "n_classes"."""

    def read(self, value: Any, owner: str, sizes: Sizes) -> NDArray[Any]:
        """Check number and order."""
        one_axis = isinstance(value, np.ndarray) and value.ndim == 1
        if not (one_axis and len(value) >= 2 and (value[:-1] < value[1:]).all()):
            raise StateError("an array of at least two different labels, in ascending order")
        sizes["n_classes"] = len(value)
        return np.asarray(value)


class FeatureNames(Text):
    """The names of features, if there are any, as an array of objects."""

    required = False

    def read(self, value: Any, owner: str, sizes: Sizes) -> Any:
        """Check that all names are text."""
        texts = value
        if isinstance(value, np.ndarray) and all(isinstance(name, str) for name in value.flat):
            texts = value.astype(str)
        super().read(texts, owner, sizes)
        return value.astype(object)


class Part(Spec):
    """A part of one of several classes, or an object that is stored as one.

    A class may be given as "module.Class", which is imported on first use.
    """

    def __init__(self, *classes: type | str) -> None:
        self._classes = classes

    def write(self, value: Any) -> dict[str, Any]:
        """Convert the object, and all parts in it."""
        first, *others = self.classes().values()
        if others:
            return {"part": type(value).__name__, **to_plain(value)}
        return to_plain(value if isinstance(value, first) else first.of(value))

    def read(self, value: Any, owner: str, sizes: Sizes) -> Any:
        """Check and rebuild the object."""
        classes = self.classes()
        if len(classes) == 1:
            return from_plain(next(iter(classes.values())), value, owner, sizes)
        if not isinstance(value, Mapping) or value.get("part") not in list(classes):
            raise StateError(f"a dict whose part is one of {', '.join(classes)}")
        fields = {name: each for name, each in value.items() if name != "part"}
        return from_plain(classes[value["part"]], fields, owner, sizes)

    def classes(self) -> dict[str, Any]:
        """Return the classes by name."""
        found = {}
        for kind in self._classes:
            module, _, name = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
            kind = getattr(import_module(module), name) if isinstance(kind, str) else kind
            found[kind.__name__] = kind
        return found


class OrNone(Spec):
    """A value, or None."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def write(self, value: Any) -> Any:
        """Convert the value, if there is one."""
        return None if value is None else self.spec.write(value)

    def read(self, value: Any, owner: str, sizes: Sizes) -> Any:
        """Check the value, if there is one."""
        if value is None:
            return None
        try:
            return self.spec.read(value, owner, sizes)
        except StateError as error:
            raise StateError(f"None or {error.wanted}", error.name) from None


class Entries(Spec):
    """A dict whose values have the same specification."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def write(self, value: Any) -> dict[str, Any]:
        """Convert the values."""
        return {name: self.spec.write(each) for name, each in value.items()}

    def read(self, value: Any, owner: str, sizes: Sizes) -> dict[str, Any]:
        """Check every value; each has its own lengths."""
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise StateError("a dict with names as keys")
        return {
            name: _read(self.spec, name, each, owner, {**sizes}) for name, each in value.items()
        }


class StateMixin:
    """Base class of estimators that are stored by the description of their attributes."""

    n_features_in_: Annotated[int, Integer(low=1, size="n_features")]
    feature_names_in_: Annotated[NDArray[Any], FeatureNames("n_features")]

    def check_state(self, sizes: Sizes) -> None:
        """Check restored attributes against each other, and compute those that are not stored."""

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for an invalid parameter, as `fit` does; `popf.load` calls it."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        specs = specs_of(type(self))
        kept = {
            name: value
            for name, value in state.items()
            if name not in specs and not name.endswith("_")
        }
        # A failed fit may have left some attributes behind, which are not stored.
        if all(name in state for name, spec in specs.items() if spec.required):
            kept |= {name: spec.write(state[name]) for name, spec in specs.items() if name in state}
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        specs, owner, sizes = specs_of(type(self)), type(self).__name__, Sizes()
        fitted = any(name in state for name in specs)
        if fitted:
            state = {**state, **read_fields(specs, state, owner, sizes)}
        super().__setstate__(state)  # type: ignore[misc]
        if fitted:
            with _named(state, owner):
                self.check_state(sizes)


def to_plain(part: Any) -> dict[str, Any]:
    """Convert a part to a dict of plain values and arrays."""
    return {name: spec.write(getattr(part, name)) for name, spec in specs_of(type(part)).items()}


def from_plain(kind: Any, state: Any, owner: str, sizes: Sizes | None = None) -> Any:
    """Check a dict from `to_plain` and rebuild the part; ValueError names the wrong value and the `owner`.

    Lengths that are not yet among the `sizes` are added to them.
    """
    sizes, specs = {} if sizes is None else sizes, specs_of(kind)
    values = read_fields(specs, state, owner, sizes)
    for name in state:
        if name not in specs:
            raise ValueError(f"{owner} has no {name}.")
    part = kind(**values)
    with _named(state, owner):
        if hasattr(part, "check_state"):
            part.check_state(sizes)
        return part.restore(sizes) if hasattr(part, "restore") else part


def specs_of(kind: Any) -> dict[str, Spec]:
    """Return the specifications of the fields of a part, or of the attributes of an estimator."""
    estimator = issubclass(kind, StateMixin)
    hints = {
        name: hint
        for base in reversed(kind.__mro__)
        for name, hint in get_annotations(base, eval_str=True, locals=_Names(base)).items()
        if not estimator or _is_described(hint)
    }
    return {
        name: _spec(hints[name]) for name in (hints if estimator else signature(kind).parameters)
    }


class _Names(dict[str, Any]):
    """The names of the module of a class; those imported for type checkers only stand for any type."""

    def __init__(self, kind: Any) -> None:
        super().__init__(vars(builtins) | vars(sys.modules[kind.__module__]))

    def __missing__(self, name: str) -> Any:
        return Any


def _is_described(hint: Any) -> bool:
    return any(hasattr(each, "__metadata__") for each in (hint, *get_args(hint)))


def _spec(hint: Any) -> Spec:
    """Return the specification that an annotation stands for."""
    known = {bool: Flag(), int: Integer(low=-LARGEST_INTEGER), float: Float(), str: Text()}
    kind: Any = get_origin(hint)
    inner = get_args(hint)
    if hasattr(hint, "__metadata__"):  # Annotated
        return inner[1]  # type: ignore[no-any-return]
    if kind in _UNIONS:
        some = [each for each in inner if each is not types.NoneType]
        spec = _spec(some[0]) if len(some) == 1 else Part(*some)
        return OrNone(spec) if types.NoneType in inner else spec
    if kind is dict:
        return Entries(_spec(inner[1]))
    if not isinstance(hint, type):
        raise TypeError(f"{hint!r} describes no value: see popf.state.")
    return known.get(hint) or Part(hint)


def read_fields(specs: Mapping[str, Spec], state: Any, owner: str, sizes: Sizes) -> dict[str, Any]:
    """Check and convert the values of a state, one for each specification."""
    if not isinstance(state, Mapping):
        raise ValueError(f"{owner} must be a dict, not {_shown(state)}.")
    values = {}
    for name, spec in specs.items():
        if name in state:
            values[name] = _read(spec, name, state[name], owner, sizes)
        elif spec.required:
            raise ValueError(f"{owner} lacks {name}.")
    return values


def _read(spec: Spec, name: Any, value: Any, owner: str, sizes: Sizes) -> Any:
    with _named({name: value}, owner, name):
        return spec.read(value, f"{name} of {owner}", sizes)


@contextmanager
def _named(state: Mapping[str, Any], owner: str, name: Any = None) -> Iterator[None]:
    """Add the name of the field, the owner and the value to `StateError`."""
    try:
        yield
    except StateError as error:
        name = error.name or name
        shown = _shown(state.get(name))
        raise ValueError(f"{name} of {owner} must be {error.wanted}, not {shown}.") from None


def _length(length: int | str, sizes: Sizes) -> int | None:
    """Return a length; None if it is not yet known."""
    if isinstance(length, int):
        return length
    name, _, less = length.partition(" - ")
    return sizes[name] - int(less) if less else sizes.get(name)


def _range(low: float, high: float) -> str:
    """Describe a range as the end of a phrase."""
    open_end = high in (LARGEST, LARGEST_INTEGER)
    if open_end and low in (-LARGEST, -LARGEST_INTEGER):
        return ""
    return f" of at least {low:g}" if open_end else f" from {low:g} to {high:g}"


def _shown(value: Any) -> str:
    """Describe a value briefly for an error message."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 80 else f"{text[:80]} ..."
