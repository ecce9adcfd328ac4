"""The file of the runs: one JSON object per line, appended when a run is finished."""

import json

from ..results import machine, now, revision

DIGITS = 6


class Journal:
    """The runs so far, by dataset, training size and seed; later lines add to earlier ones."""

    def __init__(self, path):
        self.path = path
        self.runs = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines()[1:]:
                self.take(json.loads(line))

    def take(self, run):
        """Merge the contestants of a run into the known run of the same split."""
        key = run["dataset"], run["size"], run["seed"]
        known = self.runs.setdefault(key, run)
        for part in ("scores", "failed", "absent"):
            for name, value in run[part].items():
                for other in ("scores", "failed", "absent"):
                    known[other].pop(name, None) if other != part else None
                known[part][name] = value

    def missing(self, dataset, size, seed, names):
        """Return those of `names` that have not been measured on a split."""
        run = self.runs.get((dataset, size, seed))
        return [n for n in names if run is None or not (n in run["scores"] or n in run["absent"])]

    def add(self, run):
        """Append a run to the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        with open(self.path, "a", encoding="utf-8") as file:
            if new:
                head = {"date": now(), "revision": revision(), "machine": machine()}
                file.write(json.dumps(head, ensure_ascii=False) + "\n")
            file.write(json.dumps(rounded(run), ensure_ascii=False) + "\n")
        self.take(rounded(run))


def rounded(value):
    """Round every float, to keep the file small."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return round(value, DIGITS) if isinstance(value, float) else value
