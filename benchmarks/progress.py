"""What a person sees while the benchmarks run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from .results import Results
from .tasks import Task


class Progress:
    """A bar where there is a terminal and tqdm, and one line a task in any case.

    Parameters
    ----------
    tasks : list of Task
        All that will be run, which sets the length of the bar.
    report : callable
        Makes the line of a finished task: ``report(task, results)``.
    """

    def __init__(self, tasks: list[Task], report: Callable[[Task, Results], str]) -> None:
        self._report = report
        self._bar = None
        self._done = 0
        if sys.stderr.isatty():
            with contextlib.suppress(ImportError):
                from tqdm import tqdm

                total = sum(map(expected, tasks))
                layout = "{percentage:3.0f}% |{bar:20}| {n}/{total} [{elapsed}] {postfix}"
                self._bar = tqdm(total=total, bar_format=layout, leave=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)

    def show(self, text: str) -> None:
        """Say what is running now."""
        if self._bar is not None:
            self._bar.set_postfix_str(text)

    def step(self) -> None:
        """One more value."""
        if self._bar is not None:
            self._bar.update(1)

    def finished(self, task: Task, results: Results) -> None:
        """One more task; missing contestants leave no gap in the bar."""
        self._done += expected(task)
        if self._bar is not None:
            self._bar.n = self._done
            self._bar.refresh()
        self.say(self._report(task, results))


def expected(task: Task) -> int:
    """Count the values `task` should give, to know how long the bar is."""
    if task.kind == "first":
        return 4 * (1 + task.repeat)
    rounds = sum(1 if name in task.once else task.repeat for name in task.contestants)
    return rounds * len(task.operations)
