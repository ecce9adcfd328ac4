"""Softmax regressions with few parameters, by Newton's method, many of them at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_ITERATIONS = 100
MAX_HALVINGS = 30
TOLERANCE = 1e-12


class Penalty(NamedTuple):
    """A ridge around a point: half of `strength` times the squared distance, by parameter."""

    strength: FloatArray
    center: FloatArray


def fit_softmax(
    design: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    penalty: Penalty | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    r"""Minimise the cross entropy :math:`-\sum_i w_i \sum_k t_{ik} \log P_k(i)` for several designs.

    Parameters
    ----------
    design : ndarray of shape (n_designs, n_rows, n_classes - 1, n_parameters)
        What multiplies the parameters in the exponent of each class but the first, whose exponent is 0.
    targets : ndarray of shape (n_rows, n_classes)
    weights : ndarray of shape (n_rows,)
    penalty : Penalty, optional
    start : ndarray of shape (n_parameters,), optional

    Returns
    -------
    ndarray of shape (n_designs, n_parameters)
    """
    n_designs, _, _, n_parameters = design.shape
    if penalty is None:
        penalty = Penalty(np.zeros(n_parameters), np.zeros(n_parameters))
    theta = np.zeros((n_designs, n_parameters)) if start is None else np.tile(start, (n_designs, 1))

    def objective(theta: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is far too long
            logs = log_softmax(exponents_of(design[which], theta))
            values = -np.einsum("i,ik,tik->t", weights, targets, logs)
            return values + (theta - penalty.center) ** 2 @ penalty.strength / 2.0, logs

    active = np.arange(n_designs)
    values, logs = objective(theta, active)
    for _ in range(MAX_ITERATIONS):
        step, promised = _newton_step(
            design[active], logs, targets, weights, penalty, theta[active]
        )
        before, length = values[active], np.ones(len(active))
        moved = theta[active] - step
        new_values, new_logs = objective(moved, active)
        for _ in range(MAX_HALVINGS):
            worse = np.flatnonzero(~(new_values <= before - 1e-4 * length * promised))
            if len(worse) == 0:
                break
            length[worse] /= 2.0
            moved[worse] = theta[active[worse]] - length[worse, None] * step[worse]
            new_values[worse], new_logs[worse] = objective(moved[worse], active[worse])
        better = new_values < before
        theta[active[better]], values[active[better]] = moved[better], new_values[better]
        going = better & (promised > TOLERANCE * np.abs(before))
        if not going.any():
            break
        active, logs = active[going], new_logs[going]
    return theta


def _newton_step(
    design: FloatArray,
    logs: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    penalty: Penalty,
    theta: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Newton's step for every design, and twice the decrease that it promises."""
    probability = np.exp(logs[:, :, 1:])
    residual = weights[:, None] * (probability - targets[:, 1:])
    gradient = np.einsum("tikp,tik->tp", design, residual)
    gradient += penalty.strength * (theta - penalty.center)
    if design.shape[2] == 1:  # two classes, by far the most frequent case
        rows = design[:, :, 0]
        curvature = weights[:, None] * probability * (1.0 - probability)
        hessian = np.matmul(np.swapaxes(rows, 1, 2), curvature * rows)
    else:
        weighted = (weights[:, None] * probability)[..., None] * design
        mean = np.einsum("tik,tikp->tip", probability, design)
        hessian = np.einsum("tikp,tikq->tpq", weighted, design)
        hessian -= np.einsum("tip,tiq->tpq", weights[:, None] * mean, mean)
    hessian += np.diag(penalty.strength)
    # A little more on the diagonal, so that a column of zeros does no harm.
    trace = np.maximum(np.einsum("tpp->t", hessian), 1e-300)
    hessian += 1e-12 * trace[:, None, None] * np.eye(design.shape[3])
    step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
    return step, np.einsum("tp,tp->t", gradient, step)


def exponents_of(design: FloatArray, theta: FloatArray) -> FloatArray:
    """Exponents of all classes, 0 for the first: (n_designs, n_rows, n_classes)."""
    others = np.matmul(design, theta[:, None, :, None])[..., 0]
    return np.concatenate([np.zeros((*others.shape[:2], 1)), others], axis=2)


def log_softmax(exponents: FloatArray) -> FloatArray:
    """Logarithms of probabilities, by the last axis."""
    shifted = exponents - exponents.max(axis=-1, keepdims=True)
    logs: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def log_losses(exponents: FloatArray, codes: IntArray) -> FloatArray:
    """Compute the log loss of every row: (..., n_rows) from (..., n_rows, n_classes)."""
    logs = log_softmax(exponents)
    losses: FloatArray = -logs[..., np.arange(len(codes)), codes]
    return losses


def log_loss(exponents: FloatArray, codes: IntArray, weights: FloatArray) -> float:
    """Compute the mean log loss."""
    return float(np.average(log_losses(exponents, codes), weights=weights))


def centered(exponents: FloatArray) -> FloatArray:
    """Shift exponents so that those of a sample have mean 0; probabilities stay as they are."""
    shifted: FloatArray = exponents - exponents.mean(axis=-1, keepdims=True)
    return shifted


def softmax_targets(codes: IntArray, masses: FloatArray, smoothing: float) -> FloatArray:
    r"""Make Platt's targets :math:`(N_k + a) / (N_k + 2a)`, the rest spread over the other classes."""
    total = masses[codes] + 2.0 * smoothing
    targets = np.repeat((smoothing / total / (len(masses) - 1))[:, None], len(masses), axis=1)
    targets[np.arange(len(codes)), codes] = (masses[codes] + smoothing) / total
    return targets
