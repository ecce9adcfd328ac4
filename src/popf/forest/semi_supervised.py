"""The semi-supervised Optimum-Path Forest classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import (
    BoolArray,
    FloatArray,
    Forest,
    IntArray,
    SpanningTree,
    TrainingResult,
)
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import OptimumPathForest, order_of_samples
from popf.forest.spanning_tree import grow_tree
from popf.forest.validation import (
    TrainingData,
    check_enough_classes,
    to_host,
    validate_training,
)
from popf.metrics.checks import is_missing


class SemiSupervisedOPFClassifier(OPFClassifier):
    r"""Optimum-Path Forest classifier for few labelled and many unlabelled samples.

    A minimum spanning tree joins all samples, labelled or not. Every labelled sample is a prototype and keeps
    its label; the prototypes compete for the unlabelled samples as in `OPFClassifier`, where the cost of a path
    is its largest edge. New samples are then conquered by the training samples:

    .. math:: C_v = \min_{\pi: s \leadsto v} \max_{(a, b) \in \pi} d(a, b), \qquad
              v^* = \arg\min_v \max\{C_v, d(v, t)\}.

    Labels thus spread along chains of close samples, which works well if gaps separate the classes. If classes
    overlap, chains lead from one to the other, and `LabelSpreading` or a supervised classifier fitted to the
    labelled samples works better.

    Parameters
    ----------
    metric, metric_params, algorithm, n_jobs, working_memory, device
        As for `OPFClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, without the marker of unlabelled samples.
    transduction_ : ndarray of shape (n_samples,)
        The label of every training sample: its own, or that of its prototype.
    prototypes_ : ndarray of shape (n_prototypes,)
        The indices of the labelled samples.
    costs_, predecessors_, roots_, spanning_tree_, forest_, algorithm_, device_, sample_indices_, n_features_in_
        As in `OPFClassifier`, like ``feature_names_in_``.

    See Also
    --------
    OPFClassifier : For fully labelled data.
    sklearn.semi_supervised.LabelSpreading : Spreads label distributions over a graph of neighbours.
    sklearn.semi_supervised.SelfTrainingClassifier : Lets a supervised classifier label more samples.

    Notes
    -----
    Ties between distances are broken by the values of the samples, so that labels do not depend on the order of
    the rows. With precomputed distances, ties are broken by a sample's label and its distances to the samples
    of each label; the order of the rows decides only if these are equal too, as in symmetrical data.

    There is no ``label_distributions_``: path costs show which label is nearest, not how probable it is.

    References
    ----------
    .. [1] W. P. Amorim, A. X. Falcão, J. P. Papa, M. H. Carvalho, "Improving semi-supervised learning through
       optimum connectivity", Pattern Recognition 60, 2016.

    Examples
    --------
    >>> from popf import SemiSupervisedOPFClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [6.0], [7.0], [8.0]]
    >>> y = [0, -1, -1, -1, -1, -1, 1]
    >>> model = SemiSupervisedOPFClassifier().fit(X, y)
    >>> model.transduction_
    array([0, 0, 0, 0, 1, 1, 1])
    >>> model.predict([[4.0], [5.0]])
    array([0, 1])
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Spread the labels along the spanning tree.

        Parameters
        ----------
        X, sample_weight
            As for `OPFClassifier.fit`.
        y : array-like of shape (n_samples,)
            Labels of at least two classes; -1, None or NaN for unlabelled samples.

        Returns
        -------
        self : SemiSupervisedOPFClassifier
        """
        self.__dict__.pop("forest_", None)  # so that a failed fit leaves the estimator unfitted
        filled, labelled = _split_labels(y)
        data = validate_training(self, X, filled, sample_weight)
        labelled = labelled[data.rows]
        classes, known = np.unique(data.classes[data.codes[labelled]], return_inverse=True)
        check_enough_classes(classes)
        codes = np.full(len(labelled), -1)
        codes[labelled] = known
        forest = _spread_labels(data, codes, classes, self.algorithm)
        self.classes_, self.sample_indices_, self.device_ = classes, data.rows, data.device
        self.forest_ = forest
        return self

    @property
    def transduction_(self) -> NDArray[Any]:
        """The label of every training sample."""
        check_is_fitted(self)
        return self.forest_.labels


def _spread_labels(
    data: TrainingData, codes: IntArray, classes: NDArray[Any], algorithm: str
) -> OptimumPathForest:
    """Grow a forest whose prototypes are the labelled samples; unlabelled samples have code -1."""
    from popf.engine.competition import compete

    samples, metric, resources = data.samples, data.metric, data.resources
    labelled = codes >= 0
    last = np.where(labelled, codes, codes.max() + 1)  # unlabelled samples after labelled ones
    # Sort the samples, so that ties do not depend on the order of the rows.
    if metric.precomputed:
        order = _order_by_distances(samples, last)
        sorted_samples = samples[np.ix_(order, order)]
    else:
        order = order_of_samples(samples, last)
        sorted_samples = samples[order]
    tree, metric, exponent, algorithm = grow_tree(sorted_samples, metric, resources, algorithm)
    found = compete(tree, labelled[order], np.arange(len(codes)), resources.n_threads)
    back = np.argsort(order)  # position of each row in the sorted order
    row_of = np.append(order, -1)  # a predecessor of -1 stays -1
    roots = order[found.roots[back]]
    forest = Forest(found.costs[back], row_of[found.predecessors[back]], found.lengths[back], roots)
    tree = SpanningTree(order[tree.lower], order[tree.higher], tree.weights)
    return OptimumPathForest(
        metric,
        codes[roots],
        TrainingResult(tree, labelled, forest),
        algorithm,
        exponent=exponent,
        samples=None if metric.precomputed else samples.copy(),
        backend=resources.backend,
        classes=classes,
    )


def _order_by_distances(D: FloatArray, groups: IntArray) -> IntArray:
    """Sort samples by group and sorted distances to each group; refine the groups until they are stable."""
    from popf.engine.points import sort_by_values

    while True:
        parts = [np.sort(D[:, groups == group], axis=1) for group in np.unique(groups)]
        order, values = sort_by_values(np.hstack([groups[:, None], *parts]).T, len(D))
        if values[-1] in (groups.max(), len(D) - 1):  # no group was split, or all samples differ
            return order
        groups = np.empty_like(values)
        groups[order] = values


def _split_labels(y: Any) -> tuple[Any, BoolArray]:
    """Find the labelled samples; fill in a label for the others, so that `y` can be validated."""
    if y is None:
        return None, np.ones(0, dtype=np.bool_)
    labels = np.array(to_host(y))
    flat = labels.ravel()
    if flat.dtype.kind == "U" and (flat == "-1").any():
        raise ValueError(
            "y holds the text '-1': mark unlabelled samples by None in an array of text of dtype object, or by "
            "-1 in an array of numbers."
        )
    marks = [is_missing(label) or label == -1 for label in flat.tolist()]
    labelled = ~np.array(marks, dtype=np.bool_)
    known = flat[labelled]
    if len(flat) and len(set(known.tolist())) < 2:
        found = f"one class only, {known.tolist()[0]!r}" if len(known) else "no class"
        raise ValueError(
            f"the labelled samples have {found}: label samples of at least two classes. -1 and None mark "
            "unlabelled samples."
        )
    flat[~labelled] = known[:1].repeat(np.count_nonzero(~labelled))
    if labels.dtype.kind == "O" and not any(isinstance(label, str) for label in known):
        labels = np.array(labels.tolist())  # an object array only because of None
    return labels, labelled
