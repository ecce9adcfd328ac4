"""The probabilistic Optimum-Path Forest classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from popf.engine.runtime.threads import one_blas_thread
from popf.engine.structures import FloatArray, IntArray
from popf.forest.classifier import OPFClassifier
from popf.forest.probabilities import ForestProbabilities
from popf.forest.validation import (
    checked_metric,
    resources_of,
    validate_groups,
    validate_new,
    validate_training,
)
from popf.formatting import check_choice, check_share, stage_printer
from popf.probability.columns import Columns, names_of_features, read_new, read_training
from popf.probability.explain import ProbabilityExplanation, explain
from popf.probability.linear_maps import AS_GIVEN, MAPS
from popf.state import Float, Part, Sizes, StateError

if TYPE_CHECKING:
    from popf.forest.metrics import Metric
    from popf.probability.encoding import FittedTable
    from popf.probability.forest_component import SoftCompetition
    from popf.probability.pool import FittedPool

METHODS = ("pooled", "forest")


def _of_pool(path: str, doc: str) -> Any:
    """Create a property for a fitted attribute that is stored in the pool, at the dotted `path`."""

    def get(self: PoolAttributes) -> Any:
        if "pool_" not in self.__dict__:
            raise AttributeError("only available after fit.")
        return attrgetter(path)(self.pool_)

    return property(get, doc=doc)


class PoolAttributes:
    """Fitted attributes that are read from an estimator's pool."""

    pool_: FittedPool

    pool_weights_ = _of_pool("weights_by_name", "The weight of each component in the pool.")
    prior_weight_ = _of_pool("prior_weight", "The weight of the class frequencies.")
    bandwidth_ = _of_pool("forest.bandwidth", "The bandwidth of the forest.")
    linear_map_ = _of_pool("map_name", "The linear map that was chosen.")
    linear_map_losses_ = _of_pool("map_losses", "The held-out loss of the forest by map.")
    interactions_ = _of_pool("pairs", "Pairs of features whose products are in the pool.")
    held_out_losses_ = _of_pool("scores.losses", "The held-out log loss of each component.")
    held_out_accuracies_ = _of_pool("scores.accuracies", "The accuracy of each component.")
    held_out_aucs_ = _of_pool("scores.aucs", "The area under the ROC curve of each component.")


class POPFClassifier(ForestProbabilities, PoolAttributes):
    r"""Probabilistic Optimum-Path Forest classifier.

    Predicts probabilities by a weighted sum of logits of four components, fitted to held-out samples:

    **forest**: every training node v offers the sample t a path of cost :math:`c_v = \max(C_v, d(v, t))`. The
    score of class k is :math:`u_k = \log\,\operatorname{mean}_{v \in k} e^{-c_v / \tau}`, and its logit
    :math:`a_k u_k + b_k`. The forest learns local structure in all features together.

    **linear** and **additive**: ridge logistic regressions on features, and on splines and pairs of features,
    learn global effects that add up.

    **trees**: boosted trees learn rules.

    Features may be numbers, text, categories, booleans and dates, with gaps, in a DataFrame or an array.
    Numbers need no scaling: they are squashed first, so that units and heavy tails do not matter. Nothing is
    random, and results depend neither on the order of rows and columns nor on the names of the classes.
    The paper's own method is `popf.PlattOPFClassifier`.

    Parameters
    ----------
    method : {"pooled", "forest"}, default="pooled"
        Whether all components are pooled, or the forest is used alone. With ``metric="precomputed"`` or a
        callable, "pooled" is "forest".
    squash : bool, default=True
        Whether the forest uses asinh((x - median) / (IQR / 1.35)) of every feature x, standardised, and at most
        24 directions of these; if not, it uses features as given. Only for Euclidean metrics.
    linear_map : {"auto", "none", "weights", "whitening", "discriminant"}, default="auto"
        Linear map of the squashed features, so that distances separate the classes better: weights by effect
        size, whitening within the classes, or that and stretching between them. "auto" chooses by held-out
        log loss.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Names, indices or a mask of columns of numbers that are categories. Columns of text and of a categorical
        dtype always are.
    threshold : float, default=0.5
        For two classes, the lowest probability of ``classes_[1]`` at which it is predicted.
    metric, metric_params, algorithm, n_jobs, working_memory, device
        As for `OPFClassifier`.
    verbose : bool, default=False
        Whether to print the stages of a fit, each with the seconds since the beginning.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    opf_ : OPFClassifier
        The forest, grown on squashed and mapped samples; see `prepare`. `explain` takes samples as given.
    samples_ : ndarray of shape (n_samples, n_features) or None
        The training samples of positive weight, as given; None with precomputed distances. Gaps are NaN, and
        ``table_.columns.values(samples_)`` gives the texts of categories and dates.
    table_ : FittedTable or None
        The kinds of the columns, and how they become numbers; None with precomputed distances.
    pool_ : FittedPool
        Everything else that was fitted: components, weights and biases.
    pool_weights_ : dict of float
        The weight of each component in the pool.
    held_out_losses_, held_out_accuracies_, held_out_aucs_ : dict of float
        Log loss, accuracy and area under the ROC curve on held-out samples: of each component by name, of the
        ``"pool"``, and of the class frequencies (``"prior"``).
    prior_weight_ : float
        Weight of the class frequencies in the logits, from 0 to 1; large if held-out losses hardly beat them.
    bandwidth_ : float
        :math:`\tau`, in the unit of the forest's metric.
    linear_map_ : str
        The map that was chosen.
    linear_map_losses_ : dict of float
        The held-out log loss of the forest with each map that was tried.
    feature_importances_ : ndarray of shape (n_features,)
        The mean absolute contribution of each column to the log odds of the training samples, through
        regressions and trees. For other samples, and of the forest: ``explain_proba(X).importances()``.
    interactions_ : ndarray of shape (n_pairs, 2)
        The pairs of columns whose products are in the pool.
    device_, n_features_in_, feature_names_in_
        As of `OPFClassifier`.

    See Also
    --------
    OPFClassifier : The forest without probabilities.
    PlattOPFClassifier : The P-OPF of the paper.

    References
    ----------
    .. [1] S. E. N. Fernandes, D. R. Pereira, C. C. O. Ramos, A. N. Souza, J. P. Papa, "A Probabilistic
       Optimum-Path Forest Classifier for Binary Classification Problems", arXiv:1609.00878.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from popf import POPFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = POPFClassifier().fit(X[::2], y[::2])
    >>> model.predict_proba(X[5:8]).round(1)
    array([[0.9, 0.1],
           [1. , 0. ],
           [1. , 0. ]])
    """

    samples_: Annotated[FloatArray, Float("n_samples", "n_features", gaps=True)] | None
    table_: Annotated[FittedTable, Part("popf.probability.encoding.FittedTable")] | None
    pool_: Annotated[FittedPool, Part("popf.probability.pool.FittedPool")]
    competition_: SoftCompetition | None  # derived from forest and pool

    def __init__(
        self,
        method: str = "pooled",
        *,
        squash: bool = True,
        linear_map: str = "auto",
        categorical_features: Any = "from_dtype",
        threshold: float = 0.5,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        working_memory: float | None = None,
        device: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.squash = squash
        self.linear_map = linear_map
        self.categorical_features = categorical_features
        self.threshold = threshold
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.working_memory = working_memory
        self.device = device
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Grow the forest and fit its probabilities.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Training samples, or the distances between them if ``metric="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels, of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            A sample of weight 2 counts as two samples, one of weight 0 is left out.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples that belong together, such as the visits of a patient. A group is held out as a
            whole; otherwise the model is evaluated on patients that it has seen, and becomes overconfident
            about others.

        Returns
        -------
        self : POPFClassifier
        """
        from popf.probability.fitting import fit

        check_parameters(self)
        self._forget_fit()
        distances = self.metric == "precomputed"
        matrix, columns = (X, None) if distances else read_training(X, self.categorical_features)
        data = validate_training(self, matrix, y, sample_weight, gaps=not distances, given=X)
        if columns is not None:
            validate_data(self, X, skip_check_array=True)  # sets the names of the features
        elif not distances:
            columns = Columns.of_numbers(names_of_features(self))
        numbers = validate_groups(groups, X, data.rows)
        maps, components = what_to_fit(self, data.metric)
        stage = stage_printer(self)
        stage(f"{len(data.codes):,} rows, {len(data.classes)} classes")
        self.pool_, forest, self.table_ = fit(
            data, numbers, maps, components, self.algorithm, columns, stage
        )
        self.classes_, self.device_ = data.classes, data.device
        self.samples_ = None if data.metric.precomputed else data.samples.copy()
        self.competition_ = self.pool_.competition(forest)
        self.opf_ = OPFClassifier.inside(self, forest, data.rows, data.device)
        return self

    def prepare(self, X: ArrayLike) -> FloatArray:
        """Squash and map samples, as for the forest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_prepared)
        """
        return self.pool_.prepare(self._validated(X))

    def explain_proba(self, X: ArrayLike) -> ProbabilityExplanation:
        """Split each sample's log odds into a constant and the contributions of the forest and each feature.

        Regressions and trees are sums over features, so the split is exact. The constant includes the class
        frequencies and is the same for all samples; the contributions of forest and features average 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ProbabilityExplanation
            Arrays ``prior``, ``forest``, ``features`` and ``total``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from popf import POPFClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = POPFClassifier().fit(X[y > 0], y[y > 0])
        >>> split = model.explain_proba(X[-1:])
        >>> bool(abs(split.prior + split.forest + split.features.sum(axis=1) - split.total)[0] < 1e-9)
        True
        """
        return self._explained(self._validated(X))

    def _explained(self, new: FloatArray) -> ProbabilityExplanation:
        """Split the log odds of encoded samples."""
        logits = self.pool_.logits(new, self.competition_, resources_of(self))
        found = explain(self.pool_, new, logits, self.classes_)
        if self.table_ is None:
            return found
        return found.by_column(self.table_.encoding.owners, self.table_.columns.names.tolist())

    @property
    def interactions_(self) -> IntArray:
        """Pairs of columns whose products are in the pool."""
        pairs = super().interactions_
        return (
            pairs if self.table_ is None else np.unique(self.table_.encoding.owners[pairs], axis=0)
        )

    @property
    def feature_importances_(self) -> FloatArray:
        """The mean absolute contribution of each column to the log odds of the training samples."""
        check_is_fitted(self)
        if self.table_ is None:
            raise AttributeError(
                "not available with precomputed distances, which have no features."
            )
        split = self._explained(self._training_numbers())
        means: FloatArray = np.abs(split.features).mean(axis=(0, *range(2, split.features.ndim)))
        return means

    def _as_forest_sees(self, X: ArrayLike) -> FloatArray:
        return self.prepare(X)

    def _logits(self, X: ArrayLike) -> FloatArray:
        new = self._validated(X)
        return self.pool_.logits(new, self.competition_, resources_of(self))

    def _validated(self, X: ArrayLike) -> FloatArray:
        """Check new samples; return them as numbers."""
        check_is_fitted(self)
        if self.table_ is None:
            new = validate_new(self, X, self.opf_.forest_.metric, self.opf_.sample_indices_)
        else:
            new = self.table_.encode(read_new(self, X, self.table_.columns))
        if self.pool_.forest.matrix is None:
            self.opf_.forest_.metric.check(new)
        return new

    def _training_numbers(self) -> Any:
        """Return the training samples as numbers."""
        if self.table_ is None or self.samples_ is None:
            return self.samples_
        self.table_.columns.check_matrix(self.samples_)
        return self.table_.encode_training(self.samples_)

    def check_state(self, sizes: Sizes) -> None:
        """Restore the forest on prepared samples, and check the pool against it; see `popf.state`."""
        pool = self.pool_
        with one_blas_thread():  # as in the fit
            numbers = self._training_numbers()
            prepared = None if numbers is None else pool.prepare(numbers)
        self.opf_ = OPFClassifier.restored(self, prepared, sizes)
        self.device_ = self.opf_.device_
        forest, metric = self.opf_.forest_, self.opf_.forest_.metric
        n_numbers = self.n_features_in_ if self.table_ is None else len(self.table_.encoding.owners)
        if pool.scaler is not None and len(pool.scaler.columns) != n_numbers:
            raise StateError("a pool whose features are those of the encoded table", "pool_")
        if pool.forest.matrix is not None and not metric.euclidean:
            raise StateError("a pool without a linear map, as the metric is not Euclidean", "pool_")
        if (pool.classes[pool.forest.node_codes] != forest.codes[pool.forest.nodes]).any():
            raise StateError("a pool whose nodes have their classes in the forest", "pool_")
        unit = 2.0**-forest.exponent if metric.name == "euclidean" else 1.0
        if not 1e-307 <= pool.forest.bandwidth * unit <= 1e300:
            raise StateError("a pool with a bandwidth in the range of the costs", "pool_")
        self.competition_ = pool.competition(forest)

    def check_parameters(self) -> None:
        """Check all parameters; see `popf.state`."""
        checked_metric(self)
        check_parameters(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not tags.input_tags.pairwise
        return tags


def check_parameters(model: Any) -> None:
    """Raise an error if a parameter is invalid."""
    check_choice("method", model.method, METHODS)
    check_choice("linear_map", model.linear_map, ("auto", *MAPS))
    check_share("threshold", model.threshold)
    if not isinstance(model.squash, bool | np.bool_):
        raise ValueError(f"squash must be True or False, not {model.squash!r}.")


def what_to_fit(model: Any, metric: Metric) -> tuple[Sequence[str], Sequence[str]]:
    """Return the maps that the forest may use, and the components on features."""
    from popf.probability.held_out import COMPONENTS

    maps: Sequence[str] = MAPS if model.linear_map == "auto" else (model.linear_map,)
    if not (model.squash and metric.euclidean):
        if model.linear_map not in ("auto", "none"):
            raise ValueError(
                f"linear_map={model.linear_map!r} needs squashed features and a Euclidean metric: use "
                "linear_map='auto', which takes features as given otherwise."
            )
        maps = (AS_GIVEN,)
    features = isinstance(model.metric, str) and not metric.precomputed
    return maps, tuple(COMPONENTS) if model.method == "pooled" and features else ()
