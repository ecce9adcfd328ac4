"""Stand-ins for the paper's synthetic datasets, which nothing defines.

The paper prints accuracies about 50 % for all three, that is, chance: 48.7, 52.0 and 42.8 % for OPF. So the
classes here overlap wholly (0), nearly (2), or mingle in close pairs, so that the nearest neighbour of a sample
is often of the other class (3). OPF's accuracy on them is 51.1, 51.2 and 42.2 %.
"""

import numpy as np
from numpy.typing import NDArray

_SIZES = {0: 500, 2: 1000, 3: 200}
_SHIFT = 0.2  # between the two centres of synthetic2, in deviations
_PAIRED = 0.6  # share of synthetic3 that stands in pairs
_APART = 0.02  # between the two of a pair


def make_synthetic(
    number: int, random_state: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw a stand-in for one of the paper's synthetic datasets.

    Parameters
    ----------
    number : {0, 2, 3}
        Which one, as the paper numbers them.
    random_state : int, default=0
        Seed; 0 gives what ``load("synthetic0")`` and so on give.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        500, 1,000 or 200 points in the plane.
    y : ndarray of shape (n_samples,)
        Labels -1 and 1, half each.

    Examples
    --------
    >>> from popf.datasets import make_synthetic
    >>> X, y = make_synthetic(3)
    >>> X.shape, int(y.sum())
    ((200, 2), 0)
    """
    if number not in _SIZES:
        raise ValueError(f"the paper has synthetic0, synthetic2 and synthetic3, not {number!r}.")
    rng = np.random.default_rng([number, random_state])
    n = _SIZES[number]
    y = np.repeat(np.array([-1, 1], dtype=np.int64), n // 2)
    X = rng.standard_normal((n, 2))
    if number == 2:
        X[:, 0] += 0.5 * _SHIFT * y
    if number == 3:
        pairs = round(_PAIRED * n / 2)
        X[n // 2 : n // 2 + pairs] = X[:pairs] + _APART * rng.standard_normal((pairs, 2))
    order = rng.permutation(n)
    return X[order], y[order]
