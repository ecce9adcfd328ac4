"""`DaskOPFClassifier`, and the base class that it shares with `DaskPOPFClassifier`."""

import shutil
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from popf.dask.blocks import StoredCosts, make_blocks
from popf.dask.cluster import Settings, Tasks, check_device_of_workers, tasks_on
from popf.dask.growing import ForestInBlocks, grow_forest
from popf.dask.prediction import Part, Query, cheapest, first_of, run_query
from popf.dask.sources import Source, columns_of, open_source
from popf.engine.structures import FloatArray
from popf.forest.classifier import OPFClassifier
from popf.forest.metrics import choose_metric
from popf.forest.optimum_path_forest import class_margins
from popf.forest.validation import check_algorithm, choose_device, processor_is_faster, resources_of
from popf.formatting import check_integer


class DaskClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of both estimators, which are fitted once they have a `_model`."""

    _model: ForestInBlocks
    #: Deletes the folder of the blocks, when called or when this estimator is deleted.
    _delete_folder: Any = None

    def __sklearn_clone__(self) -> Self:
        # A client cannot be copied, so a clone uses the same one.
        values = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**values)

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_model") and (
            self.scratch is None or not isinstance(self._model.costs, StoredCosts)
        ):
            raise TypeError(
                f"a fitted {type(self).__name__} has its samples on the cluster or in a temporary folder, so "
                "it cannot be pickled: save the result of .to_local() instead."
            )
        state = {**super().__getstate__(), "client": None}
        if state.pop("_delete_folder", None) is not None:
            self._delete_folder.detach()  # the copy needs the folder, too
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples that are never gathered in one process.

        Parameters
        ----------
        X : Dask array or dataframe, memory map, array-like, or path
            Training samples. A path leads to a ``.npy`` file or to a folder of Parquet files.
        y : Dask array or series, array-like, or str
            Labels; the name of their column if X is a Parquet folder.
        sample_weight : as y, default=None
            A weight of zero leaves a sample out. For probabilities, a sample of weight 2 counts as two.

        Returns
        -------
        self : DaskOPFClassifier
        """
        return self._fit_on_cluster(X, y, sample_weight)

    def _fit_on_cluster(self, *data: Any) -> Self:
        """Connect to the cluster and fit; `data` are the arguments of `fit`."""
        parameters = self.get_params(deep=False)
        self._forget_folder()
        for name in [name for name in vars(self) if name not in parameters]:
            delattr(self, name)  # a failed fit leaves nothing of an earlier one
        try:
            with tasks_on(self.client) as tasks:
                model = self._fit(tasks, *data)
        except BaseException:
            self._forget_folder()
            raise
        self.classes_ = model.samples.classes
        self.n_blocks_, self.n_block_pairs_ = len(model.samples.blocks), model.n_pairs
        self._model = model  # last: see __sklearn_is_fitted__
        return self

    @abstractmethod
    def _fit(self, tasks: Tasks, *data: Any) -> ForestInBlocks:
        """Grow the forest, and set the attributes specific to this estimator."""

    def _open(
        self, tasks: Tasks, X: Any, y: Any, sample_weight: Any, groups: Any = None
    ) -> tuple[Source, Settings]:
        """Open the data, after checking everything that can be checked before samples are read."""
        metric = choose_metric(self.metric, self.metric_params)
        if metric.precomputed:
            raise ValueError(
                "`metric='precomputed'` is not supported here: distances between blocks are computed from "
                "samples. Use popf.OPFClassifier on one machine."
            )
        if metric.learns_parameters:
            raise ValueError(
                f"metric {self.metric!r} computes its parameters from all samples, which are never in one "
                "process here: pass them as `metric_params`."
            )
        check_algorithm(self.algorithm, metric)
        like = da.utils.meta_from_array(X) if isinstance(X, da.Array) else X
        device = choose_device(self.device, like, metric, self.algorithm)
        check_device_of_workers(tasks, device)
        n_threads, n_bytes, _ = resources_of(self)
        if self.block_size is not None:
            check_integer("`block_size`", self.block_size, 1, ", or None")
        source = open_source(X, y, sample_weight, groups, self.block_size)
        validate_data(self, source.columns, skip_check_array=True)
        if processor_is_faster(device, self.algorithm, self.n_features_in_):
            device = "cpu"
        if tasks.local or isinstance(X, str | Path | np.memmap):  # samples need not stay in memory
            source = source._replace(folder=self._new_folder())
        settings = Settings(metric, self.algorithm, device, n_threads, n_bytes, self.block_size)
        return source, settings

    def _new_folder(self) -> str:
        """Create a folder for blocks, which is deleted with this estimator."""
        if self.scratch is not None:
            Path(self.scratch).mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="popf-", dir=self.scratch)
        self._delete_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _forget_folder(self) -> None:
        if self._delete_folder is not None:
            self._delete_folder()

    def _run(self, query: Query, X: Any) -> Any:
        validate_data(self, columns_of(X), reset=False, skip_check_array=True)
        return run_query(query, self._model.parts(), X, self.client)

    def _plain_forest(
        self, model: ForestInBlocks, samples: FloatArray | None = None
    ) -> OPFClassifier:
        """Make the plain estimator; without samples it cannot predict."""
        return OPFClassifier.from_forest(
            model.to_forest(samples),
            self._parameters_of(OPFClassifier),
            model.samples.lows.shape[1],
            model.samples.rows,
            model.settings.device,
        )

    def _parameters_of(self, plain: type[BaseEstimator]) -> dict[str, Any]:
        own = self.get_params(deep=False)
        return {name: own[name] for name in plain().get_params(deep=False) if name in own}


class DaskOPFClassifier(DaskClassifier):
    """Optimum-Path Forest classifier for Dask collections, memory maps and Parquet folders.

    Grows exactly the forest of `popf.OPFClassifier`, whatever the partitions. No task holds more than two
    blocks of samples. Predictions are Dask arrays, series or dataframes with the partitions of X; for X in
    memory they are computed at once.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; None for the default client or, if there is none, threads of this process.
    metric, metric_params, algorithm
        As for `popf.OPFClassifier`, but a metric can neither be ``"precomputed"`` nor compute its parameters
        from the samples, which are never gathered in one process.
    n_jobs, working_memory
        Threads and mebibytes per task, as for `popf.OPFClassifier`.
    device : {None, "cpu", "cuda"}, default=None
        With "cuda", every worker uses its GPU; also with None if X is a Dask array of CuPy arrays. Predictions
        are NumPy arrays.
    block_size : int, default=None
        Rows per block; None for those of the largest partition or, for files, so that two blocks fit in 1 GiB.
    scratch : path, default=None
        Folder visible to all workers, for blocks if X is in files or there is no client; None for that of the
        system. Blocks are deleted with the estimator, or when it is fitted again, unless it was pickled.

    Attributes
    ----------
    classes_, sample_indices_, n_features_in_, feature_names_in_
        As of `popf.OPFClassifier`.
    prototypes_, costs_, predecessors_, roots_, spanning_tree_, algorithm_
        The forest as arrays, as of `popf.OPFClassifier`.
    forest_ : OptimumPathForest
        The forest, for inspection, without samples; `to_local` adds them.
    n_blocks_, n_block_pairs_ : int
        Number of blocks, and number of pairs of blocks that had to be compared.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from popf.dask import DaskOPFClassifier
    >>> X = np.array([[0.0], [1.0], [2.5], [6.0], [7.0], [7.5]])
    >>> y = np.array(["low", "low", "low", "high", "high", "high"])
    >>> forest = DaskOPFClassifier().fit(da.from_array(X, chunks=(2, 1)), da.from_array(y, chunks=2))
    >>> forest.prototypes_
    array([2, 3])
    >>> forest.predict(da.from_array(np.array([[2.0], [5.0]]))).compute()
    array(['low', 'high'], dtype='<U4')
    """

    def __init__(
        self,
        client: Any = None,
        *,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        working_memory: float | None = None,
        device: str | None = None,
        block_size: int | None = None,
        scratch: Any = None,
    ) -> None:
        self.client = client
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.working_memory = working_memory
        self.device = device
        self.block_size = block_size
        self.scratch = scratch

    def _fit(self, tasks: Tasks, X: Any, y: Any, sample_weight: Any) -> ForestInBlocks:
        source, settings = self._open(tasks, X, y, sample_weight)
        model = grow_forest(tasks, make_blocks(tasks, source, settings), settings)
        self.sample_indices_, self.forest_ = model.samples.rows, model.to_forest()
        return model

    prototypes_ = OPFClassifier.prototypes_
    costs_ = OPFClassifier.costs_
    predecessors_ = OPFClassifier.predecessors_
    roots_ = OPFClassifier.roots_
    spanning_tree_ = OPFClassifier.spanning_tree_
    algorithm_ = OPFClassifier.algorithm_

    def predict(self, X: Any) -> Any:
        """Predict the label of the node that conquers each sample, lazily if X is lazy."""
        check_is_fitted(self)
        classes = self.classes_

        def labels(offers: FloatArray, X: FloatArray) -> NDArray[Any]:
            return np.asarray(classes[offers[:, 2].astype(np.int64)])

        return self._run(Query(Part.conquer, first_of, labels, None, classes.dtype), X)

    def decision_function(self, X: Any) -> Any:
        """Compute how much cheaper a class's best path is, as `popf.OPFClassifier` does."""
        check_is_fitted(self)
        metric = self.forest_.metric

        def margins(offers: FloatArray, X: FloatArray) -> FloatArray:
            return class_margins(metric.transform(offers[:, :-1], offers[:, -1:].astype(np.int64)))

        columns = self.classes_ if len(self.classes_) > 2 else None
        return self._run(Query(Part.costs_by_class, cheapest, margins, columns, np.float64), X)

    def to_local(self) -> OPFClassifier:
        """Return the equivalent plain estimator, with all samples in this process."""
        check_is_fitted(self)
        plain = self._plain_forest(self._model, self._model.gather_samples())
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        return plain
