"""Generated datasets: functions of a seed and a number of samples that return X and y.

``RULES``   categories, bits and intervals whose class follows a rule, most with a little label noise
``SMOOTH``  classes that cut a smooth function of a few features
"""

from functools import partial

import numpy as np
from sklearn import datasets as bundled


def encoded(X, y):
    """Convert X to floats, and encode the classes as integers from 0."""
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]


def sklearn_maker(name, default, settings, seed, n_samples=None):
    make = getattr(bundled, f"make_{name}")
    return encoded(*make(n_samples=n_samples or default, random_state=seed, **settings))


def make(name, n, **settings):
    return partial(sklearn_maker, name, n, settings)


def classification(n, d, informative, **settings):
    redundant = min(2, d - informative)
    sizes = {"n_features": d, "n_informative": informative, "n_redundant": redundant}
    return make("classification", n, **sizes, **settings)


def gaussians(distances, d, spreads, n, seed, n_samples=None):
    """Draw an isotropic Gaussian for each class, with centres on the diagonal."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples or n) % len(distances)
    centres = np.asarray(distances)[y, None] / d**0.5
    return centres + np.asarray(spreads)[y, None] * rng.standard_normal((len(y), d)), y


def checkerboard(seed, n_samples=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 3.0, (n_samples or 600, 2))
    flipped = rng.random(len(X)) < 0.05
    return X, (np.floor(X).sum(axis=1).astype(np.int64) % 2) ^ flipped


def categories(levels, rule, n, noise, seed, n_samples=None):
    """Draw categories with `levels` levels, one-hot encoded (one column for two levels)."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, levels, (n_samples or n, len(levels)))
    columns = [
        codes[:, [j]] == range(0 if count > 2 else 1, count) for j, count in enumerate(levels)
    ]
    return encoded(np.hstack(columns), relabelled(rng, rule(*codes.T), noise))


def uniform_features(d, rule, n, noise, seed, n_samples=None):
    """Draw features from 0 to 1."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples or n, d))
    return encoded(X, relabelled(rng, rule(*X.T), noise))


def relabelled(rng, y, noise):
    """Replace a share of the labels by labels of other samples, drawn at random."""
    return np.where(rng.random(len(y)) < noise, rng.permutation(y), y)


def disjunction(*bits):
    """Return whether any of four conjunctions of three of the bits holds."""
    return np.any([np.all(bits[i : i + 3], axis=0) for i in (0, 3, 6, 9)], axis=0)


def multiplexer(first, second, *data):
    """Return the one of four bits whose number the first two bits spell."""
    return np.choose(2 * first + second, data[:4])


def boxes(a, b, c, *rest):
    """Return whether a sample lies in one of three boxes, each bounded in two features."""
    in_box = (a < 0.3) & (b > 0.5), (b < 0.4) & (c > 0.7), (a > 0.6) & (c > 0.2) & (c < 0.5)
    return np.any(in_box, axis=0)


def decision_list(a, b, c, d, *rest):
    """Return the class of the first rule that holds, else 1."""
    return np.select([a > 0.8, (b < 0.3) & (c < 0.6), (c > 0.5) & (d > 0.4)], [0, 1, 2], 1)


MONK = (3, 3, 2, 3, 4, 2)  # numbers of levels in the three MONK's problems
RULES = {
    "monk-1": partial(categories, MONK, lambda a, b, c, d, e, f: (a == b) | (e == 0), 432, 0.0),
    "monk-3": partial(
        categories,
        MONK,
        lambda a, b, c, d, e, f: ((e == 2) & (d == 0)) | ((e != 3) & (b != 2)),
        432,
        0.1,
    ),
    "disjunction": partial(categories, (2,) * 16, disjunction, 1_000, 0.1),
    "multiplexer": partial(categories, (2,) * 10, multiplexer, 1_000, 0.05),
    "xor of categories": partial(
        categories, (3,) * 10, lambda a, b, *rest: (a == 0) ^ (b == 0), 1_500, 0.1
    ),
    "at least 4 of 7": partial(
        categories, (2,) * 12, lambda *bits: np.sum(bits[:7], axis=0) > 3, 800, 0.05
    ),
    "boxes": partial(uniform_features, 8, boxes, 1_200, 0.1),
    "decision list": partial(uniform_features, 6, decision_list, 2_000, 0.1),
}


def smooth(function, d, n, n_classes, noise, seed, n_samples=None):
    """Draw d features from 0 to 1, and cut a function of them into classes of equal frequency.

    Logistic noise is added to the function before it is cut; its scale is `noise` standard deviations of the
    function, so 0 gives sharp borders.
    """

    def scores(rng, X):
        return function(*X.T) / spread + noise * rng.logistic(size=len(X))

    reference = np.random.default_rng(0)
    many = reference.random((20_000, d))
    spread = function(*many.T).std()
    cuts = np.quantile(scores(reference, many), np.arange(1, n_classes) / n_classes)
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples or n, d))
    return X, np.searchsorted(cuts, scores(rng, X))


def friedman_1(a, b, c, d, e, *rest):
    return 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e


def reactance(a, b, c, d):
    """Return the two parts of Friedman's second and third functions."""
    omega = np.pi * (40 + 520 * b)
    return 100 * a, omega * c - 1 / (omega * (1 + 10 * d))


def friedman_2(*features):
    return np.hypot(*reactance(*features))


def friedman_3(*features):
    resistance, rest = reactance(*features)
    return np.arctan2(rest, resistance)


def sines(a, b, c, *rest):
    return np.sin(2 * np.pi * a) + np.sin(4 * np.pi * b) + np.cos(2 * np.pi * c)


def two_centres(a, b, c, d, e):
    """Return the distance to the nearer of two centres."""
    X = np.stack([a, b, c, d, e])
    return np.minimum(*(np.linalg.norm(X - centre, axis=0) for centre in (0.25, 0.7)))


SMOOTH = {
    "friedman 1": partial(smooth, friedman_1, 10, 1_000, 2, 0.2),
    "friedman 2": partial(smooth, friedman_2, 4, 2_000, 2, 0.0),
    "friedman 3": partial(smooth, friedman_3, 4, 1_000, 3, 0.1),
    "sines": partial(smooth, sines, 4, 2_000, 2, 0.2),
    "product": partial(smooth, lambda a, b, c: (a - 0.5) * (b - 0.5), 3, 500, 2, 0.1),
    "ratio": partial(smooth, lambda a, b, c, d: (a + 0.1) / (b + c + 0.1), 4, 1_500, 4, 0.1),
    "rings": partial(smooth, lambda a, b: np.sin(15 * np.hypot(a, b)), 2, 2_000, 2, 0.0),
    "two centres": partial(smooth, two_centres, 5, 3_000, 2, 0.2),
    "cubic": partial(
        smooth, lambda a, b, c: (2 * a - 1) ** 3 + (2 * b - 1) * (2 * c - 1), 3, 5_000, 2, 0.3
    ),
    "waves": partial(smooth, lambda a, b: np.sin(8 * a + 6 * b * b), 2, 800, 3, 0.1),
}
