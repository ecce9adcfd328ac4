"""Every wrong value that the description of a class rules out, in a state of one of its objects."""

import math

import numpy as np

from popf.forest.state import MetricSpec, SampleIndices
from popf.paper.classifier import Solutions
from popf.paper.solver import Solution
from popf.state import (
    Choice,
    Entries,
    FeatureNames,
    Float,
    Integer,
    Labels,
    OrNone,
    Part,
    Text,
    specs_of,
)

#: Names of lengths that nothing else has.
FREE_LENGTHS = ("n_tried", "n_rows", "n_ends")
WRONG_VALUES = {
    Choice: (None, 3, ["kd_tree"], "other", ("lower", "other")),
    FeatureNames: (None, 3, np.arange(3), np.array(["a"]), np.array(["a", "b", 3], dtype=object)),
    SampleIndices: (3, "all", np.array([0.5]), np.array([-1])),
    MetricSpec: (
        *(None, "euclidean", {}, {"source": "euclid", "params": {}}),
        *({"source": "minkowski", "params": {"p": p}} for p in (np.nan, np.inf, "two", -1)),
        *({"source": 3, "params": {}}, {"source": "manhattan", "params": {"gamma": 1.0}}),
    ),
}


def damaged_states(kind, state):
    """Yield pairs of a name and a state in which the value of that name is wrong or missing."""
    for name, spec in specs_of(kind).items():
        if name in state and spec.required:
            yield name, {key: value for key, value in state.items() if key != name}
        if name in state:
            for inner, value in _wrong(name, spec, state[name]):
                yield inner, {**state, name: value}


def _wrong(name, spec, value):
    if type(spec) in WRONG_VALUES:
        yield from ((name, each) for each in WRONG_VALUES[type(spec)])
    elif isinstance(spec, OrNone):
        if value is None:
            yield name, object()
        else:
            yield from (pair for pair in _wrong(name, spec.spec, value) if pair[1] is not None)
    elif isinstance(spec, Part):
        kinds = list(spec.classes().values())
        kind = spec.classes()[value["part"]] if len(kinds) > 1 else kinds[0]
        yield from ((name, each) for each in (None, 3, [], {}))
        yield "more", {**value, "more": 1}
        yield from damaged_states(kind, value)
    elif isinstance(spec, Entries):
        yield name, 3
        for key, entry in value.items():
            for inner, each in _wrong(key, spec.spec, entry):
                yield inner, {**value, key: each}
    elif isinstance(spec, Solutions):
        yield from ((name, each) for each in (None, 3, [], value * 2, dict(value[0]), [None]))
        for inner, each in damaged_states(Solution, value[-1]):
            yield inner, [*value[:-1], each]
    elif isinstance(spec, Text) and spec.shape:
        yield from ((name, each) for each in (None, 3.0, value.tolist(), value[..., None]))
        yield from ((name, each) for each in (value.astype(object), _of_another_kind(spec, value)))
        if value.size:
            yield from ((name, _with_first(value, number)) for number in _outside(spec))
        if len(value) and spec.shape[0] not in FREE_LENGTHS:
            yield "", value[:-1]  # the error may name another value of this length
    elif isinstance(spec, Text):
        wrong = [None, [3], {}, *_outside(spec), _of_another_kind(spec, np.zeros(1))[0]]
        yield from ((name, each) for each in wrong)
    elif isinstance(spec, Labels):
        few = (value[:1], value[::-1], value[[0, 0]], value[None], None, value.tolist())
        yield from ((name, each) for each in few)


def _of_another_kind(spec, value):
    return np.full(value.shape, True if isinstance(spec, Float) else 3)


def _outside(spec):
    """List numbers out of range: NaN, infinity, and the next beyond the bounds."""
    if isinstance(spec, Integer):
        return [np.int64(spec.low - 1), np.int64(-(2**63)), np.int64(2**63 - 1), 1.0]
    if isinstance(spec, Float):
        below, above = math.nextafter(spec.low, -math.inf), math.nextafter(spec.high, math.inf)
        found = [-np.inf, below, *([np.inf, above] if spec.high < np.inf else [])]
        return found if spec.gaps else [np.nan, *found]
    return []


def _with_first(array, number):
    """Change the first number; the array gets the type that holds it."""
    copy = array.astype(np.result_type(array, type(number)))
    copy.flat[0] = number
    return copy
