"""Common parts of the solvers: the box, the start, the history of a search."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from popf.engine.structures import FloatArray
from popf.formatting import check_integer, check_real
from popf.state import Choice, Float, Integer, Sizes, StateError

Objective = Callable[[FloatArray], Any]
RandomNumbers = int | np.random.RandomState | np.random.Generator | None

PAPER_BOX = ((-10.0, 10.0), (-10.0, 10.0))
# A parameter this close to a bound, relative to the width of the box, counts as being on it.
AT_BOUND = 1e-6
SIDES = ("lower", "upper", None)


class Box(NamedTuple):
    """Lower and upper bounds of both parameters, all infinite if there are none."""

    lower: FloatArray
    upper: FloatArray

    @property
    def width(self) -> FloatArray:
        """Lengths of both sides."""
        return self.upper - self.lower

    @property
    def bounded(self) -> bool:
        """Whether there are bounds."""
        return bool(np.isfinite(self.width).all())

    def clip(self, points: FloatArray) -> FloatArray:
        """Clip points to the box."""
        return np.minimum(np.maximum(points, self.lower), self.upper)


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of a search.

    Attributes
    ----------
    history, path : ndarray of shape (n_iterations + 1,), ndarray of shape (n_iterations + 1, 2)
        The best value and point so far, at the start and after each iteration.
    n_evaluations : int
        Number of points at which the objective was evaluated.
    converged, message : bool, str
        Whether the solver's convergence criterion was met, and why it stopped.
    at_bound : tuple of two of {"lower", "upper", None}
        Which bounds of the box the two parameters lie on, if any.
    theta, value : ndarray of shape (2,), float
        The best point found, and the objective there.
    n_iterations : int

    Examples
    --------
    >>> from popf.paper import NelderMead
    >>> solution = NelderMead().minimize(lambda thetas: (thetas**2).sum(axis=1), ((1, 4), (-4, 4)))
    >>> solution.at_bound
    ('lower', None)
    """

    history: Annotated[FloatArray, Float("n_points")]
    path: Annotated[FloatArray, Float("n_points", 2)]
    n_evaluations: Annotated[int, Integer(low=1)]
    converged: bool
    message: str
    at_bound: Annotated[tuple[str | None, str | None], Choice(*product(SIDES, SIDES))]

    def check_state(self, sizes: Sizes) -> None:
        """Check that there is a point; see `popf.state`."""
        if not len(self.path):
            raise StateError("at least one point", "path")

    @property
    def theta(self) -> FloatArray:
        """The best point found."""
        found: FloatArray = self.path[-1]
        return found

    @property
    def value(self) -> float:
        """The objective at the best point."""
        return float(self.history[-1])

    @property
    def n_iterations(self) -> int:
        """Number of iterations."""
        return len(self.history) - 1


class Search:
    """The state of a search: the objective, its number of evaluations, the box, and the best points so far."""

    def __init__(self, objective: Any, box: Box) -> None:
        self.objective = objective
        self.box = box
        self.n_evaluations = 0
        self.path: list[FloatArray] = []
        self.history: list[float] = []

    def evaluate(self, thetas: FloatArray) -> FloatArray:
        """Evaluate the objective at points of shape (n, 2); NaN is replaced by infinity."""
        values = np.asarray(self.objective(thetas), dtype=np.float64)
        if values.shape != (len(thetas),):
            raise ValueError(
                f"the objective returned shape {values.shape} for {len(thetas)} points; it gets an "
                f"array of shape (n, 2) and must return one value per row, shape (n,)"
            )
        self.n_evaluations += len(thetas)
        return np.where(np.isnan(values), np.inf, values)

    def derivatives(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Compute value, gradient and Hessian at a point; this counts as one evaluation."""
        self.n_evaluations += 1
        value, gradient, hessian = self.objective.derivatives(theta)
        return value, gradient, hessian

    def first_point(self) -> FloatArray:
        """Return the start: the objective's, else the middle of the box, else 0."""
        middle = 0.5 * (self.box.lower + self.box.upper) if self.box.bounded else np.zeros(2)
        start = np.array(getattr(self.objective, "start", middle), dtype=np.float64)
        return self.box.clip(start)

    def add(self, theta: FloatArray, value: float) -> None:
        """Record an iteration; a point worse than the best so far is replaced by the best."""
        if self.history and not value <= self.history[-1]:
            theta, value = self.path[-1], self.history[-1]
        self.path.append(np.array(theta))
        self.history.append(float(value))

    def solution(self, converged: bool, message: str) -> Solution:
        """Return the result of the search."""
        theta, near = self.path[-1], AT_BOUND * self.box.width
        sides = [theta - self.box.lower < near, self.box.upper - theta < near]
        at_bound = np.select(sides, ["lower", "upper"], "").tolist()
        return Solution(
            history=np.array(self.history),
            path=np.array(self.path),
            n_evaluations=self.n_evaluations,
            converged=converged,
            message=message,
            at_bound=(at_bound[0] or None, at_bound[1] or None),
        )


class Solver(ABC):
    """A minimisation algorithm and its parameters.

    Solvers are immutable, comparable, hashable and picklable. To tune the parameters of a solver, search over
    solvers: ``{"solver": [PSO(), PSO(inertia=0.7)]}``.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from popf.paper import PSO
    >>> replace(PSO(), inertia=0.7)
    PSO(inertia=0.7)
    """

    def minimize(
        self,
        objective: Objective,
        box: ArrayLike | None = PAPER_BOX,
        random_state: RandomNumbers = None,
    ) -> Solution:
        """Minimise a function of two parameters over a box.

        Parameters
        ----------
        objective : callable
            Maps an array of shape (n, 2), one point per row, to n values; for `Newton` see `PlattObjective`.
            `Newton` and `NelderMead` start at ``objective.start`` if it exists, else in the middle of the box.
        box : array-like of shape (2, 2) or None, default=((-10, 10), (-10, 10))
            (lower, upper) bounds of both parameters; None for no bounds (not for swarms).
        random_state : int, RandomState, Generator or None, default=None
            Random numbers for the swarms; pass an int for reproducible results.

        Returns
        -------
        solution : Solution
        """
        search = Search(objective, check_box(box))
        converged, message = self._minimize(search, random_state)
        return search.solution(converged, message)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.type is int:
                check_integer(field.name, value, 1)
            else:
                check_real(field.name, value, 0.0)

    @abstractmethod
    def _minimize(self, search: Search, random_state: RandomNumbers) -> tuple[bool, str]:
        """Run the search; return whether it converged, and why it stopped."""

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        changed = [field.name for field in fields if getattr(self, field.name) != field.default]
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in changed)
        return f"{type(self).__name__}({values})"


def check_box(box: ArrayLike | None) -> Box:
    """Convert the box given by the user; raise ValueError if it is invalid."""
    if box is None:
        return Box(np.full(2, -np.inf), np.full(2, np.inf))
    ends = np.asarray(box, dtype=np.float64)
    if ends.shape != (2, 2):
        raise ValueError(
            f"box has shape {ends.shape}; give ((lowest, highest), (lowest, highest)) or None"
        )
    for parameter, (lower, upper) in enumerate(ends.tolist()):
        # The width must be finite too: agents are scattered over it.
        if not (lower < upper and np.isfinite(upper - lower)):
            raise ValueError(
                f"box[{parameter}] is ({lower}, {upper}); give two finite numbers, the lower one first, "
                "or box=None for no bounds"
            )
    return Box(np.array(ends[:, 0]), np.array(ends[:, 1]))
