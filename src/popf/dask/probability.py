"""The probabilistic Optimum-Path Forest classifier on a cluster."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from popf.dask.base import DaskClassifier
from popf.dask.cluster import tasks_on
from popf.dask.lazy import Query
from popf.dask.model import Part
from popf.probability.classifier import BOX, POPFClassifier
from popf.probability.parameters import check_classes

if TYPE_CHECKING:
    from typing import Self

    from popf.solvers import Solver


FloatArray = NDArray[np.float64]


class DaskPOPFClassifier(DaskClassifier):
    """Probabilistic Optimum-Path Forest classifier of Dask collections, memory maps and Parquet folders.

    Fits what `popf.POPFClassifier` fits: the same forest, the same left-out samples, and scores that
    are sums over blocks, so they agree but for rounding.

    Parameters
    ----------
    client : distributed.Client, default=None
        As for `DaskOPFClassifier`.
    method, squash, linear_map, background, class_bandwidths, threshold, smoothing, solver, box, random_state
        As for `popf.POPFClassifier`.
    metric, metric_params, algorithm, n_jobs, working_memory, device, block_size, scratch
        As for `DaskOPFClassifier`.

    Attributes
    ----------
    classes_
        As of `popf.POPFClassifier`.
    opf_ : OPFClassifier
        The forest to look at: costs, prototypes, spanning tree. It has no samples; `to_local` has.
    n_features_in_, feature_names_in_, n_blocks_, n_block_pairs_
        As of `DaskOPFClassifier`.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_breast_cancer
    >>> from popf.dask import DaskPOPFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = da.from_array(X / X.std(axis=0), chunks=(200, 30)), da.from_array(y, chunks=200)
    >>> model = DaskPOPFClassifier().fit(X[:400], y[:400])
    >>> model.predict_proba(X[400:403]).compute().round(1)
    array([[1., 0.],
           [0., 1.],
           [0., 1.]])
    """

    def __init__(
        self,
        client: Any = None,
        *,
        method: str = "pooled",
        squash: str | bool = "auto",
        linear_map: Any = "auto",
        background: bool = True,
        class_bandwidths: bool = True,
        threshold: float = 0.5,
        smoothing: float | None = None,
        solver: "str | Solver" = "newton",
        box: Any = BOX,
        random_state: int | np.random.RandomState | None = None,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        working_memory: float | None = None,
        device: str | None = None,
        block_size: int | None = None,
        scratch: str | None = None,
    ) -> None:
        self.client = client
        self.method = method
        self.squash = squash
        self.linear_map = linear_map
        self.background = background
        self.class_bandwidths = class_bandwidths
        self.threshold = threshold
        self.smoothing = smoothing
        self.solver = solver
        self.box = box
        self.random_state = random_state
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.working_memory = working_memory
        self.device = device
        self.block_size = block_size
        self.scratch = scratch

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Self":
        """Grow the forest and fit its probabilities.

        Parameters
        ----------
        X, y, sample_weight
            As for `DaskOPFClassifier.fit`; a sample of weight 2 counts as two.

        Returns
        -------
        self : DaskPOPFClassifier
        """
        self._forget()
        with tasks_on(self.client) as tasks:
            model = self._fit_forest(tasks, X, y, sample_weight)
            samples = model.gather_samples(self.client)
        plain = self._plain_estimator().fit(samples, model.classes[model.codes], model.weights)
        self._plain, self.classes_, self.opf_ = plain, plain.classes_, plain.opf_
        self._model = model  # last: see __sklearn_is_fitted__
        return self

    def predict_proba(self, X: Any) -> Any:
        """Give the probability of every class, lazily if X is lazy.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array or dataframe in the partitions of X; not lazy if X is in memory
        """
        return self._ask_for("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Give the logarithm of the probability of every class, lazily if X is lazy.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array or dataframe in the partitions of X; not lazy if X is in memory
        """
        return self._ask_for("predict_log_proba", X)

    def predict(self, X: Any) -> Any:
        """Give every sample a label, lazily if X is lazy: of two, ``classes_[1]`` from the threshold on.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array or series in the partitions of X; not lazy if X is in memory
        """
        return self._ask_for("predict", X)

    def decision_function(self, X: Any) -> Any:
        """Give the logit of ``classes_[1]``, or exponents whose softmax are the probabilities.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array, series or dataframe in the partitions of X; not lazy if X is in memory
        """
        return self._ask_for("decision_function", X)

    def to_local(self) -> POPFClassifier:
        """Give the plain estimator, with all samples in this process.

        Returns
        -------
        POPFClassifier
        """
        check_is_fitted(self)
        return self._plain

    def _check_classes(self, n_classes: int) -> None:
        check_classes(n_classes, self.method)

    def _plain_estimator(self) -> POPFClassifier:
        values = self.get_params(deep=False)
        return POPFClassifier(
            **{name: values[name] for name in POPFClassifier().get_params() if name in values}
        )

    def _ask_for(self, what: str, X: Any) -> Any:
        check_is_fitted(self)
        columns = self.classes_ if "proba" in what or len(self.classes_) > 2 else None
        dtype: Any = np.float64
        if what == "predict":
            columns, dtype = None, self.classes_.dtype
        offer = partial(_answer_by, self._plain, what)
        return self._run(Query(offer, _only, _only, columns, dtype), X)


def _answer_by(plain: POPFClassifier, what: str, part: Part, X: FloatArray) -> FloatArray:
    found: FloatArray = getattr(plain, what)(X)
    return found


def _only(values: FloatArray) -> FloatArray:
    return values
