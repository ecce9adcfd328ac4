"""The Optimum-Path Forest classifier on a cluster."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from popf.dask.base import DaskClassifier
from popf.dask.cluster import tasks_on
from popf.dask.prediction import Part, Query, cheapest, first_of
from popf.engine.structures import FloatArray
from popf.forest.classifier import OPFClassifier
from popf.forest.metrics import Metric
from popf.forest.optimum_path_forest import class_margins

if TYPE_CHECKING:
    from typing import Self


class DaskOPFClassifier(DaskClassifier):
    """Optimum-Path Forest classifier of Dask collections, memory maps and Parquet folders.

    Grows the forest that `popf.OPFClassifier` grows, to the bit, whatever the partitions. No task
    holds more than two blocks of samples.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster. None takes the default client, or threads of this process if there is none; then
        blocks are kept in a temporary folder, not in memory.
    metric : str or callable, default="euclidean"
        The distance between samples, as in `popf.OPFClassifier`, all but ``"precomputed"``.
    metric_params : dict, default=None
        Parameters of the metric. None can be taken from the samples, which are never in one place.
    algorithm : {"auto", "kd_tree", "brute", "prim"}, default="auto"
        How trees are computed; it is the same forest with all of them.
    n_jobs : int, default=None
        How many threads one task uses, as in joblib: None is 1, -1 is all cores.
    working_memory : float, default=None
        How many mebibytes a task's blocks of distances may take, None for that of `sklearn.get_config`.
    device : {None, "cpu", "cuda"}, default=None
        With "cuda" every worker uses its GPU, for the fit and for predictions; also with None if X is a Dask
        array of CuPy's. Predictions are NumPy's.
    block_size : int, default=None
        How many rows make a block. None: as many as the largest partition; for files, as many as two
        need 1 GiB for.
    scratch : path, default=None
        Where blocks are kept if X is in files or there is no client: a folder that all workers see. None
        for a temporary one, which goes when the estimator does.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    prototypes_ : ndarray of shape (n_prototypes,)
        The training samples that are prototypes.
    costs_, predecessors_, roots_ : ndarray of shape (n_samples,)
        The path cost of every training sample, the sample before it on its path, and its prototype.
    spanning_tree_ : SpanningTree
        The minimum spanning tree: arrays ``lower``, ``higher`` and ``weights``.
    forest_ : OptimumPathForest
        The forest, to look at. It has no samples; that of `to_local` has.
    algorithm_ : str
        The algorithm that was used.
    sample_indices_ : ndarray of shape (n_samples,)
        The rows of X that were used, those of positive weight.
    n_blocks_, n_block_pairs_ : int
        How many blocks there were, and how many pairs of them had to be compared.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if X had names that are all strings.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Self":
        """Grow the forest.

        Parameters
        ----------
        X : Dask array or dataframe, memory map, array-like, or path
            Training samples. A path is that of a ``.npy`` file or of a folder of Parquet files.
        y : Dask array or series, array-like, or str
            Labels; the name of their column if X is a Parquet folder.
        sample_weight : as y, default=None
            A weight of zero leaves a sample out.

        Returns
        -------
        self : DaskOPFClassifier
        """
        self._forget()
        with tasks_on(self.client) as tasks:
            model = self._fit_forest(tasks, X, y, sample_weight)
        self.classes_, self.sample_indices_ = model.classes, model.rows
        self.forest_ = model.to_forest()
        self._model = model  # last: see __sklearn_is_fitted__
        return self

    prototypes_ = OPFClassifier.prototypes_
    costs_ = OPFClassifier.costs_
    predecessors_ = OPFClassifier.predecessors_
    roots_ = OPFClassifier.roots_
    spanning_tree_ = OPFClassifier.spanning_tree_
    algorithm_ = OPFClassifier.algorithm_

    def predict(self, X: Any) -> Any:
        """Predict the label of the node that conquers each sample, lazily if X is lazy.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array or series in the partitions of X; an array or series if X is in memory
        """
        check_is_fitted(self)
        finish = partial(_labels, self.classes_)
        return self._run(Query(Part.conquer, first_of, finish, None, self.classes_.dtype), X)

    def decision_function(self, X: Any) -> Any:
        """Compute how much cheaper a class's best path is, as `OPFClassifier.decision_function`.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array, series or dataframe in the partitions of X; not lazy if X is in memory
        """
        check_is_fitted(self)
        finish = partial(_margins, self.forest_.metric)
        columns = self.classes_ if len(self.classes_) > 2 else None
        return self._run(Query(Part.costs_by_class, cheapest, finish, columns, np.float64), X)

    def to_local(self) -> OPFClassifier:
        """Make the plain estimator, with all samples in this process.

        Returns
        -------
        OPFClassifier
        """
        plain = self._plain_forest(self._model, self._gather_samples())
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        return plain


def _labels(classes: NDArray[Any], offers: FloatArray, X: FloatArray) -> NDArray[Any]:
    labels: NDArray[Any] = classes[offers[:, 2].astype(np.int64)]
    return labels


def _margins(metric: Metric, offers: FloatArray, X: FloatArray) -> FloatArray:
    return class_margins(metric.transform(offers[:, :-1], offers[:, -1:].astype(np.int64)))
