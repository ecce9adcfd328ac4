"""Logits, whose softmax gives the probabilities, and the labels of held-out samples."""

from functools import reduce
from typing import NamedTuple

import numpy as np

from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.state import Float

#: a in the targets (N + a) / (N + 2a) that replace 1 for a class of N samples. Platt has 1, Jeffreys 1/2, which
#: cost 0.5 to 2 % where classes are nearly separated.
SMOOTHING = 0.25


class Coefficient(Float):
    """A fitted coefficient, or an array of these, in a range where sums of their products are finite."""

    lowest, highest = -1e50, 1e50


def log_softmax(logits: FloatArray) -> FloatArray:
    """Compute log probabilities, over the last axis."""
    if logits.shape[-1] == 2:
        odds = logits[..., 1] - logits[..., 0]
        return np.stack([-np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)], axis=-1)
    # Ten times as fast as np.max over a short last axis.
    shifted = logits - reduce(np.maximum, np.moveaxis(logits, -1, 0))[..., None]
    logs: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def log_losses(logits: FloatArray, codes: IntArray) -> FloatArray:
    """Compute the log loss of every row: (..., n_rows) from (..., n_rows, n_classes)."""
    return -log_softmax(logits)[..., np.arange(len(codes)), codes]


def log_odds(logits: FloatArray) -> FloatArray:
    """Return the log odds of the second of two classes, or the logits of more classes."""
    return logits[..., 1] - logits[..., 0] if logits.shape[-1] == 2 else logits


def from_log_odds(values: FloatArray) -> FloatArray:
    """Convert the log odds of two classes, in a last axis of length 1, to logits; return others unchanged."""
    return values * np.array([-0.5, 0.5]) if values.shape[-1] == 1 else values


def centered(logits: FloatArray) -> FloatArray:
    """Shift the logits of each sample to mean 0, which does not change probabilities."""
    shifted: FloatArray = logits - logits.mean(axis=-1, keepdims=True)
    return shifted


def most_probable(logits: FloatArray, threshold: float) -> IntArray:
    """Return the most probable class; of two, the second if its probability reaches the threshold."""
    probability = np.exp(log_softmax(logits))
    if logits.shape[1] == 2:
        return (probability[:, 1] >= threshold).astype(np.int64)
    chosen: IntArray = probability.argmax(axis=1)
    return chosen


def prior_logits(class_weights: FloatArray) -> FloatArray:
    """Compute the logarithms of the class frequencies, with one sample added to each class."""
    logs: FloatArray = np.log((class_weights + 1.0) / (class_weights.sum() + len(class_weights)))
    return logs


class Labels(NamedTuple):
    """Labels of held-out samples."""

    codes: IntArray
    weights: FloatArray
    folds: IntArray
    prior: FloatArray  # logits of the class frequencies among all samples

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.prior)

    def take(self, rows: BoolArray) -> "Labels":
        """Keep some of the samples."""
        return Labels(self.codes[rows], self.weights[rows], self.folds[rows], self.prior)

    def targets(self) -> FloatArray:
        r"""Compute Platt's targets :math:`(N_k + a) / (N_k + 2a)`; the other classes share the rest equally."""
        own = np.bincount(self.codes, weights=self.weights)[self.codes]
        total, rest = own + 2.0 * SMOOTHING, SMOOTHING / (self.n_classes - 1)
        targets = np.repeat((rest / total)[:, None], self.n_classes, axis=1)
        targets[np.arange(len(own)), self.codes] = (own + SMOOTHING) / total
        return targets

    def log_loss(self, logits: FloatArray) -> float:
        """Compute the mean log loss."""
        return float(np.average(log_losses(logits, self.codes), weights=self.weights))

    def accuracy(self, logits: FloatArray) -> float:
        """Compute the share of samples whose most probable class is right."""
        return float(np.average(logits.argmax(axis=1) == self.codes, weights=self.weights))

    def area_under_curve(self, logits: FloatArray) -> float:
        """Compute the area under the ROC curve; for more than two classes, the mean of one-vs-rest areas."""
        logs, codes, weights = log_softmax(logits), self.codes, self.weights
        areas = []
        for k in [1] if logs.shape[1] == 2 else np.unique(codes).tolist():
            # Weight of the rest that ranks below each sample of the class; ties count one half.
            _, ranks = np.unique(logs[:, k], return_inverse=True)
            own = np.bincount(ranks, weights=weights * (codes == k))
            rest = np.bincount(ranks, weights=weights * (codes != k))
            areas.append(own @ (np.cumsum(rest) - rest / 2.0) / (own.sum() * rest.sum()))
        return float(np.mean(areas))
