"""Datasets by name, from the package and from a folder, true copies and false ones.

Where the paper's files are at hand, they are compared with what popf knows of them.
"""

import bz2
import sys

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from popf import OPFClassifier, datasets
from popf.datasets import load, make_synthetic, registry, write
from popf.datasets.loading import scale
from popf.datasets.registry import RECORDS, difference, recorded
from popf.experiment.tables import ACCURACY
from popf.metrics import opf_accuracy_score

pytestmark = pytest.mark.usefixtures("no_network")

# What is there without any file or network


PUBLIC = [name for name, record in RECORDS.items() if not record.stand_in]
EMBEDDED = ["breast_cancer", "breast_cancer_scale", "heart_scale", "liver", "liver_scale"]
STAND_INS = [name for name, record in RECORDS.items() if record.stand_in]


@pytest.mark.parametrize("name", [*EMBEDDED, *STAND_INS])
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
    assert bunch.stand_in == record.stand_in == ("Not the paper's data" in bunch.DESCR)
    assert bunch.licence in bunch.DESCR
    X, y = load(name, download=False, return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_embedded_data_need_no_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for name in EMBEDDED:
        assert load(name, download=False).source.startswith("embedded")


@pytest.mark.parametrize("name", STAND_INS)
def test_stand_ins_are_about_as_hard_as_the_paper_prints(name):
    X, y = load(name, return_X_y=True)
    X = StandardScaler().fit_transform(X)
    scores = []
    for seed in range(20 if len(y) <= 1000 else 3):
        a, b, c, d = train_test_split(X, y, train_size=0.25, stratify=y, random_state=seed)
        scores.append(100 * opf_accuracy_score(d, OPFClassifier().fit(a, c).predict(b)))
    assert np.mean(scores) == pytest.approx(ACCURACY[name]["OPF"].mean, abs=4)


def test_synthetic_data_are_drawn_by_number_and_seed():
    X, y = make_synthetic(3)
    assert y.sum() == 0
    np.testing.assert_array_equal(X, load("synthetic3").data)
    assert not np.array_equal(make_synthetic(3, random_state=1)[0], X)
    with pytest.raises(ValueError, match="not 1"):
        make_synthetic(1)


# The list


def test_the_papers_names_come_first_in_its_order():
    records = datasets.list()
    assert [record.name for record in records[:14]] == list(ACCURACY)
    lines = str(records).splitlines()
    assert len(lines) == len(records) + 1
    assert "4,952 × 8" in lines[2]


def test_the_list_says_what_is_here(tmp_path, monkeypatch, liver):
    def here(**options):
        return {record.name: record.here for record in datasets.list(**options)}

    assert here()["liver"] == here()["liver_scale"] == "embedded"
    assert here()["heart"] == "needs download"  # only its scaled form is embedded
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


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_listed_agrees_with_the_recorded_facts(name):
    record = RECORDS[name]
    facts = recorded()[record.file.replace("breast-cancer", "breast-w")]  # without the id
    assert facts["shape"] == [record.n_samples, record.n_features]
    assert {int(label) for label in facts["counts"]} == set(record.class_names)


# Names


def test_other_names_of_the_same():
    names = {"breast": "breast_cancer", "breast-cancer_scale": "breast_cancer_scale"}
    names |= {"liver-disorders": "liver", "Liver": "liver", "commercial": "comercial"}
    assert {name: load(name, download=False).name for name in names} == names


def test_unknown_names_bring_the_nearest():
    with pytest.raises(ValueError, match="no dataset 'hart'; did you mean heart"):
        load("hart")
    with pytest.raises(ValueError, match="Known: australian"):
        load("zzzz")
    with pytest.raises(TypeError, match="not int"):
        load(3)


# A folder of the user's


def test_a_named_folder_comes_first(tmp_path, monkeypatch, liver):
    for name in ("liver-disorders.csv", "liver-disorders.txt.gz", "liver-disorders"):
        write(tmp_path / name, liver.data[::-1], liver.target[::-1])
        mine = load("liver", data_home=tmp_path)
        assert mine.source == str(tmp_path / name)  # the last of them is looked for first
    np.testing.assert_array_equal(mine.data, liver.data[::-1])
    monkeypatch.setenv("POPF_DATA", str(tmp_path))
    np.testing.assert_array_equal(load("liver").data, liver.data[::-1])
    by_hand = load("liver_scale")
    np.testing.assert_allclose(by_hand.data, scale(liver.data[::-1]))
    assert by_hand.data.min() == -1
    assert by_hand.data.max() == 1


def test_a_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    with pytest.raises(NotADirectoryError, match=r"data_home is .*nowhere"):
        load("liver", data_home=tmp_path / "nowhere")
    monkeypatch.setenv("POPF_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match="POPF_DATA"):
        datasets.list()
    assert load("synthetic3").data.shape == (200, 2)  # needs no folder


def test_false_copies_in_the_folder_are_refused_and_never_passed_over(tmp_path, liver):
    X, y = liver.data, liver.target
    bare, unknown, flipped = X.copy(), X.copy(), y.copy()
    bare[:, 5] *= 10  # "0.5" without its point is "05"
    unknown[3, 3] = np.nan
    flipped[[np.flatnonzero(y == 1)[0], np.flatnonzero(y == 2)[0]]] = [2, 1]
    for false_X, false_y, words in [
        (X[:200], y[:200], "it has 200 samples of 6 features, but liver-disorders has 345"),
        (X[:, :5], y, "LIBSVM page today.*six features"),
        (X[:, [1, 0, 2, 3, 4, 5]], y, "column 1, 2 does not agree"),
        (bare, y, "column 6 does not agree .* decimal points lost"),
        (X, 3 - y, "class counts are 1: 200, 2: 145"),
        (X, flipped, "does not agree"),
        (unknown, y, "NaN"),
    ]:
        write(tmp_path / "liver-disorders", false_X, false_y)
        with pytest.raises(ValueError, match=f"liver-disorders is not liver-disorders: .*{words}"):
            load("liver", data_home=tmp_path)


def test_what_is_no_copy_at_all_is_refused(tmp_path):
    write(tmp_path / "ionosphere", np.ones((351, 33)), np.repeat([1, -1], [225, 126]))
    with pytest.raises(ValueError, match=r"351 of 34\. The copies in the KEEL packages lack"):
        load("ionosphere", data_home=tmp_path)
    (tmp_path / "liver-disorders").write_text("<html>not found</html>")
    with pytest.raises(ValueError, match="not svmlight text"):
        load("liver", data_home=tmp_path)


def test_printed_digits_and_the_order_of_rows_do_not_matter(liver):
    order = np.random.default_rng(0).permutation(len(liver.target))
    X, y = liver.data[order], liver.target[order]
    assert difference(X.astype(np.float32).astype(float), y, "liver-disorders") is None
    heart = load("heart_scale")
    six = np.vectorize(lambda value: float(f"{value:.6g}"))(heart.data * (1 + 1e-9))
    assert difference(six, heart.target, "heart_scale") is None
    off = heart.data.copy()
    off[0, 0] += 0.01
    assert "column 1" in difference(off, heart.target, "heart_scale")


def test_the_id_of_breast_cancer_is_dropped(tmp_path, monkeypatch):
    bare = load("breast_cancer")
    ids = np.random.default_rng(0).integers(10**5, 10**7, len(bare.target)).astype(float)
    whole = np.column_stack([ids, bare.data])
    known = recorded() | {"breast-cancer": registry.measure(whole, bare.target)}
    monkeypatch.setattr(registry, "recorded", lambda: known)
    write(tmp_path / "breast-cancer", whole, bare.target)
    found = load("breast_cancer", data_home=tmp_path)
    np.testing.assert_array_equal(found.data, bare.data)
    assert found.feature_names == bare.feature_names
    write(tmp_path / "breast-cancer", bare.data, bare.target)
    with pytest.raises(ValueError, match="it lacks the id column, so name the file breast-w"):
        load("breast_cancer", data_home=tmp_path)
    (tmp_path / "breast-cancer").rename(tmp_path / "breast-w")
    assert load("breast_cancer", data_home=tmp_path).source == str(tmp_path / "breast-w")


# The true files of the paper


@pytest.fixture
def true_file(public_data, name):
    """The file of the test's dataset."""
    path = public_data / RECORDS[name].file
    if not path.exists():
        pytest.skip(f"{path.name} is missing: put it into the folder of POPF_DATA")
    return path


@pytest.mark.parametrize("name", PUBLIC)
def test_the_true_data_agree_with_the_facts(true_file, name):
    record = RECORDS[name]
    bunch = load(name, data_home=true_file.parent, download=False)
    assert bunch.data.shape == (record.n_samples, record.n_features)
    assert bunch.source == str(true_file)
    assert set(np.unique(bunch.target)) == set(record.class_names)


@pytest.mark.parametrize("name", [name for name in PUBLIC if name.endswith("_scale")])
def test_scaling_the_raw_data_gives_the_scaled_file(true_file, name, tmp_path):
    raw = RECORDS[name].raw_file
    if not true_file.with_name(raw).exists():
        pytest.skip(f"{raw} is missing: put it into the folder of POPF_DATA")
    theirs = load(name, data_home=true_file.parent)
    (tmp_path / raw).write_bytes(true_file.with_name(raw).read_bytes())
    ours = load(name, data_home=tmp_path)
    assert ours.source == str(tmp_path / raw)
    np.testing.assert_allclose(ours.data, theirs.data, atol=1e-6)
    file = "breast-w_scale" if raw == "breast-cancer" else RECORDS[name].file
    assert difference(ours.data, ours.target, file) is None


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_copies_hold_the_same_rows_as_the_true_data(true_file, name):
    def rows(bunch):
        # One sample a row, in an order that does not depend on the last digits.
        whole = np.column_stack([bunch.target, bunch.data])
        return whole[np.lexsort(np.round(whole, 4).T)]

    ours, theirs = load(name), load(name, data_home=true_file.parent)
    np.testing.assert_allclose(rows(ours), rows(theirs), atol=1e-6)
