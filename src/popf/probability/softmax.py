"""Softmax regressions with few parameters, by Newton's method, many of them at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_ITERATIONS = 100
MAX_HALVINGS = 30
TOLERANCE = 1e-12


class Designs(NamedTuple):
    r"""Exponents of classes that are linear in their parameters, for several regressions.

    .. math:: z_k = o_k + \sum_j s_j x_{jk} + a_k u_k + b_k, \quad b_0 = 0

    Parameters come in the order s, a (if there is u), b without the first.

    Attributes
    ----------
    shared : ndarray of shape (n_designs, n_shared, n_rows, n_classes)
        x, whose slopes all classes share.
    own : ndarray of shape (n_designs, n_rows, n_classes), default=None
        u, with a slope for each class.
    offset : ndarray of shape (n_rows, n_classes), default=None
        o.
    """

    shared: FloatArray
    own: FloatArray | None = None
    offset: FloatArray | None = None

    @property
    def n_parameters(self) -> int:
        """The number of parameters."""
        _, n_shared, _, n_classes = self.shared.shape
        n_own = 0 if self.own is None else n_classes
        return int(n_shared + n_own + n_classes - 1)

    def take(self, which: IntArray) -> "Designs":
        """Keep some of the designs."""
        if len(which) == len(self.shared):
            return self
        own = None if self.own is None else self.own[which]
        return Designs(self.shared[which], own, self.offset)

    def exponents(self, theta: FloatArray) -> FloatArray:
        """Exponents of all classes: (n_designs, n_rows, n_classes)."""
        n_designs, n_shared, n_rows, n_classes = self.shared.shape
        flat = self.shared.reshape(n_designs, n_shared, n_rows * n_classes)
        found: FloatArray = np.matmul(theta[:, None, :n_shared], flat)
        found = found.reshape(n_designs, n_rows, n_classes)
        if self.own is not None:
            found += theta[:, None, n_shared : n_shared + n_classes] * self.own
        found[:, :, 1:] += theta[:, None, 1 - n_classes :]
        return found if self.offset is None else found + self.offset

    def gradient(self, residual: FloatArray) -> FloatArray:
        """Sum the derivatives by the parameters, each exponent's times its residual."""
        n_designs, n_shared, n_rows, n_classes = self.shared.shape
        flat = self.shared.reshape(n_designs, n_shared, n_rows * n_classes)
        parts = [np.matmul(flat, residual.reshape(n_designs, -1, 1))[..., 0]]
        if self.own is not None:
            parts.append((self.own * residual).sum(axis=1))
        parts.append(residual[:, :, 1:].sum(axis=1))
        return np.concatenate(parts, axis=1)

    def hessian(self, probability: FloatArray, weights: FloatArray) -> FloatArray:
        """Second derivatives of the cross entropy: (n_designs, n_parameters, n_parameters)."""
        _, n_shared, _, n_classes = self.shared.shape
        weighted = weights[:, None] * probability
        # The mean over the classes of every derivative, and of products of two; classes apart have none.
        means = [np.einsum("tik,tjik->tij", probability, self.shared)]
        if self.own is not None:
            means.append(probability * self.own)
        means.append(probability[:, :, 1:])
        mean = np.concatenate(means, axis=2)
        found: FloatArray = -np.matmul(np.swapaxes(mean, 1, 2), weights[:, None] * mean)
        shared, biases = np.arange(n_shared), np.arange(1 - n_classes, 0) + self.n_parameters
        product = weighted[:, None] * self.shared
        for j in shared:
            found[:, : j + 1, j] += np.einsum(
                "tik,tjik->tj", product[:, j], self.shared[:, : j + 1]
            )
            found[:, j, :j] = found[:, :j, j]
        with_biases = product.sum(axis=2)[:, :, 1:]
        found[:, shared[:, None], biases] += with_biases
        found[:, biases, shared[:, None]] += with_biases
        found[:, biases, biases] += weighted[:, :, 1:].sum(axis=1)
        if self.own is not None:
            own = n_shared + np.arange(n_classes)
            with_shared = np.einsum("tik,tjik->tjk", weighted * self.own, self.shared)
            found[:, shared[:, None], own] += with_shared
            found[:, own, shared[:, None]] += with_shared
            found[:, own, own] += (weighted * self.own**2).sum(axis=1)
            with_biases = (weighted * self.own).sum(axis=1)[:, 1:]
            found[:, own[1:], biases] += with_biases
            found[:, biases, own[1:]] += with_biases
        return found


class Penalty(NamedTuple):
    """A ridge around a point: half of `strength` times the squared distance, by parameter."""

    strength: FloatArray
    center: FloatArray


def fit_softmax(
    designs: Designs,
    targets: FloatArray,
    weights: FloatArray,
    penalty: Penalty | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    r"""Minimise the cross entropy :math:`-\sum_i w_i \sum_k t_{ik} \log P_k(i)` for several designs.

    Parameters
    ----------
    designs : Designs
    targets : ndarray of shape (n_rows, n_classes)
    weights : ndarray of shape (n_rows,)
    penalty : Penalty, optional
    start : ndarray of shape (n_parameters,), optional

    Returns
    -------
    ndarray of shape (n_designs, n_parameters)
    """
    n_designs, n_parameters = len(designs.shared), designs.n_parameters
    if penalty is None:
        penalty = Penalty(np.zeros(n_parameters), np.zeros(n_parameters))
    theta = np.zeros((n_designs, n_parameters)) if start is None else np.tile(start, (n_designs, 1))
    wanted = weights[:, None] * targets

    def objective(theta: FloatArray, here: Designs) -> tuple[FloatArray, FloatArray]:
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is far too long
            logs = log_softmax(here.exponents(theta))
            values = -(logs.reshape(len(theta), -1) @ wanted.ravel())
            return values + (theta - penalty.center) ** 2 @ penalty.strength / 2.0, logs

    active, here = np.arange(n_designs), designs
    values, logs = objective(theta, here)
    if start is not None:  # what suits one design may be far off for another
        from_zero, logs_from_zero = objective(np.zeros_like(theta), here)
        lost = ~(values <= from_zero)
        theta[lost], values[lost], logs[lost] = 0.0, from_zero[lost], logs_from_zero[lost]
    for _ in range(MAX_ITERATIONS):
        probability = np.exp(logs)
        gradient = here.gradient(weights[:, None] * (probability - targets))
        gradient += penalty.strength * (theta[active] - penalty.center)
        hessian = here.hessian(probability, weights) + np.diag(penalty.strength)
        # A little more on the diagonal, so that a column of zeros does no harm.
        trace = np.maximum(np.einsum("tpp->t", hessian), 1e-200)
        hessian += 1e-12 * trace[:, None, None] * np.eye(n_parameters)
        step = _solve(hessian, gradient)
        promised = np.einsum("tp,tp->t", gradient, step)

        before, length = values[active], np.ones(len(active))
        last = promised <= TOLERANCE * np.abs(before)
        moved = theta[active] - step
        new_values, logs = objective(moved, here)
        for _ in range(MAX_HALVINGS):
            worse = np.flatnonzero(~((new_values <= before - 1e-4 * length * promised) | last))
            if len(worse) == 0:
                break
            length[worse] /= 2.0
            moved[worse] = theta[active[worse]] - length[worse, None] * step[worse]
            new_values[worse], logs[worse] = objective(moved[worse], here.take(worse))
        better = new_values < before
        theta[active[better]], values[active[better]] = moved[better], new_values[better]
        going = np.flatnonzero(better & ~last)
        if len(going) == 0:
            break
        active, here, logs = active[going], here.take(going), logs[going]
    return theta


def _solve(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve for Newton's steps, by least squares where sure probabilities leave no curvature."""
    column, step = gradient[..., None], np.empty_like(gradient)
    try:
        step[:] = np.linalg.solve(hessian, column)[..., 0]
    except np.linalg.LinAlgError:
        step[:] = np.matmul(np.linalg.pinv(hessian, hermitian=True), column)[..., 0]
    return step


def log_softmax(exponents: FloatArray) -> FloatArray:
    """Logarithms of probabilities, by the last axis."""
    if exponents.shape[-1] == 2:  # by far the most frequent case
        odds = exponents[..., 1] - exponents[..., 0]
        rest = np.log1p(np.exp(-np.abs(odds)))
        return np.stack([-(np.maximum(odds, 0.0) + rest), np.minimum(odds, 0.0) - rest], axis=-1)
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
