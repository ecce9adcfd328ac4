"""For `popf.probability` and `popf.dask` until both drop the paper's method; everything is in `popf.paper`."""

from popf.paper.classifier import solver_of
from popf.paper.platt import PlattObjective, platt_targets
from popf.paper.solver import Solution, Solver
from popf.paper.swarms import PSO

__all__ = ["PSO", "PlattObjective", "Solution", "Solver", "platt_targets", "solver_of"]
