"""The JSON file of a run: written whole after every task, so that nothing finished is ever lost."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .contestants import POPF
from .summary import summarise
from .tasks import Task, cores

SCHEMA = 1
ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks" / "results"
LIBRARIES = (
    "popf",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "quitefastmst",
    "opfython",
    "distributed",
)

Record = dict[str, Any]


class Results:
    """What has been measured so far, and the file it lives in.

    Attributes
    ----------
    path : Path
        The file.
    content : dict
        ``schema``, ``date``, ``scale``, ``machine``, ``records`` (every single value) and
        ``summary`` (ratios, exponents, targets and verdicts, all made from the records).
    """

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path = path
        self.content = content

    @classmethod
    def begin(cls, path: Path, scale: str) -> Results:
        """Start an empty file."""
        content = {
            "schema": SCHEMA,
            "date": now(),
            "scale": scale,
            "machine": machine(),
            "records": [],
            "summary": summarise([], scale),
        }
        return cls(path, content)

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read a file.

        Raises
        ------
        ValueError
            If it is of another schema, or no results file at all.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            schema = content["schema"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path.name} is not a results file of the benchmarks") from error
        if schema != SCHEMA:
            raise ValueError(
                f"{path.name} has schema {schema!r}, this runner reads {SCHEMA}; run it again"
            )
        return cls(path, content)

    @classmethod
    def resume(cls, path: Path, scale: str) -> Results:
        """Read a file in order to continue it.

        Raises
        ------
        ValueError
            If it was begun at another scale, on another machine or with other versions: ratios of
            such a mixture would mean nothing.
        """
        results = cls.load(path)
        for what, then, today in (
            ("scale", results.content["scale"], scale),
            ("machine", results.content["machine"], machine()),
        ):
            if then != today:
                raise ValueError(
                    f"{path.name} was begun with {what} {then!r}, this is {today!r}; "
                    "give another --out instead of --resume"
                )
        return results

    @property
    def records(self) -> list[Record]:
        """The records, one a task."""
        records: list[Record] = self.content["records"]
        return records

    @property
    def summary(self) -> dict[str, list[dict[str, Any]]]:
        """What `benchmarks.summary` makes of the records."""
        summary: dict[str, list[dict[str, Any]]] = self.content["summary"]
        return summary

    def has(self, task: Task) -> bool:
        """Whether `task` is finished: measured, nothing failed, and popf was there."""
        wanted = plain(task)
        return any(
            record["task"] == wanted and not record["failed"] and POPF not in record["missing"]
            for record in self.records
        )

    def add(self, record: Record) -> None:
        """Take a record in place of an older one of the same task, and write the file."""
        kept = [other for other in self.records if other["task"] != record["task"]]
        self.content["records"] = [*kept, {**record, "date": now(), "revision": revision()}]
        self.content["summary"] = summarise(self.records, self.content["scale"])
        self.save()

    def save(self) -> None:
        """Write the file so that at any moment either the old or the new one is there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(
            json.dumps(self.content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        os.replace(temporary, self.path)


def plain(task: Task) -> dict[str, Any]:
    """Give `task` as it reads in JSON."""
    result: dict[str, Any] = json.loads(json.dumps(asdict(task)))
    return result


def now() -> str:
    """Give the date and time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def revision() -> str | None:
    """Name the commit that was measured, with a ``+`` where files had been changed since."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def machine() -> dict[str, Any]:
    """Gather facts about the machine that matter for speed and tell nothing else."""
    versions: dict[str, str | None] = {}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            versions[library] = None
    return {
        "processor": processor(),
        "cores": cores(),
        "system": platform.system(),
        "python": platform.python_version(),
        "blas": blas(),
        "versions": versions,
    }


def processor() -> str:
    """Name the model of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def blas() -> list[str]:
    """Name the libraries behind matrix products, as ``openblas 0.3.30 SkylakeX``."""
    import numpy  # noqa: F401  (threadpoolctl sees what has been loaded)
    from threadpoolctl import threadpool_info

    return sorted(
        {
            " ".join(str(pool.get(key, "")) for key in ("internal_api", "version", "architecture"))
            for pool in threadpool_info()
            if pool.get("user_api") == "blas"
        }
    )


def files(folder: Path = FOLDER) -> list[Path]:
    """List the results files in `folder`, newest first by the date inside them."""
    dated = [(Results.load(path).content["date"], path) for path in folder.glob("*.json")]
    return [path for _, path in sorted(dated, reverse=True)]
