"""The objective over A and B with the solvers' paths, as computed and as drawn."""

import numpy as np
import pytest
from sklearn.base import clone

from display_examples import FOREST, MOON, MOONS, PAPER, labels_of, new_axes
from popf.display import LandscapeDisplay
from popf.display.landscape import prepare_landscape
from popf.paper import PSO, NelderMead, PlattObjective, platt_targets


def test_the_landscape_holds_the_objective_at_every_point_of_the_grid():
    objective = PlattObjective([-1.0, 0.5, 2.0], platt_targets([-1, 1, 1]))
    A, B, values = prepare_landscape(objective, ((-3, 1), (0, 2)), resolution=5)
    assert (A[0], A[-1], B[0], B[-1]) == (-3, 1, 0, 2)
    for i, b in enumerate(B):
        for j, a in enumerate(A):
            assert values[i, j] == pytest.approx(objective([a, b]))


def test_the_landscape_of_a_model_is_the_one_it_was_fitted_in():
    display = LandscapeDisplay.from_estimator(
        PAPER, solvers=["pso", NelderMead()], random_state=3, resolution=9, ax=new_axes()
    )
    assert list(display.paths_) == ["newton (fitted)", "pso", "NelderMead()"]
    assert display.solutions["newton (fitted)"] is PAPER.solution_
    signed = np.where(MOON == 1, FOREST.costs_, -FOREST.costs_)
    objective = PlattObjective(signed, platt_targets(MOON))
    again = PSO().minimize(objective, PAPER.box, 3)
    assert np.array_equal(display.solutions["pso"].path, again.path)
    drawn = display.paths_["pso"].get_xydata()
    assert np.array_equal(drawn[-1], again.theta)
    assert (np.diff(drawn, axis=0) != 0).any(axis=1).all()
    words = labels_of(display.ax_.get_legend())
    assert words[1] == f"pso: F = {again.value:.4g}"
    assert display.landscape.values[0, 0] == pytest.approx(objective([-60.0, -10.0]))


def test_weights_are_asked_for_when_the_model_has_seen_them():
    weights = np.linspace(0.0, 2.0, len(MOON))
    model = clone(PAPER).fit(MOONS, MOON, weights)
    with pytest.raises(ValueError, match="other sample weights"):
        LandscapeDisplay.from_estimator(model)
    LandscapeDisplay.from_estimator(model, sample_weight=weights, resolution=5, ax=new_axes())


def test_flat_and_partly_undefined_functions_are_drawn():
    def drawn(objective):
        return LandscapeDisplay.from_objective(objective, resolution=11, ax=new_axes())

    assert drawn(lambda thetas: np.ones(len(thetas))).ax_.get_legend() is None
    with np.errstate(invalid="ignore", divide="ignore"):
        holes = drawn(lambda thetas: np.log(thetas[:, 0]))
    holes.figure_.canvas.draw()
    assert np.isinf(holes.landscape.values[:, 0]).all()
