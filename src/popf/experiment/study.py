"""Run a study: every method on every split of every dataset, saving each finished run at once in a journal.

The journal is a JSON Lines file. The first line holds the settings that determine the results; another line
with settings is added when a study is extended by datasets or methods. All other lines are records. Lines are
only ever appended, in a single system call, and the first successful record of a run counts: two processes
that share a journal cannot damage it.
"""

import errno
import json
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from popf.experiment.protocol import (
    RUNS,
    TRAIN_SIZE,
    Dataset,
    Methods,
    Protocol,
    Record,
    Say,
    Wanted,
    choose_datasets,
    choose_methods,
    definition,
    measure,
)
from popf.experiment.results import Key, Results
from popf.formatting import for_json

FORMAT = 1
BEGINNING = b'{"popf journal": '
#: Called after every unit of work with the number done, the total number, and a description of the last one.
Progress = Callable[[int, int, str], None]


def run(
    datasets: Wanted = None,
    methods: Methods | Iterable[str] | str | None = None,
    *,
    runs: int = RUNS,
    train_size: float = TRAIN_SIZE,
    seed: int = 0,
    scale: bool | None = None,
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results:
    """Run the paper's protocol on its own data and methods, or on others.

    Each dataset is split `runs` times at random, stratified by class. All methods see the same splits.

    Parameters
    ----------
    datasets : dict of str to (X, y), or list of names, default=None
        None for those of the paper's 14 datasets that `popf.datasets.load` finds.
    methods : dict of str to classifier, or list of names, default=None
        Any scikit-learn classifiers; None for all of `popf.experiment.methods`.
    runs : int, default=20
        Number of splits of each dataset.
    train_size : float, default=0.25
        Share of the samples used for training.
    seed : int, default=0
        Seed for splits and methods. It determines all results except the times.
    scale : bool or None, default=None
        True to standardise the features, False to leave them unscaled, None for both where their standard
        deviations differ by more than a factor of 3, and unscaled elsewhere.
    n_jobs : int, default=None
        Number of parallel runs; None for the setting of ``joblib.parallel_config``, such as a Dask cluster.
    journal : path-like, default=None
        File in which every finished run is saved at once. Runs that it contains are not repeated; a journal
        with other settings is an error.
    progress : callable, default=None
        Called as ``progress(n_done, n_total, text)`` after every run.
    say : callable, default=None
        Called with a sentence about what was resumed, repaired or left out.

    Returns
    -------
    Results

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from popf import OPFClassifier
    >>> from popf.experiment import run
    >>> results = run(
    ...     {"iris": load_iris(return_X_y=True)},
    ...     {"OPF": OPFClassifier(), "3-NN": KNeighborsClassifier(3)},
    ...     runs=5,
    ... )
    >>> results.values("accuracy", "iris", "OPF").shape
    (5,)
    """
    say = say or (lambda sentence: None)
    protocol = Protocol(runs, train_size, seed, scale)
    chosen = choose_methods(methods)
    data = choose_datasets(datasets, say)
    for dataset in data.values():
        protocol.check(dataset)
    kept = Journal(journal, settings(protocol, data, chosen), say)
    todo = _missing_runs(protocol, data, chosen, kept, say)
    calls = (
        delayed(_measure_in_worker)(os.getpid(), protocol, data[name], form, number, missing)
        for (name, form, number), missing in todo.items()
    )
    try:
        parallel = Parallel(n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
        for n_done, records in enumerate(parallel(calls), 1):
            kept.add(records)
            if progress is not None:
                last = records[0]
                text = f"{last['dataset']} ({last['form']}), run {last['run']}"
                progress(n_done, len(todo), text)
    except KeyboardInterrupt:
        if journal is not None:
            say(f"Finished runs are saved in {kept.path}; the same command continues from there.")
        raise
    return Results(protocol, data, chosen, kept.records, kept.settings)


def _measure_in_worker(study: int, *task: Any) -> list[Record]:
    """Measure a run, in a process that ends when that of the study (its id) was killed."""
    _end_with(study)
    return measure(*task)


@cache
def _end_with(parent: int) -> None:
    """Watch the process that started this one; without it, joblib's workers would work and idle on."""
    if os.getppid() != parent:  # the study's own process, or a worker of a cluster
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def settings(protocol: Protocol, data: Mapping[str, Dataset], methods: Methods) -> dict[str, Any]:
    """Return all settings that determine the results; more runs or forms only extend a study."""
    return {
        "seed": int(protocol.seed),
        "train_size": float(protocol.train_size),
        "versions": {
            "python": ".".join(platform.python_version_tuple()[:2]),
            **{name: version(name) for name in ("popf", "numpy", "scipy", "scikit-learn")},
        },
        "datasets": {name: dataset.facts() for name, dataset in data.items()},
        "methods": {name: definition(method) for name, method in methods.items()},
    }


def _missing_runs(
    protocol: Protocol, data: dict[str, Dataset], methods: Methods, journal: "Journal", say: Say
) -> dict[tuple[str, str, int], Methods]:
    """Find the methods that are missing in the journal, by dataset, form and run."""
    tasks = [
        (name, form, run)
        for run in range(protocol.runs)
        for name, dataset in data.items()
        for form in protocol.forms(dataset)
    ]
    todo: dict[tuple[str, str, int], Methods] = {}
    for task in tasks:
        missing = {
            name: method for name, method in methods.items() if not journal.has((*task, name))
        }
        if missing:
            todo[task] = missing
    if journal.path is not None and len(todo) < len(tasks):
        say(f"{len(tasks) - len(todo)} of {len(tasks)} runs are already in {journal.path}.")
    return todo


class JournalError(ValueError):
    """Error for a file that a study cannot continue: a journal with other settings, or not a journal."""


class Journal:
    """Finished runs, in memory and in a file (None for memory only).

    `settings` determine the results. Its dicts ``datasets`` and ``methods`` may have other keys than those in
    the file; everything else must agree with the file, or a JournalError names the differences.
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
        wanted: dict[str, Any] = for_json(settings)
        if self.path is None:
            self.settings = wanted
            return
        self.path.touch()
        self._read(say)
        missing = self._check(wanted)
        if missing:
            self._append([{"popf journal": FORMAT, "settings": missing}])
            # Another process may have written other settings first; the first in the file count.
            self._read(lambda sentence: None)
            self._check(wanted)

    def has(self, key: Key) -> bool:
        """Return whether there is a successful record."""
        record = self.records.get(key)
        return record is not None and "failed" not in record

    def add(self, records: Iterable[Record]) -> None:
        """Append records, and wait until they are on disk."""
        fresh = [for_json(record) for record in records]
        self._append(fresh)
        for record in fresh:
            self._keep(record)

    def _keep(self, record: Record) -> None:
        """Keep a record in memory: the first successful one, or else the last."""
        key = record["dataset"], record["form"], record["run"], record["method"]
        if not self.has(key):
            self.records[key] = record

    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append lines to the file."""
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        if self.path is None or not text:
            return
        with open(self.path, "rb") as file:
            file.seek(max(0, self.path.stat().st_size - 1))
            # After a kill or a full disk, the last line may be incomplete.
            text = (b"" if file.read() in (b"", b"\n") else b"\n") + text
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(descriptor, text) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, say: Say) -> None:
        """Read the whole file, ignoring lines that are damaged or cut off."""
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
                        f"{self.path} is not a popf journal; choose another file or folder."
                    ) from None
                damaged += [str(number)] if line.strip() else []
        if damaged:
            say(
                f"{self.path}: ignored lines that are cut off or damaged: {', '.join(damaged)}. Missing runs "
                "are repeated."
            )

    def _check(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Raise JournalError if the settings in the file differ; return the settings that it lacks."""
        if not self.settings:
            return wanted
        differing = differences(self.settings, wanted)
        if differing:
            raise JournalError(
                f"{self.path} was made with other settings: {'; '.join(differing)}. Results of "
                "different settings are never mixed: choose another folder, or use the same settings."
            )
        more = {
            kind: {k: v for k, v in wanted[kind].items() if k not in self.settings[kind]}
            for kind in ("datasets", "methods")
        }
        return {kind: entries for kind, entries in more.items() if entries}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Describe the differences between two settings."""
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
