"""What every command does with input it cannot use: one line, the right status, nothing half written."""

import errno
import os
from pathlib import Path

import pytest

from popf import files as atomic
from table_commands import commands, fitting, refused
from table_commands import consumer_months as rows

WAYS = list(commands(Path(), Path(), Path()))
WRITING = ["fit", "predict", "rank", "report", "monitor", "convert", "convert to numbers"]
good = rows().to_csv(index=False)
BAD = {
    "missing": (None, "there is no file"),
    "empty": (b"", "is empty"),
    "blank": (b"\n \n\n", "is empty"),
    "names only": (",".join(rows()).encode() + b"\n", "no row"),
    "encoding": (good.replace("north", "Zürich").encode("latin-1"), "--encoding latin-1"),
    "null": (good.replace("north", "no\0rth", 1).encode(), "contains a null character"),
    "utf-16": (good.encode("utf-16"), "--encoding"),
    "duplicate columns": (good.replace("load", "demand", 1).encode(), "demand"),
    "numbers for names": (b"1,2,3\n4,5,6\n", "add a first line with the names"),
    "cut short": (good[: len(good) // 2].encode(), "truncated"),
    "long row": (good.replace("north,no\n", "north,no,1\n", 1).encode(), "delimiter"),
    "open quote": (good.replace("north", '"north', 1).encode(), "quote"),
    "a folder": ("folder", "is a folder"),
}


# One reader serves all commands: each meets some bad tables, and some commands meet each.
@pytest.mark.parametrize(
    ("what", "way"),
    [
        (what, way)
        for what in BAD
        for way in WAYS
        if way in ("fit", "predict", "convert") or what in ("missing", "empty", "long row")
    ],
)
def test_bad_tables(months, tmp_path, capfd, what, way):
    content, expected = BAD[what]
    data = tmp_path / "data.csv"
    if content == "folder":
        data.mkdir()
    elif content is not None:
        data.write_bytes(content)
    out = tmp_path / "out"
    out.mkdir()
    said = refused(capfd, *commands(months, data, out)[way])
    assert expected in said
    assert "data.csv" in said
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("way", ["fit", "predict", "rank", "evaluate", "explain", "monitor"])
def test_cells_that_are_no_finite_numbers(months, tmp_path, capfd, way):
    table = rows().astype({"demand": object})
    # Where columns are known to hold numbers, pandas reads it as infinity, or old versions as text.
    large = ["'1e400'"] if way == "fit" else ["above 1.8e308", "'1e400'"]
    for cell, expected in (("oops", ["'oops'"]), ("inf", ["infinity"]), ("1e400", large)):
        table.loc[0, "demand"] = cell
        table.to_csv(tmp_path / "data.csv", index=False)
        said = refused(capfd, *commands(months, tmp_path / "data.csv", tmp_path)[way])
        assert any(each in said for each in expected)
        assert "'demand'" in said
        assert "row 1" in said
    assert os.listdir(tmp_path) == ["data.csv"]


def test_a_cell_far_down_is_named_by_its_row(months, tmp_path, capfd):
    table = rows(400).astype({"load": object})
    table.loc[350, "load"] = "bad"
    table.to_csv(tmp_path / "data.csv", index=False)
    words = ("predict", months / "model.popf", tmp_path / "data.csv", "-o", tmp_path / "o.csv")
    said = refused(capfd, *words, "--chunk-rows", 100)
    assert "row 351: column 'load' must hold numbers, not 'bad'" in said
    assert not (tmp_path / "o.csv").exists()


def test_decimal_commas_without_the_option_are_called_so(months, tmp_path, capfd):
    rows().to_csv(tmp_path / "data.csv", index=False, sep=";", decimal=",")
    words = ("predict", months / "model.popf", tmp_path / "data.csv", "-o", tmp_path / "o.csv")
    assert refused(capfd, *words).endswith("--decimal , reads decimal commas.\n")


@pytest.mark.parametrize(
    ("change", "target", "expected"),
    [
        (lambda table: table[table["stolen"] == "no"], "stolen", "only one class, no"),
        (lambda table: table, "demand", "these are not classes"),
        (lambda table: table.replace({"consumer": "C001"}, None), "consumer", "the first is row 5"),
    ],
    ids=["one class", "numbers", "gaps"],
)
def test_a_target_that_is_none(tmp_path, capfd, change, target, expected):
    change(rows(200)).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", target, "-o", tmp_path / "m.popf")
    assert expected in refused(capfd, *words)
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("way", ["evaluate", "report", "monitor"])
def test_a_label_never_seen(months, tmp_path, capfd, way):
    table = rows()
    table.loc[6, "stolen"] = "perhaps"
    table.to_csv(tmp_path / "t.csv", index=False)
    words = [*commands(months, tmp_path / "t.csv", tmp_path)[way]]
    words += ["--truth", "stolen"] if way == "monitor" else []
    said = refused(capfd, *words)
    assert "'perhaps' (row 7), not seen in training; the classes are no, yes" in said
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("way", ["predict", "evaluate", "explain", "report", "monitor", "info"])
def test_files_that_are_no_models(months, tmp_path, capfd, way):
    words = commands(months, months / "good.csv", tmp_path).get(way, ["info", "?"])
    damaged = bytearray((months / "model.popf").read_bytes())
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


def test_columns_that_are_missing(months, tmp_path, capfd):
    rows().rename(columns={"load": "lod"}).to_csv(tmp_path / "t.csv", index=False)
    words = ("predict", months / "model.popf", tmp_path / "t.csv", "-o", tmp_path / "o.csv")
    assert "missing: 'load'; did you mean lod?" in refused(capfd, *words)
    base = ("fit", tmp_path / "t.csv", "-o", tmp_path / "m.popf", "--target")
    assert "did you mean stolen?" in refused(capfd, *base, "stollen")
    assert "--id" in refused(capfd, *base, "stolen", "--id", "nobody")


def test_places_that_cannot_be_written(months, tmp_path, capfd):
    data, model = months / "good.csv", months / "model.popf"
    nowhere = tmp_path / "nowhere" / "file.csv"
    assert "create it first" in refused(capfd, "predict", model, data, "-o", nowhere)
    assert "is a folder" in refused(capfd, "predict", model, data, "-o", tmp_path)
    before = data.read_bytes()
    for words in (
        ["predict", model, data, "-o", data],
        fitting(data, data),
        ["convert", data, data],
    ):
        assert "replace an input" in refused(capfd, *words)
    for way in ("predict", "rank"):  # found before the table is read
        words = (way, model, tmp_path / "never-read.csv", "-o", tmp_path / "o.xlsx")
        assert "must be .csv, .csv.gz, .tsv or .parquet" in refused(capfd, *words)
    for way in WRITING:
        words = commands(months, data, data)[way]  # below a file
        assert "good.csv is a file, not a folder" in refused(capfd, *words)
    words = commands(months, data, tmp_path)
    said = refused(capfd, *words["monitor"], "--plot", tmp_path / "r.gif")
    assert "--plot: the suffix of" in said
    assert ".png, .svg or .pdf" in said
    assert "must be .csv" in refused(capfd, *words["monitor"][:-1], tmp_path / "r.txt")
    assert ".html or .htm" in refused(capfd, *words["report"][:-1], tmp_path / "p.csv")
    assert os.listdir(tmp_path) == []
    assert data.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no null device")
@pytest.mark.parametrize("way", ["fit", "predict", "report", "monitor"])
def test_a_device_is_no_place_for_a_file(months, capfd, way):
    words = commands(months, months / "good.csv", Path())[way]
    assert "is a device" in refused(capfd, *words[:-1], "/dev/null")
    with pytest.raises(ValueError, match="device"), atomic.replacing("/dev/null"):
        pass
    assert not Path("/dev/null").is_file()


def test_a_folder_that_takes_no_file_is_found_before_the_work(months, tmp_path, capfd, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(atomic.tempfile, "TemporaryFile", refuse)
    for way in WRITING:
        words = commands(months, tmp_path / "never-read.csv", tmp_path)[way]
        said = f"popf: cannot write to the output folder {tmp_path} (permission den"
        assert refused(capfd, *words).startswith(said)


@pytest.mark.parametrize(
    ("way", "words", "expected"),
    [
        ("fit", ["--threshold", "2"], "--threshold must be above 0 and below 1, not 2"),
        ("fit", ["--cost-fp", "1"], "--cost-fp and --cost-fn belong together"),
        ("fit", ["--cost-fp", "0", "--cost-fn", "1"], "--cost-fp is 0.0; it must be"),
        ("fit", ["--threshold", "0.2", "--cost-fp", "1", "--cost-fn", "2"], "both set the threshold"),
        ("fit", ["--positive", "maybe"], "--positive maybe is not a class of the target: use one of no"),
        ("fit", ["--sample-weight", "stolen"], "'stolen' is the target: remove it from other options"),
        ("fit", ["--test-size", "3"], "--test-size must be above 0 and below 1, not 3"),
        ("fit", ["--method", "hard"], "--method must be one of pooled, forest, paper, not 'hard'"),
        (
            "fit",
            ["--method", "paper", "--linear-map", "weights"],
            "--linear-map weights needs --method pooled or --method forest",
        ),
        ("fit", ["--linear-map", "flat"], "--linear-map must be one of auto, none"),
        ("fit", ["--metric", "euclid"], "--metric: there is no metric 'euclid'; did you mean"),
        ("fit", ["--metric", "precomputed"], "--metric precomputed is for distance matrices"),
        ("fit", ["--delimiter", ""], "--delimiter must be one character"),
        ("fit", ["--decimal", "x"], "--decimal must be"),
        ("fit", ["--encoding", "utf-16"], "--encoding utf-8"),
        ("predict", ["--threshold", "nan"], "--threshold must be above 0 and below 1"),
        ("predict", ["--id", "consumr"], "{data}: --id: there is no column 'consumr'; did you mean consumer"),
        ("rank", ["--visit-cost", "3"], "--visit-cost needs --value"),
        ("rank", ["--budget", "two"], "'two'"),
        ("rank", ["--value", "region"], "must hold numbers, not"),
        ("rank", ["--value", "demnd"], "did you mean demand"),
        ("rank", ["-o", "-", "--json"], "--json needs another --output"),
        ("evaluate", ["--target", "stole"], "'stole' with labels; did you mean stolen"),
        ("evaluate", ["--target", "load"], "--target load is a feature of the model"),
        ("report", ["--threshold", "2"], "--threshold must be above 0 and below 1, not 2"),
        ("report", ["--cost-fp", "1"], "--cost-fp and --cost-fn belong together"),
        ("report", ["--id", "stolen"], "--id stolen holds the labels: it cannot be an id as well"),
        ("report", ["--top", "0"], "--top is 0; it must be an integer of at least 1"),
        ("explain", ["--where", "consumer=C000"], "either --row or --where"),
        ("explain", ["--row", "91"], "--row 91 is beyond the end of {data}, which has 40 rows"),
        ("monitor", ["--rise", "3"], "--rise must be above 0 and at most 1, not 3"),
        ("monitor", ["--time", "mont"], "{data}: --time: there is no column 'mont'; did you mean month"),
        ("monitor", ["--truth", "stole"], "{data}: --truth: there is no column 'stole'"),
        ("convert to numbers", ["--encode", "odd"], "--encode must be one of onehot, ordinal, not 'odd'"),
        ("convert to numbers", ["--target", "stole"], "{data}: --target: there is no column 'stole'"),
        *((way, ["--n-jobs", "0"], "--n-jobs must be at least 1, or -1")
          for way in ("fit", "predict", "evaluate", "report", "monitor")),
        *((way, ["--seed", "-1"], "'--seed'") for way in ("fit", "evaluate", "report", "monitor")),
    ],
)  # fmt: skip
def test_errors_name_the_option_as_typed(months, tmp_path, capfd, way, words, expected):
    data = months / "good.csv"
    said = refused(capfd, *commands(months, data, tmp_path)[way], *words)
    assert expected.format(data=data) in said
    assert os.listdir(tmp_path) == []


def test_a_file_that_may_not_be_read_is_named_without_a_number(months, capfd, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(errno.EACCES, "Permission denied", "model.popf")

    monkeypatch.setattr("popf.table_models.model.describe", refuse)
    said = refused(capfd, "predict", months / "model.popf", months / "good.csv")
    assert said == "popf: model.popf: permission denied.\n"


def test_usage_errors_are_one_line(capfd, months):
    assert "--target" in refused(capfd, "fit", months / "good.csv", "-o", "m.popf")
    assert "No such option" in refused(capfd, "predict", "a", "b", "--dance")
    assert "dance" in refused(capfd, "dance")


def test_a_huge_cell_is_not_printed_whole(tmp_path, capfd):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "x" * 100_000 + ",1\ny,2\n")
    assert len(refused(capfd, "convert", path, tmp_path / "out.svm")) < 3000
