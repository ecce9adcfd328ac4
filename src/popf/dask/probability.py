"""The probabilistic Optimum-Path Forest classifier on a cluster."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from popf.dask.cluster import Tasks, tasks_on
from popf.dask.forest import DaskClassifier
from popf.dask.growing import ForestInBlocks
from popf.dask.prediction import Part, Query, add_sums, first_of
from popf.dask.training import fetch_rows, log_masses, open_samples
from popf.engine.structures import FloatArray
from popf.probability.classifier import (
    POPFClassifier,
    check_classes,
    check_parameters,
    fit_paper,
    paper_exponents,
)
from popf.probability.fitting import fit_evidence, options_of
from popf.probability.pooling import Evidence, EvidenceAttributes
from popf.probability.regressions import chosen_classes, decisions, log_softmax
from popf.solvers import Solver
from popf.solvers.base import PAPER_BOX

#: From exponents to predictions.
Predict = Callable[[FloatArray], NDArray[Any]]


class DaskPOPFClassifier(EvidenceAttributes, DaskClassifier):
    """Probabilistic Optimum-Path Forest classifier of Dask collections, memory maps and Parquet folders.

    Fits what `popf.POPFClassifier` fits: everything is chosen and fitted by the same samples, and scores are
    sums over blocks, so that probabilities agree but for rounding. Predictions are Dask
    arrays, series or dataframes in the partitions of X; for X in memory they are computed at once.

    Parameters
    ----------
    client, metric, metric_params, algorithm, n_jobs, working_memory, device, block_size, scratch
        As for `DaskOPFClassifier`.
    method, squash, linear_map, background, class_bandwidths, threshold, smoothing, solver, box, random_state
        As for `popf.POPFClassifier`.

    Attributes
    ----------
    opf_ : OPFClassifier
        The forest to look at: costs, prototypes, spanning tree. It has no samples; that of `to_local` has.
    classes_, n_features_in_, feature_names_in_
        As of `popf.OPFClassifier`.
    pool_weights_, held_out_losses_, held_out_accuracies_, held_out_aucs_, prior_weight_
        As of `popf.POPFClassifier`: the weights of the pool, and how good each part is on held-out samples.
    linear_map_, linear_map_losses_, bandwidths_, slopes_, biases_, A_, B_, solution_
        As of `popf.POPFClassifier`: what was fitted.
    n_blocks_, n_block_pairs_ : int
        How many blocks there were, and how many pairs of them had to be compared.

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
        solver: str | Solver = "newton",
        box: Any = PAPER_BOX,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        check_parameters(self)
        with tasks_on(self.client) as tasks:
            if self.method == "paper":
                model = self._fit_forest(tasks, X, y, sample_weight)
                self._fit_paper(model)
            else:
                model = self._fit_evidence(tasks, X, y, sample_weight)
        self.classes_ = model.samples.classes
        self._model = model  # last: see __sklearn_is_fitted__
        return self

    def _fit_paper(self, model: ForestInBlocks) -> None:
        self.opf_ = self._plain_forest(model)
        self.solution_ = fit_paper(
            self.opf_.forest_,
            model.samples.weights,
            self.solver,
            self.box,
            self.smoothing,
            self.random_state,
        )
        self.A_, self.B_ = self.solution_.theta.tolist()
        self._evidence: Evidence | None = None

    def _fit_evidence(self, tasks: Tasks, X: Any, y: Any, sample_weight: Any) -> ForestInBlocks:
        source, settings = self._open(tasks, X, y, sample_weight)
        training = open_samples(tasks, source, settings)
        options = options_of(self, settings.metric)
        self._evidence, grown = fit_evidence(training, options)
        model: ForestInBlocks = grown.forest
        self.n_blocks_, self.n_block_pairs_ = len(model.samples.blocks), model.n_pairs
        self.opf_ = self._plain_forest(model)
        self._samples = source, training.rows
        return model

    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of every class, lazily if X is lazy."""
        check_is_fitted(self)
        return self._predict(X, _probabilities, self.classes_)

    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of every class, lazily if X is lazy."""
        check_is_fitted(self)
        return self._predict(X, log_softmax, self.classes_)

    def predict(self, X: Any) -> Any:
        """Predict labels, lazily if X is lazy; of two classes, ``classes_[1]`` from the threshold on."""
        check_is_fitted(self)
        labels = partial(_labels, self.classes_, self.threshold)
        return self._predict(X, labels, None, self.classes_.dtype)

    def decision_function(self, X: Any) -> Any:
        """Compute the log odds of ``classes_[1]``, or exponents whose softmax are the probabilities."""
        check_is_fitted(self)
        return self._predict(X, decisions, self.classes_ if len(self.classes_) > 2 else None)

    def to_local(self) -> POPFClassifier:
        """Make the plain estimator, with all samples in this process."""
        check_is_fitted(self)
        samples = prepared = self._model.gather_samples()
        if self._evidence is not None and self._evidence.preparation.changes:
            source, rows = self._samples
            with tasks_on(self.client) as tasks:
                samples = fetch_rows(tasks, source, rows)
        names = ("A_", "B_", "solution_", "n_features_in_", "feature_names_in_")
        fitted = {name: getattr(self, name) for name in names if name in self.__dict__}
        opf = self._plain_forest(self._model, prepared)
        ours = ("client", "block_size", "scratch")
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k not in ours}
        return POPFClassifier.from_evidence(
            parameters, opf, self._evidence, {**fitted, "samples_": samples}
        )

    def _check_classes(self, n_classes: int) -> None:
        check_classes(n_classes, self.method)

    def _predict(
        self, X: Any, prediction_of: Predict, columns: NDArray[Any] | None, dtype: Any = np.float64
    ) -> Any:
        """Predict by exponents, whose softmax are the probabilities."""
        evidence = self._evidence
        if evidence is None:
            offer: Any = Part.conquer
            combine: Any = first_of
            metric = self._model.settings.metric
            exponents: Any = partial(_paper_exponents, metric, self.A_, self.B_)
        else:
            # What every partition needs, without the nodes, which the parts have.
            nodes, weights = evidence.nodes[:0], evidence.node_weights[:0]
            light = replace(evidence, nodes=nodes, node_weights=weights)
            offer, combine = partial(_offer_sums, light), add_sums
            exponents = partial(_evidence_exponents, light, log_masses(self._model))
        finish = partial(_finish, prediction_of, exponents)
        return self._run(Query(offer, combine, finish, columns, dtype), X)


def _offer_sums(evidence: Evidence, part: Part, X: FloatArray) -> FloatArray:
    if not evidence.asks_forest:
        return np.zeros((len(X), part.settings.n_classes, 1))
    return part.sums(evidence.preparation.apply(X), evidence.distinct_bandwidths)


def _evidence_exponents(
    evidence: Evidence, masses: FloatArray, sums: FloatArray, X: FloatArray
) -> FloatArray:
    scores = sums - masses[:, None] if evidence.asks_forest else None
    return evidence.combine(X, scores)


def _paper_exponents(
    metric: Any, a: float, b: float, offers: FloatArray, X: FloatArray
) -> FloatArray:
    costs = metric.transform(offers[:, 0], offers[:, 4].astype(np.int64))
    return paper_exponents(offers[:, 2].astype(np.int64), costs, a, b)


def _finish(
    prediction_of: Predict, exponents_of: Any, offers: FloatArray, X: FloatArray
) -> NDArray[Any]:
    return prediction_of(exponents_of(offers, X))


def _probabilities(exponents: FloatArray) -> FloatArray:
    return np.exp(log_softmax(exponents))


def _labels(classes: NDArray[Any], threshold: float, exponents: FloatArray) -> NDArray[Any]:
    return np.asarray(classes[chosen_classes(exponents, threshold)])
