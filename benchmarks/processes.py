"""Worker processes: starting them, listening to them, ending those that take too long."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import IO, Any

from .results import ROOT


class TimeLimitError(Exception):
    """A contestant passed the time limit."""

    def __init__(self, contestant: str) -> None:
        super().__init__(contestant)
        self.contestant = contestant


class WorkerDiedError(Exception):
    """A worker ended before it had said so."""

    def __init__(self, contestant: str, detail: str) -> None:
        super().__init__(detail)
        self.contestant = contestant


class Workers:
    """Answers orders by worker processes.

    Parameters
    ----------
    limit : float
        Seconds after which a silent worker is stopped.
    share : bool
        Whether one process may answer several orders to time something, memory as a trial included.
        Otherwise every order gets a fresh one. Orders of other kinds always do: they measure the process
        itself.
    """

    def __init__(self, limit: float, share: bool = False) -> None:
        self.limit = limit
        self._share = share
        self._worker: _Worker | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker that was kept, if there is one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def ask(self, order: dict[str, Any], environment: dict[str, str]) -> Iterator[dict[str, Any]]:
        """Give `order` to a worker and pass on its events.

        Raises
        ------
        TimeLimitError
            If nothing was heard for `limit` seconds.
        WorkerDiedError
            If the process ended before the order was done.
        """
        keep = self._share and order["kind"] in ("time", "fit")
        if not keep or (self._worker is not None and self._worker.environment != environment):
            self.close()
        if self._worker is None:
            self._worker = _Worker(environment)
        done = False
        try:
            yield from self._worker.answer(order, self.limit)
            done = True
        finally:
            if not (keep and done):
                self.close()


class _Worker:
    """One process, and a thread that reads what it says."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self._lines: queue.Queue[str | None] = queue.Queue()
        # A folder of its own: opfython leaves a log where it runs.
        self._folder = tempfile.TemporaryDirectory(prefix="benchmark-")
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed in `close`)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            cwd=self._folder.name,
            env={**os.environ, **environment, "PYTHONPATH": path},
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(
            target=_read, args=(self._process.stdout, self._lines), daemon=True
        )
        self._reader.start()

    def answer(self, order: dict[str, Any], limit: float) -> Iterator[dict[str, Any]]:
        """Send `order`, then yield events until it is done."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        current = order["contestants"][0]
        while True:
            try:
                line = self._lines.get(timeout=limit)
            except queue.Empty:
                raise TimeLimitError(current) from None
            if line is None:
                self._complaints.seek(0)
                raise WorkerDiedError(current, self._complaints.read()[-2000:])
            event = json.loads(line)
            if event["event"] == "end":
                return
            current = event["contestant"]
            yield event

    def close(self) -> None:
        """End the process and clear up after it."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._complaints):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._folder.cleanup()


def _read(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    """Pass on the lines of `stream`, and None at its end."""
    for line in stream:
        lines.put(line)
    lines.put(None)
