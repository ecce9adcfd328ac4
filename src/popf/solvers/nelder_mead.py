"""The simplex method of Nelder and Mead."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from popf.formatting import check_integer, check_real
from popf.solvers.base import Box, FloatArray, Search, Solver

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

    def _minimize(
        self, search: Search, start: FloatArray | None, random_state: object
    ) -> tuple[bool, str]:
        box, clipped = search.box, False

        def value_at(theta: FloatArray) -> float:
            nonlocal clipped
            if box is not None:
                clipped |= bool(((theta <= box.lower) | (theta >= box.upper)).any())
            return float(search.evaluate(theta[np.newaxis])[0])

        theta = search.default_start() if start is None else start
        search.add(theta, value_at(theta))
        while True:
            before, clipped = search.history[-1], False
            with np.errstate(invalid="ignore"):  # differences of infinite values
                found = minimize(
                    value_at,
                    search.path[-1],
                    method="Nelder-Mead",
                    bounds=None if box is None else np.column_stack(box),
                    callback=lambda intermediate_result: search.add(
                        intermediate_result.x, intermediate_result.fun
                    ),
                    options={
                        "xatol": self.tolerance,
                        "fatol": self.tolerance,
                        "maxiter": self.max_iterations + 1 - len(search.history),
                        "maxfev": np.inf,
                        "initial_simplex": _first_simplex(search.path[-1], box),
                    },
                )
            converged = bool(found.success and np.isfinite(found.fun))
            if not (converged and clipped and before - found.fun > self.tolerance):
                break
        if converged:
            return True, f"the simplex is smaller than {self.tolerance:g}"
        return False, f"still moving after {self.max_iterations} iterations; raise max_iterations"


def _first_simplex(start: FloatArray, box: Box | None) -> FloatArray:
    """Return the start and a step from it along each parameter, inward at the sides of the box."""
    steps = np.ones(2)
    if box is not None:
        steps = FIRST_SIDE * box.width
        steps[start + steps > box.upper] *= -1.0
    return start + np.vstack([np.zeros(2), np.diag(steps)])
