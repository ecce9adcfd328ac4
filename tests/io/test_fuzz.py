"""Mutated model files: never a crash, never code that runs, always `ModelFileError`.

About a thousand mutations run with the tests; ``POPF_FUZZ=10000 pytest tests/test_io_fuzz.py`` runs so many.
Three sorts of damage are done, to four kinds of model each:

- to bytes: flips, zeros, deletions, insertions, copies, truncations, other files' parts. Checksums must
  find these, or the model loaded must be what it was;
- to the archive with its checksums made right again: members swapped, dropped, added, renamed;
- to the header, or to the numbers of an array, with the checksums made right again, as someone with a purpose
  would. Then a file may be a model, another one; what loads must answer without a crash.
"""

import contextlib
import hashlib
import io
import json
import os
import random
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import popf
from popf import OPFClassifier, POPFClassifier
from popf.io import ModelFileError, container, describe

# Of each sort, to each kind.
N_MUTATIONS = -(-int(os.environ.get("POPF_FUZZ", "1200")) // 12)


def frame_and_labels():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=24), "b": rng.normal(size=24)})
    frame["c"] = np.array(["x", "y", "z"], dtype=object)[rng.integers(0, 3, 24)]
    return frame, np.array(["no", "yes"])[np.arange(24) % 2]


def forest():
    frame, y = frame_and_labels()
    return OPFClassifier().fit(frame[["a", "b"]], y), frame[["a", "b"]]


def metric_forest():
    frame, y = frame_and_labels()
    return OPFClassifier("mahalanobis").fit(frame[["a", "b"]], y), frame[["a", "b"]]


def probabilities():
    frame, _ = frame_and_labels()
    y = np.arange(24) % 3
    X = frame[["a", "b"]].to_numpy() + y[:, None]
    return POPFClassifier(calibration="multinomial", linear_map="discriminant").fit(X, y), X


def pipeline():
    frame, y = frame_and_labels()
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
            ("text", OneHotEncoder(sparse_output=False, drop="first", min_frequency=2), ["c"]),
        ]
    )
    return make_pipeline(columns, POPFClassifier("paper", solver="nelder-mead", box=None)), frame, y


def saved(make, folder):
    model, X, *y = make()
    if y:
        model.fit(X, *y)
    path = folder / "model.popf"
    popf.save(model, path)
    return path, model, X


def answers(model, X):
    return [model.predict(X).tobytes(), model.decision_function(X).tobytes()]


# Damage to bytes


def damage_bytes(content, chance):
    """Change some bytes somewhere, one way or another."""
    data = bytearray(content)
    at = chance.randrange(len(data))
    length = min(chance.choice([1, 1, 2, 4, 16, 200]), len(data) - at)
    way = chance.randrange(9)
    if way == 0:
        data[at] ^= 1 << chance.randrange(8)
    elif way == 1:
        data[at : at + length] = chance.randbytes(length)
    elif way == 2:
        data[at : at + length] = bytes(length)
    elif way == 3:
        del data[at : at + length]
    elif way == 4:
        data[at:at] = chance.randbytes(length)
    elif way == 5:
        del data[at:]
    elif way == 6:
        start = chance.randrange(len(data))
        data[at : at + length] = data[start : start + length]
    elif way == 7:
        data[at : at + length] = b"\xff" * length
    else:  # where the archive keeps its sizes and offsets
        at = len(data) - chance.randrange(1, 400)
        data[at] = chance.randrange(256)
    return bytes(data)


# Damage with the checksums made right again


def rewrite(content, change):
    """Change the members of a container, and make its checksums right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    del members[container.SUMS]
    change(members)
    return pack(members)


def pack(members):
    file = io.BytesIO()
    sums = "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in members.items()
    )
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr(container.SUMS, sums)
    return file.getvalue()


def damage_members(members, chance):
    names = [name for name in members if name != container.HEADER]
    one, other = chance.choice(names), chance.choice(names)
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
        data = bytearray(members[one])
        data[chance.randrange(min(128, len(data)))] ^= 1 << chance.randrange(8)
        members[one] = bytes(data)
    else:
        data = bytearray(members[one])  # the numbers of an array
        at = 128 + 8 * chance.randrange(max(1, (len(data) - 128) // 8))
        odd = [-1, 0, 1, 2**31, 2**62, -(2**63)]
        if chance.random() < 0.5:
            data[at : at + 8] = chance.choice(odd).to_bytes(8, "little", signed=True)[
                : len(data) - at
            ]
        else:
            value = chance.choice([np.nan, np.inf, -np.inf, -1.0, 1e308, 5e-324])
            data[at : at + 8] = np.float64(value).tobytes()[: len(data) - at]
        members[one] = bytes(data)


ODD = [
    *(None, True, False, 0, 1, -1, 2, 3, 24, 10**6, 10**30, 0.5, -0.5, 1e308, "", "x", "auto"),
    *("soft", "paper", "euclidean", "precomputed", "manhattan", "kd_tree", "brute", "prim", "__class__"),
    *([], [0], ["a"], {}, {"!": "array", "name": "000_x"}, {"!": "float", "value": "nan"}),
    *({"!": "tuple", "items": []}, {"!": "dict", "items": []}, {"!": "type", "name": "float64"}),
    *({"!": "text", "dtype": "<U999999999", "values": ["a", "b"]}, {"!": "dtype", "name": "object"}),
    *({"!": "text", "dtype": "object", "values": [None, 1]}, {"!": "estimator", "class": "os.system"}),
    *({"!": "slice", "items": [0, 1, None]}, {"!": "number", "dtype": "<f8", "value": 1e9}),
    {"!": "estimator", "class": "StandardScaler", "parameters": {}, "fitted": {}},
    {"!": "record", "class": "Solution", "fields": {}},
]  # fmt: skip


def places(entry):
    """Find every container in the header, with its keys."""
    if isinstance(entry, dict):
        yield from ((entry, key) for key in entry)
        for value in entry.values():
            yield from places(value)
    elif isinstance(entry, list):
        yield from ((entry, key) for key in range(len(entry)))
        for value in entry:
            yield from places(value)


def damage_header(members, chance):
    header = json.loads(members[container.HEADER])
    within = header if chance.random() < 0.15 else header["model"]
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        found = list(places(within))
        where, key = found[chance.randrange(len(found))]
        other, other_key = found[chance.randrange(len(found))]
        way = chance.randrange(6)
        if way == 0:
            del where[key]
        elif way == 1 and isinstance(where, dict):
            where[chance.choice(["__class__", "__init__", "predict", "x", "!"])] = where.pop(key)
        elif way == 2:
            where[key] = json.loads(json.dumps(other[other_key]))
        elif way == 3 and isinstance(where[key], int | float):
            where[key] = where[key] * chance.choice([-1, 2, 0, 10**9]) + chance.choice([-1, 0, 1])
        else:
            where[key] = json.loads(json.dumps(chance.choice(ODD)))
    members[container.HEADER] = json.dumps(header).encode()


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


@pytest.mark.parametrize("make", [forest, metric_forest, probabilities, pipeline])
def test_damaged_bytes_are_found_or_harmless(make, tmp_path, watch):
    path, model, X = saved(make, tmp_path)
    content, expected = path.read_bytes(), answers(model, X)
    assert answers(popf.load(path), X) == expected
    loaded = 0
    for seed in range(N_MUTATIONS):
        mutant = damage_bytes(content, random.Random(seed))
        path.write_bytes(mutant)
        with watch:
            found = try_to_load(path)
        if found is not None:
            loaded += 1
            assert answers(found, X) == expected, f"seed {seed}"
    assert watch.seen == []
    assert loaded < N_MUTATIONS / 4
    assert os.listdir(tmp_path) == ["model.popf"]


@pytest.mark.parametrize("damage", [damage_members, damage_header])
@pytest.mark.parametrize("make", [forest, metric_forest, probabilities, pipeline])
def test_damage_under_right_checksums_never_crashes(make, damage, tmp_path, watch):
    path, model, X = saved(make, tmp_path)
    content = path.read_bytes()
    assert answers(popf.load(path), X) == answers(model, X)
    refused = 0
    for seed in range(N_MUTATIONS):
        chance = random.Random(seed)
        path.write_bytes(rewrite(content, lambda members, chance=chance: damage(members, chance)))
        with watch:
            found = try_to_load(path)
        if found is None:
            refused += 1
            continue
        # Another model, then: it may refuse these samples, in words.
        with warnings.catch_warnings(), contextlib.suppress(*REFUSALS):
            warnings.simplefilter("ignore")
            assert len(found.predict(X)) == len(X)
    assert watch.seen == []
    assert refused > 0
    assert os.listdir(tmp_path) == ["model.popf"]


# Traps that chance does not find


@pytest.fixture
def content(tmp_path):
    path, _, _ = saved(forest, tmp_path)
    return path.read_bytes()


def refuse(tmp_path, content, match):
    path = tmp_path / "trap.popf"
    path.write_bytes(content)
    for read in (popf.load, describe):
        with pytest.raises(ModelFileError, match=match):
            read(path)


def test_a_zip_bomb_is_refused_unopened(tmp_path, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with zipfile.ZipFile(io.BytesIO(content)) as original:
            for name in original.namelist():
                archive.writestr(name, original.read(name))
        archive.writestr("bomb.npy", bytes(50_000_000))
    assert len(file.getvalue()) < 100_000
    refuse(tmp_path, file.getvalue(), "compressed or encrypted")


@pytest.mark.parametrize(
    "shape", [[10**12, 2], [2**63, 2**63], [2**200], [-1, 2], [24, 2, 1], [24.0, 2]]
)
def test_absurd_shapes_are_refused_before_they_are_made(tmp_path, content, shape):
    def change(members):
        header = json.loads(members[container.HEADER])
        (name,) = (name for name in header["arrays"] if name.endswith("samples"))
        header["arrays"][name]["shape"] = shape
        members[container.HEADER] = json.dumps(header).encode()

    refuse(tmp_path, rewrite(content, change), r"should take|has shape")


def test_objects_are_no_arrays(tmp_path, content):
    def change(members):
        header = json.loads(members[container.HEADER])
        next(iter(header["arrays"].values()))["dtype"] = "|O"
        members[container.HEADER] = json.dumps(header).encode()

    refuse(tmp_path, rewrite(content, change), r"is of '\|O'")


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"format": NaN}', '{"a": 1, "a": 2}', "1" * 10_000, '"\xff', "null", "{}"],
    ids=["deep", "nan", "twice", "long", "no text", "null", "nothing"],
)
def test_odd_json_is_refused(tmp_path, content, text):
    def change(members):
        members[container.HEADER] = text.encode("latin1")

    refuse(tmp_path, rewrite(content, change), "damaged")


def test_a_header_that_is_too_long_is_refused(tmp_path, content):
    def change(members):
        members[container.HEADER] = b" " * (container.MAX_HEADER + 1)

    refuse(tmp_path, rewrite(content, change), "claims")


def test_many_members_are_refused_before_they_are_listed(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for i in range(60_000):
            archive.writestr(f"{i:060d}", b"")
    refuse(tmp_path, file.getvalue(), "its list of members claims")


def test_overlapping_members_are_refused(tmp_path, content):
    # Every entry of the directory points at the same bytes, as in bombs that need no compression.
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("0.npy", bytes(100_000))
        first = archive.infolist()[0]
        for i in range(1, 1000):
            entry = zipfile.ZipInfo(f"{i}.npy")
            entry.header_offset, entry.CRC = 0, first.CRC
            entry.file_size = entry.compress_size = first.file_size
            archive.filelist.append(entry)
            archive.NameToInfo[entry.filename] = entry
        archive._didModify = True
    refuse(tmp_path, file.getvalue(), "damaged")


def test_names_in_a_file_reach_nothing_outside(tmp_path, content):
    target = tmp_path / "outside.npy"

    def change(members):
        for name in list(members):
            if name != container.HEADER:
                members[str(target)] = members.pop(name)
                break

    refuse(tmp_path, rewrite(content, change), "damaged")
    assert not target.exists()


def test_classes_are_found_in_a_table_only(tmp_path, content):
    def change(members):
        text = members[container.HEADER].decode()
        members[container.HEADER] = text.replace('"OPFClassifier"', '"subprocess.Popen"').encode()

    path = tmp_path / "trap.popf"
    path.write_bytes(rewrite(content, change))
    with pytest.raises(ModelFileError, match=r"an estimator 'subprocess\.Popen'"):
        popf.load(path)
