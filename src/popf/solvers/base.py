"""What the solvers share: the box, counted evaluations, the record of a search, the stopping rule."""

import dataclasses
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from popf.engine.structures import FloatArray

Objective = Callable[[FloatArray], Any]
RandomNumbers = np.random.RandomState | np.random.Generator
Bound = str | None

PAPER_BOX = ((-10.0, 10.0), (-10.0, 10.0))
# A parameter this close to a bound, as a share of the box's width, is held by it.
AT_BOUND = 1e-6


class Box(NamedTuple):
    """The search space: lower and upper ends of both parameters."""

    lower: FloatArray
    upper: FloatArray

    @property
    def width(self) -> FloatArray:
        """Length of both sides."""
        return self.upper - self.lower

    def clip(self, points: FloatArray) -> FloatArray:
        """Move points to the nearest ones in the box."""
        return np.minimum(np.maximum(points, self.lower), self.upper)


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver ended, and how it got there.

    Attributes
    ----------
    theta : ndarray of shape (2,)
        The best point seen.
    value : float
        The objective there.
    history : ndarray of shape (n_iterations + 1,)
        The best value so far at the start and after each iteration; it never rises.
    path : ndarray of shape (n_iterations + 1, 2)
        The best point so far at the start and after each iteration.
    n_evaluations : int
        At how many points the objective was computed.
    n_iterations : int
    converged : bool
        Whether the solver's own criterion was met.
    message : str
        Why it stopped.
    at_bound : tuple of two of {"lower", "upper", None}
        Which bounds of the box hold the two parameters, if any.

    Examples
    --------
    >>> from popf.solvers import NelderMead
    >>> solution = NelderMead().minimize(lambda thetas: (thetas**2).sum(axis=1), ((1, 4), (-4, 4)))
    >>> solution.at_bound
    ('lower', None)
    """

    theta: FloatArray
    value: float
    history: FloatArray
    path: FloatArray
    n_evaluations: int
    n_iterations: int
    converged: bool
    message: str
    at_bound: tuple[Bound, Bound]


class Evaluations:
    """The objective with its calls counted and its answers checked; what is not a number is bad."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.count = 0

    def __call__(self, thetas: FloatArray) -> FloatArray:
        """Values at many points, shape (n, 2)."""
        values = np.asarray(self.objective(thetas), dtype=np.float64)
        if values.shape != (len(thetas),):
            raise ValueError(
                f"the objective returned shape {values.shape} for {len(thetas)} points; it gets an "
                f"array of shape (n, 2) and must return one value per row, shape (n,)"
            )
        self.count += len(thetas)
        return np.where(np.isnan(values), np.inf, values)

    def at(self, theta: FloatArray) -> float:
        """Value at one point."""
        return float(self(theta[np.newaxis])[0])


class Record:
    """The best point and value so far, iteration by iteration."""

    def __init__(self) -> None:
        self.path: list[FloatArray] = []
        self.history: list[float] = []

    @property
    def n_iterations(self) -> int:
        """Iterations after the start."""
        return len(self.history) - 1

    def add(self, theta: FloatArray, value: float) -> None:
        """Note an iteration; a value worse than the best so far repeats the best."""
        if self.history and not value <= self.history[-1]:
            theta, value = self.path[-1], self.history[-1]
        self.path.append(np.array(theta))
        self.history.append(float(value))

    def settled(self, window: int, tolerance: float) -> bool:
        """Whether the last `window` iterations improved the best value by next to nothing.

        Next to nothing is `tolerance` times the value or times all improvement since the start,
        whichever is larger: a rule that does not change with the scale of the objective.
        """
        if len(self.history) <= window or not np.isfinite(self.history[-1]):
            return False
        first, last = self.history[0], self.history[-1]
        gained = first - last if np.isfinite(first) else 0.0
        return self.history[-1 - window] - last <= tolerance * max(abs(last), gained)

    def solution(
        self, evaluations: int, converged: bool, message: str, box: Box | None
    ) -> Solution:
        """Close the record."""
        theta = self.path[-1]
        return Solution(
            theta=theta.copy(),
            value=self.history[-1],
            history=np.array(self.history),
            path=np.array(self.path),
            n_evaluations=evaluations,
            n_iterations=self.n_iterations,
            converged=converged,
            message=message,
            at_bound=_bounds_met(theta, box),
        )


class Solver(ABC):
    """A method of minimisation with its parameters.

    Solvers are values: immutable, comparable, hashable, picklable. `dataclasses.replace` gives one
    with other parameters. To scikit-learn they are plain parameters, copied by `clone`; a search over
    parameters of a solver is a search over solvers, ``{"solver": [PSO(), PSO(inertia=0.7)]}``.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from popf.solvers import PSO
    >>> replace(PSO(), inertia=0.7)
    PSO(inertia=0.7)
    """

    def minimize(
        self,
        objective: Objective,
        box: ArrayLike | None = PAPER_BOX,
        random_state: int | RandomNumbers | None = None,
        start: ArrayLike | None = None,
    ) -> Solution:
        """Minimise a function of two parameters over a box.

        Parameters
        ----------
        objective : callable
            From an array of shape (n, 2), one point a row, to n values. `Newton` also needs
            ``objective.derivatives(theta)``; see `PlattObjective`.
        box : array-like of shape (2, 2) or None, default=((-10, 10), (-10, 10))
            (lowest, highest) of both parameters. None, for no bounds, suits `Newton` and `NelderMead`.
        random_state : int, RandomState, Generator or None, default=None
            Where swarms take their random numbers from; an int gives the same answer every time.
        start : array-like of shape (2,), default=None
            Where to start. By default `Newton` and `NelderMead` start at ``objective.start`` where
            there is such a thing, otherwise in the middle of the box, and swarms scattered over the
            box; a start given to a swarm is where its first agent begins.

        Returns
        -------
        solution : Solution
        """
        return self._minimize(objective, check_box(box), random_state, start)

    @abstractmethod
    def _minimize(
        self,
        objective: Objective,
        box: Box | None,
        random_state: int | RandomNumbers | None,
        start: ArrayLike | None,
    ) -> Solution:
        """Do what `minimize` promises; the box has been checked."""

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def check_box(box: ArrayLike | None) -> Box | None:
    """Turn the user's box into a `Box`, or say what is wrong with it."""
    if box is None:
        return None
    ends = np.asarray(box, dtype=np.float64)
    if ends.shape != (2, 2):
        raise ValueError(
            f"box has shape {ends.shape}; give ((lowest, highest), (lowest, highest)) or None"
        )
    for parameter, (lower, upper) in enumerate(ends.tolist()):
        # The width must be finite too, or agents could not be scattered over it.
        if not np.isfinite(upper - lower):
            raise ValueError(
                f"box[{parameter}] is ({lower}, {upper}); both ends must be finite, "
                "or box=None for no bounds"
            )
        if not lower < upper:
            raise ValueError(
                f"box[{parameter}] is ({lower}, {upper}), which is empty; "
                "the first end must be lower than the second"
            )
    return Box(np.array(ends[:, 0]), np.array(ends[:, 1]))


def check_start(start: ArrayLike, box: Box | None) -> FloatArray:
    """Turn the user's start into an array inside the box, or say what is wrong with it."""
    theta = np.array(start, dtype=np.float64)
    if theta.shape != (2,) or not np.isfinite(theta).all():
        raise ValueError(f"start is {start!r}; give two finite numbers")
    if box is not None and (box.clip(theta) != theta).any():
        raise ValueError(
            f"start {theta.tolist()} lies outside the box; give one between "
            f"{box.lower.tolist()} and {box.upper.tolist()}"
        )
    return theta


def choose_start(objective: Objective, start: ArrayLike | None, box: Box | None) -> FloatArray:
    """Return the user's start, or the objective's own, or the middle of the box, or 0."""
    if start is not None:
        return check_start(start, box)
    own = getattr(objective, "start", None)
    if own is not None:
        theta = check_start(own, None)
        return theta if box is None else box.clip(theta)
    return np.zeros(2) if box is None else 0.5 * box.lower + 0.5 * box.upper


def random_numbers(random_state: int | RandomNumbers | None) -> RandomNumbers:
    """Return a source of uniform numbers.

    Seeds go to NumPy's RandomState, as everywhere in scikit-learn: its stream is frozen, so a seed
    gives the same answer with every version of NumPy.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    checked: np.random.RandomState = check_random_state(random_state)
    return checked


def check_integer(name: str, value: object, lowest: int, otherwise: str = "") -> None:
    """Raise ValueError unless value is an integer of at least `lowest`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < lowest:
        raise ValueError(
            f"{name} is {value!r}; it must be an integer of at least {lowest}{otherwise}"
        )


def check_real(name: str, value: object, lowest: float, highest: float | None = None) -> None:
    """Raise ValueError unless value is a finite number from `lowest` to `highest`."""
    if isinstance(value, numbers.Real):
        number = float(value)
        if np.isfinite(number) and lowest <= number <= (np.inf if highest is None else highest):
            return
    wanted = f"at least {lowest:g}" if highest is None else f"from {lowest:g} to {highest:g}"
    raise ValueError(f"{name} is {value!r}; it must be a finite number {wanted}")


def _bounds_met(theta: FloatArray, box: Box | None) -> tuple[Bound, Bound]:
    if box is None:
        return None, None
    met: list[Bound] = [None, None]
    for k in range(2):
        if theta[k] - box.lower[k] <= AT_BOUND * box.width[k]:
            met[k] = "lower"
        elif box.upper[k] - theta[k] <= AT_BOUND * box.width[k]:
            met[k] = "upper"
    return met[0], met[1]
