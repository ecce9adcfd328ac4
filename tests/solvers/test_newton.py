"""Newton's method: any box, any scale, nasty scores, many samples."""

import numpy as np
import pytest

from objectives import platt_problem
from popf.solvers import Newton, PlattObjective, platt_probability, platt_targets
from popf.solvers.base import PAPER_BOX


@pytest.mark.parametrize("seed", range(12))
def test_newton_finds_the_minimum_on_the_sides_of_any_box(seed):
    objective = platt_problem(seed, 40)
    random = np.random.RandomState(seed)
    free = Newton().minimize(objective, box=None).theta
    lower = free + random.choice([-2.0, -0.5, 0.1], 2) * random.uniform(0.2, 2.0, 2)
    box = np.column_stack([lower, lower + random.uniform(0.1, 2.0, 2)])
    solution = Newton().minimize(objective, box)
    assert solution.converged
    assert ((box[:, 0] <= solution.theta) & (solution.theta <= box[:, 1])).all()
    # The conditions of Karush, Kuhn and Tucker, sufficient for a convex objective.
    gradient = objective.derivatives(solution.theta)[1]
    for k in range(2):
        if solution.at_bound[k] == "lower":
            assert gradient[k] >= -1e-9
        elif solution.at_bound[k] == "upper":
            assert gradient[k] <= 1e-9
        else:
            assert abs(gradient[k]) < 1e-8


@pytest.mark.parametrize("value", [0.0, 0.7, -3.0])
@pytest.mark.parametrize("box", [None, PAPER_BOX])
def test_newton_is_safe_where_all_scores_are_equal(value, box):
    y = np.array([1] * 12 + [-1] * 5)
    t = platt_targets(y)
    solution = Newton().minimize(PlattObjective(np.full(17, value), t), box)
    assert solution.converged
    np.testing.assert_allclose(platt_probability(value, solution.theta), t.mean(), rtol=1e-9)
    elsewhere = Newton().minimize(PlattObjective(np.full(17, value), t), box, start=(3.0, 2.0))
    assert elsewhere.converged
    np.testing.assert_allclose(platt_probability(value, elsewhere.theta), t.mean(), rtol=1e-6)


def test_newton_stays_finite_where_classes_do_not_overlap():
    y = np.repeat([1, -1], [30, 50])
    f = y * np.random.RandomState(0).uniform(0.5, 2.0, 80)
    solution = Newton().minimize(PlattObjective(f, platt_targets(y)), box=None)
    assert solution.converged
    assert -20.0 < solution.theta[0] < 0.0
    bound = Newton().minimize(PlattObjective(f / 1000, platt_targets(y)))
    assert bound.theta[0] == -10.0
    assert bound.at_bound == ("lower", None)


@pytest.mark.parametrize("factor", [1e-150, 1e-6, 1e6, 1e150])
def test_newton_knows_no_scale(factor):
    objective = platt_problem(0)
    solution = Newton().minimize(objective, box=None)
    scaled = Newton().minimize(PlattObjective(objective.f * factor, objective.t), box=None)
    assert scaled.converged
    np.testing.assert_allclose(scaled.theta * [factor, 1.0], solution.theta, rtol=1e-10)
    weights = np.full(80, factor)
    weighted = Newton().minimize(PlattObjective(objective.f, objective.t, weights), box=None)
    assert weighted.converged
    np.testing.assert_allclose(weighted.theta, solution.theta, rtol=1e-10)
