"""One fit in a process of its own: its time, its memory, and a digest of its forest."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .contestants import CONTESTANTS, Contestant
from .data import Data, DataSpec, make, small
from .memory import forget_peak, peak_bytes

if TYPE_CHECKING:
    from .worker import Reporter

WARM_SAMPLES = 5_000
PREDICTED = 1_000


def measure_fits(order: dict[str, Any], reporter: Reporter) -> None:
    """Measure the contestant of an order.

    A value of ``"fit"`` is its seconds. With the first come ``data`` (bytes), ``memory`` (the most that this
    process held during the fit, beyond what it held before it with the data there), what the
    contestant tells of itself (`Contestant.facts`), and ``digest``.
    """
    (name,) = order["contestants"]
    spec = DataSpec(**order["data"])
    reporter.say("prepare", contestant=name)
    with contextlib.ExitStack() as stack:
        try:
            contestant = CONTESTANTS[name](order["threads"])
            stack.callback(contestant.close)
            contestant.warm_up(make(small(spec)))
            # Some kernels are not met below a few thousand samples.
            contestant.fit(make(small(spec, WARM_SAMPLES)))
            data = mapped(spec) if contestant.from_file else make(spec)
            for number in range(1 if name in order["once"] else order["repeat"]):
                contestant.model = None
                gc.collect()
                measure_fit(contestant, data, name, number, reporter)
                if "predict" in order["operations"] and "predict" in contestant.operations:
                    facts = {"contestant": name, "operation": "predict", "round": number}
                    reporter.time(lambda: contestant.predict(data), **facts)
        except Exception as error:  # whatever one raises must not end the others' run
            reporter.fail(name, error)


def measure_fit(
    contestant: Contestant, data: Data, name: str, number: int, reporter: Reporter
) -> None:
    """Measure one fit, and what it leaves in memory if it is the first."""
    facts: dict[str, Any] = {"contestant": name, "operation": "fit", "round": number}
    reporter.say("begin", **facts)
    contestant.begin()
    before = forget_peak()
    begin = time.perf_counter()
    contestant.fit(data)
    facts["value"] = time.perf_counter() - begin
    if number == 0:
        facts["data"] = data.X.nbytes
        facts["memory"] = max(0, peak_bytes() - before)
        facts |= contestant.facts()
        facts["digest"] = digest(contestant.model, data.queries[:PREDICTED])
    reporter.say("value", **facts)


def digest(model: Any, queries: Any) -> str:
    """Digest what a forest is, and what it says of a few samples."""
    parts = [model.prototypes_, model.costs_, model.predecessors_]
    if len(queries):
        parts.append(model.predict(np.array(queries)))
    # All are exact in float64, whatever type of integer a device prefers.
    content = b"".join(np.asarray(part, dtype=np.float64).tobytes() for part in parts)
    return hashlib.sha256(content).hexdigest()[:16]


def mapped(spec: DataSpec) -> Data:
    """Have the data written to files, and map them.

    Another process makes them, so that they never count as memory of this one.
    """
    command = [sys.executable, "-m", "benchmarks.fits", json.dumps(asdict(spec))]
    subprocess.run(command, check=True)
    return Data(*(np.load(f"{field}.npy", mmap_mode="r") for field in Data._fields))


def write(spec: DataSpec, folder: Path) -> None:
    """Write the data of `spec` to files in `folder`."""
    for field, array in make(spec)._asdict().items():
        np.save(folder / f"{field}.npy", array)


if __name__ == "__main__":
    # Here: a worker runs in a folder of its own, which is removed with it.
    write(DataSpec(**json.loads(sys.argv[1])), Path())
