"""The Optimum-Path Forest classifier."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import (
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from popf.forest.devices import device_for, like, pays_on_host, to_host
from popf.forest.parameters import (
    check_algorithm,
    kept_samples,
    n_bytes_of,
    n_threads_of,
    set_precomputed_tags,
)
from popf.forest.paths import Conquest, OptimumPathForest, Path, SpanningTree
from popf.labels import check_labels, encode

if TYPE_CHECKING:
    from typing import Self

    from sklearn.utils import Tags

    from popf.engine.conquest.euclidean import EuclideanConquest
    from popf.engine.structures import Conquered
    from popf.engine.training import Trained

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
        `sklearn.metrics.DistanceMetric` or of LibOPF (``"chi_square"``, ``"canberra"``,
        ``"squared_chord"``, ``"bray_curtis"`` ...), a function ``d(x, y)``, or ``"precomputed"``: then
        X is the matrix of distances, (n_samples, n_samples) in `fit` and (n_queries, n_samples) later.
    metric_params : dict, default=None
        Parameters of the metric, such as ``{"p": 3}`` for ``"minkowski"``.
    algorithm : {"auto", "kd_tree", "brute", "prim"}, default="auto"
        How the forest is computed; it is the same forest, to the bit, with all of them.

        - ``"kd_tree"``: Borůvka's algorithm in a space tree, for low and moderate dimension;
        - ``"brute"``: Borůvka's algorithm on blocks of matrix products, for high dimension;
        - ``"prim"``: Prim's algorithm, for any metric;
        - ``"auto"``: chosen from the metric, the size and a look at the data.
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
        The training samples that are prototypes: both ends of every arc between two classes that lies in
        some minimum spanning tree. They do not depend on the order of the rows.
    costs_ : ndarray of shape (n_samples,)
        The path cost C_v of every training sample, 0 for prototypes.
    predecessors_ : ndarray of shape (n_samples,)
        The sample before it on its path, -1 for prototypes.
    roots_ : ndarray of shape (n_samples,)
        The prototype at which its path begins.
    spanning_tree_ : SpanningTree
        The minimum spanning tree: arrays ``lower``, ``higher`` and ``weights``, edges in the order
        (weight, lower index, higher index).
    forest_ : OptimumPathForest
        The forest, to look at: ``forest_.to_pandas()``, ``forest_.to_networkx()``.
    algorithm_, device_ : str
        The algorithm that was used, and where.
    sample_indices_ : ndarray of shape (n_samples,)
        The rows of X that were used, those of positive weight. All indices above count these.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if X had names that are all strings.

    See Also
    --------
    sklearn.neighbors.KNeighborsClassifier : What OPF becomes when every sample is a prototype.

    Notes
    -----
    Equal distances are settled by rule: arcs are ordered by (weight, lower index, higher index), and among
    equal path costs the nearer node conquers, then the one of the lower class, then the lower index. So
    the forest is the same whatever the algorithm and the number of threads, and the predicted labels do
    not depend on the order of the rows.

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
    >>> forest.explain([[0.4]])
    [Path([2] -1.5*- 1 -1- 0 -0.4- sample; label 'low', cost 1.5)]
    """

    _tree: SpanningTree  # as it was found, in the engine's unit, until somebody asks for it
    _tree_exponent: int | None

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

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "Self":
        """Grow the forest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, or the distances between them if ``metric="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels, of any type, two classes or more.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of zero leaves a sample out. Positive weights have no influence: repeating a sample
            does not change the forest.

        Returns
        -------
        self : OPFClassifier
        """
        from popf.engine.backends import backend_for
        from popf.engine.tiles import block_size
        from popf.engine.training import train, train_euclidean
        from popf.forest.metrics import choose_metric
        from popf.forest.precomputed import check_precomputed, check_square

        metric = choose_metric(self.metric, self.metric_params)
        check_algorithm(self.algorithm, metric)
        device = device_for(self.device, X, metric, self.algorithm)
        backend = backend_for(device)
        n_threads, n_bytes = n_threads_of(self.n_jobs), n_bytes_of(self.working_memory)
        self.__dict__.pop("forest_", None)  # a fit that fails leaves nothing half fitted
        samples, labels = validate_data(
            self, to_host(X), to_host(y), dtype=np.float64, order="C", ensure_min_samples=2
        )
        if pays_on_host(device, self.algorithm, samples.shape[1]):
            device, backend = "cpu", None
        self.device_ = device
        labels = column_or_1d(labels, warn=True)
        check_labels(labels)
        if metric.precomputed:
            check_square(samples)
        self.sample_indices_ = kept_samples(samples, sample_weight)
        if len(self.sample_indices_) < len(labels):
            kept = self.sample_indices_
            labels = labels[kept]
            samples = samples[np.ix_(kept, kept)] if metric.precomputed else samples[kept]
        self.classes_, codes = encode(labels)
        if len(self.classes_) < 2:
            (label,) = self.classes_.tolist()
            raise ValueError(
                f"y has one class only, {label!r}: prototypes are found where classes meet, so a "
                "forest needs samples of at least two classes."
            )
        if metric.precomputed:
            samples = check_precomputed(samples)
        metric = metric.fitted(samples)
        metric.check(samples)
        self._metric = metric
        exponent = 0
        self._conquest: EuclideanConquest | None = None
        self._samples: FloatArray | None = None
        if metric.euclidean:
            self.algorithm_ = self._choose_algorithm(samples) if backend is None else "brute"
            block = block_size(samples.shape[1], n_bytes // n_threads)
            trained, self._conquest = train_euclidean(
                samples, codes, self.algorithm_, n_threads, block, backend
            )
            exponent = self._conquest.exponent
        else:
            self.algorithm_ = "prim"
            trained = train(metric.rows(samples, n_threads), codes)
            self._samples = None if metric.precomputed else samples
        self._codes = codes
        self._set_forest(trained, exponent)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Give every sample the label of the node that conquers it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        nodes = self.conquer(X).nodes
        labels: NDArray[Any] = like(self.classes_[self._codes[to_host(nodes)]], X)
        return labels

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
        found = self._conquered(X)
        return Conquest(like(found.nodes, X), like(found.costs, X))

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
        from popf.engine.conquest import by_scan as conquest_scan

        new = self._check_new(X)
        if self._conquest is not None:
            costs, exponent = self._conquest.costs_by_class(new, n_threads_of(self.n_jobs))
            by_class: FloatArray = like(self._metric.transform(costs, exponent), X)
            return by_class
        return conquest_scan.costs_by_class(
            self._metric.blocks(new, self._samples),
            len(new),
            self.costs_,
            self._codes,
            len(self.classes_),
            self._scan_rows(),
            n_threads_of(self.n_jobs),
        )

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Tell how much cheaper a class's best path is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the best cost that ``classes_[0]`` offers minus that of ``classes_[1]``, so
            positive values speak for ``classes_[1]``; for more, minus the best cost of each class.
        """
        costs = self.path_costs_by_class(X)
        if len(self.classes_) == 2:
            difference: FloatArray = costs[:, 0] - costs[:, 1]
            return difference
        return -costs

    def explain(self, X: ArrayLike) -> list[Path]:
        """Trace the path by which each sample was conquered, from a prototype to the sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        list of Path
            One a sample: ``nodes`` (training samples, the prototype first), ``weights`` (edges, the last
            one leads to the sample), ``bottleneck`` (which edge is the largest), ``cost``, ``label``.

        Examples
        --------
        >>> from popf import OPFClassifier
        >>> forest = OPFClassifier().fit([[0.0], [1.0], [4.0]], ["a", "a", "b"])
        >>> (path,) = forest.explain([[-0.5]])
        >>> path.nodes, path.weights, path.bottleneck, path.cost
        (array([1, 0]), array([1. , 0.5]), 0, 1.0)
        """
        found = self._conquered(X)
        paths = []
        for node, distance in zip(found.nodes, found.distances, strict=True):
            along, weights = self.forest_.path(node)
            label = self.classes_[self._codes[node]]
            paths.append(Path(along, np.append(weights, distance), label))
        return paths

    @property
    def spanning_tree_(self) -> SpanningTree:
        """The minimum spanning tree; sorted when it is first asked for."""
        check_is_fitted(self)
        if self._tree_exponent is not None:
            weights = self._metric.transform(self._tree.weights, self._tree_exponent)
            self._tree = self._tree.in_order()._replace(weights=np.sort(weights))
            self._tree_exponent = None
        return self._tree

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> "Tags":
        return set_precomputed_tags(super().__sklearn_tags__(), self.metric)

    def _scan_rows(self) -> int:
        from popf.engine.conquest.by_scan import BLOCK_BYTES, rows_per_block

        share = n_bytes_of(self.working_memory) // n_threads_of(self.n_jobs)
        return rows_per_block(len(self.costs_), min(BLOCK_BYTES, share))

    def _choose_algorithm(self, X: FloatArray) -> str:
        from popf.engine.choice import choose_algorithm

        return choose_algorithm(X) if self.algorithm == "auto" else self.algorithm

    def _set_forest(self, trained: "Trained", exponent: int) -> None:
        forest = trained.forest
        self.prototypes_ = np.flatnonzero(trained.prototypes)
        self.costs_ = self._metric.transform(forest.costs, exponent)
        self.predecessors_ = forest.predecessors
        self.roots_ = forest.roots
        self._tree = trained.tree
        self._tree_exponent = exponent
        lengths = self._metric.transform(forest.lengths, exponent)
        self.forest_ = OptimumPathForest(  # last: see __sklearn_is_fitted__
            self.classes_[self._codes], self.costs_, self.predecessors_, lengths, self.roots_
        )

    def _check_new(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        new: FloatArray
        try:
            new = validate_data(self, to_host(X), dtype=np.float64, order="C", reset=False)
        except ValueError as error:
            if self._metric.precomputed and "is expecting" in str(error):
                hint = "With metric='precomputed' X has a column for every training sample."
                raise ValueError(f"{error} {hint}") from None
            raise
        if self._metric.precomputed and new.shape[1] != len(self.sample_indices_):
            new = np.ascontiguousarray(new[:, self.sample_indices_])
        self._metric.check(new)
        return new

    def _conquered(self, X: ArrayLike) -> "Conquered":
        """Find conquerors, path costs and distances, in the unit of the metric."""
        from popf.engine.conquest import by_scan as conquest_scan
        from popf.engine.structures import Conquered

        new = self._check_new(X)
        if self._conquest is not None:
            found, exponent = self._conquest.conquer(new, n_threads_of(self.n_jobs))
            return Conquered(
                found.nodes,
                self._metric.transform(found.costs, exponent),
                self._metric.transform(found.distances, exponent),
            )
        return Conquered(
            *conquest_scan.conquer(
                self._metric.blocks(new, self._samples),
                len(new),
                self.costs_,
                self._codes,
                self._scan_rows(),
                n_threads_of(self.n_jobs),
            )
        )
