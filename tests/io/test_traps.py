"""Files made on purpose to harm whoever opens them: refused, with what is wrong."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

import popf
from damaged_models import forest, pipeline, probabilities, rewrite, with_header
from popf.io import ModelFileError, container, describe


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
        ("<U0", [10**12], r"is of '<U0'"),
        ("|O", [24, 2], r"is of '\|O'"),
        ("<M8[s]", [24, 2], "is of"),
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
    ["[" * 200_000, '{"format": NaN}', '{"a": 1, "a": 2}', "1" * 10_000, '"\xff', "null", "{}"],
    ids=["deep", "nan", "twice", "long", "no text", "null", "nothing"],
)
def test_odd_json_is_refused(model_path, content, text):
    def change(members):
        members[container.HEADER] = text.encode("latin1")

    refuse(model_path, rewrite(content, change), "damaged")


def test_a_header_that_is_too_long_is_refused(model_path, content):
    def change(members):
        members[container.HEADER] = b" " * (container.MAX_HEADER + 1)

    refuse(model_path, rewrite(content, change), "claims")


def test_many_members_are_refused_before_they_are_listed(model_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for i in range(60_000):
            archive.writestr(f"{i:060d}", b"")
    refuse(model_path, file.getvalue(), "its list of members claims")


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


TRAPS = {
    "class": (
        lambda header: header["model"].update({"class": "subprocess.Popen"}),
        r"an estimator 'subprocess\.Popen'",
    ),
    "no parameter": (lambda header: header["model"].pop("parameters"), "'parameters' is missing"),
    "no field": (
        lambda header: header["model"]["fitted"]["forest_"]["items"].remove(
            forest_entry(header, "algorithm")
        ),
        "forest_ of OPFClassifier lacks algorithm",
    ),
    "number of threads": (
        lambda header: header["model"]["parameters"].update({"n_jobs": 4096}),
        "takes no parameter 'n_jobs' from a file",
    ),
    "a method hidden": (
        lambda header: header["model"]["fitted"].update({"costs_": 1}),
        "OPFClassifier has no 'costs_'",
    ),
    "another array": (
        lambda header: forest_entry(header, "codes").__setitem__(1, 3),
        "codes of forest_ of OPFClassifier must be an array of whole numbers",
    ),
    "an array twice": (
        lambda header: forest_entry(header, "metric_params").__setitem__(
            1, forest_entry(header, "samples")[1]
        ),
        "_samples_of_forest_of_the_model' is missing",
    ),
    "an array too many": (
        lambda header: header["model"]["fitted"].update(
            {"classes_": {"!": "objects", "items": ["no", "yes"]}}
        ),
        "_classes_of_the_model' belongs to nothing",
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_is_wrong_in_a_header_is_named(trap, model_path, content):
    change, match = TRAPS[trap]
    refuse(model_path, rewrite(content, with_header(change)), match, [popf.load])


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("A_", 1e308, "A_ of POPFClassifier must be a number"),
        ("A_", {"!": "float", "value": "nan"}, "A_ of POPFClassifier must be a number"),
        ("A_", True, "A_ of POPFClassifier must be a number"),
        ("memory", "/tmp", "takes no parameter 'memory' from a file"),
    ],
)
def test_absurd_numbers_and_folders_are_refused(model_path, key, value, match):
    popf.save(pipeline()[0], model_path)

    def change(header):
        model = header["model"]
        place = model["parameters"] if key == "memory" else model["steps"][-1][1]["fitted"]
        place[key] = value

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
