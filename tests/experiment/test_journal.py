"""The journal loses nothing that was finished, mixes nothing, and survives being killed."""

import json
import os
import subprocess
import sys

import pytest

from popf.experiment.study import Journal, JournalError

SETTINGS = {"seed": 0, "versions": {"numpy": "1"}, "datasets": {"a": {"n": 1}}, "methods": {}}


def record(run, **more):
    return {"dataset": "a", "form": "raw", "run": run, "method": "OPF", "accuracy": run / 7, **more}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def filled(path, n_records):
    journal = Journal(path, SETTINGS)
    for run in range(n_records):
        journal.add([record(run)])
    return journal


def test_what_was_added_is_on_the_disk_at_once_and_there_again(path):
    journal = Journal(path, SETTINGS)
    for run in range(3):
        journal.add([record(run)])
        assert len(path.read_text().splitlines()) == run + 2
    again = Journal(path, SETTINGS)
    assert list(again.records.values()) == [record(0), record(1), record(2)]
    assert again.has(("a", "raw", 2, "OPF"))
    assert not again.has(("a", "raw", 3, "OPF"))


def test_wherever_the_file_is_cut_off_whole_lines_are_kept(path):
    filled(path, 2)
    whole = path.read_bytes()
    near_ends = [end for end, sign in enumerate(whole) if sign == 10]
    cuts = {0, 1, *range(30, len(whole), 41), *(end + k for end in near_ends for k in (-1, 0, 1))}
    for length in sorted(cuts - {len(whole)}):
        path.write_bytes(whole[:length])
        said = []
        # At the end of a line only the line break may be missing.
        lines = [line for line in whole[:length].splitlines() if line in whole.splitlines()]
        journal = Journal(path, SETTINGS, said.append)
        assert len(journal.records) == max(len(lines) - 1, 0)
        assert len(said) == (len(lines) < len(whole[:length].splitlines()))
        assert not said or "cut off or damaged" in said[0]
        journal.add([record(0), record(1)])
        assert list(Journal(path, SETTINGS).records.values()) == [record(0), record(1)]


def test_a_damaged_line_in_the_middle_is_passed_over_and_named(path):
    filled(path, 2)
    lines = path.read_text().splitlines()
    lines[1] = lines[1][:20] + "\x00" + lines[1][25:]
    path.write_text("\n".join(lines) + "\n")
    said = []
    assert list(Journal(path, SETTINGS, said.append).records.values()) == [record(1)]
    assert said == [
        f"{path}: ignored lines that are cut off or damaged: 2. Missing runs are repeated."
    ]


@pytest.mark.parametrize("text", ["hello\n", "{}\n", '{"dataset": "a"}\n', "[1]\n", "\n"])
def test_another_file_is_refused_and_left_alone(path, text):
    path.write_text(text)
    with pytest.raises(JournalError, match="is not a popf journal"):
        Journal(path, SETTINGS)
    assert path.read_text() == text


def test_other_settings_are_refused_and_named(path):
    filled(path, 1)
    before = path.read_bytes()
    changed = {"seed": 1, "versions": {"numpy": "9"}, "datasets": {"a": {"n": 2}}}
    with pytest.raises(JournalError) as refusal:
        Journal(path, {**SETTINGS, **changed})
    for words in ("`seed` was 0, now 1", "numpy was 1, now 9", "a has changed (n 1 to 2)"):
        assert words in str(refusal.value)
    assert path.read_bytes() == before


def test_more_datasets_and_methods_extend_a_journal(path):
    filled(path, 1)
    more = {**SETTINGS, "datasets": {"b": {"n": 5}}, "methods": {"mine": "Mine()"}}
    assert len(Journal(path, more).records) == 1
    # What it was extended by counts from now on.
    with pytest.raises(JournalError, match="method mine was Mine"):
        Journal(path, {**more, "methods": {"mine": "Mine(other=1)"}})
    n_lines = len(path.read_text().splitlines())
    Journal(path, SETTINGS)
    assert len(path.read_text().splitlines()) == n_lines


def test_of_two_processes_that_begin_a_journal_the_first_decides(path, monkeypatch):
    append = Journal._append

    def second(self, lines):
        monkeypatch.undo()
        filled(path, 1)
        append(self, lines)

    monkeypatch.setattr(Journal, "_append", second)
    with pytest.raises(JournalError, match="`seed` was 0, now 1"):
        Journal(path, {**SETTINGS, "seed": 1})
    assert len(Journal(path, SETTINGS).records) == 1


def test_the_first_run_that_succeeded_counts(path):
    journal = filled(path, 0)
    journal.add([record(0, failed="MemoryError")])
    assert not journal.has(("a", "raw", 0, "OPF"))
    journal.add([record(0)])
    journal.add([record(0, accuracy=0.9)])
    assert Journal(path, SETTINGS).records["a", "raw", 0, "OPF"] == record(0)


def test_numbers_that_are_none_become_null(path):
    Journal(path, SETTINGS).add([record(0, log_loss=float("nan"), curve=[0.5, float("inf")])])
    stored = json.loads(path.read_text().splitlines()[1])
    assert stored["log_loss"] is None
    assert stored["curve"] == [0.5, None]


def test_a_full_disk_costs_only_the_line_that_did_not_fit(path, monkeypatch):
    journal, write = filled(path, 1), os.write
    monkeypatch.setattr(os, "write", lambda where, text: write(where, text[: len(text) // 2]))
    with pytest.raises(OSError, match="No space left"):
        journal.add([record(1)])
    monkeypatch.undo()
    journal.add([record(1)])
    assert list(Journal(path, SETTINGS).records.values()) == [record(0), record(1)]


WRITER = """
import sys
from popf.experiment.study import Journal
settings = {"seed": 0, "datasets": {}, "methods": {}}
journal = Journal(sys.argv[1], settings)
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
    again = Journal(path, {"seed": 0, "datasets": {}, "methods": {}}, said.append)
    assert (said, len(again.records)) == ([], 90)
