"""The soft competition, slow and obvious: all costs in one matrix, every sample left out by hand.

Any number of classes is one case: two classes are a softmax with a shared slope too, and that is
Platt's sigmoid. Nothing here imports popf.
"""

from typing import NamedTuple

import numpy as np

import naive


class Forest(NamedTuple):
    """What the competition needs: distances between samples, path costs, class indices, weights."""

    D: np.ndarray
    costs: np.ndarray
    y: np.ndarray
    w: np.ndarray
    n_classes: int


class Calibration(NamedTuple):
    """Slope and biases of softmax(-slope * m + biases), or the prior where nothing was learnt."""

    slope: float
    biases: np.ndarray
    prior: np.ndarray | None


def grow(D, y, w=None):
    """Grow the forest on distances D."""
    costs, _ = naive.competition(D, naive.prototypes(D, y))
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
    return Forest(D, costs, np.asarray(y), w, int(np.max(y)) + 1)


def score(path_costs, w, tau):
    """-log of the weighted mean of exp(-c/tau) over the nodes of one class, nan without any."""
    path_costs, w = path_costs[w > 0.0], w[w > 0.0]
    if len(w) == 0:
        return np.nan
    least = path_costs.min()
    return least / tau - np.log((w * np.exp((least - path_costs) / tau)).sum() / w.sum())


def scores(forest, D_queries, tau):
    """Scores m_k of new samples, one column a class."""
    m = np.empty((len(D_queries), forest.n_classes))
    for t, distances in enumerate(D_queries):
        offers = np.maximum(forest.costs, distances)
        for k in range(forest.n_classes):
            of_class = forest.y == k
            m[t, k] = score(offers[of_class], forest.w[of_class], tau)
    return m


def without(forest, i):
    """The forest with the weight of sample i reduced by one."""
    w = forest.w.copy()
    w[i] = max(w[i] - 1.0, 0.0)
    return forest._replace(w=w)


def left_out_scores(forest, tau):
    """Scores of every training sample from the forest without it."""
    return np.concatenate(
        [scores(without(forest, i), forest.D[[i]], tau) for i in range(len(forest.y))]
    )


def scored(forest):
    """Rows to which every class has a score: another member than the sample itself."""
    members = [sum(without(forest, i).w[forest.y == forest.y[i]]) for i in range(len(forest.y))]
    return np.array(members) > 0.0


def unit(forest):
    """Median winning left-out cost, or the mean of the positive ones, or 1; integer weights."""
    winning = []
    for i in range(len(forest.y)):
        left = without(forest, i).w > 0.0
        winning.append(np.maximum(forest.costs, forest.D[i])[left].min())
    assert (forest.w == np.round(forest.w)).all(), "repetition needs integer weights"
    repeated = np.repeat(winning, forest.w.astype(int))
    if np.median(repeated) > 0.0:
        return float(np.median(repeated))
    return float(repeated[repeated > 0.0].mean()) if (repeated > 0.0).any() else 1.0


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def targets(y, w, n_classes, a=0.5):
    """(N_k + a)/(N_k + 2a) for a sample's class k, the rest spread over the others."""
    counts = np.array([w[y == k].sum() for k in range(n_classes)])
    T = np.empty((len(y), n_classes))
    for i, k in enumerate(y):
        T[i] = a / (counts[k] + 2.0 * a) / (n_classes - 1)
        T[i, k] = (counts[k] + a) / (counts[k] + 2.0 * a)
    return T


def smoothed_prior(y, w, n_classes):
    counts = np.array([w[y == k].sum() for k in range(n_classes)])
    return (counts + 1.0) / (counts.sum() + n_classes)


def fit_softmax(m, T, w):
    """Newton's method on the cross-entropy; the gradient ends at rounding errors."""
    n, n_classes = m.shape
    spread = np.sqrt(((m - m.mean(axis=1, keepdims=True)) ** 2).mean())
    # design[i, k] is the derivative of sample i's logit k by (slope, biases)
    design = np.concatenate(
        [-m[:, :, None] / spread, np.broadcast_to(np.eye(n_classes), (n, n_classes, n_classes))],
        axis=2,
    )

    def value(theta):
        z = design @ theta
        z = z - z.max(axis=1, keepdims=True)
        return -(w[:, None] * T * (z - np.log(np.exp(z).sum(axis=1, keepdims=True)))).sum()

    theta = np.zeros(n_classes + 1)
    for _ in range(200):
        P = softmax(design @ theta)
        gradient = np.einsum("i,ik,ikp->p", w, P - T, design)
        mean = np.einsum("ik,ikp->ip", P, design)
        hessian = np.einsum("i,ik,ikp,ikq->pq", w, P, design, design)
        hessian -= np.einsum("i,ip,iq->pq", w, mean, mean)
        step = np.linalg.lstsq(hessian, -gradient, rcond=1e-13)[0]
        size = 1.0
        while value(theta + size * step) > value(theta) and size > 1e-12:
            size /= 2.0
        if size <= 1e-12 or np.abs(step).max() < 1e-15:
            break
        theta = theta + size * step
    return theta[0] / spread, theta[1:]


def calibrate(forest, tau):
    """Fit slope and biases to the left-out scores at one bandwidth.

    Where the scores tell nothing, or the wrong way round, the answer is the prior of all samples.
    """
    prior = smoothed_prior(forest.y, forest.w, forest.n_classes)
    nothing = Calibration(0.0, np.zeros(forest.n_classes), prior)
    rows = scored(forest)
    y, w = forest.y[rows], forest.w[rows]
    if len(np.unique(y)) < 2:
        return nothing
    m = left_out_scores(forest, tau)[rows]
    if np.ptp(m, axis=1).max() == 0.0:
        return nothing
    slope, biases = fit_softmax(m, targets(y, w, forest.n_classes), w)
    return Calibration(slope, biases, prior if slope < 0.0 else None)


def probabilities(calibration, m):
    if calibration.prior is not None:
        return np.tile(calibration.prior, (len(m), 1))
    return softmax(-calibration.slope * m + calibration.biases)


def left_out_loss(forest, calibration, tau):
    """Mean log loss of the left-out probabilities."""
    rows = np.flatnonzero(scored(forest))
    P = probabilities(calibration, left_out_scores(forest, tau))
    loss = -np.log(P[rows, forest.y[rows]])
    return float(np.average(loss, weights=forest.w[rows]))
