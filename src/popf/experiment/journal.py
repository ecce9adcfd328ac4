"""The journal of a study: every finished run a line of JSON, written at once and never changed.

The first line holds the settings that decide the results; another line with settings is added when a study is
extended by data sets or methods. All other lines are records. Several processes may write to one
journal: each line is appended under a lock, and a record that is there already is not written again.
"""

import json
import math
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from popf.experiment.data import Say

FORMAT = 1
Key = tuple[str, str, int, str]
Record = dict[str, Any]


class JournalError(ValueError):
    """A journal that a study cannot continue: it has other settings, or is no journal at all."""


def key_of(record: Mapping[str, Any]) -> Key:
    """Identify a record: data set, form, run and method."""
    return record["dataset"], record["form"], record["run"], record["method"]


class Journal:
    """Finished runs, in memory and in a file.

    Parameters
    ----------
    path : path-like or None
        The file, created if needed; None for a journal in memory only.
    settings : dict
        What decides the numbers. ``datasets`` and ``methods`` are dicts, and the file may hold others
        besides; all other entries must be those of the file, or a JournalError says which differ.
    say : callable, default=None
        Called with a sentence where something had to be repaired.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        settings: Mapping[str, Any],
        say: Say = lambda sentence: None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.settings: dict[str, Any] = {}
        self.records: dict[Key, Record] = {}
        self._say = say
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
            with _locked(self._descriptor):
                self._read(repair=True)
                self._compare(wanted)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *error: object) -> None:
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
        """Read what other processes have written since."""
        with self._mutex:
            if self._descriptor >= 0:
                self._read(repair=False)

    def add(self, records: Iterable[Record]) -> None:
        """Write records, unless another process was faster, and wait until the disk has them."""
        fresh = [json.loads(json.dumps(_finite(record), allow_nan=False)) for record in records]
        with self._mutex:
            if self._descriptor >= 0:
                with _locked(self._descriptor):
                    self._read(repair=True)
                    fresh = [record for record in fresh if not self.has(key_of(record))]
                    self._append(fresh)
            for record in fresh:
                self._keep(record)

    def _keep(self, record: Record) -> None:
        """Keep a record in memory: the first that succeeded, or else the last."""
        if not self.has(key_of(record)):
            self.records[key_of(record)] = record

    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Write lines at the end of the file; the caller holds the lock."""
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        try:
            written = 0
            while written < len(text):
                written += os.write(self._descriptor, text[written:])
            os.fsync(self._descriptor)
        except OSError:
            # Most likely the disk is full: leave no half of a line behind.
            os.ftruncate(self._descriptor, self._end)
            raise
        self._end += len(text)
        self._line += text.count(b"\n")

    def _read(self, repair: bool) -> None:
        """Read on from where the last reading ended; `repair` the end if the caller holds the lock."""
        parts = []
        os.lseek(self._descriptor, self._end, os.SEEK_SET)
        while part := os.read(self._descriptor, 1 << 20):
            parts.append(part)
        text = b"".join(parts)
        whole = text[: text.rfind(b"\n") + 1]
        for line in whole.splitlines():
            self._line += 1
            self._read_line(line)
        self._end += len(whole)
        if len(whole) < len(text) and repair:
            # Only a process that died while writing leaves a line without an end.
            os.ftruncate(self._descriptor, self._end)
            os.fsync(self._descriptor)
            self._say(
                f"{self.path}: the last line was cut off after {len(text) - len(whole)} bytes and has been "
                "removed; its run will be done again."
            )

    def _read_line(self, line: bytes) -> None:
        try:
            content = json.loads(line)
            if "settings" in content:
                self._merge(content["settings"])
            elif self.settings:
                self._keep(content)
            else:
                raise KeyError("settings")
        except (ValueError, KeyError, TypeError):
            if self._line == 1:
                raise JournalError(
                    f"{self.path} is not a journal of popf; give another file or folder."
                ) from None
            self._say(
                f"{self.path}: line {self._line} is damaged and is skipped; its run will be done again."
            )

    def _merge(self, more: Mapping[str, Any]) -> None:
        for name, value in more.items():
            if isinstance(value, dict):
                self.settings.setdefault(name, {}).update(value)
            else:
                self.settings[name] = value

    def _compare(self, wanted: dict[str, Any]) -> None:
        """Compare the settings with those of the file, and write what it lacks; the lock is held."""
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
            kind: {k: v for k, v in wanted[kind].items() if k not in self.settings[kind]}
            for kind in ("datasets", "methods")
        }
        more = {kind: entries for kind, entries in more.items() if entries}
        if more:
            self._append([{"settings": more}])
            self._merge(more)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words where two settings contradict each other."""
    kinds = {"versions": "version of", "methods": "method", "datasets": "dataset"}
    found = [
        f"`{name}` was {old.get(name)!r}, now {new.get(name)!r}"
        for name in sorted({*old, *new} - kinds.keys())
        if old.get(name) != new.get(name)
    ]
    for kind, what in kinds.items():
        before, after = old.get(kind, {}), new.get(kind, {})
        for name in before.keys() & after.keys():
            was, now = before[name], after[name]
            if was == now:
                continue
            if isinstance(was, dict):
                parts = [part for part in now if was.get(part) != now[part]]
                changes = ", ".join(f"{part} {was.get(part)!r} to {now[part]!r}" for part in parts)
                found.append(f"{what} {name} has changed ({changes})")
            else:
                found.append(f"{what} {name} was {was}, now {now}")
    return found


def _finite(value: Any) -> Any:
    """Replace numbers that JSON does not know by None."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Hold the lock of an open file between processes; the system releases it when a process dies."""
    _lock(descriptor)
    try:
        yield
    finally:
        _unlock(descriptor)


if sys.platform == "win32":
    import msvcrt

    # Windows refuses reads of locked bytes: lock one far behind the end of any journal.
    _FAR = 2**40

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
            except OSError:  # it gives up after ten seconds
                continue
            return

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
