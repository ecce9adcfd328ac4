"""Files of LibOPF and opfython."""

import struct

import numpy as np
import pytest

from popf.datasets import read, read_distances, write

PEERS = {
    "libopf.txt": "3 2 2\n10 2 1.5 2.25\n11 1 3 4\n12 0 5 6.125\n",
    "libopf.dat": "3 2 2\n10 2 1.5 2.25\n11 1 3 4\n12 0 5 6.125\n",
    "opfython.txt": "1e1 2e0 1.5 2.25\n1.1e1 1e0 3 4\n\n12 0 5 6.125\n",
    "commas.txt": "10,2,1.5,2.25\n11,1,3,4\n12,0,5,6.125",
    "opfython.csv": "10,2,1.5,2.25\n11,1,3,4\n12,0,5,6.125",
    "opfython.json": (
        '{"data": [{"id": 10, "label": 2, "features": [1.5, 2.25]},'
        '{"id": 11, "label": 1, "features": [3, 4]}, {"id": 12, "label": 0, "features": [5, 6.125]}]}'
    ),
}


@pytest.mark.parametrize("name", PEERS)
def test_text_of_the_peers_is_read(table, name):
    options = {"format": "opfython"} if name.endswith("csv") else {}
    found = table(PEERS[name], name, **options)
    assert found.ids.tolist() == [10, 11, 12]
    assert found.target.tolist() == [2, 1, 0]
    assert found.target.dtype.kind == "i"
    assert found.data.tolist() == [[1.5, 2.25], [3, 4], [5, 6.125]]


def test_text_with_names_is_a_table(table):
    found = table("a,b,y\n1,2,x\n3,4,z\n", "t.txt")
    assert found.format == "csv"
    assert found.feature_names == ["a", "b"]
    assert table("# a comment\n1 1:2\n2 1:3\n", "t.txt").format == "svmlight"


def test_opfython_reads_our_files_and_we_read_what_it_writes(tmp_path):
    converter = pytest.importorskip("opfython.utils.converter")
    write(tmp_path / "a.dat", X := np.array([[1.5, 2.25], [0.1, 4], [5, 6]]), ["b", "a", "b"])
    for suffix, convert in {
        "txt": converter.opf2txt,
        "csv": converter.opf2csv,
        "json": converter.opf2json,
    }.items():
        convert(str(tmp_path / "a.dat"), str(tmp_path / f"a.{suffix}"))
        found = read(tmp_path / f"a.{suffix}", format="opfython")
        np.testing.assert_array_equal(found.data, X.astype(np.float32))
        assert found.target.tolist() == [1, 0, 1]  # it counts labels from 0


def libopf(n=2, k=2, d=1, labels=(1, 2)):
    return struct.pack("<3i", n, k, d) + b"".join(
        struct.pack("<2if", number, label, 0.5) for number, label in enumerate(labels)
    )


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (PEERS["opfython.csv"], "t.csv", "`target=-1` .* `format='opfython'`"),
        (
            "3 2 2\n1 1 1 1\n2 2 2 2\n",
            "t.dat",
            "declares 3 samples of 2 features, but has 2 lines of 4",
        ),
        ("1 2 1\n1 7 1\n", "t.dat", "declares 2 classes, but a sample has label 7"),
        ("0 1 2 3\n1 1 2\n", "t.txt", "line 2: 3 numbers, but the first line has 4"),
        ("0 1 2 3\n1 1 2 x\n", "t.txt", "line 2: could not convert"),
        ("0 1.5 2 3\n1 1 2 3\n", "t.txt", "labels are integers, not 1.5"),
        ('{"data": [{"id": 1, "features": [1]}]}', "t.json", "not an opfython JSON file.*'label'"),
        ('{"data": ' + "[" * 100_000, "t.json", "not an opfython JSON file.*recursion"),
        ("[" * 100_000, "t.json", r"could not convert string to float: .{,70}$"),
        (
            struct.pack("<i4f", 2, 0, 1, 1, 0),
            "t.dat",
            "read it with `popf.datasets.read_distances`",
        ),
        (
            libopf()[:-1],
            "t.dat",
            "is truncated: 2 samples of 1 features take 36 bytes, but it has 35",
        ),
        (libopf() + b"\0", "t.dat", "is too long"),
        (b"\1\0", "t.dat", "the header alone takes 12"),
        (libopf(n=-5), "t.dat", "does not begin with the numbers"),
        (libopf(labels=(1, 7)), "t.dat", "declares 2 classes, but a sample has label 7"),
        (b"@relation iris\n@attribute a real\n", "t.dat", "is text in KEEL's format"),
        (b"1 1:2 2:3\n1 2:2\n", "t.dat", "is text, but not in LibOPF's format"),
    ],
)
def test_broken_files_of_the_peers_are_refused_plainly(table, content, name, words):
    with pytest.raises(ValueError, match=words):
        table(content, name)


def test_distances_of_the_peers_are_read(tmp_path):
    D = np.array([[0, 1.5, 2], [1.5, 0, 0.1], [2, 0.1, 0]], dtype=np.float32)
    (tmp_path / "distances.dat").write_bytes(struct.pack("<i", 3) + D.tobytes())
    np.savetxt(tmp_path / "distances.csv", D, delimiter=",")
    np.savetxt(tmp_path / "distances.txt", D)
    for suffix in ("dat", "csv", "txt"):
        np.testing.assert_array_equal(read_distances(tmp_path / f"distances.{suffix}"), D)
    (tmp_path / "short.dat").write_bytes(struct.pack("<i", 3) + D.tobytes()[:-4])
    with pytest.raises(ValueError, match="3 samples do not take 36 bytes"):
        read_distances(tmp_path / "short.dat")
    np.savetxt(tmp_path / "flat.txt", D[:2])
    with pytest.raises(ValueError, match=r"square matrix, not one of shape \(2, 3\)"):
        read_distances(tmp_path / "flat.txt")
