"""The journal of a study: every finished run a line of JSON, written at once and never changed.

The first line holds the settings that decide the results; another line with settings is added when a study is
extended by data sets or methods. All other lines are records. Lines are only ever appended, each in one call of
the system, and the first record of a run that succeeded counts: two processes on one journal cannot damage it.
"""

import errno
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from popf.experiment.protocol import Say

FORMAT = 1
BEGINNING = b'{"popf journal": '
Key = tuple[str, str, int, str]
Record = dict[str, Any]


class JournalError(ValueError):
    """A journal that a study cannot continue: it has other settings, or is no journal at all."""


def key_of(record: Mapping[str, Any]) -> Key:
    """Identify a record: data set, form, run and method."""
    return record["dataset"], record["form"], record["run"], record["method"]


class Journal:
    """Finished runs, in memory and in a file (None for memory only).

    `settings` are what decides the numbers. ``datasets`` and ``methods`` are dicts, and the file may hold
    others besides; all other entries must be those of the file, or a JournalError says which differ.
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
        wanted: dict[str, Any] = json.loads(json.dumps(settings))
        if self.path is None:
            self.settings = wanted
            return
        self.path.touch()
        self._read(say)
        missing = self._check(wanted)
        if missing:
            self._append([{"popf journal": FORMAT, "settings": missing}])
            # Another process may have been faster, with other settings: the first in the file count.
            self._read(lambda sentence: None)
            self._check(wanted)

    def has(self, key: Key) -> bool:
        """Whether there is a record that did not fail."""
        record = self.records.get(key)
        return record is not None and "failed" not in record

    def add(self, records: Iterable[Record]) -> None:
        """Write records, and wait until the disk has them."""
        fresh = [json.loads(json.dumps(_finite(record), allow_nan=False)) for record in records]
        self._append(fresh)
        for record in fresh:
            self._keep(record)

    def _keep(self, record: Record) -> None:
        """Keep a record in memory: the first that succeeded, or else the last."""
        if not self.has(key_of(record)):
            self.records[key_of(record)] = record

    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Write lines at the end of the file."""
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        if self.path is None or not text:
            return
        with open(self.path, "rb") as file:
            file.seek(max(0, self.path.stat().st_size - 1))
            # After a kill or a full disk the last line may have no end.
            text = (b"" if file.read() in (b"", b"\n") else b"\n") + text
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(descriptor, text) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, say: Say) -> None:
        """Read the whole file, without lines that are damaged or cut off."""
        assert self.path is not None
        damaged = []
        for number, line in enumerate(self.path.read_bytes().splitlines(), 1):
            try:
                content = json.loads(line)
                if "settings" in content:
                    for name, value in content["settings"].items():
                        known = self.settings.setdefault(name, value)
                        if isinstance(value, dict):
                            self.settings[name] = {**value, **known}
                elif self.settings:
                    self._keep(content)
                else:
                    raise KeyError("settings")
            except (ValueError, KeyError, TypeError):
                if number == 1 and not (line and BEGINNING.startswith(line[: len(BEGINNING)])):
                    raise JournalError(
                        f"{self.path} is not a journal of popf; give another file or folder."
                    ) from None
                damaged += [str(number)] if line.strip() else []
        if damaged:
            say(
                f"{self.path}: cut off or damaged and ignored: line {', '.join(damaged)}. What is missing is "
                "run again."
            )

    def _check(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Raise JournalError if the settings of the file contradict these; return what it lacks."""
        if not self.settings:
            return wanted
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
        return {kind: entries for kind, entries in more.items() if entries}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Describe where two settings contradict each other."""
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
