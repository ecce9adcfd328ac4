"""Forests of blocks: time and peak memory on a local cluster of processes, and out of core.

``measure`` runs one fit in a process of its own, so that its peak memory is its own, and gives a dictionary
that JSON takes. The suites ``dask`` and ``out-of-core`` are made of it; alone it runs as

    python -m benchmarks.scaling out-of-core --rows 1000000 --features 4 --block-size 250000
    python -m benchmarks.scaling dask --rows 200000 --features 8 --workers 2 --block-size 25000

The samples are written to a file first, a piece at a time, and read from there by all contestants.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from .results import ROOT

KINDS = ("plain", "out-of-core", "dask")
# Rows that are made at a time.
PIECE = 250_000


def measure(
    kind: str,
    rows: int,
    features: int,
    block_size: int | None = None,
    workers: int = 2,
    *,
    seed: int = 0,
    limit: float = 3600.0,
) -> dict[str, Any]:
    """Measure one fit in a process of its own.

    Parameters
    ----------
    kind : {"plain", "out-of-core", "dask"}
        `OPFClassifier` in memory; `DaskOPFClassifier` on a memory map with threads of one process; or
        on a local cluster of processes.
    rows, features : int
        Of the samples: three overlapping Gaussian classes.
    block_size : int, optional
        Rows in a block.
    workers : int
        Processes of the cluster, one thread each.
    seed : int
    limit : float
        Seconds after which it is given up.

    Returns
    -------
    dict
        What was asked for, and ``seconds``, ``predict_seconds`` (10,000 new samples), ``peak_mib`` (of the
        process, of the largest worker too for a cluster), ``data_mib``, ``n_blocks``, ``n_pairs`` and
        ``digest``, which is the same for all kinds if the forests are.
    """
    order = {
        "kind": kind,
        "rows": rows,
        "features": features,
        "block_size": block_size,
        "workers": workers,
        "seed": seed,
    }
    command = [sys.executable, "-m", "benchmarks.scaling", "--order", json.dumps(order)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{kind} with {rows} rows failed:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def suite(name: str, scale: str = "full") -> list[dict[str, Any]]:
    """Measure a suite, ``dask`` or ``out-of-core``, beside the plain estimator.

    Parameters
    ----------
    name : {"dask", "out-of-core"}
    scale : {"full", "quick", "tiny"}

    Returns
    -------
    list of dict
        As of `measure`.
    """
    rows = {"full": (200_000, 1_000_000, 5_000_000), "quick": (100_000,), "tiny": (3_000,)}[scale]
    found = []
    for n in rows:
        block = max(1_000, min(500_000, n // 8))
        if n <= 1_000_000:
            found.append(measure("plain", n, 4))
        if name == "out-of-core":
            found.append(measure(name, n, 4, block))
        else:
            found += [measure(name, n, 4, block, workers) for workers in (1, 2)]
    return found


def make_samples(folder: Path, rows: int, features: int, seed: int) -> tuple[Path, Path]:
    """Write samples and labels to files, a piece at a time."""
    X = np.lib.format.open_memmap(
        folder / "X.npy", mode="w+", dtype=np.float64, shape=(rows, features)
    )
    y = np.lib.format.open_memmap(folder / "y.npy", mode="w+", dtype=np.int64, shape=(rows,))
    for start in range(0, rows, PIECE):
        rng = np.random.default_rng([seed, start])
        stop = min(start + PIECE, rows)
        y[start:stop] = rng.integers(0, 3, size=stop - start)
        X[start:stop] = rng.normal(size=(stop - start, features))
        X[start:stop, 0] += 2.0 * y[start:stop]
    X.flush()
    y.flush()
    return folder / "X.npy", folder / "y.npy"


def _run(order: dict[str, Any]) -> dict[str, Any]:
    """Do what `measure` asks for, in this process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, features = order["rows"], order["features"]
        files = make_samples(folder, rows, features, order["seed"])
        (folder / "scratch").mkdir()
        if order["kind"] == "plain":
            found = _run_plain(*files)
        else:
            found = _run_blocks(order, *files, folder / "scratch")
    return {**order, "data_mib": rows * features * 8 / 2**20, **found}


def _warm_up(fit: Any, features: int) -> None:
    """Compile, or load what is compiled, before the clock runs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, features))
    fit(X, (X[:, 0] > 0).astype(np.int64))


def _run_plain(X_file: Path, y_file: Path) -> dict[str, Any]:
    from popf import OPFClassifier

    X, y = np.load(X_file), np.load(y_file)
    _warm_up(OPFClassifier().fit, X.shape[1])
    start = time.perf_counter()
    model = OPFClassifier().fit(X, y)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, **_about(model, X.shape[1])}


def _run_blocks(order: dict[str, Any], X_file: Path, y_file: Path, scratch: Path) -> dict[str, Any]:
    from distributed import Client, LocalCluster

    from popf.dask import DaskOPFClassifier

    features, block_size = order["features"], order["block_size"]
    X, y = np.load(X_file, mmap_mode="r"), np.load(y_file, mmap_mode="r")
    if order["kind"] == "out-of-core":
        model = DaskOPFClassifier(block_size=block_size, scratch=scratch)
        _warm_up(DaskOPFClassifier(block_size=1_000).fit, features)
        start = time.perf_counter()
        model.fit(X, y)
        return {"seconds": time.perf_counter() - start, **_about(model, features)}
    with (
        LocalCluster(
            n_workers=order["workers"],
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        import dask.array as da

        model = DaskOPFClassifier(client)
        _warm_up(DaskOPFClassifier(client, block_size=500).fit, features)
        lazy = da.from_array(X, chunks=(block_size or "auto", features))
        labels = da.from_array(np.array(y), chunks=lazy.chunks[0])
        start = time.perf_counter()
        model.fit(lazy, labels)
        seconds = time.perf_counter() - start
        found = _about(model, features)
        found["worker_peak_mib"] = max(client.run(_peak_mib).values())
    return {"seconds": seconds, **found}


def _about(model: Any, features: int) -> dict[str, Any]:
    import hashlib

    # Before predictions, which need memory of their own.
    peak = _peak_mib()
    new = np.random.default_rng(1).normal(size=(10_000, features))
    start = time.perf_counter()
    labels = np.asarray(model.predict(new))
    predict_seconds = time.perf_counter() - start
    parts = (model.prototypes_, model.costs_, model.predecessors_, labels)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    return {
        "predict_seconds": predict_seconds,
        "peak_mib": peak,
        "n_blocks": getattr(model, "n_blocks_", 1),
        "n_pairs": getattr(model, "n_block_pairs_", 0),
        "digest": digest.hexdigest()[:16],
    }


def _peak_mib() -> float:
    """Peak memory of this process, without what is mapped from files where the system tells."""
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--block-size", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--order", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.order:
        print(json.dumps(_run(json.loads(chosen.order))))
        return
    if not chosen.kind:
        parser.error(f"say which: one of {KINDS}")
    found = measure(chosen.kind, chosen.rows, chosen.features, chosen.block_size, chosen.workers)
    for name, value in found.items():
        print(f"{name:16} {value:.3f}" if isinstance(value, float) else f"{name:16} {value}")


if __name__ == "__main__":
    main()
