"""The probabilistic Optimum-Path Forest classifier."""

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from popf.forest import OPFClassifier
from popf.parameters import n_bytes_of, n_threads_of, set_precomputed_tags

if TYPE_CHECKING:
    from typing import Self

    from sklearn.utils import Tags

    from popf.solvers import Solution, Solver

FloatArray = NDArray[np.float64]

METHODS = ("soft", "paper")
CALIBRATIONS = ("softmax", "multinomial")
SOLVERS = ("newton", "nelder-mead", "pso", "bat", "firefly")
FITTED = (
    *("A_", "B_", "slope_", "biases_"),
    *("bandwidth_", "bandwidths_", "left_out_losses_", "solution_"),
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
        regression on all scores. For two classes both are Platt's.
    n_left_out : int or None, default=10000
        From how many training samples, drawn by class, bandwidth and scaling are fitted at most.
    box : pair of pairs, default=((-10, 10), (-10, 10))
        Where A and B are looked for, in the paper's method and by solvers that need a box.
    random_state : int, RandomState or None, default=None
        Seeds the swarms and the draw of left-out samples.
    metric, metric_params, algorithm, n_jobs, working_memory
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
    solution_ : Solution or None
        How the solver got there: its history, path and number of evaluations.
    opf_ : OPFClassifier
        The forest.
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
    array([[0.98, 0.02],
           [1.  , 0.  ],
           [0.92, 0.08]])
    """

    def __init__(
        self,
        method: str = "soft",
        *,
        solver: "str | Solver" = "newton",
        threshold: float = 0.5,
        calibration: str = "softmax",
        n_left_out: int | None = 10_000,
        box: Any = BOX,
        random_state: int | np.random.RandomState | None = None,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        working_memory: float | None = None,
    ) -> None:
        self.method = method
        self.solver = solver
        self.threshold = threshold
        self.calibration = calibration
        self.n_left_out = n_left_out
        self.box = box
        self.random_state = random_state
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.working_memory = working_memory

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
        solver = self._check_parameters()
        for (
            name
        ) in FITTED:  # a fit that fails leaves nothing half fitted, one that succeeds nothing old
            self.__dict__.pop(name, None)
        samples, labels = validate_data(
            self, X, y, dtype=np.float64, order="C", ensure_min_samples=2
        )
        opf = OPFClassifier(
            self.metric,
            metric_params=self.metric_params,
            algorithm=self.algorithm,
            n_jobs=self.n_jobs,
            working_memory=self.working_memory,
        )
        self.opf_ = opf.fit(samples, labels, sample_weight)
        self.classes_ = opf.classes_
        self._check_classes(solver)
        kept = opf.sample_indices_
        weights = np.ones(len(labels))
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, samples)
        weights = np.ascontiguousarray(weights[kept], dtype=np.float64)
        self._fitted_method = self.method
        if self.method == "paper":
            self.solution_ = self._fit_paper(solver, weights)
        else:
            precomputed = opf._metric.precomputed
            samples = samples[np.ix_(kept, kept)] if precomputed else samples[kept]
            self.solution_ = self._fit_soft(solver, samples, weights)
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
        from popf.bandwidth import binary_probability

        decision = self.decision_function(X)
        if decision.ndim == 1:
            return binary_probability(decision)[0]
        probability: FloatArray = softmax(decision, axis=1)
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
        from popf.bandwidth import binary_probability

        decision = self.decision_function(X)
        if decision.ndim == 1:
            return binary_probability(decision)[1]
        log_probability: FloatArray = log_softmax(decision, axis=1)
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
        probability = self.predict_proba(X)
        if len(self.classes_) == 2:
            chosen = (probability[:, 1] >= self.threshold).astype(np.int64)
        else:
            chosen = probability.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
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
        check_is_fitted(self)
        new = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        if self._fitted_method == "paper":
            found = self.opf_.conquer(new)
            signed = np.where(self.opf_._codes[found.nodes] == 1, found.costs, -found.costs)
            logit: FloatArray = -(self.A_ * signed + self.B_)
            return logit
        checked = self.opf_._check_new(new)
        scores = self._competition.scores(checked, self.bandwidth_, *self._means())
        exponents: FloatArray = self._scaling.logits(scores)
        return exponents[:, 1] - exponents[:, 0] if len(self.classes_) == 2 else exponents

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "solution_")

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.method != "paper"
        return set_precomputed_tags(tags, self.metric)

    def _check_parameters(self) -> "Solver":
        from popf import solvers
        from popf.solvers.base import check_box

        check_box(self.box)
        for name, value, choices in (
            ("method", self.method, METHODS),
            ("calibration", self.calibration, CALIBRATIONS),
        ):
            if value not in choices:
                raise ValueError(f"{name} must be one of {choices}, not {value!r}.")
        if not (np.isreal(self.threshold) and 0.0 < self.threshold < 1.0):
            raise ValueError(f"threshold must lie between 0 and 1, not at {self.threshold!r}.")
        limit = self.n_left_out
        if limit is not None and not (isinstance(limit, int | np.integer) and limit >= 2):
            raise ValueError(f"n_left_out must be None or a number from 2 on, not {limit!r}.")
        solver = self.solver
        if isinstance(solver, str):
            makers = (
                solvers.Newton,
                solvers.NelderMead,
                solvers.PSO,
                solvers.Bat,
                solvers.Firefly,
            )
            named = dict(zip(SOLVERS, makers, strict=True))
            if solver not in named:
                raise ValueError(f"solver must be one of {SOLVERS} or a solver, not {solver!r}.")
            solver = named[solver]()
        if not isinstance(solver, solvers.Solver):
            raise TypeError(
                f"solver must be one of {SOLVERS} or an object of popf.solvers, not {solver!r}."
            )
        return solver

    def _check_classes(self, solver: "Solver") -> None:
        from popf.solvers import Newton

        n_classes = len(self.classes_)
        if n_classes > 2 and self.method == "paper":
            raise ValueError(
                f"Only binary classification is supported by method='paper', but y has {n_classes} "
                "classes: use method='soft'."
            )
        if n_classes > 2 and not isinstance(solver, Newton):
            raise ValueError(
                f"y has {n_classes} classes, for which only solver='newton' serves, not "
                f"{self.solver!r}."
            )

    def _fit_paper(self, solver: "Solver", weights: FloatArray) -> "Solution | None":
        """Fit A and B to the signed costs of the training samples."""
        from popf.solvers import PlattObjective, platt_targets

        codes = self.opf_._codes
        signed = np.where(codes == 1, self.opf_.costs_, -self.opf_.costs_)
        objective = PlattObjective(signed, platt_targets(codes, weights), weights)
        solution = solver.minimize(objective, self.box, self.random_state)
        self.A_, self.B_ = solution.theta.tolist()
        self._warn(solution)
        return solution

    def _fit_soft(
        self, solver: "Solver", samples: FloatArray, weights: FloatArray
    ) -> "Solution | None":
        """Choose a bandwidth by the left-out log loss, and fit the scaling of the scores."""
        from popf.bandwidth import fit_scaling, rows_to_leave_out
        from popf.soft_competition import Multinomial, SoftCompetition, fit_all
        from popf.solvers import Newton

        competition = self._competition = SoftCompetition(self.opf_, samples, weights)
        masses, binary = competition.masses, len(self.classes_) == 2
        rows = rows_to_leave_out(self.opf_._codes, self.n_left_out, self.random_state)
        left_out, self.bandwidths_ = competition.leave_out(samples, rows, *self._means())
        scalings, self.left_out_losses_ = fit_all(left_out, masses)
        best = int(np.argmin(self.left_out_losses_))
        self.bandwidth_ = float(self.bandwidths_[best])
        scaling, scores = scalings[best], left_out.scores[:, :, best]
        informed = scaling.slope > 0.0
        if informed and binary and not isinstance(solver, Newton):
            box, seed = self.box, self.random_state
            scaling = fit_scaling(scores, *left_out[1:], masses, solver, box, seed)
        self._scaling: Any = scaling
        if informed and not binary and self.calibration == "multinomial":
            self._scaling = Multinomial(scores, *left_out[1:])
        if binary:
            self.A_ = -scaling.slope
            self.B_ = float(scaling.biases[0] - scaling.biases[1])
        else:
            self.slope_, self.biases_ = scaling.slope, scaling.biases
        if scaling.solution is not None:
            self._warn(scaling.solution)
        return scaling.solution

    def _means(self) -> tuple[int, int]:
        """How many threads and how many bytes may be used."""
        return n_threads_of(self.n_jobs), n_bytes_of(self.working_memory)

    def _warn(self, solution: "Solution") -> None:
        if not solution.converged:
            warnings.warn(
                f"solver {self.solver!r} did not converge ({solution.message}); its best point is kept. "
                "Give it more iterations.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if self.method == "paper" and any(solution.at_bound):
            a, b = solution.theta
            warnings.warn(
                f"The box {self.box!r} holds A = {a:.4g}, B = {b:.4g}: the best values lie outside it. "
                "Rescale the features or widen the box, or use method='soft', which is free of scale.",
                UserWarning,
                stacklevel=4,
            )
