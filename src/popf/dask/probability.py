"""`DaskPOPFClassifier`: everything is chosen in memory, on a sample; only the last forest is distributed."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from dask import delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from popf.dask.blocks import checked_rows, common_classes, labels_of_chunk, make_blocks
from popf.dask.cluster import Tasks, backend_here, tasks_on
from popf.dask.forest import DaskClassifier
from popf.dask.growing import ForestInBlocks, grow_forest
from popf.dask.prediction import Part, Query, add_sums
from popf.dask.sources import Rows, Source
from popf.engine.structures import FloatArray, IntArray, Resources
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.forest.probabilities import log_odds, log_softmax, most_probable
from popf.forest.validation import validate_groups
from popf.formatting import stage_printer
from popf.probability import folds
from popf.probability.classifier import (
    PoolAttributes,
    POPFClassifier,
    check_parameters,
    what_to_fit,
)
from popf.probability.columns import NUMBER, Columns, names_of_features
from popf.probability.encoding import FittedTable, fit_encoding
from popf.probability.fitting import fit_pool
from popf.probability.folds import CanonicalSamples, Keys, Nodes
from popf.probability.forest_component import Growing, Prepare


class DaskPOPFClassifier(PoolAttributes, DaskClassifier):
    """Probabilistic Optimum-Path Forest classifier for Dask collections, memory maps and Parquet folders.

    Everything besides the forest is chosen and fitted in this process, on at most 50,000 samples; the forest is
    grown on all samples in blocks. Up to 50,000 samples the model is that of `popf.POPFClassifier`, and
    probabilities agree up to rounding. Beyond, the two choose on different subsamples. Features are numbers
    without gaps; `popf.TableEncoder` encodes others. Predictions are Dask arrays, series or dataframes with the
    partitions of X; for X in memory they are computed at once.

    Parameters
    ----------
    client, metric, metric_params, algorithm, n_jobs, working_memory, device, block_size, scratch
        As for `DaskOPFClassifier`.
    method, squash, linear_map, threshold, verbose
        As for `popf.POPFClassifier`.

    Attributes
    ----------
    opf_ : OPFClassifier
        The forest, for inspection (costs, prototypes, spanning tree), without samples; `to_local` adds them.
    classes_, n_features_in_, feature_names_in_
        As of `popf.OPFClassifier`.
    pool_, pool_weights_, prior_weight_, bandwidth_, linear_map_, linear_map_losses_, interactions_
        As of `popf.POPFClassifier`: everything besides the forest that was fitted.
    held_out_losses_, held_out_accuracies_, held_out_aucs_
        As of `popf.POPFClassifier`: scores of each component on held-out samples.
    n_blocks_, n_block_pairs_ : int
        Number of blocks, and number of pairs of blocks that had to be compared.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_breast_cancer
    >>> from popf.dask import DaskPOPFClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(200, 30)), da.from_array(y, chunks=200)
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
        squash: bool = True,
        linear_map: str = "auto",
        threshold: float = 0.5,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        working_memory: float | None = None,
        device: str | None = None,
        block_size: int | None = None,
        scratch: str | None = None,
        verbose: bool = False,
    ) -> None:
        self.client = client
        self.method = method
        self.squash = squash
        self.linear_map = linear_map
        self.threshold = threshold
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.working_memory = working_memory
        self.device = device
        self.block_size = block_size
        self.scratch = scratch
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit to samples of which at most 50,000 are gathered in one process.

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
        stage = stage_printer(self)
        stage("reading labels and keys")
        source, settings = self._open(tasks, X, y, sample_weight, groups)
        canonical = fetch_canonical(tasks, source)
        maps, components = what_to_fit(self, settings.metric)
        here = Resources(settings.n_threads, settings.n_bytes, backend_here(settings.device))
        growing = Growing(settings.metric, settings.algorithm, here)
        grown: list[ForestInBlocks] = []

        def grow(prepare: Prepare) -> OptimumPathForest:
            chunks = [delayed(prepare_rows)(chunk, prepare) for chunk in source.chunks]
            blocks = make_blocks(tasks, source._replace(chunks=chunks), settings)
            grown.append(grow_forest(tasks, blocks, settings))
            return grown[0].to_forest()

        self.pool_, _ = fit_pool(canonical, maps, components, growing, grow, stage=stage)
        self._source = source
        kinds = np.full(canonical.training.samples.shape[1], NUMBER)
        self._encoding = fit_encoding(kinds, *canonical.training.labelled, n_classes=0)
        return grown[0]

    @property
    def opf_(self) -> OPFClassifier:
        """The forest, without samples."""
        return self._plain_forest(self._model)

    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of every class, lazily if X is lazy."""
        check_is_fitted(self)
        return self._predict(X, lambda logits: np.exp(log_softmax(logits)), self.classes_)

    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of every class, lazily if X is lazy."""
        check_is_fitted(self)
        return self._predict(X, log_softmax, self.classes_)

    def predict(self, X: Any) -> Any:
        """Predict labels, lazily if X is lazy; of two classes, ``classes_[1]`` if it reaches the threshold."""
        check_is_fitted(self)
        classes, threshold = self.classes_, self.threshold

        def labels(logits: FloatArray) -> NDArray[Any]:
            return np.asarray(classes[most_probable(np.exp(log_softmax(logits)), threshold)])

        return self._predict(X, labels, None, classes.dtype)

    def decision_function(self, X: Any) -> Any:
        """Compute the log odds of ``classes_[1]``, or for more than two classes the logits of all."""
        check_is_fitted(self)
        return self._predict(X, log_odds, self.classes_ if len(self.classes_) > 2 else None)

    def to_local(self) -> POPFClassifier:
        """Return the equivalent plain estimator, with all samples in this process."""
        check_is_fitted(self)
        samples = prepared = self._model.gather_samples()
        if self.pool_.forest.matrix is not None:
            with tasks_on(self.client) as tasks:
                samples = fetch_rows(tasks, self._source, self._model.samples.rows)
        local = POPFClassifier(**self._parameters_of(POPFClassifier))
        local.pool_, local.classes_, local.samples_ = self.pool_, self.classes_, samples
        local.n_features_in_, local.device_ = self.n_features_in_, self._model.settings.device
        if hasattr(self, "feature_names_in_"):
            local.feature_names_in_ = self.feature_names_in_
        columns = Columns.of_numbers(names_of_features(self))
        local.table_ = FittedTable(columns, self._encoding, np.full(len(samples), -1))
        local.opf_ = self._plain_forest(self._model, prepared)
        local.competition_ = self.pool_.competition(local.opf_.forest_)
        return local

    def _predict(
        self,
        X: Any,
        prediction_of: Callable[[FloatArray], NDArray[Any]],
        columns: NDArray[Any] | None,
        dtype: Any = np.float64,
    ) -> Any:
        """Predict from the logits of the classes."""
        none = np.empty(0, np.int64)  # the nodes are in the parts
        forest = self.pool_.forest._replace(nodes=none, node_codes=none, node_weights=np.empty(0))
        pool, log_masses = self.pool_._replace(forest=forest), self._model.samples.log_masses

        def offer(part: Part, X: FloatArray) -> FloatArray:
            if not pool.uses_forest:
                return np.empty((len(X), 0))
            return part.sums(pool.prepare(X), np.array([forest.bandwidth]))[:, :, 0]

        def finish(sums: FloatArray, X: FloatArray) -> NDArray[Any]:
            scores = (sums - log_masses)[:, pool.classes] if pool.uses_forest else None
            return prediction_of(pool.combine(X, scores))

        return self._run(Query(offer, add_sums, finish, columns, dtype), X)


def fetch_canonical(tasks: Tasks, source: Source) -> CanonicalSamples:
    """Fetch the training set: all distinct samples or, of many, those with the smallest keys in every class.

    Keys depend only on the values of a sample, so partitions and the order of the rows change nothing. Rows
    are numbered as in the blocks, among the samples of positive weight.
    """
    calls = zip(source.chunks, source.starts, strict=False)
    described = tasks.gather(tasks.submit_lazy("describe-rows", describe_rows, calls))
    labels, all_weights, all_keys = zip(*described, strict=True)
    classes = common_classes([labels_of_chunk(y) for y in labels])
    codes = np.concatenate([np.searchsorted(classes, y) for y in labels])
    weights, keys = np.concatenate(all_weights), np.concatenate(all_keys)
    used, groups = np.flatnonzero(weights), None
    if source.groups is not None:
        parts = tasks.gather(tasks.submit_lazy("read-groups", np.asarray, zip(source.groups)))
        values = np.concatenate(parts)
        groups = validate_groups(values, values, used)
    nodes, merged, _ = folds.merge_samples(keys, codes, weights[used], groups)
    some = folds.stratified_subsample(codes[nodes], folds.MAX_SAMPLES)
    rows = nodes[some]
    groups = None if groups is None else groups[rows]
    samples = fetch_rows(tasks, source, used[rows])
    canonical = folds.canonical_samples(samples, codes[rows], merged[some], groups)
    training = canonical.training._replace(rows=rows[canonical.training.rows])
    every = canonical.nodes._replace(rows=rows[canonical.nodes.rows])
    if len(some) < len(nodes):
        every = Nodes(nodes, np.argsort(canonical.classes)[codes[nodes]], merged)
    return canonical._replace(training=training, nodes=every)


def describe_rows(rows: Rows, start: int) -> tuple[NDArray[Any], FloatArray, Keys]:
    """Return labels and keys of the samples of positive weight, and the weights of all."""
    X, y, weights = checked_rows(rows, start)
    return y[weights > 0.0], weights, folds.keys_of_values(X[weights > 0.0])


def fetch_rows(tasks: Tasks, source: Source, rows: IntArray) -> FloatArray:
    """Fetch some rows of X."""
    wanted, back = np.unique(rows, return_inverse=True)
    by_chunk = np.split(wanted, np.searchsorted(wanted, source.starts[1:-1]))
    calls = [
        (chunk, which - start)
        for chunk, start, which in zip(source.chunks, source.starts, by_chunk, strict=False)
        if len(which)
    ]
    found = tasks.gather(tasks.submit_lazy("fetch-rows", take_rows, calls))
    return np.asarray(np.concatenate(found)[back])


def take_rows(rows: Rows, which: IntArray) -> FloatArray:
    """Return some samples of a chunk."""
    return checked_rows(rows)[0][which]


def prepare_rows(rows: Rows, prepare: Prepare) -> Rows:
    """Prepare the samples of a chunk for the forest."""
    X, y, weights = checked_rows(rows)
    return Rows(prepare(X), y, weights)
