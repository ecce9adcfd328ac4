"""Functions of A and B on a grid, among them the one that the paper's fit minimises."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from popf.formatting import check_integer
from popf.probability.classifier import POPFClassifier
from popf.solvers import PlattObjective, platt_targets
from popf.solvers.base import PAPER_BOX, Evaluations, Objective, check_box

FloatArray = NDArray[np.float64]


class Landscape(NamedTuple):
    """Values on a grid: ``values[i, j]`` belongs to ``B[i]`` and ``A[j]``, as in `numpy.meshgrid`."""

    A: FloatArray
    B: FloatArray
    values: FloatArray


def prepare_landscape(
    objective: Objective, box: ArrayLike = PAPER_BOX, *, resolution: int = 101
) -> Landscape:
    """Compute a function of two parameters on a grid; see `LandscapeDisplay.from_objective`."""
    check_integer("resolution", resolution, 2)
    ends = check_box(box)
    if ends is None:
        raise ValueError("box is None; a landscape needs bounds, such as ((-10, 10), (-10, 10)).")
    evaluate = Evaluations(objective)
    A, B = np.linspace(ends.lower, ends.upper, resolution).T
    # A row at a time: an objective may need memory for every point.
    rows = [evaluate(np.column_stack([A, np.full(resolution, b)])) for b in B]
    return Landscape(A, B, np.array(rows))


def paper_objective(
    estimator: POPFClassifier, sample_weight: ArrayLike | None = None
) -> PlattObjective:
    """Return the function of A and B that a fitted ``POPFClassifier(method="paper")`` has minimised."""
    if not isinstance(estimator, POPFClassifier):
        raise TypeError(
            f"{type(estimator).__name__} has no landscape over A and B; pass a fitted "
            "POPFClassifier(method='paper'), or use LandscapeDisplay.from_objective."
        )
    check_is_fitted(estimator)
    if not hasattr(estimator, "A_"):
        raise ValueError(
            "only the paper's method fits A and B; pass a POPFClassifier(method='paper'), or use "
            "LandscapeDisplay.from_objective."
        )
    opf, fitted = estimator.opf_, estimator.solution_
    weights = None
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)[opf.sample_indices_]
    codes = opf.forest_.codes
    signed = np.where(codes == 1, opf.costs_, -opf.costs_)
    objective = PlattObjective(signed, platt_targets(codes, weights), weights)
    assert fitted is not None  # the paper's method always has one
    if not np.isclose(float(objective(fitted.theta)), fitted.value, rtol=1e-9, atol=0.0):
        raise ValueError(
            "the model was fitted with other sample weights than those given here; pass the same "
            "as in fit: sample_weight=..."
        )
    return objective
