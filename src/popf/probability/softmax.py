"""Exponents of classes, whose softmax are probabilities: their loss, and regressions by Newton's method."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from popf.engine.structures import BoolArray, FloatArray, IntArray

MAX_ITERATIONS = 100
MAX_HALVINGS = 30
TOLERANCE = 1e-12


def log_softmax(exponents: FloatArray) -> FloatArray:
    """Logarithms of probabilities, by the last axis."""
    if exponents.shape[-1] == 2:
        odds = exponents[..., 1] - exponents[..., 0]
        rest = np.log1p(np.exp(-np.abs(odds)))
        return np.stack([-(np.maximum(odds, 0.0) + rest), np.minimum(odds, 0.0) - rest], axis=-1)
    shifted = exponents - exponents.max(axis=-1, keepdims=True)
    logs: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def decisions(exponents: FloatArray) -> FloatArray:
    """Log odds of the second of two classes; of more classes, the exponents."""
    return exponents[:, 1] - exponents[:, 0] if exponents.shape[1] == 2 else exponents


def chosen_classes(exponents: FloatArray, threshold: float) -> IntArray:
    """Choose the most probable class; of two, the second from the threshold on."""
    probability = np.exp(log_softmax(exponents))
    if exponents.shape[1] == 2:
        return (probability[:, 1] >= threshold).astype(np.int64)
    chosen: IntArray = probability.argmax(axis=1)
    return chosen


def log_losses(exponents: FloatArray, codes: IntArray) -> FloatArray:
    """Compute the log loss of every row: (..., n_rows) from (..., n_rows, n_classes)."""
    logs = log_softmax(exponents)
    losses: FloatArray = -logs[..., np.arange(len(codes)), codes]
    return losses


def centered(exponents: FloatArray) -> FloatArray:
    """Shift exponents so that those of a sample have mean 0; probabilities stay as they are."""
    shifted: FloatArray = exponents - exponents.mean(axis=-1, keepdims=True)
    return shifted


def prior_exponents(masses: FloatArray) -> FloatArray:
    """Logarithms of the class frequencies, one sample added to each class."""
    logs: FloatArray = np.log((masses + 1.0) / (masses.sum() + len(masses)))
    return logs


class Labels(NamedTuple):
    """Labels of held-out samples."""

    codes: IntArray
    weights: FloatArray
    folds: IntArray
    masses: FloatArray  # the weight of each class among all samples, held out or not

    @property
    def prior(self) -> FloatArray:
        """Exponents of the class frequencies."""
        return prior_exponents(self.masses)

    def take(self, rows: BoolArray | slice) -> "Labels":
        """Keep some of the samples."""
        return Labels(self.codes[rows], self.weights[rows], self.folds[rows], self.masses)

    def targets(self, smoothing: float) -> FloatArray:
        r"""Make Platt's targets :math:`(N_k + a) / (N_k + 2a)`, the rest spread over the other classes."""
        codes, n_classes = self.codes, len(self.masses)
        own = np.bincount(codes, weights=self.weights, minlength=n_classes).astype(np.float64)
        total = own[codes] + 2.0 * smoothing
        targets = np.repeat((smoothing / total / (n_classes - 1))[:, None], n_classes, axis=1)
        targets[np.arange(len(codes)), codes] = (own[codes] + smoothing) / total
        return targets

    def log_loss(self, exponents: FloatArray) -> float:
        """Compute the mean log loss."""
        return float(np.average(log_losses(exponents, self.codes), weights=self.weights))


class Designs(NamedTuple):
    r"""Exponents of classes that are linear in their parameters, for several regressions.

    .. math:: z_k = o_k + \sum_j s_j x_{jk} + a_k u_k + b_k, \quad b_0 = 0

    Parameters come in the order s, a (if there is u), b without the first.
    """

    shared: (
        FloatArray  # x, whose slopes all classes share: (n_designs, n_shared, n_rows, n_classes)
    )
    own: FloatArray | None = None  # u, with a slope for each class: (n_designs, n_rows, n_classes)
    offset: FloatArray | None = None  # o: (n_rows, n_classes)

    @property
    def n_parameters(self) -> int:
        """The number of parameters."""
        _, n_shared, _, n_classes = self.shared.shape
        n_own = 0 if self.own is None else n_classes
        return int(n_shared + n_own + n_classes - 1)

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

    def take(self, which: IntArray) -> "Designs":
        """Keep some of the designs."""
        own = None if self.own is None else self.own[which]
        return Designs(self.shared[which], own, self.offset)


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

    `start` is (n_parameters,) or (n_designs, n_parameters).
    """
    n_designs, n_parameters = len(designs.shared), designs.n_parameters
    if penalty is None:
        penalty = Penalty(np.zeros(n_parameters), np.zeros(n_parameters))
    theta = np.zeros((n_designs, n_parameters))
    if start is not None:
        theta += start
    two = designs.shared.shape[3] == 2  # by far the most frequent case
    here: _TwoClasses | _ManyClasses
    here = _two_classes(designs) if two else _ManyClasses(*designs)

    def objective(
        theta: FloatArray, here: "_TwoClasses | _ManyClasses"
    ) -> tuple[FloatArray, FloatArray]:
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is far too long
            values, exponents = here.cross_entropy(theta, targets, weights)
            return values + (theta - penalty.center) ** 2 @ penalty.strength / 2.0, exponents

    active = np.arange(n_designs)
    values, exponents = objective(theta, here)
    if start is not None:  # what suits one design may be far off for another
        from_zero, flat = objective(np.zeros_like(theta), here)
        lost = ~(values <= from_zero)
        theta[lost], values[lost], exponents[lost] = 0.0, from_zero[lost], flat[lost]
    for _ in range(MAX_ITERATIONS):
        gradient, hessian = here.derivatives(exponents, targets, weights)
        gradient += penalty.strength * (theta[active] - penalty.center)
        hessian += np.diag(penalty.strength)
        # A little more on the diagonal, so that a column of zeros does no harm.
        trace = np.maximum(np.einsum("tpp->t", hessian), 1e-200)
        hessian += 1e-12 * trace[:, None, None] * np.eye(n_parameters)
        step = _solve(hessian, gradient)
        promised = np.einsum("tp,tp->t", gradient, step)

        before, length = values[active], np.ones(len(active))
        last = promised <= TOLERANCE * np.abs(before)
        moved = theta[active] - step
        new_values, exponents = objective(moved, here)
        for _ in range(MAX_HALVINGS):
            worse = np.flatnonzero(~((new_values <= before - 1e-4 * length * promised) | last))
            if len(worse) == 0:
                break
            length[worse] /= 2.0
            moved[worse] = theta[active[worse]] - length[worse, None] * step[worse]
            new_values[worse], exponents[worse] = objective(moved[worse], here.take(worse))
        better = new_values < before
        theta[active[better]], values[active[better]] = moved[better], new_values[better]
        going = np.flatnonzero(better & ~last)
        if len(going) == 0:
            break
        if len(going) < len(active):
            active, here, exponents = active[going], here.take(going), exponents[going]
    return theta


def _solve(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve for Newton's steps, by least squares where sure probabilities leave no curvature."""
    column, step = gradient[..., None], np.empty_like(gradient)
    try:
        step[:] = np.linalg.solve(hessian, column)[..., 0]
    except np.linalg.LinAlgError:
        step[:] = np.matmul(np.linalg.pinv(hessian, hermitian=True), column)[..., 0]
    return step


class _TwoClasses(NamedTuple):
    """Log odds that are linear in their parameters: plain logistic regressions."""

    columns: FloatArray
    offset: FloatArray

    def take(self, which: IntArray) -> "_TwoClasses":
        return _TwoClasses(self.columns[which], self.offset)

    def cross_entropy(
        self, theta: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Values, and the log odds: (n_designs,) and (n_designs, n_rows)."""
        odds = np.matmul(self.columns, theta[:, :, None])[..., 0] + self.offset
        rest = np.log1p(np.exp(-np.abs(odds))) + np.maximum(odds, 0.0)
        return (rest - targets[:, 1] * odds) @ weights, odds

    def derivatives(
        self, odds: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives by the parameters."""
        probability = expit(odds)
        residual = weights * (probability - targets[:, 1])
        gradient = np.matmul(residual[:, None], self.columns)[:, 0]
        curvature = weights * probability * (1.0 - probability)
        weighted = curvature[..., None] * self.columns
        return gradient, np.matmul(np.swapaxes(self.columns, 1, 2), weighted)


def _two_classes(designs: Designs) -> _TwoClasses:
    n_designs, _, n_rows, _ = designs.shared.shape
    shared = np.moveaxis(designs.shared[..., 1] - designs.shared[..., 0], 1, 2)
    parts = [shared]
    if designs.own is not None:
        parts.append(designs.own * np.array([-1.0, 1.0]))
    parts.append(np.ones((n_designs, n_rows, 1)))
    offset = np.zeros(n_rows)
    if designs.offset is not None:
        offset = designs.offset[:, 1] - designs.offset[:, 0]
    return _TwoClasses(np.concatenate(parts, axis=2), offset)


class _ManyClasses(Designs):
    """The derivatives of `Designs`, in which classes have few parameters in common."""

    def take(self, which: IntArray) -> "_ManyClasses":
        return _ManyClasses(*super().take(which))

    def cross_entropy(
        self, theta: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Values, and the exponents: (n_designs,) and (n_designs, n_rows, n_classes)."""
        exponents = self.exponents(theta)
        wanted = (weights[:, None] * targets).ravel()
        return -(log_softmax(exponents).reshape(len(theta), -1) @ wanted), exponents

    def derivatives(
        self, exponents: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives by the parameters."""
        probability = np.exp(log_softmax(exponents))
        gradient = self._gradient(weights[:, None] * (probability - targets))
        return gradient, self._hessian(probability, weights)

    def _gradient(self, residual: FloatArray) -> FloatArray:
        n_designs, n_shared, n_rows, n_classes = self.shared.shape
        flat = self.shared.reshape(n_designs, n_shared, n_rows * n_classes)
        parts = [np.matmul(flat, residual.reshape(n_designs, -1, 1))[..., 0]]
        if self.own is not None:
            parts.append((self.own * residual).sum(axis=1))
        parts.append(residual[:, :, 1:].sum(axis=1))
        return np.concatenate(parts, axis=1)

    def _hessian(self, probability: FloatArray, weights: FloatArray) -> FloatArray:
        n_designs, n_shared, n_rows, n_classes = self.shared.shape
        weighted = weights[:, None] * probability
        # The mean over the classes of every derivative ...
        means = [np.einsum("tik,tjik->tij", probability, self.shared)]
        if self.own is not None:
            means.append(probability * self.own)
        means.append(probability[:, :, 1:])
        mean = np.concatenate(means, axis=2)
        found: FloatArray = -np.matmul(np.swapaxes(mean, 1, 2), weights[:, None] * mean)
        # ... and of their products, which are 0 for parameters of two classes.
        shared = np.arange(n_shared)[:, None]
        biases = np.arange(1 - n_classes, 0) + self.n_parameters
        product = weighted[:, None] * self.shared
        flat = (n_designs, n_shared, n_rows * n_classes)
        found[:, shared, shared.T] += np.matmul(
            product.reshape(flat), np.swapaxes(self.shared.reshape(flat), 1, 2)
        )
        with_biases = product.sum(axis=2)[:, :, 1:]
        found[:, shared, biases] += with_biases
        found[:, biases, shared] += with_biases
        found[:, biases, biases] += weighted[:, :, 1:].sum(axis=1)
        if self.own is not None:
            own = n_shared + np.arange(n_classes)
            with_shared = np.einsum("tik,tjik->tjk", weighted * self.own, self.shared)
            found[:, shared, own] += with_shared
            found[:, own, shared] += with_shared
            found[:, own, own] += (weighted * self.own**2).sum(axis=1)
            with_biases = (weighted * self.own).sum(axis=1)[:, 1:]
            found[:, own[1:], biases] += with_biases
            found[:, biases, own[1:]] += with_biases
        return found
