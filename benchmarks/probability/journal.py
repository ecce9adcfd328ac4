"""The JSON file of the runs: written whole after every run, so that nothing finished is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .. import results
from .summary import summarise

# `benchmarks.results` reads every file of the folder: in its envelope, with a scale of its own and no timings
# among the records, this one is passed over there.
SCALE = "probability"
DIGITS = 6


class Journal:
    """What has been measured so far, and the file it lives in.

    Attributes
    ----------
    path : Path
        The file.
    content : dict
        ``schema``, ``date``, ``scale``, ``machine``, ``revisions`` (of popf), ``runs`` (every single
        score) and ``summary`` (made from the runs).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content: dict[str, Any] = {
            "schema": results.SCHEMA,
            "date": results.now(),
            "scale": SCALE,
            "machine": results.machine(),
            "revisions": [],
            "records": [],
            "runs": [],
            "summary": {},
        }

    @classmethod
    def resume(cls, path: Path) -> Journal:
        """Go on with a file.

        Raises
        ------
        ValueError
            If it is no file of this benchmark.
        """
        journal = cls(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            known = content["schema"] == results.SCHEMA and content["scale"] == SCALE
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path.name} is not a file of benchmarks.probability") from error
        if not known:
            raise ValueError(f"{path.name} is not a file of benchmarks.probability; give another")
        journal.content = content
        return journal

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs, one for each dataset and seed."""
        runs: list[dict[str, Any]] = self.content["runs"]
        return runs

    def has(self, dataset: str, seed: int, only: tuple[str, ...] = ()) -> bool:
        """Whether the run is there, with everyone in `only`, and nobody failed."""
        return any(
            (run["dataset"], run["seed"]) == (dataset, seed)
            and not run["failed"]
            and set(only) <= {*run["scores"], *run["absent"]}
            for run in self.runs
        )

    def add(self, run: dict[str, Any]) -> None:
        """Take a run, beside what is known of the same dataset and seed, and write the file."""
        key = (run["dataset"], run["seed"])
        for other in self.runs:
            if (other["dataset"], other["seed"]) == key:
                for part in ("scores", "failed"):
                    run = {**run, part: {**other[part], **run[part]}}
                run["failed"] = {k: v for k, v in run["failed"].items() if k not in run["scores"]}
        others = [other for other in self.runs if (other["dataset"], other["seed"]) != key]
        # By name and seed, whatever the order in which the workers came back.
        self.content["runs"] = sorted(
            [*others, rounded(run)], key=lambda run: (run["dataset"], run["seed"])
        )
        revision = results.revision()
        if revision is not None and revision not in self.content["revisions"]:
            self.content["revisions"].append(revision)
        self.save()

    def finish(self) -> None:
        """Sum up, and write the file."""
        self.content["summary"] = summarise(self.runs)
        self.save()

    def save(self) -> None:
        """Write the file so that at any moment either the old or the new one is there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        head = {key: value for key, value in self.content.items() if key != "runs"}
        text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
        lines = ",\n  ".join(json.dumps(run, ensure_ascii=False) for run in self.runs)
        temporary.write_text(f'{text},\n "runs": [\n  {lines}\n ]\n}}\n', encoding="utf-8")
        os.replace(temporary, self.path)


def rounded(value: Any) -> Any:
    """Round every float in `value`: more digits would only make the file longer."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return round(value, DIGITS) if isinstance(value, float) else value
