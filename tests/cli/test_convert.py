"""``popf convert``: what goes in comes out, in another format."""

import numpy as np
import pytest

from popf import OPFClassifier, save
from popf.datasets import read, write
from table_commands import facts, pd, printed, refused, run


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "name": [f"{i:03d}" for i in range(30)],
            "size": rng.normal(size=30),
            "count": rng.integers(100, size=30),
            "colour": np.where(np.arange(30) % 3, "red", "blue"),
            "label": np.arange(30) % 2,
        }
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    return tmp_path / "a.csv"


def test_csv_to_parquet_and_back_keeps_every_cell_and_every_gap(csv, tmp_path):
    pytest.importorskip("pyarrow")
    gaps = tmp_path / "gaps.csv"
    gaps.write_text("x,n,word\n1.5,1,a\n,,\n2.5,3,c\n")
    for source in (csv, gaps):
        run("convert", source, tmp_path / "a.parquet")
        kept = pd.read_parquet(tmp_path / "a.parquet")
        if source == csv:
            expected = pd.read_csv(csv, dtype={"name": str})  # "007" is a name
            pd.testing.assert_frame_equal(kept, expected, check_dtype=False)
            assert kept["count"].dtype == np.int64
        else:
            assert kept[["x", "n"]].isna().to_numpy().tolist() == [
                [False] * 2,
                [True] * 2,
                [False] * 2,
            ]
        run("convert", tmp_path / "a.parquet", tmp_path / "b.csv")
        assert (tmp_path / "b.csv").read_text() == source.read_text()


def exactly(path):
    """Read numbers to the last bit, as versions of pandas before 3.1 do not by themselves."""
    frame = pd.read_csv(path, dtype=str)
    for name in frame.columns.difference(["name", "colour"]):
        frame[name] = np.array([float(cell) for cell in frame[name]])
    return frame


def test_csv_to_libopf_and_back(csv, tmp_path, capsys):
    out = tmp_path / "a.dat"
    words = ("convert", csv, out, "--target", "label", "--drop", "name", "--encode", "onehot")
    assert "Label 0 (15 rows) means that a sample has no label" in printed(capsys, *words).out
    frame, kept = exactly(csv), read(out)
    assert kept.target.tolist() == frame["label"].tolist()
    np.testing.assert_array_equal(kept.data[:, 0], frame["size"].astype(np.float32))
    np.testing.assert_array_equal(kept.data[:, 2:].argmax(axis=1), frame["colour"] == "red")
    run("convert", out, tmp_path / "b.csv")
    back = exactly(tmp_path / "b.csv")
    np.testing.assert_array_equal(back.to_numpy()[:, :-1], kept.data)


def test_info_tells_what_a_data_file_holds(tmp_path, capsys):
    write(tmp_path / "a.dat", np.ones((5, 3)), [0, 2, 2, 7, 0])
    assert "none: 2, 2: 2, 7: 1" in printed(capsys, "info", tmp_path / "a.dat").out
    (tmp_path / "b.txt").write_text("4 1 0.5 nan\n5 0 1 2\n")
    found = facts(capsys, "info", tmp_path / "b.txt")
    assert (found["format"], found["n_samples"], found["n_features"]) == ("opfython", 2, 2)
    assert (found["labels"], found["label_counts"], found["n_missing"]) == ([0, 1], [1, 1], 1)
    (tmp_path / "c.txt").write_text("size,label\n1,yes\n2,no\n")
    assert list(facts(capsys, "info", tmp_path / "c.txt")["columns"]) == ["size", "label"]
    save(OPFClassifier().fit([[0.0], [1.0]], [0, 1]), tmp_path / "model.opf")  # a name of LibOPF's
    assert "OPFClassifier" in printed(capsys, "info", tmp_path / "model.opf").out


def test_csv_to_svmlight(csv, tmp_path, capsys):
    dropped = ("--drop", "name", "--drop", "colour")
    found = facts(capsys, "convert", csv, tmp_path / "a.svm", "--target", "label", *dropped)
    assert (found["n_rows"], found["n_columns"]) == (30, 3)
    X, y = read(tmp_path / "a.svm", return_X_y=True)
    frame = exactly(csv)
    np.testing.assert_array_equal(X, frame[["size", "count"]].to_numpy())
    assert y.tolist() == frame["label"].tolist()


def test_decimal_commas(tmp_path):
    (tmp_path / "a.csv").write_text("x;label\n1,5;0\n-2,25;1\n")
    options = ("--decimal", ",")
    run("convert", tmp_path / "a.csv", tmp_path / "a.svm", *options)
    assert read(tmp_path / "a.svm").data.ravel().tolist() == [1.5, -2.25]
    run("convert", tmp_path / "a.csv", tmp_path / "b.csv", *options)
    assert (tmp_path / "b.csv").read_text() == "x,label\n1.5,0\n-2.25,1\n"


def test_what_has_no_meaning_is_refused_in_the_words_of_options(csv, tmp_path, capsys):
    run("convert", csv, tmp_path / "c.dat", "--encode", "ordinal")
    for words, expected in (
        ((csv, tmp_path / "a.dat", "--target", "label"), "--encode onehot"),
        ((csv, tmp_path / "a.xlsx"), "is unknown"),
        ((csv, tmp_path / "b.csv", "--target", "label"), "leave them out"),
        ((csv, tmp_path / "b.csv", "--drop", "color"), "did you mean colour"),
        ((tmp_path / "c.dat", tmp_path / "b.csv", "--drop", "x1"), "do not have"),
    ):
        assert expected in refused(capsys, "convert", *words)
    assert not (tmp_path / "b.csv").exists()
