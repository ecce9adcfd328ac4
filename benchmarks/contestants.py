"""The contestants: popf and its peers behind one small interface.

Every library is imported only when its contestant is made, so that a missing peer costs no more
than its column, and so that a worker measures nothing but what it was asked to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .memory import empty_pool, pool_bytes

if TYPE_CHECKING:
    from .data import Data

POPF = "popf"
SOFT, LABELS, GPU = "popf soft", "popf labels", "popf on a GPU"
FROM_FILE, GPU_PROCESS = "popf from a file", "popf on a process with a GPU"
UNDER_FIRE = "popf on 3 processes, 2 killed"
SOLVERS = ("Newton", "PSO", "bat", "firefly")
PROCESSES = (2, 4, 8, 16)
WARM_SAMPLES = 8_000


class Contestant:
    """Something that can be fitted and perhaps asked for predictions.

    Attributes
    ----------
    operations : tuple of str
        What can be timed, out of ``"fit"`` and ``"predict"``.
    from_file : bool
        Whether the data of a measured fit shall be memory maps.
    model : object
        What the last fit made, where that can be looked at.
    """

    operations: tuple[str, ...] = ("fit", "predict")
    from_file = False
    model: Any = None

    def warm_up(self, data: Data) -> None:
        """Load and compile whatever the first call would otherwise pay for."""
        self.fit(data)
        if "predict" in self.operations and len(data.queries):
            self.predict(data)

    def fit(self, data: Data) -> None:
        raise NotImplementedError

    def predict(self, data: Data) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        """Prepare to tell the `facts` of the next fit."""

    def facts(self) -> dict[str, Any]:
        """Tell what the last fit took beside time and memory of this process."""
        return {}

    def close(self) -> None:
        """Give back what it holds."""


class _Estimator(Contestant):
    """A scikit-learn classifier."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self.model = make()

    def fit(self, data: Data) -> None:
        self.model = self._make()
        self.model.fit(data.X, data.y)

    def predict(self, data: Data) -> None:
        self.model.predict(data.queries)


class _POPF(_Estimator):
    """popf's forest."""

    def warm_up(self, data: Data) -> None:
        # `auto` may choose otherwise for the small data than for the large.
        for algorithm in ("auto", "kd_tree", "brute"):
            self.model = self._make(algorithm=algorithm).fit(data.X, data.y)
            if len(data.queries):
                self.model.predict(data.queries)


class _SpanningTree(Contestant):
    """quitefastmst: the spanning tree alone, so neither prototypes nor costs nor prediction."""

    operations = ("fit",)

    def __init__(self, threads: int, algorithm: str) -> None:
        import quitefastmst

        quitefastmst.omp_set_num_threads(threads)
        self._tree = quitefastmst.mst_euclid
        self._algorithm = algorithm

    def fit(self, data: Data) -> None:
        self._tree(data.X, algorithm=self._algorithm)


class _OPFython(Contestant):
    """opfython's supervised forest; it knows no threads."""

    def __init__(self) -> None:
        logging.disable(logging.CRITICAL)  # it reports every step, prototypes included
        from opfython.models import SupervisedOPF

        self._make = SupervisedOPF

    def fit(self, data: Data) -> None:
        # Its default metric is an increasing function of the Euclidean, so the labels are the same.
        model = self._make()
        model.fit(data.X, data.y + 1)  # classes count from 1 there
        self.model = model

    def predict(self, data: Data) -> None:
        self.model.predict(data.queries)


class _Labels(_POPF):
    """The forest: a fit, and one prediction of the training set; then predictions."""

    def fit(self, data: Data) -> None:
        super().fit(data)
        self.model.predict(data.X)


class _Soft(_Estimator):
    """popf's probabilities by the soft method."""

    def warm_up(self, data: Data) -> None:
        # Enough samples for every way in which they are summed, each with itself left out.
        rng = np.random.default_rng(0)
        copies = -(-WARM_SAMPLES // len(data.X))
        X, y = np.tile(data.X, (copies, 1)), np.tile(data.y, copies)
        X += 0.01 * rng.standard_normal(X.shape)
        self.model = self._make().fit(X, y)
        self.model.predict_proba(data.queries)

    def predict(self, data: Data) -> None:
        self.model.predict_proba(data.queries)


class _Device(_Estimator):
    """popf's forest on a GPU, with the memory that it takes there."""

    def begin(self) -> None:
        empty_pool()

    def facts(self) -> dict[str, Any]:
        import cupy

        name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["name"]
        return {"device_memory": pool_bytes(), "device": name.decode()}


class _Solver(Contestant):
    """A solver of Platt's objective, on the first feature as scores."""

    operations = ("fit",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def fit(self, data: Data) -> None:
        from popf.solvers import PlattObjective, platt_targets

        objective = PlattObjective(data.X[:, 0], platt_targets(data.y))
        self._make().minimize(objective, ((-10.0, 10.0), (-10.0, 10.0)), 0)


def _solver(name: str) -> Callable[[int], Contestant]:
    def make(_threads: int) -> Contestant:
        from popf.solvers.by_name import solver_of

        return _Solver(lambda: solver_of(name.lower()))

    return make


def _soft(threads: int) -> Contestant:
    from popf import POPFClassifier

    return _Soft(lambda: POPFClassifier(n_jobs=threads, random_state=0))


def _labels(threads: int) -> Contestant:
    from popf import OPFClassifier

    return _Labels(lambda **settings: OPFClassifier(n_jobs=threads, **settings))


def check_gpu() -> None:
    """Raise an ImportError unless there is a GPU to run on."""
    from popf.engine.gpu.cuda import DeviceError, cuda_kernels

    try:
        cuda_kernels()
    except DeviceError as error:
        raise ImportError(str(error)) from error


def _gpu(threads: int) -> Contestant:
    from popf import OPFClassifier

    check_gpu()
    return _Device(lambda: OPFClassifier(n_jobs=threads, device="cuda"))


def _popf(threads: int) -> Contestant:
    from popf import OPFClassifier

    return _POPF(lambda **settings: OPFClassifier(n_jobs=threads, **settings))


def on_processes(n_workers: int) -> str:
    """Name the contestant on a local cluster of so many processes."""
    return f"popf on {n_workers} processes"


def _on_processes(n_workers: int) -> Callable[[int], Contestant]:
    def make(_threads: int) -> Contestant:
        from .blocks import OnProcesses

        return OnProcesses(n_workers)

    return make


def _gpu_process(_threads: int) -> Contestant:
    from .blocks import OnProcesses

    check_gpu()
    return OnProcesses(1, "cuda")


def _under_fire(_threads: int) -> Contestant:
    from .blocks import UnderFire

    return UnderFire()


def _from_file(_threads: int) -> Contestant:
    from .blocks import OutOfCore

    return OutOfCore()


def _nearest_neighbours(k: int) -> Callable[[int], Contestant]:
    def make(threads: int) -> Contestant:
        from sklearn.neighbors import KNeighborsClassifier

        return _Estimator(lambda: KNeighborsClassifier(k, algorithm="auto", n_jobs=threads))

    return make


CONTESTANTS: dict[str, Callable[[int], Contestant]] = {
    POPF: _popf,
    SOFT: _soft,
    LABELS: _labels,
    GPU: _gpu,
    FROM_FILE: _from_file,
    GPU_PROCESS: _gpu_process,
    UNDER_FIRE: _under_fire,
    **{on_processes(k): _on_processes(k) for k in PROCESSES},
    **{name: _solver(name) for name in SOLVERS},
    "quitefastmst": lambda threads: _SpanningTree(threads, "auto"),
    "quitefastmst brute": lambda threads: _SpanningTree(threads, "brute"),
    "opfython": lambda _threads: _OPFython(),
    "1-NN": _nearest_neighbours(1),
    "5-NN": _nearest_neighbours(5),
}

IMPORTS: dict[str, str] = {
    POPF: "from popf import OPFClassifier",
    "scikit-learn": "import sklearn",
    "scikit-learn's KNN": "from sklearn.neighbors import KNeighborsClassifier",
}
"""What the suite `start` imports in a fresh process."""
