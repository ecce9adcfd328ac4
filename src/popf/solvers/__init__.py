"""Minimisers of functions of two parameters, and Platt's objective.

A solver is a small immutable object whose fields are its parameters, with the paper's values as defaults;
``solver.minimize(objective, box, random_state)`` returns a `Solution`. An objective is any function from an
array of shape (n, 2), one point per row, to n values.

``base``          what the solvers share: the box, the start, the record of a search
``newton``        Newton's method with analytic derivatives, the box handled exactly
``nelder_mead``   the simplex of Nelder and Mead, SciPy's
``swarms``        particle swarm, bat and firefly algorithms
``platt``         Platt's objective, which P-OPF minimises
``by_name``       solvers by their names

Nothing here knows about forests or classifiers.
"""

from popf.solvers.base import Solution, Solver
from popf.solvers.nelder_mead import NelderMead
from popf.solvers.newton import Newton
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
