"""Prune a forest to the samples that a validation set needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from popf.engine.structures import BoolArray, IntArray
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import OptimumPathForest, grow_forest, order_of_samples
from popf.forest.validation import resources_of, to_host, validate_new
from popf.formatting import check_real


def prune(
    model: OPFClassifier, X_val: ArrayLike, y_val: ArrayLike, max_loss: float = 0.0
) -> OPFClassifier:
    """Remove training samples from a forest without losing accuracy on a validation set.

    Samples that conquer a validation sample are kept, with the paths that lead to them, and a new forest is
    grown on these samples with the same metric. This is repeated until all samples are needed or the accuracy
    on the validation set falls by more than `max_loss`. A smaller forest takes less space and predicts faster.

    Parameters
    ----------
    model : OPFClassifier
        A fitted classifier, which is not changed.
    X_val : array-like of shape (n_samples, n_features)
        Validation samples. Use other samples to evaluate the pruned model.
    y_val : array-like of shape (n_samples,)
        Their labels.
    max_loss : float, default=0.0
        How far `popf.metrics.opf_accuracy_score` on the validation set may fall below that of `model`.

    Returns
    -------
    OPFClassifier
        The last forest that was accurate enough, possibly with all samples of `model`; every class keeps at
        least one. Its ``sample_indices_`` are rows of the X that `model` was fitted to.

    References
    ----------
    .. [1] J. P. Papa, A. X. Falcão, V. H. C. de Albuquerque, J. M. R. S. Tavares, "Efficient supervised
       optimum-path forest classification for large datasets", Pattern Recognition 45(1), 2012.

    Examples
    --------
    >>> from popf import OPFClassifier, prune
    >>> X = [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]]
    >>> model = OPFClassifier().fit(X, ["low", "low", "low", "high", "high", "high"])
    >>> small = prune(model, [[1.9], [4.5], [5.4]], ["low", "high", "high"])
    >>> small.sample_indices_
    array([2, 3])
    >>> small.predict([[0.5], [6.5]])
    array(['low', 'high'], dtype='<U4')
    """
    from popf.metrics import opf_accuracy_score

    _check(model, max_loss)
    forest = model.forest_
    resources = resources_of(model)._replace(backend=forest.backend)
    samples, codes = forest.samples, forest.codes
    if samples is None:
        raise ValueError(
            "prune needs the training samples, which a model with metric 'precomputed' does not hold."
        )
    new = validate_new(model, X_val, forest.metric, model.sample_indices_)
    labels = column_or_1d(to_host(y_val))
    check_consistent_length(new, labels)

    def grow(rows: IntArray) -> OptimumPathForest:
        return grow_forest(
            samples[rows], codes[rows], forest.metric, resources, model.algorithm, forest.classes
        )

    def evaluate(rows: IntArray) -> tuple[float, BoolArray]:
        grown = grow(rows)
        nodes = grown.conquer(new, resources).nodes
        accuracy = opf_accuracy_score(labels, grown.labels[nodes])
        return accuracy, _on_paths(grown, nodes)

    rows = order_of_samples(samples, codes)  # so that ties do not depend on the order of the rows
    accuracy, used = evaluate(rows)
    lowest = accuracy - max_loss
    while not used.all():
        fewer = rows[used]
        accuracy, used = evaluate(fewer)
        if accuracy < lowest:
            break
        rows = fewer
    rows = np.sort(rows)
    kept, parameters = model.sample_indices_[rows], model.get_params()
    small = OPFClassifier.from_forest(
        grow(rows), parameters, model.n_features_in_, kept, model.device_
    )
    if hasattr(model, "feature_names_in_"):
        small.feature_names_in_ = model.feature_names_in_
    return small


def _check(model: Any, max_loss: Any) -> None:
    """Raise an error unless `model` can be pruned and `max_loss` is valid."""
    if type(model) is not OPFClassifier:
        remedies = {
            "Pipeline": "prune its last step: prune(model[-1], model[:-1].transform(X_val), y_val)",
            "POPFClassifier": "its probabilities depend on all samples; fit it to fewer samples instead",
        }
        remedy = remedies.get(type(model).__name__, "fit one to the same samples and labels")
        raise TypeError(f"prune takes an OPFClassifier, not a {type(model).__name__}: {remedy}.")
    check_is_fitted(model)
    check_real("`max_loss`", max_loss, 0.0, 1.0)


def _on_paths(forest: OptimumPathForest, nodes: IntArray) -> BoolArray:
    """Mark nodes and all their predecessors, and the prototypes of every class without a marked node."""
    used = np.zeros(len(forest), dtype=np.bool_)
    nodes = np.unique(nodes)
    while len(nodes):
        used[nodes] = True
        nodes = np.unique(forest.predecessors[nodes])
        nodes = nodes[(nodes >= 0) & ~used[nodes]]
    absent = np.bincount(forest.codes[used], minlength=len(forest.classes)) == 0
    used[forest.prototypes] |= absent[forest.codes[forest.prototypes]]
    return used
