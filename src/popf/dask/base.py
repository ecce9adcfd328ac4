"""What both estimators share: parameters that are checked, the forest, and lazy predictions."""

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from popf.dask.blocks import StoredNodes
from popf.dask.cluster import Settings, Tasks, check_device_of_workers
from popf.dask.growing import ForestInBlocks, grow_forest
from popf.dask.partitioning import make_blocks
from popf.dask.prediction import Query, run_query
from popf.dask.sources import Source, columns_of, open_source
from popf.engine.structures import FloatArray
from popf.forest.classifier import OPFClassifier
from popf.forest.metrics import Metric, choose_metric
from popf.forest.validation import check_algorithm, choose_device, pays_on_host, resources_of

if TYPE_CHECKING:
    from typing import Self


class DaskClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The base of both estimators; `_model` makes them fitted."""

    client: Any
    block_size: int | None
    scratch: Any
    metric: Any
    metric_params: Any
    algorithm: str
    n_jobs: int | None
    working_memory: float | None
    device: str | None
    _model: ForestInBlocks

    def __sklearn_clone__(self) -> "Self":
        # A client cannot be copied: a clone works on the same cluster.
        values = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**values)

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_model") and not isinstance(self._model.nodes[0], StoredNodes):
            raise TypeError(
                f"a fitted {type(self).__name__} has its samples on the cluster, so it cannot be saved: "
                "save what .to_local() gives."
            )
        return {**super().__getstate__(), "client": None}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _forget(self) -> None:
        """Drop what an earlier fit has set, so that one that fails leaves nothing."""
        parameters = self.get_params(deep=False)
        for name in [name for name in self.__dict__ if name not in parameters]:
            del self.__dict__[name]

    def _check_classes(self, n_classes: int) -> None:
        """Raise ValueError unless the method serves so many classes."""

    def _open(self, tasks: Tasks, X: Any, y: Any, sample_weight: Any) -> tuple[Source, Settings]:
        """Check everything that can be checked before samples are read."""
        metric = _checked_metric(self.metric, self.metric_params)
        check_algorithm(self.algorithm, metric)
        lies_like = da.utils.meta_from_array(X) if isinstance(X, da.Array) else X
        device = choose_device(self.device, lies_like, metric, self.algorithm)
        check_device_of_workers(tasks, device)
        n_threads, n_bytes, _ = resources_of(self)
        size = self.block_size
        if size is not None and not (isinstance(size, int | np.integer) and size >= 1):
            raise ValueError(f"`block_size` must be None or a number of rows, not {size!r}.")
        source = open_source(X, y, sample_weight, size)
        validate_data(self, source.columns, skip_check_array=True)
        if pays_on_host(device, self.algorithm, self.n_features_in_):
            device = "cpu"
        return source, Settings(metric, self.algorithm, device, n_threads, n_bytes)

    def _fit_forest(self, tasks: Tasks, X: Any, y: Any, sample_weight: Any) -> ForestInBlocks:
        """Check everything, and grow the forest."""
        source, settings = self._open(tasks, X, y, sample_weight)
        folder = self._new_folder(tasks, source)
        blocks = make_blocks(tasks, source, settings.metric, self.block_size, folder)
        self._check_classes(len(blocks.classes))
        model = grow_forest(tasks, blocks, settings, folder)
        self.n_blocks_, self.n_block_pairs_ = len(model.nodes), model.n_pairs
        return model

    def _new_folder(self, tasks: Tasks, source: Source) -> str | None:
        """Make a folder for blocks; None to keep them on the workers."""
        if not (tasks.local or source.on_disk):
            return None
        if self.scratch is not None:
            Path(self.scratch).mkdir(parents=True, exist_ok=True)
            return tempfile.mkdtemp(prefix="popf-", dir=self.scratch)
        folder = tempfile.mkdtemp(prefix="popf-")  # lives as long as this estimator
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _run(self, query: Query, X: Any) -> Any:
        validate_data(self, columns_of(X), reset=False, skip_check_array=True)
        return run_query(query, self._model.parts(), X, self.client)

    def _plain_forest(
        self, model: ForestInBlocks, samples: FloatArray | None = None
    ) -> OPFClassifier:
        """Make the plain estimator, which cannot conquer without samples."""
        names = ("metric", "metric_params", "algorithm", "n_jobs", "working_memory", "device")
        return OPFClassifier.from_forest(
            model.to_forest(samples),
            {name: getattr(self, name) for name in names},
            model.n_features,
            model.rows,
            model.settings.device,
        )

    def _gather_samples(self) -> FloatArray:
        check_is_fitted(self)
        return self._model.gather_samples(self.client)


def _checked_metric(name: Any, params: Any) -> Metric:
    metric = choose_metric(name, params)
    if metric.precomputed:
        raise ValueError(
            "`metric='precomputed'` does not serve here: blocks of samples know no distances to others. "
            "Use popf.OPFClassifier on one machine."
        )
    if metric.learns_parameters:
        raise ValueError(
            f"metric {name!r} takes its parameters from all samples, which are never in one place "
            "here: give them by `metric_params`."
        )
    return metric
