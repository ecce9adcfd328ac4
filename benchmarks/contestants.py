"""popf and its peers behind a common interface.

A library is imported only when its contestant is created, so a missing library only leaves its own results out.
"""

import logging

import numpy as np

POPF, GPU, TREE = "popf", "popf on a GPU", "popf tree"
POOLED, FOREST = "popf probabilities", "popf forest alone"
GPU_FOREST = "popf forest alone on a GPU"
FROM_FILE, GPU_PROCESS = "popf from a file", "popf on a process with a GPU"
SOLVERS = ("Newton", "PSO", "bat", "firefly")
PROCESSES = (2, 4, 8, 16)


class Contestant:
    """Base class: something that can be fitted, and optionally predicts.

    Attributes
    ----------
    model : object
        The result of the last fit.
    from_file : bool
        Whether the data should be memory-mapped files.
    """

    model = None
    from_file = False
    predict = None

    def fit(self, data):
        raise NotImplementedError

    def warm_up(self, data):
        """Load and compile everything that the first call would otherwise be timed with."""
        self.fit(data)
        if self.predict and len(data.queries):
            self.predict(data)

    def begin(self):
        """Prepare to measure the `facts` of the next fit."""

    def facts(self):
        """Return further measurements of the last fit, besides time and memory of this process."""
        return {}

    def close(self):
        """Release resources."""


class Estimator(Contestant):
    """A scikit-learn classifier."""

    def __init__(self, make):
        self.make = make

    def fit(self, data):
        self.model = None  # never keep two forests in memory
        self.model = self.make().fit(data.X, data.y)

    def predict(self, data):
        self.model.predict(data.queries)


class Forest(Estimator):
    """popf's forest."""

    def warm_up(self, data):
        # "auto" may choose different algorithms for small and for large data.
        for algorithm in ("auto", "kd_tree", "brute"):
            self.model = self.make().set_params(algorithm=algorithm).fit(data.X, data.y)
            if len(data.queries):
                self.predict(data)


class Probabilities(Estimator):
    """popf's probabilities."""

    def warm_up(self, data):
        # Enough samples to compile all kernels.
        copies = -(-4_000 // len(data.X))
        X, y = np.tile(data.X, (copies, 1)), np.tile(data.y % 10, copies)
        X += 0.01 * np.random.default_rng(0).standard_normal(X.shape)
        self.fit(data._replace(X=X, y=y))
        self.predict(data)

    def predict(self, data):
        self.model.predict_proba(data.queries)


class OnGPU(Estimator):
    """popf's forest on a GPU; also measures the memory on the device."""

    def begin(self):
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()

    def facts(self):
        import cupy

        # The pool never shrinks, so its size after the fit is the peak.
        return {"device_memory": int(cupy.get_default_memory_pool().total_bytes())}


class SpanningTree(Contestant):
    """quitefastmst: the spanning tree alone."""

    def __init__(self, threads, algorithm):
        import quitefastmst

        quitefastmst.omp_set_num_threads(threads)
        self.tree, self.algorithm = quitefastmst.mst_euclid, algorithm

    def fit(self, data):
        self.tree(data.X, algorithm=self.algorithm)


class PopfTree(Contestant):
    """popf's spanning tree, without labels."""

    def __init__(self, threads):
        from popf import minimum_spanning_tree

        self.tree, self.threads = minimum_spanning_tree, threads

    def fit(self, data):
        self.tree(data.X, n_jobs=self.threads)

    def warm_up(self, data):
        # "auto" may choose different algorithms for small and for large data.
        for algorithm in ("auto", "kd_tree", "brute"):
            self.tree(data.X, algorithm=algorithm)


class FastHDBSCANTree(Contestant):
    """fast_hdbscan's spanning tree; with `min_samples=1` it uses plain distances."""

    def __init__(self, _threads):
        from fast_hdbscan.hdbscan import compute_minimum_spanning_tree

        self.tree = compute_minimum_spanning_tree

    def fit(self, data):
        self.tree(data.X, min_samples=1)


class SciPyLinkage(Contestant):
    """SciPy's single linkage, which computes a spanning tree from all distances."""

    def __init__(self, _threads):
        from scipy.cluster.hierarchy import linkage

        self.linkage = linkage

    def fit(self, data):
        self.linkage(data.X, "single")


class OPFython(Contestant):
    """opfython's supervised forest; its default metric gives the same labels as the Euclidean."""

    def __init__(self):
        logging.disable(logging.CRITICAL)  # it logs every step
        from opfython.models import SupervisedOPF

        self.make = SupervisedOPF

    def fit(self, data):
        self.model = self.make()
        self.model.fit(data.X, data.y + 1)  # its classes start at 1

    def predict(self, data):
        self.model.predict(data.queries)


class Solver(Contestant):
    """A solver of Platt's objective, with the first feature as scores."""

    def __init__(self, name):
        from popf import paper

        self.solver = getattr(paper, name if name in ("Newton", "PSO") else name.capitalize())()

    def fit(self, data):
        from popf.paper import PlattObjective, platt_targets

        objective = PlattObjective(data.X[:, 0], platt_targets(data.y))
        self.solver.minimize(objective, random_state=0)


def check_gpu():
    """Raise ImportError unless there is a GPU that CuPy can use."""
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise ImportError(f"no GPU: {error}") from error


def popf_forest(kind, threads, device=None):
    from popf import OPFClassifier

    if device:
        check_gpu()
    return kind(lambda: OPFClassifier(n_jobs=threads, device=device))


def probabilities(threads, *method, **settings):
    from popf import POPFClassifier

    if "device" in settings:
        check_gpu()
    return Probabilities(lambda: POPFClassifier(*method, n_jobs=threads, **settings))


def neighbours(k, threads):
    from sklearn.neighbors import KNeighborsClassifier

    return Estimator(lambda: KNeighborsClassifier(k, n_jobs=threads))


def out_of_core(_threads):
    from .cluster import OutOfCore

    return OutOfCore()


def on_processes(n_workers, device=None):
    from .cluster import OnProcesses

    if device:
        check_gpu()
    return OnProcesses(n_workers, device)


#: Functions that create a contestant for a number of threads; ImportError if it is not available.
CONTESTANTS = {
    POPF: lambda threads: popf_forest(Forest, threads),
    GPU: lambda threads: popf_forest(OnGPU, threads, "cuda"),
    POOLED: probabilities,
    FOREST: lambda threads: probabilities(threads, "forest"),
    GPU_FOREST: lambda threads: probabilities(threads, "forest", device="cuda"),
    FROM_FILE: out_of_core,
    GPU_PROCESS: lambda _: on_processes(1, "cuda"),
    **{f"popf on {k} processes": lambda _, k=k: on_processes(k) for k in PROCESSES},
    **{name: lambda _, name=name: Solver(name) for name in SOLVERS},
    "quitefastmst": lambda threads: SpanningTree(threads, "auto"),
    "quitefastmst brute": lambda threads: SpanningTree(threads, "brute"),
    TREE: PopfTree,
    "fast_hdbscan": FastHDBSCANTree,
    "SciPy": SciPyLinkage,
    "opfython": lambda _: OPFython(),
    "1-NN": lambda threads: neighbours(1, threads),
    "5-NN": lambda threads: neighbours(5, threads),
}

#: Imports that the suite `start` times in a fresh process.
IMPORTS = {
    POPF: "from popf import OPFClassifier",
    "scikit-learn": "import sklearn",
    "scikit-learn's KNN": "from sklearn.neighbors import KNeighborsClassifier",
}
