"""Connect to a cluster, check its workers, and submit tasks with readable names."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakSet

import dask
import distributed

from popf.engine.structures import Backend, Resources
from popf.forest.metrics import Metric
from popf.forest.validation import backend_for, n_threads_of

# Packages that the workers must have: popf in the same version as this process, others in the same major
# version.
PACKAGES = ("popf", "numpy", "scikit-learn", "numba")
# Seconds to wait for the first worker of a cluster that has none yet.
WORKER_TIMEOUT = 60.0


class Settings(NamedTuple):
    """Settings of all tasks of a fit."""

    metric: Metric
    algorithm: str
    device: str  # of the workers
    n_threads: int  # per task
    n_bytes: int  # memory for blocks of distances
    block_size: int | None = None  # rows per block, None for those of the largest chunk
    exponent: int = 0  # all samples are divided by 2**exponent
    n_classes: int = 0

    @property
    def resources(self) -> Resources:
        """Resources of a task on the worker where it runs."""
        return Resources(self.n_threads, self.n_bytes, backend_for(self.device))


class Tasks:
    """Tasks of one fit, named for the dashboard; a `local` client exists for this fit only."""

    def __init__(self, client: Any, local: bool) -> None:
        self.client = client
        self.local = local
        self._living: WeakSet[Any] = WeakSet()

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on a worker, which reads arguments that are on disk; return a future."""
        future = self.client.submit(call_with_loaded, function, *arguments, key=_key(name))
        self._living.add(future)
        return future

    def submit_lazy(
        self, name: str, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
    ) -> list[Any]:
        """Call a function with arguments that may be delayed and are not kept afterwards; return futures."""
        # As one graph, because each chunk carries the graph of the whole collection.
        lazy = [dask.delayed(function)(*each, dask_key_name=_key(name)) for each in calls]
        futures: list[Any] = self.client.compute(lazy)
        self._living.update(futures)
        return futures

    def map(
        self, name: str, function: Callable[..., Any], values: Iterable[Any], *more: Any
    ) -> list[Any]:
        """Call a function with each of some values and the common arguments `more`; wait for the results."""
        return list(self.gather([self.submit(name, function, value, *more) for value in values]))

    def gather(self, futures: Any) -> Any:
        """Wait for the results of futures."""
        return self.client.gather(futures)

    def cancel(self) -> None:
        """Cancel all tasks that are not done."""
        self.client.cancel(list(self._living), force=True)


def _key(name: str) -> str:
    # Dask shows the key up to the first part that is not all letters; the digit makes sure that it is this one.
    return f"{name}-0{uuid.uuid4().hex}"


def load(value: Any) -> Any:
    """Load a value on disk, recognised by its method `load`, into memory; return any other value unchanged."""
    return value.load() if hasattr(value, "load") else value


def call_with_loaded(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, after loading arguments that are on disk."""
    return function(*map(load, arguments))


@contextmanager
def tasks_on(client: Any) -> Iterator[Tasks]:
    """Connect to a cluster: the client given, the default one, or threads of this process.

    An interrupt, or any error, cancels unfinished tasks.
    """
    local = False
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:  # there is none
            client, local = _threads_of_this_process(), True
    elif not isinstance(client, distributed.Client):
        raise TypeError(f"`client` must be a dask.distributed.Client or None, not {client!r}.")
    elif client.status != "running":
        raise ValueError(f"the client is not connected to a scheduler (status {client.status!r}).")
    tasks = Tasks(client, local)
    try:
        if not local:
            _check_workers(client)
        # Not set in Dask's configuration, which is sent to new workers: a client cannot be sent.
        with client.as_current():
            yield tasks
    except (CancelledError, distributed.comm.CommClosedError) as error:
        raise RuntimeError(
            "the connection to Dask's scheduler was lost, or the tasks were cancelled there, before the "
            "fit was complete: nothing was fitted. Connect to a running cluster and fit again."
        ) from error
    except BaseException:
        if client.status == "running":
            tasks.cancel()
        raise
    finally:
        if local:
            client.close()


def _threads_of_this_process() -> Any:
    # The dashboard uses any free port. The client does not become the default one.
    return distributed.Client(
        processes=False,
        n_workers=1,
        threads_per_worker=n_threads_of(-1),
        dashboard_address=":0",
        set_as_default=False,
        silence_logs=50,
    )


def _check_workers(client: Any) -> None:
    """Raise RuntimeError unless there are workers, with package versions that match this process."""
    try:
        client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
    except TimeoutError:
        raise RuntimeError(
            f"the cluster of {client!r} has no workers, and none joined within {WORKER_TIMEOUT:.0f} seconds: "
            "start some."
        ) from None
    versions = client.get_versions(packages=list(PACKAGES))
    mine = versions["client"]["packages"]
    for address, found in versions["workers"].items():
        for package in PACKAGES:
            here, there = mine.get(package), found["packages"].get(package)
            n_parts = None if package == "popf" else 1
            if str(here).split(".")[:n_parts] != str(there).split(".")[:n_parts]:
                has = f"{package} {there}" if there else f"no {package}"
                raise RuntimeError(
                    f"worker {address} has {has}, but this process has {package} {here}: install "
                    "the same versions on all workers."
                )


def check_device_of_workers(tasks: Tasks, device: str) -> None:
    """Raise RuntimeError unless all workers have the requested device."""
    if device == "cpu":
        return
    for address, problem in tasks.client.run(_device_problem, device).items():
        if problem:
            raise RuntimeError(
                f"worker {address} cannot use `device={device!r}`: {problem} All workers need this device; "
                "otherwise use `device=None`."
            )


def _device_problem(device: str) -> str | None:
    try:
        backend_for(device)
    except RuntimeError as error:
        return str(error)
    return None


def backend_here(device: str) -> Backend | None:
    """Return the backend of the workers' device, None if this process has no such device."""
    return None if _device_problem(device) else backend_for(device)
