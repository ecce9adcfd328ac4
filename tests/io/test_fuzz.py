"""Mutated model files: never a crash, never code that runs, always `ModelFileError`.

Some hundred mutations run with the tests; ``POPF_FUZZ=10000 pytest tests/io/test_fuzz.py`` runs so many.
Three sorts of damage are done, to four kinds of model each:

- to bytes: flips, zeros, deletions, insertions, copies, truncations. Checksums must find these, or the model
  loaded must be what it was;
- to the archive with its checksums made right again: members swapped, dropped, added, renamed, changed;
- to the header with its checksum made right again, as someone with a purpose would. Then a file may be a model,
  another one; what loads must answer without a crash.
"""

import contextlib
import json
import os
import random
import sys
import warnings

import numpy as np
import pytest

import popf
from damaged_models import MODELS, rewrite, with_header
from popf.io import ModelFileError, container

# Of each sort, to each kind.
N_MUTATIONS = -(-int(os.environ.get("POPF_FUZZ", "600")) // 12)


def answers(model, X):
    return [model.predict(X).tobytes(), model.decision_function(X).tobytes()]


# Damage to bytes


def damage_bytes(content, chance):
    """Change some bytes somewhere, one way or another."""
    data = bytearray(content)
    at = chance.randrange(len(data))
    length = min(chance.choice([1, 1, 2, 4, 16, 200]), len(data) - at)
    start = chance.randrange(len(data))
    way = chance.randrange(6)
    if way == 0:
        data[at] ^= 1 << chance.randrange(8)
    elif way == 1:
        filling = chance.choice([chance.randbytes(length), bytes(length), b"\xff" * length])
        data[at : at + length] = filling
    elif way == 2:
        data[at : at + length] = data[start : start + length]
    elif way == 3:
        data[at:at] = chance.randbytes(length)
    elif way == 4:
        del data[at : chance.choice([at + length, len(data)])]
    else:  # where the archive keeps its sizes and offsets
        data[len(data) - chance.randrange(1, 400)] = chance.randrange(256)
    return bytes(data)


# Damage with the checksums made right again


def damage_members(members, chance):
    names = [name for name in members if name != container.HEADER]
    one, other = chance.choice(names), chance.choice(names)
    data = bytearray(members[one])
    way = chance.randrange(6)
    if way == 0:
        members[one], members[other] = members[other], members[one]
    elif way == 1:
        del members[one]
    elif way == 2:
        members[chance.choice(["more.npy", "../../outside.npy", "/etc/outside", "a b"])] = b"x"
    elif way == 3:
        members[f"{chance.randrange(99)}{one}"] = members.pop(one)
    elif way == 4:
        data[chance.randrange(min(128, len(data)))] ^= 1 << chance.randrange(8)
        members[one] = bytes(data)
    else:  # the numbers of an array
        at = 128 + 8 * chance.randrange(max(1, (len(data) - 128) // 8))
        odd = [np.int64(value) for value in (-1, 0, 1, 2**31, 2**62, -(2**63))]
        odd += [np.float64(value) for value in (np.nan, np.inf, -np.inf, -1.0, 1e308, 5e-324)]
        data[at : at + 8] = chance.choice(odd).tobytes()[: len(data) - at]
        members[one] = bytes(data)


ODD = [
    *(None, True, False, 0, 1, -1, 2, 3, 24, 10**6, 10**30, 0.5, -0.5, 1e308, "", "x", "auto"),
    *("forest", "paper", "euclidean", "precomputed", "manhattan", "kd_tree", "brute", "__class__"),
    *([], [0], ["a"], {}, {"!": "array", "name": "000_x"}, {"!": "float", "value": "nan"}),
    *({"!": "tuple", "items": []}, {"!": "dict", "items": []}, {"!": "objects", "items": [None, 1]}),
    *({"!": "number", "name": "000_x"}, {"!": "estimator", "class": "os.system"}),
    {"!": "estimator", "class": "StandardScaler", "parameters": {}, "fitted": {}},
    {"!": "solver", "class": "PSO", "fields": {"n_agents": 10**12}},
]  # fmt: skip


def places(entry):
    """Find every container in the header, with its keys."""
    if isinstance(entry, dict | list):
        keys = list(entry) if isinstance(entry, dict) else range(len(entry))
        for key in keys:
            yield entry, key
            yield from places(entry[key])


def damage_header(members, chance):
    def change(header):
        for _ in range(chance.choice([1, 1, 2, 3])):
            where, key = chance.choice(list(places(header)))
            way = chance.randrange(4)
            if way == 0:
                del where[key]
            elif way == 1 and isinstance(where[key], int | float):
                where[key] = where[key] + chance.choice([-1, 1, 10**9])
            elif way == 2:
                other, name = chance.choice(list(places(header)))
                where[key] = json.loads(json.dumps(other[name]))
            else:
                where[key] = json.loads(json.dumps(chance.choice(ODD)))

    with_header(change)(members)


# What must hold

REFUSALS = (ValueError, TypeError, KeyError, IndexError, AttributeError)


def try_to_load(path):
    """Load, where nothing but `ModelFileError` may go wrong; None if it did."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return popf.load(path)
        except ModelFileError as error:
            message = str(error)
    assert message.startswith(str(path))
    assert len(message) < 2000
    return None


class Watch:
    """Notes whether code was run while files were loaded.

    What Numba compiles, or fetches from its pickled cache, and what is imported is not the file's doing.
    """

    BAD = (
        *("exec", "compile", "pickle", "socket", "subprocess", "ctypes.dlopen"),
        *("os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork"),
    )
    OTHERS = ("numba", "llvmlite", "importlib")

    def __init__(self):
        self.on, self.seen = False, []
        sys.addaudithook(self.hear)

    def __enter__(self):
        self.on = True

    def __exit__(self, *_):
        self.on = False

    def hear(self, event, arguments):
        if not (self.on and event.startswith(self.BAD)):
            return
        frame = sys._getframe()
        while frame is not None:
            if frame.f_globals.get("__name__", "").startswith(self.OTHERS):
                return
            frame = frame.f_back
        self.seen.append(f"{event} {arguments}")


@pytest.fixture(scope="module")
def watch():
    return Watch()


@pytest.mark.parametrize("kind", MODELS)
def test_damaged_bytes_are_found_or_harmless(kind, model_path, watch):
    model, X = MODELS[kind]()
    popf.save(model, model_path)
    content, expected = model_path.read_bytes(), answers(model, X)
    loaded = 0
    for seed in range(N_MUTATIONS):
        model_path.write_bytes(damage_bytes(content, random.Random(seed)))
        with watch:
            found = try_to_load(model_path)
        if found is not None:
            loaded += 1
            assert answers(found, X) == expected, f"seed {seed}"
    assert watch.seen == []
    assert loaded < N_MUTATIONS / 4
    assert os.listdir(model_path.parent) == [model_path.name]


@pytest.mark.parametrize("damage", [damage_members, damage_header])
@pytest.mark.parametrize("kind", MODELS)
def test_damage_under_right_checksums_never_crashes(kind, damage, model_path, watch):
    model, X = MODELS[kind]()
    popf.save(model, model_path)
    content = model_path.read_bytes()
    refused = 0
    for seed in range(N_MUTATIONS):
        chance = random.Random(seed)
        changed = rewrite(content, lambda members, chance=chance: damage(members, chance))
        model_path.write_bytes(changed)
        with watch:
            found = try_to_load(model_path)
        if found is None:
            refused += 1
            continue
        # Another model, then: it may refuse these samples, in words.
        with warnings.catch_warnings(), contextlib.suppress(*REFUSALS):
            warnings.simplefilter("ignore")
            assert len(found.predict(X)) == len(X)
    assert watch.seen == []
    assert refused > 0
    assert os.listdir(model_path.parent) == [model_path.name]
