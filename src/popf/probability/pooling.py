"""Several kinds of evidence pooled into one, and how far to trust it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from popf.probability.softmax import (
    Designs,
    Penalty,
    fit_softmax,
    log_loss,
    log_losses,
    log_softmax,
    softmax_targets,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: The ridge that draws weights to what the losses alone suggest; so many samples' likelihood make a unit of it.
RIDGE = 40.0
TEMPERATURE = 16.0
#: Evidence that gains so many times its price is beyond doubt.
BEYOND_DOUBT = 1.5
PRECISION = 1e-12


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

    A ridge draws the weights to shares by :math:`e^{-n L_j / 16}`, with the log loss :math:`L_j` of each part.

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


def trust_in(
    exponents: FloatArray,
    prior: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    n_candidates: int,
) -> float:
    """Decide how far held-out evidence can be trusted to say more than the prior, from 0 to 1.

    The trust t mixes exponents, t z + (1 - t) prior. It minimises the log loss of all samples plus t log(N m).
    N is the number of classes times the harmonic mean of their sizes: by Schwarz's approximation the price of
    two parameters, t and the bandwidth; m is the number of candidates. So t is 0 where evidence gains less than
    it costs. Where all of it gains clearly more than the price, there is no doubt, and t is 1.
    """
    weights = weights * max(1.0, len(codes) / weights.sum())  # the mean sample is one at least
    own = np.bincount(codes, weights=weights).astype(np.float64)
    own = own[own > 0.0]
    price = float(np.log(n_candidates * max(len(own) ** 2 / (1.0 / own).sum(), 1.0)))
    evidence = exponents - prior
    for_own = evidence[np.arange(len(codes)), codes]

    def slope(trust: float) -> float:
        probability = np.exp(log_softmax(prior + trust * evidence))
        return float(weights @ ((probability * evidence).sum(axis=1) - for_own)) + price

    low, high = 0.0, 1.0
    if slope(low) >= 0.0:
        high = low
    elif slope(high) <= 0.0:
        low = high
    while high - low > PRECISION:
        middle = (low + high) / 2.0
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    gain = float(weights @ (-prior[codes] - log_losses(exponents, codes)))
    return low + (1.0 - low) * float(expit(gain - BEYOND_DOUBT * price))
