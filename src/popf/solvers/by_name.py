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
    """Give the solver that a name means; an object of `popf.solvers` means itself."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(
                f"`solver` must be one of {tuple(SOLVERS)} or a solver, not {solver!r}."
            )
        made: Solver = SOLVERS[solver]()
        return made
    if not isinstance(solver, Solver):
        raise TypeError(
            f"`solver` must be one of {tuple(SOLVERS)} or an object of popf.solvers, not {solver!r}."
        )
    return solver
