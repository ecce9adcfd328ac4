"""How fast, and in how much memory, a CSV file larger than memory is scored.

``python -m benchmarks.large_csv --megabytes 2000`` writes such a file to a temporary folder, fits a model on
its first rows, runs ``popf predict`` on it in a process of its own, and prints the rate and the peak of its
memory. The file is removed afterwards. With ``--limit`` (MB) the system refuses more writable memory than that.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_FEATURES = 20
BLOCK = 50_000


def lines(n, rng):
    """Draw rows of two overlapping classes, as text without an id."""
    regions = np.array(["north", "south", "east", "west"])
    y = rng.random(n) < 0.1
    X = rng.normal(size=(n, N_FEATURES))
    X[:, ::3] += y[:, None]
    region, labels = regions[rng.integers(4, size=n)], np.where(y, "yes", "no")
    cells = (",".join(f"{value:.5f}" for value in row) for row in X.tolist())
    return [f",{row},{region[i]},{labels[i]}\n" for i, row in enumerate(cells)]


def write_csv(path, n_bytes, seed=0):
    """Write rows, the same ones again and again but for their ids, until the file is large enough."""
    rows = lines(BLOCK, np.random.default_rng(seed))
    names = ["id", *(f"x{i}" for i in range(N_FEATURES)), "region", "label"]
    n_rows = 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(names) + "\n")
        while file.tell() < n_bytes:
            file.writelines(f"C{n_rows + i:09d}{row}" for i, row in enumerate(rows))
            n_rows += BLOCK
    return n_rows


def run(words, limit=None):
    """Run popf in a process of its own; give its output and its peak memory in MB."""

    def restrict():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit * 10**6, limit * 10**6))

    command = [sys.executable, "-m", "popf", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=restrict)
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"popf ended with status {os.waitstatus_to_exitcode(status)}")
    return json.loads(output), used.ru_maxrss * 1024 / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=float, default=200.0)
    parser.add_argument("--training-rows", type=int, default=2000)
    parser.add_argument("--limit", type=int, default=None, help="writable memory, in MB")
    parser.add_argument("--folder", default=None, help="where to put the file for the time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        place = Path(folder)
        n_rows = write_csv(place / "large.csv", int(options.megabytes * 1e6))
        size = (place / "large.csv").stat().st_size / 1e6
        with open(place / "large.csv", encoding="utf-8") as file:
            head = [file.readline() for _ in range(options.training_rows + 1)]
        (place / "train.csv").write_text("".join(head), encoding="utf-8")
        model, out = place / "model.popf", place / "scored.csv"
        training = ["fit", place / "train.csv", "--target", "label", "--id", "id", "-o", model]
        run([*training, "--json"])
        start = time.perf_counter()
        scoring = ["predict", model, place / "large.csv", "-o", out, "--json"]
        facts, peak = run(scoring, options.limit)
        seconds = time.perf_counter() - start
        assert facts["n_rows"] == n_rows
        result = {
            "megabytes": round(size),
            "rows": n_rows,
            "features": N_FEATURES + 1,
            "training_rows": options.training_rows,
            "seconds": round(seconds, 1),
            "rows_per_second": round(n_rows / seconds),
            "megabytes_per_second": round(size / seconds, 1),
            "peak_rss_megabytes": round(peak),
            "limit_megabytes": options.limit,
        }
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
