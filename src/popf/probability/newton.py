r"""Softmax regressions with few parameters, many at a time, by Newton's method.

The logit of class k is :math:`z_k = \sum_j s_j x_{jk} + b_k` with :math:`b_0 = 0`: each column j has one slope
for all classes, as the weights of the pool. Or there is a single column, with a slope for each class,
:math:`z_k = s_k x_k + b_k`, as the scores of the forest.
"""

from typing import NamedTuple

import numpy as np

from popf.engine.structures import FloatArray, IntArray

MAX_ITERATIONS, MAX_HALVINGS = 100, 30
#: Newton's method stops when a step is expected to lower the loss by less than this fraction.
TOLERANCE = 1e-9


class Ridge(NamedTuple):
    r"""The penalty :math:`(s - c)^T M (s - c) / 2` on the slopes."""

    matrix: FloatArray  # M
    center: FloatArray  # c


def fit_softmax(
    columns: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    ridge: Ridge,
    by_class: bool = False,
) -> FloatArray:
    r"""Minimise the cross entropy :math:`-\sum_i w_i \sum_k t_{ik} \log P_k(i)` for several designs.

    `columns` have the shape (n_designs, n_columns, n_rows, n_classes), `targets` (n_rows, n_classes). With
    `by_class`, there is one column, with a slope for each class. The result has one row per design: slopes,
    then biases without the first.
    """
    # Several times as fast with the rows, the longest axis, last.
    problem = _Problem(
        np.ascontiguousarray(np.swapaxes(columns, 2, 3)),
        np.ascontiguousarray(targets.T),
        weights,
        ridge,
        by_class,
    )
    n_parameters = len(ridge.center) + targets.shape[1] - 1
    return _minimise(problem, np.zeros((len(columns), n_parameters)))


class _Problem(NamedTuple):
    columns: FloatArray  # (n_designs, n_columns, n_classes, n_rows)
    targets: FloatArray  # (n_classes, n_rows)
    weights: FloatArray
    ridge: Ridge
    by_class: bool

    def take(self, designs: IntArray) -> "_Problem":
        return self._replace(columns=self.columns[designs])

    def objective(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the objective, (n_designs,), and the probabilities, (n_designs, n_classes, n_rows)."""
        n_slopes = len(self.ridge.center)
        slopes, moved = theta[:, :n_slopes], theta[:, :n_slopes] - self.ridge.center
        with np.errstate(over="ignore", invalid="ignore"):  # a step may be far too long
            if self.by_class:
                logits = slopes[:, :, None] * self.columns[:, 0]
            else:
                logits = np.einsum("tj,tjki->tki", slopes, self.columns)
            logits[:, 1:] += theta[:, n_slopes:, None]
            logits -= logits.max(axis=1, keepdims=True)
            wanted = np.einsum("tki,ki->t", logits, self.weights * self.targets)
            probability = np.exp(logits, out=logits)
            total = probability.sum(axis=1)
            probability /= total[:, None]
            penalty = np.einsum("tp,pq,tq->t", moved, self.ridge.matrix, moved) / 2.0
            return np.log(total) @ self.weights - wanted + penalty, probability

    def derivatives(
        self, theta: FloatArray, probability: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute gradient and Hessian."""
        columns, n_slopes = self.columns, len(self.ridge.center)
        residual = self.weights * (probability - self.targets)
        own = self.weights * probability
        if self.by_class:
            slopes = (columns[:, 0] * residual).sum(axis=2)
            mean = probability * columns[:, 0]
        else:
            slopes = np.einsum("tjki,tki->tj", columns, residual)
            mean = np.einsum("tki,tjki->tji", probability, columns)
        gradient = np.concatenate([slopes, residual[:, 1:].sum(axis=2)], axis=1)
        gradient[:, :n_slopes] += (theta[:, :n_slopes] - self.ridge.center) @ self.ridge.matrix
        # The Hessian is the covariance of the logits' derivatives: minus the products of their means ...
        mean = np.concatenate([mean, probability[:, 1:]], axis=1)
        hessian: FloatArray = -np.matmul(self.weights * mean, np.swapaxes(mean, 1, 2))
        # ... plus the means of their products, which are 0 for parameters of different classes.
        hessian[:, :n_slopes, :n_slopes] += self.ridge.matrix
        slope, bias = np.split(np.arange(hessian.shape[1]), [n_slopes])
        hessian[:, bias, bias] += own[:, 1:].sum(axis=2)
        product = own[:, None] * columns
        if self.by_class:
            hessian[:, slope, slope] += (product * columns).sum(axis=3)[:, 0]
            mixed, slope = product[:, 0, 1:].sum(axis=2), slope[1:]
        else:
            hessian[:, :n_slopes, :n_slopes] += np.einsum("tjki,tlki->tjl", product, columns)
            mixed, slope = product[:, :, 1:].sum(axis=3), slope[:, None]
        hessian[:, slope, bias] += mixed
        hessian[:, bias, slope] += mixed
        # A little is added to the diagonal, so that a column of zeros does not make it singular.
        trace = np.maximum(np.einsum("tpp->t", hessian), 1e-200)
        return gradient, hessian + 1e-12 * trace[:, None, None] * np.eye(theta.shape[1])


def _minimise(problem: _Problem, theta: FloatArray) -> FloatArray:
    """Minimise by Newton's method, halving steps that do not lower the objective."""
    active = np.arange(len(theta))
    values, probability = problem.objective(theta)
    for _ in range(MAX_ITERATIONS):
        gradient, hessian = problem.derivatives(theta[active], probability)
        step = _solve(hessian, gradient)
        decrement = np.einsum("tp,tp->t", gradient, step)
        before, length = values[active], np.ones(len(active))
        last = decrement <= TOLERANCE * np.abs(before)
        moved = theta[active] - step
        new_values, probability = problem.objective(moved)
        for _ in range(MAX_HALVINGS):
            worse = np.flatnonzero(~((new_values <= before - 1e-4 * length * decrement) | last))
            if len(worse) == 0:
                break
            length[worse] /= 2.0
            moved[worse] = theta[active[worse]] - length[worse, None] * step[worse]
            new_values[worse], probability[worse] = problem.take(worse).objective(moved[worse])
        better = new_values < before
        theta[active[better]], values[active[better]] = moved[better], new_values[better]
        going = np.flatnonzero(better & ~last)
        if len(going) == 0:
            break
        if len(going) < len(active):
            active, problem = active[going], problem.take(going)
            probability = probability[going]
    return theta


def _solve(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve for the Newton steps, by least squares if probabilities of 0 or 1 make a Hessian singular."""
    try:
        found = np.linalg.solve(hessian, gradient[..., None])
    except np.linalg.LinAlgError:
        found = np.matmul(np.linalg.pinv(hessian, hermitian=True), gradient[..., None])
    return np.asarray(found[..., 0], dtype=np.float64)
