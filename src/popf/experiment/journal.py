"""The journal of a study: every finished run a line of JSON, written at once and never changed.

The first line holds the settings that decide what comes out; a line with settings is added when a study is
extended by data sets or methods. All other lines are records. Several processes may write to one
journal: each line is appended under a lock, and a record that is there already is not written again.
"""

import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from popf.experiment.locks import locked

FORMAT = 1
Key = tuple[str, str, int, str]
Record = dict[str, Any]


class JournalError(ValueError):
    """A journal that cannot be gone on with: of other settings, or no journal at all."""


def key_of(record: Mapping[str, Any]) -> Key:
    """Give what a record is about: data set, form, run and method."""
    return record["dataset"], record["form"], record["run"], record["method"]


class Journal:
    """Finished runs, in memory and in a file.

    Parameters
    ----------
    path : path-like or None
        The file, made where there is none; None for a journal in memory only.
    settings : dict
        What decides the numbers. ``datasets`` and ``methods`` are dicts, of which a journal may hold others
        besides; all other entries must be those of the file.
    say : callable, default=None
        Is called with a sentence where something had to be repaired.

    Raises
    ------
    JournalError
        If the file is of other settings, and of which; or if it is no journal.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from popf.experiment.journal import Journal
    >>> settings = {"seed": 0, "datasets": {}, "methods": {}}
    >>> record = {"dataset": "heart", "form": "raw", "run": 0, "method": "OPF", "accuracy": 0.6}
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "journal.jsonl")
    ...     with Journal(path, settings) as journal:
    ...         journal.add([record])
    ...     with Journal(path, settings) as journal:
    ...         print(len(journal.records))
    1
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        settings: Mapping[str, Any],
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.settings: dict[str, Any] = {}
        self.records: dict[Key, Record] = {}
        self._say = say or (lambda sentence: None)
        self._end = 0  # up to here the file has been read
        self._line = 0
        self._descriptor = -1
        # joblib asks for the next run from a thread of its own, while another result is written.
        self._mutex = threading.RLock()
        wanted: dict[str, Any] = json.loads(json.dumps(settings))
        if self.path is None:
            self.settings = wanted
            return
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            with locked(self._descriptor):
                self._read(repair=True)
                self._settle(wanted)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what was added is on the disk already."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def has(self, key: Key) -> bool:
        """Whether there is a record that did not fail."""
        record = self.records.get(key)
        return record is not None and "failed" not in record

    def refresh(self) -> None:
        """Take in what other processes have written since."""
        with self._mutex:
            if self._descriptor >= 0:
                self._read(repair=False)

    def add(self, records: Iterable[Record]) -> None:
        """Write records, unless others have been faster, and wait until the disk has them."""
        fresh = [json.loads(json.dumps(finite(record), allow_nan=False)) for record in records]
        with self._mutex:
            if self._descriptor >= 0:
                with locked(self._descriptor):
                    self._read(repair=True)
                    fresh = [record for record in fresh if not self.has(key_of(record))]
                    self._append(fresh)
            self._take(fresh)

    def _take(self, records: Iterable[Record]) -> None:
        """Keep records in memory: the first that succeeded, or else the last."""
        for record in records:
            if not self.has(key_of(record)):
                self.records[key_of(record)] = record

    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Write lines at the end; the lock is held."""
        text = "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines).encode()
        if not text:
            return
        try:
            written = 0
            while written < len(text):
                written += os.write(self._descriptor, text[written:])
            os.fsync(self._descriptor)
        except OSError:
            # Disk full, most likely: leave no half of a line behind.
            os.ftruncate(self._descriptor, self._end)
            raise
        self._end += len(text)
        self._line += text.count(b"\n")

    def _read(self, repair: bool) -> None:
        """Read on from where the last reading ended, and repair the end if the lock is held."""
        parts = []
        os.lseek(self._descriptor, self._end, os.SEEK_SET)
        while part := os.read(self._descriptor, 1 << 20):
            parts.append(part)
        text = b"".join(parts)
        whole = text[: text.rfind(b"\n") + 1]
        rest = text[len(whole) :]
        for line in whole.splitlines():
            self._line += 1
            self._understand(line)
        self._end += len(whole)
        if rest and repair:
            # Only a process that died while writing leaves a line without an end.
            os.ftruncate(self._descriptor, self._end)
            os.fsync(self._descriptor)
            self._say(
                f"{self.path}: the last line was cut off after {len(rest)} bytes and has been "
                "removed; its run will be done again."
            )

    def _understand(self, line: bytes) -> None:
        """Take one line in."""
        try:
            content = json.loads(line)
            if "settings" in content:
                self._merge(content["settings"])
            elif self.settings:
                key_of(content)
                self._take([content])
            else:
                raise KeyError("settings")
        except (ValueError, KeyError, TypeError):
            if self._line == 1:
                raise JournalError(
                    f"{self.path} is not a journal of popf; give another file or folder."
                ) from None
            self._say(
                f"{self.path}: line {self._line} is damaged and is passed over; its run will be "
                "done again."
            )

    def _merge(self, more: Mapping[str, Any]) -> None:
        for name, value in more.items():
            if isinstance(value, dict) and name in self.settings:
                self.settings[name].update(value)
            else:
                self.settings[name] = value

    def _settle(self, wanted: dict[str, Any]) -> None:
        """Compare the settings with those of the file; write what it lacks. The lock is held."""
        if not self.settings:
            self.settings = wanted
            self._append([{"popf journal": FORMAT, "settings": wanted}])
            return
        differing = differences(self.settings, wanted)
        if differing:
            raise JournalError(
                f"{self.path} was made with other settings: {'; '.join(differing)}. Results of "
                "different settings are never mixed: give another folder, or the same settings."
            )
        more = {
            kind: {
                name: value
                for name, value in wanted[kind].items()
                if name not in self.settings[kind]
            }
            for kind in ("datasets", "methods")
        }
        more = {kind: entries for kind, entries in more.items() if entries}
        if more:
            self._append([{"settings": more}])
            self._merge(more)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words where two settings contradict each other.

    Examples
    --------
    >>> from popf.experiment.journal import differences
    >>> old = {"seed": 0, "datasets": {"heart": {"n_samples": 270}}, "methods": {}}
    >>> differences(old, {"seed": 1, "datasets": {"liver": {"n_samples": 345}}, "methods": {}})
    ['seed was 0, now 1']
    """
    found = []
    for name in sorted({*old, *new} - {"datasets", "methods", "versions"}):
        if old.get(name) != new.get(name):
            found.append(f"{name} was {old.get(name)!r}, now {new.get(name)!r}")
    for kind, what in (("versions", "version of"), ("methods", "method"), ("datasets", "dataset")):
        before, after = old.get(kind, {}), new.get(kind, {})
        for name in after:
            if name not in before or before[name] == after[name]:
                continue
            if isinstance(before[name], dict) and isinstance(after[name], dict):
                parts = [
                    part for part in after[name] if before[name].get(part) != after[name][part]
                ]
                changes = ", ".join(
                    f"{part} {before[name].get(part)!r} to {after[name][part]!r}" for part in parts
                )
                found.append(f"{what} {name} has changed ({changes})")
            else:
                found.append(f"{what} {name} was {before[name]}, now {after[name]}")
    return found


def finite(value: Any) -> Any:
    """Put None in place of numbers that JSON does not know."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
