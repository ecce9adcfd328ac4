"""The client, the check of its workers, and tasks with readable names."""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from popf.dask.untyped import dask, distributed
from popf.engine.backends import Backend, backend_for
from popf.forest.parameters import n_threads_of

# What must be the same everywhere, or results might differ, or objects not be understood.
SAME = ("popf",)
# Of these the first number.
ALIKE = ("numpy", "scikit-learn", "numba")
# How long to wait for the first worker of a cluster that has none yet, in seconds.
PATIENCE = 60.0


class Tasks:
    """Tasks of one fit, under names that the dashboard shows.

    Parameters
    ----------
    client : distributed.Client
    local : bool
        Whether the client was made for this fit only.
    """

    def __init__(self, client: Any, local: bool) -> None:
        self.client = client
        self.local = local
        # A digit first: Dask takes a word without any for a part of the name.
        self._token = "0" + uuid.uuid4().hex
        self._count = 0
        self._living: WeakSet[Any] = WeakSet()

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Have `function` called on a worker; gives a future."""
        self._count += 1
        key = f"{name}-{self._token}-{self._count}"
        future = self.client.submit(function, *arguments, key=key)
        self._living.add(future)
        return future

    def submit_lazy(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """As `submit`, but arguments may be delayed; what they hold is not kept afterwards."""
        self._count += 1
        key = f"{name}-{self._token}-{self._count}"
        future = self.client.compute(dask.delayed(function)(*arguments, dask_key_name=key))
        self._living.add(future)
        return future

    def gather(self, futures: Any) -> Any:
        """Wait for results."""
        return self.client.gather(futures)

    def cancel(self) -> None:
        """Forget everything that is not done."""
        self.client.cancel(list(self._living), force=True)


@contextmanager
def tasks_on(client: Any) -> Iterator[Tasks]:
    """Connect to a cluster: the client given, the default one, or threads of this process.

    An interrupt, or any error, cancels what is under way. If the connection to the scheduler is lost,
    the error says so.
    """
    local = False
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:  # there is none
            client, local = _threads_of_this_process(), True
    elif not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a dask.distributed.Client or None, not {client!r}.")
    elif client.status != "running":
        raise ValueError(f"the client is not connected to a scheduler (it is {client.status!r}).")
    tasks = Tasks(client, local)
    try:
        if not local:
            check_workers(client)
        # Not by Dask's configuration: that travels to new workers, and a client cannot.
        with client.as_current():
            yield tasks
    except (CancelledError, distributed.comm.CommClosedError) as error:
        raise RuntimeError(
            "the connection to Dask's scheduler was lost, or the tasks were cancelled there, before the "
            "fit was done: nothing was fitted. Connect to a running cluster and fit again."
        ) from error
    except BaseException:
        if client.status == "running":
            tasks.cancel()
        raise
    finally:
        if local:
            client.close()


def _threads_of_this_process() -> Any:
    # The dashboard takes any free port. The client does not become the default one.
    return distributed.Client(
        processes=False,
        n_workers=1,
        threads_per_worker=n_threads_of(-1),
        dashboard_address=":0",
        set_as_default=False,
        silence_logs=50,
    )


def check_workers(client: Any) -> None:
    """Raise an error unless there are workers, and all have the packages that this process has."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise RuntimeError(
            f"the cluster of {client!r} has no workers, and none came within {PATIENCE:.0f} seconds: "
            "start some."
        ) from None
    versions = client.get_versions(packages=[*SAME, *ALIKE])
    mine = versions["client"]["packages"]
    for address, found in versions["workers"].items():
        theirs = found["packages"]
        for package in (*SAME, *ALIKE):
            here, there = mine.get(package), theirs.get(package)
            alike = _first_number(here) == _first_number(there)
            if not (here == there or (alike and package in ALIKE)):
                has = f"{package} {there}" if there else f"no {package}"
                raise RuntimeError(
                    f"worker {address} has {has}, but this process has {package} {here}: install "
                    "the same versions on all workers."
                )


def _first_number(version: str | None) -> str | None:
    return version and version.split(".")[0]


def check_device_of_workers(tasks: Tasks, device: str) -> None:
    """Raise an error unless all workers have the device that is asked for.

    Parameters
    ----------
    tasks : Tasks
    device : {"cpu", "cuda"}
    """
    if device == "cpu":
        return
    for address, complaint in tasks.client.run(_complain_of, device).items():
        if complaint:
            raise RuntimeError(
                f"worker {address} cannot work with device={device!r}: {complaint} All workers need "
                "one, or use device=None."
            )


def _complain_of(device: str) -> str | None:
    try:
        backend_for(device)
    except RuntimeError as error:
        return str(error)
    return None


def backend_here(device: str) -> Backend | None:
    """Give the backend of the workers' device, or None where this process has none."""
    return None if _complain_of(device) else backend_for(device)
