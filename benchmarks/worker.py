"""Measure one job in its own process: ``python -m benchmarks.worker ORDER``.

The order, which describes the job, is a JSON object. So is every line of standard output, an event: ``start``
names the contestant that runs next, ``value`` is a measurement, ``missing`` names a contestant that is not
available, and ``failed`` one that raised an error. Thread counts are set by environment variables before any
library is imported, so only the standard library is imported at the top.
"""

import contextlib
import gc
import hashlib
import json
import os
import subprocess
import sys
import time

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class Reporter:
    """Write events, and time calls."""

    def __init__(self, stream, clock=time.perf_counter):
        self.stream, self.clock = stream, clock

    def say(self, event, **facts):
        self.stream.write(json.dumps({"event": event, **facts}) + "\n")
        self.stream.flush()

    @contextlib.contextmanager
    def contestant(self, name):
        """Report that a contestant starts, and any error it raises, so that the others can go on."""
        self.say("start", contestant=name)
        try:
            yield
        except ImportError as error:
            self.say("missing", contestant=name, reason="not available", detail=str(error))
        except Exception as error:
            self.say("failed", contestant=name, reason=type(error).__name__, detail=str(error))

    def time(self, call, contestant, operation, number):
        """Time one call, after collecting the garbage of earlier ones."""
        gc.collect()
        begin = self.clock()
        call()
        seconds = self.clock() - begin
        self.say("value", contestant=contestant, operation=operation, round=number, value=seconds)


def measure_times(order, reporter):
    """Time the contestants in turn, A B A B …, so that noise affects all of them alike."""
    from .contestants import CONTESTANTS
    from .data import DataSpec

    spec = DataSpec(**order["data"])
    data, ready = spec.make(), {}
    for name in order["contestants"]:
        with reporter.contestant(name):
            contestant = CONTESTANTS[name](order["threads"])
            contestant.warm_up(spec.shrunk().make())
            if "fit" not in order["operations"]:
                contestant.fit(data)
            ready[name] = contestant
    # Exclude the objects of the libraries from the collections before every timing.
    gc.collect()
    gc.freeze()
    for number in range(order["repeat"]):
        for name in list(ready):
            if number and name in order["once"]:
                continue
            contestant = ready.pop(name)  # put back unless it fails
            with reporter.contestant(name):
                for operation in order["operations"]:
                    if call := getattr(contestant, operation):
                        reporter.time(lambda call=call: call(data), name, operation, number)
                ready[name] = contestant


def measure_alone(order, reporter):
    """Measure time and memory of one contestant's fits, and hash its forest.

    A value is the time of a fit or a prediction in seconds. The first also has ``data`` (bytes) and ``memory``
    (peak memory of this process meanwhile, minus its memory before, with the data loaded); that of a fit has
    the contestant's own `facts`, and ``digest``, which must be the same for all contestants on the same data.
    """
    from .contestants import CONTESTANTS
    from .data import DataSpec

    (name,) = order["contestants"]
    spec = DataSpec(**order["data"])
    with reporter.contestant(name), contextlib.ExitStack() as stack:
        contestant = CONTESTANTS[name](order["threads"])
        stack.callback(contestant.close)
        contestant.warm_up(spec.shrunk().make())
        contestant.fit(spec.shrunk(5_000).make())  # some kernels need this many samples
        data = mapped(order["data"]) if contestant.from_file else spec.make()
        for number in range(1 if name in order["once"] else order["repeat"]):
            contestant.model = None
            gc.collect()
            contestant.begin()
            before = forget_peak()
            begin = reporter.clock()
            contestant.fit(data)
            facts = {"value": reporter.clock() - begin}
            if number == 0:
                facts |= {"data": data.X.nbytes, "memory": max(0, peak_bytes() - before)}
                facts |= contestant.facts()
                if hasattr(contestant.model, "predecessors_"):
                    facts["digest"] = digest(contestant.model, data.queries[:1_000])
            reporter.say("value", contestant=name, operation="fit", round=number, **facts)
            if "predict" in order["operations"] and contestant.predict:
                before = forget_peak()
                begin = reporter.clock()
                contestant.predict(data)
                facts = {"value": reporter.clock() - begin, "data": data.queries.nbytes}
                facts["memory"] = max(0, peak_bytes() - before)
                reporter.say("value", contestant=name, operation="predict", round=number, **facts)


def measure_import(order, reporter):
    """Time one import in this fresh process."""
    from .contestants import IMPORTS

    (name,) = order["contestants"]
    with reporter.contestant(name):
        reporter.time(lambda: exec(IMPORTS[name], {}), name, "import", order["round"])


def measure_first(order, reporter):
    """Time the first and the second fit and prediction of this process."""
    from .contestants import CONTESTANTS
    from .data import DataSpec

    (name,) = order["contestants"]
    data = DataSpec(**order["data"]).make()
    with reporter.contestant(name):
        contestant = CONTESTANTS[name](order["threads"])
        for number in ("first", "second"):
            for operation in ("fit", "predict"):
                call = getattr(contestant, operation)
                what = f"{order['cache']} {number} {operation}"
                reporter.time(lambda call=call: call(data), name, what, order["round"])


def mapped(data):
    """Let another process write the data to files, and memory-map them."""
    import numpy as np

    from .data import Data

    command = [sys.executable, "-m", "benchmarks.data", json.dumps(data)]
    subprocess.run(command, check=True)
    return Data(*(np.load(f"{name}.npy", mmap_mode="r") for name in Data._fields))


def digest(model, queries):
    """Hash a forest, and its labels for a few samples."""
    import numpy as np

    parts = [model.prototypes_, model.costs_, model.predecessors_]
    if len(queries):
        parts.append(model.predict(np.array(queries)))
    # All are exact in float64, whatever integer type a device uses.
    content = b"".join(np.asarray(part, dtype=np.float64).tobytes() for part in parts)
    return hashlib.sha256(content).hexdigest()[:16]


def peak_bytes():
    """Return the peak memory of this process since its start or the last `forget_peak`."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak():
    """Reset the peak memory if the system allows it, and return the current memory."""
    with contextlib.suppress(OSError):
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return peak_bytes()


MEASURES = {
    "time": measure_times,
    "alone": measure_alone,
    "import": measure_import,
    "first": measure_first,
}


if __name__ == "__main__":
    # Only events go to standard output; whatever libraries print goes to standard error.
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    order = json.loads(sys.argv[1])
    clock = time.process_time if order["processor_time"] else time.perf_counter
    MEASURES[order["kind"]](order, Reporter(events, clock))
