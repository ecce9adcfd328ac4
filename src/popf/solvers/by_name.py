"""Solvers by their names."""

from typing import Any

from popf.solvers import PSO, Bat, Firefly, NelderMead, Newton, Solver

SOLVERS: dict[str, type[Any]] = {
    "newton": Newton,
    "nelder-mead": NelderMead,
    "pso": PSO,
    "bat": Bat,
    "firefly": Firefly,
}


def solver_of(solver: Any) -> Solver:
    """Return the solver of a name; an object of `popf.solvers` is returned as it is."""
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        made: Solver = SOLVERS[solver]()
        return made
    error = ValueError if isinstance(solver, str) else TypeError
    raise error(
        f"`solver` must be one of {tuple(SOLVERS)} or an object of popf.solvers, not {solver!r}."
    )
