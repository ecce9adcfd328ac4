"""Measure speed and memory of ``popf predict`` on a CSV file larger than memory.

``python -m benchmarks.large_csv --megabytes 2000`` writes such a file to a temporary folder, fits a model to
its first rows, scores the file in a separate process, and prints the rate and the peak memory. ``--limit`` (MB)
sets a limit on writable memory that the system enforces.
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


def rows():
    """Draw rows of two overlapping classes, as lines of text without the id."""
    rng = np.random.default_rng(0)
    y = rng.random(BLOCK) < 0.1
    X = rng.normal(size=(BLOCK, N_FEATURES))
    X[:, ::3] += y[:, None]
    region = rng.choice(["north", "south", "east", "west"], BLOCK)
    label = np.where(y, "yes", "no")
    cells = (",".join(f"{value:.5f}" for value in row) for row in X.tolist())
    return [f",{row},{region[i]},{label[i]}\n" for i, row in enumerate(cells)]


def write_csv(path, n_bytes):
    """Write the same rows with new ids until the file is large enough; return the number of rows."""
    names = ["id", *(f"x{i}" for i in range(N_FEATURES)), "region", "label"]
    block, n_rows = rows(), 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(names) + "\n")
        while file.tell() < n_bytes:
            file.writelines(f"C{n_rows + i:09d}{row}" for i, row in enumerate(block))
            n_rows += BLOCK
    return n_rows


def popf(*words, limit=None):
    """Run popf in a separate process; return its output and its peak memory in MB."""

    def restrict():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit * 10**6, limit * 10**6))

    command = [sys.executable, "-m", "popf", *map(str, words), "--json"]
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
    parser.add_argument("--limit", type=int, default=None, help="limit on writable memory, in MB")
    parser.add_argument("--folder", default=None, help="folder for the temporary file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        large, train = Path(folder, "large.csv"), Path(folder, "train.csv")
        n_rows = write_csv(large, int(options.megabytes * 1e6))
        with open(large, encoding="utf-8") as file:
            head = [file.readline() for _ in range(options.training_rows + 1)]
        train.write_text("".join(head), encoding="utf-8")
        model, out = Path(folder, "model.popf"), Path(folder, "scored.csv")
        popf("fit", train, "--target", "label", "--id", "id", "-o", model)
        start = time.perf_counter()
        facts, peak = popf("predict", model, large, "-o", out, limit=options.limit)
        seconds = time.perf_counter() - start
        assert facts["n_rows"] == n_rows
        size = large.stat().st_size / 1e6
        print(f"{size:.0f} MB, {n_rows:,} rows of {N_FEATURES + 1} features, {seconds:.1f} s")
        print(f"{n_rows / seconds:,.0f} rows/s, {size / seconds:.1f} MB/s, peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
