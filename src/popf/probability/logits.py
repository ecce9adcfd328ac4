"""Labels of held-out samples, losses of logits, and softmax regressions on logits."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, minimize

from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.forest.probabilities import highest, log_softmax, smoothed_targets
from popf.metrics.evaluation import roc_area
from popf.probability.scaler import ROUNDING
from popf.state import Float

#: a in the targets (N + a) / (N + 2a) that replace 1 for a class of N samples. Jeffreys has 1/2, which costs
#: 1.7 %, and Platt 1, which costs 5 %, and a multiple of the loss where classes are nearly separated.
SMOOTHING = 0.25
#: Largest derivative of a mean loss where the solver stops.
TOLERANCE = 1e-6


class Coefficient(Float):
    """A fitted coefficient, or an array of these, in a range where sums of their products are finite."""

    lowest, highest = -1e50, 1e50


def log_losses(logits: FloatArray, codes: IntArray) -> FloatArray:
    """Compute the log loss of every row: (..., n_rows) from (..., n_rows, n_classes)."""
    return -log_softmax(logits)[..., np.arange(len(codes)), codes]


def from_log_odds(values: FloatArray) -> FloatArray:
    """Convert the log odds of two classes, in a last axis of length 1, to logits; return others unchanged."""
    return values * np.array([-0.5, 0.5]) if values.shape[-1] == 1 else values


def centered(logits: FloatArray) -> FloatArray:
    """Shift the logits of each sample to mean 0, which does not change probabilities."""
    shifted: FloatArray = logits - logits.mean(axis=-1, keepdims=True)
    return shifted


def prior_logits(class_weights: FloatArray) -> FloatArray:
    """Compute the logarithms of the class frequencies, with one sample added to each class."""
    logs: FloatArray = np.log((class_weights + 1.0) / (class_weights.sum() + len(class_weights)))
    return logs


class Labels(NamedTuple):
    """Labels of held-out samples, numbered among the classes that have any.

    Other classes have no part in what is chosen. If they had, all would learn that these classes do not occur.
    """

    codes: IntArray
    weights: FloatArray
    folds: IntArray
    prior: FloatArray  # logits of the frequencies of these classes among all samples
    classes: IntArray  # their canonical numbers

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.prior)

    def take(self, rows: BoolArray) -> "Labels":
        """Keep some of the samples."""
        return self._replace(
            codes=self.codes[rows], weights=self.weights[rows], folds=self.folds[rows]
        )

    def targets(self) -> FloatArray:
        """Compute the targets of the classes, in place of 1 and 0."""
        return smoothed_targets(self.codes, self.weights, self.n_classes, SMOOTHING)

    def log_loss(self, logits: FloatArray) -> float:
        """Compute the mean log loss."""
        return float(np.average(log_losses(logits, self.codes), weights=self.weights))

    def accuracy(self, logits: FloatArray) -> float:
        """Compute the share of samples whose most probable class is right."""
        return float(np.average(logits.argmax(axis=1) == self.codes, weights=self.weights))

    def area_under_curve(self, logits: FloatArray) -> float:
        """Compute the area under the ROC curve; for more than two classes, the mean of one-vs-rest areas."""
        logs = log_softmax(logits)
        columns = [1] if self.n_classes == 2 else range(self.n_classes)
        areas = [roc_area(self.codes == k, logs[:, k])(self.weights) for k in columns]
        return float(np.mean(areas))


def cross_entropy(
    logits: FloatArray, targets: FloatArray, weights: FloatArray, weighted: FloatArray
) -> tuple[float, FloatArray]:
    """Compute the weighted sum of the cross entropies, and its derivatives by the logits, in their place.

    `weighted` are the targets times the weights, which are the same for all logits.
    """
    logits -= highest(logits)
    wanted = np.einsum("ik,ik->i", targets, logits)
    residual = np.exp(logits, out=logits)
    totals = residual.sum(axis=1)
    residual *= (weights / totals)[:, None]
    residual -= weighted
    return float(weights @ (np.log(totals) - wanted)), residual


def minimise(
    objective: Callable[[FloatArray], tuple[Any, FloatArray]],
    start: FloatArray,
    n_positive: int = 0,
    tolerance: float = TOLERANCE,
) -> FloatArray:
    """Minimise a convex function, given with its gradient; the first parameters may not be negative."""
    bounds = None
    if n_positive:
        bounds = Bounds(np.repeat([0.0, -np.inf], [n_positive, len(start) - n_positive]))
    options = {"gtol": tolerance, "ftol": ROUNDING}
    found: FloatArray = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
    return found


def fit_softmax(
    columns: FloatArray,
    labels: Labels,
    start: tuple[FloatArray, FloatArray],
    ridge: float,
    center: FloatArray | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[FloatArray, FloatArray]:
    r"""Fit slopes, at least 0, and biases of logits, starting from given ones, by Platt's targets.

    `columns` have the shape (n_columns, n_rows, n_classes). The logit of class k is
    :math:`z_k = \sum_j s_j x_{jk} + b_k`, or, if there is a single column, :math:`z_k = s_k x_k + b_k`. A ridge
    pulls the slopes towards `center`, or towards their mean.
    """
    axis = "j" if center is not None else "k"
    targets, weights, n_slopes = labels.targets(), labels.weights, len(start[0])
    weighted = weights[:, None] * targets

    def objective(theta: FloatArray) -> tuple[Any, FloatArray]:
        slopes, biases = theta[:n_slopes], theta[n_slopes:]
        logits = np.einsum(f"jik,{axis}->ik", columns, slopes)
        logits += biases
        loss, residual = cross_entropy(logits, targets, weights, weighted)
        apart = slopes - (slopes.mean() if center is None else center)
        by_slope = np.einsum(f"jik,ik->{axis}", columns, residual) + ridge * apart
        gradient = np.concatenate([by_slope, residual.sum(axis=0)])
        return (loss + ridge * (apart @ apart) / 2.0) / total, gradient / total

    total = float(weights.sum())
    theta = minimise(objective, np.concatenate(start), n_slopes, tolerance)
    slopes, biases = np.split(theta, [n_slopes])
    return slopes, biases
