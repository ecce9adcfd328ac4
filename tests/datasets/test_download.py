"""Downloads and their cache, with pages and answers in the place of a network."""

import bz2
import inspect
import io
import socket
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from popf.datasets import load, loading
from popf.datasets.loading import LIBSVM_URL, scale

FETCH_OPENML = sklearn.datasets.fetch_openml  # itself, which tests replace
pytestmark = pytest.mark.usefixtures("no_network")


def offline(*arguments, **options):
    raise urllib.error.URLError("no route to host")


def serve(monkeypatch, pages):
    """Put pages in the place of the network; every other address is not found."""
    asked = []

    def open_url(url, timeout):
        asked.append(url)
        assert timeout > 0
        name = url.removeprefix(LIBSVM_URL)
        if name not in pages:
            raise urllib.error.HTTPError(url, 404, "Not Found", None, None)
        return io.BytesIO(pages[name])

    monkeypatch.setattr(urllib.request, "urlopen", open_url)
    return asked


def svmlight(X, y):
    """Text as the LIBSVM page prints it: six decimals, spaces at the ends of lines."""
    rows = (
        f"{label:+d}  " + " ".join(f"{j}:{v:.6f}" for j, v in enumerate(row, 1)) + " \n"
        for row, label in zip(X, y, strict=True)
    )
    return "".join(rows).encode()


@pytest.fixture
def nothing_embedded(monkeypatch, tmp_path, liver):
    """No data in the package (any more, once `liver` is read from there); OpenML does not answer."""
    monkeypatch.setattr(loading, "EMBEDDED", tmp_path / "nothing")
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)


def test_offline_the_message_says_what_was_tried_and_what_helps(monkeypatch, tmp_path):
    monkeypatch.setattr(urllib.request, "urlopen", offline)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    with pytest.raises(FileNotFoundError) as refusal:
        load("heart", data_home=tmp_path)
    for words in [
        f"no such file in {tmp_path}", "not embedded", "not in the cache", "OpenML 53", "no route to host",
        f"{LIBSVM_URL}heart", "POPF_DATA",
    ]:  # fmt: skip
        assert words in str(refusal.value)


def test_download_false_never_asks_the_network():
    for name in ("heart", "colon_cancer"):  # the fixture's network fails the test when touched
        with pytest.raises(FileNotFoundError, match="download=False"):
            load(name, download=False)


@pytest.mark.usefixtures("nothing_embedded")
def test_a_download_is_checked_cached_and_not_asked_for_again(monkeypatch, tmp_path, liver):
    asked = serve(monkeypatch, {"liver-disorders": svmlight(liver.data, liver.target)})
    first = load("liver")
    np.testing.assert_array_equal(first.data, liver.data)
    assert first.source == f"{LIBSVM_URL}liver-disorders"
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["liver-disorders"]
    asked.clear()
    again = load("liver")
    np.testing.assert_array_equal(again.data, liver.data)
    assert again.source.startswith("cache")
    np.testing.assert_allclose(load("liver_scale").data, scale(liver.data))
    assert asked == []


@pytest.mark.usefixtures("nothing_embedded")
def test_a_false_download_is_refused_and_not_cached(monkeypatch, tmp_path, liver):
    serve(monkeypatch, {"liver-disorders": svmlight(liver.data[:, :5], liver.target)})
    with pytest.raises(FileNotFoundError, match="LIBSVM page today"):
        load("liver")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("name", "page", "content"),
    [
        ("fourclass", "fourclass", b""),
        ("fourclass", "fourclass", b"<html>moved</html>"),
        ("colon_cancer", "colon-cancer.bz2", bz2.compress(b"1 1:2\n" * 1000)[:-10]),
        ("colon_cancer", "colon-cancer.bz2", bz2.compress(b"1 1:2\n" * 1000)),
    ],
)
def test_a_page_that_is_no_data_is_refused(monkeypatch, name, page, content):
    serve(monkeypatch, {page: content})
    with pytest.raises(
        FileNotFoundError, match=f"{page}.*(truncated|not svmlight|is not|is empty|no sample)"
    ):
        load(name)


@pytest.mark.usefixtures("nothing_embedded")
def test_a_broken_cache_is_replaced_or_named(monkeypatch, tmp_path, liver):
    (tmp_path / "cache").mkdir()
    cached = tmp_path / "cache" / "liver-disorders"
    cached.write_text("1 1:2\n")
    with pytest.raises(FileNotFoundError, match="invalid copy in the cache"):
        load("liver", download=False)
    serve(monkeypatch, {"liver-disorders": svmlight(liver.data, liver.target)})
    np.testing.assert_array_equal(load("liver").data, liver.data)
    assert load("liver", download=False).source.startswith("cache")


@pytest.mark.usefixtures("nothing_embedded")
def test_a_cache_that_cannot_be_written_does_not_lose_the_download(monkeypatch, tmp_path, liver):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("POPF_CACHE", str(tmp_path / "file"))
    serve(monkeypatch, {"liver-disorders": svmlight(liver.data, liver.target)})
    with pytest.warns(UserWarning, match="liver could not be cached"):
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


@pytest.mark.usefixtures("nothing_embedded")
def test_openml_is_asked_first_and_decoded(monkeypatch, tmp_path, liver):
    asked = []

    def fetch_openml(**arguments):
        asked.append(arguments)
        inspect.signature(FETCH_OPENML).bind(**arguments)  # it takes them
        assert socket.getdefaulttimeout() is not None
        return openml_liver(liver)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    found = load("liver")
    np.testing.assert_array_equal(found.data, liver.data)
    np.testing.assert_array_equal(found.target, liver.target)
    assert found.source == "OpenML 8"
    assert socket.getdefaulttimeout() is None
    (arguments,) = asked
    assert arguments["data_id"] == 8
    assert arguments["target_column"] == "selector"


@pytest.mark.usefixtures("nothing_embedded")
def test_strange_labels_on_openml_lead_on_to_the_libsvm_page(monkeypatch, tmp_path, liver):
    strange = openml_liver(liver)
    strange.target[0] = "maybe"
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **arguments: strange)
    asked = serve(monkeypatch, {"liver-disorders": svmlight(liver.data, liver.target)})
    assert load("liver").source == asked[0]
    serve(monkeypatch, {})
    (tmp_path / "cache" / "liver-disorders").unlink()
    with pytest.raises(FileNotFoundError, match="labels maybe, not 1, 2"):
        load("liver")


def test_the_cache_is_beside_scikit_learns(monkeypatch):
    monkeypatch.delenv("POPF_CACHE")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", "~/data")
    assert loading.cache_folder() == Path("~/data/popf").expanduser()
