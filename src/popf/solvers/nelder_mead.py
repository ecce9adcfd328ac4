"""The simplex method of Nelder and Mead."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from popf.formatting import check_integer, check_real
from popf.solvers.base import Box, Evaluations, FloatArray, Problem, Record, Solution, Solver

# Sides of the first simplex relative to the box's width; 1 without a box.
FIRST_SIDE = 0.05


@dataclass(frozen=True, kw_only=True, repr=False)
class NelderMead(Solver):
    """Nelder and Mead's simplex, SciPy's, without derivatives.

    The first simplex is a right-angled triangle at the start with sides of a twentieth of the box. (SciPy's
    own has sides of 5 % of the start, or 0.00025 where that is 0, which is less than the tolerance: a search
    that starts at A = 0 may end there.) SciPy clips corners to the box, which can flatten the simplex until
    it stops far from the minimum; then the search starts again with a new simplex, until nothing is gained.

    Parameters
    ----------
    tolerance : float, default=0.001
        Stop when the corners of the simplex, and the values there, are this close together; the paper's p.
    max_iterations : int, default=1000

    References
    ----------
    J. A. Nelder and R. Mead, "A simplex method for function minimization", The Computer Journal 7
    (1965), 308-313.

    Examples
    --------
    >>> from popf.solvers import NelderMead
    >>> def rosenbrock(thetas):
    ...     x, y = thetas.T
    ...     return (1 - x) ** 2 + 100 * (y - x**2) ** 2
    >>> solution = NelderMead(tolerance=1e-6).minimize(rosenbrock)
    >>> solution.theta.round(4)
    array([1., 1.])
    """

    tolerance: float = 0.001
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        check_real("tolerance", self.tolerance, 0.0)
        check_integer("max_iterations", self.max_iterations, 1)

    def _minimize(self, problem: Problem) -> Solution:
        box = problem.box
        evaluate, record, clipped = Evaluations(problem.objective), Record(), False

        def value_at(theta: FloatArray) -> float:
            nonlocal clipped
            if box is not None:
                clipped |= bool(((theta <= box.lower) | (theta >= box.upper)).any())
            return float(evaluate(theta[np.newaxis])[0])

        theta = problem.first_point()
        record.add(theta, value_at(theta))
        while True:
            before, clipped = record.history[-1], False
            with np.errstate(invalid="ignore"):  # differences of infinite values
                found = minimize(
                    value_at,
                    record.path[-1],
                    method="Nelder-Mead",
                    bounds=None if box is None else np.column_stack(box),
                    callback=lambda intermediate_result: record.add(
                        intermediate_result.x, intermediate_result.fun
                    ),
                    options={
                        "xatol": self.tolerance,
                        "fatol": self.tolerance,
                        "maxiter": self.max_iterations - record.n_iterations,
                        "maxfev": np.inf,
                        "initial_simplex": _first_simplex(record.path[-1], box),
                    },
                )
            converged = bool(found.success) and bool(np.isfinite(found.fun))
            if not (converged and clipped and before - found.fun > self.tolerance):
                break
        message = (
            f"the simplex is smaller than {self.tolerance:g}"
            if converged
            else f"still moving after {record.n_iterations} iterations; raise max_iterations"
        )
        return record.solution(evaluate.count, converged, message, box)


def _first_simplex(start: FloatArray, box: Box | None) -> FloatArray:
    """Return the start and a step from it along each parameter, inward at the sides of the box."""
    steps = np.ones(2)
    if box is not None:
        steps = FIRST_SIDE * box.width
        steps[start + steps > box.upper] *= -1.0
    return start + np.vstack([np.zeros(2), np.diag(steps)])
