"""What every command leaves behind when the disk, the user or a library fails it."""

import errno
import os
import resource
import signal
import subprocess
import sys

import pytest

from popf import files as atomic
from popf.__main__ import main
from popf.table_models import TableModel
from table_commands import QUICK, commands, pd, printed, refused
from table_commands import consumer_months as rows


def full(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "way", ["fit", "predict", "rank", "report", "monitor", "convert", "convert to numbers"]
)
def test_a_full_disk_leaves_what_was_there(months, tmp_path, capfd, monkeypatch, way):
    words = commands(months, months / "good.csv", tmp_path)[way]
    target = next(word for word in words if hasattr(word, "parent") and word.parent == tmp_path)
    target.write_text("old")
    monkeypatch.setattr(atomic.os, "fsync", full)
    said = refused(capfd, *words, status=1)
    assert "the disk is full" in said
    assert str(target) in said
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == [target.name]


def test_a_file_that_may_not_grow(months, tmp_path, capfd):
    """The system refuses to write more than some bytes, in the middle of the output."""
    pd.concat([rows()] * 200).to_csv(tmp_path / "t.csv", index=False)
    words = ["predict", months / "model.popf", tmp_path / "t.csv", "-o", tmp_path / "o.csv"]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        said = refused(capfd, *words, "--chunk-rows", 500, status=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "was not written" in said
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full on this system")
def test_a_full_disk_behind_standard_output_is_no_bad_input(months, capfd, monkeypatch):
    with open("/dev/full", "w") as nowhere, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", nowhere)
        assert main(["predict", str(months / "model.popf"), str(months / "good.csv")]) == 1
    assert "no space left on device" in capfd.readouterr().err
    # At its end, a process tries to write once more, if it may keep something back.
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    command = f"{sys.executable} -m popf --help > /dev/full"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, timeout=300)
    assert (done.returncode, done.stderr) == (1, b"popf: no space left on device.\n")


def test_control_characters_are_shown_not_obeyed(months, tmp_path, capfd):
    table = rows()
    table["stolen"] = table["stolen"].replace("yes", "\x1b[31myes\x1b[0m")
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["fit", tmp_path / "t.csv", "--target", "stolen", "--drop", "month", *QUICK]
    fitted = printed(capfd, *words, "-o", tmp_path / "m.popf")
    evaluated = printed(capfd, "evaluate", tmp_path / "m.popf", tmp_path / "t.csv")
    said = refused(capfd, "evaluate", tmp_path / "m.popf", months / "good.csv")
    assert "\\x1b[31myes" in evaluated.out
    assert "\x1b" not in fitted.out + fitted.err + evaluated.out + said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_half_written(months, tmp_path, capfd, monkeypatch, how):
    (tmp_path / "o.csv").write_text("old")
    score, scored = TableModel.score, []

    def signalled(*arguments):
        scored.append(score(*arguments))
        if len(scored) == 3:  # two pieces are written
            assert len(os.listdir(tmp_path)) == 2
            os.kill(os.getpid(), how)
        return scored[-1]

    monkeypatch.setattr(TableModel, "score", signalled)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    words = ["predict", months / "model.popf", months / "good.csv", "-o", tmp_path / "o.csv"]
    try:
        status = main([*map(str, words), "--chunk-rows", "1"])
    except SystemExit as ended:
        status = ended.code
    assert status == {signal.SIGINT: 130, signal.SIGTERM: 143}[how]
    assert "Traceback" not in capfd.readouterr().err
    assert (tmp_path / "o.csv").read_text() == "old"
    assert os.listdir(tmp_path) == ["o.csv"]


def test_a_traceback_only_with_debug(tmp_path, capfd):
    assert main(["info", str(tmp_path / "absent.popf"), "--debug"]) == 2
    assert "Traceback" in capfd.readouterr().err
    assert "absent.popf" in refused(capfd, "info", tmp_path / "absent.popf")


def test_a_reader_that_leaves_early(months, capfd, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:  # at the end, it writes what is left, which must not fail
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["predict", str(months / "model.popf"), str(months / "good.csv")]) == 1
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "way", ["fit", "predict", "rank", "evaluate", "explain", "report", "monitor", "convert"]
)
def test_without_pandas_a_line_says_how_to_get_it(months, tmp_path, capfd, monkeypatch, way):
    monkeypatch.setitem(sys.modules, "pandas", None)
    words = commands(months, months / "good.csv", tmp_path)[way]
    said = refused(capfd, *words, status=1)
    assert 'pip install "popf[pandas]"' in said
    assert os.listdir(tmp_path) == []
