"""Logits, held-out labels, and softmax regressions that fit logits to labels.

What the code calls exponents are logits: their softmax gives the probabilities. The forest's scaling and the
pool are regressions on few columns, fitted by Newton's method.
"""

from functools import reduce
from typing import NamedTuple

import numpy as np

from popf.engine.structures import BoolArray, FloatArray, IntArray

MAX_ITERATIONS = 100
MAX_HALVINGS = 30
TOLERANCE = 1e-9
#: Relative rounding error of a sum of losses.
ROUNDING = 1e-12


def log_softmax(exponents: FloatArray) -> FloatArray:
    """Compute log probabilities, over the last axis."""
    if exponents.shape[-1] == 2:
        odds = exponents[..., 1] - exponents[..., 0]
        rest = np.log1p(np.exp(-np.abs(odds)))
        return np.stack([-(np.maximum(odds, 0.0) + rest), np.minimum(odds, 0.0) - rest], axis=-1)
    # Ten times as fast as np.max over a short last axis.
    shifted = exponents - reduce(np.maximum, np.moveaxis(exponents, -1, 0))[..., None]
    logs: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def decisions(exponents: FloatArray) -> FloatArray:
    """Return the log odds of the second of two classes, or the logits of more classes."""
    return exponents[:, 1] - exponents[:, 0] if exponents.shape[1] == 2 else exponents


def chosen_classes(exponents: FloatArray, threshold: float) -> IntArray:
    """Return the most probable class; of two, the second if its probability reaches the threshold."""
    probability = np.exp(log_softmax(exponents))
    if exponents.shape[1] == 2:
        return (probability[:, 1] >= threshold).astype(np.int64)
    chosen: IntArray = probability.argmax(axis=1)
    return chosen


def log_losses(exponents: FloatArray, codes: IntArray) -> FloatArray:
    """Compute the log loss of every row: (..., n_rows) from (..., n_rows, n_classes)."""
    logs = log_softmax(exponents)
    return -logs[..., np.arange(len(codes)), codes]


def centered(exponents: FloatArray) -> FloatArray:
    """Shift the logits of each sample to mean 0, which does not change probabilities."""
    shifted: FloatArray = exponents - exponents.mean(axis=-1, keepdims=True)
    return shifted


def prior_exponents(masses: FloatArray) -> FloatArray:
    """Compute the logarithms of the class frequencies, with one sample added to each class."""
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
        """Logits of the class frequencies."""
        return prior_exponents(self.masses)

    def take(self, rows: BoolArray) -> "Labels":
        """Keep some of the samples."""
        return Labels(self.codes[rows], self.weights[rows], self.folds[rows], self.masses)

    def targets(self, smoothing: float) -> FloatArray:
        r"""Compute Platt's targets :math:`(N_k + a) / (N_k + 2a)`; the other classes share the rest equally."""
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
    r"""Logits that are linear in their parameters, for several regressions.

    .. math:: z_k = o_k + \sum_j s_{jk} x_{jk} + b_k, \quad b_0 = 0

    Each column has one slope for all classes. With `by_class` there is a single column, with a slope for each
    class. Parameters are the slopes, then the biases without the first.
    """

    columns: FloatArray  # x: (n_designs, n_columns, n_rows, n_classes)
    by_class: bool = False
    offset: FloatArray | None = None  # o: (n_rows, n_classes)

    @property
    def n_parameters(self) -> int:
        """The number of parameters."""
        _, n_columns, _, n_classes = self.columns.shape
        return int((n_classes if self.by_class else n_columns) + n_classes - 1)

    def exponents(self, theta: FloatArray) -> FloatArray:
        """Compute the logits of all classes: (n_designs, n_rows, n_classes)."""
        n_biases = self.columns.shape[3] - 1
        found: FloatArray
        if self.by_class:
            found = np.multiply(theta[:, None, :-n_biases], self.columns[:, 0], order="C")
        else:
            found = np.einsum("tj,tjik->tik", theta[:, :-n_biases], self.columns)
        found[:, :, 1:] += theta[:, None, -n_biases:]
        return found if self.offset is None else found + self.offset


class Penalty(NamedTuple):
    """Ridge penalty: half of `strength` times the squared distance from `center`, for each parameter."""

    strength: FloatArray
    center: FloatArray


def fit_softmax(
    designs: Designs,
    targets: FloatArray,
    weights: FloatArray,
    penalty: Penalty | None = None,
    start: FloatArray | None = None,
    margin: float = np.inf,
) -> FloatArray:
    r"""Minimise the cross entropy :math:`-\sum_i w_i \sum_k t_{ik} \log P_k(i)` for several designs.

    `start` has shape (n_parameters,) or (n_designs, n_parameters). Designs whose minimum is expected to exceed
    that of the best by more than the margin are abandoned early.
    """
    n_parameters = designs.n_parameters
    if penalty is None:
        penalty = Penalty(np.zeros(n_parameters), np.zeros(n_parameters))
    two = designs.columns.shape[3] == 2  # by far the most frequent case
    problem = (_two_classes if two else _many_classes)(designs, targets, weights)
    theta = np.zeros((len(designs.columns), n_parameters))
    return minimise(problem, penalty, theta if start is None else theta + start, margin)


def minimise(
    here: "TwoClasses | _ManyClasses",
    penalty: Penalty,
    start: FloatArray,
    margin: float = np.inf,
) -> FloatArray:
    """Minimise several functions by Newton's method, each from its start, or from 0 if that is better.

    Start and result have shape (n_designs, n_parameters). Functions whose minimum is expected to exceed the
    lowest value by more than the margin are abandoned early.
    """
    theta = start.copy()
    n_designs, n_parameters = theta.shape

    def objective(
        theta: FloatArray, here: "TwoClasses | _ManyClasses"
    ) -> tuple[FloatArray, FloatArray]:
        with np.errstate(over="ignore", invalid="ignore"):  # a step may be far too long
            values, found = here.cross_entropy(theta)
            return values + (theta - penalty.center) ** 2 @ penalty.strength / 2.0, found

    active = np.arange(n_designs)
    values, found = objective(theta, here)
    if theta.any():  # some starts may be worse than 0
        # At 0 all designs have the same value.
        from_zero, at_zero = objective(np.zeros((1, n_parameters)), here.take(active[:1]))
        lost = ~(values <= from_zero)
        theta[lost], values[lost], found[lost] = 0.0, from_zero, at_zero
    for _ in range(MAX_ITERATIONS):
        gradient, hessian = here.derivatives(found)
        gradient += penalty.strength * (theta[active] - penalty.center)
        hessian += np.diag(penalty.strength)
        # A little is added to the diagonal, so that a column of zeros does not make it singular.
        trace = np.maximum(np.einsum("tpp->t", hessian), 1e-200)
        hessian += 1e-12 * trace[:, None, None] * np.eye(n_parameters)
        step = _solve(hessian, gradient)
        decrement = np.einsum("tp,tp->t", gradient, step)

        before, length = values[active], np.ones(len(active))
        last = decrement <= TOLERANCE * np.abs(before)
        moved = theta[active] - step
        new_values, found = objective(moved, here)
        for _ in range(MAX_HALVINGS):
            worse = np.flatnonzero(~((new_values <= before - 1e-4 * length * decrement) | last))
            if len(worse) == 0:
                break
            length[worse] /= 2.0
            moved[worse] = theta[active[worse]] - length[worse, None] * step[worse]
            new_values[worse], found[worse] = objective(moved[worse], here.take(worse))
        # The last step is accepted even if rounding makes its value slightly higher.
        better = new_values < np.where(last, before + ROUNDING * np.abs(before), before)
        theta[active[better]], values[active[better]] = moved[better], new_values[better]
        hopeful = values[active] - decrement <= values.min() + margin
        going = np.flatnonzero(better & ~last & hopeful)
        if len(going) == 0:
            break
        if len(going) < len(active):
            active, here, found = active[going], here.take(going), found[going]
    return theta


def _solve(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve for the Newton steps, by least squares if probabilities of 0 or 1 make a Hessian singular."""
    column, step = gradient[..., None], np.empty_like(gradient)
    try:
        step[:] = np.linalg.solve(hessian, column)[..., 0]
    except np.linalg.LinAlgError:
        step[:] = np.matmul(np.linalg.pinv(hessian, hermitian=True), column)[..., 0]
    return step


class TwoClasses(NamedTuple):
    """Logistic regressions: log odds that are linear in their parameters."""

    columns: FloatArray  # (n_designs, n_parameters, n_rows)
    offset: FloatArray
    targets: FloatArray  # of the second class
    weights: FloatArray

    def take(self, which: IntArray) -> "TwoClasses":
        """Keep some of the designs."""
        return self._replace(columns=self.columns[which])

    def cross_entropy(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return cross entropies, (n_designs,), and probabilities of the second class, (n_designs, n_rows)."""
        odds = np.matmul(theta[:, None], self.columns)[:, 0] + self.offset
        small = np.exp(-np.abs(odds))
        positive = odds > 0.0
        losses = np.log1p(small) + (positive - self.targets) * odds
        return losses @ self.weights, np.where(positive, 1.0, small) / (1.0 + small)

    def derivatives(self, probability: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the gradient and Hessian with respect to the parameters."""
        residual = self.weights * (probability - self.targets)
        gradient = np.matmul(self.columns, residual[:, :, None])[..., 0]
        curvature = self.weights * probability * (1.0 - probability)
        # The product of a matrix with its own transpose takes half the time of a general product.
        half = np.sqrt(curvature)[:, None] * self.columns
        return gradient, np.matmul(half, np.swapaxes(half, 1, 2))


def _two_classes(designs: Designs, targets: FloatArray, weights: FloatArray) -> TwoClasses:
    n_designs, _, n_rows, _ = designs.columns.shape
    if designs.by_class:
        slopes = np.swapaxes(designs.columns[:, 0], 1, 2) * np.array([[-1.0], [1.0]])
    else:
        slopes = designs.columns[..., 1] - designs.columns[..., 0]
    columns = np.concatenate([slopes, np.ones((n_designs, 1, n_rows))], axis=1)
    offset = np.zeros((n_rows, 2)) if designs.offset is None else designs.offset
    return TwoClasses(columns, offset[:, 1] - offset[:, 0], targets[:, 1], weights)


class _ManyClasses(NamedTuple):
    """Softmax regressions with few parameters.

    The axis of the classes is before that of the rows: NumPy is many times slower if the last axis is short.
    """

    columns: FloatArray  # (n_designs, n_columns, n_classes, n_rows)
    by_class: bool
    offset: FloatArray | float  # (n_classes, n_rows)
    targets: FloatArray  # (n_classes, n_rows)
    weights: FloatArray

    def take(self, which: IntArray) -> "_ManyClasses":
        return self._replace(columns=self.columns[which])

    def cross_entropy(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return cross entropies, (n_designs,), and probabilities, (n_designs, n_classes, n_rows)."""
        n_designs, _, n_classes, n_rows = self.columns.shape
        slopes, biases = np.split(theta, [1 - n_classes], axis=1)
        exponents: FloatArray
        if self.by_class:
            exponents = slopes[:, :, None] * self.columns[:, 0]
        else:
            exponents = np.matmul(slopes[:, None], self._flat())
            exponents = exponents.reshape(n_designs, n_classes, n_rows)
        exponents[:, 1:] += biases[:, :, None]
        exponents += self.offset
        exponents -= exponents.max(axis=1, keepdims=True)
        wanted = exponents.reshape(n_designs, -1) @ (self.weights * self.targets).ravel()
        probability = np.exp(exponents, out=exponents)
        total = probability.sum(axis=1)
        probability /= total[:, None]
        return np.log(total) @ self.weights - wanted, probability

    def derivatives(self, probability: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the gradient and Hessian with respect to the parameters."""
        residual = self.weights * (probability - self.targets)
        weighted = self.weights * probability
        flat = self._flat()
        if self.by_class:
            slopes = np.einsum("tki,tki->tk", self.columns[:, 0], residual)
            mean = probability * self.columns[:, 0]
        else:
            slopes = np.matmul(flat, residual.reshape(len(flat), -1, 1))[..., 0]
            mean = np.einsum("tki,tjki->tji", probability, self.columns)
        gradient = np.concatenate([slopes, residual[:, 1:].sum(axis=2)], axis=1)
        # The Hessian is the covariance of the logits' derivatives: minus the products of their means ...
        mean = np.concatenate([mean, probability[:, 1:]], axis=1)
        hessian: FloatArray = -np.matmul(self.weights * mean, np.swapaxes(mean, 1, 2))
        # ... plus the means of their products, which are 0 for parameters of different classes.
        slope, bias = np.split(np.arange(hessian.shape[1]), [slopes.shape[1]])
        hessian[:, bias, bias] += weighted[:, 1:].sum(axis=2)
        if self.by_class:
            product = weighted * self.columns[:, 0]
            hessian[:, slope, slope] += np.einsum("tki,tki->tk", product, self.columns[:, 0])
            slope, with_biases = slope[1:], product[:, 1:].sum(axis=2)
        else:
            product = weighted[:, None] * self.columns
            slope = slope[:, None]
            hessian[:, slope, slope.T] += np.matmul(
                product.reshape(flat.shape), np.swapaxes(flat, 1, 2)
            )
            with_biases = product[:, :, 1:].sum(axis=3)
        hessian[:, slope, bias] += with_biases
        hessian[:, bias, slope] += with_biases
        return gradient, hessian

    def _flat(self) -> FloatArray:
        """Merge the axes of classes and rows; there may be no columns."""
        n_designs, n_columns, n_classes, n_rows = self.columns.shape
        return self.columns.reshape(n_designs, n_columns, n_classes * n_rows)


def _many_classes(designs: Designs, targets: FloatArray, weights: FloatArray) -> _ManyClasses:
    columns = np.ascontiguousarray(np.swapaxes(designs.columns, 2, 3))
    offset = 0.0 if designs.offset is None else designs.offset.T
    return _ManyClasses(columns, designs.by_class, offset, np.ascontiguousarray(targets.T), weights)
