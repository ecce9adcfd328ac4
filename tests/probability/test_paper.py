"""The paper's method of POPFClassifier, and the solvers that fit it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

import naive
from popf.solvers import PSO, Newton, PlattObjective, Solution, platt_targets
from probability_problems import SWARMS, WIDE, WIDE_NEW, Y, distances, paper


def test_the_paper_to_the_letter():
    model = paper().fit(WIDE, Y)
    D = distances(WIDE, WIDE)
    costs, _ = naive.competition(D, naive.prototypes(D, Y))
    f = np.where(Y == 1, costs, -costs)
    objective = PlattObjective(f, platt_targets(Y))
    expected = Newton().minimize(objective)
    assert expected.at_bound == (None, None)
    assert_allclose([model.A_, model.B_], expected.theta, rtol=1e-8, atol=1e-8)
    new = np.vstack([WIDE_NEW, WIDE])  # prototypes are conquered at cost 0
    nodes, path_costs = naive.conquer(costs, distances(new, WIDE), Y)
    signed = np.where(Y[nodes] == 1, path_costs, -path_costs)
    expected = expit(-(model.A_ * signed + model.B_))
    assert_allclose(model.predict_proba(new)[:, 1], expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", [*SWARMS, "nelder-mead", PSO(inertia=0.6), Newton()])
def test_every_solver_fits(solver):
    model = paper(solver=solver, random_state=0).fit(WIDE, Y)
    again = paper(solver=solver, random_state=0).fit(WIDE, Y)
    assert_array_equal(model.predict_proba(WIDE_NEW), again.predict_proba(WIDE_NEW))
    newton = paper().fit(WIDE, Y)
    rough = solver in ("bat", "firefly")
    assert model.solution_.value <= newton.solution_.value * (1.03 if rough else 1.001)
    P, expected = model.predict_proba(WIDE_NEW), newton.predict_proba(WIDE_NEW)
    assert_allclose(P, expected, rtol=0, atol=0.1 if rough else 1e-2)
    assert isinstance(model.solution_, Solution)
    assert (np.diff(model.solution_.history) <= 0.0).all()
    assert model.solution_.n_evaluations > 0
    assert model.A_ < 0.0


@pytest.mark.parametrize("solver", ["newton", "nelder-mead", "pso"])
def test_a_box_that_binds_is_reported(solver):
    with pytest.warns(UserWarning, match="box") as caught:
        model = paper(solver=solver, random_state=0).fit(WIDE * 1e-3, Y)
    said = " ".join(str(warning.message) for warning in caught)
    assert "scale" in said
    assert "pooled" in said
    assert_allclose(model.A_, -10.0, atol=1e-4)
    wide = ((-1e5, 1e5), (-1e5, 1e5))
    free = paper(box=wide).fit(WIDE * 1e-3, Y)
    assert_allclose(free.A_, 1e3 * paper().fit(WIDE, Y).A_, rtol=1e-6)


def test_a_solver_that_stops_early_warns_and_keeps_its_best_point():
    with pytest.warns(ConvergenceWarning):
        model = paper(solver=Newton(max_iterations=1)).fit(WIDE, Y)
    assert np.isfinite([model.A_, model.B_]).all()
    assert model.solution_.value == model.solution_.history[-1]
