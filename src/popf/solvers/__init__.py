"""Minimisers of functions of two parameters, and Platt's objective.

A solver is a small immutable object whose fields are its parameters, with the paper's values as defaults;
``solver.minimize(objective, box, random_state)`` returns a `Solution`. An objective is any function from an
array of shape (n, 2), one point per row, to n values.

``base``    common parts of the solvers: the box, the start, the history of a search
``local``   Newton's method with analytic derivatives, and the simplex method of Nelder and Mead
``swarms``  particle swarm, bat and firefly algorithms
``platt``   Platt's objective, which P-OPF minimises

These modules do not depend on forests or classifiers.
"""

from typing import Any

from popf.solvers.base import Solution, Solver
from popf.solvers.local import NelderMead, Newton
from popf.solvers.platt import PlattObjective, platt_probability, platt_targets
from popf.solvers.swarms import PSO, Bat, Firefly

__all__ = [
    "PSO",
    "Bat",
    "Firefly",
    "NelderMead",
    "Newton",
    "PlattObjective",
    "Solution",
    "Solver",
    "platt_probability",
    "platt_targets",
]

SOLVERS: dict[str, type[Solver]] = {
    "newton": Newton,
    "nelder-mead": NelderMead,
    "pso": PSO,
    "bat": Bat,
    "firefly": Firefly,
}


def solver_of(solver: Any) -> Solver:
    """Return the solver with a name; a solver object is returned unchanged."""
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    error = ValueError if isinstance(solver, str) else TypeError
    raise error(
        f"`solver` must be one of {tuple(SOLVERS)} or an object of popf.solvers, not {solver!r}."
    )
