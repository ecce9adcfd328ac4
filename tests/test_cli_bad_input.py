"""What every command does with input it cannot use: one line, the right status, nothing half written."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import popf
from popf.__main__ import main
from popf.io import atomic

pd = pytest.importorskip("pandas", reason="tables need popf[cli]")
pytest.importorskip("typer", reason="the command line needs popf[cli]")

NAMES = ["consumer", "month", "demand", "load", "region", "stolen"]


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    stolen = np.arange(n) % 2 == 1
    demand = (rng.normal(size=n) + 3.0 * stolen).round(4)
    return pd.DataFrame(
        {
            "consumer": [f"C{i // 4:03d}" for i in range(n)],
            "month": np.arange(n) % 4,
            "demand": demand,
            "load": rng.normal(size=n).round(4),
            "region": np.where(rng.random(n) < 0.5, "north", "south"),
            "stolen": np.where(stolen, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    rows().to_csv(folder / "good.csv", index=False)
    words = [
        "fit",
        folder / "good.csv",
        "--target",
        "stolen",
        "--id",
        "consumer",
        "--drop",
        "month",
    ]
    assert main([*map(str, words), "-o", str(folder / "model.popf"), "--n-jobs", "1"]) == 0
    return folder


def commands(place, data, out):
    """Every command that reads a table, with this one."""
    model = place / "model.popf"
    return {
        "fit": ["fit", data, "--target", "stolen", "--id", "consumer", "-o", out / "m.popf"],
        "predict": ["predict", model, data, "-o", out / "o.csv"],
        "evaluate": ["evaluate", model, data],
        "explain": ["explain", model, data, "--row", "1"],
        "monitor": [
            *("monitor", model, data, "--id", "consumer", "--time", "month"),
            *("-o", out / "r.csv"),
        ],
        "report": ["report", model, data, "-o", out / "p.html"],
        "convert": ["convert", data, out / "c.parquet"],
        "convert to numbers": ["convert", data, out / "c.dat", "--encode", "ordinal"],
    }


WAYS = list(commands(Path(), Path(), Path()))
good = rows().to_csv(index=False)
BAD = {
    "missing": (None, "there is no file"),
    "empty": (b"", "is empty"),
    "blank": (b"\n \n\n", "is empty"),
    "names only": (",".join(NAMES).encode() + b"\n", "no row"),
    "encoding": (good.replace("north", "Zürich").encode("latin-1"), "--encoding latin-1"),
    "utf-16": (good.encode("utf-16"), "--encoding"),
    "delimiter": (good.replace(",", ";").encode(), "--delimiter ';'"),
    "duplicate columns": (good.replace("load", "demand", 1).encode(), "demand"),
    "unnamed column": (good.replace("load", "", 1).encode(), "column 4 has no name"),
    "numbers for names": (b"1,2,3\n4,5,6\n", "put a line with the names first"),
    "cut short": (good[: len(good) // 2].encode(), "cut short"),
    "long row": (good.replace("north,no\n", "north,no,1\n", 1).encode(), "delimiter"),
    "open quote": (good.replace("north", '"north', 1).encode(), "quote"),
    "a folder": ("folder", "is a folder"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", BAD)
def test_bad_tables(place, tmp_path, capfd, what, way):
    content, expected = BAD[what]
    data = tmp_path / "data.csv"
    if content == "folder":
        data.mkdir()
    elif content is not None:
        data.write_bytes(content)
    out = tmp_path / "out"
    out.mkdir()
    words = commands(place, data, out)[way]
    capfd.readouterr()
    assert main(list(map(str, words))) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    assert said.err.startswith("popf: ")
    assert expected in said.err, said.err
    assert "data.csv" in said.err
    assert list(out.iterdir()) == []


def refused(capfd, *words, status=2):
    capfd.readouterr()
    assert main(list(map(str, words))) == status
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    return said.err


@pytest.mark.parametrize("way", ["fit", "predict", "evaluate", "explain", "monitor"])
def test_cells_that_are_no_numbers_or_nothing(place, tmp_path, capfd, way):
    table = rows().astype({"demand": object})
    for cell, expected in (("oops", "'oops'"), ("", "'demand' (1)"), ("inf", "infinity")):
        table.loc[0, "demand"] = cell
        table.to_csv(tmp_path / "data.csv", index=False)
        said = refused(capfd, *commands(place, tmp_path / "data.csv", tmp_path)[way])
        assert expected in said
        assert "'demand'" in said
        assert "row 1" in said
    assert os.listdir(tmp_path) == ["data.csv"]


def test_a_cell_far_down_is_named_by_its_row(place, tmp_path, capfd):
    table = rows(400).astype({"load": object})
    table.loc[350, "load"] = "bad"
    table.to_csv(tmp_path / "data.csv", index=False)
    words = ("predict", place / "model.popf", tmp_path / "data.csv", "-o", tmp_path / "o.csv")
    said = refused(capfd, *words, "--chunk-rows", 100)
    assert "row 351: column 'load' must hold numbers, not 'bad'" in said
    assert not (tmp_path / "o.csv").exists()


def test_a_target_with_one_class(tmp_path, capfd):
    table = rows()
    table[table["stolen"] == "no"].to_csv(tmp_path / "one.csv", index=False)
    words = ("fit", tmp_path / "one.csv", "--target", "stolen", "-o", tmp_path / "m.popf")
    assert "one class only, no" in refused(capfd, *words)
    assert not (tmp_path / "m.popf").exists()


def test_a_target_that_is_no_class(tmp_path, capfd):
    rows(200).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "demand", "-o", tmp_path / "m.popf")
    assert "it is no class" in refused(capfd, *words)


def test_a_target_with_gaps(tmp_path, capfd):
    table = rows()
    table.loc[4, "stolen"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "stolen", "-o", tmp_path / "m.popf")
    assert "the first is row 5" in refused(capfd, *words)


@pytest.mark.parametrize("way", ["evaluate", "report", "monitor"])
def test_a_label_never_seen(place, tmp_path, capfd, way):
    table = rows()
    table.loc[6, "stolen"] = "perhaps"
    table.to_csv(tmp_path / "t.csv", index=False)
    words = [*commands(place, tmp_path / "t.csv", tmp_path)[way]]
    words += ["--truth", "stolen"] if way == "monitor" else []
    said = refused(capfd, *words)
    assert "'perhaps' (row 7), never seen in training; the model knows no, yes" in said
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("way", ["predict", "evaluate", "explain", "report", "monitor", "info"])
def test_files_that_are_no_models(place, tmp_path, capfd, way):
    words = commands(place, place / "good.csv", tmp_path).get(way, ["info", "?"])
    damaged = bytearray((place / "model.popf").read_bytes())
    damaged[len(damaged) // 2] ^= 255
    for name, content, expected in (
        ("absent.popf", None, "there is no file"),
        ("empty.popf", b"", "is empty"),
        ("folder.popf", "folder", "is a folder"),
        ("csv.popf", good.encode(), "not a popf model"),
        ("short.popf", bytes(damaged[:200]), "short.popf"),
        ("damaged.popf", bytes(damaged), "damaged.popf"),
    ):
        model = tmp_path / name
        if content == "folder":
            model.mkdir()
        elif content is not None:
            model.write_bytes(content)
        if way == "info" and name == "damaged.popf":
            continue  # only the header is read
        assert expected in refused(capfd, words[0], model, *words[2:])
    assert not {"o.csv", "r.csv", "p.html"} & set(os.listdir(tmp_path))


def test_columns_that_are_missing(place, tmp_path, capfd):
    rows().rename(columns={"load": "lod"}).to_csv(tmp_path / "t.csv", index=False)
    words = ("predict", place / "model.popf", tmp_path / "t.csv", "-o", tmp_path / "o.csv")
    assert "Is 'lod' meant for 'load'?" in refused(capfd, *words)
    base = ("fit", tmp_path / "t.csv", "-o", tmp_path / "m.popf", "--target")
    assert "did you mean stolen?" in refused(capfd, *base, "stollen")
    assert "--id" in refused(capfd, *base, "stolen", "--id", "nobody")


def test_places_that_cannot_be_written(place, tmp_path, capfd):
    data, model = place / "good.csv", place / "model.popf"
    nowhere = tmp_path / "nowhere" / "file.csv"
    assert "make it first" in refused(capfd, "predict", model, data, "-o", nowhere)
    assert "is a folder" in refused(capfd, "predict", model, data, "-o", tmp_path)
    before = data.read_bytes()
    assert "replace an input" in refused(capfd, "predict", model, data, "-o", data)
    assert "replace an input" in refused(capfd, "fit", data, "--target", "stolen", "-o", data)
    assert "replace an input" in refused(capfd, "convert", data, data)
    assert "suffix" in refused(capfd, "predict", model, data, "-o", tmp_path / "o.xlsx")
    for way in ("fit", "predict", "report", "monitor", "convert", "convert to numbers"):
        words = commands(place, data, data)[way]  # below a file
        assert "good.csv is a file, not a folder" in refused(capfd, *words)
    words = commands(place, data, tmp_path)
    said = refused(capfd, *words["monitor"], "--plot", tmp_path / "r.gif")
    assert "--plot: the suffix of" in said
    assert ".png, .svg or .pdf" in said
    assert "must be .csv" in refused(capfd, *words["monitor"][:-1], tmp_path / "r.txt")
    assert ".html or .htm" in refused(capfd, *words["report"][:-1], tmp_path / "p.csv")
    assert os.listdir(tmp_path) == []
    assert data.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no null device")
@pytest.mark.parametrize("way", ["fit", "predict", "report", "monitor"])
def test_a_device_is_no_place_for_a_file(place, capfd, way):
    words = commands(place, place / "good.csv", Path())[way]
    assert "is a device" in refused(capfd, *words[:-1], "/dev/null")
    with pytest.raises(ValueError, match="device"), atomic.replacing("/dev/null"):
        pass
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("way", ["fit", "predict", "report", "monitor", "convert"])
def test_a_folder_without_permission_is_found_before_the_work(place, tmp_path, capfd, way):
    tmp_path.chmod(0o500)
    try:
        words = commands(place, place / "never-read.csv", tmp_path)[way]
        assert "cannot write to the output folder" in refused(capfd, *words)
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_takes_no_file_is_found_before_the_work(place, tmp_path, capfd, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(atomic.tempfile, "TemporaryFile", refuse)
    for way in ("fit", "predict", "report", "monitor", "convert", "convert to numbers"):
        words = commands(place, tmp_path / "never-read.csv", tmp_path)[way]
        said = refused(capfd, *words)
        assert said.startswith(
            f"popf: cannot write to the output folder {tmp_path} (permission den"
        )


@pytest.mark.parametrize(
    ("way", "words", "expected"),
    [
        ("fit", ["--threshold", "2"], "--threshold must lie between 0 and 1, not at 2"),
        ("fit", ["--cost-fp", "1"], "--cost-fp and --cost-fn belong together"),
        ("fit", ["--cost-fp", "0", "--cost-fn", "1"], "--cost-fp must be a positive number"),
        ("fit", ["--method", "hard"], "--method must be one of soft, paper, not 'hard'"),
        ("fit", ["--linear-map", "flat"], "--linear-map must be one of none, auto"),
        ("fit", ["--metric", "euclid"], "--metric: there is no metric 'euclid'; did you mean"),
        ("fit", ["--metric", "precomputed"], "--metric precomputed is for distances"),
        ("fit", ["--delimiter", ""], "--delimiter must be one character"),
        ("fit", ["--decimal", "x"], "--decimal must be"),
        ("fit", ["--encoding", "utf-16"], "--encoding utf-8"),
        ("predict", ["--threshold", "nan"], "--threshold must lie between 0 and 1"),
        ("predict", ["--id", "consumr"], "--id: {data} has no column 'consumr'; did you mean consumer"),
        ("evaluate", ["--threshold", "1"], "--threshold must lie between 0 and 1"),
        ("evaluate", ["--target", "stole"], "'stole' with labels; did you mean stolen"),
        ("evaluate", ["--target", "load"], "--target load is a feature of the model"),
        ("report", ["--threshold", "2"], "--threshold 2.0 must lie between 0 and 1"),
        ("report", ["--cost-fp", "1"], "give both --cost-fp and --cost-fn"),
        ("report", ["--top", "0"], "--top 0 must be an integer from 1"),
        ("explain", ["--where", "consumer=C000"], "either --row or --where"),
        ("monitor", ["--rise", "3"], "--rise must lie between 0 and 1, not at 3"),
        ("monitor", ["--time", "mont"], "--time: {data} has no column 'mont'; did you mean month"),
        ("monitor", ["--truth", "stole"], "--truth: {data} has no column 'stole'"),
        ("convert to numbers", ["--encode", "odd"], "--encode must be one of onehot, ordinal"),
        ("convert to numbers", ["--target", "stole"], "--target: {data} has no column 'stole'"),
        *((way, ["--n-jobs", "0"], "--n-jobs must be at least 1, or -1")
          for way in ("fit", "predict", "evaluate", "report", "monitor")),
        *((way, ["--seed", "-1"], "'--seed'") for way in ("fit", "evaluate", "report", "monitor")),
    ],
)  # fmt: skip
def test_errors_name_the_option_as_typed(place, tmp_path, capfd, way, words, expected):
    data = place / "good.csv"
    said = refused(capfd, *commands(place, data, tmp_path)[way], *words)
    assert expected.format(data=data) in said
    assert os.listdir(tmp_path) == []


def test_a_file_that_may_not_be_read_is_named_without_a_number(place, capfd, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(errno.EACCES, "Permission denied", "model.popf")

    monkeypatch.setattr("popf.tables.model.describe", refuse)
    said = refused(capfd, "predict", place / "model.popf", place / "good.csv")
    assert said == "popf: model.popf: permission denied.\n"


def test_usage_errors_are_one_line(capfd, place):
    assert "--target" in refused(capfd, "fit", place / "good.csv", "-o", "m.popf")
    assert "No such option" in refused(capfd, "predict", "a", "b", "--dance")
    assert "dance" in refused(capfd, "dance")
    assert "--missing must be one of" in refused(
        capfd, "fit", place / "good.csv", "--target", "stolen", "-o", "m", "--missing", "guess"
    )


# ---------------------------------------------------------------- disks and interrupts


def full(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "way", ["fit", "predict", "report", "monitor", "convert", "convert to numbers"]
)
def test_a_full_disk_leaves_what_was_there(place, tmp_path, capfd, monkeypatch, way):
    words = commands(place, place / "good.csv", tmp_path)[way]
    target = next(word for word in words if hasattr(word, "parent") and word.parent == tmp_path)
    target.write_text("old")
    monkeypatch.setattr(atomic.os, "fsync", full)
    said = refused(capfd, *words, status=1)
    assert "the disk is full" in said
    assert str(target) in said
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == [target.name]


def run(*words, **options):
    command = [sys.executable, "-m", "popf", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def test_a_file_that_may_not_grow_in_a_real_process(place, tmp_path):
    """The system refuses to write more than some bytes, in the middle of the output."""
    pd.concat([rows()] * 200).to_csv(tmp_path / "t.csv", index=False)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = run(
        *("predict", place / "model.popf", tmp_path / "t.csv", "-o", tmp_path / "o.csv"),
        *("--chunk-rows", 500),
        preexec_fn=limit,
    )
    assert done.returncode == 1
    assert "was not written" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing_half_written(place, tmp_path, how, status):
    pd.concat([rows()] * 2000).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "o.csv").write_text("old")
    words = ["predict", place / "model.popf", tmp_path / "t.csv", "-o", tmp_path / "o.csv"]
    command = [sys.executable, "-m", "popf", *map(str, words), "--chunk-rows", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    started = time.monotonic()
    # The temporary file says that writing has begun.
    while len(os.listdir(tmp_path)) < 3 and time.monotonic() - started < 120:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(how)
    _, said = process.communicate(timeout=120)
    # Where Ctrl-C meets code that was made from a string, CPython itself ends by the signal after all is
    # cleaned up; a shell says 130 then, too.
    assert process.returncode in (status, -how), said
    assert "Traceback" not in said
    assert (tmp_path / "o.csv").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["o.csv", "t.csv"]


def test_a_traceback_only_with_debug(tmp_path, capfd):
    assert main(["info", str(tmp_path / "absent.popf"), "--debug"]) == 2
    assert "Traceback" in capfd.readouterr().err
    assert "absent.popf" in refused(capfd, "info", tmp_path / "absent.popf")


def test_a_reader_that_leaves_early(place):
    reading = (
        f"{sys.executable} -m popf predict {place / 'model.popf'} {place / 'good.csv'} | head -1"
    )
    done = subprocess.run(reading, shell=True, capture_output=True, text=True, timeout=300)
    assert done.stdout == "consumer,probability_no,probability_yes,predicted\n"
    assert "Traceback" not in done.stderr


def test_json_on_failure_prints_nothing_on_standard_output(place, tmp_path):
    done = run("evaluate", place / "model.popf", tmp_path / "absent.csv", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("popf: there is no file")


def test_json_is_all_there_is_on_standard_output(place, capfd):
    assert main(["info", str(place / "model.popf"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["popf_version"] == popf.__version__


@pytest.mark.parametrize(
    "way", ["fit", "predict", "evaluate", "explain", "report", "monitor", "convert"]
)
def test_without_pandas_a_line_says_how_to_get_it(place, tmp_path, capfd, monkeypatch, way):
    monkeypatch.setitem(sys.modules, "pandas", None)
    words = commands(place, place / "good.csv", tmp_path)[way]
    said = refused(capfd, *words, status=1)
    assert 'pip install "popf[cli]"' in said
    assert os.listdir(tmp_path) == []


def test_without_pyarrow_a_line_says_how_to_get_it(place, tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    words = ("predict", place / "model.popf", place / "good.csv", "-o", tmp_path / "o.parquet")
    assert 'pip install "popf[parquet]"' in refused(capfd, *words, status=1)
    assert os.listdir(tmp_path) == []
