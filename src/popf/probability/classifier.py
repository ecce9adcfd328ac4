"""The probabilistic Optimum-Path Forest classifier."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from popf.forest.classifier import OPFClassifier
from popf.forest.devices import to_device_of, to_host
from popf.forest.validation import (
    TrainingData,
    resources_of,
    set_precomputed_tags,
    validate_new,
    validate_training,
)
from popf.probability.checks import check_classes, check_parameters, warn_of

if TYPE_CHECKING:
    from typing import Self

    from sklearn.utils import Tags

    from popf.forest.optimum_path_forest import OptimumPathForest
    from popf.probability.soft_competition import LeftOut
    from popf.solvers import Solution, Solver

    HeldOut = tuple[LeftOut, NDArray[np.float64]]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FITTED = (
    *("A_", "B_", "slope_", "biases_"),
    *("bandwidth_", "bandwidths_", "left_out_losses_", "solution_"),
    *("linear_map_", "linear_map_losses_", "prior_weight_"),
)
BOX = ((-10.0, 10.0), (-10.0, 10.0))


class POPFClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Probabilistic Optimum-Path Forest classifier.

    Turns the path costs of an optimum-path forest into probabilities.

    **soft** (our default): every training node v offers a path to the sample t,
    :math:`c_v = \max(C_v, d(v, t))`. The score of a class is the soft minimum of what its nodes offer,
    :math:`m_k = -\log \operatorname{mean}_{v \in k} e^{-c_v / \tau}`, and probabilities are a softmax of the
    scores, for two classes Platt's :math:`P = 1 / (1 + e^{A (m_0 - m_1) + B})`. Slope, biases and bandwidth
    are fitted to the scores that training samples get when they are left out, so they are honest.

    **paper**: the P-OPF of Fernandes et al. [1]_, for two classes. A sample's own cost, signed by its label,
    is the score: :math:`P = 1 / (1 + e^{A y C + B})`, with A and B fitted in a box over the costs that
    the forest has seen. It is overconfident, and not free of scale; it is here for comparison.

    Parameters
    ----------
    method : {"soft", "paper"}, default="soft"
        How probabilities are made.
    solver : {"newton", "nelder-mead", "pso", "bat", "firefly"} or a solver, default="newton"
        What finds A and B; with the paper's parameters, or as an object of `popf.solvers` with others.
        For more than two classes only Newton's method.
    threshold : float, default=0.5
        The probability from which a sample is called ``classes_[1]``, for two classes.
    calibration : {"softmax", "multinomial"}, default="softmax"
        For three classes and more in the soft method: one slope for all, or a multinomial logistic
        regression on all scores, unless some class has a single sample. For two classes both are Platt's.
    n_left_out : int or None, default=5000
        From how many training samples, drawn by class, slope and biases are fitted at most; for the
        bandwidth fewer do. None takes all.
    smoothing : float or None, default=None
        a in the targets (N + a) / (N + 2a) that stand for 1. None takes Platt's 1 for the paper's method, and
        Jeffreys' 1/2 for the soft one, which is less cautious where classes are well apart.
    linear_map : None, "auto", "weights", "whitening", "discriminant" or a transformer, default=None
        What maps the features first, so that distances fit the classes: a map of `popf.probability`, or a
        transformer. "auto" tries none and the three by cross-validated log loss. Soft method only;
        bandwidth and scaling are then fitted to samples that the map has not seen.
    box : pair of pairs, default=((-10, 10), (-10, 10))
        Where A and B are looked for, in the paper's method and by solvers that need a box.
    random_state : int, RandomState or None, default=None
        Seeds the swarms, the draw of left-out samples, and the folds in which maps are tried.
    metric, metric_params, algorithm, n_jobs, working_memory, device
        As for `OPFClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    A_, B_ : float
        For two classes: slope and offset of the probability.
    slope_, biases_ : float, ndarray of shape (n_classes,)
        For more classes with ``calibration="softmax"``: :math:`P_k \propto e^{-a m_k + b_k}`.
    bandwidth_ : float
        :math:`\tau`, in the unit of the metric (soft).
    bandwidths_, left_out_losses_ : ndarray
        The bandwidths tried, and the left-out log loss of each (soft).
    prior_weight_ : float
        How far the answers are drawn to the class prior because the left-out scores hardly beat it: 0 not
        at all, 1 all the way (soft).
    solution_ : Solution or None
        How the solver got there: its history, path and number of evaluations.
    linear_map_ : object or None
        The fitted map, None for none.
    linear_map_losses_ : dict
        With `linear_map`: the cross-validated log loss of every map tried, by name.
    opf_ : OPFClassifier
        The forest; it knows samples as `linear_map_` maps them.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if X had names that are all strings.

    References
    ----------
    .. [1] S. E. N. Fernandes, D. R. Pereira, C. C. O. Ramos, A. N. Souza, J. P. Papa, "A Probabilistic
       Optimum-Path Forest Classifier for Binary Classification Problems", arXiv:1609.00878.
    .. [2] H.-T. Lin, C.-J. Lin, R. C. Weng, "A note on Platt's probabilistic outputs for support vector
       machines", Machine Learning 68, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from popf import POPFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), POPFClassifier()).fit(X[::2], y[::2])
    >>> model.predict_proba(X[5:8]).round(2)
    array([[0.99, 0.01],
           [1.  , 0.  ],
           [0.95, 0.05]])
    """

    def __init__(
        self,
        method: str = "soft",
        *,
        solver: "str | Solver" = "newton",
        threshold: float = 0.5,
        calibration: str = "softmax",
        n_left_out: int | None = 5000,
        smoothing: float | None = None,
        linear_map: Any = None,
        box: Any = BOX,
        random_state: int | np.random.RandomState | None = None,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        working_memory: float | None = None,
        device: str | None = None,
    ) -> None:
        self.method = method
        self.solver = solver
        self.threshold = threshold
        self.calibration = calibration
        self.n_left_out = n_left_out
        self.smoothing = smoothing
        self.linear_map = linear_map
        self.box = box
        self.random_state = random_state
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.working_memory = working_memory
        self.device = device

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "Self":
        """Grow the forest and fit its probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, or the distances between them if ``metric="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels, of any type; two classes for the paper's method.
        sample_weight : array-like of shape (n_samples,), default=None
            A sample of weight 2 counts as two samples, one of weight 0 is left out.

        Returns
        -------
        self : POPFClassifier
        """
        from popf.forest.growing import grow_forest

        solver = self._check_parameters()
        # A fit that fails leaves nothing half fitted, one that succeeds nothing old.
        for name in FITTED:
            self.__dict__.pop(name, None)
        data = validate_training(self, X, y, sample_weight)
        check_classes(self, len(data.classes), solver)
        grow = partial(
            grow_forest,
            metric=data.metric,
            resources=data.resources,
            algorithm=self.algorithm,
        )
        held_out = self._fit_map(data, grow)
        samples = self._mapped(data.samples)
        forest = grow(samples, data.codes, classes=data.classes)
        width = self.n_features_in_ if data.metric.precomputed else samples.shape[1]
        self.opf_ = OPFClassifier.from_forest(
            forest, self._forest_parameters(), width, data.rows, data.device
        )
        self.classes_, self.device_ = data.classes, data.device
        self._fitted_method = self.method
        if self.method == "paper":
            self.solution_ = self._fit_paper(solver, data.weights)
        else:
            from popf.probability.soft_competition import SoftCompetition
            from popf.probability.soft_method import InMemory, fit_soft

            self._competition = SoftCompetition(forest, samples, data.weights)
            contest = InMemory(self._competition, samples, self._means())
            self.solution_ = fit_soft(self, contest, data.codes, solver, held_out)
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Give the probability of every class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        from popf.probability.calibration import binary_probability

        decision = self._decision(X)
        both = binary_probability(decision)[0] if decision.ndim == 1 else softmax(decision, axis=1)
        probability: FloatArray = to_device_of(X, both)
        return probability

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Give the logarithm of the probability of every class, exact where that is near 0 or 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        from popf.probability.calibration import binary_probability

        decision = self._decision(X)
        two = decision.ndim == 1
        both = binary_probability(decision)[1] if two else log_softmax(decision, axis=1)
        log_probability: FloatArray = to_device_of(X, both)
        return log_probability

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Give every sample a label: of two, ``classes_[1]`` from the threshold on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        probability = to_host(self.predict_proba(X))
        if len(self.classes_) == 2:
            chosen = (probability[:, 1] >= self.threshold).astype(np.int64)
        else:
            chosen = probability.argmax(axis=1)
        labels: NDArray[Any] = to_device_of(X, self.classes_[chosen])
        return labels

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Give the logit of ``classes_[1]``, or exponents whose softmax are the probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        decision: FloatArray = to_device_of(X, self._decision(X))
        return decision

    def _decision(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        forest = self.opf_.forest_
        new = self._mapped(validate_new(self, X, forest.metric, self.opf_.sample_indices_))
        if self._fitted_method == "paper":
            found = forest.conquer(new, resources_of(self))
            signed = np.where(forest.codes[found.nodes] == 1, found.costs, -found.costs)
            logit: FloatArray = -(self.A_ * signed + self.B_)
            return logit
        forest.metric.check(new)
        if self._scaling.gain == 0.0:  # the prior, whatever the scores
            scores = np.zeros((len(new), len(self.classes_)))
        else:
            scores = self._competition.scores(new, self.bandwidth_, *self._means())
        exponents: FloatArray = self._scaling.logits(scores)
        return exponents[:, 1] - exponents[:, 0] if len(self.classes_) == 2 else exponents

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "solution_")

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.method != "paper"
        return set_precomputed_tags(tags, self.metric)

    def _check_parameters(self) -> "Solver":
        return check_parameters(self)

    def _forest_parameters(self) -> dict[str, Any]:
        names = ("metric", "metric_params", "algorithm", "n_jobs", "working_memory", "device")
        return {name: getattr(self, name) for name in names}

    def _fit_map(
        self, data: TrainingData, grow: "Callable[..., OptimumPathForest]"
    ) -> "HeldOut | None":
        """Fit the map, and give scores of samples that it has not seen."""
        self.linear_map_: Any = None
        if self.linear_map is None:
            return None
        from popf.probability.map_choice import Problem, fit_map

        means = (*self._means(), self._smoothing())
        problem = Problem(data.samples, data.codes, data.weights, grow, *means)
        found = fit_map(self.linear_map, problem, self.n_left_out, self.random_state)
        self.linear_map_, held_out, self.linear_map_losses_ = found
        return held_out

    def _mapped(self, samples: FloatArray) -> FloatArray:
        if self.linear_map_ is None:
            return samples
        from popf.probability.map_choice import mapped

        return mapped(self.linear_map_, samples)

    def _fit_paper(self, solver: "Solver", weights: FloatArray) -> "Solution | None":
        """Fit A and B to the signed costs of the training samples."""
        from popf.solvers import PlattObjective, platt_targets

        codes = self.opf_.forest_.codes
        signed = np.where(codes == 1, self.opf_.costs_, -self.opf_.costs_)
        objective = PlattObjective(
            signed, platt_targets(codes, weights, self._smoothing()), weights
        )
        solution = solver.minimize(objective, self.box, self.random_state)
        self.A_, self.B_ = solution.theta.tolist()
        warn_of(self, solution)
        return solution

    def _smoothing(self) -> float:
        if self.smoothing is None:
            return 1.0 if self.method == "paper" else 0.5
        return self.smoothing

    def _means(self) -> tuple[int, int]:
        """How many threads and how many bytes may be used."""
        return resources_of(self)[:2]
