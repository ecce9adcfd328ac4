"""The JSON file of a run, rewritten after every task so that no finished task is lost."""

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from dataclasses import asdict
from pathlib import Path

from .suites import CORES

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks" / "results"
LIBRARIES = (
    "popf",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "quitefastmst",
    "fast_hdbscan",
    "opfython",
    "distributed",
)


class Results:
    """The results so far: ``date``, ``scale``, ``machine`` and ``records``, one per task."""

    def __init__(self, path, scale):
        self.path = path
        self.content = {"date": now(), "scale": scale, "machine": machine(), "records": []}

    @classmethod
    def resume(cls, path, scale):
        """Open a file to continue it; ValueError if machine, versions or scale differ."""
        results = cls(path, scale)
        content = json.loads(path.read_text(encoding="utf-8"))
        for key in ("scale", "machine"):
            if content.get(key) != results.content[key]:
                raise ValueError(
                    f"{path.name} was started with {key} {content.get(key)!r}, but this run has "
                    f"{results.content[key]!r}; use another --out instead of --resume"
                )
        results.content = content
        return results

    @property
    def records(self):
        """The records."""
        return self.content["records"]

    def has(self, task):
        """Return whether `task` has been measured without failures."""
        wanted = plain(task)
        return any(r["task"] == wanted and not r["failed"] for r in self.records)

    def add(self, record):
        """Add a record, replacing an older one of the same task, and write the file."""
        kept = [other for other in self.records if other["task"] != record["task"]]
        self.content["records"] = [*kept, {**record, "date": now(), "revision": revision()}]
        write(self.path, json.dumps(self.content, indent=1, ensure_ascii=False) + "\n")


def write(path, text):
    """Write a file atomically: at any time either the old or the new one exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def plain(task):
    """Return `task` as plain dicts and lists, as it is after a round trip through JSON."""
    return json.loads(json.dumps(asdict(task)))


def now():
    """Return the date and time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def revision():
    """Return the current commit, with a ``+`` if files in ``src`` have uncommitted changes."""

    def git(*arguments):
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def machine():
    """Describe the hardware and software of this machine that affect speed, and nothing else."""
    import numpy  # noqa: F401  (threadpoolctl only sees loaded libraries)
    from threadpoolctl import threadpool_info

    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            versions[library] = None
    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    keys = ("internal_api", "version", "architecture")
    return {
        "processor": processor(),
        "cores": CORES,
        "system": platform.system(),
        "python": platform.python_version(),
        "blas": sorted({" ".join(str(pool.get(key, "")) for key in keys) for pool in pools}),
        "versions": versions,
    }


def processor():
    """Return the model name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
