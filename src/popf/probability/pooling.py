"""Several kinds of evidence pooled into one, and how far to trust it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.probability.softmax import Designs, Penalty, fit_softmax, log_loss, softmax_targets

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: The ridge that draws weights to what the losses alone suggest; so many samples' likelihood make a unit of it.
RIDGE = 20.0
TEMPERATURE = 8.0


class Pool(NamedTuple):
    """Weights of the parts, never negative, and biases of the classes."""

    weights: FloatArray
    biases: FloatArray

    def exponents(self, parts: FloatArray) -> FloatArray:
        """Pool exponents: (n_rows, n_classes) from (n_parts, n_rows, n_classes)."""
        pooled: FloatArray = np.tensordot(self.weights, parts, axes=1) + self.biases
        return pooled


def fit_pool(parts: FloatArray, codes: IntArray, weights: FloatArray, smoothing: float) -> Pool:
    """Fit weights and biases to held-out exponents of several parts.

    A ridge draws the weights to shares by :math:`e^{-n L_j / 8}`, with the log loss :math:`L_j` of each part.

    Parameters
    ----------
    parts : ndarray of shape (n_parts, n_rows, n_classes)
    codes, weights : ndarray of shape (n_rows,)
    smoothing : float
        Of the targets.
    """
    n_parts, _, n_classes = parts.shape
    masses = np.bincount(codes, weights=weights, minlength=n_classes).astype(np.float64)
    targets = softmax_targets(codes, masses, smoothing)
    losses = np.array([log_loss(part, codes, weights) for part in parts])
    shares = np.exp(-(losses - losses.min()) * weights.sum() / TEMPERATURE)
    shares /= shares.sum()
    free = np.arange(n_parts)
    while True:
        n_free = len(free)
        strength = np.append(np.full(n_free, RIDGE), np.zeros(n_classes - 1))
        center = np.append(shares[free], np.zeros(n_classes - 1))
        theta = fit_softmax(
            Designs(parts[None, free]), targets, weights, Penalty(strength, center)
        )[0]
        if (theta[:n_free] >= 0.0).all():
            break
        free = free[theta[:n_free] >= 0.0]  # a weight below 0 is 0
    found = np.zeros(n_parts)
    found[free] = theta[:n_free]
    return Pool(found, np.append(0.0, theta[n_free:]))


def log_odds_of_evidence(
    gain: float, codes: IntArray, weights: FloatArray, n_candidates: int
) -> float:
    r"""Log odds that held-out evidence says more than the class prior does.

    They are :math:`n g - \log (N m)`: g is the mean gain over the prior in log likelihood, N the number of
    classes times the harmonic mean of their sizes, and m the number of candidates that the best was taken from.
    By Schwarz's approximation N is the price of two parameters. Weights count as repetition, but the mean
    sample as no less than one.
    """
    own = np.bincount(codes, weights=weights).astype(np.float64)
    own = own[own > 0.0] * max(1.0, len(codes) / weights.sum())
    size = len(own) ** 2 / float((1.0 / own).sum())
    return float(own.sum() * gain - np.log(n_candidates * max(size, 1.0)))
