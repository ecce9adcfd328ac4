"""The probabilistic Optimum-Path Forest classifier."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import FloatArray, IntArray
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import OptimumPathForest, Path, grow_forest
from popf.forest.validation import (
    TrainingData,
    resources_of,
    set_metric_tags,
    to_device_of,
    validate_groups,
    validate_new,
    validate_training,
)
from popf.probability.features import LINEAR_MAPS
from popf.probability.pooling import Evidence, EvidenceAttributes, ProbabilityExplanation
from popf.probability.softmax import chosen_classes, decisions, log_softmax
from popf.solvers import PlattObjective, Solution, Solver, platt_targets, solver_of
from popf.solvers.base import PAPER_BOX, check_box

METHODS = ("pooled", "forest", "paper")
MAPS = ("auto", *LINEAR_MAPS)


class POPFClassifier(EvidenceAttributes, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Probabilistic Optimum-Path Forest classifier.

    Predicts probabilities from the path costs of an optimum-path forest, by one of three methods:

    **forest**: every training node v offers the sample t a path of cost :math:`c_v = \max(C_v, d(v, t))`. The
    score of class k is :math:`u_k = \log\,\operatorname{mean}_{v \in k} e^{-c_v / \tau_k}`, and the
    probabilities are the softmax of :math:`a_k u_k + b_k`, fitted to held-out samples.

    **pooled** (the default): a weighted sum of logits. The forest learns local structure in all features
    together; logistic regressions on features, splines and pairs of features learn global, additive effects;
    boosted trees learn rules. The weights are fitted to held-out samples. Features need no scaling: they are
    squashed first, so that units and heavy tails do not matter.

    **paper**: the P-OPF of Fernandes et al. [1]_, for two classes: :math:`P = 1 / (1 + e^{A y C + B})`, where C
    is the sample's own cost, and A and B are fitted in a box to the costs of the training samples. It is meant
    for comparison: it is overconfident, and depends on the scale of the features.

    Results do not depend on the order of the rows, and only the swarm solvers of the paper's method are random.

    Parameters
    ----------
    method : {"pooled", "forest", "paper"}, default="pooled"
        How probabilities are computed. With ``metric="precomputed"`` or a callable, "pooled" is "forest".
    squash : "auto" or bool, default="auto"
        Whether the forest uses asinh((x - median) / (IQR / 1.35)) of every feature x, standardised. "auto" also
        tries features that are only standardised; False leaves them unchanged. Only for Euclidean metrics.
    linear_map : None, "auto", "weights", "whitening", "discriminant" or a transformer, default="auto"
        Linear map of the features, so that distances separate the classes better: one of `popf.probability`, or
        any transformer. "auto" tries none and all three, for Euclidean metrics. Not for the paper's method.
    background : bool, default=True
        Whether samples far from all training samples get the class frequencies, by a floor under the scores.
    class_bandwidths : bool, default=True
        Whether each class may have its own bandwidth and slope, if this clearly lowers the held-out loss.
    threshold : float, default=0.5
        For two classes, the lowest probability of ``classes_[1]`` at which it is predicted.
    smoothing : float or None, default=None
        a in the targets (N + a) / (N + 2a), which replace 1 for a class of N samples. None is Platt's 1 for the
        paper's method, and Jeffreys' 1/2 otherwise.
    solver : {"newton", "nelder-mead", "pso", "bat", "firefly"} or a solver, default="newton"
        Solver for A and B in the paper's method, by name or as an object of `popf.solvers`.
    box : pair of pairs, default=((-10, 10), (-10, 10))
        Bounds of A and B in the paper's method.
    random_state : int, RandomState or None, default=None
        Seed of the swarm solvers of the paper's method.
    metric, metric_params, algorithm, n_jobs, working_memory, device
        As for `OPFClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    opf_ : OPFClassifier
        The forest, grown on squashed and mapped samples; see `prepare`. `explain` takes samples as given.
    samples_ : ndarray of shape (n_samples, n_features) or None
        The training samples of positive weight, as given; None with precomputed distances.
    pool_weights_, interactions_ : dict of float, ndarray of shape (n_pairs, 2)
        The weight of each part in the pool, and the pairs of features whose products are in the pool.
    held_out_losses_, held_out_accuracies_, held_out_aucs_ : dict of float
        Log loss, accuracy and area under the ROC curve on held-out samples: of each part by name, of the
        ``"pool"``, and of the class frequencies (``"prior"``).
    bandwidths_, slopes_, biases_ : ndarray of shape (n_classes,)
        :math:`\tau_k` in the unit of the forest's metric, :math:`a_k` and :math:`b_k`.
    prior_weight_ : float
        Weight of the class frequencies in the logits, from 0 to 1; large if held-out losses hardly beat them.
    linear_map_, linear_map_losses_ : object or None, dict of float
        The fitted map, and the held-out log loss of the forest with each map that was tried; ``"unsquashed"``
        stands for standardised features without a map.
    A_, B_, solution_ : float, float, Solution
        Slope and offset of the paper's method, and the result of the solver.
    device_, n_features_in_, feature_names_in_
        As of `OPFClassifier`.

    See Also
    --------
    OPFClassifier : The forest without probabilities.

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
    array([[0.8, 0.2],
           [1. , 0. ],
           [1. , 0. ]])
    """

    opf_: OPFClassifier

    def __init__(
        self,
        method: str = "pooled",
        *,
        squash: str | bool = "auto",
        linear_map: Any = "auto",
        background: bool = True,
        class_bandwidths: bool = True,
        threshold: float = 0.5,
        smoothing: float | None = None,
        solver: str | Solver = "newton",
        box: Any = PAPER_BOX,
        random_state: int | np.random.RandomState | None = None,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        working_memory: float | None = None,
        device: str | None = None,
    ) -> None:
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
        X : array-like of shape (n_samples, n_features)
            Training samples, or the distances between them if ``metric="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels, of any type; two classes for the paper's method.
        sample_weight : array-like of shape (n_samples,), default=None
            A sample of weight 2 counts as two samples, one of weight 0 is left out.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples that belong together, such as the months of a consumer. A group is held out as a
            whole; otherwise the model is evaluated on consumers that it has seen, and becomes overconfident
            about others. The paper's method holds nothing out.

        Returns
        -------
        self : POPFClassifier
        """
        check_parameters(self)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # so that a failed fit does not leave old attributes
        data = validate_training(self, X, y, sample_weight)
        check_classes(len(data.classes), self.method)
        numbers = validate_groups(groups, X, data.rows)
        paper = self.method == "paper"
        forest = self._fit_paper(data) if paper else self._fit_evidence(data, numbers)
        self.classes_, self.device_ = data.classes, data.device
        self.samples_ = None if data.metric.precomputed else data.samples
        # Set last, because it marks the model as fitted: see __sklearn_is_fitted__.
        self.opf_ = self._forest_classifier(forest, data.rows, data.device)
        return self

    def _fit_paper(self, data: TrainingData) -> OptimumPathForest:
        forest = grow_forest(
            data.samples, data.codes, data.metric, data.resources, self.algorithm, data.classes
        )
        found = fit_paper(
            forest, data.weights, self.solver, self.box, self.smoothing, self.random_state
        )
        self.solution_: Solution = found
        self.A_, self.B_ = found.theta.tolist()
        self._evidence: Evidence | None = None
        return forest

    def _fit_evidence(self, data: TrainingData, groups: IntArray | None) -> OptimumPathForest:
        from popf.probability.fitting import fit_evidence, options_of
        from popf.probability.training import order_in_memory

        options = options_of(self, data.metric)
        # Parameters of a metric, such as variances, need no labels: they are estimated once for all folds.
        if options.linear_map in (None, "auto"):
            data = replace(data, metric=data.metric.fitted(data.samples))
        training = order_in_memory(data, self.algorithm, groups)
        self._evidence, grown = fit_evidence(training, options)
        forest: OptimumPathForest = grown.forest
        forest.classes = data.classes
        return forest

    def _forest_classifier(
        self, forest: OptimumPathForest, rows: IntArray, device: str
    ) -> OPFClassifier:
        names = ("metric", "metric_params", "algorithm", "n_jobs", "working_memory", "device")
        parameters = {name: getattr(self, name) for name in names}
        samples = forest.samples
        n_features = self.n_features_in_ if samples is None else samples.shape[1]
        return OPFClassifier.from_forest(forest, parameters, n_features, rows, device)

    @classmethod
    def from_evidence(
        cls,
        parameters: Mapping[str, Any],
        opf: OPFClassifier,
        evidence: Evidence | None,
        fitted: Mapping[str, Any],
    ) -> Self:
        """Build a fitted classifier from fitted components; `evidence` is None for the paper's method."""
        model = cls(**parameters)
        model._evidence, model.opf_ = evidence, opf
        model.classes_, model.device_ = opf.classes_, opf.device_
        model.__dict__.update(fitted)
        return model

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict the probability of every class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return to_device_of(X, np.exp(log_softmax(self._exponents(X))))

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Predict the log probability of every class, accurate even for probabilities near 0 or 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return to_device_of(X, log_softmax(self._exponents(X)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels; of two classes, ``classes_[1]`` if its probability reaches the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        chosen = chosen_classes(self._exponents(X), self.threshold)
        return to_device_of(X, self.classes_[chosen])

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the log odds of ``classes_[1]``, or for more than two classes the logits of all.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return to_device_of(X, decisions(self._exponents(X)))

    def explain(self, X: ArrayLike) -> list[Path]:
        """Trace the forest's path to each sample, from a prototype to the sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `predict`. Lengths in the paths are those after squashing and mapping.

        Returns
        -------
        list of Path
        """
        return self.opf_.explain(self.prepare(X))

    def prepare(self, X: ArrayLike) -> FloatArray:
        """Squash and map samples, as for the forest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_prepared)
        """
        new = self._validated(X)
        return new if self._evidence is None else self._evidence.preparation.apply(new)

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
        new = self._validated(X)
        if self._evidence is None:
            raise ValueError("explain_proba needs method='pooled' or 'forest', not 'paper'.")
        names = getattr(self, "feature_names_in_", None)
        return self._evidence.explain(new, self._exponents(X), self.classes_, names)

    def _exponents(self, X: ArrayLike) -> FloatArray:
        """Compute the logits of the classes, whose softmax gives the probabilities."""
        new = self._validated(X)
        if self._evidence is not None:
            return self._evidence.exponents(new, self.opf_.forest_, resources_of(self))
        found = self.opf_.forest_.conquer(new, resources_of(self))
        return paper_exponents(self.opf_.forest_.codes[found.nodes], found.costs, self.A_, self.B_)

    def _validated(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        new = validate_new(self, X, self.opf_.forest_.metric, self.opf_.sample_indices_)
        if self._evidence is None or not self._evidence.preparation.changes:
            self.opf_.forest_.metric.check(new)
        return new

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "opf_" in state:
            from popf.probability.state import to_plain

            state = to_plain(state)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "forest_" not in state:
            super().__setstate__(state)
            return
        from popf.probability.state import restore

        state, forest, rows = restore(state, type(self).__name__)
        super().__setstate__(state)
        self.opf_ = self._forest_classifier(forest, rows, "cpu")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "opf_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.method != "paper"
        return set_metric_tags(tags, self.metric)


def check_parameters(model: Any) -> None:
    """Raise an error if a parameter that the method uses is invalid."""
    if model.method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, not {model.method!r}.")
    threshold: Any = model.threshold
    if not (isinstance(threshold, Real) and 0.0 < float(threshold) < 1.0):
        raise ValueError(f"threshold must be a number between 0 and 1, not {threshold!r}.")
    smoothing: Any = model.smoothing
    if smoothing is not None and not (
        isinstance(smoothing, Real) and 0.0 < float(smoothing) < np.inf
    ):
        raise ValueError(f"smoothing must be None or a positive number, not {smoothing!r}.")
    if not (model.squash == "auto" or isinstance(model.squash, bool | np.bool_)):
        raise ValueError(f"squash must be 'auto', True or False, not {model.squash!r}.")
    for name in ("background", "class_bandwidths"):
        value = getattr(model, name)
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, not {value!r}.")
    _check_map(model.linear_map, model.method, model.metric)
    if model.method == "paper":
        check_box(model.box)
        solver_of(model.solver)


def check_classes(n_classes: int, method: str) -> None:
    """Raise an error if the method does not support this number of classes."""
    if n_classes > 2 and method == "paper":
        raise ValueError(
            f"Only binary classification is supported by method='paper', but y has {n_classes} "
            "classes: use method='pooled' or 'forest'."
        )


def _check_map(choice: Any, method: str, metric: Any) -> None:
    """Raise an error unless `choice` is None, a name or a transformer, and possible with method and metric."""
    if choice is None or (isinstance(choice, str) and choice == "auto"):
        return
    fits = hasattr(choice, "fit") and hasattr(choice, "transform")
    transformer = fits and not isinstance(choice, type)
    if not (choice in MAPS if isinstance(choice, str) else transformer):
        error = ValueError if isinstance(choice, str) else TypeError
        raise error(f"linear_map must be None, one of {MAPS} or a transformer, not {choice!r}.")
    if method == "paper":
        raise ValueError(
            f"linear_map={choice!r} needs method='pooled' or 'forest'. With method='paper', put the map "
            "before POPFClassifier in a pipeline."
        )
    if isinstance(metric, str) and metric == "precomputed":
        raise ValueError(
            f"linear_map={choice!r} maps features, but with metric='precomputed' X holds distances: "
            "use linear_map=None, or pass features and another metric."
        )


def fit_paper(
    forest: OptimumPathForest,
    weights: FloatArray,
    solver: str | Solver,
    box: Any,
    smoothing: float | None,
    random_state: Any,
) -> Solution:
    """Fit A and B of :math:`P = 1 / (1 + e^{A y C + B})`; warn if the solver fails or a bound is reached."""
    solver = solver_of(solver)
    signed = _signed(forest.codes, forest.costs)
    targets = platt_targets(forest.codes, weights, 1.0 if smoothing is None else smoothing)
    solution = solver.minimize(PlattObjective(signed, targets, weights), box, random_state)
    if not solution.converged:
        warnings.warn(
            f"solver {solver!r} did not converge ({solution.message}); its best point is used. "
            "Increase its number of iterations.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if any(solution.at_bound):
        a, b = solution.theta
        warnings.warn(
            f"A = {a:.4g}, B = {b:.4g} is at a bound of the box {box!r}: the best values lie outside it. "
            "Rescale the features or widen the box, or use method='pooled', which does not depend on scale.",
            UserWarning,
            stacklevel=4,
        )
    return solution


def paper_exponents(codes: IntArray, costs: FloatArray, a: float, b: float) -> FloatArray:
    """Compute the logits of both classes from the class and cost of the path that conquers each sample."""
    half = -(a * _signed(codes, costs) + b) / 2.0
    return np.column_stack([-half, half])


def _signed(codes: IntArray, costs: FloatArray) -> FloatArray:
    return np.where(codes == 1, costs, -costs)
