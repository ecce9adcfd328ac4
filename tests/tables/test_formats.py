"""Data files: what is written is read back, and what is broken is named."""

import bz2
import gzip
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from popf.datasets import read, write
from popf.io import align
from popf.tables import open_table
from popf.tables.columns import kind_of, match_labels
from popf.tables.formats import FORMATS

DOUBLES = st.floats(allow_nan=False, allow_infinity=False, width=64)
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6)
MATRICES = hnp.arrays(np.float64, SHAPES, elements=DOUBLES)
TEXT = st.text("abcxyz é,;\"'\n\t", min_size=1, max_size=6).map(lambda word: f"k{word}k")


def round_trip(folder, suffix, X, y, **options):
    path = folder / f"file.{suffix}"
    write(path, X, y, **options)
    return read(path)


def integers(X, draw_seed=0):
    return np.random.default_rng(draw_seed).integers(-3, 4, len(X))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@pytest.mark.parametrize("suffix", ["svm", "csv", "tsv", "parquet", "svm.gz", "csv.bz2", "libsvm"])
def test_every_double_comes_back_to_the_last_bit(folder, suffix):
    @settings(max_examples=30, deadline=None)  # each flushes a file to the disk
    @given(MATRICES)
    def check(X):
        y = integers(X)
        back = round_trip(folder, suffix, X, y)
        np.testing.assert_array_equal(back.data, X)
        assert back.data.dtype == np.float64
        np.testing.assert_array_equal(back.target, y)
        assert back.target.dtype.kind == "i"

    check()


@settings(max_examples=30, deadline=None)
@given(hnp.arrays(np.float64, SHAPES, elements=st.floats(-1e30, 1e30)))
def test_libopf_keeps_single_precision_and_labels_from_0(tmp_path_factory, X):
    y = integers(X) + 3
    back = round_trip(tmp_path_factory.getbasetemp(), "dat", X, y)
    np.testing.assert_array_equal(back.data, X.astype(np.float32).astype(np.float64))
    np.testing.assert_array_equal(back.target, y)
    np.testing.assert_array_equal(back.ids, np.arange(len(X)))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_names_and_labels_of_text_come_back(folder, suffix):
    @settings(max_examples=30, deadline=None)
    @given(st.lists(TEXT, min_size=2, max_size=4, unique=True), st.data())
    def check(names, data):
        y = np.array(data.draw(st.lists(TEXT, min_size=3, max_size=3)))
        X = np.arange(3.0 * (len(names) - 1)).reshape(3, -1)
        back = round_trip(folder, suffix, X, y, feature_names=names[1:], target_name=names[0])
        assert back.feature_names == names[1:]
        assert back.target_name == names[0]
        np.testing.assert_array_equal(back.target, y)

    check()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "svm"])
def test_nan_infinity_and_columns_of_zeros_come_back(tmp_path, suffix):
    X = np.array([[np.nan, 1.0, np.inf, 0.0], [0.0, -np.inf, 2.0, 0.0]])
    np.testing.assert_array_equal(round_trip(tmp_path, suffix, X, [0, 1]).data, X)


def test_the_bytes_of_a_libopf_file_are_as_described(tmp_path):
    path = tmp_path / "five.dat"
    samples = [(1, 0.25, 0.5), (1, 0.75, -1.0), (2, 3.0, 1.5), (2, 0.0, 2.0), (3, 8.0, 0.125)]
    packed = struct.pack("<3i", 5, 3, 2) + b"".join(
        struct.pack("<2i2f", 10 + number, *sample) for number, sample in enumerate(samples)
    )
    path.write_bytes(packed)
    five = read(path)
    np.testing.assert_array_equal(five.data, [sample[1:] for sample in samples])
    np.testing.assert_array_equal(five.target, [1, 1, 2, 2, 3])
    np.testing.assert_array_equal(five.ids, [10, 11, 12, 13, 14])
    again = tmp_path / "again.dat"
    write(again, five.data, five.target, ids=five.ids)
    assert again.read_bytes() == packed


def test_data_frames_bring_their_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"length": [1.0, 2.0], "width": [3, 4]})
    write(tmp_path / "f.csv", frame, ["a", "b"])
    assert read(tmp_path / "f.csv").feature_names == ["length", "width"]


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    for suffix in ("csv", "parquet", "svm", "dat"):
        write(tmp_path / f"f.{suffix}", [[1.0], [2.0]], [0, 1])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "popf\[parquet\]"'):
        read(tmp_path / "f.parquet")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'needs pandas.*pip install "popf\[pandas\]"'):
        read(tmp_path / "f.csv")
    for suffix in ("svm", "dat"):
        assert read(tmp_path / f"f.{suffix}").data.shape == (2, 1)


def test_the_target_by_name_by_position_or_last(table):
    text = "a,b,c\n1,2,x\n3,4,y\n"
    assert table(text).target.tolist() == ["x", "y"]
    assert table(text, target="c").feature_names == ["a", "b"]
    found = table("c,a,b\nx,1,2\ny,3,4\n", target=0)
    assert found.target.tolist() == ["x", "y"]
    assert found.data.tolist() == [[1, 2], [3, 4]]
    found = table("1,2,0\n3,4,1\n", target=-1)  # a first line of numbers is a sample
    assert found.data.tolist() == [[1, 2], [3, 4]]
    assert found.feature_names == ["x1", "x2"]
    X, y = table(text, return_X_y=True)
    assert X.shape == (2, 2)
    assert y.shape == (2,)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([3, 1], [3, 1]),
        ([2, 0], [2, 0]),
        (["b", "a"], [2, 1]),
        ([1, -1], [2, 1]),
        ([0.5, 2.5], [1, 2]),
    ],
)
def test_labels_that_libopf_cannot_hold_are_numbered(tmp_path, y, expected):
    assert round_trip(tmp_path, "dat", [[1.0], [2.0]], y).target.tolist() == expected


def test_marks_of_spreadsheets_unknown_values_and_other_encodings(table):
    found = table(b"\xef\xbb\xbfa,b,y\r\n1,,0\r\nNA,2,1\r\n\r\n")
    assert found.feature_names == ["a", "b"]
    np.testing.assert_array_equal(found.data, [[1, np.nan], [np.nan, 2]])
    found = table("größe,y\n1,0\n2,1\n".encode("latin-1"), encoding="latin-1")
    assert found.feature_names == ["größe"]


@pytest.mark.parametrize(
    ("labels", "expected", "kind"),
    [
        (["1", "-2", "+3"], [1, -2, 3], "i"),
        (["01", "1", "2"], ["01", "1", "2"], "U"),  # two names, not one number
        (["1.0", "2.0", "2.0"], [1, 2, 2], "i"),
        (["0.5", "1", "2"], [0.5, 1, 2], "f"),
        (["1", "two", "3"], ["1", "two", "3"], "U"),
    ],
)
def test_labels_are_numbers_where_nothing_is_lost(table, labels, expected, kind):
    rows = "".join(f"{number},{label}\n" for number, label in enumerate(labels))
    found = table(f"a,y\n{rows}")
    assert found.target.tolist() == expected
    assert found.target.dtype.kind == kind


def test_labels_are_matched_by_text_or_else_by_value():
    pytest.importorskip("pandas")
    assert match_labels(["1", " 01", "1.0"], np.array(["01", "1"]), "y").tolist() == [1, 0, 1]
    assert match_labels([2.0, "1", 1], np.array([1, 2]), "y").tolist() == [1, 0, 0]
    assert match_labels(["True", "FALSE"], np.array([False, True]), "y").tolist() == [1, 0]


MIXED = "size,colour,shape,y\n1.5,red,round,0\n2,blue,square,1\n3,red,,1\n"


def test_one_hot_and_ordinal_encoding(table):
    onehot = table(MIXED, encode="onehot")
    assert onehot.feature_names == [
        "size", "colour=blue", "colour=red", "shape=", "shape=round", "shape=square",
    ]  # fmt: skip
    np.testing.assert_array_equal(onehot.data[:, 1:].sum(axis=1), 2)
    ordinal = table(MIXED, encode="ordinal")
    np.testing.assert_array_equal(ordinal.data, [[1.5, 1, 1], [2, 0, 2], [3, 1, 0]])


def test_parquet_columns_of_every_simple_kind(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    columns = {
        "i": pa.array([1, None, 3]),
        "b": pa.array([True, False, True]),
        "f": pa.array([0.5, 1.5, 2.5], pa.float32()),
        "y": pa.array(["u", "v", "u"]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), path)
    found = read(path, target="y")
    np.testing.assert_array_equal(found.data, [[1, 1, 0.5], [np.nan, 0, 1.5], [3, 1, 2.5]])
    assert found.target.tolist() == ["u", "v", "u"]
    pq.write_table(pa.table({**columns, "when": pa.array([1, 2, 3], pa.date32())}), path)
    with pytest.raises(ValueError, match="when"):
        read(path, target="y")
    pq.write_table(pa.table({"big": pa.array([2**60 + 1]), "y": pa.array([1])}), path)
    with pytest.raises(ValueError, match="too large"):
        read(path)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (MIXED, {}, r"colour \(for instance 'red'\), shape .*'onehot'"),
        (MIXED, {"target": "colr"}, "no column 'colr'; did you mean colour"),
        (MIXED, {"target": 9}, "position from 0 to 3, not 9"),
        (MIXED, {"encode": "hash"}, "onehot, ordinal, not 'hash'"),
        ("a;b;y\n1;2;0\n", {"delimiter": ","}, "pass `delimiter=';'`"),
        ("a y\n1 0\n", {}, "only one column"),
        ("a,y\n1,0\n2\n", {}, "line 3: 1 cells, but the file has 2"),
        ("a,y\n1,0\n2,\n", {}, "no label .*row 2"),
        (b"a,y\n\xe9,1\n", {}, "encoding='latin-1'"),
        (b"a\x00,y\n1,1\n", {}, "null character: .*, or not utf-8 text.*'utf-16'"),
        (b"a,y\n1\x00,1\n", {}, "null character: .*, or not utf-8 text.*'utf-16'"),
        ("a,y\n1,0\n", {"encoding": "utf-9"}, "no encoding named"),
        ("a,y\n1,0\n", {"delimiter": ",,"}, "one character"),
        ("y\n0\n", {}, "only one column"),
        ("a,y\n1_000,0\n", {}, "a .for instance '1_000'"),
        ("a,y\n1e400,0\n", {}, "a .for instance '1e400'"),
    ],
)
def test_broken_csv_is_refused_plainly(table, text, options, words):
    with pytest.raises(ValueError, match=words):
        table(text, **options)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"1 1:2\n1 2:x\n", r"line 2 \('1 2:x'\)"),
        (b"a,b,y\n1,2,0\n", r"line 1 \('a,b,y'\)"),
        (b"# nothing\n", "no samples"),
        (b"1\n2\n", "no samples with features"),
        (b"1 2:1 1:1\n", "not svmlight"),
        (b"1 50000000:1\n", "is sparse: it has 1 of the 50,000,000 values"),
    ],
)
def test_broken_svmlight_is_refused_plainly(table, content, words):
    with pytest.raises(ValueError, match=words):
        table(content, "t.svm")


def test_broken_packed_and_parquet_files(tmp_path, table):
    packed = gzip.compress(b"1 1:2\n" * 100)
    for name, content in {
        "t.svm.gz": packed[:-9],
        "u.svm.bz2": bz2.compress(b"1 1:2\n" * 100)[:-5],
        "v.svm.bz2": packed,
        "w.svm.gz": b"1 1:2\n",
        "t.csv.gz": b"a,y\n1,0\n",
        "t.csv.bz2": b"a,y\n1,0\n",
    }.items():
        with pytest.raises(ValueError, match="cannot be decompressed"):
            table(content, name)
    write(tmp_path / "t.parquet", np.ones((50, 2)), np.arange(50))
    whole = (tmp_path / "t.parquet").read_bytes()
    for content in (whole[:-20], b"a,y\n1,0\n"):
        with pytest.raises(ValueError, match="not a Parquet file, or is truncated"):
            table(content, "t.parquet")


def test_missing_files_and_folders_are_named(tmp_path):
    (tmp_path / "mine.csv").write_text("a,y\n1,0\n")
    with pytest.raises(FileNotFoundError, match=r"no file .*min\.csv; did you mean mine\.csv"):
        read(tmp_path / "min.csv")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nowhere" / "mine.csv")
    with pytest.raises(IsADirectoryError):
        read(tmp_path, format="csv")
    with pytest.raises(ValueError, match=r"suffix '\.xlsx'.*\.csv.*`format`"):
        read(tmp_path / "mine.xlsx")
    with pytest.raises(ValueError, match="svmlight, csv, parquet, libopf, opfython, not 'xls'"):
        read(tmp_path / "mine.csv", format="xls")
    with pytest.raises(ValueError, match="`target='y'` does not apply to the format svmlight"):
        read(tmp_path / "mine.svm", target="y")


def test_the_format_can_be_named_for_every_suffix(tmp_path):
    for name in set(FORMATS) - {"opfython"}:
        path = tmp_path / f"{name}.xyz"
        write(path, [[1.0, 2.0], [3.0, 4.0]], [1, 2], format=name)
        assert read(path, format=name).data.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("suffix", "X", "y", "options", "error", "words"),
    [
        ("svm", [[1.0]], ["a"], {}, ValueError, "labels are numbers"),
        ("svm", [[1.0]], [2**60 + 1], {}, ValueError, "float64"),
        ("json", [[1.0]], [1], {}, ValueError, "read but not written"),
        ("dat", [[1.0], [2.0], [3.0]], [-1, 0, 1], {}, ValueError, "count from 1, with 0 for"),
        ("dat", [[1.0]], [2**31], {}, ValueError, "32-bit"),
        ("dat", [[1e39]], [1], {}, ValueError, "single precision"),
        ("dat", [[1.0]], [1], {"ids": [2**40]}, ValueError, "32-bit"),
        ("csv", [[1.0]], [1, 2], {}, ValueError, "inconsistent numbers of samples"),
        ("csv", [[1.0]], [1], {"feature_names": ["a", "b"]}, ValueError, "2 feature_names"),
        ("csv", [[1.0]], [1], {"feature_names": ["target"]}, ValueError, "several columns"),
        ("csv", [[1.0]], [1], {"feature_names": ["1"], "target_name": "2"}, ValueError, "letter"),
        ("csv", [[1.0]], ["NA"], {}, ValueError, "'NA' would not be read back"),
        ("csv", [[1.0]], [np.nan], {}, ValueError, "NaN"),
        ("csv", [[1.0], [2.0]], np.array([1, "a"], object), {}, TypeError, "several types"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_lost(
    tmp_path, suffix, X, y, options, error, words
):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(b"before")
    with pytest.raises(error, match=words):
        write(path, X, y, **options)
    assert path.read_bytes() == b"before"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a;b;y\n1,5;2,5;no\n3;4;yes\n", ["a", "b", "y"]),
        ("height, m;y\n1,5;no\n3,25;yes\n", ["height, m", "y"]),
        ("a\tb\ty\n1\t2\tno, never\n", ["a", "b", "y"]),
        ("a|b|y\n1|2|no\n", ["a", "b", "y"]),
        ('"a;b;c",y\n1,"k;k;k"\n', ["a;b;c", "y"]),
        (",a,y\n0,1,no\n1,2,yes\n", ["index", "a", "y"]),
        ("a;y;\n1;no;\n2;yes;\n", ["a", "y", "column 3"]),
    ],
)
def test_delimiters_are_told_apart_and_every_column_has_a_name(tmp_path, text, names):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert open_table(path).names == names


def test_indexes_and_lists_in_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "list": [[1], [2], None]}, index=[4, 5, 9])
    frame.to_parquet(path)
    table = open_table(path)
    assert table.unnamed == ("__index_level_0__",)
    problems = {column.name: column.problem for column in table.columns()}
    assert "'list' holds lists or records, such as '[1]'" in problems["list"]
    assert not problems["x"]
    frame.rename_axis("name").to_parquet(path)
    assert open_table(path).unnamed == ()
    assert open_table(path).text()["name"].tolist() == ["4", "5", "9"]


def test_thousands_of_columns(tmp_path):
    """Where the time grows with the square of their number, this takes a minute."""
    names = [f"x{j}" for j in range(5_000)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([",".join(names), *[",".join([cell] * len(names)) for cell in "1a"]]))
    text = open_table(path).text()
    assert text["x7"].tolist() == ["1", "a"]
    model = SimpleNamespace(feature_names_in_=names[::-1])
    assert list(align(model, text.assign(id=0), extra="ignore")) == names[::-1]


@pytest.mark.parametrize(
    ("cells", "looks_like"),
    [
        (["1,5", "2", "13,25"], "numbers with a decimal comma"),
        (["1,200", "15,000", "7"], "numbers with thousands separators"),
        (["$1,200.00", "R$ 3", "12,50 €", "1.200,50"], "amounts"),
        (["45%", "3.5 %"], "percentages"),
        (["2024-05-01", "2024-05-01T12:30:00Z"], "dates or times"),
        (["3/4/2021", "31/12/2020"], "dates or times"),
        (["3 Jan 2020", "12 Mar 2021"], "dates or times"),
        (["Mar 2021"], "dates or times"),
        (["12:30", "9:05"], "dates or times"),
        (["2024-05-01", "yesterday"], ""),
        (["A1", "B2", "60-69", "1st", "12 apples", "10.0.0.1"], ""),
        (["1.5", "2"], ""),
    ],
)  # fmt: skip
def test_text_that_is_a_number_or_a_date_in_disguise(cells, looks_like):
    assert (
        kind_of(pytest.importorskip("pandas").Series(cells, dtype=object)).looks_like == looks_like
    )
