"""`DaskPOPFClassifier`, and the chunked training samples for its fit."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from dask import delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from popf.dask.blocks import Block, checked_rows, common_classes, labels_of_chunk, make_blocks
from popf.dask.cluster import Settings, Tasks, tasks_on
from popf.dask.forest import DaskClassifier
from popf.dask.growing import ForestInBlocks, grow_forest
from popf.dask.prediction import Part, Query, add_sums, first_of
from popf.dask.sources import Rows, Source
from popf.engine.structures import FloatArray, IntArray
from popf.forest.validation import validate_groups
from popf.probability.classifier import (
    POPFClassifier,
    check_classes,
    check_parameters,
    fit_paper,
    paper_exponents,
)
from popf.probability.features import Candidate, Preparation
from popf.probability.fitting import fit_evidence, options_of
from popf.probability.pooling import Evidence, EvidenceAttributes
from popf.probability.softmax import chosen_classes, decisions, log_softmax
from popf.probability.training import (
    N_FOR_DISTANCE,
    GrownForest,
    SamplesInMemory,
    TrainingSamples,
    median_cost,
    order_samples,
)
from popf.solvers import Solver
from popf.solvers.base import PAPER_BOX


class DaskPOPFClassifier(EvidenceAttributes, DaskClassifier):
    """Probabilistic Optimum-Path Forest classifier for Dask collections, memory maps and Parquet folders.

    Fits the same model as `popf.POPFClassifier`: everything is chosen and fitted on the same samples, and
    scores are sums over blocks, so that probabilities agree up to rounding. Predictions are Dask arrays, series
    or dataframes with the partitions of X; for X in memory they are computed at once.

    Parameters
    ----------
    client, metric, metric_params, algorithm, n_jobs, working_memory, device, block_size, scratch
        As for `DaskOPFClassifier`.
    method, squash, linear_map, background, class_bandwidths, threshold, smoothing, solver, box, random_state
        As for `popf.POPFClassifier`.

    Attributes
    ----------
    opf_ : OPFClassifier
        The forest, for inspection (costs, prototypes, spanning tree), without samples; `to_local` adds them.
    classes_, n_features_in_, feature_names_in_
        As of `popf.OPFClassifier`.
    pool_weights_, interactions_, held_out_losses_, held_out_accuracies_, held_out_aucs_, prior_weight_
        As of `popf.POPFClassifier`: the weights of the pool, and scores of each part on held-out samples.
    linear_map_, linear_map_losses_, bandwidths_, slopes_, biases_, A_, B_, solution_
        As of `popf.POPFClassifier`: the fitted parameters.
    n_blocks_, n_block_pairs_ : int
        Number of blocks, and number of pairs of blocks that had to be compared.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit to samples that are never gathered in one process.

        Parameters
        ----------
        X, y, sample_weight
            As for `DaskOPFClassifier`.
        groups : as y, default=None
            Groups of samples that are held out together, see `popf.POPFClassifier.fit`.

        Returns
        -------
        self : DaskPOPFClassifier
        """
        return self._fit_on_cluster(X, y, sample_weight, groups)

    def _fit(self, tasks: Tasks, X: Any, y: Any, sample_weight: Any, groups: Any) -> ForestInBlocks:
        check_parameters(self)
        source, settings = self._open(tasks, X, y, sample_weight, groups)
        if self.method == "paper":
            return self._fit_paper(tasks, source, settings)
        training = open_samples(tasks, source, settings)
        self._evidence, grown = fit_evidence(training, options_of(self, settings.metric))
        model: ForestInBlocks = grown.forest
        self.opf_ = self._plain_forest(model)
        self._samples = source, training.rows
        return model

    def _fit_paper(self, tasks: Tasks, source: Source, settings: Settings) -> ForestInBlocks:
        samples = make_blocks(tasks, source, settings)
        check_classes(len(samples.classes), self.method)
        model = grow_forest(tasks, samples, settings)
        self.opf_ = self._plain_forest(model)
        self.solution_ = fit_paper(
            self.opf_.forest_,
            samples.weights,
            self.solver,
            self.box,
            self.smoothing,
            self.random_state,
        )
        self.A_, self.B_ = self.solution_.theta.tolist()
        self._evidence: Evidence | None = None
        return model

    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of every class, lazily if X is lazy."""
        check_is_fitted(self)
        return self._predict(X, lambda exponents: np.exp(log_softmax(exponents)), self.classes_)

    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of every class, lazily if X is lazy."""
        check_is_fitted(self)
        return self._predict(X, log_softmax, self.classes_)

    def predict(self, X: Any) -> Any:
        """Predict labels, lazily if X is lazy; of two classes, ``classes_[1]`` if it reaches the threshold."""
        check_is_fitted(self)
        classes, threshold = self.classes_, self.threshold

        def labels(exponents: FloatArray) -> NDArray[Any]:
            return np.asarray(classes[chosen_classes(exponents, threshold)])

        return self._predict(X, labels, None, classes.dtype)

    def decision_function(self, X: Any) -> Any:
        """Compute the log odds of ``classes_[1]``, or exponents whose softmax gives the probabilities."""
        check_is_fitted(self)
        return self._predict(X, decisions, self.classes_ if len(self.classes_) > 2 else None)

    def to_local(self) -> POPFClassifier:
        """Return the equivalent plain estimator, with all samples in this process."""
        check_is_fitted(self)
        samples = prepared = self._model.gather_samples()
        if self._evidence is not None and self._evidence.preparation.changes:
            source, rows = self._samples
            with tasks_on(self.client) as tasks:
                samples = fetch_rows(tasks, source, rows)
        ours = ("classes_", "opf_", "n_blocks_", "n_block_pairs_")
        fitted = {k: v for k, v in vars(self).items() if k.endswith("_") and k not in ours}
        return POPFClassifier.from_evidence(
            self._parameters_of(POPFClassifier),
            self._plain_forest(self._model, prepared),
            self._evidence,
            {**fitted, "samples_": samples},
        )

    def _predict(
        self,
        X: Any,
        prediction_of: Callable[[FloatArray], NDArray[Any]],
        columns: NDArray[Any] | None,
        dtype: Any = np.float64,
    ) -> Any:
        """Predict from the exponents whose softmax gives the probabilities."""
        evidence = self._evidence
        steps = self._paper_steps() if evidence is None else self._evidence_steps(evidence)
        offer, combine, exponents_of = steps

        def finish(offers: FloatArray, X: FloatArray) -> NDArray[Any]:
            return prediction_of(exponents_of(offers, X))

        return self._run(Query(offer, combine, finish, columns, dtype), X)

    def _paper_steps(self) -> tuple[Callable[..., FloatArray], ...]:
        metric, a, b = self._model.settings.metric, self.A_, self.B_

        def exponents(offers: FloatArray, X: FloatArray) -> FloatArray:
            costs = metric.transform(offers[:, 0], offers[:, 4].astype(np.int64))
            return paper_exponents(offers[:, 2].astype(np.int64), costs, a, b)

        return Part.conquer, first_of, exponents

    def _evidence_steps(self, evidence: Evidence) -> tuple[Callable[..., FloatArray], ...]:
        # Without the nodes, which are in the parts.
        nodes, weights = evidence.nodes[:0], evidence.node_weights[:0]
        evidence = replace(evidence, nodes=nodes, node_weights=weights)
        asks_forest, masses = evidence.asks_forest, self._model.samples.log_masses

        def offer(part: Part, X: FloatArray) -> FloatArray:
            if not asks_forest:
                return np.zeros((len(X), len(masses), 1))
            return part.sums(evidence.preparation.apply(X), evidence.distinct_bandwidths)

        def exponents(sums: FloatArray, X: FloatArray) -> FloatArray:
            return evidence.combine(X, sums - masses[:, None] if asks_forest else None)

        return offer, add_sums, exponents


@dataclass(frozen=True)
class SamplesInChunks(TrainingSamples):
    """Training samples in chunks, never gathered in one process; `ordered` holds positions in `rows`."""

    tasks: Tasks
    source: Source
    rows: IntArray  # rows of positive weight
    classes: NDArray[Any]
    settings: Settings

    def features(self, places: IntArray) -> FloatArray:
        """Fetch the samples at some positions of the order."""
        return fetch_rows(self.tasks, self.source, self.rows[self.ordered.rows[places]])

    def take(self, places: IntArray) -> SamplesInMemory:
        """Fetch the samples at some positions of the order into memory."""
        ordered = self.ordered.take(places)
        return SamplesInMemory(
            ordered._replace(rows=np.arange(len(places))),
            self.n_classes,
            self.metric,
            self.algorithm,
            self.resources._replace(backend=None),
            self.features(places),
            ordered.codes,
        )

    def grow(self, places: IntArray | None, candidate: Candidate) -> GrownForest:
        """Prepare samples and grow a forest on them in blocks; `places` are distinct samples, None for all."""
        everyone = np.arange(len(self.ordered.rows)) if places is None else places
        preparation = self.fit_features(everyone, candidate)
        weights = np.full(sum(self.source.sizes), -1.0)  # -1 stands for the sample's own weight
        if places is not None:
            chosen = self.ordered.take(places)
            weights[:] = 0.0
            np.add.at(weights, self.rows[chosen.rows], chosen.weights)
        by_chunk = np.split(weights, self.source.starts[1:-1])
        chunks = [
            delayed(_prepare_rows)(chunk, preparation, own)
            for chunk, own in zip(self.source.chunks, by_chunk, strict=True)
        ]
        samples = make_blocks(self.tasks, self.source._replace(chunks=chunks), self.settings)
        model = grow_forest(self.tasks, samples, self.settings)
        nodes = np.searchsorted(samples.rows, self.rows[self.ordered.rows[everyone]])
        unit = median_cost(model.to_forest(), nodes, self.ordered.weights[everyone])
        if unit == 0.0:  # every node coincides with another
            few = preparation.apply(self.features(everyone[:N_FOR_DISTANCE]))
            unit = _mean_distance(self.tasks, model, few, nodes) or 1.0
        settings = model.settings

        def scores(new: IntArray, taus: FloatArray) -> FloatArray:
            def sums(block: Block, costs: FloatArray, queries: FloatArray) -> FloatArray:
                return Part(settings, costs, block).sums(queries, taus)

            prepared = preparation.apply(self.features(new))
            queries = self.tasks.client.scatter(prepared, broadcast=False)
            offers = self.tasks.map("sum-paths", sums, samples.blocks, model.costs, queries)
            found = np.full((len(new), self.n_classes, taus.size), -np.inf)
            present = np.searchsorted(self.classes, samples.classes)
            found[:, present] = add_sums(*offers) - samples.log_masses[:, None]
            return found

        return GrownForest(preparation, model, None, unit, scores)


def fetch_rows(tasks: Tasks, source: Source, rows: IntArray) -> FloatArray:
    """Fetch some rows of X."""
    wanted, back = np.unique(rows, return_inverse=True)
    starts = source.starts
    by_chunk = np.split(wanted, np.searchsorted(wanted, starts[1:-1]))
    calls = [
        (chunk, which - start)
        for chunk, start, which in zip(source.chunks, starts, by_chunk, strict=False)
        if len(which)
    ]
    found = tasks.gather(tasks.submit_lazy("take-rows", _take, calls))
    return np.asarray(np.concatenate(found)[back])


def open_samples(tasks: Tasks, source: Source, settings: Settings) -> SamplesInChunks:
    """Order all samples by class and values, fetching one feature at a time for as long as samples tie."""
    calls = zip(source.chunks, source.starts, strict=False)
    labelled = tasks.submit_lazy("read-labels", lambda *rows: checked_rows(*rows)[1:], calls)
    found = tasks.gather(labelled)
    weights = np.concatenate([weights for _, weights in found])
    rows = np.flatnonzero(weights)
    classes = common_classes([labels_of_chunk(y[w > 0.0]) for y, w in found])
    codes = np.searchsorted(classes, np.concatenate([y for y, _ in found])[rows])

    def columns() -> Iterator[FloatArray]:
        for feature in range(source.columns.shape[1]):
            calls = [(chunk, (slice(None), feature)) for chunk in source.chunks]
            found = tasks.gather(tasks.submit_lazy("take-feature", _take, calls))
            yield np.concatenate(found)[rows]

    groups = None
    if source.groups is not None:
        values = np.concatenate(
            tasks.gather(tasks.submit_lazy("read-groups", np.asarray, zip(source.groups)))
        )
        groups = validate_groups(values, values, rows)
    ordered = order_samples(columns(), codes.astype(np.int64), weights[rows], groups)
    how = settings.metric, settings.algorithm, settings.resources
    return SamplesInChunks(ordered, len(classes), *how, tasks, source, rows, classes, settings)


def _mean_distance(tasks: Tasks, model: ForestInBlocks, few: FloatArray, nodes: IntArray) -> float:
    """Compute the mean positive distance from a few samples to nodes, as in memory; 0 if there is none."""
    metric, exponent = model.settings.metric, model.settings.exponent

    def sum_and_count(block: Block, copies: IntArray) -> tuple[float, int]:
        points = np.ldexp(block.points, exponent)
        distances = metric.transform(metric.blocks(few, points)(0, len(few)))
        counts = ((distances > 0.0) & (distances < np.inf)) * copies[block.samples]
        return float(distances[counts > 0] @ counts[counts > 0]), int(counts.sum())

    copies = np.bincount(nodes, minlength=len(model.samples.rows))
    sums = tasks.map("sum-distances", sum_and_count, model.samples.blocks, copies)
    total, n = np.sum(sums, axis=0)
    return float(total / n) if n else 0.0


def _take(rows: Rows, which: Any) -> FloatArray:
    return np.ascontiguousarray(checked_rows(rows)[0][which])


def _prepare_rows(rows: Rows, preparation: Preparation, weights: FloatArray) -> Rows:
    """Prepare the features of a chunk; a negative weight stands for the sample's own weight."""
    X, y, own = checked_rows(rows)
    return Rows(preparation.apply(X), y, np.where(weights < 0.0, own, weights))
