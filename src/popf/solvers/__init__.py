"""Minimisers of functions of two parameters, and Platt's objective.

One file per solver, each a small immutable object whose fields are its parameters, with the paper's
values as defaults; ``solver.minimize(objective, box, random_state)`` returns a `Solution`:

``newton``        Newton's method with analytic derivatives, the box handled exactly
``nelder_mead``   the simplex of Nelder and Mead, SciPy's
``pso``           particle swarm
``bat``           bat algorithm
``firefly``       firefly algorithm

``platt`` holds the objective that P-OPF minimises, ``base`` what the solvers share (the box, counting,
recording), ``swarm`` what the last three share (scattered agents, the stopping rule). An objective is
any function from an array of shape (n, 2), one point a row, to an array of n values. Nothing here knows
about forests or classifiers.
"""

from popf.solvers.base import Solution, Solver
from popf.solvers.bat import Bat
from popf.solvers.firefly import Firefly
from popf.solvers.nelder_mead import NelderMead
from popf.solvers.newton import Newton
from popf.solvers.platt import PlattObjective, platt_probability, platt_targets
from popf.solvers.pso import PSO

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
