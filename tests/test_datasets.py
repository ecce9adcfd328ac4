"""Datasets by name: every place they may come from, true copies and false ones, without a network."""

import bz2
import hashlib
import io
import json
import os
import socket
import sys
import urllib.error
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from popf import OPFClassifier, datasets
from popf.datasets import download, load, make_synthetic, places, write
from popf.datasets.facts import complaint, recorded
from popf.datasets.registry import ENTRIES
from popf.datasets.samples import scaled
from popf.metrics import opf_accuracy_score

PAPER = [
    "australian", "comercial", "industrial", "breast_cancer", "colon_cancer", "diabetes", "fourclass",
    "heart", "ionosphere", "ionosphere_scale", "liver", "synthetic0", "synthetic2", "synthetic3",
]  # fmt: skip
PUBLIC = [name for name, entry in ENTRIES.items() if entry.kind == "public"]
EMBEDDED = ["breast_cancer", "breast_cancer_scale", "heart_scale", "liver", "liver_scale"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """Only the package itself, an empty cache, and a network that is an error to touch."""

    def refuse(*arguments, **options):
        raise AssertionError("a test touched the network")

    monkeypatch.delenv("POPF_DATA", raising=False)
    monkeypatch.setenv("POPF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "open_url", refuse)
    monkeypatch.setattr(download, "fetch_openml", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="module")
def shared():
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("POPF_DATA", beside))
    if not folder.is_dir():
        pytest.skip("the paper's public data is not here: set POPF_DATA to its folder")
    return folder


@pytest.fixture
def liver():
    return load("liver", download=False)


def offline(*arguments, **options):
    raise urllib.error.URLError("no route to host")


def serve(monkeypatch, pages):
    """Put pages in the place of the network; every other address is not found."""
    asked = []

    def open_url(url, timeout):
        asked.append(url)
        assert timeout > 0
        name = url.removeprefix(download.LIBSVM_URL)
        if name not in pages:
            raise urllib.error.HTTPError(url, 404, "Not Found", None, None)
        return io.BytesIO(pages[name])

    monkeypatch.setattr(download, "open_url", open_url)
    return asked


def svmlight(X, y, form="{:.6f}"):
    """Text as the LIBSVM page prints it: six decimals, spaces at the ends of lines."""
    rows = (
        f"{label:+d}  " + " ".join(f"{j}:{form.format(v)}" for j, v in enumerate(row, 1)) + " \n"
        for row, label in zip(X, y, strict=True)
    )
    return "".join(rows).encode()


def without_package_data(monkeypatch, tmp_path):
    nothing = tmp_path / "nothing"
    nothing.mkdir(exist_ok=True)
    monkeypatch.setattr("popf.datasets.loading.embedded_folder", lambda: nothing)


# What is there without any file or network


@pytest.mark.parametrize(
    "name", [name for name in ENTRIES if name in EMBEDDED or ENTRIES[name].kind != "public"]
)
def test_what_needs_no_network_loads_as_listed(name):
    record = next(record for record in datasets.list() if record.name == name)
    bunch = load(name, download=False)
    assert bunch.data.shape == (record.n_samples, record.n_features)
    assert bunch.data.dtype == np.float64
    assert bunch.data.flags.c_contiguous
    assert np.isfinite(bunch.data).all()
    assert len(bunch.feature_names) == len(set(bunch.feature_names)) == record.n_features
    assert len(np.unique(bunch.target)) == len(bunch.target_names) == record.n_classes
    assert bunch.name == name
    assert bunch.source.startswith(record.here)
    assert bunch.licence in bunch.DESCR
    X, y = load(name, download=False, return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_stand_ins_say_what_they_are():
    for name in ("synthetic0", "synthetic2", "synthetic3", "comercial", "industrial"):
        bunch = load(name)
        assert bunch.stand_in
        assert "stand-in" in bunch.source
        assert "Not the paper's data" in bunch.DESCR
    assert not load("liver").stand_in


@pytest.mark.parametrize(
    ("number", "n_samples", "printed"), [(0, 500, 48.72), (2, 1000, 51.99), (3, 200, 42.78)]
)
def test_synthetic_stand_ins_are_about_as_hard_as_the_paper_prints(number, n_samples, printed):
    X, y = load(f"synthetic{number}", return_X_y=True)
    assert X.shape == (n_samples, 2)
    assert y.sum() == 0
    np.testing.assert_array_equal(make_synthetic(number)[0], X)
    assert not np.array_equal(make_synthetic(number, random_state=1)[0], X)
    scores = []
    for seed in range(20):
        a, b, c, d = train_test_split(X, y, train_size=0.25, stratify=y, random_state=seed)
        scores.append(100 * opf_accuracy_score(d, OPFClassifier().fit(a, c).predict(b)))
    assert np.mean(scores) == pytest.approx(printed, abs=4)


def test_there_is_no_synthetic1():
    with pytest.raises(ValueError, match="not 1"):
        make_synthetic(1)


# The list


def test_the_papers_names_come_first_in_its_order():
    records = datasets.list()
    assert [record.name for record in records[:14]] == PAPER
    assert [record.name for record in records if record.in_paper] == PAPER
    assert len({record.name for record in records}) == len(records)


def test_the_list_says_what_is_here(tmp_path, monkeypatch, liver):
    def here(**options):
        return {record.name: record.here for record in datasets.list(**options)}

    assert here()["liver"] == here()["liver_scale"] == "embedded"
    assert here()["heart"] == "needs download"  # only its scaled form is embedded
    assert here()["iris"] == "scikit-learn"
    assert here()["comercial"] == "generated"
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "fourclass").write_text("1 1:2\n")
    assert here()["fourclass_scale"] == "cache"
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "liver-disorders.svm.bz2").write_bytes(bz2.compress(b"1 1:2\n"))
    assert here(data_home=folder)["liver"] == "folder"
    monkeypatch.setenv("POPF_DATA", str(folder))
    assert here()["liver"] == "folder"


def test_the_list_prints_as_a_table():
    records = datasets.list()
    lines = str(records).splitlines()
    assert len(lines) == len(records) + 1
    assert lines[0].split()[0] == "name"
    assert "4,952 × 8" in str(records)
    assert repr(records) == str(records)
    html = records._repr_html_()
    assert html.count("<tr>") == len(records) + 1
    assert "stand-in" in html
    assert isinstance(records[2:5], datasets.Catalogue)
    assert records[:] == records


# Names


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("breast", "breast_cancer"),
        ("breast-cancer", "breast_cancer"),
        ("breast-cancer_scale", "breast_cancer_scale"),
        ("liver-disorders", "liver"),
        ("liver-disorders_scale", "liver_scale"),
        ("Liver", "liver"),
        ("commercial", "comercial"),
    ],
)
def test_other_names_of_the_same(given_name, name):
    assert load(given_name, download=False).name == name


def test_unknown_names_bring_the_nearest():
    with pytest.raises(ValueError, match="no dataset 'hart'; did you mean heart"):
        load("hart")
    with pytest.raises(ValueError, match="Known: australian"):
        load("zzzz")
    with pytest.raises(TypeError, match="not int"):
        load(3)


# A folder of the user's


def test_a_named_folder_comes_first(tmp_path, monkeypatch, liver):
    write(tmp_path / "liver-disorders", liver.data[::-1], liver.target[::-1])
    mine = load("liver", data_home=tmp_path)
    np.testing.assert_array_equal(mine.data, liver.data[::-1])
    assert mine.source == str(tmp_path / "liver-disorders")
    monkeypatch.setenv("POPF_DATA", str(tmp_path))
    np.testing.assert_array_equal(load("liver").data, liver.data[::-1])
    by_hand = load("liver_scale")
    np.testing.assert_allclose(by_hand.data, scaled(liver.data[::-1]))
    assert by_hand.data.min() == -1
    assert by_hand.data.max() == 1


@pytest.mark.parametrize("name", ["liver-disorders.csv", "liver-disorders.txt.gz"])
def test_other_forms_of_a_file_are_found(tmp_path, name, liver):
    write(tmp_path / name, liver.data, liver.target)
    assert load("liver", data_home=tmp_path).source == str(tmp_path / name)


def test_a_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    with pytest.raises(NotADirectoryError, match=r"data_home names .*nowhere"):
        load("liver", data_home=tmp_path / "nowhere")
    monkeypatch.setenv("POPF_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match="POPF_DATA"):
        datasets.list()
    assert load("iris").data.shape == (150, 4)  # needs no folder


def false_copies(liver):
    X, y = liver.data, liver.target
    swapped = X[:, [1, 0, 2, 3, 4, 5]]
    bare = X.copy()
    bare[:, 5] *= 10  # "0.5" without its point is "05"
    unknown = X.copy()
    unknown[3, 3] = np.nan
    flipped = y.copy()
    flipped[[np.flatnonzero(y == 1)[0], np.flatnonzero(y == 2)[0]]] = [2, 1]
    return {
        "cut": (X[:200], y[:200], "it has 200 samples of 6 features, and liver-disorders has 345"),
        "five": (X[:, :5], y, "LIBSVM page serves today.*six features"),
        "swapped": (swapped, y, "column 1, 2 does not agree"),
        "bare": (bare, y, "decimal points of column 6 are lost .*KEEL"),
        "labels": (X, 3 - y, "classes count 1: 200, 2: 145"),
        "flipped": (X, flipped, "does not agree"),
        "unknown": (unknown, y, "NaN"),
    }


@pytest.mark.parametrize(
    "which", ["cut", "five", "swapped", "bare", "labels", "flipped", "unknown"]
)
def test_a_false_copy_in_the_folder_is_refused_and_never_passed_over(tmp_path, liver, which):
    X, y, words = false_copies(liver)[which]
    write(tmp_path / "liver-disorders", X, y)
    with pytest.raises(ValueError, match=f"liver-disorders is not liver-disorders: .*{words}"):
        load("liver", data_home=tmp_path)


def test_keels_ionosphere_is_known_by_its_33_columns(tmp_path):
    write(tmp_path / "ionosphere", np.ones((351, 33)), np.repeat([1, -1], [225, 126]))
    with pytest.raises(ValueError, match=r"351 of 34\. The copies of the KEEL packages lack"):
        load("ionosphere", data_home=tmp_path)


def test_text_that_is_no_data_is_refused(tmp_path):
    (tmp_path / "liver-disorders").write_text("<html>not found</html>")
    with pytest.raises(ValueError, match="not svmlight text"):
        load("liver", data_home=tmp_path)


def test_printed_digits_and_the_order_of_rows_do_not_matter(liver):
    order = np.random.default_rng(0).permutation(len(liver.target))
    X, y = liver.data[order], liver.target[order]
    assert complaint(X.astype(np.float32).astype(float), y, "liver-disorders") is None
    heart = load("heart_scale")
    six = np.vectorize(lambda value: float(f"{value:.6g}"))(heart.data * (1 + 1e-9))
    assert complaint(six, heart.target, "heart_scale") is None
    off = heart.data.copy()
    off[0, 0] += 0.01
    assert "column 1" in complaint(off, heart.target, "heart_scale")


# The id of breast-cancer


def with_id(seed=0):
    """Embedded breast-cancer with an invented id before it, and facts that fit it."""
    bare = load("breast_cancer")
    ids = np.random.default_rng(seed).integers(10**5, 10**7, len(bare.target)).astype(float)
    return bare, np.column_stack([ids, bare.data])


def test_the_id_is_dropped_unless_asked_for(tmp_path, monkeypatch):
    from popf.datasets import facts

    bare, whole = with_id()
    known = recorded() | {"breast-cancer": facts.measure(whole, bare.target)}
    monkeypatch.setattr(facts, "recorded", lambda: known)
    write(tmp_path / "breast-cancer", whole, bare.target)
    dropped = load("breast_cancer", data_home=tmp_path)
    np.testing.assert_array_equal(dropped.data, bare.data)
    assert dropped.feature_names == bare.feature_names
    kept = load("breast_cancer", data_home=tmp_path, keep_id=True)
    np.testing.assert_array_equal(kept.data, whole)
    assert kept.feature_names == ["id", *bare.feature_names]
    both = load("breast_cancer_scale", data_home=tmp_path, keep_id=True)
    np.testing.assert_allclose(both.data, scaled(whole))


def test_copies_without_the_id_do_not_serve_those_who_want_it(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"Without the id .* the data are embedded"):
        load("breast_cancer", keep_id=True, download=False)
    with pytest.raises(ValueError, match="liver has no id column"):
        load("liver", keep_id=True)
    bare, _ = with_id()
    write(tmp_path / "breast-cancer", bare.data, bare.target)
    with pytest.raises(ValueError, match="it lacks the id, so name it breast-w"):
        load("breast_cancer", data_home=tmp_path)
    os.rename(tmp_path / "breast-cancer", tmp_path / "breast-w")
    assert load("breast_cancer", data_home=tmp_path).source == str(tmp_path / "breast-w")


# Cache and downloads


def test_offline_the_message_says_what_was_tried_and_what_helps(monkeypatch, tmp_path):
    monkeypatch.setattr(download, "open_url", offline)
    monkeypatch.setattr(download, "fetch_openml", offline)
    with pytest.raises(FileNotFoundError) as refusal:
        load("heart", data_home=tmp_path)
    for words in [
        f"no such file in {tmp_path}", "not embedded", "not in the cache", "OpenML 53", "no route to host",
        f"{download.LIBSVM_URL}heart", "POPF_DATA",
    ]:  # fmt: skip
        assert words in str(refusal.value)


def test_download_false_never_asks_the_network():
    for name in PUBLIC:  # the fixture's network fails the test when touched
        if name not in EMBEDDED:
            with pytest.raises(FileNotFoundError, match="download=False"):
                load(name, download=False)


def test_a_download_is_checked_cached_and_not_asked_for_again(monkeypatch, tmp_path, liver):
    without_package_data(monkeypatch, tmp_path)
    monkeypatch.setattr(download, "fetch_openml", offline)
    asked = serve(monkeypatch, {"liver-disorders": svmlight(liver.data, liver.target)})
    first = load("liver")
    np.testing.assert_array_equal(first.data, liver.data)
    assert first.source == f"{download.LIBSVM_URL}liver-disorders"
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["liver-disorders"]
    asked.clear()
    again = load("liver")
    np.testing.assert_array_equal(again.data, liver.data)
    assert again.source.startswith("cache")
    np.testing.assert_allclose(load("liver_scale").data, scaled(liver.data))
    assert asked == []


@pytest.mark.parametrize("which", ["cut", "five", "swapped", "bare", "labels"])
def test_a_false_download_is_refused_and_not_cached(monkeypatch, tmp_path, liver, which):
    without_package_data(monkeypatch, tmp_path)
    X, y, words = false_copies(liver)[which]
    monkeypatch.setattr(download, "fetch_openml", offline)
    serve(monkeypatch, {"liver-disorders": svmlight(X, y)})
    with pytest.raises(FileNotFoundError, match=words):
        load("liver")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("content", [b"", b"<html>moved</html>", b"1 1:2 2:"])
def test_a_page_that_is_no_data_is_refused(monkeypatch, tmp_path, content):
    serve(monkeypatch, {"fourclass": content})
    with pytest.raises(FileNotFoundError, match="fourclass"):
        load("fourclass")


def test_a_packed_download_that_is_cut_short_is_refused(monkeypatch):
    packed = bz2.compress(b"1 1:2\n" * 1000)
    for content in (packed[:-10], b"<html>", packed):
        serve(monkeypatch, {"colon-cancer.bz2": content})
        with pytest.raises(FileNotFoundError, match=r"cut short or no bzip2|is not colon-cancer"):
            load("colon_cancer")


def test_an_endless_page_is_not_read_to_the_end(monkeypatch):
    monkeypatch.setattr(download, "_LIMIT", 1000)
    serve(monkeypatch, {"fourclass": b"1 1:2\n" * 1000})
    with pytest.raises(FileNotFoundError, match="more than 1000 bytes"):
        load("fourclass")


def test_a_broken_cache_is_replaced_or_named(monkeypatch, tmp_path, liver):
    without_package_data(monkeypatch, tmp_path)
    (tmp_path / "cache").mkdir()
    cached = tmp_path / "cache" / "liver-disorders"
    cached.write_text("1 1:2\n")
    with pytest.raises(FileNotFoundError, match="broken in the cache"):
        load("liver", download=False)
    monkeypatch.setattr(download, "fetch_openml", offline)
    serve(monkeypatch, {"liver-disorders": svmlight(liver.data, liver.target)})
    np.testing.assert_array_equal(load("liver").data, liver.data)
    assert load("liver", download=False).source.startswith("cache")


def test_a_cache_that_cannot_be_written_does_not_lose_the_download(monkeypatch, tmp_path, liver):
    without_package_data(monkeypatch, tmp_path)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("POPF_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(download, "fetch_openml", offline)
    serve(monkeypatch, {"liver-disorders": svmlight(liver.data, liver.target)})
    with pytest.warns(UserWarning, match="liver is not kept"):
        found = load("liver")
    np.testing.assert_array_equal(found.data, liver.data)


def openml_liver(liver):
    """What scikit-learn gives for OpenML's liver-disorders: nominal columns as numbers of categories."""
    categories = sorted({repr(value) for value in liver.data[:, 0].tolist()}, reverse=True)
    data = liver.data.copy()
    data[:, 0] = [categories.index(repr(value)) for value in liver.data[:, 0].tolist()]
    return Bunch(
        data=np.vstack([data, np.full(6, np.nan)]),  # a row that is not known
        target=np.array([*(str(label) for label in liver.target), "1"], dtype=object),
        feature_names=list(liver.feature_names),
        categories={"mcv": categories},
    )


def test_openml_is_asked_first_and_decoded(monkeypatch, tmp_path, liver):
    without_package_data(monkeypatch, tmp_path)
    asked = []

    def fetch_openml(**arguments):
        asked.append(arguments)
        assert socket.getdefaulttimeout() is not None
        return openml_liver(liver)

    monkeypatch.setattr(download, "fetch_openml", fetch_openml)
    found = load("liver")
    np.testing.assert_array_equal(found.data, liver.data)
    np.testing.assert_array_equal(found.target, liver.target)
    assert found.source == "OpenML 8"
    assert socket.getdefaulttimeout() is None
    (arguments,) = asked
    assert arguments["data_id"] == 8
    assert arguments["target_column"] == "selector"


def test_strange_labels_on_openml_lead_on_to_the_libsvm_page(monkeypatch, tmp_path, liver):
    without_package_data(monkeypatch, tmp_path)
    strange = openml_liver(liver)
    strange.target[0] = "maybe"
    monkeypatch.setattr(download, "fetch_openml", lambda **arguments: strange)
    asked = serve(monkeypatch, {"liver-disorders": svmlight(liver.data, liver.target)})
    assert load("liver").source == asked[0]
    serve(monkeypatch, {})
    (tmp_path / "cache" / "liver-disorders").unlink()
    with pytest.raises(FileNotFoundError, match="labels maybe, not 1, 2"):
        load("liver")


def openml_pages(bunch):
    """Answers of OpenML's server for liver-disorders, in the form that scikit-learn reads."""
    names = [*bunch.feature_names, "selector"]
    volumes = ",".join(sorted({f"{value:g}" for value in bunch.data[:, 0]}, reverse=True))
    kinds = [f"{{{volumes}}}", *["numeric"] * 5, "numeric"]
    head = "".join(f"@attribute {n} {k}\n" for n, k in zip(names, kinds, strict=True))
    rows = "".join(
        ",".join(f"{value:g}" for value in [*row, label]) + "\n"
        for row, label in zip(bunch.data, bunch.target, strict=True)
    )
    arff = f"@relation liver\n{head}@data\n{rows}".encode()
    features = [
        {
            "index": str(index),
            "name": name,
            "data_type": "nominal" if index == 0 else "numeric",
            "is_target": "true" if name == "drinks" else "false",
            "is_ignore": "true" if name == "selector" else "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for index, name in enumerate(names)
    ]
    description = {
        "id": "8", "name": "liver-disorders", "version": "1", "status": "active", "format": "ARFF",
        "description": "", "file_id": "8", "md5_checksum": hashlib.md5(arff).hexdigest(),
        "url": "https://www.openml.org/data/v1/download/8/liver.arff",
    }  # fmt: skip
    quality = [{"name": "NumberOfInstances", "value": str(len(bunch.target))}]
    return {
        "data/8": json.dumps({"data_set_description": description}).encode(),
        "data/features/8": json.dumps({"data_features": {"feature": features}}).encode(),
        "data/qualities/8": json.dumps({"data_qualities": {"quality": quality}}).encode(),
        "8/liver.arff": arff,
    }


class Answer(io.BytesIO):
    """What urlopen gives, as far as scikit-learn looks."""

    def info(self):
        return {}


def test_scikit_learns_own_function_takes_our_arguments(monkeypatch, tmp_path, liver):
    """The real fetch_openml, with the answers of a server in the place of the network."""
    import sklearn.datasets._openml as real

    pages = openml_pages(liver)

    def urlopen(request, *arguments, **options):
        (content,) = [page for end, page in pages.items() if request.full_url.endswith(end)]
        return Answer(content)

    without_package_data(monkeypatch, tmp_path)
    monkeypatch.setattr(real, "urlopen", urlopen)
    monkeypatch.setattr(download, "fetch_openml", real.fetch_openml)
    monkeypatch.setitem(sys.modules, "pandas", None)  # it must not be needed
    found = load("liver")
    assert found.source == "OpenML 8"
    np.testing.assert_array_equal(found.data, liver.data)
    np.testing.assert_array_equal(found.target, liver.target)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/popf"),
        ("linux", {}, "/home/me/.cache/popf"),
        ("darwin", {}, "/home/me/Library/Caches/popf"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/popf/Cache"),
    ],
)
def test_the_cache_is_where_the_system_has_caches(monkeypatch, platform, variables, expected):
    for name in ("POPF_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(places.sys, "platform", platform)
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: Path("/home/me")))
    assert places.cache_folder() == Path(expected)


# Against the true data, where they are


@pytest.mark.parametrize("name", PUBLIC)
def test_the_true_data_agree_with_the_facts(shared, name):
    entry = ENTRIES[name]
    if not (shared / entry.file).exists():
        pytest.skip(f"{entry.file} is not among the data in POPF_DATA")
    bunch = load(name, data_home=shared, download=False)
    assert bunch.data.shape == (entry.n_samples, entry.n_features)
    assert bunch.source == str(shared / entry.file)
    assert set(np.unique(bunch.target)) == set(entry.class_names)


@pytest.mark.parametrize("name", [name for name in PUBLIC if name.endswith("_scale")])
def test_scaling_the_raw_data_gives_the_scaled_file(shared, name, tmp_path):
    raw = ENTRIES[name].raw_file
    if not (shared / raw).exists() or not (shared / ENTRIES[name].file).exists():
        pytest.skip(f"{raw} is not among the data in POPF_DATA")
    theirs = load(name, data_home=shared)
    (tmp_path / raw).write_bytes((shared / raw).read_bytes())
    ours = load(name, data_home=tmp_path)
    assert ours.source == str(tmp_path / raw)
    np.testing.assert_allclose(ours.data, theirs.data, atol=1e-6)
    file = "breast-w_scale" if raw == "breast-cancer" else ENTRIES[name].file
    assert complaint(ours.data, ours.target, file) is None


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_copies_hold_the_same_rows_as_the_true_data(shared, name):
    if not (shared / ENTRIES[name].file).exists():
        pytest.skip(f"{name} is not among the data in POPF_DATA")

    def rows(bunch):
        # One sample a row, in an order that does not depend on the last digits.
        whole = np.column_stack([bunch.target, bunch.data])
        return whole[np.lexsort(np.round(whole, 4).T)]

    ours, theirs = load(name), load(name, data_home=shared)
    np.testing.assert_allclose(rows(ours), rows(theirs), atol=1e-6)


@pytest.mark.parametrize(("name", "columns"), [("australian", [1, 2, 6]), ("heart", [9])])
def test_lost_decimal_points_are_recognised_in_the_true_data(shared, name, columns, tmp_path):
    if not (shared / name).exists():
        pytest.skip(f"{name} is not among the data in POPF_DATA")
    bunch = load(name, data_home=shared)
    X = bunch.data.copy()
    for column in columns:
        X[:, column] = [float(repr(round(v, 3)).replace(".", "")) for v in X[:, column].tolist()]
    write(tmp_path / name, X, bunch.target)
    with pytest.raises(ValueError, match=r"decimal points of column .* are lost"):
        load(name, data_home=tmp_path)


def test_the_true_breast_cancer_with_and_without_its_id(shared):
    if not (shared / "breast-cancer").exists():
        pytest.skip("breast-cancer is not among the data in POPF_DATA")
    kept = load("breast_cancer", data_home=shared, keep_id=True)
    assert kept.data.shape == (683, 10)
    assert kept.data[:, 0].min() > 10_000
    np.testing.assert_array_equal(kept.data[:, 1:], load("breast_cancer", data_home=shared).data)
