"""The solvers, against their equations and against each other."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import naive_platt
from naive_platt import Rosenbrock, Sphere, platt_problem
from popf.paper import (
    PSO,
    Bat,
    Firefly,
    NelderMead,
    Newton,
    PlattObjective,
    platt_probability,
    platt_targets,
)
from popf.paper.solver import PAPER_BOX

SWARMS = [PSO(), Bat(), Firefly()]
WITHOUT_DERIVATIVES = [NelderMead(), *SWARMS]
ALL = [Newton(), *WITHOUT_DERIVATIVES]


def name(solver):
    return type(solver).__name__


@pytest.mark.parametrize("solver", ALL, ids=name)
def test_rosenbrocks_valley_is_followed(solver):
    solution = solver.minimize(Rosenbrock((-1.5, 1.0)), ((-2, 2), (-2, 2)), random_state=1)
    assert solution.value < (0.1 if isinstance(solver, Bat | Firefly) else 1e-4)


@pytest.mark.parametrize("solver", ALL, ids=name)
@pytest.mark.parametrize("centre", [(1.0, -2.0), (-7.5, 9.0)])
def test_a_sphere_is_minimised_and_the_record_is_consistent(solver, centre):
    calls = []

    class Counting(Sphere):
        def __call__(self, thetas):
            calls.append(len(thetas))
            return super().__call__(thetas)

        def derivatives(self, theta):
            calls.append(1)
            return super().derivatives(theta)

    solution = solver.minimize(Counting(centre), random_state=0)
    assert solution.converged
    assert solution.at_bound == (None, None)
    digits = 0.15 if isinstance(solver, Bat | Firefly) else 1e-3
    np.testing.assert_allclose(solution.theta, centre, atol=digits)
    assert solution.n_evaluations == sum(calls)
    assert len(solution.history) == len(solution.path) == solution.n_iterations + 1
    assert (np.diff(solution.history) <= 0).all()
    np.testing.assert_allclose(Sphere(centre)(solution.path), solution.history)
    assert solution.value == solution.history[-1]
    assert (solution.theta == solution.path[-1]).all()
    if solver in SWARMS:  # the whole swarm in one call per iteration
        assert calls == [solver.n_agents] * (solver.n_iterations + 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("overlap", [1.0, 0.1])
def test_newton_nelder_mead_and_pso_agree_where_the_box_does_not_bind(seed, overlap):
    objective = platt_problem(seed, overlap=overlap)
    newton = Newton().minimize(objective)
    assert newton.converged
    assert newton.at_bound == (None, None)
    scale = np.abs(objective.f).sum()
    np.testing.assert_allclose(objective.derivatives(newton.theta)[1] / scale, 0.0, atol=1e-12)
    free = Newton().minimize(objective, box=None)
    np.testing.assert_allclose(newton.theta, free.theta, rtol=1e-9, atol=1e-9)
    exact = NelderMead(tolerance=1e-8).minimize(objective)
    np.testing.assert_allclose(exact.theta, newton.theta, atol=1e-5)
    swarm = PSO(n_iterations=200).minimize(objective, random_state=seed)
    np.testing.assert_allclose(swarm.theta, newton.theta, atol=1e-5)
    rough = NelderMead().minimize(objective)
    assert abs(rough.value - newton.value) < 1e-3
    assert abs(swarm.value - rough.value) < 1e-3


@pytest.mark.parametrize("naive", [naive_platt.pso, naive_platt.bat, naive_platt.firefly])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("box", [((-2.0, 3.0), (-1.0, 4.0)), ((-2.0, 0.5), (-1.0, 0.1))])
def test_swarms_move_as_their_equations_say(naive, seed, box):
    solver = {
        "pso": PSO(n_agents=7, n_iterations=15, inertia=0.6, cognitive=1.5, social=1.8),
        "bat": Bat(n_agents=7, n_iterations=15, lowest_frequency=0.1, highest_frequency=0.8,
                   loudness_decay=0.9, pulse_growth=0.3),
        "firefly": Firefly(n_agents=7, n_iterations=15, attraction=0.8, absorption=0.5, step=0.3),
    }[naive.__name__]  # fmt: skip
    expected = naive(
        solver,
        lambda x, y: (1 - x) ** 2 + 100 * (y - x * x) ** 2,
        box,
        np.random.RandomState(seed),
    )
    solution = solver.minimize(Rosenbrock(), box, random_state=seed)
    np.testing.assert_allclose(
        solution.path, [theta for theta, _ in expected], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(solution.history, [value for _, value in expected], rtol=1e-7)
    assert solution.history[-1] < solution.history[0]


@pytest.mark.parametrize("solver", [Newton(), NelderMead(), PSO()], ids=name)
@pytest.mark.parametrize(
    ("box", "theta", "at_bound"),
    [
        (((2.0, 5.0), (-5.0, 5.0)), (2.0, -2.0), ("lower", None)),
        (((-5.0, 0.0), (-5.0, 5.0)), (0.0, -2.0), ("upper", None)),
        (((-5.0, 5.0), (-1.0, 5.0)), (1.0, -1.0), (None, "lower")),
        (((2.0, 5.0), (-5.0, -4.0)), (2.0, -4.0), ("lower", "upper")),
    ],
)
def test_a_box_that_binds_is_met_and_reported(solver, box, theta, at_bound):
    solution = solver.minimize(Sphere(), box, random_state=0)
    np.testing.assert_allclose(solution.theta, theta, atol=1e-3)
    assert solution.at_bound == at_bound
    assert solution.converged


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
    for start, rtol in ((None, 1e-9), ((3.0, 2.0), 1e-6)):
        objective = PlattObjective(np.full(17, value), t)
        objective.start = objective.start if start is None else np.array(start)
        solution = Newton().minimize(objective, box)
        assert solution.converged
        np.testing.assert_allclose(platt_probability(value, solution.theta), t.mean(), rtol=rtol)


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


@pytest.mark.parametrize("solver", SWARMS, ids=name)
def test_an_integer_seed_gives_the_same_answer_every_time(solver):
    objective = platt_problem(0)
    first, second = (solver.minimize(objective, random_state=7) for _ in range(2))
    assert (first.path == second.path).all()
    assert (solver.minimize(objective, random_state=8).path[-1] != first.theta).any()
    generators = [np.random.default_rng(3), np.random.default_rng(3)]
    first, second = (solver.minimize(objective, random_state=random) for random in generators)
    assert (first.path == second.path).all()


SHORT = [kind(n_iterations=2) for kind in (PSO, Bat, Firefly)]


@pytest.mark.parametrize(
    "solver", [Newton(max_iterations=1), NelderMead(max_iterations=3), *SHORT], ids=name
)
def test_what_has_not_converged_says_so_and_keeps_its_best_point(solver):
    solution = solver.minimize(Rosenbrock(), random_state=1)
    assert not solution.converged
    assert solution.value == solution.history.min()
    assert solution.message


@pytest.mark.parametrize("solver", WITHOUT_DERIVATIVES, ids=name)
def test_values_that_are_no_numbers_are_avoided(solver):
    def half(thetas):
        return np.where(thetas[:, 0] < 0.0, np.nan, Sphere((2.0, 2.0))(thetas))

    half.start = (5.0, 5.0)
    solution = solver.minimize(half, random_state=0)
    np.testing.assert_allclose(solution.theta, (2.0, 2.0), atol=0.15)
    nowhere = solver.minimize(lambda thetas: np.full(len(thetas), np.nan), random_state=0)
    assert not nowhere.converged
    assert nowhere.value == np.inf


@pytest.mark.parametrize("solver", ALL, ids=name)
def test_solvers_are_values(solver):
    assert pickle.loads(pickle.dumps(solver)) == solver
    assert copy.deepcopy(solver) == solver
    assert clone(solver, safe=False) == solver
    assert hash(solver) == hash(type(solver)())
    assert repr(solver) == f"{type(solver).__name__}()"
    with pytest.raises(dataclasses.FrozenInstanceError):
        solver.tolerance = 1.0
    other = dataclasses.replace(solver, tolerance=0.25)
    assert other != solver
    assert repr(other) == f"{type(solver).__name__}(tolerance=0.25)"


def test_defaults_are_the_papers():
    swarm = {"n_agents": 20, "n_iterations": 400}
    assert PSO() == PSO(**swarm, inertia=0.5, cognitive=2.0, social=2.0)
    frequencies = {"lowest_frequency": 0.0, "highest_frequency": 1.0}
    assert Bat() == Bat(**swarm, **frequencies, loudness_decay=1.0, pulse_growth=1.0)
    assert Firefly() == Firefly(**swarm, attraction=0.9, absorption=1.0, step=0.7)
    assert NelderMead() == NelderMead(tolerance=0.001, max_iterations=1000)


# Bad input


def boxed(*box):
    return lambda: Newton().minimize(Sphere(), box)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (boxed((1.0, 1.0), (0.0, 1.0)), r"box\[0\] is \(1\.0, 1\.0\); .* the lower one first"),
        (boxed((0.0, 1.0), (0.0, np.inf)), r"box\[1\] is \(0\.0, inf\); give two finite numbers"),
        (boxed((-1.7e308, 1.7e308), (0.0, 1.0)), "finite"),
        (boxed(-10.0, 10.0), r"box has shape \(2,\); give \(\(lowest, highest\)"),
        (lambda: PSO(n_agents=1), "n_agents is 1; it must be an integer of at least 2"),
        (lambda: PSO(n_iterations=2.5), r"n_iterations is 2\.5; it must be an integer"),
        (lambda: PSO(inertia=-0.1), r"inertia is -0\.1; it must be a finite number of at least 0"),
        (lambda: PSO(cognitive="2"), "cognitive is '2'; it must be a finite number"),
        (lambda: Bat(loudness=0.0), r"loudness is 0\.0"),
        (lambda: Bat(loudness_decay=1.1), r"decay is 1\.1; .* greater than 0 and at most 1"),
        (lambda: Bat(highest_frequency=-1.0), r"highest_frequency is -1\.0"),
        (lambda: NelderMead(tolerance=-1e-3), r"tolerance is -0\.001"),
        (lambda: Newton(max_iterations=0), "max_iterations is 0; .* integer of at least 1"),
        (lambda: PSO().minimize(Sphere(), box=None), "box is None, but PSO scatters"),
        (lambda: PSO().minimize(lambda thetas: 1.0), r"returned shape \(\) for 20 points"),
        (lambda: Newton().minimize(lambda thetas: 1.0), "Newton needs objective.derivatives"),
        (lambda: PlattObjective([1.0], [1.5]), r"targets lie in \[1\.5, 1\.5\]; .* platt_targets"),
        (lambda: PlattObjective([1.0, 2.0], [0.5]), "2 scores and t 1 targets; give one target"),
        (lambda: PlattObjective([], []), "0 sample"),
        (lambda: PlattObjective([[1.0]], [0.5]), r"f has shape \(1, 1\)"),
        (lambda: PlattObjective([1.0, np.nan], [0.5, 0.5]), "Input f contains NaN"),
        (lambda: PlattObjective([1.0], [0.5], [-2.0]), r"weights\[0\] is -2\.0; .* negative"),
        (lambda: PlattObjective([1.0], [0.5], [0.0]), "all weights are 0; at least one sample"),
        (lambda: PlattObjective([1.0], [0.5])([1.0, 2.0, 3.0]), r"shape \(3,\); give \(2,\) or"),
        (lambda: platt_targets([1, -1], [1.0]), "there are 1 weights for 2 samples; give one each"),
        (lambda: platt_targets([[1, -1]]), r"y has shape \(1, 2\); give one value per sample"),
        (lambda: platt_targets([1, np.nan]), "Input y contains NaN"),
        (lambda: platt_targets([1, 0], smoothing=-1), "smoothing is -1; .* greater than 0"),
    ],
)
def test_bad_values_are_refused_with_a_remedy(make, message):
    with pytest.raises(ValueError, match=message):
        make()
