"""Damaged and malicious model files: never a crash, never code that runs, always `ModelFileError`.

First traps, made on purpose, and what is said of each. Then some hundred random mutations of several kinds
of model; ``POPF_FUZZ=10000 pytest tests/io/test_damage.py`` runs so many. Three sorts of damage are done:

- to bytes: flips, zeros, deletions, insertions, copies, truncations. Checksums must find these, or the model
  loaded must be what it was;
- to the archive with its checksums made right again: members swapped, dropped, added, renamed, changed;
- to the header with its checksum made right again, as someone with a purpose would. Then a file may be a model,
  another one; what loads must answer without a crash.
"""

import contextlib
import hashlib
import io
import json
import os
import random
import sys
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import popf
from popf import OPFClassifier, OPFOutlierDetector, PlattOPFClassifier, POPFClassifier
from popf.io import ModelFileError, container, describe
from popf.table_models.model import TablePreparation

# Of each sort, to each kind.
N_MUTATIONS = -(-int(os.environ.get("POPF_FUZZ", "360")) // 12)
FRAME = pd.DataFrame(np.random.default_rng(1).normal(size=(24, 2)), columns=["a", "b"])
LABELS = np.array(["no", "yes"])[np.arange(24) % 2]


def forest():
    return OPFClassifier().fit(FRAME, LABELS), FRAME


def metric_forest():
    return OPFClassifier("mahalanobis").fit(FRAME, LABELS), FRAME


def probabilities():
    y = np.arange(24) % 3
    X = FRAME.to_numpy() + y[:, None]
    return POPFClassifier(linear_map="discriminant").fit(X, y), X


def pipeline():
    prepare = TablePreparation(["a", "b"], ["c"], missing="median")
    paper = PlattOPFClassifier("nelder-mead", box=None)
    frame = FRAME.assign(c=np.array(["x", "y", "z"], dtype=object)[np.arange(24) % 3])
    return make_pipeline(prepare, StandardScaler(), paper).fit(frame, LABELS), frame


def outliers():
    return OPFOutlierDetector(4, metric="manhattan").fit(FRAME), FRAME


MODELS = {
    make.__name__: make for make in (forest, metric_forest, probabilities, pipeline, outliers)
}


def rewrite(content, change):
    """Change the members of a container, and make its checksums right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    del members[container.SUMS]
    change(members)
    sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in members.items()]
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr(container.SUMS, "".join(sums))
    return file.getvalue()


def with_header(change):
    """Make a change of the header one of the members."""

    def change_members(members):
        header = json.loads(members[container.HEADER])
        change(header)
        members[container.HEADER] = json.dumps(header).encode()

    return change_members


# Traps


@pytest.fixture
def content(model_path):
    popf.save(forest()[0], model_path)
    return model_path.read_bytes()


def refuse(path, content, match, reads=(popf.load, describe)):
    path.write_bytes(content)
    for read in reads:
        with pytest.raises(ModelFileError, match=match):
            read(path)


def test_a_zip_bomb_is_refused_unopened(model_path, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with zipfile.ZipFile(io.BytesIO(content)) as original:
            for name in original.namelist():
                archive.writestr(name, original.read(name))
        archive.writestr("bomb.npy", bytes(50_000_000))
    assert len(file.getvalue()) < 100_000
    refuse(model_path, file.getvalue(), "compressed or encrypted")


@pytest.mark.parametrize(
    ("dtype", "shape", "match"),
    [
        ("<f8", [10**12, 2], "should take"),
        ("<f8", [2**63, 2**63], "should take"),
        ("<f8", [10**12, 0], "should take"),
        ("<f8", [-1, 2], "has shape"),
        ("<f8", [24, 2, 1], "has shape"),
        ("<f8", [24.0, 2], "has shape"),
        ("<U100000000", [24, 2], "should take"),
        ("<U0", [10**12], r"has dtype '<U0'"),
        ("|O", [24, 2], r"has dtype '\|O'"),
        ("<M8[s]", [24, 2], "has dtype"),
    ],
)
def test_absurd_arrays_are_refused_before_they_are_made(model_path, content, dtype, shape, match):
    def change(header):
        (name,) = (name for name in header["arrays"] if "samples" in name)
        header["arrays"][name] = {"dtype": dtype, "shape": shape}

    refuse(model_path, rewrite(content, with_header(change)), match)


def test_a_small_file_takes_little_memory(model_path, content):
    # 17 kB that once took 7.7 GB: text whose width is claimed, nested so that each claim is small.
    text = {"!": "text", "dtype": "<U60000000", "values": ["a"]}
    nested = {"!": "dict", "items": [[f"{i}", text] for i in range(200)]}

    def claim(header):
        header["model"]["parameters"]["metric_params"] = nested

    tracemalloc.start()
    refuse(model_path, rewrite(content, with_header(claim)), "kind 'text'", [popf.load])
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"format": NaN}', '{"a": 1, "a": 2}', "1" * 10_000, '"\xff', "null", "{}",
     " " * (container.MAX_HEADER + 1)],
    ids=["deep", "nan", "twice", "long number", "no text", "null", "nothing", "too long"],
)  # fmt: skip
def test_odd_json_is_refused(model_path, content, text):
    def change(members):
        members[container.HEADER] = text.encode("latin1")

    refuse(model_path, rewrite(content, change), "damaged")


def test_a_long_list_of_members_is_refused_before_it_is_read(model_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for i in range(1000):
            archive.writestr(f"{i:05000d}", b"")
    refuse(model_path, file.getvalue(), "its zip directory declares")


def test_overlapping_members_are_refused(model_path):
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
    refuse(model_path, file.getvalue(), "damaged")


def test_names_in_a_file_reach_nothing_outside(model_path, content, tmp_path):
    target = tmp_path / "outside.npy"

    def change(members):
        name = next(name for name in members if name != container.HEADER)
        members[str(target)] = members.pop(name)

    refuse(model_path, rewrite(content, change), "damaged")
    assert not target.exists()


def forest_entry(header, name):
    """Find the pair of a name and a value in the state of the forest."""
    return next(pair for pair in header["model"]["fitted"]["forest_"]["items"] if pair[0] == name)


FOREST_TRAPS = [
    (lambda header: header["model"].update({"class": "os.system"}), r"estimator 'os\.system'"),
    (lambda header: header["model"].pop("parameters"), "'parameters' is missing"),
    (
        lambda header: header["model"]["fitted"]["forest_"]["items"].remove(
            forest_entry(header, "algorithm")
        ),
        "forest_ of OPFClassifier lacks algorithm",
    ),
    (
        lambda header: header["model"]["parameters"].update(n_jobs=4096),
        "cannot set the parameter 'n_jobs'",
    ),
    (  # which would hide a property
        lambda header: header["model"]["fitted"].update(costs_=1),
        "OPFClassifier has no attribute 'costs_'",
    ),
    (
        lambda header: forest_entry(header, "codes").__setitem__(1, 3),
        "codes of forest_ of OPFClassifier must be an array of integers",
    ),
    (  # one array for two names
        lambda header: forest_entry(header, "metric_params").__setitem__(
            1, forest_entry(header, "samples")[1]
        ),
        "_samples_of_forest_of_the_model' is missing",
    ),
    (
        lambda header: header["model"]["fitted"].update(
            classes_={"!": "objects", "items": ["no", "yes"]}
        ),
        "_classes_of_the_model' is not used",
    ),
]


def set_in_solution(header, name, value):
    """Change a value of `solution_`, a list of one dict of pairs."""
    (solution,) = header["model"]["steps"][-1][1]["fitted"]["solution_"]
    solution["items"] = [[key, value if key == name else old] for key, old in solution["items"]]


COUNTS = [-1, {"!": "float", "value": "nan"}, True]
PIPELINE_TRAPS = [
    (
        lambda header, value=value: set_in_solution(header, "n_evaluations", value),
        "n_evaluations of solution_ must be an integer",
    )
    for value in COUNTS
] + [
    (
        lambda header: header["model"]["parameters"].update(memory="/tmp"),
        "cannot set the parameter 'memory'",
    )
]


@pytest.mark.parametrize(
    ("make", "change", "match"),
    [(forest, *trap) for trap in FOREST_TRAPS] + [(pipeline, *trap) for trap in PIPELINE_TRAPS],
)
def test_what_is_wrong_in_a_header_is_named(model_path, make, change, match):
    popf.save(make()[0], model_path)
    changed = rewrite(model_path.read_bytes(), with_header(change))
    refuse(model_path, changed, match, [popf.load])


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        (None, "bandwidths", [1e305, 1e305]),
        (None, "nodes", [10**6]),
        (None, "trust", 2.0),
        ("forest_scaling", "slopes", [-1.0, 1.0]),
        ("pool", "weights", [1e305]),
    ],
)
def test_absurd_parameters_of_probabilities_are_refused(part, name, value):
    model = probabilities()[0]
    state = model.__getstate__()
    found = state["evidence_"][part] if part else state["evidence_"]
    found[name] = np.array(value) if isinstance(value, list) else value
    with pytest.raises(ValueError, match=f"{name} of .*evidence_"):
        model.__setstate__(state)
    del found[name]
    with pytest.raises(ValueError, match=f"lacks {name}"):
        model.__setstate__(state)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("features", lambda trees: np.full_like(trees["features"], 9)),
        ("features", lambda trees: trees["features"][:-1]),
        ("cuts", lambda trees: trees["cuts"] * np.nan),
        ("values", lambda trees: trees["values"][:, 1:]),
    ],
)
def test_absurd_trees_are_refused(name, change):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    model = popf.POPFClassifier(linear_map=None, squash=True).fit(X, y)
    state = model.__getstate__()
    trees = state["evidence_"]["on_features"]["trees"]
    trees[name] = change(trees)
    with pytest.raises(ValueError, match=f"{name} of .*trees"):
        model.__setstate__(state)


# Random damage


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
