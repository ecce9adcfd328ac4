"""Local solvers: Newton's method, and the simplex method of Nelder and Mead."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from popf.engine.structures import FloatArray
from popf.paper.solver import Box, Search, Solver

# Smallest eigenvalue of the Hessian scaled to ones on its diagonal; smaller ones are raised to this.
RIDGE = 1e-12
# A step must achieve this share of the decrease predicted by the gradient (Armijo).
SUFFICIENT = 1e-4
HALVINGS = 60
EPS = float(np.finfo(np.float64).eps)
# Sides of the first simplex relative to the width of the box; 1 without a box. SciPy's default is 5 % of the
# start, or 0.00025 if that is 0, which is less than the tolerance: a search from A = 0 might stop there.
FIRST_SIDE = 0.05


@dataclass(frozen=True, kw_only=True, repr=False)
class Newton(Solver):
    r"""Newton's method with analytic derivatives, a line search, and the box handled exactly.

    Every iteration minimises the quadratic model

    .. math:: g^T d + \tfrac12 d^T H d, \qquad \theta + d \text{ in the box},

    over the step d, and takes the largest of d, d/2, d/4 ... that achieves a sufficient share of the predicted
    decrease. Negative eigenvalues of H change sign and tiny ones are raised (a ridge), so that every step goes
    downhill even if H is singular (all scores equal) or the objective is not convex. The objective must have a
    method ``derivatives(theta)``, as `PlattObjective` does; see there for the reference.

    Parameters
    ----------
    tolerance : float, default=1e-14
        Stop when the predicted decrease is less than this share of the value.
    max_iterations : int, default=100

    Examples
    --------
    >>> from popf.paper import Newton, PlattObjective, platt_targets
    >>> objective = PlattObjective([-2.0, -1.0, 0.5, 1.0], platt_targets([-1, -1, 1, 1]))
    >>> solution = Newton().minimize(objective)
    >>> solution.theta.round(3)
    array([-0.891, -0.317])
    >>> Newton().minimize(objective, box=((-0.5, 0.5), (-1, 1))).at_bound
    ('lower', None)
    """

    tolerance: float = 1e-14
    max_iterations: int = 100

    def _minimize(self, search: Search, random_state: object) -> tuple[bool, str]:
        if not hasattr(search.objective, "derivatives"):
            raise ValueError(
                f"Newton needs objective.derivatives(theta), and {search.objective!r} has no such method; "
                "add it, see PlattObjective, or use NelderMead"
            )
        box = search.box
        theta = search.first_point()
        value, gradient, hessian = search.derivatives(theta)
        search.add(theta, value)
        for _ in range(self.max_iterations):
            if not all(np.isfinite(part).all() for part in (value, gradient, hessian)):
                return False, f"the objective or its derivatives are not finite at {theta.tolist()}"
            step = _model_minimum(theta, gradient, _positive_definite(hessian), box)
            predicted = -float(gradient @ step)
            if predicted <= 0.0:
                return True, "the gradient vanishes, or every downhill step leaves the box"
            converged = predicted <= self.tolerance * abs(value)
            rounding = 16.0 * EPS * abs(value) if converged else 0.0
            for halving in range(HALVINGS):
                share = 0.5**halving
                tried = box.clip(theta + share * step)  # corrects rounding only
                tried_value, gradient, hessian = search.derivatives(tried)
                if tried_value <= value - SUFFICIENT * share * predicted + rounding:
                    break
            else:
                # Near the minimum, rounding may hide the remaining decrease.
                converged = converged or predicted <= np.sqrt(EPS) * abs(value)
                return converged, "no step along Newton's direction lowers the objective"
            theta, value = tried, tried_value
            # Near the minimum, a step towards it may increase the value by rounding.
            search.add(theta, min(value, search.history[-1]))
            if converged:
                return True, f"the predicted decrease was less than {self.tolerance:g} of the value"
        return False, f"stopped after {self.max_iterations} iterations"


def _positive_definite(hessian: FloatArray) -> FloatArray:
    """Replace the eigenvalues by their absolute values, and raise tiny ones."""
    # Scaled to ones on the diagonal, so that the units of the parameters do not matter.
    scale = np.sqrt(np.abs(np.diag(hessian)))
    scale[scale == 0.0] = 1.0
    eigenvalues, vectors = np.linalg.eigh(hessian / scale[:, np.newaxis] / scale)
    sizes = np.maximum(np.abs(eigenvalues), RIDGE)
    if (sizes == eigenvalues).all():
        return hessian
    return np.asarray((vectors * sizes) @ vectors.T * scale[:, np.newaxis] * scale)


def _model_minimum(
    theta: FloatArray, gradient: FloatArray, hessian: FloatArray, box: Box
) -> FloatArray:
    """Return the step to the minimum of the quadratic model over the box."""
    # Scaled, so that neither large nor small units overflow.
    scale = np.sqrt(np.diag(hessian))
    scaled = hessian / scale[:, np.newaxis] / scale
    inner: FloatArray = np.linalg.solve(scaled, -gradient / scale) / scale
    lowest, highest = box.lower - theta, box.upper - theta
    if ((lowest <= inner) & (inner <= highest)).all():
        return inner
    # Otherwise it lies on a side: hold one parameter at a bound and minimise over the other.
    best, best_value = np.zeros(2), 0.0
    for held in range(2):
        free = 1 - held
        for bound in (lowest[held], highest[held]):
            step = np.empty(2)
            step[held] = bound
            wanted = -(gradient[free] + hessian[free, held] * bound) / hessian[free, free]
            step[free] = min(max(wanted, lowest[free]), highest[free])
            model = float(gradient @ step + 0.5 * step @ hessian @ step)
            if model < best_value:
                best, best_value = step, model
    return best


@dataclass(frozen=True, kw_only=True, repr=False)
class NelderMead(Solver):
    """Nelder and Mead's simplex method, as implemented by SciPy; it needs no derivatives.

    The first simplex is a right-angled triangle at the start, with sides of a twentieth of the box. SciPy clips
    corners to the box, which can flatten the simplex and stop it far from the minimum. Therefore the search is
    repeated with a new simplex until it brings no improvement.

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
    >>> from popf.paper import NelderMead
    >>> def rosenbrock(thetas):
    ...     x, y = thetas.T
    ...     return (1 - x) ** 2 + 100 * (y - x**2) ** 2
    >>> solution = NelderMead(tolerance=1e-6).minimize(rosenbrock)
    >>> solution.theta.round(4)
    array([1., 1.])
    """

    tolerance: float = 0.001
    max_iterations: int = 1000

    def _minimize(self, search: Search, random_state: object) -> tuple[bool, str]:
        box, clipped = search.box, False

        def value_at(theta: FloatArray) -> float:
            nonlocal clipped
            clipped |= bool(((theta <= box.lower) | (theta >= box.upper)).any())
            return float(search.evaluate(theta[np.newaxis])[0])

        theta = search.first_point()
        search.add(theta, value_at(theta))
        while True:
            before, clipped = search.history[-1], False
            with np.errstate(invalid="ignore"):  # differences of infinite values
                found = minimize(
                    value_at,
                    search.path[-1],
                    method="Nelder-Mead",
                    bounds=np.column_stack(box),
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
        return False, f"stopped after {self.max_iterations} iterations; raise max_iterations"


def _first_simplex(start: FloatArray, box: Box) -> FloatArray:
    """Return the start and a step from it along each parameter; steps that would leave the box are reversed."""
    steps = FIRST_SIDE * box.width if box.bounded else np.ones(2)
    steps[start + steps > box.upper] *= -1.0
    return start + np.vstack([np.zeros(2), np.diag(steps)])
