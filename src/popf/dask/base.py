"""What both estimators share: the forest, the model's blocks, and how they are asked."""

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from popf.dask.answers import Question, ask
from popf.dask.blocks import Block, StoredNodes, concatenate, load
from popf.dask.cluster import Tasks, backend_here, check_device_of_workers
from popf.dask.growing import grow_forest_of_blocks
from popf.dask.model import Shell, make_part, with_costs
from popf.dask.partitioning import Blocks, make_blocks
from popf.dask.sources import feature_names, open_source
from popf.dask.spanning import TreeSettings
from popf.dask.untyped import delayed
from popf.forest.classifier import OPFClassifier
from popf.forest.devices import choose_device, pays_on_host
from popf.forest.metrics import Metric, choose_metric
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.forest.validation import check_algorithm, n_bytes_of, n_threads_of

if TYPE_CHECKING:
    from typing import Self

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class DaskClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the forest, the model's blocks, and how they are asked."""

    client: Any
    block_size: int | None
    scratch: Any
    metric: Any
    metric_params: Any
    algorithm: str
    n_jobs: int | None
    working_memory: float | None
    device: str | None

    def __sklearn_clone__(self) -> "Self":
        # A client cannot be copied: a clone works on the same cluster.
        values = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**values)

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_costed") and self._scratch is None:
            raise TypeError(
                f"a fitted {type(self).__name__} has its samples on the cluster, so it cannot be saved: "
                "save what .to_local() gives."
            )
        return {**super().__getstate__(), "client": None}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_costed")

    def predict(self, X: Any) -> Any:
        """Give every sample a label, lazily if X is lazy.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array or series in the partitions of X; an array or series if X is in memory
        """
        raise NotImplementedError

    def _check_classes(self, n_classes: int) -> None:
        """Raise an error unless so many classes can be told apart."""

    def _fit_forest(self, tasks: Tasks, X: Any, y: Any, sample_weight: Any) -> tuple[Shell, Blocks]:
        """Grow the forest and set what is known of it; the last step makes the estimator fitted."""
        metric = _checked_metric(self.metric, self.metric_params)
        check_algorithm(self.algorithm, metric)
        device = choose_device(self.device, getattr(X, "_meta", X), metric, self.algorithm)
        check_device_of_workers(tasks, device)
        n_threads, n_bytes = n_threads_of(self.n_jobs), n_bytes_of(self.working_memory)
        _check_block_size(self.block_size)
        source = open_source(X, y, sample_weight, self.block_size)
        if pays_on_host(device, self.algorithm, source.n_features):
            device = "cpu"
        folder = self._open_scratch(needed=tasks.local or source.on_disk)
        blocks = make_blocks(tasks, source, metric, self.block_size, folder)
        self._check_classes(len(blocks.classes))
        rows = None if metric.euclidean else metric.rows
        settings = TreeSettings(self.algorithm, n_threads, n_bytes, rows, device)
        forested = grow_forest_of_blocks(tasks, blocks, settings)
        shell = Shell(
            *(metric, blocks.classes, blocks.exponent, forested.algorithm, n_threads, n_bytes),
            device=device,
        )
        trained = tasks.gather(forested.trained)
        if folder is None:
            name, costs = "put-costs-on-block", forested.trained
            costed = [tasks.submit(name, with_costs, block, costs) for block in blocks.blocks]
        else:
            path = str(Path(folder) / "costs.npy")
            np.save(path, trained.forest.costs)
            costed = [StoredNodes(block, path) for block in blocks.blocks]
        told = tasks.gather(
            [tasks.submit("tell-classes", _without_points, block) for block in blocks.blocks]
        )
        self._codes = np.empty(len(blocks.kept), dtype=np.int64)
        self._weights = np.empty(len(blocks.kept))
        self._block_of = np.empty(len(blocks.kept), dtype=np.int64)
        for b, block in enumerate(told):
            self._codes[block.samples], self._weights[block.samples] = block.codes, block.weights
            self._block_of[block.samples] = b
        self.n_features_in_ = source.n_features
        if source.names is not None:
            self.feature_names_in_ = source.names
        self.n_blocks_, self.n_block_pairs_ = len(blocks.blocks), forested.n_pairs
        self._shell, self._new_costed = shell, costed
        self._trained, self._kept = trained, blocks.kept
        self._forest = self._plain_forest(None)
        return shell, blocks

    def _open_scratch(self, needed: bool) -> str | None:
        """Make a folder for blocks; a temporary one lives as long as this estimator."""
        self._scratch: Any = None
        if not needed:
            return None
        if self.scratch is not None:
            Path(self.scratch).mkdir(parents=True, exist_ok=True)
            self._scratch = tempfile.mkdtemp(prefix="popf-", dir=self.scratch)
            return str(self._scratch)
        self._scratch = tempfile.mkdtemp(prefix="popf-")
        weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        return str(self._scratch)

    def _forget(self) -> None:
        """Drop what an earlier fit has set, so that one that fails leaves nothing."""
        parameters = self.get_params(deep=False)
        for name in [name for name in self.__dict__ if name not in parameters]:
            del self.__dict__[name]

    def _parts(self) -> list[Any]:
        """Give delayed parts of the model: one if it is small, else one a block."""
        size = len(self._codes) * self.n_features_in_ * 8
        if size <= self._shell.n_bytes // 4:
            return [delayed(make_part)(self._shell, *self._costed)]
        return [delayed(make_part)(self._shell, costed) for costed in self._costed]

    def _ask(self, question: Question, X: Any) -> Any:
        check_is_fitted(self)
        self._check_features(X)
        return ask(question, self._parts(), X, self.client)

    def _check_features(self, X: Any) -> None:
        shape = getattr(X, "shape", None) or np.shape(X)
        if len(shape) != 2:
            raise ValueError(
                f"X must have rows and columns, but its shape is {shape}: a single sample is "
                "X.reshape(1, -1)."
            )
        names, known = feature_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and list(names) != list(known):
            raise ValueError(
                f"The feature names should match those that were passed during fit: {list(known)}, "
                f"not {list(names)}."
            )
        if shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )

    def _gather(self) -> tuple[OPFClassifier, FloatArray]:
        """Give the plain forest, and its samples."""
        client = self.client
        if any(not isinstance(c, StoredNodes) for c in self._costed):
            client = self._costed[0].client
        loaded = [load(c) for c in (client.gather(self._costed) if client else self._costed)]
        block = concatenate([block for block, _ in loaded])
        shell = self._shell
        samples = np.ldexp(block.points, shell.exponent) if shell.metric.euclidean else block.points
        return self._plain_forest(samples), samples

    def _plain_forest(self, samples: FloatArray | None) -> OPFClassifier:
        """Make the plain estimator, with or without its samples."""
        shell = self._shell
        forest = OptimumPathForest(
            *(shell.metric, self._codes, self._trained, shell.algorithm),
            exponent=shell.exponent,
            samples=samples,
            backend=None if samples is None else backend_here(shell.device),
            classes=shell.classes,
        )
        names = ("metric", "metric_params", "algorithm", "n_jobs", "working_memory", "device")
        parameters = {name: getattr(self, name) for name in names}
        return OPFClassifier.from_forest(
            forest, parameters, self.n_features_in_, self._kept, shell.device
        )


def _without_points(block: Block) -> Block:
    return block._replace(points=np.empty((0, 0)))


def _checked_metric(name: Any, params: Any) -> Metric:
    metric = choose_metric(name, params)
    if metric.precomputed:
        raise ValueError(
            "metric='precomputed' does not serve here: blocks of samples know no distances to others. "
            "Use popf.OPFClassifier on one machine."
        )
    if getattr(metric, "_learns_parameters", lambda: False)():
        raise ValueError(
            f"metric={name!r} takes its parameters from all samples, which are never in one place "
            "here: give them by metric_params."
        )
    return metric


def _check_block_size(size: Any) -> None:
    if size is not None and not (isinstance(size, int | np.integer) and size >= 1):
        raise ValueError(f"block_size must be None or a number of rows, not {size!r}.")
