"""Which algorithm suits the data: a look at how much a search in the space tree would prune.

How far a space tree prunes is a matter of the data's own dimension, not of the number of features: a line
in a hundred dimensions is still a line. So a few searches are made in the space tree of a sample, and the
work they take, counted in vector operations on sixteen points, is extrapolated to all samples. Against it
stands the work of matrix products, which is known beforehand. No clock is read: the choice is the same
every time.
"""

import numpy as np

from popf.engine import space_tree as kdtree
from popf.engine.points import distinct_points
from popf.engine.runtime.simd import LANES
from popf.engine.structures import FloatArray
from popf.engine.trees.neighbours import neighbours_to_list, work_of_search

# The dimension up to which the space tree always wins, and the sizes of sample to look at.
LOW_DIMENSION = 4
SAMPLES = (2048, 8192)
SEARCHES = 32  # blocks of sixteen points


def choose_algorithm(X: FloatArray) -> str:
    """Choose between the space tree and matrix products for Euclidean distances.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)

    Returns
    -------
    {"kd_tree", "brute"}

    Examples
    --------
    >>> import numpy as np
    >>> from popf.engine.choice import choose_algorithm
    >>> rng = np.random.default_rng(0)
    >>> choose_algorithm(rng.normal(size=(3000, 50)))
    'brute'
    >>> line = rng.normal(size=(3000, 1)) @ np.ones((1, 50))
    >>> choose_algorithm(line)
    'kd_tree'
    """
    n_samples, n_features = X.shape
    if n_features <= LOW_DIMENSION:
        return "kd_tree"
    sizes = sorted({min(size, n_samples) for size in SAMPLES})
    work = [_work(X[:: n_samples // size][:size]) for size in sizes]
    growth = 0.0
    if len(sizes) > 1:
        growth = float(np.clip(np.log(work[1] / work[0]) / np.log(sizes[1] / sizes[0]), 0.0, 1.0))
    expected = work[-1] * (n_samples / sizes[-1]) ** growth
    # Nanoseconds for all samples, measured over 5,000 to 60,000 samples of 8 to 50 features.
    by_tree = n_samples / LANES * expected * (20.0 + 1.7 * n_features)
    by_products = n_samples**2 / 2.0 * (1.8 + 0.037 * n_features)
    return "kd_tree" if by_tree < by_products else "brute"


def _work(sample: FloatArray) -> float:
    points = distinct_points(sample).points
    if len(points) < 2:
        return 1.0
    n_neighbours = min(neighbours_to_list(points.shape[1]), len(points) - 1)
    return work_of_search(kdtree.build(points), n_neighbours, SEARCHES)
