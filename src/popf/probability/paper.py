"""The paper's P-OPF: Platt's sigmoid on the signed costs of the training samples."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from popf.engine.structures import FloatArray, IntArray
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.solvers import PlattObjective, Solution, Solver, platt_targets


def fit_paper(
    forest: OptimumPathForest,
    weights: FloatArray,
    solver: Solver,
    box: Any,
    smoothing: float | None,
    random_state: Any,
) -> Solution:
    """Find A and B of :math:`P = 1 / (1 + e^{A y C + B})`, and warn if they are in doubt."""
    signed = _signed(forest.codes, forest.costs)
    targets = platt_targets(forest.codes, weights, 1.0 if smoothing is None else smoothing)
    solution = solver.minimize(PlattObjective(signed, targets, weights), box, random_state)
    if not solution.converged:
        warnings.warn(
            f"solver {solver!r} did not converge ({solution.message}); its best point is kept. "
            "Give it more iterations.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if any(solution.at_bound):
        a, b = solution.theta
        warnings.warn(
            f"The box {box!r} holds A = {a:.4g}, B = {b:.4g}: the best values lie outside it. "
            "Rescale the features or widen the box, or use method='pooled', which does not depend on scale.",
            UserWarning,
            stacklevel=4,
        )
    return solution


def paper_exponents(codes: IntArray, costs: FloatArray, a: float, b: float) -> FloatArray:
    """Exponents of both classes, from the class and the cost that conquered each sample."""
    half = -(a * _signed(codes, costs) + b) / 2.0
    return np.column_stack([-half, half])


def _signed(codes: IntArray, costs: FloatArray) -> FloatArray:
    return np.where(codes == 1, costs, -costs)
