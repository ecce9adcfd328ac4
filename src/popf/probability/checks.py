"""What `POPFClassifier` checks before it works, and what it warns of afterwards."""

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from popf.solvers.by_name import solver_of

if TYPE_CHECKING:
    from popf.probability.classifier import POPFClassifier
    from popf.solvers import Solution, Solver

METHODS = ("soft", "paper")
CALIBRATIONS = ("softmax", "multinomial")


def check_parameters(model: "POPFClassifier") -> "Solver":
    """Raise an error unless all parameters make sense; give the solver."""
    from popf.solvers.base import check_box

    check_box(model.box)
    for name, value, choices in (
        ("method", model.method, METHODS),
        ("calibration", model.calibration, CALIBRATIONS),
    ):
        if value not in choices:
            raise ValueError(f"{name} must be one of {choices}, not {value!r}.")
    if not (np.isreal(model.threshold) and 0.0 < model.threshold < 1.0):
        raise ValueError(f"threshold must lie between 0 and 1, not at {model.threshold!r}.")
    limit = model.n_left_out
    if limit is not None and not (isinstance(limit, int | np.integer) and limit >= 2):
        raise ValueError(f"n_left_out must be None or a number from 2 on, not {limit!r}.")
    smoothing = model.smoothing
    if smoothing is not None and not (np.isreal(smoothing) and 0.0 < smoothing < np.inf):
        raise ValueError(f"smoothing must be None or a positive number, not {smoothing!r}.")
    if model.linear_map is not None:
        from popf.probability.map_choice import check_map

        check_map(model.linear_map, model.method, model.metric)
    return solver_of(model.solver)


def check_classes(model: "POPFClassifier", n_classes: int, solver: "Solver") -> None:
    """Raise an error unless method and solver serve so many classes."""
    from popf.solvers import Newton

    if n_classes > 2 and model.method == "paper":
        raise ValueError(
            f"Only binary classification is supported by method='paper', but y has {n_classes} "
            "classes: use method='soft'."
        )
    if n_classes > 2 and not isinstance(solver, Newton):
        raise ValueError(
            f"y has {n_classes} classes, for which only solver='newton' serves, not "
            f"{model.solver!r}."
        )


def warn_of(model: "POPFClassifier", solution: "Solution") -> None:
    """Warn of a solver that did not converge, and of a box that binds in the paper's method."""
    if not solution.converged:
        warnings.warn(
            f"solver {model.solver!r} did not converge ({solution.message}); its best point is kept. "
            "Give it more iterations.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if model.method == "paper" and any(solution.at_bound):
        a, b = solution.theta
        warnings.warn(
            f"The box {model.box!r} holds A = {a:.4g}, B = {b:.4g}: the best values lie outside it. "
            "Rescale the features or widen the box, or use method='soft', which is free of scale.",
            UserWarning,
            stacklevel=4,
        )
