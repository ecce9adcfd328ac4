"""A worker: a process that measures, and says so line by line.

The runner writes orders to its standard input and reads events from its standard output, each one
JSON object a line:

- ``prepare``: a contestant warms up or fits, untimed;
- ``begin`` and ``value``: a measurement starts, and what it gave (seconds, or bytes);
- ``missing``: a contestant is not installed; ``failed``: it raised. Of both the ``reason`` is kept
  in the results, the ``detail``, which may hold paths, is only shown;
- ``end``: the order is done.

Thread counts come through the environment, before any library is imported, which is why nothing
but the standard library is imported at the top.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from .contestants import Contestant
    from .data import Data

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class Reporter:
    """Writes events, and times calls between two of them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, event: str, **facts: Any) -> None:
        self._stream.write(json.dumps({"event": event, **facts}) + "\n")
        self._stream.flush()

    def fail(self, contestant: str, error: Exception) -> None:
        event, reason = "failed", type(error).__name__
        if isinstance(error, ImportError):
            # A library that is there but has no device to run on is missing as well.
            installed = not isinstance(error, ModuleNotFoundError)
            event, reason = "missing", "not available" if installed else "not installed"
        self.say(event, contestant=contestant, reason=reason, detail=str(error))

    def time(self, call: Callable[[], object], **facts: Any) -> None:
        """Time one call. Garbage of the one before is not its debt."""
        gc.collect()
        self.say("begin", **facts)
        begin = time.perf_counter()
        call()
        self.say("value", value=time.perf_counter() - begin, **facts)


def prepared(
    order: dict[str, Any], reporter: Reporter, warm_up: bool = True
) -> tuple[Data, dict[str, Contestant]]:
    """Make the data and the contestants, and warm them up; those that fail are reported."""
    from .contestants import CONTESTANTS
    from .data import DataSpec, make, small

    spec = DataSpec(**order["data"])
    data = make(spec)
    contestants = {}
    for name in order["contestants"]:
        reporter.say("prepare", contestant=name)
        try:
            contestant = CONTESTANTS[name](order["threads"])
            if warm_up:
                contestant.warm_up(make(small(spec)))
        except Exception as error:  # whatever a peer raises must not end the others' run
            reporter.fail(name, error)
        else:
            contestants[name] = contestant
    # What the libraries hold need not be looked through again before every timing.
    gc.collect()
    gc.freeze()
    return data, contestants


def measure_times(order: dict[str, Any], reporter: Reporter) -> None:
    """Time the contestants in turn, A B A B …, so that noise hits all of them alike."""
    data, contestants = prepared(order, reporter)
    fitted: set[str] = set()
    for number in range(order["repeat"]):
        for name in list(contestants):
            if number and name in order["once"]:
                continue
            contestant = contestants[name]
            try:
                if "fit" not in order["operations"] and name not in fitted:
                    reporter.say("prepare", contestant=name)
                    contestant.fit(data)
                    fitted.add(name)
                for operation in order["operations"]:
                    if operation in contestant.operations:
                        call = getattr(contestant, operation)
                        facts = {"contestant": name, "operation": operation, "round": number}
                        reporter.time(lambda call=call: call(data), **facts)  # type: ignore[misc]
            except Exception as error:
                reporter.fail(name, error)
                del contestants[name]


def measure_memory(order: dict[str, Any], reporter: Reporter) -> None:
    """Measure the high-water mark of a fit, above what was resident once the data was there."""
    from .memory import peak_bytes, resident_bytes

    data, contestants = prepared(order, reporter)
    for name, contestant in contestants.items():
        facts = {"contestant": name, "operation": "fit", "round": 0}
        gc.collect()
        before = resident_bytes()
        reporter.say("begin", **facts)
        contestant.fit(data)
        reporter.say("value", value=peak_bytes() - before, data=data.X.nbytes, **facts)


def measure_import(order: dict[str, Any], reporter: Reporter) -> None:
    """Time one import in this fresh process."""
    from .contestants import IMPORTS

    (name,) = order["contestants"]
    facts = {"contestant": name, "operation": "import", "round": order["round"]}
    try:
        reporter.time(lambda: exec(IMPORTS[name], {}), **facts)
    except Exception as error:
        reporter.fail(name, error)


def measure_first(order: dict[str, Any], reporter: Reporter) -> None:
    """Time the first and the second fit and prediction of this process."""
    data, contestants = prepared(order, reporter, warm_up=False)
    for name, contestant in contestants.items():
        for number in ("first", "second"):
            for operation in ("fit", "predict"):
                facts = {
                    "contestant": name,
                    "operation": f"{order['cache']} {number} {operation}",
                    "round": order["round"],
                }
                call = getattr(contestant, operation)
                reporter.time(lambda call=call: call(data), **facts)  # type: ignore[misc]


def measure_fits(order: dict[str, Any], reporter: Reporter) -> None:
    """Measure the time and the memory of a fit, and digest the forest."""
    from . import fits

    fits.measure_fits(order, reporter)


MEASURES: dict[str, Callable[[dict[str, Any], Reporter], None]] = {
    "time": measure_times,
    "memory": measure_memory,
    "fit": measure_fits,
    "import": measure_import,
    "first": measure_first,
}


def main() -> None:
    """Read orders, one a line, until there are no more; measure and report each."""
    # Ctrl-C is for the runner, which ends the worker.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries may print; the events keep standard output to themselves.
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    reporter = Reporter(events)
    for line in sys.stdin:
        order = json.loads(line)
        MEASURES[order["kind"]](order, reporter)
        reporter.say("end")


if __name__ == "__main__":
    main()
