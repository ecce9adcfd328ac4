"""The Optimum-Path Forest classifier."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import FloatArray, IntArray, Resources
from popf.forest.optimum_path_forest import (
    Conquest,
    OptimumPathForest,
    Path,
    class_margins,
    grow_forest,
)
from popf.forest.state import Fields, forest_from_arrays, forest_to_arrays, read_features, read_rows
from popf.forest.validation import (
    resources_of,
    set_metric_tags,
    to_device_of,
    validate_new,
    validate_training,
)


def _of_forest(name: str, doc: str) -> Any:
    """Make a fitted attribute that reads an attribute of ``forest_``."""

    def get(self: "OPFClassifier") -> Any:
        check_is_fitted(self)
        return getattr(self.forest_, name)

    return property(get, doc=doc)


class OPFClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Optimum-Path Forest classifier.

    A minimum spanning tree of the training samples picks *prototypes* where classes meet. Prototypes
    compete for all other samples; what a path costs is its largest edge. A new sample t is conquered
    by the training node v that offers it the cheapest path,

    .. math:: v^* = \arg\min_v \max\{C_v, d(v, t)\},

    and takes its label. There is nothing to tune but the metric.

    Parameters
    ----------
    metric : str or callable, default="euclidean"
        ``"euclidean"``, ``"sqeuclidean"``, ``"log_euclidean"`` (LibOPF's) and ``"gaussian"`` have fast
        algorithms; labels are the same for all four, costs are not. Any other metric of
        `sklearn.metrics.DistanceMetric` or of LibOPF (``"chi_square"``, ``"canberra"`` ...), ``"cosine"``, a
        function ``d(x, y)``, or ``"precomputed"``: then X is the matrix of distances, (n_samples, n_samples)
        in `fit` and (n_queries, n_samples) later.
    metric_params : dict, default=None
        Parameters of the metric, such as ``{"p": 3}`` for ``"minkowski"``.
    algorithm : {"auto", "kd_tree", "brute", "prim"}, default="auto"
        ``"kd_tree"`` is Borůvka's algorithm in a space tree, for low and moderate dimension; ``"brute"`` the
        same by matrix products, for high dimension; ``"prim"`` is Prim's, for any metric; ``"auto"`` chooses
        from the metric, the size and a look at the data. All give the same forest, to the bit.
    n_jobs : int, default=None
        How many threads to use, as in joblib: None is 1, -1 is all cores.
    working_memory : float, default=None
        How many mebibytes blocks of distances may take, None for that of `sklearn.get_config`.
    device : {None, "cpu", "cuda"}, default=None
        Where to work. ``"cuda"`` is a GPU, through CuPy, for Euclidean metrics; None goes where X is: to a
        GPU for arrays of CuPy or PyTorch that lie there. The forest is the same, to the bit. With up to
        four features the processor is quicker and does the work, unless `algorithm` is ``"brute"``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    prototypes_ : ndarray of shape (n_prototypes,)
        The prototypes: both ends of every arc between two classes that lies in some minimum spanning tree.
    costs_, predecessors_, roots_ : ndarray of shape (n_samples,)
        Of every training sample the path cost C_v (0 for prototypes), the sample before it on its path (-1),
        and the prototype at which the path begins.
    spanning_tree_ : SpanningTree
        The minimum spanning tree: arrays ``lower``, ``higher`` and ``weights``.
    forest_ : OptimumPathForest
        The forest, to look at: ``forest_.to_pandas()``, ``forest_.to_networkx()``.
    algorithm_, device_ : str
        The algorithm that was used, and where.
    sample_indices_ : ndarray of shape (n_samples,)
        The rows of X that were used, those of positive weight. All indices above count these.
    n_features_in_, feature_names_in_ : int and ndarray of shape (`n_features_in_`,)
        The number of features, and their names if X had names that are all strings.

    See Also
    --------
    SemiSupervisedOPFClassifier : Where few samples have a label.
    sklearn.neighbors.KNeighborsClassifier : What OPF becomes when every sample is a prototype.

    Notes
    -----
    Arcs are ordered by (weight, lower index, higher index), and among equal path costs the nearer node
    conquers, then the one of the lower class, then the lower index. So the forest is the same whatever the
    algorithm and the number of threads, and the predicted labels do not depend on the order of the rows.

    References
    ----------
    .. [1] J. P. Papa, A. X. Falcão, C. T. N. Suzuki, "Supervised pattern classification based on
       optimum-path forest", International Journal of Imaging Systems and Technology 19(2), 2009.

    Examples
    --------
    >>> from popf import OPFClassifier
    >>> X = [[0.0], [1.0], [2.5], [6.0], [7.0], [7.5]]
    >>> y = ["low", "low", "low", "high", "high", "high"]
    >>> forest = OPFClassifier().fit(X, y)
    >>> forest.predict([[2.0], [5.0]])
    array(['low', 'high'], dtype='<U4')
    >>> forest.prototypes_
    array([2, 3])
    """

    forest_: OptimumPathForest

    def __init__(
        self,
        metric: str | Callable[..., float] = "euclidean",
        *,
        metric_params: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        working_memory: float | None = None,
        device: str | None = None,
    ) -> None:
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.working_memory = working_memory
        self.device = device

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, or the distances between them if ``metric="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels, of any type, two classes or more.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of zero leaves a sample out. Positive weights have no influence.

        Returns
        -------
        self : OPFClassifier
        """
        self.__dict__.pop("forest_", None)  # a fit that fails leaves nothing half fitted
        data = validate_training(self, X, y, sample_weight)
        forest = grow_forest(
            data.samples, data.codes, data.metric, data.resources, self.algorithm, data.classes
        )
        self.classes_, self.sample_indices_, self.device_ = data.classes, data.rows, data.device
        self.forest_ = forest  # last: see __sklearn_is_fitted__
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict for each sample the label of the node that conquers it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        new, resources = self._validate(X)
        nodes = self.forest_.conquer(new, resources).nodes
        return to_device_of(X, self.classes_[self.forest_.codes[nodes]])

    def conquer(self, X: ArrayLike) -> Conquest:
        """Find the training node that conquers each sample, and the cost of the path it offers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        Conquest
            Arrays ``nodes`` and ``costs``.

        Examples
        --------
        >>> from popf import OPFClassifier
        >>> forest = OPFClassifier().fit([[0.0], [1.0], [4.0]], [0, 0, 1])
        >>> forest.conquer([[0.25], [2.0]]).costs
        array([0.75, 1.  ])
        """
        new, resources = self._validate(X)
        found = self.forest_.conquer(new, resources)
        return Conquest(to_device_of(X, found.nodes), to_device_of(X, found.costs))

    def path_costs_by_class(self, X: ArrayLike) -> FloatArray:
        """Find the cheapest path that each class offers to each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns as in ``classes_``.

        Examples
        --------
        >>> from popf import OPFClassifier
        >>> forest = OPFClassifier().fit([[0.0], [1.0], [4.0]], ["a", "a", "b"])
        >>> forest.path_costs_by_class([[0.25], [2.0]])
        array([[0.75, 3.75],
               [1.  , 2.  ]])
        """
        new, resources = self._validate(X)
        return to_device_of(X, self.forest_.costs_by_class(new, resources))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute how much cheaper the best path of each class is than that of the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For each class the best cost that any other offers minus its own, positive for the cheapest class
            alone; of two classes the column of ``classes_[1]`` only.

        Examples
        --------
        >>> from popf import OPFClassifier
        >>> forest = OPFClassifier().fit([[0.0], [1.0], [4.0], [9.0]], ["a", "a", "b", "c"])
        >>> forest.decision_function([[2.0]])
        array([[ 1., -1., -6.]])
        """
        new, resources = self._validate(X)
        return to_device_of(X, class_margins(self.forest_.costs_by_class(new, resources)))

    def explain(self, X: ArrayLike) -> list[Path]:
        """Trace the path by which each sample was conquered, from a prototype to the sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        list of Path
            One for each sample.

        Examples
        --------
        >>> from popf import OPFClassifier
        >>> forest = OPFClassifier().fit([[0.0], [1.0], [4.0]], ["a", "a", "b"])
        >>> (path,) = forest.explain([[-0.5]])
        >>> path
        Path([1] -1*- 0 -0.5- sample; label 'a', cost 1)
        >>> path.nodes, path.weights, path.bottleneck, path.cost
        (array([1, 0]), array([1. , 0.5]), 0, 1.0)
        """
        new, resources = self._validate(X)
        return self.forest_.explain(new, resources)

    prototypes_ = _of_forest("prototypes", "The training samples that are prototypes.")
    costs_ = _of_forest("costs", "The path cost of every training sample.")
    predecessors_ = _of_forest("predecessors", "The sample before it on its path.")
    roots_ = _of_forest("roots", "The prototype at which its path begins.")
    spanning_tree_ = _of_forest("spanning_tree", "The minimum spanning tree, its edges sorted.")
    algorithm_ = _of_forest("algorithm", "The algorithm that was used.")

    @classmethod
    def from_forest(
        cls,
        forest: OptimumPathForest,
        parameters: Mapping[str, Any],
        n_features: int,
        sample_indices: IntArray | None = None,
        device: str = "cpu",
    ) -> Self:
        """Make a fitted classifier from a forest; `sample_indices` are the rows of X used, None for all."""
        model = cls(**parameters)
        model.classes_, model.device_, model.n_features_in_ = forest.classes, device, n_features
        model.sample_indices_ = np.arange(len(forest)) if sample_indices is None else sample_indices
        model.forest_ = forest
        return model

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "forest_" in state:
            state["forest_"] = forest_to_arrays(self.forest_)
            whole = np.array_equal(self.sample_indices_, np.arange(len(self.forest_)))
            state["sample_indices_"] = None if whole else self.sample_indices_
            del state["device_"]  # a GPU does not travel
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "forest_" in state:
            fields = Fields(state, type(self).__name__)
            features, classes = read_features(fields), fields.labels("classes_")
            n_features = features["n_features_in_"]
            forest = forest_from_arrays(fields.fields("forest_"), classes, n_features)
            n_columns = n_features if forest.metric.precomputed else None
            rows = read_rows(fields, len(forest), n_columns)
            state = {**state, **features, "classes_": classes, "forest_": forest}
            state["sample_indices_"], state["device_"] = rows, "cpu"
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> Tags:
        return set_metric_tags(super().__sklearn_tags__(), self.metric)

    def _validate(self, X: ArrayLike) -> tuple[FloatArray, Resources]:
        """Check new samples; return them, and the resources for their conquest."""
        check_is_fitted(self)
        return validate_new(self, X, self.forest_.metric, self.sample_indices_), resources_of(self)
