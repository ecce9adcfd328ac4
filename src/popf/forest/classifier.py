"""The Optimum-Path Forest classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import Conquest, FloatArray, IntArray, Resources
from popf.forest.optimum_path_forest import (
    OptimumPathForest,
    Path,
    class_margins,
    grow_forest,
)
from popf.forest.state import ForestState, SampleIndices
from popf.forest.validation import (
    checked_metric,
    resources_of,
    set_metric_tags,
    to_device_of,
    validate_new,
    validate_training,
)
from popf.state import Labels, Part, Sizes, StateError, StateMixin


def _of_forest(name: str, doc: str) -> Any:
    """Return a property that reads an attribute of the fitted ``forest_``."""

    def get(self: OPFClassifier) -> Any:
        check_is_fitted(self)
        return getattr(self.forest_, name)

    return property(get, doc=doc)


class OPFClassifier(StateMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Optimum-Path Forest classifier.

    The *prototypes* are the training samples where classes meet in a minimum spanning tree. They compete
    for all other samples; the cost of a path is its largest edge. A new sample t is conquered by the
    training node v that offers it the cheapest path,

    .. math:: v^* = \arg\min_v \max\{C_v, d(v, t)\},

    and gets its label. The metric is the only parameter to tune.

    Parameters
    ----------
    metric : str or callable, default="euclidean"
        ``"euclidean"``, ``"sqeuclidean"``, ``"log_euclidean"`` (LibOPF's) and ``"gaussian"`` have fast
        algorithms; they predict the same labels, but their costs differ. Also any other metric of
        `sklearn.metrics.DistanceMetric` or of LibOPF (``"chi_square"``, ``"canberra"`` ...), ``"cosine"``, a
        function ``d(x, y)``, or ``"precomputed"``: then X is the matrix of distances, of shape
        (n_samples, n_samples) in `fit` and (n_queries, n_samples) in other methods.
    metric_params : dict, default=None
        Parameters of the metric, such as ``{"p": 3}`` for ``"minkowski"``.
    algorithm : {"auto", "kd_tree", "brute", "prim"}, default="auto"
        ``"kd_tree"`` is Borůvka's algorithm with a space tree, for low and moderate dimension; ``"brute"`` is
        the same with matrix products, for high dimension; ``"prim"`` is Prim's algorithm, for any metric;
        ``"auto"`` chooses by the metric, the size and a sample of the data. All give the same forest, bit for
        bit.
    n_jobs : int, default=None
        Number of threads, as in joblib: None is 1, -1 is all cores.
    working_memory : float, default=None
        Memory limit in MiB for blocks of distances; None for the limit of `sklearn.get_config`.
    device : {None, "cpu", "cuda"}, default=None
        Where to compute. ``"cuda"`` is a GPU, through CuPy, for Euclidean metrics; None is the device that
        holds X: a GPU for CuPy and PyTorch arrays on a GPU, else the CPU. The forest is the same, bit for bit.
        With up to four features the CPU is faster and is used instead, unless `algorithm` is ``"brute"``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    prototypes_ : ndarray of shape (n_prototypes,)
        The indices of the prototypes: both ends of every arc between two classes that lies in some minimum
        spanning tree.
    costs_, predecessors_, roots_ : ndarray of shape (n_samples,)
        For every training sample: its path cost C_v (0 for prototypes), its predecessor on the path (-1 for
        prototypes), and the prototype at which the path starts.
    spanning_tree_ : SpanningTree
        The minimum spanning tree: arrays ``lower``, ``higher`` and ``weights``.
    forest_ : OptimumPathForest
        The forest; export it by ``forest_.to_pandas()`` or ``forest_.to_networkx()``.
    algorithm_, device_ : str
        The algorithm and the device that were used.
    sample_indices_ : ndarray of shape (n_samples,)
        The rows of X that were used: those with positive weight. All indices above count only these.
    n_features_in_, feature_names_in_ : int and ndarray of shape (`n_features_in_`,)
        The number of features, and their names if X has feature names that are all strings.

    See Also
    --------
    SemiSupervisedOPFClassifier : For few labelled and many unlabelled samples.
    sklearn.neighbors.KNeighborsClassifier : With one neighbour, OPF in which every sample is a prototype.

    Notes
    -----
    Arcs are ordered by (weight, lower index, higher index). Between equal path costs the nearer node conquers,
    then the one of the lower class, then the lower index. Thus the forest does not depend on the algorithm or
    the number of threads, and the predicted labels do not depend on the order of the rows.

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

    classes_: Annotated[NDArray[Any], Labels()]
    forest_: Annotated[OptimumPathForest, Part(ForestState)]
    sample_indices_: Annotated[IntArray, SampleIndices()]
    device_: str

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
        """Fit the forest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, or the distances between them if ``metric="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Samples with weight 0 are left out. Positive weights have no effect.

        Returns
        -------
        self : OPFClassifier
        """
        self.__dict__.pop("forest_", None)  # so that a failed fit leaves the estimator unfitted
        data = validate_training(self, X, y, sample_weight)
        forest = grow_forest(
            data.samples, data.codes, data.metric, data.resources, self.algorithm, data.classes
        )
        self.classes_, self.sample_indices_, self.device_ = data.classes, data.rows, data.device
        self.forest_ = forest  # last: see __sklearn_is_fitted__
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the label of each sample, that of the node that conquers it.

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
            Arrays ``nodes``, ``costs`` and ``distances``.

        Examples
        --------
        >>> from popf import OPFClassifier
        >>> forest = OPFClassifier().fit([[0.0], [1.0], [4.0]], [0, 0, 1])
        >>> forest.conquer([[0.25], [2.0]]).costs
        array([0.75, 1.  ])
        """
        new, resources = self._validate(X)
        conquest = self.forest_.conquer(new, resources)
        return Conquest(*[to_device_of(X, array) for array in conquest])  # type: ignore[arg-type]

    def path_costs_by_class(self, X: ArrayLike) -> FloatArray:
        """Compute the cost of the cheapest path from each class to each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.

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
            For each class, the lowest cost of the other classes minus its own, which is positive only for the
            cheapest class; for two classes, only the column of ``classes_[1]``.

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

    prototypes_ = _of_forest("prototypes", "The indices of the prototypes.")
    costs_ = _of_forest("costs", "The path cost of every training sample.")
    predecessors_ = _of_forest(
        "predecessors", "The predecessor of every training sample, -1 for prototypes."
    )
    roots_ = _of_forest("roots", "The prototype of every training sample.")
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
        """Return a fitted classifier with a forest; `sample_indices` are the rows of X used, None for all."""
        model = cls(**parameters)
        model.classes_, model.device_, model.n_features_in_ = forest.classes, device, n_features
        model.sample_indices_ = np.arange(len(forest)) if sample_indices is None else sample_indices
        model.forest_ = forest
        return model

    @classmethod
    def inside(
        cls, model: Any, forest: OptimumPathForest, sample_indices: IntArray, device: str = "cpu"
    ) -> Self:
        """Return the fitted classifier in another estimator, whose parameters it shares."""
        parameters = {name: getattr(model, name) for name in signature(cls).parameters}
        samples = forest.samples
        n_features = model.n_features_in_ if samples is None else samples.shape[1]
        return cls.from_forest(forest, parameters, n_features, sample_indices, device)

    @classmethod
    def restored(cls, model: Any, samples: FloatArray | None, sizes: Sizes) -> Self:
        """Restore ``model.opf_``, an `InnerForest`, on the samples that the forest was grown on."""
        inner = model.opf_
        forest = inner.with_samples(samples, sizes)
        forest.classes = model.classes_
        opf = cls.inside(model, forest, inner.sample_indices)
        opf.check_state(sizes)
        return opf

    def check_state(self, sizes: Sizes) -> None:
        """Give the forest its labels, and check the rows; see `popf.state`."""
        self.forest_.classes = self.classes_
        self.device_ = "cpu"  # a GPU may not exist where the state is loaded
        if self.forest_.metric.precomputed and self.sample_indices_[-1] >= sizes["n_features"]:
            raise StateError("columns of the precomputed distances", "sample_indices_")

    def check_parameters(self) -> None:
        """Check metric and algorithm; see `popf.state`."""
        checked_metric(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> Tags:
        return set_metric_tags(super().__sklearn_tags__(), self.metric)

    def _validate(self, X: ArrayLike) -> tuple[FloatArray, Resources]:
        """Check new samples; return them and the resources to use."""
        check_is_fitted(self)
        return validate_new(self, X, self.forest_.metric, self.sample_indices_), resources_of(self)
