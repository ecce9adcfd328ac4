"""Damaged and malicious model files: never a crash, never code that runs, always `ModelFileError`.

First traps, made on purpose, and what is said of each. Then some hundred random mutations of several kinds
of model; ``POPF_FUZZ=10000 pytest tests/io/test_damage.py`` runs so many. Two sorts of damage are done:

- to bytes: flips, zeros, deletions, insertions, copies, truncations. Checksums must find these, or the model
  loaded must be what it was;
- to the header and to numbers of arrays, with the checksums made right again, as someone with a purpose would.
  Then a file may be a model, another one; what loads must answer without a crash.

That every wrong value in a state is refused is tested in ``tests/test_state.py``.
"""

import contextlib
import hashlib
import json
import os
import random
import sys
import tracemalloc
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import pairwise_distances as distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import popf
from damaged_states import damaged_states
from popf import (
    KNNOPFClassifier,
    OPFClassifier,
    OPFClustering,
    OPFOutlierDetector,
    PlattOPFClassifier,
    POPFClassifier,
    TableEncoder,
)
from popf.io import ModelFileError, container, describe
from refusals import refused

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
    prepare = TableEncoder()
    paper = PlattOPFClassifier("nelder-mead", box=None)
    frame = FRAME.assign(c=np.array(["x", "y", "z"], dtype=object)[np.arange(24) % 3])
    return make_pipeline(prepare, StandardScaler(), paper).fit(frame, LABELS), frame


def outliers():
    return OPFOutlierDetector(4, metric="manhattan").fit(FRAME), FRAME


def clusters():
    return OPFClustering(4, metric="precomputed").fit(distances(FRAME, FRAME)), distances(
        FRAME, FRAME
    )


def neighbours():
    scalers = MinMaxScaler(), RobustScaler()
    return make_pipeline(*scalers, KNNOPFClassifier()).fit(FRAME, LABELS), FRAME


MODELS = {
    make.__name__: make
    for make in (forest, metric_forest, probabilities, pipeline, outliers, clusters, neighbours)
}


def unpack(content):
    """Return the whole header, the description of the model in it, and the data of a file."""
    length = int.from_bytes(content[:8], "little")
    whole = json.loads(content[8 : 8 + length])
    return whole, json.loads(whole[container.METADATA]["popf"]), bytearray(content[8 + length :])


def with_right_checksums(content, change):
    """Change header, description and data in place, and make the checksums right again."""
    whole, header, data = unpack(content)
    change(whole, header, data)
    metadata = whole[container.METADATA]
    metadata |= {"popf": json.dumps(header), "data_sha256": hashlib.sha256(data).hexdigest()}
    metadata.pop("sha256")
    metadata["sha256"] = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    text = json.dumps(whole).encode()
    return len(text).to_bytes(8, "little") + text + data


@cache
def made(kind):
    return MODELS[kind]()


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


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ({"shape": [10**12, 2]}, "should take"),
        ({"shape": [2**63, 2**63]}, "should take"),
        ({"shape": [10**12, 0], "data_offsets": [0, 0]}, "should take"),
        ({"shape": [-1, 2]}, "has shape"),
        ({"shape": [24, 2, 1]}, "has shape"),
        ({"shape": [24.0, 2]}, "has shape"),
        ({"dtype": "|O"}, r"has dtype '\|O'"),
        ({"dtype": "F32"}, "should take"),
        ({"data_offsets": [8, 392]}, "should take"),
        ({"data_offsets": [-384, 0]}, "should take"),
        ({"data_offsets": []}, "damaged"),
    ],
)
def test_absurd_arrays_are_refused_before_they_are_made(model_path, content, entry, match):
    def change(whole, *_):
        (name,) = (name for name in whole if "samples" in name)
        whole[name] |= entry

    refuse(model_path, with_right_checksums(content, change), match)


def test_a_small_file_takes_little_memory(model_path, content):
    def claim(whole, header, _):
        header["model"]["parameters"]["metric_params"] = {"p": {"!": "text", "name": "none"}}
        whole["none"] = {"dtype": "U32", "shape": [0, 10**9], "data_offsets": [0, 0]}

    tracemalloc.start()
    refuse(model_path, with_right_checksums(content, claim), "should take", [popf.load])
    refuse(model_path, (2**60).to_bytes(8, "little") + b"{" * 99, "not begin", [popf.load])
    refuse(model_path, bytes(8) + b"{" * 99, "not begin", [popf.load])
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    ['{"a": ' * 100_000, '{"__metadata__": NaN}', '{"a": 1, "a": 2}', "{" + "1" * 10_000, '{"\xff',
     "{}", '{"__metadata__": []}', '{"__metadata__": {"format": "popf-model"}}'],
    ids=["deep", "nan", "twice", "long number", "no text", "nothing", "a list", "no version"],
)  # fmt: skip
def test_odd_json_is_refused(model_path, text):
    data = text.encode("latin1")
    refuse(model_path, len(data).to_bytes(8, "little") + data, "damaged|not a popf model")


def test_a_missing_end_is_noticed(model_path, content):
    refuse(model_path, content[:-9], "copied in full")
    refuse(model_path, content + b"more", "copied in full")


HEADER_TRAPS = [
    (lambda model: model.update({"class": "os.system"}), r"unknown class 'os\.system'"),
    (lambda model: model.pop("parameters"), "'parameters' is missing"),
    (lambda model: model["parameters"].update(n_jobs=4096), "cannot set the parameter 'n_jobs'"),
    (lambda model: model["parameters"].update(memory="/tmp"), "cannot set the parameter 'memory'"),
    (  # which would hide a property
        lambda model: model["fitted"].update(costs_=1),
        "OPFClassifier has no attribute 'costs_'",
    ),
    (
        lambda model: model["fitted"]["forest_"].pop("algorithm"),
        "forest_ of OPFClassifier lacks algorithm",
    ),
    (
        lambda model: model["fitted"]["forest_"].update(codes=3),
        "codes of forest_ of OPFClassifier must be an array of integers",
    ),
    (  # one array for two names
        lambda model: model["fitted"]["forest_"].update(lower=model["fitted"]["forest_"]["higher"]),
        "_higher_of_forest_of_the_model' is missing",
    ),
    (
        lambda model: model["fitted"].update(classes_={"!": "objects", "items": ["no", "yes"]}),
        "_classes_of_the_model' is not used",
    ),
]


@pytest.mark.parametrize(("change", "match"), HEADER_TRAPS)
def test_what_is_wrong_in_a_header_is_named(model_path, content, change, match):
    damaged = with_right_checksums(content, lambda _whole, header, _data: change(header["model"]))
    refuse(model_path, damaged, match, [popf.load])


@pytest.mark.parametrize("kind", MODELS)
def test_every_wrong_value_in_a_file_is_refused_on_loading(kind, model_path, monkeypatch):
    model = made(kind)[0]
    final = getattr(model, "steps", [("", model)])[-1][1]
    states = list(damaged_states(type(final), final.__getstate__()))
    for name, state in random.Random(0).sample(states, 30):
        with monkeypatch.context() as patch:
            patch.setattr(type(final), "__getstate__", lambda self, state=state: state)
            try:
                popf.save(model, model_path)
            except TypeError:  # a value that no file can hold
                continue
        refused(lambda: popf.load(model_path), name, kind=ModelFileError)


def test_values_that_contradict_each_other_are_refused(model_path, monkeypatch):
    model = probabilities()[0]
    state = model.__getstate__()
    state["pool_"]["forest"]["node_codes"][:] = 0  # so that two classes have no nodes
    monkeypatch.setattr(type(model), "__getstate__", lambda self: state)
    popf.save(model, model_path)
    with pytest.raises(ModelFileError, match="nodes of every class"):
        popf.load(model_path)


WRONG_PARAMETERS = [
    (probabilities, {"threshold": "high"}, "threshold must be above 0 and below 1, not 'high'"),
    (probabilities, {"threshold": 2}, "threshold must be above 0 and below 1, not 2"),
    (probabilities, {"method": "none"}, "method must be one of pooled, forest"),
    (probabilities, {"squash": None}, "squash must be True or False"),
    (forest, {"algorithm": "fast"}, "`algorithm` must be one of"),
    (forest, {"metric": 3}, "`metric` must be a name or a function"),
    (metric_forest, {"algorithm": "kd_tree"}, "supports only Euclidean distances"),
    (outliers, {"contamination": "some"}, "`contamination` is 'some'"),
    (outliers, {"n_neighbors": -1}, "`n_neighbors` is -1"),
    (clusters, {"min_height": [1]}, r"`min_height` is \[1\]"),
    (neighbours, {"max_neighbors": 0.5}, "`max_neighbors` is 0.5"),
    (pipeline, {"smoothing": -1.0}, "smoothing is -1.0"),
    (pipeline, {"box": [1, 2]}, "box has shape"),
]


@pytest.mark.parametrize(("make", "wrong", "said"), WRONG_PARAMETERS)
def test_parameters_that_fit_would_refuse_are_refused(model_path, make, wrong, said):
    model = make()[0]
    getattr(model, "steps", [("", model)])[-1][1].set_params(**wrong)
    popf.save(model, model_path)
    with pytest.raises(ModelFileError, match=said):
        popf.load(model_path)


def test_steps_that_do_not_fit_each_other_are_refused(model_path):
    model = pipeline()[0]
    scaler = StandardScaler().fit(np.random.default_rng(0).normal(size=(9, 4)))
    model.steps[1] = ("standardscaler", scaler)
    popf.save(model, model_path)
    with pytest.raises(ModelFileError, match="makes 5 features"):
        popf.load(model_path)


@pytest.mark.parametrize("value", [np.array([0.0, 1.0]), np.array([np.nan, 1.0]), np.ones(3), 1.0])
def test_scalers_are_checked(model_path, value):
    scaler = StandardScaler().fit(FRAME)
    scaler.scale_ = value
    popf.save(make_pipeline(scaler, OPFClassifier().fit(FRAME, LABELS)), model_path)
    with pytest.raises(ModelFileError, match="scale_ of StandardScaler must be"):
        popf.load(model_path)


# Random damage


def damage_bytes(content, chance):
    """Change some bytes somewhere, one way or another."""
    data = bytearray(content)
    at = chance.randrange(chance.choice([16, 2000, len(data)])) % len(data)  # often in the header
    length = min(chance.choice([1, 1, 2, 4, 16, 200]), len(data) - at)
    way = chance.randrange(4)
    if way == 0:
        data[at] ^= 1 << chance.randrange(8)
    elif way == 1:
        filling = [chance.randbytes(length), bytes(length), data[: len(data) - at][-length:]]
        data[at : at + length] = chance.choice(filling)
    elif way == 2:
        data[at:at] = chance.randbytes(length)
    else:
        del data[at : chance.choice([at + length, len(data)])]
    return bytes(data)


def damage_numbers(whole, _header, data, chance):
    """Change a number of an array, or exchange the names of two arrays."""
    entries = {name: whole.pop(name) for name in list(whole) if name != container.METADATA}
    one, other = chance.choice(list(entries)), chance.choice(list(entries))
    names = {one: other, other: one} if chance.randrange(4) == 0 else {}
    whole |= {names.get(name, name): entry for name, entry in entries.items()}
    (start, stop), dtype = entries[one]["data_offsets"], container.DTYPES[entries[one]["dtype"]]
    odd = [-1, 0, 1, 2**31, 2**62, -(2**63)]
    if "f" in dtype:
        odd = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 5e-324]
    if stop > start:
        number = np.array([chance.choice(odd)]).astype(dtype).tobytes()
        at = start + len(number) * chance.randrange((stop - start) // len(number))
        data[at : at + len(number)] = number


ODD = [
    *(None, True, False, 0, 1, -1, 2, 3, 24, 10**6, 10**30, 0.5, -0.5, 1e308, "", "x", "auto"),
    *("forest", "paper", "euclidean", "precomputed", "manhattan", "kd_tree", "brute", "__class__"),
    *([], [0], ["a"], {}, {"!": "array", "name": "000_x"}, {"!": "float", "value": "nan"}),
    *({"!": "tuple", "items": []}, {"a": {}}, {"!": "objects", "items": [None, 1]}),
    *({"!": "number", "name": "000_x"}, {"!": "object", "class": "os.system"}),
    {"!": "object", "class": "StandardScaler", "parameters": {}, "fitted": {}},
    {"!": "object", "class": "PSO", "parameters": {"n_agents": 10**12}, "fitted": {}},
]  # fmt: skip


def places(entry):
    """Find every container in the header, with its keys."""
    if isinstance(entry, dict | list):
        keys = list(entry) if isinstance(entry, dict) else range(len(entry))
        for key in keys:
            yield entry, key
            yield from places(entry[key])


def damage_header(_whole, header, _data, chance):
    """Delete, replace or copy some values of the description."""
    for _ in range(chance.choice([1, 1, 2, 3])):
        where, key = chance.choice(list(places(header["model"])))
        other, name = chance.choice(list(places(header)))
        if chance.randrange(4) == 0:
            del where[key]
        else:
            value = chance.choice([other[name], *random.Random(chance.random()).sample(ODD, 2)])
            where[key] = json.loads(json.dumps(value))


# What must hold

REFUSALS = (ValueError, TypeError)


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

    What Numba compiles or fetches from its cache, what is imported, and what `inspect` parses is not the
    file's doing.
    """

    BAD = (
        *("exec", "compile", "pickle", "socket", "subprocess", "ctypes.dlopen"),
        *("os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork"),
    )
    OTHERS = ("numba", "llvmlite", "importlib", "inspect")

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


def answers(model, X):
    methods = ("predict", "decision_function", "score_samples")
    return [getattr(model, name)(X).tobytes() for name in methods if hasattr(model, name)]


@pytest.mark.parametrize("kind", MODELS)
def test_damaged_bytes_are_found_or_harmless(kind, model_path, watch):
    model, X = made(kind)
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


@pytest.mark.parametrize("damage", [damage_numbers, damage_header])
@pytest.mark.parametrize("kind", MODELS)
def test_damage_under_right_checksums_never_crashes(kind, damage, model_path, watch):
    model, X = made(kind)
    popf.save(model, model_path)
    content = model_path.read_bytes()
    refused = 0
    for seed in range(N_MUTATIONS):
        chance = random.Random(seed)
        model_path.write_bytes(
            with_right_checksums(content, lambda *parts, chance=chance: damage(*parts, chance))
        )
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
