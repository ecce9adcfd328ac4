"""The paper's probabilistic Optimum-Path Forest classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import FloatArray, IntArray
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import grow_forest
from popf.forest.probabilities import ForestProbabilities
from popf.forest.validation import (
    checked_metric,
    resources_of,
    to_device_of,
    validate_new,
    validate_training,
)
from popf.formatting import check_real, check_share
from popf.paper.local import NelderMead, Newton
from popf.paper.platt import PlattObjective, platt_probability, platt_targets
from popf.paper.solver import PAPER_BOX, Solution, Solver, check_box
from popf.paper.swarms import PSO, Bat, Firefly
from popf.state import (
    Float,
    Sizes,
    Spec,
    StateError,
    from_plain,
    to_plain,
)

SOLVERS: dict[str, type[Solver]] = {
    "newton": Newton,
    "nelder-mead": NelderMead,
    "pso": PSO,
    "bat": Bat,
    "firefly": Firefly,
}


class Solutions(Spec):
    """The solution for two classes, or a list of one for each of more; always stored as a list."""

    def write(self, value: Any) -> list[dict[str, Any]]:
        """Convert the solutions."""
        return [to_plain(each) for each in (value if isinstance(value, list) else [value])]

    def read(self, value: Any, owner: str, sizes: Sizes) -> Any:
        """Check and rebuild the solutions."""
        n_fits = sizes["n_classes"] if sizes["n_classes"] > 2 else 1
        if not (isinstance(value, list) and len(value) == n_fits):
            raise StateError(f"a list of {n_fits}")
        solutions = [from_plain(Solution, each, owner) for each in value]
        return solutions if n_fits > 1 else solutions[0]


class PlattOPFClassifier(ForestProbabilities):
    r"""The paper's P-OPF: Platt scaling of the signed cost of the optimum path.

    A forest gives every sample a label y, +1 or -1, and the cost C of its optimum path (section 2 of [1]_);
    for a new sample they are those of the training node that conquers it. The signed cost y·C takes the place
    of the SVM's decision function in Platt scaling (section 3):

    .. math:: P(y = 1 \mid x) = \frac{1}{1 + e^{A y C + B}}. \qquad (8)

    A and B minimise the cross-entropy F of the training samples with Platt's targets, equations 7 and 9 to 11,
    in the box :math:`[-10, 10]^2` (section 4). The label +1 is predicted if :math:`P \ge \Theta`.

    This class is for comparison with the paper. Its probabilities are overconfident and depend on the scale
    of the features; `POPFClassifier` has neither problem.

    Parameters
    ----------
    solver : {"newton", "nelder-mead", "pso", "bat", "firefly"} or a solver, default="newton"
        Solver for A and B, by name or as an object of `popf.paper`. The last four are the paper's.
    box : pair of pairs or None, default=((-10, 10), (-10, 10))
        (lower, upper) bounds of A and of B; None for no bounds (not for swarms).
    threshold : float, default=0.5
        Θ: for two classes, the lowest probability of ``classes_[1]`` at which it is predicted.
    smoothing : float, default=1.0
        a in the targets (N + a) / (N + 2a); 1 is Platt's and the paper's.
    random_state : int, RandomState or None, default=None
        Seed of the swarms ("pso", "bat" and "firefly").
    metric, metric_params, algorithm, n_jobs, working_memory, device
        As for `OPFClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; of two, the second is the paper's class +1.
    opf_ : OPFClassifier
        The forest.
    A_, B_ : float, or ndarray of shape (n_classes,) for more than two classes
        Slope and offset.
    solution_ : Solution, or a list of one for each class
        What the solver found, with its history.
    samples_ : ndarray of shape (n_samples, n_features) or None
        The training samples of positive weight; None with precomputed distances.
    device_, n_features_in_, feature_names_in_
        As of `OPFClassifier`.

    See Also
    --------
    POPFClassifier : Probabilities fitted to held-out samples.

    Notes
    -----
    **More than two classes** are the paper's future work; here, each class is set against the rest. The forest
    is the same for all. For class k the label y is +1 where the forest's label is k and -1 elsewhere, which
    gives :math:`A_k`, :math:`B_k` and a probability :math:`p_k` by equation 8; the probabilities are
    :math:`p_k / \sum_j p_j`, computed from logarithms, so that they stay defined where all :math:`p_k`
    round to 0.

    **The paper's misprint.** Equations 10 and 11 have a wrong minus before the sum; see `PlattObjective`.

    References
    ----------
    .. [1] S. E. N. Fernandes, D. R. Pereira, C. C. O. Ramos, A. N. Souza, J. P. Papa, "A Probabilistic
       Optimum-Path Forest Classifier for Binary Classification Problems", arXiv:1609.00878.

    Examples
    --------
    >>> from popf import PlattOPFClassifier
    >>> X = [[0.0], [1.0], [2.5], [6.0], [7.0], [7.5]]
    >>> y = ["low", "low", "low", "high", "high", "high"]
    >>> model = PlattOPFClassifier().fit(X, y)
    >>> model.classes_, round(model.A_, 2), round(model.B_, 2)
    (array(['high', 'low'], dtype='<U4'), -1.09, 0.15)
    >>> model.predict_proba([[2.0], [5.0]]).round(2)
    array([[0.4 , 0.6 ],
           [0.78, 0.22]])
    """

    samples_: Annotated[FloatArray, Float("n_samples", "n_features")] | None
    solution_: Annotated[Solution | list[Solution], Solutions()]
    A_: float | FloatArray
    B_: float | FloatArray

    def __init__(
        self,
        solver: str | Solver = "newton",
        *,
        box: Any = PAPER_BOX,
        threshold: float = 0.5,
        smoothing: float = 1.0,
        random_state: int | np.random.RandomState | None = None,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        working_memory: float | None = None,
        device: str | None = None,
    ) -> None:
        self.solver = solver
        self.box = box
        self.threshold = threshold
        self.smoothing = smoothing
        self.random_state = random_state
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.working_memory = working_memory
        self.device = device

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the forest and fit A and B to its costs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, or the distances between them if ``metric="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            A sample of weight 2 counts as two in the fit of A and B; one of weight 0 is left out.

        Returns
        -------
        self : PlattOPFClassifier
        """
        self.check_parameters()
        solver = solver_of(self.solver)
        self._forget_fit()
        data = validate_training(self, X, y, sample_weight)
        forest = grow_forest(
            data.samples, data.codes, data.metric, data.resources, self.algorithm, data.classes
        )
        solutions = []
        n_classes = len(data.classes)
        for k in range(n_classes) if n_classes > 2 else [1]:
            signed = signed_costs(forest.codes, forest.costs, k)
            targets = platt_targets(forest.codes == k, data.weights, self.smoothing)
            objective = PlattObjective(signed, targets, data.weights)
            solutions.append(solver.minimize(objective, self.box, self.random_state))
            self._warn(solutions[-1], f"class {data.classes[k]!s}: " if n_classes > 2 else "")
        self.classes_, self.device_ = data.classes, data.device
        self.samples_ = forest.samples
        self.solution_ = solutions if n_classes > 2 else solutions[0]
        self._set_parameters()
        self.opf_ = OPFClassifier.inside(self, forest, data.rows, data.device)
        return self

    def _warn(self, solution: Solution, start: str) -> None:
        """Warn if the solver has not converged, or has reached a bound of the box."""
        if not solution.converged:
            warnings.warn(
                f"{start}solver {self.solver!r} did not converge ({solution.message}); its best point is used. "
                "Increase its number of iterations.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if any(solution.at_bound):
            a, b = solution.theta
            warnings.warn(
                f"{start}A = {a:.4g}, B = {b:.4g} is at a bound of the box {self.box!r}: the best values lie "
                "outside it. Rescale the features or widen the box, or use POPFClassifier, which does not "
                "depend on scale.",
                UserWarning,
                stacklevel=3,
            )

    def _set_parameters(self) -> None:
        """Set A and B from the solutions."""
        if isinstance(self.solution_, list):
            self.A_, self.B_ = np.transpose([solution.theta for solution in self.solution_]).copy()
        else:
            self.A_, self.B_ = self.solution_.theta.tolist()

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Compute the probability of every class, equation 8.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        if len(self.classes_) > 2:
            return super().predict_proba(X)
        return to_device_of(X, platt_probability(self._signed_costs(X), self._theta()))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the log odds, -(A y C + B), of ``classes_[1]``; of more classes, of each against the rest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        log_odds = self._log_odds(self._signed_costs(X))
        return to_device_of(X, log_odds[:, 1] if len(self.classes_) == 2 else log_odds)

    def _logits(self, X: ArrayLike) -> FloatArray:
        # Logarithms of the probabilities, which are divided by their sum: all may round to 0.
        log_probabilities: FloatArray = log_expit(self._log_odds(self._signed_costs(X)))
        return log_probabilities

    def _as_forest_sees(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return validate_new(self, X, self.opf_.forest_.metric, self.opf_.sample_indices_)

    def _signed_costs(self, X: ArrayLike) -> FloatArray:
        """Compute y·C of new samples with each class in turn as +1: (n_samples, n_classes)."""
        new, forest = self._as_forest_sees(X), self.opf_.forest_
        found = forest.conquer(new, resources_of(self))
        codes = forest.codes[found.nodes]
        columns = [signed_costs(codes, found.costs, k) for k in range(len(self.classes_))]
        return np.column_stack(columns)

    def _theta(self) -> FloatArray:
        """Return A and B of every class: (2, n_classes)."""
        if len(self.classes_) == 2:
            # 1 - P has the same A and the opposite B for the other class's signed costs.
            return np.array([[self.A_, self.A_], [-self.B_, self.B_]])
        return np.array([self.A_, self.B_])

    def _log_odds(self, signed: FloatArray) -> FloatArray:
        slopes, offsets = self._theta()
        log_odds: FloatArray = -(slopes * signed + offsets)
        return log_odds

    def check_state(self, sizes: Sizes) -> None:
        """Restore the forest, A and B; see `popf.state`."""
        self.opf_ = OPFClassifier.restored(self, self.samples_, sizes)
        self.device_ = self.opf_.device_
        self._set_parameters()
        with np.errstate(over="ignore"):
            highest = self.A_ * self.opf_.forest_.costs.max()
        if not np.isfinite(highest).all():
            raise StateError("solutions with finite log odds of the samples", "solution_")

    def check_parameters(self) -> None:
        """Check all parameters; see `popf.state`."""
        checked_metric(self)
        solver_of(self.solver)
        check_box(self.box)
        check_share("threshold", self.threshold)
        check_real("smoothing", self.smoothing, 0.0, strictly=True)


def signed_costs(codes: IntArray, costs: FloatArray, positive: int) -> FloatArray:
    """Compute y·C, where y is +1 for the class `positive` and -1 for all others (section 3)."""
    return np.where(codes == positive, costs, -costs)


def solver_of(solver: Any) -> Solver:
    """Return the solver with a name; a solver object is returned unchanged."""
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    error = ValueError if isinstance(solver, str) else TypeError
    raise error(
        f"`solver` must be one of {tuple(SOLVERS)} or an object of popf.paper, not {solver!r}."
    )
