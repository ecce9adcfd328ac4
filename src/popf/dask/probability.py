"""The probabilistic Optimum-Path Forest classifier on a cluster."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.utils.validation import check_is_fitted

from popf.dask.base import DaskClassifier
from popf.dask.cluster import tasks_on
from popf.dask.lazy import Query
from popf.dask.model import Part, first_of
from popf.dask.scoring import LeavingOut, sums, together
from popf.probability.calibration import binary_probability
from popf.probability.checks import check_classes
from popf.probability.classifier import BOX, FITTED, POPFClassifier
from popf.probability.soft_competition import SoftCompetition
from popf.probability.soft_method import fit_soft

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
    method, solver, threshold, calibration, n_left_out, smoothing, box, random_state
        As for `popf.POPFClassifier`.
    metric, metric_params, algorithm, n_jobs, working_memory, device, block_size, scratch
        As for `DaskOPFClassifier`.

    Attributes
    ----------
    classes_, A_, B_, slope_, biases_, bandwidth_, bandwidths_, left_out_losses_, prior_weight_, solution_
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
        method: str = "soft",
        solver: "str | Solver" = "newton",
        threshold: float = 0.5,
        calibration: str = "softmax",
        n_left_out: int | None = 5000,
        smoothing: float | None = None,
        box: Any = BOX,
        random_state: int | np.random.RandomState | None = None,
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
        self.method = method
        self.solver = solver
        self.threshold = threshold
        self.calibration = calibration
        self.n_left_out = n_left_out
        self.smoothing = smoothing
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
        plain = self._plain_estimator()
        solver = plain._check_parameters()
        with tasks_on(self.client) as tasks:
            model = self._fit_forest(tasks, X, y, sample_weight)
            plain.opf_, plain.classes_ = self._plain_forest(model), model.classes
            plain.linear_map_, plain._fitted_method = None, self.method
            plain.device_ = model.settings.device
            plain.n_features_in_ = self.n_features_in_
            if self.method == "paper":
                plain.solution_ = plain._fit_paper(solver, model.weights)
            else:
                contest = LeavingOut(tasks, model)
                plain.solution_ = fit_soft(plain, contest, model.codes, solver)
                self._masses = contest.masses
        for name in (*FITTED, "classes_", "opf_"):
            if hasattr(plain, name):
                setattr(self, name, getattr(plain, name))
        self._plain = plain
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
        return self._ask_for("probability", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Give the logarithm of the probability of every class, lazily if X is lazy.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array or dataframe in the partitions of X; not lazy if X is in memory
        """
        return self._ask_for("log probability", X)

    def predict(self, X: Any) -> Any:
        """Give every sample a label, lazily if X is lazy: of two, ``classes_[1]`` from the threshold on.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array or series in the partitions of X; not lazy if X is in memory
        """
        return self._ask_for("label", X)

    def decision_function(self, X: Any) -> Any:
        """Give the logit of ``classes_[1]``, or exponents whose softmax are the probabilities.

        Parameters
        ----------
        X : Dask array or dataframe, or array-like of shape (n_samples, n_features)

        Returns
        -------
        Dask array, series or dataframe in the partitions of X; not lazy if X is in memory
        """
        return self._ask_for("logit", X)

    def to_local(self) -> POPFClassifier:
        """Give the plain estimator, with all samples in this process.

        Returns
        -------
        POPFClassifier
        """
        samples = self._gather_samples()
        plain = POPFClassifier(**self._plain.get_params(deep=False))
        plain.__dict__.update(self._plain.__dict__)
        plain.opf_ = self._plain_forest(self._model, samples)
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        if self._plain._fitted_method == "soft":
            plain._competition = SoftCompetition(plain.opf_.forest_, samples, self._model.weights)
        return plain

    def _check_classes(self, n_classes: int) -> None:
        plain = self._plain_estimator()
        check_classes(plain, n_classes, plain._check_parameters())

    def _plain_estimator(self) -> POPFClassifier:
        values = self.get_params(deep=False)
        return POPFClassifier(
            **{name: values[name] for name in POPFClassifier().get_params() if name in values}
        )

    def _ask_for(self, what: str, X: Any) -> Any:
        check_is_fitted(self)
        plain, n_classes = self._plain, len(self.classes_)
        offer: Callable[..., FloatArray]
        combine: Callable[..., FloatArray]
        logits: Callable[[FloatArray], FloatArray]
        if plain._fitted_method == "paper":
            offer, combine = Part.conquer, first_of
            logits = partial(_logits_of_costs, self._model.settings.metric, self.A_, self.B_)
        elif plain._scaling.gain == 0.0:  # the prior, whatever the scores
            offer, combine = partial(_no_offer, n_classes=n_classes), together
            logits = partial(_logits_of_sums, plain._scaling, np.zeros(n_classes))
        else:
            offer = partial(sums, tau=self.bandwidth_)
            combine = together
            logits = partial(_logits_of_sums, plain._scaling, np.log(self._masses))
        columns = self.classes_ if what.endswith("probability") or n_classes > 2 else None
        dtype: Any = np.float64
        if what == "label":
            columns, dtype = None, self.classes_.dtype
        finish = partial(_finish, what, logits, self.classes_, self.threshold)
        return self._run(Query(offer, combine, finish, columns, dtype), X)


def _no_offer(part: Part, X: FloatArray, n_classes: int) -> FloatArray:
    return np.zeros((len(X), n_classes))


def _logits_of_costs(metric: Any, a: float, b: float, offers: FloatArray) -> FloatArray:
    costs = metric.transform(offers[:, 0], offers[:, 4].astype(np.int64))
    logits: FloatArray = -(a * np.where(offers[:, 2] == 1.0, costs, -costs) + b)
    return logits


def _logits_of_sums(scaling: Any, log_masses: FloatArray, logs: FloatArray) -> FloatArray:
    exponents: FloatArray = scaling.logits(log_masses - logs)
    return exponents[:, 1] - exponents[:, 0] if exponents.shape[1] == 2 else exponents


def _finish(
    what: str,
    logits: Callable[[FloatArray], FloatArray],
    classes: NDArray[Any],
    threshold: float,
    offers: FloatArray,
) -> NDArray[Any]:
    """Turn what the parts of the model say into the answer that was asked for."""
    decision = logits(offers)
    if what == "logit":
        return decision
    two = decision.ndim == 1
    if what == "log probability":
        log_probability: FloatArray = (
            binary_probability(decision)[1] if two else log_softmax(decision, axis=1)
        )
        return log_probability
    probability: FloatArray = binary_probability(decision)[0] if two else softmax(decision, axis=1)
    if what == "probability":
        return probability
    chosen = (
        (probability[:, 1] >= threshold).astype(np.int64) if two else probability.argmax(axis=1)
    )
    labels: NDArray[Any] = classes[chosen]
    return labels
