"""The linear maps, slow and obvious: weights are repetition, every matrix is written out.

Nothing here imports popf.
"""

import numpy as np
from scipy.linalg import sqrtm


def repeat(X, y, w=None):
    """Repeat each sample as often as its weight says."""
    if w is None:
        return np.asarray(X, dtype=float), np.asarray(y)
    return np.repeat(np.asarray(X, dtype=float), w, axis=0), np.repeat(y, w)


def standardise(X, new):
    """Mean 0 and variance 1 by the samples X; constant features are 0."""
    varies = np.ptp(X, axis=0) > 0.0
    scale = np.where(varies, X.std(axis=0), 1.0)
    return (X - X.mean(axis=0)) / scale * varies, (new - X.mean(axis=0)) / scale * varies, varies


def effect_sizes(X, y):
    """Correlation ratio of every feature."""
    found = []
    for x in X.T:
        total = sum((value - x.mean()) ** 2 for value in x)
        between = sum((x[y == label].mean() - x.mean()) ** 2 for label in y)
        found.append(np.sqrt(between / total) if np.ptp(x) > 0.0 else 0.0)
    return np.array(found)


def within(Z, y):
    """Samples less the mean of their class."""
    return np.array([z - Z[y == label].mean(axis=0) for z, label in zip(Z, y, strict=True)])


def ledoit_wolf(R):
    """The covariance of centred rows by the formulas of section 3.2 of the paper, and the shrinkage."""
    n, d = R.shape
    S = sum(np.outer(r, r) for r in R) / n
    m = np.trace(S) / d
    distance = ((S - m * np.eye(d)) ** 2).sum()
    chance = sum(((np.outer(r, r) - S) ** 2).sum() for r in R) / n**2
    delta = min(chance, distance) / distance if distance > 0.0 else 0.0
    return delta * m * np.eye(d) + (1.0 - delta) * S, delta


def weights(X, y, new, w=None):
    X, y = repeat(X, y, w)
    _, mapped, _ = standardise(X, new)
    return mapped * effect_sizes(X, y)


def whitening(X, y, new, w=None):
    """Multiply by the inverse root of the covariance; constant features stay 0."""
    X, y = repeat(X, y, w)
    Z, mapped, varies = standardise(X, new)
    covariance, _ = ledoit_wolf(within(Z[:, varies], y))
    found = np.zeros_like(mapped)
    found[:, varies] = mapped[:, varies] @ np.linalg.inv(sqrtm(covariance).real)
    return found


def discriminant(X, y, new, w=None, strength=1.0):
    """Multiply the whitened by the root of I + s B."""
    Z, mapped = whitening(X, y, X, w), whitening(X, y, new, w)
    Z, y = repeat(Z, y, w)
    B = sum(
        (y == label).mean() * np.outer(Z[y == label].mean(axis=0), Z[y == label].mean(axis=0))
        for label in np.unique(y)
    )
    return mapped @ sqrtm(np.eye(len(B)) + strength * B).real


MAPS = {"weights": weights, "whitening": whitening, "discriminant": discriminant}
