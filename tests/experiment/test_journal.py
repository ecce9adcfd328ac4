"""The journal loses nothing that was finished, mixes nothing, and survives being killed."""

import json
import os
import subprocess
import sys

import pytest

from popf.experiment.journal import Journal, JournalError

SETTINGS = {
    "seed": 0,
    "train_size": 0.25,
    "versions": {},
    "datasets": {"a": {"n": 1}},
    "methods": {},
}


def record(run, **more):
    return {"dataset": "a", "form": "raw", "run": run, "method": "OPF", "accuracy": run / 7, **more}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def reopened(path, settings=SETTINGS, say=print):
    with Journal(path, settings, say) as journal:
        return journal


def test_what_was_added_is_there_again(path):
    with Journal(path, SETTINGS) as journal:
        journal.add([record(0), record(1)])
        journal.add([record(2)])
    again = reopened(path)
    assert list(again.records.values()) == [record(0), record(1), record(2)]
    assert again.has(("a", "raw", 2, "OPF"))
    assert not again.has(("a", "raw", 3, "OPF"))


def test_every_record_is_on_the_disk_when_add_returns(path):
    with Journal(path, SETTINGS) as journal:
        for run in range(3):
            journal.add([record(run)])
            assert len(path.read_text().splitlines()) == run + 2


def test_a_journal_in_memory_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Journal(None, SETTINGS) as journal:
        journal.add([record(0)])
        journal.refresh()
        assert len(journal.records) == 1
    assert not list(tmp_path.iterdir())


def test_wherever_the_file_is_cut_off_whole_lines_are_kept(path):
    with Journal(path, SETTINGS) as journal:
        journal.add([record(0), record(1)])
    whole = path.read_bytes()
    near_ends = [end for end, sign in enumerate(whole) if sign == 10]
    cuts = {0, 1, *range(30, len(whole), 41), *(end + k for end in near_ends for k in (-1, 0, 1))}
    for length in sorted(cuts - {len(whole)}):
        path.write_bytes(whole[:length])
        said = []
        again = reopened(path, say=said.append)
        n_lines = whole[:length].count(b"\n")
        assert len(again.records) == max(n_lines - 1, 0)
        cut = length > 0 and whole[length - 1 : length] != b"\n"
        assert len(said) == cut
        assert not cut or "cut off" in said[0]
        # The repaired file can be gone on with.
        with Journal(path, SETTINGS) as journal:
            journal.add([record(0), record(1)])
        assert path.read_bytes() == whole


def test_a_damaged_line_in_the_middle_is_passed_over_and_named(path):
    with Journal(path, SETTINGS) as journal:
        journal.add([record(0), record(1)])
    lines = path.read_text().splitlines()
    lines[1] = lines[1][:20] + "\x00" + lines[1][25:]
    path.write_text("\n".join(lines) + "\n")
    said = []
    again = reopened(path, say=said.append)
    assert list(again.records.values()) == [record(1)]
    assert said == [f"{path}: line 2 is damaged and is skipped; its run will be done again."]


@pytest.mark.parametrize("text", ["hello\n", "{}\n", '{"dataset": "a"}\n', "[1]\n", "\n"])
def test_another_file_is_refused_and_left_alone(path, text):
    path.write_text(text)
    with pytest.raises(JournalError, match="is not a journal of popf"):
        Journal(path, SETTINGS)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seed": 1}, "`seed` was 0, now 1"),
        ({"train_size": 0.5}, "`train_size` was 0.25, now 0.5"),
        ({"versions": {"numpy": "9"}}, "version of numpy was 1, now 9"),
        ({"methods": {"OPF": "OPFClassifier(metric='x')"}}, "method OPF was OPFClassifier()"),
        ({"datasets": {"a": {"n": 2}}}, "dataset a has changed (n 1 to 2)"),
    ],
)
def test_other_settings_are_refused_and_named(path, changed, words):
    old = {**SETTINGS, "versions": {"numpy": "1"}, "methods": {"OPF": "OPFClassifier()"}}
    with Journal(path, old) as journal:
        journal.add([record(0)])
    before = path.read_bytes()
    with pytest.raises(JournalError) as refusal:
        Journal(path, {**old, **changed})
    assert words in str(refusal.value)
    assert "never mixed" in str(refusal.value)
    assert path.read_bytes() == before


def test_more_datasets_and_methods_extend_a_journal(path):
    with Journal(path, SETTINGS) as journal:
        journal.add([record(0)])
    more = {**SETTINGS, "datasets": {"b": {"n": 5}}, "methods": {"mine": "Mine()"}}
    assert len(reopened(path, more).records) == 1
    # What it was extended by counts from now on.
    with pytest.raises(JournalError, match="method mine was Mine"):
        Journal(path, {**more, "methods": {"mine": "Mine(other=1)"}})
    n_lines = len(path.read_text().splitlines())
    reopened(path, SETTINGS)
    assert len(path.read_text().splitlines()) == n_lines


def test_a_run_is_written_once_unless_it_failed(path):
    with Journal(path, SETTINGS) as journal:
        journal.add([record(0, failed="MemoryError")])
        assert not journal.has(("a", "raw", 0, "OPF"))
        journal.add([record(0)])
        journal.add([record(0, accuracy=0.9)])
    assert reopened(path).records["a", "raw", 0, "OPF"] == record(0)
    assert len(path.read_text().splitlines()) == 3


def test_numbers_that_are_none_become_null(path):
    with Journal(path, SETTINGS) as journal:
        journal.add([record(0, log_loss=float("nan"), curve=[0.5, float("inf")])])
    stored = json.loads(path.read_text().splitlines()[1])
    assert stored["log_loss"] is None
    assert stored["curve"] == [0.5, None]


def test_two_journals_on_one_file_see_each_other(path):
    with Journal(path, SETTINGS) as one, Journal(path, SETTINGS) as other:
        one.add([record(0)])
        other.refresh()
        assert other.has(("a", "raw", 0, "OPF"))
        other.add([record(0), record(1)])
        one.refresh()
        assert len(one.records) == 2
    assert len(path.read_text().splitlines()) == 3


def test_a_full_disk_leaves_no_half_line(path, monkeypatch):
    write = os.write

    def half(descriptor, text):
        write(descriptor, text[: len(text) // 2])
        raise OSError(28, "No space left on device")

    with Journal(path, SETTINGS) as journal:
        journal.add([record(0)])
        before = path.read_bytes()
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(OSError, match="No space left"):
            journal.add([record(1)])
        monkeypatch.undo()
        assert path.read_bytes() == before
        journal.add([record(1)])
    assert len(reopened(path).records) == 2


WRITER = """
import sys
from popf.experiment.journal import Journal
settings = {"seed": 0, "datasets": {}, "methods": {}}
with Journal(sys.argv[1], settings) as journal:
    for run in range(30):
        for method in (sys.argv[2], "shared"):
            journal.add([{"dataset": "a", "form": "raw", "run": run, "method": method, "text": "x" * 3000}])
"""


def test_processes_that_write_at_once_corrupt_nothing(path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("one", "two")
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    said = []
    again = reopened(path, {"seed": 0, "datasets": {}, "methods": {}}, said.append)
    assert not said
    assert len(again.records) == 90
    assert len(path.read_text().splitlines()) == 91  # what both had was written once
