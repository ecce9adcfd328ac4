"""The file of the runs: one JSON object per line, appended when a run is finished."""

import json

from ..results import machine, now, revision, write

DIGITS = 6


class Journal:
    """The runs so far, by dataset, training size and seed; later lines add to earlier ones."""

    def __init__(self, path):
        self.path = path
        self.runs = {}
        self.head = {}
        if path.exists():
            head, *lines = path.read_text(encoding="utf-8").splitlines()
            self.head = json.loads(head)
            for line in lines:
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
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.head = {"date": now(), "revision": revision(), "machine": machine()}
            self.path.write_text(as_line(self.head), encoding="utf-8")
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(as_line(rounded(run)))
        self.take(rounded(run))

    def rewrite(self, names):
        """Write one line per run, and note in the head at which revision `names` were repeated."""
        again = {**self.head.get("again", {}), **dict.fromkeys(names, revision())}
        self.head["again"] = again
        write(self.path, "".join(map(as_line, [self.head, *self.runs.values()])))


def as_line(value):
    """Format a value as a line of JSON."""
    return json.dumps(value, ensure_ascii=False) + "\n"


def rounded(value):
    """Round every float, to keep the file small."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return round(value, DIGITS) if isinstance(value, float) else value
